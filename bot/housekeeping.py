"""Periodic work: pruning, backups, expiry of questions, and rows that other processes changed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass
from datetime import timedelta
from pathlib import Path

import structlog

from bot.chats.chats import Chats
from bot.chats.open_questions import OpenQuestions
from bot.database.opening import database_of
from bot.delivery.outgoing import OutboundMessage
from bot.intake.gate import GateDecision
from bot.intake.intake import Intake
from bot.intake.notices import Notices
from config.diagnostics import Diagnostic
from config.settings import Settings, StoreSettings
from function_calls.context import Kind, MessageContext, MessageKey
from function_calls.questions.approval_questions import not_in_time
from function_calls.turn import OpenQuestion
from services.clock import Clock
from services.refs import ReasonCode
from services.store import member_data
from services.store.ids import first_id_at
from services.store.port import Conflict, Store, StoreError, Write
from services.store.retention import old_rows
from services.store.schema import BATCH_ROWS
from services.store.sqlite.store import checkpoint
from services.store.sqlite.upgrade import back_up, backups_in, taken_at
from services.store.turns import (
    audit,
    inbox,
    pending,
)
from services.threads import Threads

_log = structlog.get_logger("housekeeping")


class Expiry:
    """Ends runs whose questions were not answered."""

    def __init__(self, intake: Intake, questions: OpenQuestions, clock: Clock) -> None:
        self._intake = intake
        self._questions = questions
        self._clock = clock

    async def end(self, unanswered: Sequence[OpenQuestion]) -> None:
        """Resume the runs that asked these questions with an expiry, each in its chat's queue. Question and turn change
        in one unit, so neither is lost; after a failure the question is kept for the next call."""
        for question in unanswered:
            try:
                is_over = await self._fire(question)
            except Conflict:
                # The question was answered, or another process was faster.
                _log.info("question_was_over", question=question.id)
            except StoreError as problem:
                _log.error("expiry_waits_for_the_store", question=question.id, problem=str(problem))
                self._questions.retry_unanswered(question)
            else:
                if not is_over:
                    self._questions.retry_unanswered(question)

    async def _fire(self, question: OpenQuestion) -> bool:
        asker = question.asker
        if asker is None:
            raise ValueError("a question that a function asked has an asker")

        def claim(decision: GateDecision, turn_id: int) -> Sequence[Write]:
            return [pending.end_unanswered(question.id, turn_id)]

        context = self._context(asker, question.id)
        decision = await self._intake.fire(context, claim, question=question)
        return decision.reason is not ReasonCode.QUEUE_FULL

    def _context(self, asker: MessageContext, id_: int) -> MessageContext:
        """The event of the expiry: sender and chat of the request, without text."""
        return MessageContext(
            key=MessageKey(asker.chat, f"question-{id_}", Kind.EXPIRY),
            kind=Kind.EXPIRY,
            chat=asker.chat,
            is_group=asker.is_group,
            sender=asker.sender,
            text="",
            sent_at=self._clock.now(),
            private=asker.private,
            chat_title=asker.chat_title,
            bot=asker.bot,
        )


_OF_CHATS = ("chat_settings", "activations", "chat_notes")
_DAY_MS = 24 * 3600 * 1000
# Platforms redeliver for up to three days, and duplicates must be recognised that long.
_LEAST_DAYS = 3
_BATCHES_TO_CHECKPOINT = 4
_STEP_SECONDS = 3600.0
_DOUBT_SECONDS = 24 * 3600.0


@dataclass(eq=False, repr=False)
class Housekeeping:
    """Periodic tasks; each method is one task, called by the scheduler."""

    store: Store
    chats: Chats
    questions: OpenQuestions
    notices: Notices
    expiry: Expiry
    settings: InitVar[StoreSettings]
    clock: Clock
    others: Mapping[str, Callable[[], Awaitable[None]]]
    """By counter name, loads state that another process may have changed."""
    database: Path | None
    """The SQLite file; None if the database is on a server."""

    def __post_init__(self, settings: StoreSettings) -> None:
        self._days = max(settings.days_kept, _LEAST_DAYS)
        self._counters: dict[str, int] = {}
        self._ahead = self._seconds_ahead()
        self._trusted_from = self.clock.monotonic()

    async def forget(self) -> None:
        """Delete rows older than the retention period, in batches, so that other units wait for one batch at most.
        Nothing is deleted within a day after the wall clock was set by more than an hour: with a wrong clock everything
        could look old."""
        if not self._clock_is_trusted():
            return
        now_ms = self.clock.now_ms()
        batches = old_rows(
            before_id=await self._oldest_id(),
            before_ms=now_ms - self._days * _DAY_MS,
            before_day=self._oldest_day(),
            expired_ms=now_ms - _DAY_MS,
            now_ms=now_ms,
        )
        for batch in (member_data.drop_closed_questions(), *batches):
            await self._repeat(batch)

    def _clock_is_trusted(self) -> bool:
        step, now = self._seconds_ahead() - self._ahead, self.clock.monotonic()
        if abs(step) > _STEP_SECONDS:
            self._ahead, self._trusted_from = self._seconds_ahead(), now + _DOUBT_SECONDS
            _log.warning("pruning_paused", clock_was_set_by_seconds=round(step), for_seconds=_DOUBT_SECONDS)
        return now >= self._trusted_from

    def _seconds_ahead(self) -> float:
        return self.clock.now().timestamp() - self.clock.monotonic()

    async def _repeat(self, batch: Write) -> None:
        """Commit `batch` until it is not full. Pause between batches for as long as a batch takes, and checkpoint the
        write-ahead log in another thread, because a commit that has to do it is slow. Raises StoreError."""
        count, rows = 0, BATCH_ROWS
        while rows == BATCH_ROWS:
            began = self.clock.monotonic()
            (rows,) = await self.store.commit([batch])
            await self.clock.sleep(self.clock.monotonic() - began)
            count += 1
            if self.database is not None and count % _BATCHES_TO_CHECKPOINT == 0:
                await asyncio.to_thread(checkpoint, self.database)

    def _oldest_day(self) -> str:
        """First day of budgets to keep, at least a month, with one more day as a margin for time zones."""
        return (self.clock.now() - timedelta(days=max(self._days, 31) + 1)).date().isoformat()

    async def _oldest_id(self) -> int:
        """The id before which rows are old enough. Ids contain their time. If the clock was ahead once, later ids are
        ahead too, because ids only rise; then the age comes from the inbox. Raises StoreError."""
        now_ms = self.clock.now_ms()
        before_ms = now_ms - self._days * _DAY_MS
        ahead = await self.store.read(inbox.newest_received(first_id_at(now_ms + _DAY_MS), before_ms))
        newest = ahead[0]["id"]
        return first_id_at(before_ms) if newest is None else newest + 1

    async def expire_questions(self) -> None:
        """Close expired questions, resume the runs that asked them, and send notices on approvals that nobody gave.
        Raises StoreError."""
        writes, approvals = self.questions.expire()
        if writes:
            notices = [await self._not_allowed(one, others_wait=len(approvals) > 1) for one in approvals]
            await self.store.commit([*writes, *(write for write, _ in notices)])
            self.notices.send([message for _, message in notices])
        unanswered = self.questions.take_unanswered()
        if unanswered:
            await self.expiry.end(unanswered)

    async def _not_allowed(self, question: OpenQuestion, *, others_wait: bool) -> tuple[Write, OutboundMessage]:
        """The write and the notice that an approval was not given in time, which disables the choices of the question.
        Raises ValueError for a question that is no approval."""
        terms = question.terms
        if terms is None:
            raise ValueError("only a question for a yes has been waited for by a chat")
        asker = terms.asker
        others_wait = others_wait or bool(self.questions.approvals_in(asker.chat.key))
        texts = self.chats.profile(asker.chat).texts
        text = not_in_time(terms, question.question.function, texts, others_wait=others_wait)
        closes = await self.questions.messages_of(self.store, [question.id])
        return self.notices.notice(asker.chat, text, asker.sender.ref if asker.private else None, closes=closes)

    async def notice_changes(self) -> None:
        """Reload what another process has changed, by the change counters in the store. Raises StoreError."""
        counters = {row["name"]: row["count"] for row in await self.store.read(audit.COUNTERS)}
        if any(counters.get(name) != self._counters.get(name) for name in _OF_CHATS):
            await self.chats.load(self.store)
        for name, load in self.others.items():
            if counters.get(name) != self._counters.get(name):
                await load()
        self._counters = counters


def backups_of(settings: Settings) -> Path:
    """The folder of backups, `backups` in the home of the settings; it may not exist."""
    return Path(settings.home) / "backups"


class Backups:
    """Makes a backup when the newest one is older than `store.backup_every_hours`."""

    def __init__(self, settings: Settings, clock: Clock, changed: Callable[[], None]) -> None:
        """`changed` is called after a failed backup, and after the first successful one that follows."""
        self._path, self._folder = database_of(settings), backups_of(settings)
        self._every_seconds = 0 if settings.store.is_on_a_server else settings.store.backup_every_hours * 3600
        self._keep = settings.store.backups_kept
        self._clock = clock
        self._changed = changed
        self._threads = Threads(most_at_once=1)
        self._problem = ""

    @property
    def are_scheduled(self) -> bool:
        """Whether the settings schedule backups."""
        return self._every_seconds > 0

    @property
    def faults(self) -> Sequence[Diagnostic]:
        """Why the last backup failed; empty if it succeeded."""
        return [Diagnostic(str(self._folder), 0, 0, "store.backup_failed", self._problem)] if self._problem else []

    @property
    def state(self) -> str:
        """`ok`, or a status for operators, without paths."""
        if self._problem:
            return "failed; the log says why"
        age = self.age_seconds()
        if age == float("inf"):
            return "none yet"
        return "ok" if age < 2 * self._every_seconds else "overdue"

    def age_seconds(self) -> float:
        """Seconds since the newest backup was started; infinite without a backup."""
        times = [taken_at(one) for one in backups_in(self._path, self._folder)[:1]]
        return min((self._clock.now().timestamp() - at.timestamp() for at in times if at), default=float("inf"))

    async def keep_up(self) -> None:
        """Make a backup if one is due. A failure is logged and retried at the next call."""
        # A backup with a future time was made with a wrong clock, so it does not count.
        if not self.are_scheduled or 0 <= self.age_seconds() < self._every_seconds:
            return
        had_failed = bool(self._problem)
        try:
            made = await self._threads.run(
                back_up, self._path, self._folder, label="scheduled", clock=self._clock, keep=self._keep
            )
        except StoreError as error:
            self._problem = str(error)
            _log.error("backup_failed", problem=self._problem)
        else:
            self._problem = ""
            _log.info("backup_made", file=str(made))
        if had_failed or self._problem:
            self._changed()
