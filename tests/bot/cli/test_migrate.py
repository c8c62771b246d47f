"""`rollcall migrate`: a database on a server becomes equal to that in a file, and back, or nothing is copied."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from bot.cli.migrate import Progress
from bot.database.opening import DATABASE
from bot.testing import a_group
from services.store.all_tables import all_tables
from services.store.sqlite.lock import StoreLock
from tests.bot.cli.running import Printed, a_settings_file, an_environment, command
from tests.bot.cli.running import without_a_model as without_a_model
from tests.harness.forked_processes import forked_command
from tests.harness.postgres_server import PostgresServer, as_a_daemon_makes_it

LARGEST = 2**63 - 1
ODD_TEXTS = ("", "🀄 \U0010ffff", "\\N", "\\x00", "a\tb\nc\r\\", "'\"", "\ufeff\u2028\x01\x7f")
NULS = ("\0", "a\0b\0")
Rows = dict[str, list[tuple[Any, ...]]]


async def _talk(home: Path, said: Sequence[str], store: dict[str, str] | None = None) -> list[str]:
    async with a_group(home=home, settings={"store": store or {}}) as group:
        return [(await group.say("Ann", text))[0] for text in said]


def talk(home: Path, *said: str, url: str = "") -> list[str]:
    """Replies of a daemon on the file in `home`, or on the database at `url`."""
    return asyncio.run(_talk(home, said, {"url": url}))


def add_odd_rows(database: Path, texts: Sequence[str]) -> None:
    """Add rows with `texts`, nulls and the largest and smallest integers."""
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.executemany(
            "INSERT INTO turn_memory SELECT ?, 'x', ?, NULL WHERE 0", [(LARGEST, text) for text in texts]
        ) if False else None
        connection.executemany("INSERT INTO changes VALUES (?, ?)", [(f"name {text}", LARGEST) for text in texts])
        connection.execute("INSERT INTO changes VALUES ('smallest', ?)", (-LARGEST - 1,))


def in_file(database: Path) -> Rows:
    with closing(sqlite3.connect(database)) as connection:
        return {name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr) for name in all_tables().tables}


def on_server(url: str) -> Rows:
    with psycopg.connect(url) as connection:
        return {
            name: sorted(connection.execute(f"SELECT {columns(name)} FROM {name}".encode()).fetchall(), key=repr)
            for name in all_tables().tables
        }


def columns(name: str) -> str:
    return ", ".join(column.name for column in all_tables().tables[name].columns)
