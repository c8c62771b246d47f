"""`rollcall mcp` in a separate process, as a program starts it."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult

from bot.database.opening import open_store
from config.settings import Settings
from services.clock import SystemClock
from tests.bot.cli.running import Printed, a_settings_file, an_environment, command
from tests.bot.cli.running import without_a_model as without_a_model
from tests.conftest import REPOSITORY
from tests.harness.forked_processes import ForkedProcess, a_forked_process, forked_command
from tests.harness.mcp_programs import ERAS, code, texts

FUNCTIONS = REPOSITORY / "tests" / "harness" / "mcp_functions.py"
PATIENCE_SECONDS = 60


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return a_settings_file(tmp_path, f"sources: {{python: [{FUNCTIONS}]}}\n")


def arguments(file: Path, *more: str) -> list[str]:
    """Arguments of `python -m bot`."""
    return ["mcp", "--config", str(file), *more]


@asynccontextmanager
async def connected(file: Path, mode: str, *more: str, **options: Any) -> AsyncIterator[Client]:
    """The official client with a separate server process."""
    program, *before = forked_command("bot")
    parameters = StdioServerParameters(
        command=program, args=[*before, *arguments(file, *more)], env=dict(an_environment()), cwd=str(REPOSITORY)
    )
    async with asyncio.timeout(PATIENCE_SECONDS), Client(parameters, mode=mode, **options) as client:
        yield client


class Process:
    """A process whose pipes are used directly."""

    def __init__(self, process: ForkedProcess) -> None:
        self.process = process

    async def say(self, *lines: object) -> None:
        """Write lines; values other than bytes are encoded as JSON."""
        assert self.process.stdin is not None
        for line in lines:
            self.process.stdin.write((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n")
        await self.process.stdin.drain()

    async def answer(self) -> Any:
        """The next line."""
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE_SECONDS):
            return json.loads(await self.process.stdout.readline())

    async def end(self) -> tuple[int, bytes]:
        """Close its input; returns its exit status and the rest of its output."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return await self.ended()

    async def ended(self) -> tuple[int, bytes]:
        """Its exit status, and all of its output."""
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE_SECONDS):
            rest = await self.process.stdout.read()
            return await self.process.wait(), rest


@asynccontextmanager
async def a_process(file: Path, *more: str) -> AsyncIterator[Process]:
    mcp, environment = arguments(file, *more), an_environment()
    async with a_forked_process("bot", *mcp, env=environment, stdin=subprocess.PIPE, limit=2**24) as process:
        yield Process(process)


def hello(version: str = "2025-11-25") -> dict[str, Any]:
    about = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}


def call(request_id: object, name: str, **given: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": {"name": name, "arguments": given}}


@pytest.mark.requirement("B9", "B10")
@pytest.mark.parametrize("mode", ERAS)
async def test_a_program_talks_to_the_process_it_started_whatever_functions_print(file: Path, mode: str) -> None:
    async with connected(file, mode) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        printed, counted = await client.call_tool("chatty"), await client.call_tool("calculate", {"expression": "6*7"})
        refused = await client.call_tool("never_ends")
    assert {"calculate", "chatty"} <= names
    assert "never_ends" not in names
    assert texts(printed) == ["quiet"]
    assert "42" in texts(counted)[0]
    assert code(refused) == "refused"


@pytest.mark.requirement("B9", "B10")
@pytest.mark.parametrize("mode", ERAS)
async def test_what_a_function_asks_is_put_to_the_user_and_what_goes_on_is_told(file: Path, mode: str) -> None:
    asked: list[str] = []
    heard: list[Any] = []

    async def user(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"answer": "Ann"})

    async def line(params: Any) -> None:
        heard.append(params.data)

    options = {"elicitation_callback": user, "logging_callback": line, "log_level": "info"}
    async with connected(file, mode, **options) as client:
        answered = await client.call_tool("test_elicitation", {"message": "Who are you?"})
        await client.call_tool("test_tool_with_logging")
    assert (asked, texts(answered)) == (["Who are you?"], ["User response: Ann"])
    assert heard == ["Tool execution started", "Tool processing data", "Tool execution completed"]


@pytest.mark.requirement("B9", "B10")
async def test_the_model_of_the_program_is_asked_where_the_command_line_says_so(file: Path) -> None:
    begun = hello()
    begun["params"]["capabilities"] = {"sampling": {}}
    words = {"role": "assistant", "content": {"type": "text", "text": "Woof."}, "model": "theirs"}
    async with a_process(file, "serve", "--sampling") as process:
        await process.say(begun, call(2, "test_sampling", prompt="What do dogs say?"))
        await process.answer()
        asked = await process.answer()
        await process.say({"jsonrpc": "2.0", "id": asked["id"], "result": words})
        answered = await process.answer()
        status, rest = await process.end()
    assert asked["method"] == "sampling/createMessage"
    [message] = asked["params"]["messages"]
    assert (message["role"], message["content"]) == ("user", {"type": "text", "text": "What do dogs say?"})
    assert answered["result"]["content"][0] == {"type": "text", "text": "LLM response: Woof."}
    assert (status, rest) == (0, b"")


@pytest.mark.parametrize("how", ["end", "signal"])
async def test_a_question_that_nobody_can_answer_any_more_ends_its_run(file: Path, how: str) -> None:
    begun = hello()
    begun["params"]["capabilities"] = {"elicitation": {}}
    async with a_process(file) as process:
        await process.say(begun, call(2, "keeps"))
        await process.answer()
        asked = await process.answer()
        if how == "signal":
            process.process.terminate()
        status, said = await (process.ended() if how == "signal" else process.end())
    with sqlite3.connect(file.parent / "var" / "rollcall.sqlite") as database:
        rows = database.execute("SELECT function, code FROM ledger ORDER BY key").fetchall()
    assert (asked["method"], status, rows) == ("elicitation/create", 0, [("keeps", "asked"), ("keeps", "ok")])
    if how == "end":
        assert b"[timeout]" in said


async def test_the_command_line_says_as_whom_and_where(file: Path) -> None:
    who = ("--role", "admin", "--as", "web:main:ann", "--chat", "web:main:family")
    async with connected(file, "auto", "serve", *who) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        await client.call_tool("todo_add", {"text": "milk"})
    assert "never_ends" in names
    [line] = (file.parent / "logs" / "function_calls.jsonl").read_text().splitlines()
    logged = json.loads(line)
    assert {**logged, "member": "web:main:ann", "chat": "web:main:family", "path": "mcp", "outcome": "ok"} == logged


async def test_what_was_asked_is_answered_before_the_end_of_the_input_ends_it(file: Path) -> None:
    async with a_process(file) as process:
        await process.say(hello(), call(2, "calculate", expression="1+1"), call("three", "test_simple_text"))
        status, said = await process.end()
    answers = {answer["id"]: answer for answer in map(json.loads, said.splitlines())}
    assert (status, set(answers)) == (0, {1, 2, "three"})
    assert answers["three"]["result"]["content"][0]["text"].startswith("This is a simple text")


async def test_what_is_no_message_is_refused_and_the_conversation_goes_on(file: Path) -> None:
    async with a_process(file) as process:
        await process.say(hello())
        await process.answer()
        no_json, no_message = [b"{", b"\xff\xfe", b"[" * 100_000], [b"[]", b"5", b'{"id": 7}', b'{"id": true}']
        await process.say(*no_json, *no_message, b"", b"x" * 5_000_000)
        answers = [await process.answer() for _ in range(8)]
        await process.say({"jsonrpc": "2.0", "id": 9, "method": "ping"})
        last = await process.answer()
        status, rest = await process.end()
    assert [answer["error"]["code"] for answer in answers] == [-32700] * 3 + [-32600] * 4 + [-32700]
    assert [answer["id"] for answer in answers] == [None] * 5 + [7] + [None] * 2
    assert (last["result"], status, rest) == ({}, 0, b"")


async def test_a_signal_ends_it_at_once_and_what_ran_stays_unknown(file: Path) -> None:
    async with a_process(file, "--role", "admin") as process:
        await process.say(hello(), call(2, "never_ends"), {"jsonrpc": "2.0", "id": 3, "method": "ping"})
        await process.answer()
        await process.answer()
        await _has_begun(file)
        process.process.terminate()
        status, _ = await process.ended()
    assert status == 0
    with sqlite3.connect(file.parent / "var" / "rollcall.sqlite") as database:
        [row] = database.execute("SELECT function, result, code FROM ledger").fetchall()
    assert row == ("never_ends", None, "")


async def _has_begun(file: Path) -> None:
    """Wait until the effect is in the ledger."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            with sqlite3.connect(f"file:{file.parent / 'var' / 'rollcall.sqlite'}?mode=ro", uri=True) as database:
                if database.execute("SELECT count(*) FROM ledger").fetchone()[0]:
                    return
            await asyncio.sleep(0.01)


async def test_a_reader_who_is_gone_ends_it(file: Path) -> None:
    async with a_process(file) as process:
        await process.say(hello())
        await process.answer()
        process.process.stop_reading()
        await asyncio.sleep(0)  # the pipe is closed in the loop's next iteration; the answer would be read before that
        await process.say({"jsonrpc": "2.0", "id": 2, "method": "ping"})
        async with asyncio.timeout(PATIENCE_SECONDS):
            status = await process.process.wait()
    assert status == 0


async def test_beside_a_daemon_it_says_what_to_do(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    store = await open_store(Settings(home=file.parent / "var"), SystemClock())
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            process = await asyncio.create_subprocess_exec(
                *forked_command("bot"),
                *arguments(file),
                cwd=REPOSITORY,
                env=dict(an_environment()),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            out, err = await process.communicate()
    finally:
        await store.close()
    assert (process.returncode, out) == (1, b"")
    assert f"is in use by process {os.getpid()}" in err.decode()
    assert "mcp.serve" in err.decode()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--bot", "nobody"], "there is no bot 'nobody'"),
        (["--chat", "nowhere"], "platform:account:chat"),
        (["--as", "nobody"], "platform:account:member"),
        (["--role", "king"], "invalid choice"),
        (["--config", "/nowhere.yaml"], "/nowhere.yaml"),
    ],
)
def test_what_cannot_be_served_is_told(
    capsys: pytest.CaptureFixture[str], file: Path, options: list[str], told: str
) -> None:
    printed: Printed = command(capsys, "mcp", "--config", file, *options)
    assert printed.status in (1, 2)
    assert printed.out == ""
    assert told in printed.err
