"""The database of the settings: opened and upgraded, or reached next to a running daemon."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from config.settings import Settings, StoreSettings
from services.clock import Clock
from services.extras import missing_extra
from services.store.all_tables import all_tables
from services.store.port import Store, StoreBroken, StoreDamaged, StoreError, StoreFull
from services.store.reader import OperatorConnection, ReaderError
from services.store.sqlite.store import SqliteStore, operator_connection
from services.store.sqlite.upgrade import newest_good, upgrade

if TYPE_CHECKING:
    from services.store.postgres.reader import DatabaseState


def prepare_server(url: str) -> None:
    """Migrate the schema, after any migration in progress. Raises StoreError."""
    from services.store.postgres.upgrade import upgrade as upgrade_server

    upgrade_server(url, tables=all_tables())


@contextmanager
def driver(
    extra: str = "postgresql", package: str = "psycopg", *, problem: type[Exception] = StoreError
) -> Iterator[None]:
    """Wraps imports that need the driver. Raises `problem` if it is not installed."""
    try:
        yield
    except ImportError as error:
        raise problem(f"store.url: {missing_extra(extra, package)} ({error})") from error


DATABASE = "rollcall.sqlite"


async def open_store(settings: Settings, clock: Clock, on_broken: Callable[[StoreBroken], None] | None = None) -> Store:
    """The migrated database of the settings. Raises StoreError; StoreInUse if another process has it."""
    home = Path(settings.home)
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if settings.store.is_on_a_server:
        with driver():
            from services.store.postgres.store import PostgresStore

        url = settings.store.url.get_secret_value()
        return await PostgresStore.open(url, clock=clock, prepare=prepare_server, on_broken=on_broken)

    def prepare(path: Path) -> None:
        upgrade(path, backups=home / "backups", clock=clock, keep=settings.store.backups_kept, tables=all_tables())

    return await SqliteStore.open(database_of(settings), clock=clock, prepare=prepare, on_broken=on_broken)


def remedy(settings: Settings, error: Exception) -> str:
    """The next step for the operator after `error` of the store, with commands; empty if absent. May take
    seconds, because backups are checked."""
    if settings.store.is_on_a_server:
        return ""
    if isinstance(error, StoreDamaged):
        return restore_advice(settings)
    if isinstance(error, StoreFull):
        home, logs = Path(settings.home).resolve(), Path(settings.logging.folder).resolve()
        sizes = {folder: _bytes_in(folder) for folder in (home / "backups", home / "work", logs)}
        ours = [f"{folder} ({size / 1e6:.1f} MB)" for folder, size in sizes.items() if size]
        largest = f"; what may be deleted of this program: files in {', '.join(ours)}" if ours else ""
        return f"make room on the disk of {home}, and start again{largest}"
    return ""


def restore_advice(settings: Settings) -> str:
    """How to recover a damaged SQLite database: from the newest good backup, or from its readable part."""
    path = database_of(settings).resolve()
    backups = path.parent / "backups"
    backup = newest_good(path, backups)
    if backup is not None:
        return f"the newest good backup is {backup}; to go back to it: rollcall restore {backup}"
    return f"there is no good backup in {backups}; to save what can be read: sqlite3 {path} .recover >rescued.sql"


def _bytes_in(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and not file.is_symlink())


def database_of(settings: Settings) -> Path:
    """Path of the SQLite database in the home of the settings; it may not exist."""
    return Path(settings.home) / DATABASE


def operator_connection_of(settings: Settings, *, writes: bool = False) -> OperatorConnection:
    """Access next to a running daemon: for reports, or with `writes` for a few writes. Raises ReaderError if the
    database cannot be opened."""
    if not settings.store.is_on_a_server:
        return operator_connection(database_of(settings), writes=writes)
    with driver(problem=ReaderError):
        from services.store.postgres.reader import operator_connection as connection_on_server
    return connection_on_server(settings.store.url.get_secret_value(), writes=writes)


def state_on_server(settings: StoreSettings) -> DatabaseState:
    """State of the database. Raises ReaderError if it cannot be read."""
    with driver(problem=ReaderError):
        from services.store.postgres.reader import state_of
    return state_of(settings.url.get_secret_value())
