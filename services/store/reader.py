"""Database access for operator commands while the daemon is running: reads, and short writes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from types import TracebackType
from typing import Any, NamedTuple, Self

from sqlalchemy import Engine, Select, bindparam, select
from sqlalchemy.exc import DBAPIError

from services.refs import JsonObject
from services.store.chats.history import HISTORY
from services.store.port import Query, Statement, Write
from services.store.turns.budgets import BUDGETS, NOTICE_PREFIX, RATE_PREFIX
from services.store.turns.inbox import INBOX
from services.store.turns.ledger import LEDGER
from services.store.turns.outbox import OUTBOX

_NO_SUCH_TABLE = "42P01"
"""Error code of PostgreSQL."""


class ReaderError(Exception):
    """There is no database, or it cannot be used now."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one event ended: `reason` is its ReasonCode; `text` is empty if it is no longer stored."""

    id: int
    chat: str
    native_id: str
    sender: str
    sender_name: str
    kind: str
    received_ms: int
    reason: str
    detail: str
    turn_id: int | None
    question_id: int | None
    text: str
    reply_to: str | None
    reply_to_name: str | None
    change: str | None
    """As in the history; None if it is not in it."""


@dataclass(frozen=True, slots=True)
class CallStatistics:
    """Statistics of the runs of one function, with durations in milliseconds."""

    function: str
    runs: int
    ok: int
    asked: int
    """Runs that ended with a question; they count neither as ok nor as errors."""
    errors: Counter[str]
    """Number by error code; `unfinished` for runs without a result."""
    p50_ms: int
    p95_ms: int

    @property
    def ok_share(self) -> float:
        """Share of successful runs, 0 to 1, among those that did not end with a question. 0 if there are none."""
        ended = self.runs - self.asked
        return self.ok / ended if ended else 0.0

    def as_json(self) -> JsonObject:
        """All fields except `function` as JSON data, with `ok_share` rounded to four digits."""
        return {
            "runs": self.runs,
            "ok": self.ok,
            "asked": self.asked,
            "ok_share": round(self.ok_share, 4),
            "errors": dict(self.errors),
            "p50_ms": self.p50_ms,
            "p95_ms": self.p95_ms,
        }


class UsedShare(NamedTuple):
    """Use of one kind of budget by a member or chat (`holder`) on one day."""

    day: str
    holder: str
    kind: str
    used: int
    """Millionths of the currency unit if the kind is money."""


_COLUMNS = {**dict(HISTORY.c), **dict(INBOX.c)}


class OperatorConnection:
    """Reports and store statements of operator commands, on an own connection next to the daemon's; a context manager
    that closes it."""

    def __init__(self, engine: Engine) -> None:
        """Connect. Raises ReaderError, as the creator of `engine` does."""
        self._connection = engine.connect()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def rows(self, query: Query) -> list[Mapping[str, Any]]:
        """The committed rows of `query`, as mappings by column name. Raises ReaderError."""
        try:
            with self._connection.begin():
                found = self._connection.execute(query.statement.clause, dict(query.values)).mappings()
                return [dict(row) for row in found]
        except DBAPIError as error:
            is_new = getattr(error.orig, "sqlstate", None) == _NO_SUCH_TABLE
            problem = "has no tables of this program" if is_new else f"cannot be read: {error.orig}"
            raise ReaderError(f"the database {problem}; start the daemon once") from None

    def commit(self, writes: Sequence[Write]) -> list[int]:
        """Execute all of `writes` or none, durable when it returns. Returns the number of rows that each touched.
        Raises ReaderError."""
        try:
            with self._connection.begin():
                return [self._connection.execute(one.statement.clause, one.named).rowcount for one in writes]
        except DBAPIError as error:
            raise ReaderError(f"the database cannot be written: {error.orig}") from None

    def last_outcomes(
        self, chat: str | None, count: int, *, skip: int = 0, only_messages: bool = False, **wanted: str | int | None
    ) -> list[Outcome]:
        """The last `count` events of `chat` (None: of all chats) after skipping the `skip` newest, newest first.
        `wanted`: values of `native_id` and `id`; None for any. `only_messages`: messages and button presses of members.
        Raises ReaderError."""
        query = (
            select(*(_COLUMNS[field.name] for field in fields(Outcome)))
            .select_from(INBOX.join(HISTORY, HISTORY.c.id == INBOX.c.id, isouter=True))
            .order_by(INBOX.c.id.desc())
            .limit(count)
            .offset(skip)
        )
        given = {name: value for name, value in {**wanted, "chat": chat}.items() if value is not None}
        for name in given:
            query = query.where(INBOX.c[name] == bindparam(name))
        if only_messages:
            query = query.where(INBOX.c.kind.in_(["message", "choice"]))
        rows = self.rows(Statement("reports", query).query(**given))
        return [Outcome(**{**row, "text": row["text"] or ""}) for row in rows]

    def replies(self, turn_id: int) -> list[str]:
        """The texts of the messages that a turn sent, in order, as far as they are stored. Raises ReaderError."""
        answered = select(OUTBOX.c.history_id).where(OUTBOX.c.turn_id == bindparam("turn_id"))
        query = select(HISTORY.c.text).where(HISTORY.c.id.in_(answered)).order_by(HISTORY.c.id)
        return [text for (text,) in self._reported(query, turn_id=turn_id)]

    def call_statistics(self, since_ms: int) -> list[CallStatistics]:
        """Statistics of each function's runs since that time (milliseconds since 1970 UTC), most runs first. Raises
        ReaderError."""
        query = select(LEDGER.c.function, LEDGER.c.code, LEDGER.c.at_ms, LEDGER.c.ended_ms).where(
            LEDGER.c.at_ms >= since_ms
        )
        durations: dict[str, list[int]] = {}
        codes: dict[str, Counter[str]] = {}
        for function, code, at_ms, ended_ms in self._reported(query):
            codes.setdefault(function, Counter())[code or "unfinished"] += 1
            if ended_ms is not None:
                durations.setdefault(function, []).append(ended_ms - at_ms)
        found = [_statistics(function, counted, durations.get(function, [])) for function, counted in codes.items()]
        return sorted(found, key=lambda one: -one.runs)

    def used_shares(self, since_day: str) -> list[UsedShare]:
        """Use of budgets from that ISO date on, newest day first. Raises ReaderError."""
        query = (
            select(BUDGETS.c.day, BUDGETS.c.holder, BUDGETS.c.kind, BUDGETS.c.used)
            .where(
                BUDGETS.c.day >= bindparam("day"),
                *(~BUDGETS.c.holder.startswith(prefix) for prefix in (NOTICE_PREFIX, RATE_PREFIX)),
            )
            .order_by(BUDGETS.c.day.desc(), BUDGETS.c.holder, BUDGETS.c.kind)
        )
        return [UsedShare(*row) for row in self._reported(query, day=since_day)]

    def _reported(self, query: Select[Any], **values: str | int) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in self.rows(Statement("reports", query).query(**values))]


def _statistics(function: str, codes: Counter[str], durations: list[int]) -> CallStatistics:
    durations.sort()
    ok = codes["ok"]
    errors = Counter({code: count for code, count in codes.items() if code not in ("ok", "asked")})
    return CallStatistics(
        function, codes.total(), ok, codes["asked"], errors, _percentile(durations, 0.5), _percentile(durations, 0.95)
    )


def _percentile(ordered: Sequence[int], share: float) -> int:
    """Nearest-rank percentile; 0 for an empty sequence."""
    return ordered[math.ceil(len(ordered) * share) - 1] if ordered else 0
