"""The database of the settings for commands that work beside a daemon, wherever it is."""

from __future__ import annotations

from bot.database import database_of
from bot.on_server import beside_on_server
from config.settings import Settings
from services.store.beside import Beside
from services.store.reader import Reader
from services.store.side import SideConnection
from services.store.sqlite_side import SqliteSide


def reader_of(settings: Settings) -> Reader:
    """For reports. Raises ReaderError."""
    return Reader(_connection(settings, writes=False))


def beside_of(settings: Settings) -> Beside:
    """For a few writes. Raises ReaderError."""
    return Beside(_connection(settings, writes=True))


def _connection(settings: Settings, *, writes: bool) -> SideConnection:
    if settings.store.is_on_a_server:
        return beside_on_server(settings.store, writes=writes)
    return SqliteSide.open(database_of(settings), writes=writes)
