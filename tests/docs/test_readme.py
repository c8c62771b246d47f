"""The README in both languages, executed literally."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from tests.docs.documents import Block, Page
from tests.docs.terminal import COLD, Terminal
from tests.fakes.openai_server import OpenAIServer
from tests.harness.forked_processes import forked_command

README = Page("README.md")
HEADINGS = {
    "README.md": ("Start", "Your first function", "Connect a model"),
    "README.zh.md": ("启动", "第一个函数", "连接模型"),
}
START, FUNCTION, MODEL = range(3)


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


@pytest.fixture(params=HEADINGS)
def page(request: pytest.FixtureRequest) -> Page:
    """The README in each language."""
    return Page(request.param)


def console(page: Page, part: int) -> list[Block]:
    """The console blocks of a part of the page."""
    return page.of("console", HEADINGS[page.path][part])


def my_bot(terminal: Terminal, page: Page = README) -> Path:
    """The settings and the function of the page, written where it says."""
    folder = terminal.home / "my-bot"
    (folder / "functions").mkdir(parents=True)
    [settings], [function] = page.of("yaml"), page.of("python")
    (folder / "bot.yaml").write_text(settings.text, encoding="utf-8")
    (folder / "functions" / "greetings.py").write_text(function.text, encoding="utf-8")
    return folder


def says(text: str) -> dict[str, Any]:
    """A provider's answer in words."""
    message = {"role": "assistant", "content": text}
    return {"body": {"model": "qwen3", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}}


def calls(name: str, arguments: str) -> dict[str, Any]:
    """A provider's answer that calls a function."""
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"body": {"model": "qwen3", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}}


def test_a_newcomer_starts_it_and_chats_without_a_model(tmp_path: Path, page: Page) -> None:
    # The commands of pages are forks otherwise, which have all modules: here `run` and `chat` import them themselves.
    Terminal(tmp_path, COLD).follow(console(page, START))


async def test_where_there_is_a_terminal_one_chats_there_below_the_greeting(terminal: Terminal) -> None:
    settings = my_bot(terminal) / "bot.yaml"
    with settings.open("a", encoding="utf-8") as file:
        file.write("platforms: {console: {enabled: 'on'}}\n")
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


async def test_a_newcomer_connects_a_model(terminal: Terminal, page: Page) -> None:
    async with OpenAIServer([says("OK")]) as provider:
        await asyncio.to_thread(terminal.follow, console(page, MODEL), {"http://127.0.0.1:11434/v1": provider.base_url})
        assert provider.requests[0].headers["authorization"] == "Bearer your-key"
        assert provider.requests[0].json["model"] == "qwen3"


@pytest.mark.requirement("D8")
def test_the_first_function_of_ten_lines_is_called_by_hand_by_command_and_in_plain_words(
    terminal: Terminal, page: Page
) -> None:
    my_bot(terminal, page)
    assert len([line for line in page.of("python")[0].text.splitlines() if line]) <= 10
    terminal.follow(console(page, FUNCTION))


@pytest.mark.requirement("D8")
async def test_the_first_function_is_offered_to_a_model_and_called_by_it(terminal: Terminal) -> None:
    async with OpenAIServer([calls("greet", '{"name": "Dora"}'), says("Hello Dora! Done.")]) as provider:
        environment = terminal.environment(OPENAI_API_KEY="a-key", OPENAI_BASE_URL=provider.base_url)
        process = await asyncio.create_subprocess_exec(
            *(*forked_command("bot"), "chat", "--config", str(my_bot(terminal) / "bot.yaml")),
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


def test_the_front_page_is_short_and_the_same_in_both_languages() -> None:
    english, chinese = (Page(path).text for path in HEADINGS)
    assert len(english.split()) <= 900
    links, theirs = (re.findall(r"\]\(([^)]+)\)", text) for text in (english, chinese))
    assert sorted(links[1:]) == sorted(theirs[1:])
    assert (links[0], theirs[0]) == ("README.zh.md", "README.md")
