"""Connections to a PostgreSQL server, and the mapping of its errors to the store's."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
import structlog
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Dumper
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.sql import SQL, Identifier
from psycopg.types.numeric import IntDumper
from psycopg.types.string import StrDumper

from services.clock import Clock
from services.store.port import BadUnit, StoreBroken, StoreError, StoreFull

_LISTEN_AGAIN_SECONDS = 1.0
_MOST_IN_NAME = 63  # the server truncates longer application names
_DEFAULTS: dict[str, str] = {
    "connect_timeout": "10",
    "target_session_attrs": "read-write",  # of several hosts, use the one that accepts writes
    "keepalives_idle": "15",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",  # milliseconds
}
# Session settings. A process that hangs in a transaction, or whose machine has failed, must not hold its locks for
# ever; statements have no timeout, whatever the server's defaults are.
_SESSION = (
    "SET tcp_keepalives_idle = 15",
    "SET tcp_keepalives_interval = 5",
    "SET tcp_keepalives_count = 3",
    "SET statement_timeout = 0",
    "SET lock_timeout = 0",
    "SET idle_in_transaction_session_timeout = '30s'",
)
# The server is out of space or memory, or its disk failed: the statement was rolled back and may succeed later.
_NO_ROOM = ("53100", "53200", "58030")
_DAMAGED = ("XX001", "XX002")
# Temporary: a conflict with another transaction, or the server is shutting down or became read-only.
_PASSES = ("40001", "40P01", "55P03", "57014", "57P", "08", "53300", "25006", "25P03")


class _TextDumper(StrDumper):
    """Replaces NUL, the only character that PostgreSQL text cannot hold, by U+FFFD in writes and queries. SQLite stores
    it, so that code above the store need not care."""

    def dump(self, obj: str) -> Buffer | None:
        return obj.replace("\0", "\ufffd").encode()


class _BoolDumper(IntDumper):
    """Sends a bool as the integer 1 or 0, as SQLite does."""

    def dump(self, obj: Any) -> Any:
        return super().dump(int(obj))


class _Refused(Dumper):
    """Raises psycopg.DataError for values other than integers, text and bytes: a float would be rounded silently."""

    def dump(self, obj: Any) -> Any:
        raise psycopg.DataError(f"{type(obj).__name__} is no integer, text or bytes")


def address_of(url: str) -> str:
    """The connection string of `url`, completed by the store's defaults. Raises StoreError, without parts of the URL,
    if it is invalid."""
    try:
        parameters = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        # The driver's message may contain parts of the URL, including the password.
        raise StoreError(
            "store.url is no address of a PostgreSQL database, like postgresql://user:password@host:5432/name"
        ) from None
    missing = {name: value for name, value in _DEFAULTS.items() if name not in parameters}
    return make_conninfo(url, **missing, application_name=application_name(url), client_encoding="utf8")


def application_name(url: str) -> str:
    """Name of this process's sessions, by which holders of locks are compared. The name of a valid `url` is completed
    by process id and host. A long host name loses its beginning, because names of containers differ at the end."""
    given = str(conninfo_to_dict(url).get("application_name") or "rollcall").encode("ascii", "replace").decode()
    process = f" {os.getpid()} on "
    host = socket.gethostname()[-(_MOST_IN_NAME - len("rollcall") - len(process)) :]
    return f"{given[: _MOST_IN_NAME - len(process) - len(host)]}{process}{host}"


def place_of(url: str) -> str:
    """Database name and host without user and password, for messages."""
    parameters = conninfo_to_dict(url)
    host, name = (
        parameters.get("host") or "this machine",
        parameters.get("dbname") or parameters.get("user") or "postgres",
    )
    return f"the database {name} on {host}"


def connect_writer(address: str) -> psycopg.Connection[Any]:
    """A connection in autocommit mode whose commits survive a crash of the server.

    Raises:
        psycopg.Error: the server cannot be reached or rejects the login.
    """
    connection = psycopg.connect(address, autocommit=True, prepare_threshold=1)
    try:
        connection.prepared_max = 1000
        adapt(connection.adapters)
        for setting in _SESSION:
            connection.execute(setting)
        # A stronger level, for example with replicas, remains the operator's choice.
        connection.execute(
            "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
        )
    except BaseException:
        connection.close()
        raise
    return connection


async def connect_reader(address: str) -> psycopg.AsyncConnection[dict[str, Any]]:
    """A new read-only connection in autocommit mode with rows as dicts. Raises psycopg.Error if it cannot be opened."""
    connection = await psycopg.AsyncConnection.connect(
        address, autocommit=True, prepare_threshold=1, row_factory=psycopg.rows.dict_row
    )
    try:
        connection.prepared_max = 1000
        adapt(connection.adapters)
        await connection.execute("SET default_transaction_read_only = on")
    except BaseException:
        await connection.close()
        raise
    return connection


async def listen(
    url: str, channels: Sequence[str], clock: Clock, heard: Callable[[str], None], connected: Callable[[], None]
) -> None:
    """Call `heard` with the payload of each notification, until cancelled. `connected` is called after each connection:
    notifications before it are lost."""
    while True:
        try:
            async with await psycopg.AsyncConnection.connect(address_of(url), autocommit=True) as connection:
                for channel in channels:
                    await connection.execute(SQL("LISTEN {}").format(Identifier(channel)))
                connected()
                async for notification in connection.notifies():
                    heard(notification.payload)
        except psycopg.Error as error:
            structlog.get_logger("cluster").warning("notifications_lost", problem=str(error))
        await clock.sleep(_LISTEN_AGAIN_SECONDS)


def adapt(adapters: AdaptersMap) -> None:
    """Register dumpers that send values as SQLite stores them; see `_TextDumper`, `_BoolDumper` and `_Refused`."""
    adapters.register_dumper(str, _TextDumper)
    adapters.register_dumper(bool, _BoolDumper)
    for other in (float, "decimal.Decimal", list, tuple, dict, "datetime.datetime", "datetime.date", "uuid.UUID"):
        adapters.register_dumper(other, _Refused)


def refusal(name: str, error: Exception) -> StoreError:
    """The StoreError for a driver's `error` in the statement `name`: StoreFull, StoreBroken for damage, else BadUnit;
    without the server's message, which may quote values."""
    if _begins(error, _NO_ROOM):
        return StoreFull(f"{name}: {_words(error)}")
    if _begins(error, _DAMAGED):
        return StoreBroken(f"{name}: the database is damaged: {_words(error)}")
    return BadUnit(f"{name}: {_words(error)}")


def passes(error: psycopg.Error) -> bool:
    """Whether repeating the whole transaction may help: conflicts, timeouts, and a server that restarts or became
    read-only."""
    return _begins(error, _PASSES)


def is_from_server(error: Exception) -> bool:
    """Whether the error came from the server; otherwise the value was rejected before it was sent."""
    return isinstance(error, psycopg.OperationalError) or getattr(error, "sqlstate", None) is not None


def _begins(error: Exception, codes: tuple[str, ...]) -> bool:
    code: str = getattr(error, "sqlstate", None) or ""
    return bool(code) and code.startswith(codes)


def _words(error: Exception) -> str:
    code = getattr(error, "sqlstate", None)
    if not isinstance(error, psycopg.Error) or code is None:
        return str(error)
    about = (error.diag.table_name, error.diag.column_name, error.diag.constraint_name)
    kind = f"{type(error).__name__} ({code})"
    return " ".join([kind, *(each for each in about if each)])
