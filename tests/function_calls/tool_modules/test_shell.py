"""The module `shell`: one program of the list, after an admin's approval, only in the sandbox."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bot.testing import Group, a_group, call
from config.sections.processes import SandboxSettings, ShellSettings
from config.settings import Settings
from function_calls.tool_modules import shell
from services.clock import SystemClock
from services.refs import ChatRef, ErrorCode, Role
from services.sandbox.sandbox import Sandbox
from services.sandbox.shell import Shell
from services.sandbox.workspace import Workspaces
from tests.fakes.builders import FAMILY, TEXTS
from tests.function_calls.handlers.running import Functions, text_of
from tests.harness.sandboxes import needs_bubblewrap

HERE = ChatRef("test", "bot", "ann")
ADMIN = {"role": Role.ADMIN, "chat": HERE, "is_group": False}
APPROVED = {"approvals": {"required": [{"tags": ["shell"], "by": "admin"}], "expires_seconds": 600}}
SERVER_PORT = 4711


@pytest.fixture
def workspaces(tmp_path: Path) -> Workspaces:
    return Workspaces(tmp_path / "chats")


def functions_of(workspaces: Workspaces, **settings: Any) -> Functions:
    sandbox = Sandbox(SystemClock(), SandboxSettings(**settings.pop("sandbox", {})))
    return Functions(shell, Shell(sandbox, workspaces, ShellSettings.model_validate(settings)))


@pytest.mark.requirement("E43")
def test_it_is_for_admins_in_private_and_says_what_it_touches(workspaces: Workspaces) -> None:
    [spec] = functions_of(workspaces).specs.values()
    assert (spec.name, spec.access.scope, spec.execution.effect, spec.origin.tags) == (
        "shell_exec",
        "private",
        "once",
        {"shell"},
    )
    assert spec.access.roles == {Role.ADMIN, Role.OWNER}
    assert spec.execution.touches == {"reaches_out", "reads_outside"}
    with pytest.raises(ValueError, match="less than"):  # otherwise a run would end before its own timeout
        ShellSettings(timeout_seconds=spec.execution.timeout_seconds)


@needs_bubblewrap
@pytest.mark.requirement("E43")
async def test_a_program_reads_the_files_of_its_chat(workspaces: Workspaces) -> None:
    workspaces.of(FAMILY).write("list.txt", b"milk\nbread\nmilk\n")
    functions = functions_of(workspaces)
    result = await functions.run("shell_exec", command="sort -u list.txt")
    assert text_of(result) == "bread\nmilk"
    assert result.data == {"stdout": "bread\nmilk\n", "stderr": "", "exit_code": 0, "timed_out": False, "cut": False}
    other = await functions.run("shell_exec", command="ls", chat=ChatRef("test", "bot", "work"))
    assert text_of(other) == "Done, with no output."


@needs_bubblewrap
@pytest.mark.requirement("C28")
async def test_a_code_other_than_zero_is_an_error_though_nothing_was_said(workspaces: Workspaces) -> None:
    workspaces.of(FAMILY).write("list.txt", b"milk\n")
    result = await functions_of(workspaces).run("shell_exec", command="grep bread list.txt")
    assert result.error is not None
    assert (result.error.code, result.error.text) == (ErrorCode.FAILED, "grep ended with exit code 1.")
    assert result.data == {"stdout": "", "stderr": "", "exit_code": 1, "timed_out": False, "cut": False}


@needs_bubblewrap
@pytest.mark.requirement("C28")
async def test_errors_and_output_are_both_collected(workspaces: Workspaces) -> None:
    workspaces.of(FAMILY).write("list.txt", b"milk\n")
    result = await functions_of(workspaces).run("shell_exec", command="cat list.txt none.txt")
    assert result.error is not None
    assert result.error.text == "cat ended with exit code 1.\n/usr/bin/cat: none.txt: No such file or directory\nmilk"
    assert result.data["stdout"] == "milk\n"
    assert result.outside


@needs_bubblewrap
async def test_what_cannot_be_seen_is_written_out(workspaces: Workspaces) -> None:
    workspaces.of(FAMILY).write("a", b"red \x1b[31m \xff \xe2\x80\xae")
    assert (
        text_of(await functions_of(workspaces).run("shell_exec", command="cat a")) == "red <U+001B>[31m \ufffd <U+202E>"
    )


@needs_bubblewrap
async def test_of_much_output_the_beginning_is_said(workspaces: Workspaces) -> None:
    workspaces.of(FAMILY).write("a", b"x" * 900_000)
    result = await functions_of(workspaces, output_kilobytes=10).run("shell_exec", command="cat a")
    assert text_of(result) == f"{'x' * 3000}…\nThere is more output than I can show."
    assert (len(result.data["stdout"]), result.data["cut"], result.data["exit_code"]) == (10_000, True, 0)


async def test_without_a_sandbox_nothing_runs(workspaces: Workspaces) -> None:
    result = await functions_of(workspaces, sandbox={"isolation": "off"}).run("shell_exec", command="ls")
    assert result.error is not None
    assert result.error.code is ErrorCode.ENVIRONMENT
    assert "bubblewrap" in result.error.text
    assert result.data is None


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_each_refusal_has_its_sentence(workspaces: Workspaces, language: str) -> None:
    programs = {"ls": {"path": "/usr/bin/ls", "most_operands": 1}, "git": {"path": "/usr/bin/ls", "subcommand": "log"}}
    functions = functions_of(workspaces, programs=programs)
    said = set()
    lines = ["ls | id", "l''s", "ls \u200b", " ", "id", "ls -l", "ls a b", "ls /", "git push"]
    for line in lines:
        result = await functions.run("shell_exec", command=line, language=language)
        assert result.error is not None
        assert result.error.code in (ErrorCode.BAD_ARGUMENTS, ErrorCode.REFUSED)
        said.add(result.error.text)
    assert len(said) == len(lines)


async def approved(group: Group, command: str) -> str:
    """Messages when a model requests `command`, and an admin approves it."""
    group.model.says(call("shell_exec", command=command))
    asked = await group.say("Ann", "@Rollcall please", **ADMIN)
    [code] = re.findall(r"#([0-9a-f]{5})", asked[-1])
    return "\n".join(await group.say("Ann", f"approve {code}", **ADMIN))


def is_refusal(said: str) -> bool:
    """Whether nothing ran."""
    sentences = [text for key, text in TEXTS.of("en").templates.items() if key.startswith("shell.problem.")]
    return any(re.fullmatch(re.sub(r"\\\{\w+\\\}", ".+", re.escape(text)), said) for text in sentences)


@needs_bubblewrap
@pytest.mark.requirement("E43")
async def test_nothing_runs_without_the_yes_of_an_admin(tmp_path: Path) -> None:
    async with a_group([shell.shell_exec], settings=APPROVED, home=tmp_path) as group:
        [question] = await group.say("Ann", "/shell ls -l", **ADMIN)
        assert "ls -l" in question
        assert not (tmp_path / "work").exists()
        [code] = re.findall(r"#([0-9a-f]{5})", question)
        assert await group.say("Ann", f"approve {code}", **ADMIN) == ["total 0"]
        [refused] = await group.say("Bob", "/shell ls", **{**ADMIN, "role": Role.MODERATOR})
        assert "admin" in refused
        [off] = await group.say("Ann", "/shell ls", role=Role.OWNER)
        assert "total" not in off


@needs_bubblewrap
@pytest.mark.requirement("E43")
async def test_every_command_of_the_data_ends_as_it_should(data: Callable[[str], Path]) -> None:
    """The program list of the data: ls, head, grep, sort, git log, cat."""
    rows = [json.loads(line) for line in data("G_faults/shell_bypass.jsonl").read_text().splitlines()]
    shipped = Settings().shell.programs
    programs = {name: shipped[name].model_dump() for name in ("ls", "head", "grep", "sort", "cat")}
    programs["git"] = {"path": "/usr/bin/git", "subcommand": "log", "runs_programs": True}
    settings = {**APPROVED, "shell": {"programs": programs}}
    ended = {}
    async with a_group([shell.shell_exec], settings=settings) as group:
        for row in rows:
            said = await approved(group, row["command"])
            assert "root:" not in said
            ended[row["id"]] = "deny" if is_refusal(said) else said
    # Commands that are expected to fail are refused here; they run in the test below.
    assert ended == {row["id"]: "deny" for row in rows}


@needs_bubblewrap
@pytest.mark.requirement("E43")
async def test_what_takes_too_long_is_stopped(data: Callable[[str], Path], tmp_path: Path) -> None:
    rows = [json.loads(line) for line in data("G_faults/shell_bypass.jsonl").read_text().splitlines()]
    limited = [row["command"] for row in rows if row["expect"] == "killed_by_limit"]
    programs = {"sleep": {"path": "/usr/bin/sleep"}, "yes": {"path": "/usr/bin/yes"}}
    functions = functions_of(Workspaces(tmp_path), programs=programs, timeout_seconds=0.1)
    assert "sleep 100000" in limited
    for command in ("sleep 100000", "yes"):
        result = await functions.run("shell_exec", command=command)
        assert result.error is not None
        assert result.data["exit_code"] == -9
        assert text_of(result).startswith(f"{command.split()[0]} ")
    slow = await functions.run("shell_exec", command="sleep 100000")
    assert text_of(slow) == "sleep took longer than 0.1 seconds, so I stopped it."
    assert slow.error is not None
    assert slow.error.code is ErrorCode.TIMEOUT


@needs_bubblewrap
@pytest.mark.requirement("E43")
async def test_programs_that_look_further_find_nothing(tmp_path: Path) -> None:
    """With a list of programs that inspect the environment: the daemon's environment, its server, its files."""
    reached: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append("somebody")
        writer.close()

    programs = {
        "cat": {"path": "/usr/bin/cat", "anywhere": True},
        "ls": {"path": "/usr/bin/ls", "anywhere": True},
        "curl": {"path": "/usr/bin/curl", "options": ["-s"], "runs_programs": True},
    }
    functions = functions_of(Workspaces(tmp_path / "chats"), programs=programs)
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        web = await functions.run("shell_exec", command=f"curl -s http://127.0.0.1:{port}/")
    assert web.error is not None
    assert reached == []
    environment = await functions.run("shell_exec", command="cat /proc/1/environ")
    assert set(re.findall(r"(\w+)=", text_of(environment))) <= {"PATH", "LANG", "HOME", "TMPDIR", "PWD"}
    for path in ("/etc/shadow", "/etc/passwd", "/root", "/home", f"{tmp_path}/other"):
        assert (await functions.run("shell_exec", command=f"cat {path}")).error is not None
    listed = await functions.run("shell_exec", command=f"ls {tmp_path}")
    assert text_of(listed) == "chats"


def test_examples_speak_of_parameters_in_both_languages(workspaces: Workspaces) -> None:
    functions = functions_of(workspaces)
    assert functions.unknown_slots() == []
    examples = functions.specs["shell_exec"].prompt.examples
    assert len([example for example in examples if example.isascii()]) >= 5
    assert len([example for example in examples if not example.isascii()]) >= 2
