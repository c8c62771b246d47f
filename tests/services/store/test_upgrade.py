"""Schema upgrades of a database: backup first, complete or not at all, and never backwards."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Index, MetaData, Table
from sqlalchemy import text as sql_text

from services.clock import VirtualClock
from services.store.migrations.commands import migrate, write_revision
from services.store.migrations.transaction import DatabaseTooNew, Revisions, Upgraded, read_revisions, transaction
from services.store.port import StoreBroken, StoreError
from services.store.schema import integer, text
from services.store.sqlite.upgrade import upgrade

REPOSITORY = Path(__file__).resolve().parents[3]
FIRST = "op.execute('CREATE TABLE todos (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT')"
SECOND = "op.execute('ALTER TABLE todos ADD COLUMN owner TEXT')"


def add_revision(versions: Path, revision: str, after: str | None, *steps: str) -> None:
    versions.mkdir(exist_ok=True)
    body = "\n    ".join(steps)
    (versions / f"{revision}.py").write_text(
        f"from alembic import op\n\nrevision: str = {revision!r}\ndown_revision = {after!r}\n\n\n"
        f"def upgrade() -> None:\n    {body}\n"
    )


@pytest.fixture
def versions(tmp_path: Path) -> Path:
    """A linear history of one revision."""
    folder = tmp_path / "versions"
    add_revision(folder, "r1", None, FIRST)
    return folder


@pytest.fixture
def database(tmp_path: Path, versions: Path) -> Path:
    """A database at that revision, with a row."""
    path = tmp_path / "store.db"
    up(path, versions)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("INSERT INTO todos VALUES (1, 'milk')")
    return path


def up(path: Path, versions: Path, **options: object) -> Upgraded | None:
    return upgrade(path, backups=path.parent / "backups", clock=VirtualClock(), versions=versions, **options)  # type: ignore[arg-type]


def rows(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def version_and_todos(path: Path) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    return rows(path, "SELECT version_num FROM alembic_version"), rows(path, "SELECT * FROM todos")


def test_a_new_database_gets_all_migrations_and_no_copy(tmp_path: Path, versions: Path) -> None:
    add_revision(versions, "r2", "r1", SECOND)
    path = tmp_path / "store.db"
    assert up(path, versions) == Upgraded(None, "r2", None)
    assert version_and_todos(path) == ([("r2",)], [])
    assert not (tmp_path / "backups").exists()


def test_an_old_database_is_copied_and_brought_up_to_date_with_its_rows(database: Path, versions: Path) -> None:
    add_revision(versions, "r2", "r1", SECOND)
    add_revision(versions, "r3", "r2", "op.execute(\"UPDATE todos SET owner = 'Ann'\")")
    done = up(database, versions)
    assert done is not None
    assert done[:2] == ("r1", "r3")
    assert version_and_todos(database) == ([("r3",)], [(1, "milk", "Ann")])
    assert done.backup == database.parent / "backups" / "store-20260105T090000Z-r1.db"
    assert version_and_todos(done.backup) == ([("r1",)], [(1, "milk")])


def test_a_database_that_is_up_to_date_is_left_alone(database: Path, versions: Path) -> None:
    assert up(database, versions) is None
    assert not (database.parent / "backups").exists()


def test_alembic_is_not_imported_when_there_is_nothing_to_migrate(database: Path, versions: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from sqlalchemy import MetaData\n"
        "from services.clock import SystemClock; from services.store.sqlite.upgrade import upgrade\n"
        "old, new, backups, versions = map(Path, sys.argv[1:])\n"
        "given = dict(backups=backups, clock=SystemClock(), versions=versions)\n"
        "print(upgrade(old, **given), upgrade(new, tables=MetaData(), **given).after, 'alembic' in sys.modules)"
    )
    folder = database.parent
    command: list[str | Path] = [
        sys.executable,
        "-c",
        program,
        database,
        folder / "new.db",
        folder / "backups",
        versions,
    ]
    said = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    assert said.split() == ["None", "r1", "False"]


def test_a_new_database_made_of_the_tables_is_that_of_the_migrations(tmp_path: Path) -> None:
    tables = MetaData()
    due = Index("due", "due_ms", sqlite_where=sql_text("due_ms IS NOT NULL"))
    Table("todos", tables, integer("id", primary_key=True), integer("due_ms", nullable=True), due, sqlite_strict=True)
    versions = tmp_path / "versions"
    versions.mkdir()

    def write(message: str) -> Path | None:
        (tmp_path / "scratch.db").unlink(missing_ok=True)
        with transaction(tmp_path / "scratch.db") as connection:
            migrate(connection, versions)
            return write_revision(connection, message, tables, versions)

    assert write("first") is not None
    tables.tables["todos"].append_column(text("owner", nullable=True))
    assert write("owners") is not None
    assert write("nothing new") is None
    migrated, made = tmp_path / "migrated.db", tmp_path / "made.db"
    assert up(migrated, versions) == up(made, versions, tables=tables)
    columns = "SELECT name, type, \"notnull\", pk FROM pragma_table_info('todos')"
    assert rows(migrated, columns) == rows(made, columns)
    assert rows(migrated, "SELECT * FROM alembic_version") == rows(made, "SELECT * FROM alembic_version")
    indexes = "SELECT name, sql FROM sqlite_schema WHERE name = 'due'"
    assert rows(migrated, indexes) == rows(made, indexes)
    assert [
        strict for path in (migrated, made) for (strict,) in rows(path, "SELECT strict FROM pragma_table_list('todos')")
    ] == [1, 1]


def test_a_database_of_a_newer_version_is_refused_and_left_as_it_is(database: Path, versions: Path) -> None:
    add_revision(versions, "r2", "r1", SECOND)
    up(database, versions)
    (versions / "r2.py").unlink()
    before = database.read_bytes()
    with pytest.raises(DatabaseTooNew, match=r"store\.db has schema version r2.*newer version"):
        up(database, versions)
    assert database.read_bytes() == before


def test_a_database_of_another_program_is_refused(tmp_path: Path, versions: Path) -> None:
    path = tmp_path / "store.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    with pytest.raises(StoreError, match="no database of this program"):
        up(path, versions)


def test_a_damaged_database_is_refused_by_name(tmp_path: Path, versions: Path) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(StoreBroken, match=r"store\.db"):
        up(path, versions)


def test_a_migration_that_fails_leaves_the_old_schema(database: Path, versions: Path) -> None:
    add_revision(versions, "r2", "r1", SECOND, "op.execute('INSERT INTO nowhere VALUES (1)')")
    with pytest.raises(StoreError, match=r"upgrade of .*store\.db to r2 failed, and was undone; a copy is .*r1\.db"):
        up(database, versions)
    assert version_and_todos(database) == ([("r1",)], [(1, "milk")])


def test_an_upgrade_killed_half_way_leaves_the_old_schema_and_can_be_done_again(database: Path, versions: Path) -> None:
    add_revision(versions, "r2", "r1", SECOND)
    add_revision(versions, "r3", "r2", "op.execute('DELETE FROM todos')", "import os", "os.kill(os.getpid(), 9)")
    program = (
        "import sys; from pathlib import Path; from services.clock import SystemClock\n"
        "from services.store.sqlite.upgrade import upgrade\n"
        "path, backups, versions = map(Path, sys.argv[1:])\n"
        "upgrade(path, backups=backups, clock=SystemClock(), versions=versions)"
    )
    command: list[str | Path] = [sys.executable, "-c", program, database, database.parent / "backups", versions]
    assert subprocess.run(command, cwd=REPOSITORY, check=False).returncode == -signal.SIGKILL
    assert version_and_todos(database) == ([("r1",)], [(1, "milk")])
    add_revision(versions, "r3", "r2", "op.execute('DELETE FROM todos')")
    assert up(database, versions) is not None
    assert version_and_todos(database) == ([("r3",)], [])


def test_the_migrations_are_one_line(tmp_path: Path, versions: Path) -> None:
    add_revision(versions, "r2", "r1", "pass")
    (versions / "__init__.py").touch()
    assert read_revisions(versions) == Revisions(frozenset({"r1", "r2"}), "r2")
    add_revision(versions, "other", "r1", "pass")
    with pytest.raises(StoreError, match=r"2 last revisions \(other, r2\)"):
        read_revisions(versions)
    (versions / "other.py").write_text("'a file of another kind'")
    with pytest.raises(StoreError, match=r"other\.py names no revision"):
        read_revisions(versions)


def test_without_migrations_there_is_nothing_to_do(tmp_path: Path) -> None:
    assert up(tmp_path / "store.db", tmp_path) is None
