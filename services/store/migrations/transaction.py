"""The one transaction that a change of the schema is made in."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, create_engine, event
from sqlalchemy.pool import NullPool

VERSIONS = Path(__file__).parent / "versions"
"""The folder of the migrations."""


@contextmanager
def transaction(path: Path) -> Iterator[Connection]:
    """One transaction on the database `path`, schema changes included: left to itself, the driver would commit before
    each of them."""
    engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(path, isolation_level=None), poolclass=NullPool)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    with engine.begin() as connection:
        yield connection
