"""The program's migrations on a database with rows."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from services.clock import VirtualClock
from services.store.all_tables import all_tables
from services.store.migrations.transaction import VERSIONS
from services.store.sqlite.upgrade import upgrade

FIRST = "03300af6cec5"
HISTORY = "INSERT INTO history VALUES (?, 'chat', ?, ?, 'name', 'words', 0, ?, NULL, '', '')"


def of_first_release(folder: Path) -> Path:
    """A database of the first release: a message of a member, and one of the bot."""
    versions = folder / "first"
    versions.mkdir()
    (file,) = VERSIONS.glob(f"{FIRST}_*.py")
    shutil.copy(file, versions)
    path = folder / "old.sqlite"
    upgrade(path, backups=folder / "backups", clock=VirtualClock(), versions=versions)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(HISTORY, (1, "m1", "platform:account:ann", 0))
        database.execute(HISTORY, (2, "b1", "", 1))
    return path


def test_what_members_said_before_belongs_to_them(tmp_path: Path) -> None:
    path = of_first_release(tmp_path)
    done = upgrade(path, backups=tmp_path / "backups", clock=VirtualClock(), tables=all_tables())
    assert done is not None
    with closing(sqlite3.connect(path)) as database:
        rows = database.execute("SELECT id, asked_by, thread FROM history ORDER BY id").fetchall()
    assert rows == [(1, "platform:account:ann", "m1"), (2, None, None)]
