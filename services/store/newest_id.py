"""The newest id in the tables: where a daemon that starts again goes on, even when the clock was set back meanwhile."""

from __future__ import annotations

from sqlalchemy import func, select, union_all

from services.store.audit import AUDIT
from services.store.grants import GRANTS
from services.store.history import HISTORY
from services.store.http_events import EVENTS
from services.store.inbox import INBOX
from services.store.occurrences import OCCURRENCES
from services.store.outbox import OUTBOX
from services.store.pending import PENDING
from services.store.port import Query, Statement
from services.store.timers import TIMERS

_WITH_IDS = (INBOX, HISTORY, OUTBOX, PENDING, EVENTS, AUDIT, GRANTS, TIMERS, OCCURRENCES)
_NEWEST = Statement("ids.newest", union_all(*(select(func.max(table.c.id).label("id")) for table in _WITH_IDS)))


def newest_ids() -> Query:
    """The highest `id` of each table; null where there is none."""
    return _NEWEST.query()
