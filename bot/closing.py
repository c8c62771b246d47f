"""Keep the end of a turn: its result, its messages, a question and the end itself in one unit; only then they are
handed to delivery."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import structlog

from bot.beginnings import Beginnings
from bot.chats import Chats
from bot.delivery import Delivery, Parcel
from bot.engine.job import Job
from bot.metrics import Metrics
from bot.open_questions import OpenQuestions
from bot.outbox_rows import Address, Origin, OutboxRows
from bot.outgoing import Due, addressed_to
from bot.turn_ends import told, unheeded, worded
from bot.turn_log import StoreTurnLog
from function_calls.context import Kind, without_words
from function_calls.open_question import OpenQuestion
from function_calls.outcome import TurnOutcome
from function_calls.spec import Message
from function_calls.turn import Turn
from services.clock import Clock
from services.fault_points import FaultPoints
from services.refs import ChatRef, ReasonCode
from services.store import inbox, outbox
from services.store.ids import Ids
from services.store.port import Conflict, Store, Write
from services.timer import ms_of

_log = structlog.get_logger("turns")
_STOPPED, _GAVE_UP, _EXPIRY = ReasonCode.STOPPED, ReasonCode.GAVE_UP, Kind.EXPIRY


class Closing:
    """Closes turns."""

    def __init__(
        self,
        *,
        chats: Chats,
        questions: OpenQuestions,
        beginnings: Beginnings,
        store: Store,
        delivery: Delivery,
        metrics: Metrics,
        clock: Clock,
        ids: Ids,
        epoch: int,
        faults: FaultPoints,
        after: Callable[[str, ChatRef], None] | None = None,
    ) -> None:
        """`after` is told of each turn that has ended, once its messages are handed over."""
        self._chats = chats
        self._questions = questions
        self._beginnings = beginnings
        self._store = store
        self._delivery = delivery
        self._metrics = metrics
        self._clock = clock
        self._ids = ids
        self._rows = OutboxRows(ids, epoch)
        self._reach = faults.reach
        self._after = after
        self.on_given_up: list[Callable[[Job], None]] = []
        """Called for each turn that was given up."""

    async def close(self, job: Job, turn: Turn, log: StoreTurnLog, outcome: TurnOutcome) -> None:
        """Keep `outcome` as the end of `turn`, and hand over what it says. Raises StoreError when it cannot be kept."""
        now_ms = self._clock.now_ms()
        writes = log.rest()
        due = _due(job, now_ms) if outcome.reason is not _STOPPED else None
        given_back = unheeded(job, turn, outcome)
        asker, question, question_id = turn.asker or job.context, outcome.question, 0
        chat, member = asker.chat.key, asker.sender.ref.key
        left: OpenQuestion | None = None
        closes: tuple[str, ...] = ()
        if question is not None or job.question is not None:
            left = self._left(job, turn, outcome)
            closes = await self._closed(job, left, is_heeded=given_back is None) if outcome.messages else ()
        first = await self._next_number(job)
        messages = worded(job, turn, outcome, left, asker)
        said, parcels = self._said(job, turn, messages, now_ms, due, closes, first)
        writes += said
        writes += told(turn, outcome.messages)
        if question is not None:
            is_told, question_id = question.question.is_of_a_run, self._ids.next()
            question = replace(question, private=asker.private, asker=without_words(asker) if is_told else None)
            writes += self._questions.ask(question_id, question, chat, member, job.turn_id)
        if given_back is not None:
            writes += self._questions.give_back(chat, job.context.sender.ref.key, given_back, job.turn_id)
        if turn.begins:
            writes.append(self._beginnings.note(job.context))
        writes.append(_end(job, outcome, now_ms))
        self._reach("reply.before_outbox")
        try:
            await self._store.commit(writes)
        except Conflict:
            await log.until_kept()
            _log.warning("turn_ended_elsewhere", turn=job.turn_id)
            return
        if question is not None:
            self._questions.waits(question_id, question, chat, member)
        if given_back is not None:
            self._questions.put_back(chat, job.context.sender.ref.key, given_back)
        self._ended(job, turn, outcome, parcels)

    def _ended(self, job: Job, turn: Turn, outcome: TurnOutcome, parcels: Sequence[Parcel]) -> None:
        """The end of the turn is durable: hand over what it says, and tell everybody who counts ends."""
        self._metrics.turn_ended(outcome.reason)
        if outcome.reason is _GAVE_UP:
            for call in self.on_given_up:
                call(job)
        if turn.begins:
            self._beginnings.is_noted(job.context)
        self._delivery.hand_over(parcels)
        if self._after is not None:
            self._after(turn.id, job.context.chat)

    async def _next_number(self, job: Job) -> int:
        """The number of the first message: a turn that is retried has said something before, and no key is used
        twice."""
        if not job.recovered:
            return 0
        numbers = [int(row["key"].split(":")[1]) for row in await self._store.read(outbox.keys(job.turn_id))]
        return max(numbers, default=-1) + 1

    def _left(self, job: Job, turn: Turn, outcome: TurnOutcome) -> OpenQuestion | None:
        """The question that no longer waits because of what this turn asks."""
        if outcome.question is None or outcome.question.question.terms is not None:
            return None
        asker = turn.asker or job.context
        return self._questions.of(asker.chat.key, asker.sender.ref.key)

    async def _closed(self, job: Job, left: OpenQuestion | None, *, is_heeded: bool) -> tuple[str, ...]:
        """The messages whose choices lead nowhere any more once this turn has ended."""
        ids = [left.id] if left is not None else []
        question = job.question
        if question is not None and is_heeded:
            is_taken = question.question.terms is None
            if is_taken or await self._questions.claimed(self._store, question.id, job.turn_id):
                ids.append(question.id)
        return await self._questions.messages_of(self._store, ids)

    def _said(
        self,
        job: Job,
        turn: Turn,
        messages: Sequence[Message],
        now_ms: int,
        due: Due | None,
        closes: tuple[str, ...],
        first: int,
    ) -> tuple[list[Write], list[Parcel]]:
        """The writes and parcels of what is to be said; the first of them is `due` and `closes` earlier ones. A key is
        the same on every attempt of the turn. `first`: the number of the first message."""
        # What was asked for in private is answered in private, whoever allowed it.
        context, profile = turn.asker or job.context, turn.profile()
        writes: list[Write] = []
        parcels: list[Parcel] = []
        for number, message in enumerate(messages, first):
            if context.private and message.to is None:
                message = replace(message, to=context.sender.ref)
            chat, private_to = addressed_to(message, context.chat)
            if not message.text.strip() and not message.attachments:
                continue
            platform = self._delivery.platform(chat)
            if platform is None or (chat != context.chat and self._chats.of(chat).allowed_by is None):
                _log.error("message_to_a_chat_that_is_not_served", turn=turn.id, chat=chat.key, setting="chats.allow")
                continue
            if number == first and message.to is None and message.reply_to is None and self._needs_quote(job):
                message = replace(message, reply_to=job.context.key.native_id)
            origin = Origin(
                turn_id=job.turn_id,
                number=number,
                asked_by=context.sender.ref,
                bot_name=profile.bot_name,
                texts=profile.texts,
                # What is due was worded by whoever set it, perhaps for somebody else.
                outside=bool(turn.outside) or job.context.timer is not None,
                due=due,
                closes=closes if chat == context.chat else (),
            )
            rows, pieces = self._rows.of(message, Address(chat, private_to, platform), origin, now_ms)
            writes += rows
            parcels += pieces
            due = None
            closes = () if chat == context.chat else closes
        return writes, parcels

    def _needs_quote(self, job: Job) -> bool:
        """In a group where others have spoken meanwhile, an answer says whom it answers."""
        if job.context.timer is not None or job.context.kind is _EXPIRY:
            return False
        return job.context.is_group and not self._chats.is_latest(job.context.chat, job.turn_id)


def _end(job: Job, outcome: TurnOutcome, now_ms: int) -> Write:
    if outcome.reason is _GAVE_UP:
        return inbox.give_up(job.turn_id, outcome.detail, now_ms)
    return inbox.end(job.turn_id, str(outcome.reason), outcome.detail, now_ms)


def _due(job: Job, now_ms: int) -> Due | None:
    """When what a timer says at `now_ms` was to be said; the time that its function took is nobody's delay."""
    timer = job.context.timer
    if timer is None:
        return None
    return Due(ms_of(timer.due_at) + now_ms - job.begun_ms, was_away=job.recovered or timer.was_away)
