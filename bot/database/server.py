"""A database on a PostgreSQL server: what of it the rest of the daemon asks for. Its driver is loaded only where the
settings name one."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from bot.database.leadership import Leadership, Leading
from config.settings import StoreSettings
from services.clock import Clock
from services.store.all_tables import all_tables
from services.store.port import Store, StoreBroken, StoreError, Write
from services.store.side import ReaderError, SideConnection

if TYPE_CHECKING:
    from services.store.postgres.lease import DatabaseState


def lead_on_server(settings: StoreSettings, clock: Clock, on_lost: Callable[[Exception], None] | None) -> Leadership:
    """Leading there, not begun; see Leading. Raises StoreError."""
    with _driver():
        from services.store.postgres.lease import PostgresLease

    holder = f"process {os.getpid()} on {socket.gethostname()} ({secrets.token_hex(4)})"
    url, seconds = settings.url.get_secret_value(), settings.lease_seconds
    return Leading(PostgresLease(url, holder, seconds, partial(_prepare, url)), clock, seconds, on_lost)


async def open_on_server(
    settings: StoreSettings,
    clock: Clock,
    on_broken: Callable[[StoreBroken], None] | None,
    guard: Write | None,
) -> Store:
    """The store there, brought up to date. `guard` is what each transaction begins with; without one it is for this
    process alone. Raises StoreError."""
    with _driver():
        from services.store.postgres.connections import connect_writer
        from services.store.postgres.lease import connect_as_leader
        from services.store.postgres.store import PostgresStore

    return await PostgresStore.open(
        settings.url.get_secret_value(),
        clock=clock,
        prepare=_prepare,
        on_broken=on_broken,
        guard=guard,
        connect=connect_writer if guard is None else partial(connect_as_leader, seconds=settings.lease_seconds),
    )


def beside_on_server(settings: StoreSettings, *, writes: bool) -> SideConnection:
    """A connection beside a daemon. Raises ReaderError."""
    try:
        with _driver():
            from services.store.postgres.reader import PostgresSide
    except StoreError as error:
        raise ReaderError(str(error)) from None
    return PostgresSide.open(settings.url.get_secret_value(), writes=writes)


def state_on_server(settings: StoreSettings) -> DatabaseState:
    """How the database stands. Raises ReaderError."""
    try:
        with _driver():
            from services.store.postgres.lease import state_of
    except StoreError as error:
        raise ReaderError(str(error)) from None
    return state_of(settings.url.get_secret_value())


def _prepare(url: str) -> None:
    """Bring the schema up to date. Whoever does the same at once is waited for. Raises StoreError."""
    from services.store.postgres.upgrade import upgrade

    upgrade(url, tables=all_tables())


@contextmanager
def _driver() -> Iterator[None]:
    """Around the imports of what needs the driver. Raises StoreError where it is not installed."""
    try:
        yield
    except ImportError as error:
        raise StoreError(
            f"store.url needs the PostgreSQL driver: pip install 'rollcall[postgresql]' ({error})"
        ) from error
