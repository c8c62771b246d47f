"""Run one turn: dispatch, then let its end be kept; what fails on the way becomes an answer."""

from __future__ import annotations

import asyncio
import functools
import uuid
from collections.abc import Callable
from dataclasses import replace

import structlog

from bot.beginnings import Beginnings, with_beginning
from bot.chats import Chats
from bot.closing import Closing
from bot.decisions import Decisions
from bot.engine.job import Job
from bot.open_questions import OpenQuestions
from bot.past import Past
from bot.summaries import Summaries
from bot.turn_ends import explained, given_up, interrupted, stopped, unfit
from bot.turn_log import StoreTurnLog
from bot.typing_sign import Show, TypingSign, TypingSigns
from bot.waiting_approval import WaitingApproval
from config.settings import RouterSettings
from function_calls.context import Kind, MessageContext
from function_calls.outcome import OutcomeKind, TurnOutcome, sent
from function_calls.ports import Members
from function_calls.registry import BotFunctions
from function_calls.router import FunctionCallRouter
from function_calls.turn import Turn
from services.clock import Clock
from services.deadlines import Deadlines
from services.fault_points import FaultPoints
from services.refs import ReasonCode
from services.store import inbox, timers
from services.store.port import BadUnit, Store, StoreError, StoreFull
from services.timer import timer_of

_log = structlog.get_logger("turns")
_GRACE_SECONDS = 5.0
_FULL_DISK_SECONDS = 5.0
_EXPIRY, _SENT = Kind.EXPIRY, OutcomeKind.SENT  # a module's name is found faster than a member of an enumeration
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
        closing: Closing,
        store: Store,
        show: Show,
        summaries: Summaries,
        deadlines: Deadlines,
        settings: RouterSettings,
        attempts: int,
        clock: Clock,
        epoch: int,
        faults: FaultPoints,
    ) -> None:
        """`show` tells a chat that an answer is on its way."""
        self._router = router
        self._functions = functions
        self._chats = chats
        self._members = members
        self._questions = questions
        self._decisions = decisions
        self._beginnings = beginnings
        self._closing = closing
        self._store = store
        self._signs = TypingSigns(show)
        self._summaries = summaries
        self._deadlines = deadlines
        self._settings = settings
        self._attempts = attempts
        self._clock = clock
        self._epoch = epoch
        self._faults = faults

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
        if job.recovered or job.repeated:
            # An earlier attempt may have begun the chat, however this one ends.
            turn.begins = self._beginnings.claim(job.context, turn, is_aside=job.immediate)
        try:
            if job.unfit:
                outcome = unfit(job, turn, log.results, job.unfit)
            else:
                outcome = (
                    stopped(job, turn, log.results)
                    if job.stopped
                    else await self._outcome(job, turn, log, self._router)
                )
            job.answered = True
            await self._closing.close(job, turn, log, outcome)
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
            past=past,
            # What is said to the bot alone shows to nobody else, not in what it is doing either.
            status=_nothing_is_shown if is_silent else sign.say,
        )
        turn.addressed = job.addressed
        turn.live_role = functools.partial(self._members.role, chat)
        if job.question is not None:
            turn.answering = (job.question, context.text)
            turn.approval = WaitingApproval(
                self._store, self._questions, self._decisions, job.question.id, chat=chat, turn_id=job.turn_id
            )
        log.bind(turn)
        return turn

    async def _outcome(self, job: Job, turn: Turn, log: StoreTurnLog, router: FunctionCallRouter) -> TurnOutcome:
        unserved = self._no_longer_served(job.context)
        if job.attempts >= self._attempts:
            return unserved or await self._given_up(job, turn, log)
        if unserved is not None and job.question is None:
            return unserved
        try:
            await self._take_up(job, log)
            if unserved is not None:
                await self._deadlines.run(router.end_waiting(job.context, turn), turn.deadline + _GRACE_SECONDS)
                return unserved
            return await self._deadlines.run(self._dispatched(job, turn, router), turn.deadline + _GRACE_SECONDS)
        except asyncio.CancelledError:
            if not job.stopped:
                raise
            return stopped(job, turn, log.results)
        except TimeoutError:
            text, setting = turn.profile().texts.say("model.timeout"), "router.turn_timeout_seconds"
            return unserved or interrupted(job, turn, log.results, ReasonCode.MODEL_FAILED, text, setting)
        except StoreError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the border where a failing turn becomes an answer
            short_id = uuid.uuid4().hex[:8]
            _log.error("turn_failed", turn=turn.id, id=short_id, exc_info=error)
            text = turn.profile().texts.say("failures.turn", id=short_id)
            return unserved or interrupted(job, turn, log.results, ReasonCode.FUNCTION_FAILED, text, short_id)

    async def _take_up(self, job: Job, log: StoreTurnLog) -> None:
        """Before a turn runs that was begun before: count the run, durably, since it may end the process at once; and
        read what is known of it."""
        if job.recovered:
            await self._store.commit([inbox.take_up(job.turn_id, self._epoch, job.attempts + 1)])
        if job.recovered or job.repeated:
            await log.load()

    async def _given_up(self, job: Job, turn: Turn, log: StoreTurnLog) -> TurnOutcome:
        """The end of a turn whose runs have ended the process too often. Nothing of it is run again."""
        _log.error("turn_given_up", turn=turn.id, attempts=job.attempts)
        await log.load()
        timer = None
        if job.context.timer is not None:
            rows = await self._store.read(timers.of_id(job.context.timer.timer_id))
            timer = timer_of(rows[0]) if rows else None
        return given_up(job, turn, log.results, timer)

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


def _end_otherwise(job: Job, log: StoreTurnLog, problem: Exception) -> None:
    """The next attempt of `job` only says that something went wrong: one message must not be the end of all chats."""
    job.unfit, job.repeated = uuid.uuid4().hex[:8], True
    log.drop()
    _log.error("turn_cannot_be_kept", turn=job.turn_id, id=job.unfit, exc_info=problem)


async def _nothing_is_shown(text: str) -> None:
    return None
