"""Deletion of old rows: how long each table keeps them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, bindparam, exists, or_, select, update

from services.store.chats.history import HISTORY
from services.store.chats.member_links import CODES
from services.store.chats.memory import NOTES
from services.store.chats.script_data import IS_EXPIRED, SCRIPT_MEMORY
from services.store.chats.summaries import SUMMARIES
from services.store.port import Statement, Write
from services.store.schema import INTEGER, TEXT, batch, delete_batch, write_bound
from services.store.turns.audit import AUDIT
from services.store.turns.budgets import BUDGETS
from services.store.turns.http_events import EVENTS
from services.store.turns.http_files import FILES
from services.store.turns.inbox import GAVE_UP, INBOX, MAY_RUN, WAITING
from services.store.turns.ledger import LEDGER
from services.store.turns.occurrences import IS_DUE, OCCURRENCES
from services.store.turns.outbox import IS_FAILED, IS_OPEN, OUTBOX
from services.store.turns.pending import IS_OPEN as IS_ASKED
from services.store.turns.pending import PENDING
from services.store.turns.timers import TIMERS
from services.store.turns.turn_state import ANSWERS, TURN_MEMORY

_BEFORE_ID = bindparam("before_id", type_=INTEGER)
_BEFORE_MS, _NOW_MS = bindparam("before_ms", type_=INTEGER), bindparam("now_ms", type_=INTEGER)
_EXPIRED_MS, _BEFORE_DAY = bindparam("expired_ms", type_=INTEGER), bindparam("before_day", type_=TEXT)
_LATER = TIMERS.alias("later")


def _is_over(turn: ColumnElement[int] | ColumnElement[int | None]) -> ColumnElement[bool]:
    """The turn neither waits nor may be retried."""
    return ~exists().where(INBOX.c.id == turn, MAY_RUN)


_OLD_ROWS = (
    delete_batch(HISTORY, HISTORY.c.id < _BEFORE_ID),
    delete_batch(EVENTS, EVENTS.c.id < _BEFORE_ID),
    delete_batch(FILES, FILES.c.id < _BEFORE_ID),
    delete_batch(ANSWERS, ANSWERS.c.turn_id < _BEFORE_ID, _is_over(ANSWERS.c.turn_id)),
    # A turn that may still run must not repeat its runs.
    delete_batch(LEDGER, LEDGER.c.turn_id < _BEFORE_ID, _is_over(LEDGER.c.turn_id)),
    delete_batch(OUTBOX, OUTBOX.c.id < _BEFORE_ID, ~IS_OPEN, or_(~IS_FAILED, OUTBOX.c.at_ms < _BEFORE_MS)),
    # The turn of its answer may still have to run.
    delete_batch(PENDING, PENDING.c.id < _BEFORE_ID, ~IS_ASKED, _is_over(PENDING.c.answered_by)),
    delete_batch(TURN_MEMORY, TURN_MEMORY.c.until_ms <= _NOW_MS),
    delete_batch(SCRIPT_MEMORY, IS_EXPIRED),
    delete_batch(CODES, CODES.c.expires_ms < _EXPIRED_MS),
    delete_batch(BUDGETS, BUDGETS.c.day < _BEFORE_DAY),
    delete_batch(SUMMARIES, SUMMARIES.c.at_ms < _BEFORE_MS),
    delete_batch(NOTES, NOTES.c.ended_ms < _BEFORE_MS),
    delete_batch(AUDIT, AUDIT.c.id < _BEFORE_ID, AUDIT.c.at_ms < _BEFORE_MS),
    delete_batch(OCCURRENCES, OCCURRENCES.c.id < _BEFORE_ID, OCCURRENCES.c.over_ms < _BEFORE_MS, ~IS_DUE),
    # The highest number of a chat is kept, so that it is not reused; only its contents are erased.
    delete_batch(
        TIMERS,
        TIMERS.c.ended_ms < _BEFORE_MS,
        select(1)
        .where(_LATER.c.chat == TIMERS.c.chat, _LATER.c.kind == TIMERS.c.kind, _LATER.c.number > TIMERS.c.number)
        .exists(),
    ),
    update(TIMERS)
    .where(batch(TIMERS, TIMERS.c.ended_ms < _BEFORE_MS, TIMERS.c.title != ""))
    .values(title="", arguments="{}", members="[]"),
    # Last, because it determines which ids are old enough, also for the next run if this one is interrupted. A
    # redelivery is recognised only while its row exists.
    delete_batch(
        INBOX,
        INBOX.c.id < _BEFORE_ID,
        INBOX.c.reason != WAITING,
        or_(INBOX.c.reason != GAVE_UP, INBOX.c.ended_ms < _BEFORE_MS),
    ),
)
_STATEMENTS = [Statement(f"retention.{clause.table}", clause) for clause in _OLD_ROWS]


def old_rows(*, before_id: int, before_ms: int, before_day: str, expired_ms: int, now_ms: int) -> Sequence[Write]:
    """The writes that each delete one batch (at most BATCH_ROWS) of old rows, to be executed in this order: rows with
    ids below `before_id`, given-up ones only if that was before `before_ms`; notes, summaries and timers that ended
    before `before_ms`; budgets of days before `before_day` (ISO date); codes that expired before `expired_ms`; and
    values that have expired at `now_ms`. Times are in milliseconds since 1970 UTC."""
    values = {
        "before_id": before_id,
        "before_ms": before_ms,
        "before_day": before_day,
        "expired_ms": expired_ms,
        "now_ms": now_ms,
    }
    return [write_bound(statement, values) for statement in _STATEMENTS]
