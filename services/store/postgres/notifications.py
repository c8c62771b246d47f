"""Notifications of other processes on the same database."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import psycopg
import structlog
from psycopg import sql

from services.clock import Clock
from services.store.postgres.connections import address_of

_AGAIN_SECONDS = 1.0
_log = structlog.get_logger("cluster")


async def listen(
    url: str, channels: Sequence[str], clock: Clock, heard: Callable[[str], None], connected: Callable[[], None]
) -> None:
    """Call `heard` with the payload of each notification, until cancelled. `connected` is called after each connection:
    notifications before it are lost."""
    while True:
        try:
            async with await psycopg.AsyncConnection.connect(address_of(url), autocommit=True) as connection:
                for channel in channels:
                    await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
                connected()
                async for notification in connection.notifies():
                    heard(notification.payload)
        except psycopg.Error as error:
            _log.warning("notifications_lost", problem=str(error))
        await clock.sleep(_AGAIN_SECONDS)
