"""The daemon is killed between the steps of setting and deleting reminders: each is done and confirmed once."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bot.database.opening import DATABASE
from tests.harness.audit import answers
from tests.harness.nursery import Nursery
from tests.harness.outside import Outside, Said, an_outside

POINTS = (
    "tool.before_intent_record",
    "tool.after_intent_before_call",
    "tool.after_call_before_result_record",
    "reply.before_outbox",
)
OWN = Said("m1", "family", "Ann", "/remind in 300 days tea")
OURS = Said("m1", "family", "Ann", "/remind us in 300 days dinner")

CASES = [("tool.after_call_before_result_record", OWN), *((point, OURS) for point in POINTS)]
"""Reminders for everybody are set and deleted by a nested function."""


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    with Nursery(tmp_path_factory.mktemp("nursery") / "stderr") as started:
        yield started


async def crashed(outside: Outside, faults: str, said: Said) -> None:
    pid = await outside.start(faults)
    outside.deliver(said)
    assert await outside.died(pid) == -signal.SIGKILL, f"{faults} was not reached"


async def recovered(outside: Outside, *said: Said) -> None:
    pid = await outside.start()
    outside.redeliver()
    outside.deliver(*said)
    await outside.settled()
    assert await outside.stop(pid) == 0


def kept(outside: Outside) -> list[tuple[str, str, int]]:
    """Title, state and number of due occurrences of each reminder."""
    with closing(sqlite3.connect(outside.home / DATABASE)) as database:
        due = "(SELECT count(*) FROM occurrences WHERE timer_id = timers.id AND state = 'due')"
        return database.execute(f"SELECT title, state, {due} FROM timers ORDER BY id").fetchall()


@pytest.mark.requirement("D41")
@pytest.mark.parametrize(("point", "said"), CASES)
async def test_a_reminder_is_set_once_wherever_the_daemon_dies(
    tmp_path: Path, nursery: Nursery, point: str, said: Said
) -> None:
    async with an_outside(tmp_path, nursery) as outside:
        await crashed(outside, f"{point}=kill", said)
        await recovered(outside)
        assert kept(outside) == [(said.text.split()[-1], "active", 1)]
        [told] = answers(outside)[said.id]
        assert told.startswith("⏰ OK, reminder 1")


@pytest.mark.requirement("D41")
@pytest.mark.parametrize(("point", "said"), CASES)
async def test_a_reminder_is_deleted_once_wherever_the_daemon_dies(
    tmp_path: Path, nursery: Nursery, point: str, said: Said
) -> None:
    delete = Said("m2", "family", "Ann", "/reminder delete 1")
    async with an_outside(tmp_path, nursery) as outside:
        await recovered(outside, said)
        await crashed(outside, f"{point}=kill", delete)
        await recovered(outside)
        assert [(state, due) for _, state, due in kept(outside)] == [("removed", 0)]
        assert answers(outside)[delete.id] == [f"🗑 Reminder 1 is deleted: {said.text.split()[-1]}"]
