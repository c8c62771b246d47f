"""How a database on PostgreSQL stands, for operators."""

from __future__ import annotations

from typing import NamedTuple

from services.store import leases
from services.store.leases import Held
from services.store.postgres.connections import place_of
from services.store.postgres.side import PostgresSide
from services.store.statements import compile_statement


class DatabaseState(NamedTuple):
    """What the server says."""

    place: str
    """Where it is, without user and password."""
    server_version: str
    schema_version: str | None
    """None where there are no tables of ours yet."""
    leader: Held | None
    """Who leads now."""


def state_of(url: str) -> DatabaseState:
    """How the database at `url` stands. Raises ReaderError when it cannot be reached."""
    side = PostgresSide.open(url, writes=False)
    try:
        (server,) = side.rows("SELECT current_setting('server_version') AS version", ())
        (ours,) = side.rows("SELECT to_regclass('alembic_version') IS NOT NULL AS stands", ())
        if not ours["stands"]:
            return DatabaseState(place_of(url), server["version"], None, None)
        schema = side.rows("SELECT version_num FROM alembic_version", ())
        return DatabaseState(
            place_of(url), server["version"], schema[0]["version_num"] if schema else None, _leader(side)
        )
    finally:
        side.close()


def _leader(side: PostgresSide) -> Held | None:
    query = leases.held()
    compiled = compile_statement(query.statement, side.dialect)
    rows = side.rows(compiled.sql, compiled.bind(query.values))
    return Held(rows[0]["holder"], rows[0]["left_ms"]) if rows and rows[0]["left_ms"] > 0 else None
