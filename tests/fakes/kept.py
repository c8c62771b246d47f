"""Data stored by a daemon, read through its own store."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, select

from bot.testing import Group
from services.store.chats.history import HISTORY
from services.store.port import Statement
from services.store.turns.inbox import INBOX


async def kept(group: Group, *columns: Column[Any]) -> list[tuple[Any, ...]]:
    """These columns of all rows of their table, in key order."""
    # A commit also completes all earlier posts.
    await group.daemon.store.commit([])
    statement = Statement("tests.kept", select(*columns).order_by(*columns[0].table.primary_key))
    rows = await group.daemon.store.read(statement.query())
    return [tuple(row[column.name] for column in columns) for row in rows]


async def reasons(group: Group) -> list[tuple[str, str]]:
    """Reason code and detail of each event, in the order of arrival."""
    return await kept(group, INBOX.c.reason, INBOX.c.detail)


async def last_reason(group: Group) -> tuple[str, str]:
    """Reason code and detail of the latest event."""
    return (await reasons(group))[-1]


async def heard(group: Group) -> list[tuple[str, str]]:
    """Sender and text of each history row, including the bot's messages."""
    return await kept(group, HISTORY.c.sender_name, HISTORY.c.text)
