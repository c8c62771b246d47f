"""The README's instructions, executed literally."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from tests.docs.documents import ROOT, Page
from tests.docs.terminal import COLD, Terminal
from tests.fakes.openai_server import OpenAIServer
from tests.harness.forked_processes import forked_command

README = Page("README.md")


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


@pytest.fixture
def my_bot(terminal: Terminal) -> Path:
    """The settings and the function of the README in their files."""
    folder = terminal.home / "my-bot"
    (folder / "functions").mkdir(parents=True)
    [settings] = README.of("yaml", "Your own settings")
    [function] = README.of("python")
    (folder / "bot.yaml").write_text(settings.text, encoding="utf-8")
    (folder / "functions" / "greetings.py").write_text(function.text, encoding="utf-8")
    return folder


@pytest.fixture
def my_script(my_bot: Path) -> Path:
    """The settings with scripts, and the script of the README in their files."""
    [own], [more] = README.of("yaml", "Your own settings"), README.of("yaml", "A function without Python")
    [script] = README.of("basic")
    (my_bot / "bot.yaml").write_text(own.text.partition("sources:")[0] + more.text, encoding="utf-8")
    (my_bot / "scripts").mkdir()
    file = my_bot / "scripts" / "cake.bas"
    file.write_text(script.text, encoding="utf-8")
    return file


def says(text: str) -> dict[str, Any]:
    """A provider's response with text."""
    message = {"role": "assistant", "content": text}
    return {"body": {"model": "qwen3", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}}


def calls(name: str, arguments: str) -> dict[str, Any]:
    """A provider's response with a function call."""
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"body": {"model": "qwen3", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}}


def test_a_newcomer_starts_it_and_chats_without_a_model(tmp_path: Path) -> None:
    # A new process: `run` and `chat` import their modules themselves, while other pages use forks with all modules.
    Terminal(tmp_path, COLD).follow(README.of("console", "Start"))


async def test_where_there_is_a_terminal_one_chats_there_below_the_greeting(terminal: Terminal, my_bot: Path) -> None:
    settings = my_bot / "bot.yaml"
    changed = settings.read_text(encoding="utf-8").replace("platforms:\n", "platforms:\n  console: {enabled: 'on'}\n")
    settings.write_text(changed, encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        *(*forked_command("bot"), "run", "--port", "0", "--config", str(settings)),
        cwd=terminal.house,
        env=terminal.environment(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    async with asyncio.timeout(30):
        greeting = await process.stdout.readuntil("› ".encode())
        process.stdin.write(b"/calc 6*7\n")
        answer = await process.stdout.readuntil("› ".encode())
        process.terminate()
        status = await process.wait()
    assert [line.split(":")[0] for line in greeting.decode().splitlines()[:4]] == [
        "Chat page",
        "Owner link",
        "Data",
        "Model",
    ]
    assert "6*7 = 42" in answer.decode()
    assert status == 0


async def test_a_newcomer_connects_a_model(terminal: Terminal) -> None:
    async with OpenAIServer([says("OK")]) as provider:
        blocks = README.of("console", "Connect a model")
        await asyncio.to_thread(terminal.follow, blocks, {"http://127.0.0.1:11434/v1": provider.base_url})
        assert provider.requests[0].headers["authorization"] == "Bearer your-key"
        assert provider.requests[0].json["model"] == "qwen3"


@pytest.mark.requirement("D8")
@pytest.mark.usefixtures("my_bot")
def test_the_first_function_is_shown_called_by_hand_by_command_and_by_plain_words(terminal: Terminal) -> None:
    terminal.follow(README.of("console", "Your first function"))


@pytest.mark.requirement("A1", "A51")
def test_a_script_of_eight_lines_is_checked_and_asks_in_a_chat(terminal: Terminal, my_script: Path) -> None:
    assert len(my_script.read_text(encoding="utf-8").splitlines()) == 8
    settings = str(my_script.parents[1] / "bot.yaml")
    terminal.follow(README.of("console", "A function without Python"), ROLLCALL_CONFIG=settings)


@pytest.mark.requirement("D8")
async def test_the_first_function_is_offered_to_a_model_and_called_by_it(terminal: Terminal, my_bot: Path) -> None:
    async with OpenAIServer([calls("greet", '{"name": "Dora"}'), says("Hello Dora! Done.")]) as provider:
        environment = terminal.environment(OPENAI_API_KEY="a-key", OPENAI_BASE_URL=provider.base_url)
        process = await asyncio.create_subprocess_exec(
            *(*forked_command("bot"), "chat", "--config", str(my_bot / "bot.yaml")),
            cwd=terminal.house,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(30):
            output, _ = await process.communicate(b"please greet our new friend Dora\n")
    assert "Hello Dora! Done." in output.decode()
    first, second = (request.json for request in provider.requests)
    [offered] = [tool["function"] for tool in first["tools"] if tool["function"]["name"] == "greet"]
    assert offered["description"] == "Greet somebody by name."
    assert offered["parameters"]["properties"] == {"name": {"description": "Who is greeted", "type": "string"}}
    assert "Hello Dora, says you!" in second["messages"][-1]["content"]


def test_the_tree_is_the_one_on_the_disk() -> None:
    [tree] = [block.text for block in README.of("text", "The tree")]
    shown: set[str] = set()
    folder = ""
    for line in tree.splitlines():
        names = line.strip().split("   ")[0].split()
        inside = line.startswith("  ")
        folder = folder if inside else names[0]
        shown |= {f"{folder if inside else ''}{name}" for name in names}
    assert [name for name in sorted(shown) if not (ROOT / name).exists()] == []
    assert _top_level() - shown == set()
    packages = {f"{name}/" for name in ("bot", "function_calls", "services", "config", "docs")}
    inner = {f"{package}{one}" for package in packages for one in _folders(ROOT / package)}
    assert inner - shown == set()


def _top_level() -> set[str]:
    made_here = {"var", "build", "__pycache__"}
    return {
        f"{one.name}/" if one.is_dir() else one.name
        for one in ROOT.iterdir()
        if not one.name.startswith(".") and one.name not in made_here and not one.name.endswith(".egg-info")
    }


def _folders(folder: Path) -> set[str]:
    return {f"{one.name}/" for one in os.scandir(folder) if one.is_dir() and one.name != "__pycache__"}
