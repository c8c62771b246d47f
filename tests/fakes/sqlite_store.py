"""A real store in a file of the test's own, with all tables and without migrations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from sqlalchemy import Table, create_engine

from services.clock import Clock
from services.store.schema import metadata
from services.store.sqlite.store import SqliteStore


@asynccontextmanager
async def a_store(folder: Path, clock: Clock, tables: Sequence[Table] | None = None) -> AsyncIterator[SqliteStore]:
    """The store in `folder` with the tables of every aggregate that was imported, or with these alone, which takes less
    time; opening it again finds the rows."""
    store = await SqliteStore.open(
        folder / "rollcall.db", clock=clock, prepare=lambda path: _create_tables(path, tables)
    )
    try:
        yield store
    finally:
        await store.close()


def _create_tables(path: Path, tables: Sequence[Table] | None) -> None:
    engine = create_engine(f"sqlite:///{path}")
    metadata.create_all(engine, tables)
    engine.dispose()
