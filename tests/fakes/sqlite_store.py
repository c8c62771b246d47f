"""A real store in a file, with all tables and without migrations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

from sqlalchemy import Table, create_engine

from services.clock import Clock
from services.store.schema import metadata
from services.store.sqlite.store import SqliteStore


@asynccontextmanager
async def a_store(folder: Path, clock: Clock, tables: Sequence[Table] | None = None) -> AsyncIterator[SqliteStore]:
    """The store in `folder`, with the tables of all imported aggregates or only with `tables`, which is faster. Opening
    it again finds the rows."""
    store = await SqliteStore.open(
        folder / "rollcall.db", clock=clock, prepare=lambda path: _create_tables(path, tables)
    )
    try:
        yield store
    finally:
        await store.close()


def _create_tables(path: Path, tables: Sequence[Table] | None) -> None:
    wanted = tuple(metadata.tables.values() if tables is None else tables)
    if path.stat().st_size == 0:
        path.write_bytes(_empty_database(wanted))
        return
    engine = create_engine(f"sqlite:///{path}")
    metadata.create_all(engine, wanted)
    engine.dispose()


@cache
def _empty_database(tables: tuple[Table, ...]) -> bytes:
    """The file of a new database with `tables`."""
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        metadata.create_all(connection, tables)
    with engine.connect() as connection:
        content: bytes = connection.connection.driver_connection.serialize()  # type: ignore[union-attr]
    engine.dispose()
    return content
