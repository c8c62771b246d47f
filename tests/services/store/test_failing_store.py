"""The store that crashes at a chosen unit, and the units that SQLite has stored."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from services.store.port import Store
from tests.contracts.store_engines import ADD, CHANGE, SqliteEngine
from tests.fakes.failing_store import Crashed, FailingStore, raise_crashed

UNITS = 4


async def a_turn(store: Store) -> None:
    await store.commit([ADD.write(id=1, body="accepted")])
    store.post([ADD.write(id=2, body="intent")])
    await store.commit([CHANGE.write(note=2, to="result"), ADD.write(id=3, body="reply")])
    store.post([CHANGE.write(note=3, to="sent")])


def after_units(done: int) -> list[tuple[int, str]]:
    """Stored rows after the first `done` units of a turn."""
    return [
        [],
        [(1, "accepted")],
        [(1, "accepted"), (2, "intent")],
        [(1, "accepted"), (2, "result"), (3, "reply")],
        [(1, "accepted"), (2, "result"), (3, "sent")],
    ][done]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("at", range(1, UNITS + 1))
async def test_a_crash_at_a_unit_leaves_the_units_before_it_and_nothing_else(
    tmp_path: Path, at: int, when: Literal["before", "after"]
) -> None:
    engine = SqliteEngine(tmp_path)
    inner = await engine.open()
    store = FailingStore(inner, at, when, raise_crashed)
    with pytest.raises(Crashed):
        await a_turn(store)
    with pytest.raises(Crashed):
        store.commit([ADD.write(id=9, body="after the crash")])
    await inner.close()
    assert engine.stored() == after_units(at - (when == "before"))


async def test_without_a_crash_it_counts_the_units(tmp_path: Path) -> None:
    engine = SqliteEngine(tmp_path)
    store = FailingStore(await engine.open(), 99, "before", raise_crashed)
    await a_turn(store)
    await store.close()
    assert store.units == UNITS
    assert engine.stored() == after_units(UNITS)
