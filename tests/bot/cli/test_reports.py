"""`rollcall why` and `rollcall stats`, from the database of a daemon that ran; and `rollcall doctor`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import BaseModel

from bot.testing import a_group, call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from services.clock import VirtualClock
from services.llm.model import ModelError
from services.refs import ErrorCode
from tests.bot.cli.running import a_settings_file, command
from tests.bot.cli.running import without_a_model as without_a_model
from tests.fakes.asking import Asking
from tests.fakes.openai_server import OpenAIServer
from tests.harness.sandboxes import needs_bubblewrap

SINCE_EVER = ["--hours", "500000"]


class Nap(BaseModel, frozen=True):
    """How long."""

    seconds: float = 0.0


def a_bot_that_ran(home: Path) -> None:
    """Run functions for Ann, with and without success, and send messages to a broken model."""

    async def scenario() -> None:
        clock = VirtualClock()

        @tool_function(commands=("nap",))
        async def nap(context: MessageContext, args: Nap) -> str:
            """Take some time."""
            asyncio.get_running_loop().call_soon(asyncio.ensure_future, clock.advance(args.seconds))
            await clock.sleep(args.seconds)
            return "rested"

        @tool_function(commands=("break",))
        async def fall_apart(context: MessageContext) -> str:
            """Fail."""
            raise RuntimeError("broken")

        async with a_group([nap, fall_apart], home=home, clock=clock) as group:
            for seconds in (0.1, 0.2, 0.3, 4, 5):
                await group.say("Ann", f"/nap {seconds}")
            await group.say("Ann", "/break")
            await group.say("Bob", "nothing for the bot")
            group.model.says(call("nap", seconds=0.1), "Good morning.", ModelError(ErrorCode.PROVIDER_ERROR, "down"))
            await group.say("Bob", "@Rollcall take a nap", id="nap-1")
            await group.say("Bob", "@Rollcall hello?")

    asyncio.run(scenario())


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Settings of a bot with a history."""
    folder = tmp_path_factory.mktemp("ran")
    a_bot_that_ran(folder / "var")
    return a_settings_file(folder)


@pytest.mark.requirement("D63")
def test_statistics_show_success_errors_and_latency_of_each_function(
    capsys: pytest.CaptureFixture[str], ran: Path
) -> None:
    assert command(capsys, "stats", "--json", *SINCE_EVER, "--config", ran).json == {
        "nap": {"runs": 6, "ok": 6, "asked": 0, "ok_share": 1.0, "errors": {}, "p50_ms": 200, "p95_ms": 5000},
        "fall_apart": {
            "runs": 1,
            "ok": 0,
            "asked": 0,
            "ok_share": 0.0,
            "errors": {"failed": 1},
            "p50_ms": 0,
            "p95_ms": 0,
        },
    }
    table = command(capsys, "stats", *SINCE_EVER, "--config", ran).out.splitlines()
    assert table[0].split()[:4] == ["FUNCTION", "RUNS", "OK", "ERRORS"]
    assert table[1].split() == ["nap", "6", "6", "0", "0", "100.0%", "200", "5000"]
    assert table[2].split() == ["fall_apart", "1", "0", "1", "0", "0.0%", "0", "0", "failed", "1"]


def test_statistics_count_a_question_neither_as_good_nor_as_an_error(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with a_group([Asking(effect="idempotent", commands=["fill"]).spec], home=tmp_path / "var") as group:
            await group.say("Ann", "/fill")
            await group.say("Ann", "Oslo")

    asyncio.run(scenario())
    settings = a_settings_file(tmp_path)
    counted = command(capsys, "stats", "--json", *SINCE_EVER, "--config", settings).json["fill"]
    assert {name: counted[name] for name in ("runs", "ok", "asked", "ok_share", "errors")} == {
        "runs": 2, "ok": 1, "asked": 1, "ok_share": 1.0, "errors": {},
    }  # fmt: skip
    [_, row] = command(capsys, "stats", *SINCE_EVER, "--config", settings).out.splitlines()
    assert row.split()[:6] == ["fill", "2", "1", "0", "1", "100.0%"]


def test_statistics_look_back_only_so_far(capsys: pytest.CaptureFixture[str], ran: Path) -> None:
    printed = command(capsys, "stats", "--hours", "0.5", "--config", ran)
    assert printed == (0, "no function ran in the last 0.5 hours\n", "")
    assert command(capsys, "stats", "--hours", "0.5", "--json", "--config", ran).json == {}


def test_why_explains_every_message_newest_last(capsys: pytest.CaptureFixture[str], ran: Path) -> None:
    printed = command(capsys, "why", "--config", ran)
    lines = printed.out.splitlines()
    assert printed.status == 0
    codes = [line.split(":")[0].strip() for line in lines[1::2]]
    assert codes == [*["command"] * 5, "function_failed", "not_addressed", "function", "model_failed"]
    assert "test:bot:family  Bob: 'nothing for the bot'" in lines[12]


def test_why_may_be_asked_of_one_chat_and_of_the_last_messages(capsys: pytest.CaptureFixture[str], ran: Path) -> None:
    last = command(capsys, "why", "test:bot:family", "--count", "1", "--config", ran).out
    assert "hello?" in last
    assert len(last.splitlines()) == 2
    assert command(capsys, "why", "test:bot:work", "--config", ran).out == "no message has come in test:bot:work\n"


def test_why_may_be_asked_of_one_message_by_its_place_or_its_id(capsys: pytest.CaptureFixture[str], ran: Path) -> None:
    third = command(capsys, "why", "--back", "3", "--config", ran).out
    assert ("nothing for the bot" in third, len(third.splitlines())) == (True, 2)
    assert command(capsys, "why", "--back", "200", "--config", ran).out == "there is no message that is 200 back\n"
    assert "take a nap" in command(capsys, "why", "--id", "nap-1", "--config", ran).out
    nothing = command(capsys, "why", "test:bot:family", "--id", "x", "--config", ran)
    assert nothing == (0, "there is no message 'x' in test:bot:family\n", "")


@pytest.mark.parametrize("report", ["why", "stats"])
def test_a_report_without_a_database_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path, report: str) -> None:
    printed = command(capsys, report, "--config", a_settings_file(tmp_path))
    assert (printed.status, printed.out) == (1, "")
    assert f"there is no database {tmp_path / 'var' / 'rollcall.sqlite'}" in printed.err


@pytest.mark.parametrize("report", ["why", "stats"])
def test_a_report_from_what_is_no_database_says_so(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, report: str
) -> None:
    (tmp_path / "var").mkdir()
    (tmp_path / "var" / "rollcall.sqlite").write_text("something else " * 100)
    printed = command(capsys, report, "--config", a_settings_file(tmp_path))
    assert (printed.status, printed.out) == (1, "")
    assert "not a database" in printed.err


def test_a_report_is_read_from_a_folder_of_any_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tmp_path / "what? 100%#1"
    folder.mkdir()
    a_bot_that_ran(folder / "var")
    settings = tmp_path / "bot.yaml"
    settings.write_text(f"config_version: 1\nhome: '{folder / 'var'}'\n")
    assert "nap" in command(capsys, "stats", *SINCE_EVER, "--config", settings).out


def parts(out: str) -> dict[str, str]:
    """Result of each check."""
    return {line.split()[1]: line.split()[0] for line in out.splitlines()}


def test_the_doctor_finds_nothing_wrong_with_a_bot_that_ran(capsys: pytest.CaptureFixture[str], ran: Path) -> None:
    printed = command(capsys, "doctor", "--config", ran)
    assert printed.status == 0
    assert parts(printed.out) == dict.fromkeys(["settings", "functions", "database", "disk", "model"], "ok")
    assert "no damage found" in printed.out


def spoil_database(folder: Path) -> None:
    (folder / "var").mkdir()
    (folder / "var" / "rollcall.sqlite").write_bytes(b"SQLite format 3\0" + b"\xff" * 8000)


def spoil_functions(folder: Path) -> None:
    (folder / "bot.yaml").write_text(f"config_version: 1\nhome: {folder / 'var'}\nsources: {{python: [{folder}/x]}}\n")


def spoil_disk(folder: Path) -> None:
    (folder / "var").write_text("a file")


@pytest.mark.parametrize(
    ("part", "spoil"), [("database", spoil_database), ("functions", spoil_functions), ("disk", spoil_disk)]
)
def test_the_doctor_finds_what_is_broken(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, part: str, spoil: Callable[[Path], None]
) -> None:
    settings = a_settings_file(tmp_path)
    spoil(tmp_path)
    printed = command(capsys, "doctor", "--no-model", "--config", settings)
    assert printed.status == 1
    assert [name for name, verdict in parts(printed.out).items() if verdict == "ERROR"] == [part]


SERVER = "mcp: {{servers: [{{name: one, command: [/bin/true], sandbox: {}}}]}}".format
UNUSED = "sandbox: {isolation: 'off'}"


@needs_bubblewrap
@pytest.mark.parametrize("uses", ["plugins: [shell]", "sources: {commands: [tools]}", SERVER("required")])
def test_the_doctor_says_that_processes_are_kept_apart(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, uses: str
) -> None:
    (tmp_path / "tools").mkdir()
    printed = command(capsys, "doctor", "--no-model", "--config", a_settings_file(tmp_path, f"{uses}\n"))
    assert parts(printed.out)["sandbox"] == "ok"
    assert "processes run isolated: " in printed.out
    if "cgroup" in printed.out:
        assert "not limited here: memory of a run as a whole" in printed.out


@pytest.mark.parametrize(
    ("more", "verdict", "said"),
    [
        ("", None, ""),
        (SERVER("'off'"), None, ""),
        (f"plugins: [shell]\n{UNUSED}", "ERROR", "Unavailable without it: the plugin shell"),
        (f"{SERVER('required')}\n{UNUSED}", "ERROR", "Unavailable without it: mcp.servers one"),
        (
            f"{SERVER('preferred')}\n{UNUSED}",
            "warn",
            "Not isolated: mcp.servers",
        ),
    ],
    ids=["nothing", "a server as it is", "shell", "a server that needs it", "a server that wants it"],
)
def test_the_doctor_says_what_does_not_work_without_a_sandbox(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, more: str, verdict: str | None, said: str
) -> None:
    printed = command(capsys, "doctor", "--no-model", "--config", a_settings_file(tmp_path, f"{more}\n"))
    assert parts(printed.out).get("sandbox") == verdict
    assert said in printed.out
    assert printed.status == (verdict == "ERROR")


async def test_the_doctor_asks_the_model(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    message = {"role": "assistant", "content": "OK"}
    answer = {"body": {"model": "m-1", "choices": [{"message": message, "finish_reason": "stop"}]}}
    refusal = {"status": 401, "body": {"error": {"message": "bad key sk-abcdefghijklmnop", "type": "auth"}}}
    async with OpenAIServer([answer, refusal]) as server:
        model = f"{{name: main, model: m-1, api_key: sk-abcdefghijklmnop, base_url: '{server.base_url}'}}"
        settings = a_settings_file(tmp_path, f"models: [{model}]\n")
        good = await asyncio.to_thread(command, capsys, "doctor", "--config", settings)
        bad = await asyncio.to_thread(command, capsys, "doctor", "--config", settings)
    assert good.status == 0
    assert "m-1 answered in" in good.out
    assert (bad.status, parts(bad.out)["model"]) == (1, "ERROR")
    assert "model.key_refused" in bad.out
    assert "sk-abcdefghijklmnop" not in bad.out
    gone = await asyncio.to_thread(command, capsys, "doctor", "--config", settings)
    assert (gone.status, parts(gone.out)["model"]) == (1, "ERROR")
    assert "model.unreachable" in gone.out
    skipped = await asyncio.to_thread(command, capsys, "doctor", "--no-model", "--config", settings)
    assert (skipped.status, "model" in parts(skipped.out)) == (0, False)


async def test_the_doctor_asks_a_running_daemon_which_models_it_leaves_alone(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    key = "refuses the key in the settings; tried again in 9 s"
    answers = [{"ok": True, "details": {"store": "ok", "model.main": said}} for said in (key, "ok")]
    async with OpenAIServer([{"body": answer} for answer in answers] + [{"body": "no daemon"}]) as server:
        settings = a_settings_file(tmp_path, f"platforms: {{web: {{port: {server.port}}}}}\n")
        left_alone, well, other = [
            await asyncio.to_thread(command, capsys, "doctor", "--config", settings) for _ in range(3)
        ]
        assert {request.path for request in server.requests} == {"/readyz"}
    assert (left_alone.status, f"main {key}" in left_alone.out) == (0, True)
    assert (parts(well.out)["daemon"], "daemon" in parts(other.out)) == ("ok", False)
