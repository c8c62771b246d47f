"""Engine-specific parts of the store's contract tests."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

import psycopg
from sqlalchemy import MetaData, Table, bindparam, cast, delete, func, insert, literal, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateTable

from services.clock import Clock, VirtualClock
from services.store.port import Query, Statement, Store, StoreBroken
from services.store.postgres.connections import adapt
from services.store.postgres.store import PostgresStore
from services.store.schema import INTEGER, delete_batch, integer, text
from services.store.sqlite.store import SqliteStore
from services.store.sqlite.writer import connect_writer
from tests.harness.postgres_server import PostgresServer

TABLES = MetaData()
NOTES = Table(
    "notes",
    TABLES,
    integer("id", primary_key=True),
    text("body"),
    integer("place", nullable=True),
    sqlite_strict=True,
)
BUDGETS = Table("budgets", TABLES, integer("id", primary_key=True), integer("left"), sqlite_strict=True)

# `place` is the order in which the units were written.
_ADDED = insert(NOTES).from_select(
    ["id", "body", "place"],
    select(
        bindparam("id", type_=INTEGER),
        bindparam("body", type_=NOTES.c.body.type),
        cast(func.coalesce(func.max(NOTES.c.place), literal(0)) + literal(1), INTEGER),
    ),
)
ADD = Statement("notes.add", _ADDED)
ADD_ROW = Statement("notes.add_row", _ADDED, takes=("id", "body"))
ADD_ONCE = Statement(
    "notes.add_once",
    postgresql.insert(NOTES)
    .values(id=bindparam("id"), body=bindparam("body"), place=None)
    .on_conflict_do_nothing(index_elements=["id"]),
)
CHANGE = Statement("notes.change", update(NOTES).where(NOTES.c.id == bindparam("note")).values(body=bindparam("to")))
CHANGE_RETURNING = Statement(
    "notes.change_returning",
    update(NOTES).where(NOTES.c.id >= bindparam("first")).values(body="changed").returning(NOTES.c.id),
)
_LATEST = select(func.max(NOTES.c.id).label("id")).cte("latest")
CHANGE_LATEST = Statement(
    "notes.change_latest",
    update(NOTES).where(NOTES.c.id.in_(select(_LATEST.c.id))).values(body="latest").add_cte(_LATEST),
)
REMOVE = Statement("notes.remove", delete(NOTES).where(NOTES.c.id == bindparam("note")))
REMOVE_BATCH = Statement("notes.remove_batch", delete_batch(NOTES, NOTES.c.body == bindparam("body")))
ALL = Statement("notes.all", select(NOTES.c.id, NOTES.c.body).order_by(NOTES.c.place, NOTES.c.id))
FIND = Statement("notes.find", select(NOTES.c.id).where(NOTES.c.body == bindparam("body")))
GRANT = Statement("budgets.grant", insert(BUDGETS))
TAKE = Statement(
    "budgets.take",
    update(BUDGETS)
    .where(BUDGETS.c.id == bindparam("budget"), BUDGETS.c.left >= bindparam("amount"))
    .values(left=BUDGETS.c.left - bindparam("amount")),
)
STATEMENTS = (ADD, ADD_ONCE, CHANGE, CHANGE_RETURNING, CHANGE_LATEST, REMOVE, REMOVE_BATCH, ALL, FIND, GRANT, TAKE)


async def notes(store: Store) -> dict[int, str]:
    """All notes, in insertion order."""
    return {row["id"]: row["body"] for row in await store.read(Query(ALL, {}))}


class StoreEngine(Protocol):
    """A place for one database, initially empty."""

    async def open(self, *, clock: Clock | None = None) -> Store:
        """A store on the database, opened as by the daemon."""

    async def open_with_little_room(self) -> Store:
        """A store with a limit of less than 200 kB."""

    async def open_with_failing_commit(self, on_broken: Callable[[StoreBroken], None]) -> Store:
        """A store whose next COMMIT fails with an unknown result."""

    @contextmanager
    def held(self) -> Iterator[None]:
        """While active, another connection holds a lock that every unit needs."""

    def stored(self) -> Sequence[tuple[int, str]]:
        """Id and body of each note, read with another connection."""


class SqliteEngine:
    """SQLite in a file."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "store.db"

    async def open(self, *, clock: Clock | None = None) -> SqliteStore:
        return await SqliteStore.open(self.path, clock=clock or VirtualClock(), prepare=create_tables)

    async def open_with_little_room(self) -> SqliteStore:
        def connect(path: Path) -> sqlite3.Connection:
            connection = connect_writer(path)
            connection.execute("PRAGMA max_page_count = 40")
            return connection

        return await SqliteStore.open(self.path, clock=VirtualClock(), prepare=create_tables, connect=connect)

    async def open_with_failing_commit(self, on_broken: Callable[[StoreBroken], None]) -> SqliteStore:
        return await SqliteStore.open(
            self.path,
            clock=VirtualClock(),
            prepare=create_tables,
            on_broken=on_broken,
            connect=failing_at("COMMIT", sqlite3.SQLITE_IOERR_FSYNC),
        )

    @contextmanager
    def held(self) -> Iterator[None]:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield

    def stored(self) -> Sequence[tuple[int, str]]:
        with closing(sqlite3.connect(self.path)) as other:
            return other.execute("SELECT id, body FROM notes ORDER BY place, id").fetchall()


class PostgresEngine:
    """PostgreSQL in a separate database."""

    def __init__(self, server: PostgresServer) -> None:
        self.url = server.new_database(create_postgres_tables)

    async def open(self, *, clock: Clock | None = None) -> PostgresStore:
        return await PostgresStore.open(self.url, clock=clock or VirtualClock())

    async def open_with_little_room(self) -> PostgresStore:
        # The server's error for a full disk.
        with self._connected() as other:
            other.execute(
                """
                CREATE FUNCTION has_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                    IF (SELECT sum(length(body)) FROM notes) > 150000 THEN
                        RAISE EXCEPTION 'no space left on device' USING ERRCODE = 'disk_full';
                    END IF;
                    RETURN NULL;
                END $$;
                CREATE TRIGGER room AFTER INSERT ON notes FOR EACH STATEMENT EXECUTE FUNCTION has_room()
                """
            )
        return await self.open()

    async def open_with_failing_commit(self, on_broken: Callable[[StoreBroken], None]) -> PostgresStore:
        return await PostgresStore.open(
            self.url, clock=VirtualClock(), on_broken=on_broken, connect=losing_the_connection_at("COMMIT")
        )

    @contextmanager
    def held(self) -> Iterator[None]:
        with self._connected() as other, other.transaction():
            other.execute("LOCK TABLE notes, budgets IN EXCLUSIVE MODE")
            yield

    def stored(self) -> Sequence[tuple[int, str]]:
        with self._connected() as other:
            return other.execute("SELECT id, body FROM notes ORDER BY place, id").fetchall()

    def _connected(self) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(self.url, autocommit=True)


def create_postgres_tables(url: str) -> None:
    """Create the tables of this module."""
    with psycopg.connect(url, autocommit=True) as database:
        for table in TABLES.sorted_tables:
            database.execute(str(CreateTable(table).compile(dialect=postgresql.dialect())).encode())


def losing_the_connection_at(statement: str) -> Callable[[str], psycopg.Connection[Any]]:
    """A function that opens connections; they are lost after sending `statement` for the first time, so its result is
    unknown."""
    lost: list[str] = []

    class LosingConnection(psycopg.Connection[Any]):
        def execute(self, query: Any, *args: Any, **options: Any) -> psycopg.Cursor[Any]:
            if query == statement and not lost:
                lost.append(query)
                self.close()
            return super().execute(query, *args, **options)

    def connect(address: str) -> psycopg.Connection[Any]:
        connection = LosingConnection.connect(address, autocommit=True)
        adapt(connection.adapters)
        return connection

    return connect


def create_tables(path: Path) -> None:
    """Create the tables of this module if they do not exist."""
    with closing(sqlite3.connect(path)) as database:
        for table in TABLES.sorted_tables:
            database.execute(str(CreateTable(table, if_not_exists=True).compile(dialect=sqlite.dialect())))


def failing_at(sql: str, code: int, times: int = 1) -> Callable[[Path], sqlite3.Connection]:
    """A function that opens connections whose next `times` executions of `sql` fail with SQLite's result `code`."""

    class FailingConnection(sqlite3.Connection):
        failures = times

        def execute(self, text: str, values: Any = ()) -> sqlite3.Cursor:
            if text == sql and self.failures:
                self.failures -= 1
                error = sqlite3.OperationalError("as the test wants it")
                error.sqlite_errorcode = code
                raise error
            return super().execute(text, values)

    def connect(path: Path) -> sqlite3.Connection:
        connect_writer(path).close()
        return sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=FailingConnection)

    return connect


def engine_named(name: str, folder: Path, server: Callable[[], PostgresServer]) -> StoreEngine:
    """The engine `name` with a new database."""
    return SqliteEngine(folder) if name == "sqlite" else PostgresEngine(server())


ENGINES = ("sqlite", "postgresql")
