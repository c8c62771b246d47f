"""Metadata of every table, and the highest ids in use."""

from __future__ import annotations

import importlib
import pkgutil

from sqlalchemy import MetaData, func, select, union_all

import services.store.chats
import services.store.turns
from services.store.chats.chat_settings import GRANTS
from services.store.chats.history import HISTORY
from services.store.port import Query, Statement
from services.store.schema import metadata
from services.store.turns.audit import AUDIT
from services.store.turns.http_events import EVENTS
from services.store.turns.http_files import FILES
from services.store.turns.inbox import INBOX
from services.store.turns.occurrences import OCCURRENCES
from services.store.turns.outbox import OUTBOX
from services.store.turns.pending import PENDING
from services.store.turns.timers import TIMERS


def all_tables() -> MetaData:
    """Import every module that defines a table, and return the metadata of all tables."""
    for package in (services.store.chats, services.store.turns):
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
    return metadata


_WITH_IDS = (INBOX, HISTORY, OUTBOX, PENDING, EVENTS, FILES, AUDIT, GRANTS, TIMERS, OCCURRENCES)
_NEWEST = Statement("ids.newest", union_all(*(select(func.max(table.c.id).label("id")) for table in _WITH_IDS)))


def newest_ids() -> Query:
    """The highest `id` of each table with generated ids, one row per table; null for an empty table."""
    return _NEWEST.query()
