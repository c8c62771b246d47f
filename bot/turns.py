"""Run one turn: dispatch, then commit its result, its messages and its end together, then hand them to delivery."""

from __future__ import annotations

import asyncio
import functools
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace

import structlog

from bot.beginnings import Beginnings, with_beginning
from bot.chats import Chats
from bot.decisions import Decisions
from bot.delivery import Delivery, Parcel
from bot.engine.job import Job
from bot.metrics import Metrics
from bot.open_questions import OpenQuestions
from bot.outbox_rows import Address, Origin, OutboxRows
from bot.outgoing import Due, addressed_to
from bot.past import Past
from bot.summaries import Summaries
from bot.turn_ends import explained, interrupted, stopped, told, unfit, unheeded, worded
from bot.turn_log import StoreTurnLog
from bot.typing_sign import TypingSign, TypingSigns
from config.settings import RouterSettings
from function_calls.approval_terms import Became
from function_calls.context import Kind, MessageContext, without_words
from function_calls.ports import Members
from function_calls.registry import BotFunctions
from function_calls.router import FunctionCallRouter
from function_calls.spec import Message
from function_calls.turn import OpenQuestion, OutcomeKind, Turn, TurnOutcome, sent
from services.clock import Clock
from services.deadlines import Deadlines
from services.fault_points import FaultPoints
from services.refs import ChatRef, ReasonCode
from services.store import inbox
from services.store.ids import Ids
from services.store.port import BadUnit, Conflict, Store, StoreError, StoreFull, Write
from services.timer import ms_of

_log = structlog.get_logger("turns")
_GRACE_SECONDS = 5.0
_FULL_DISK_SECONDS = 5.0
_EXPIRY, _SENT = Kind.EXPIRY, OutcomeKind.SENT  # a module's name is found faster than a member of an enumeration
_STOPPED = ReasonCode.STOPPED
_KEPT_REASONS = frozenset({ReasonCode.NOT_ADDRESSED, ReasonCode.EXPIRED})
"""Of turns that say nothing: why says more than that."""


class Turns:
    """Runs turns, one for each job that the engine gives."""

    def __init__(
        self,
        *,
        router: FunctionCallRouter,
        functions: Callable[[str], BotFunctions],
        chats: Chats,
        members: Members,
        questions: OpenQuestions,
        decisions: Decisions,
        beginnings: Beginnings,
        store: Store,
        delivery: Delivery,
        summaries: Summaries,
        deadlines: Deadlines,
        metrics: Metrics,
        settings: RouterSettings,
        attempts: int,
        clock: Clock,
        ids: Ids,
        epoch: int,
        faults: FaultPoints,
        after: Callable[[str, ChatRef], None] | None = None,
    ) -> None:
        """`after` is told of each turn that has ended, once its messages are handed over."""
        self._router = router
        self._functions = functions
        self._chats = chats
        self._members = members
        self._questions = questions
        self._decisions = decisions
        self._beginnings = beginnings
        self._store = store
        self._delivery = delivery
        self._signs = TypingSigns(delivery.typing)
        self._summaries = summaries
        self._deadlines = deadlines
        self._metrics = metrics
        self._settings = settings
        self._attempts = attempts
        self._clock = clock
        self._ids = ids
        self._rows = OutboxRows(ids, epoch)
        self._faults = faults
        self._after = after

    def use(self, router: FunctionCallRouter, settings: RouterSettings, attempts: int) -> None:
        """Turns that begin from now on go this way; those that run go on as they began."""
        self._router = router
        self._settings = settings
        self._attempts = attempts

    async def run(self, job: Job) -> None:
        """Answer the message of `job`, unless that turns out to be none. Raises StoreError when nothing can be
        kept. Where only the end of this turn cannot, it is said that something went wrong, unless that cannot be kept
        either: then it raises why."""
        # One log for all attempts: what is known and could not be written yet is known to the next one.
        log = StoreTurnLog(self._store, job.runs_for, job.turn_id, self._clock, self._faults, job.keeping)
        while True:
            try:
                await self._attempt(job, log)
            except StoreError as problem:
                if job.keeping is not None and not await job.keeping.succeeds():
                    return
                if isinstance(problem, BadUnit) and not job.unfit:
                    _end_otherwise(job, log, problem)
                    continue
                if not isinstance(problem, StoreFull):
                    raise
                _log.error("turn_waits_for_room", turn=job.turn_id, problem=str(problem))
                job.answered = True
                await self._clock.sleep(_FULL_DISK_SECONDS)
                job.repeated = True
            except Exception as problem:
                if job.unfit:
                    raise
                _end_otherwise(job, log, problem)
            else:
                return

    async def _attempt(self, job: Job, log: StoreTurnLog) -> None:
        job.answered, job.begun_ms = False, self._clock.now_ms()
        sign = self._signs.begin(job.context.chat)
        past = self._past(job)
        turn = self._turn(job, log, sign, past)
        if job.attempts or job.repeated:
            # An earlier attempt may have begun the chat, however this one ends.
            turn.begins = self._beginnings.claim(job.context, turn, is_aside=job.immediate)
        try:
            if job.unfit:
                outcome = unfit(turn, log.results.values(), job.unfit)
            else:
                outcome = stopped(turn) if job.stopped else await self._outcome(job, turn, log, self._router)
            job.answered = True
            await self._close(job, turn, log, outcome)
            past.is_over()
        finally:
            sign.take_down()
            log.unbind()

    def _past(self, job: Job) -> Past:
        # One more than is shown tells that something is left out.
        count = self._settings.history_messages and self._settings.history_messages + 1
        return Past(self._store, self._summaries, self._chats, job.context, job.turn_id, count)

    def _turn(self, job: Job, log: StoreTurnLog, sign: TypingSign, past: Past) -> Turn:
        context = job.context
        chat = context.chat
        profiles = self._chats
        is_silent = context.private or job.runs_for.private or context.kind is _EXPIRY

        turn = Turn(
            id=str(job.turn_id),
            functions=self._functions(context.bot),
            profile=lambda: profiles.profile(chat),
            deadline=self._clock.monotonic() + self._settings.turn_timeout_seconds,
            log=log,
            addressed=job.addressed,
            history=past.lines,
            recall=past.recall,
            live_role=functools.partial(self._members.role, chat),
            # What is said to the bot alone shows to nobody else, not in what it is doing either.
            status=_nothing_is_shown if is_silent else sign.say,
        )
        if job.question is not None:
            turn.answering = (job.question, context.text)
            turn.claim = functools.partial(self._claim, job)
            turn.claimed = functools.partial(self._claimed, job)
            turn.became = functools.partial(self._became, job)
            turn.others_wait = lambda: bool(self._questions.approvals_in(chat.key))
        log.bind(turn)
        return turn

    async def _claim(self, job: Job, allows: bool) -> bool:
        question = job.question
        if question is None:
            return False
        return await self._questions.claim(self._store, job.context.chat.key, question.id, job.turn_id, allows=allows)

    async def _became(self, job: Job) -> Became:
        if job.question is None:
            return Became()
        return await self._decisions.of(job.question.id)

    async def _claimed(self, job: Job) -> bool:
        question = job.question
        return question is not None and await self._questions.claimed(self._store, question.id, job.turn_id)

    async def _outcome(self, job: Job, turn: Turn, log: StoreTurnLog, router: FunctionCallRouter) -> TurnOutcome:
        if job.attempts >= self._attempts:
            _log.error("turn_given_up", turn=turn.id, attempts=job.attempts)
            text = turn.profile().texts.say("failures.gave_up")
            return sent(ReasonCode.GAVE_UP, [Message(text)], "limits.attempts_per_turn")
        unserved = self._no_longer_served(job.context)
        if unserved is not None and job.question is None:
            return unserved
        try:
            if job.attempts or job.repeated:
                await log.load()
            if unserved is not None:
                await self._deadlines.run(router.end_waiting(job.context, turn), turn.deadline + _GRACE_SECONDS)
                return unserved
            return await self._deadlines.run(self._dispatched(job, turn, router), turn.deadline + _GRACE_SECONDS)
        except asyncio.CancelledError:
            if not job.stopped:
                raise
            return stopped(turn)
        except TimeoutError:
            text = turn.profile().texts.say("model.timeout")
            return unserved or interrupted(turn, ReasonCode.MODEL_FAILED, text, "router.turn_timeout_seconds")
        except StoreError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the border where a failing turn becomes an answer
            short_id = uuid.uuid4().hex[:8]
            _log.error("turn_failed", turn=turn.id, id=short_id, exc_info=error)
            text = turn.profile().texts.say("failures.turn", id=short_id)
            return unserved or interrupted(turn, ReasonCode.FUNCTION_FAILED, text, short_id)

    def _no_longer_served(self, context: MessageContext) -> TurnOutcome | None:
        """The silent end of a turn whose chat was taken off the settings while it waited."""
        served = self._chats.of(context.chat)
        if served.allowed_by is None:
            return sent(ReasonCode.CHAT_NOT_ALLOWED, [], "chats.allow")
        if not served.settings.enabled:
            return sent(ReasonCode.CHAT_OFF, [], served.settings.layers["enabled"])
        return None

    async def _dispatched(self, job: Job, turn: Turn, router: FunctionCallRouter) -> TurnOutcome:
        context = job.context
        # Rights are those of now, not those of the moment when the message came.
        role = self._chats.role(context.sender.ref.key, context.sender.role)
        if role is not context.sender.role:
            context = replace(context, sender=replace(context.sender, role=role))
        if router.has_filters or self._beginnings.is_due(context, turn, is_aside=job.immediate):
            # Filters, and what begins a chat, may do what a message that turns out to be known must not.
            await turn.log.until_kept()
        if turn.functions.beginning is None or not self._beginnings.claim(context, turn, is_aside=job.immediate):
            return await self._answered(context, turn, router)
        begun = await self._beginnings.begin(context, turn, router)
        outcome = await self._answered(context, turn, router)
        if begun is not None and outcome.question is not None:
            begun = await self._beginnings.give_way(context, turn, begun, router)
        return with_beginning(begun, outcome)

    async def _answered(self, context: MessageContext, turn: Turn, router: FunctionCallRouter) -> TurnOutcome:
        outcome = await router.dispatch(context, turn)
        if outcome.kind is _SENT:
            return outcome
        if outcome.kind is OutcomeKind.FALLBACK and not turn.effects:
            return explained(await router.run_chat_fallback(context, turn), outcome, turn)
        if outcome.error is None and outcome.reason not in _KEPT_REASONS:
            return replace(outcome, kind=OutcomeKind.SILENT, reason=ReasonCode.SILENT)
        return outcome

    async def _close(self, job: Job, turn: Turn, log: StoreTurnLog, outcome: TurnOutcome) -> None:
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
        said, parcels = self._said(job, turn, worded(job, turn, outcome, left, asker), now_ms, due, closes)
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
        writes.append(inbox.end(job.turn_id, outcome.reason.value, outcome.detail, now_ms))
        self._faults.reach("reply.before_outbox")
        try:
            await self._store.commit(writes)
        except Conflict:
            await log.until_kept()
            _log.warning("turn_ended_elsewhere", turn=job.turn_id)
            return
        self._metrics.turn_ended(outcome.reason)
        if turn.begins:
            self._beginnings.is_noted(job.context)
        if question is not None:
            self._questions.waits(question_id, question, chat, member)
        if given_back is not None:
            self._questions.put_back(chat, job.context.sender.ref.key, given_back)
        self._delivery.hand_over(parcels)
        if self._after is not None:
            self._after(turn.id, job.context.chat)

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
        if question is not None and is_heeded and (question.question.terms is None or await self._claimed(job)):
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
    ) -> tuple[list[Write], list[Parcel]]:
        """The writes and parcels of what is to be said; the first of them is `due` and `closes` earlier ones. A key is
        the same on every attempt of the turn."""
        # What was asked for in private is answered in private, whoever allowed it.
        context, profile = turn.asker or job.context, turn.profile()
        writes: list[Write] = []
        parcels: list[Parcel] = []
        for number, message in enumerate(messages):
            if context.private and message.to is None:
                message = replace(message, to=context.sender.ref)
            chat, private_to = addressed_to(message, context.chat)
            if not message.text.strip() and not message.attachments:
                continue
            platform = self._delivery.platform(chat)
            if platform is None or (chat != context.chat and self._chats.of(chat).allowed_by is None):
                _log.error("message_to_a_chat_that_is_not_served", turn=turn.id, chat=chat.key, setting="chats.allow")
                continue
            if number == 0 and message.to is None and message.reply_to is None and self._needs_quote(job):
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
        if job.context.timer is not None or job.context.kind is Kind.EXPIRY:
            return False
        return job.context.is_group and not self._chats.is_latest(job.context.chat, job.turn_id)


def _end_otherwise(job: Job, log: StoreTurnLog, problem: Exception) -> None:
    """The next attempt of `job` only says that something went wrong: one message must not be the end of all chats."""
    job.unfit, job.repeated = uuid.uuid4().hex[:8], True
    log.drop()
    _log.error("turn_cannot_be_kept", turn=job.turn_id, id=job.unfit, exc_info=problem)


def _due(job: Job, now_ms: int) -> Due | None:
    """When what a timer says at `now_ms` was to be said; the time that its function took is nobody's delay."""
    timer = job.context.timer
    if timer is None:
        return None
    return Due(ms_of(timer.due_at) + now_ms - job.begun_ms, was_away=job.attempts > 0 or timer.was_away)


async def _nothing_is_shown(text: str) -> None:
    return None
