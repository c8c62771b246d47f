"""`rollcall` commands with a PostgreSQL database print the same as with a file."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from bot.cli.doctor import check_database
from bot.testing import a_group, call
from config.settings import Settings
from services.clock import SystemClock
from services.store.chats.mcp_pins import seen
from services.store.postgres.store import PostgresStore
from services.store.turns import budgets
from tests.bot.cli.running import Printed, a_settings_file, an_environment, command
from tests.bot.cli.running import without_a_model as without_a_model
from tests.conftest import REPOSITORY
from tests.fakes.functions import Recorder
from tests.harness.forked_processes import forked_command
from tests.harness.postgres_server import PostgresServer, as_a_daemon_makes_it

SINCE_EVER = ["--hours", "500000"]
PARCELS = REPOSITORY / "tests" / "golden" / "cli" / "parcels.py"
MORE = f"sources: {{python: [{PARCELS}]}}\nmcp: {{servers: [{{name: one, command: [python]}}]}}\n"
CASE = {
    "id": "one",
    "message": {"text": "hello", "sender": "Ann", "chat": "x", "is_group": True, "addressed": True},
    "model": [],
    "expect": {},
}
Ran = tuple[Path, Path]
"""Settings of two bots with the same history: one with a file, one with a database on a server."""


def on_server(folder: Path, url: str, more: str = MORE) -> Path:
    folder.mkdir(exist_ok=True)
    return a_settings_file(folder, f"store: {{url: '{url}'}}\n{more}")


async def _run(home: Path, store: dict[str, str]) -> None:
    """Send messages, use some of a budget, and leave MCP tools waiting for approval."""
    nap = Recorder("nap", commands=["nap"]).spec
    async with a_group([nap], home=home, settings={"store": store}) as group:
        await group.say("Ann", "/nap")
        await group.say("Bob", "nothing for the bot")
        group.model.says(call("nap"), "Good morning. 100% 'awake'")
        await group.say("Bob", "@Rollcall take a nap", id="nap-1")
        definition = json.dumps({"name": "add", "description": "Adds."})
        tool = seen(server="one", tool="add", digest="d" * 64, definition=definition, now_ms=1, accepted=False)
        taken = budgets.take("test:bot:ann", "requests", datetime.now(UTC).date().isoformat(), 3, 10)
        told = budgets.mark_notified(
            f"{budgets.NOTICE_PREFIX}test:bot:ann", "requests", datetime.now(UTC).date().isoformat()
        )
        limited = budgets.run("member test:bot:ann", "limits", datetime.now(UTC).date().isoformat(), 3, 0)
        await group.daemon.store.commit([tool, taken, told, limited])


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer) -> Ran:
    folder = tmp_path_factory.mktemp("ran")
    url = postgres_server.new_database(as_a_daemon_makes_it)
    (folder / "file").mkdir()
    asyncio.run(_run(folder / "file" / "var", {}))
    asyncio.run(_run(folder / "server" / "var", {"url": url}))
    return a_settings_file(folder / "file", f"store: {{url: ''}}\n{MORE}"), on_server(folder / "server", url)


@pytest.fixture
def url(postgres_server: PostgresServer) -> str:
    """A database with all tables."""
    return postgres_server.new_database(as_a_daemon_makes_it)


@pytest.mark.parametrize(
    "arguments",
    [
        ["why"],
        ["why", "test:bot:family", "--count", "1"],
        ["why", "--back", "2"],
        ["why", "--id", "nap-1"],
        ["why", "test:bot:nowhere"],
        ["plan", str(REPOSITORY / "config" / "bot.yaml")],
        ["stats", *SINCE_EVER],
        ["stats", "--json", *SINCE_EVER],
        ["mcp", "list"],
        ["mcp", "list", "one", "--full"],
        ["basic", "recompile"],
        ["check"],
        ["call", "parcel_quote", "--json", '{"number": "7", "speed": "fast"}'],
        ["call", "nope"],
    ],
    ids=" ".join,
)
def test_a_command_says_the_same_wherever_the_database_is(
    capsys: pytest.CaptureFixture[str], ran: Ran, arguments: list[str]
) -> None:
    in_file, on_a_server = (command(capsys, *arguments, "--config", settings) for settings in ran)
    assert on_a_server.out.replace(str(ran[1]), str(ran[0])) == in_file.out
    assert (on_a_server.status, on_a_server.err, bool(in_file.out)) == (in_file.status, in_file.err, True)


def test_a_report_shows_what_was_used_today(capsys: pytest.CaptureFixture[str], ran: Ran) -> None:
    lines = command(capsys, "stats", *SINCE_EVER, "--config", ran[1]).out.splitlines()
    assert [line.split()[1:] for line in lines if "test:bot:ann" in line] == [["test:bot:ann", "requests", "3"]]


def test_cases_are_replayed_without_the_database(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    cases.write_text(json.dumps(CASE) + "\n")
    settings = on_server(tmp_path, "postgresql://nobody@127.0.0.1:1/none")
    assert command(capsys, "replay", str(cases), "--config", settings).status == 0


def test_what_an_operator_accepts_is_written_and_a_daemon_is_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, url: str
) -> None:
    asyncio.run(_run(tmp_path / "var", {"url": url}))
    settings = on_server(tmp_path, url)
    accepted = command(capsys, "mcp", "accept", "one", "--yes", "--config", settings)
    assert (accepted.status, accepted.err) == (0, "")
    assert "Accepted: 1." in accepted.out
    with psycopg.connect(url) as looking:
        assert looking.execute("SELECT accepted FROM mcp_pins").fetchall() == [("d" * 64,)]
        assert ("mcp_pins", 1) in looking.execute("SELECT name, count FROM changes").fetchall()
    assert command(capsys, "mcp", "forget", "one", "--config", settings).status == 0
    with psycopg.connect(url) as looking:
        assert looking.execute("SELECT accepted FROM mcp_pins").fetchall() == []


@pytest.mark.parametrize("report", [["why"], ["stats"], ["mcp", "list"], ["basic", "recompile"]], ids=" ".join)
def test_a_database_without_our_tables_or_without_a_server_is_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, postgres_server: PostgresServer, report: list[str]
) -> None:
    empty = command(capsys, *report, "--config", on_server(tmp_path / "a", postgres_server.new_database()))
    assert (empty.status, empty.out) == (1, "")
    assert "start the daemon once" in empty.err
    away = on_server(tmp_path / "b", "postgresql://bot:hunter2@127.0.0.1:1/none")
    printed = command(capsys, *report, "--config", away)
    assert (printed.status, printed.out) == (1, "")
    assert "the database none on 127.0.0.1 cannot be opened" in printed.err
    assert "hunter2" not in printed.err


def while_in_use(url: str, work: Callable[[], Printed]) -> Printed:
    """The result of `work` while a daemon uses the database."""

    async def scenario() -> Printed:
        store = await PostgresStore.open(f"{url}&application_name=daemon", clock=SystemClock())
        try:
            return await asyncio.to_thread(work)
        finally:
            await store.close()

    return asyncio.run(scenario())


def test_a_function_is_not_called_beside_a_daemon(capsys: pytest.CaptureFixture[str], tmp_path: Path, url: str) -> None:
    settings = on_server(tmp_path, url)
    asked = ("call", "calculate", "--json", '{"expression": "6*7"}', "--config", settings)
    printed = while_in_use(url, lambda: command(capsys, *asked))
    assert (printed.status, printed.out) == (1, "")
    assert f"is in use by daemon {os.getpid()} on " in printed.err
    # Neither the daemon's lock nor the command leaves a trace.
    assert [command(capsys, *asked).json["result"]["value"] for _ in range(2)] == ["42", "42"]


def test_the_doctor_reports_versions_and_the_process_that_has_the_database(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, url: str
) -> None:
    settings = on_server(tmp_path, url, "")
    asked = ("doctor", "--no-model", "--no-web", "--no-networks", "--config", settings)
    printed = while_in_use(url, lambda: command(capsys, *asked))
    (line,) = [line for line in printed.out.splitlines() if line.split()[1] == "database"]
    assert line.startswith("ok     database   the database test_")
    assert ": PostgreSQL 1" in line
    assert f", up to date; in use by daemon {os.getpid()} on " in line


def checked(url: str) -> str:
    """The doctor's report on the database at `url`, prefixed with ERROR if it is one."""
    outcome = check_database(Settings.model_validate({"store": {"url": url}}))
    return outcome if isinstance(outcome, str) else f"ERROR {outcome.code} {outcome.message}"


def test_the_doctor_tells_what_will_be_done_to_the_tables_and_what_cannot_be_used(
    url: str, postgres_server: PostgresServer
) -> None:
    assert checked(url).endswith(", up to date; not in use")
    with psycopg.connect(url, autocommit=True) as server:
        server.execute("UPDATE alembic_version SET version_num = '9c4e1f7a2d35'")
        assert "schema 9c4e1f7a2d35, migrated to " in checked(url)
        server.execute("UPDATE alembic_version SET version_num = 'ffffffffffff'")
        newer = checked(url)
    assert newer.startswith("ERROR store.too_new")
    assert "needs a newer version of the program" in newer
    assert "no tables yet; the first start creates them" in checked(postgres_server.new_database())
    away = checked("postgresql://bot:hunter2@127.0.0.1:1/none")
    assert away.startswith("ERROR store.unreachable the database none on 127.0.0.1 cannot be opened")
    assert "hunter2" not in away


@pytest.mark.parametrize("started", ["chat", "run"])
def test_a_second_daemon_names_the_process_that_has_the_database(tmp_path: Path, url: str, started: str) -> None:
    settings = on_server(tmp_path, url, "")

    def second() -> Printed:
        done = subprocess.run(
            [*forked_command("bot"), started, "--config", str(settings)],
            cwd=tmp_path, env=an_environment(), input="", capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        return Printed(done.returncode, done.stdout, done.stderr)

    printed = while_in_use(url, second)
    assert (printed.status, printed.out) == (1, "")
    assert "rollcall cannot start" in printed.err
    assert f"is in use by daemon {os.getpid()} on " in printed.err
