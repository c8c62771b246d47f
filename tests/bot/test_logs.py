"""Log files of the daemon."""

from __future__ import annotations

import io
import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from bot.telemetry.logs import set_up_logs
from bot.testing import a_group, call
from config.settings import LoggingSettings
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from services.llm.model import ModelError
from services.redaction import Redactor
from services.refs import ErrorCode

SECRET = "correct horse battery"


@pytest.fixture(autouse=True)
def structlog_as_it_was() -> Iterator[None]:
    before = structlog.get_config()
    yield
    structlog.configure(**before)


def logging_to(folder: Path, stderr: io.StringIO | None = None, *, chats: bool = False, **settings: Any) -> bool:
    return set_up_logs(
        LoggingSettings.model_validate({"folder": folder / "logs", **settings}),
        redact=Redactor([SECRET]),
        console_chat=chats,
        stderr=stderr or io.StringIO(),
    )


def lines(folder: Path, name: str = "rollcall.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "logs" / name).read_text(encoding="utf-8").splitlines()]


def test_an_event_is_a_line_of_json_with_its_time_and_level(tmp_path: Path) -> None:
    logging_to(tmp_path)
    with structlog.contextvars.bound_contextvars(turn="7"):
        structlog.get_logger("anything").warning("happened", chat="a:b:c", count=3, who="乔治")
    (line,) = lines(tmp_path)
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "happened", "level": "warning", "chat": "a:b:c", "count": 3, "who": "乔治", "turn": "7"}


@pytest.mark.parametrize(("level", "kept"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_what_is_below_the_level_is_not_written(tmp_path: Path, level: str, kept: int) -> None:
    logging_to(tmp_path, level=level)
    for say in ("debug", "info", "warning", "error"):
        getattr(structlog.get_logger(), say)(say)
    assert len(lines(tmp_path)) == kept


@pytest.mark.parametrize(
    ("style", "chats", "shown"),
    [("auto", False, True), ("auto", True, False), ("text", True, True), ("json", True, True), ("off", False, False)],
)
def test_logs_are_shown_where_nobody_chats(tmp_path: Path, style: str, chats: bool, shown: bool) -> None:
    console = io.StringIO()
    assert logging_to(tmp_path, console, chats=chats, console=style) is shown
    structlog.get_logger().info("happened", chat="a:b:c")
    assert ("happened" in console.getvalue()) is shown
    assert [line["event"] for line in lines(tmp_path)] == ["happened"]
    if style == "json":
        assert json.loads(console.getvalue())["chat"] == "a:b:c"


@pytest.mark.requirement("D50")
def test_secrets_are_in_no_part_of_an_event(tmp_path: Path) -> None:
    console = io.StringIO()
    logging_to(tmp_path, console, console="text")

    class Response:
        def __repr__(self) -> str:
            return f"<Response {SECRET}>"

    try:
        raise RuntimeError(f"refused {SECRET} for https://ann:hunter2@example.org/")
    except RuntimeError as error:
        structlog.get_logger().error(
            f"failed with {SECRET}", exc_info=error, nested={"a": [SECRET]}, password="hunter2", response=Response()
        )
    written = (tmp_path / "logs" / "rollcall.jsonl").read_text()
    for text in (written, console.getvalue()):
        assert SECRET not in text
        assert "hunter2" not in text
        assert "RuntimeError: refused *** for https://***@example.org/" in text


def test_full_files_are_put_aside(tmp_path: Path) -> None:
    logging_to(tmp_path, max_megabytes=1, keep_files=2)
    for number in range(40):
        structlog.get_logger().info("x" * 100_000, number=number)
    names = sorted(path.name for path in (tmp_path / "logs").iterdir())
    assert names == ["rollcall.jsonl", "rollcall.jsonl.1", "rollcall.jsonl.2"]
    assert lines(tmp_path)[-1]["number"] == 39


def test_a_disk_that_refuses_ends_nothing_and_the_loss_is_told_afterwards(tmp_path: Path) -> None:
    console = io.StringIO()
    logging_to(tmp_path, console, chats=True)
    (tmp_path / "logs").rmdir()
    (tmp_path / "logs").write_text("in the way")
    for number in range(3):
        structlog.get_logger().info("lost", number=number)
    (tmp_path / "logs").unlink()
    structlog.get_logger().info("kept")
    assert [(line["event"], line.get("lines")) for line in lines(tmp_path)] == [("log_lines_lost", 3), ("kept", None)]
    # Nothing is printed into the conversation on the terminal.
    assert console.getvalue() == ""


def test_a_disk_that_refuses_is_told_once_where_logs_are_shown(tmp_path: Path) -> None:
    console = io.StringIO()
    logging_to(tmp_path, console, console="json")
    (tmp_path / "logs").rmdir()
    (tmp_path / "logs").write_text("in the way")
    structlog.get_logger().info("first")
    structlog.get_logger().info("second")
    assert console.getvalue().count("cannot be written") == 1


def test_nobody_reading_standard_error_ends_nothing(tmp_path: Path) -> None:
    console = io.StringIO()
    logging_to(tmp_path, console, console="text")
    console.close()
    structlog.get_logger().info("kept")
    assert [line["event"] for line in lines(tmp_path)] == ["kept"]


@pytest.mark.requirement("D49", "D50")
async def test_a_handler_that_raises_leaves_its_traceback_on_disk_and_an_id_in_the_chat(tmp_path: Path) -> None:
    logging_to(tmp_path, chats=True)

    @tool_function(commands=("open",))
    async def open_door(context: MessageContext) -> str:
        """Open the door."""
        raise LookupError(f"no key, tried {SECRET} and password=hunter2")

    async with a_group([open_door], home=tmp_path) as group:
        (said,) = await group.say("Ann", "/open")
    (event,) = [line for line in lines(tmp_path) if line["event"] == "function_failed"]
    (record,) = lines(tmp_path, "function_calls.jsonl")
    assert event["id"] == record["failure_id"]
    assert event["id"] in said
    assert "key" not in said
    assert "LookupError" not in said
    for text in (event["exception"], record["traceback"]):
        assert "Traceback (most recent call last)" in text
        assert "open_door" in text
        assert "hunter2" not in text
    assert record["exception"] == f"LookupError: no key, tried {SECRET} and password=***"
    assert (record["turn"], record["function"], record["outcome"]) == (event["turn"], "open_door", "failed")


async def test_what_people_write_is_not_logged(tmp_path: Path) -> None:
    logging_to(tmp_path, chats=True, level="info")

    @tool_function(commands=("open",))
    async def open_door(context: MessageContext) -> str:
        """Open the door."""
        raise LookupError("no key")

    async with a_group([open_door], home=tmp_path) as group:
        group.model.says(ModelError(ErrorCode.PROVIDER_ERROR, "down"), call("open_door"), "sorry, buttercup")
        for text in ("buttercup", "@Rollcall buttercup", "@Rollcall buttercup!", "/buttercup", "/open buttercup"):
            await group.say("Ann", text)
        await group.say("Ann", "/open")
    assert len(lines(tmp_path)) >= 2
    assert "buttercup" not in (tmp_path / "logs" / "rollcall.jsonl").read_text()


def test_a_folder_that_is_not_for_logs_alone_keeps_its_rights(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir(mode=0o755)
    (folder / "notes.txt").touch(mode=0o644)
    (folder / "model_requests.jsonl.3").touch(mode=0o644)
    logging_to(tmp_path)
    assert [stat.S_IMODE(one.stat().st_mode) & 0o077 > 0 for one in (folder, *sorted(folder.iterdir()))] == [
        True,
        False,
        True,
    ]


def test_a_log_that_somebody_makes_meanwhile_is_taken_from_others_too(tmp_path: Path) -> None:
    logging_to(tmp_path)
    file = tmp_path / "logs" / "rollcall.jsonl"
    file.touch()
    file.chmod(0o666)
    structlog.get_logger().warning("happened")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
