"""`rollcall call`: a single function, with all checks."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path

import pytest

from bot.database.opening import DATABASE, open_store
from config.settings import Settings
from services.clock import SystemClock
from tests.bot.cli.running import PYTHON, a_settings_file, an_environment, command
from tests.bot.cli.running import without_a_model as without_a_model
from tests.conftest import REPOSITORY
from tests.harness.mcp_servers import Script, a_tool

PARCELS = REPOSITORY / "tests" / "golden" / "cli" / "parcels.py"


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    return a_settings_file(
        tmp_path,
        f"sources: {{python: [{PARCELS}]}}\n"
        "functions: {flip_coin: {enabled: false}, roll_dice: {scope: private}}\n"
        "chats: {settings: {'cli:main:zh': {language: zh}}}\n",
    )


def test_the_result_is_printed_as_json(capsys: pytest.CaptureFixture[str], settings: Path) -> None:
    printed = command(capsys, "call", "calculate", "--json", '{"expression": "6*7"}', "--config", settings)
    assert (printed.status, printed.err) == (0, "")
    assert printed.json["ok"] is True
    assert printed.json["result"]["value"] == "42"
    assert "42" in printed.json["reply"]


def test_the_chat_decides_the_language(capsys: pytest.CaptureFixture[str], settings: Path) -> None:
    told = [
        command(capsys, "call", "nope", "--chat", chat, "--config", settings).json["message"]
        for chat in ("cli:main:terminal", "cli:main:zh")
    ]
    assert told[0] != told[1]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["nope"], "not_found"),
        (["calculate"], "missing_arguments"),
        (["calculate", "--json", '{"expression": 5, "more": 1}'], "bad_arguments"),
        (["calculate", "--json", '{"expression": "2+"}'], "bad_arguments"),
        (["flip_coin"], "refused"),
        (["roll_dice"], "refused"),
        (["parcel_quote", "--json", '{"number": "7"}', "--role", "member"], "refused"),
    ],
    ids=["unknown", "missing", "wrong", "no value", "switched off", "out of scope", "role"],
)
def test_what_may_not_be_called_is_not(
    capsys: pytest.CaptureFixture[str], settings: Path, arguments: list[str], error: str
) -> None:
    printed = command(capsys, "call", *arguments, "--config", settings)
    assert printed.status == 1
    assert printed.json["error"] == error
    assert printed.json["message"]


def test_who_calls_has_the_role_that_is_given(capsys: pytest.CaptureFixture[str], settings: Path) -> None:
    call = ["call", "parcel_quote", "--json", '{"number": "7", "speed": "fast"}', "--config", settings]
    assert command(capsys, *call, "--role", "moderator").json["result"] == {"price": 9.0}
    assert command(capsys, *call).status == 0


def test_what_asks_for_a_yes_runs_with_one(capsys: pytest.CaptureFixture[str], settings: Path) -> None:
    call = ["call", "parcel_send", "--json", '{"number": "7"}', "--config", settings]
    asked = command(capsys, *call)
    assert (asked.status, asked.json) == (1, {"asked": "Send 7?", "reply": ""})
    done = command(capsys, *call, "--yes")
    assert (done.status, done.json["reply"]) == (0, "7 is on its way.")


def test_what_is_done_for_a_chat_stays_and_is_logged(capsys: pytest.CaptureFixture[str], settings: Path) -> None:
    add = ["call", "todo_add", "--json", '{"text": "buy milk"}', "--chat", "cli:main:a", "--as", "cli:main:ann"]
    assert command(capsys, *add, "--config", settings).status == 0
    here, elsewhere = (
        command(capsys, "call", "todo_list", "--chat", chat, "--config", settings).json["reply"]
        for chat in ("cli:main:a", "cli:main:b")
    )
    assert "buy milk" in here
    assert "buy milk" not in elsewhere
    log = settings.parent / "logs" / "function_calls.jsonl"
    first = json.loads(log.read_text().splitlines()[0])
    assert {**first, "function": "todo_add", "path": "cli", "member": "cli:main:ann", "outcome": "ok"} == first


def test_a_daemon_that_has_the_database_is_named(capsys: pytest.CaptureFixture[str], settings: Path) -> None:
    async def call_meanwhile() -> object:
        store = await open_store(Settings(home=settings.parent / "var"), SystemClock())
        try:
            return await asyncio.to_thread(command, capsys, "call", "calculate", "--config", settings)
        finally:
            await store.close()

    printed = asyncio.run(call_meanwhile())
    assert isinstance(printed, tuple)
    assert printed[:2] == (1, "")
    database = settings.parent / "var" / DATABASE
    assert f"error: {database} is in use by process {os.getpid()}; stop it first" in printed[2]
    assert "send the command in a chat of the daemon, or call the function over MCP" in printed[2]
    assert "ROLLCALL_HOME" in printed[2]


def test_a_home_that_cannot_be_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    settings = a_settings_file(tmp_path)
    (tmp_path / "var").write_text("a file")
    printed = command(capsys, "call", "calculate", "--config", settings)
    assert (printed.status, printed.out) == (1, "")
    assert str(tmp_path / "var") in printed.err


TELLS_OTHERS = """
from pydantic import BaseModel

from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.spec import FunctionResult, Message
from services.refs import ChatRef


class Nothing(BaseModel, frozen=True, extra="forbid"):
    pass


@tool_function(effect="once")
async def announce(context: MessageContext, args: Nothing) -> FunctionResult:
    \"\"\"Tell another chat.\"\"\"
    return FunctionResult(messages=(Message("told"), Message("news for all", to=ChatRef("web", "main", "family"))))
"""


def test_what_it_cannot_send_to_others_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "announce.py").write_text(TELLS_OTHERS)
    settings = a_settings_file(tmp_path, f"sources: {{python: [{tmp_path / 'announce.py'}]}}\n")
    printed = command(capsys, "call", "announce", "--config", settings)
    assert (printed.status, printed.json["reply"]) == (0, "told")
    assert "not sent to web:main:family: news for all" in printed.err


@pytest.mark.parametrize(("chat", "unheard"), [("cli:main:terminal", True), ("web:main:family", False)])
def test_a_reminder_that_nobody_would_hear_is_told(
    capsys: pytest.CaptureFixture[str], settings: Path, chat: str, unheard: bool
) -> None:
    remind = ["call", "reminder_create", "--json", '{"text": "tea", "when": "in 5 minutes"}', "--chat", chat]
    printed = command(capsys, *remind, "--config", settings)
    assert printed.status == 0
    assert ("messages due later cannot be sent to" in printed.err) is unheard


def test_a_mistyped_name_of_a_servers_tool_is_answered_as_soon_as_the_tools_are_known(tmp_path: Path) -> None:
    script = Script(tmp_path, a_tool("echo"))
    mcp = {"mcp": {"servers": [script.settings(sandbox="off", connect_seconds=300)]}}
    settings = a_settings_file(tmp_path, f"mcp: {json.dumps(mcp['mcp'])}\n")
    called = [PYTHON, "-m", "bot", "call", "mcp__one__ecoh", "--config", str(settings)]
    printed = subprocess.run(
        called, cwd=REPOSITORY, env=an_environment(), capture_output=True, text=True, check=False, timeout=100
    )
    assert (printed.returncode, json.loads(printed.stdout)["error"]) == (1, "not_found"), printed
    assert script.asked("listed") == [0]
