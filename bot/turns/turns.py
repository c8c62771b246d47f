"""One turn: lease, dispatch, commit. Exceptions become answers."""

from __future__ import annotations

import asyncio
import functools
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import structlog

from bot.chats.chat_notes import Beginnings, with_beginning
from bot.chats.chats import Chats
from bot.chats.open_questions import OpenQuestions
from bot.chats.summaries import Part, Summaries, line_of
from bot.engine.embedded import Job
from bot.intake.gate import Decisions
from bot.turns.closing import Closing, explained, given_up, interrupted, stopped, unfit
from bot.turns.turn_log import StoreTurnLog
from config.settings import RouterSettings
from function_calls.context import Kind, MessageContext
from function_calls.outcome import OutcomeKind, TurnOutcome, sent
from function_calls.ports import Members
from function_calls.registry import BotFunctions
from function_calls.router import FunctionCallRouter
from function_calls.spec import Became
from function_calls.turn import HistoryLine, Turn, TurnInput
from services.clock import Clock, Deadlines
from services.fault_points import FaultPoints
from services.refs import ChatRef, ReasonCode
from services.store.chats import history
from services.store.port import BadUnit, Store, StoreError, StoreFull
from services.store.turns import inbox, timers
from services.timers.timer import timer_of

SHOWN_AFTER_SECONDS = 0.4
WORKING = "…"

Show = Callable[[ChatRef, str], Awaitable[None]]


class TypingSigns:
    """The signs of all turns, with one timer for all of them: nearly every turn is over before its sign is due."""

    def __init__(self, show: Show) -> None:
        self._show = show
        self._loop: asyncio.AbstractEventLoop | None = None
        self._due: dict[TypingSign, float] = {}
        """When each is to be shown, on the loop's clock; they wait equally long, so the first one is due first."""
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, chat: ChatRef) -> TypingSign:
        """The sign of a turn of `chat` that begins now."""
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()
        sign = TypingSign(chat, self)
        due = self._due[sign] = loop.time() + SHOWN_AFTER_SECONDS
        if self._timer is None:
            self._timer = loop.call_at(due, self._show_due)
        return sign

    def cancel(self, sign: TypingSign) -> None:
        """Do not show the plain sign any more."""
        self._due.pop(sign, None)

    def show(self, chat: ChatRef, text: str) -> None:
        """Show `text`, or with an empty one nothing; best effort, and nobody waits for it."""
        task = asyncio.create_task(self._shown(chat, text))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _shown(self, chat: ChatRef, text: str) -> None:
        await self._show(chat, text)

    def _show_due(self) -> None:
        self._timer = None
        if self._loop is None:
            return
        now = self._loop.time()
        for sign, due in list(self._due.items()):
            if due > now:
                self._timer = self._loop.call_at(due, self._show_due)
                return
            del self._due[sign]
            sign.put_up(WORKING)


class TypingSign:
    """The sign of one turn."""

    __slots__ = ("_chat", "_is_up", "_signs")

    def __init__(self, chat: ChatRef, signs: TypingSigns) -> None:
        self._chat = chat
        self._signs = signs
        self._is_up = False

    async def say(self, text: str) -> None:
        """Show `text` instead of the plain sign."""
        self._signs.cancel(self)
        self.put_up(text)

    def put_up(self, text: str) -> None:
        """Show `text` now."""
        self._is_up = bool(text)
        self._signs.show(self._chat, text)

    def take_down(self) -> None:
        """The turn is over."""
        self._signs.cancel(self)
        if self._is_up:
            self.put_up("")


class WaitingApproval:
    """The question of that id, for the turn that answers it."""

    def __init__(
        self, store: Store, questions: OpenQuestions, decisions: Decisions, id_: int, *, chat: ChatRef, turn_id: int
    ) -> None:
        self._store = store
        self._questions = questions
        self._decisions = decisions
        self._id = id_
        self._chat = chat
        self._turn_id = turn_id

    async def claim(self, allows: bool) -> bool:
        return await self._questions.claim(self._store, self._chat.key, self._id, self._turn_id, allows=allows)

    async def claimed(self) -> bool:
        return await self._questions.claimed(self._store, self._id, self._turn_id)

    async def became(self) -> Became:
        return await self._decisions.of(self._id)

    def others_wait(self) -> bool:
        return bool(self._questions.approvals_in(self._chat.key))


class Past:
    """Reads what was said before one message, and remembers that more of it is to be summarised."""

    def __init__(
        self,
        store: Store,
        summaries: Summaries,
        chats: Chats,
        context: MessageContext,
        turn_id: int,
        count: int,
    ) -> None:
        self._store = store
        self._summaries = summaries
        self._context = context
        self._turn_id = turn_id
        self._chats = chats
        self._count = count
        self._part: Part | None = None
        self._is_cut = False

    async def lines(self) -> Sequence[HistoryLine]:
        """The latest lines in scope, oldest first."""
        chat, part = self._context.chat.key, await self._its_part()
        if part.scope == "chat":
            query = history.recent(chat, self._turn_id, self._count)
        else:
            query = history.recent_in(chat, part.scope, part.value, self._turn_id, self._count)
        return [line_of(row) for row in reversed(await self._store.read(query))]

    async def recall(self) -> str:
        """The summary of what was said before them."""
        self._is_cut = True
        return await self._summaries.of(await self._its_part())

    def is_over(self) -> None:
        """The turn has ended: what it could not be shown may be summarised for the next one."""
        if self._is_cut and self._part is not None:
            self._summaries.consider(self._part, self._turn_id, self._chats.profile(self._context.chat))

    async def _its_part(self) -> Part:
        if self._part is None:
            chat = self._context.chat.key
            scope = self._chats.profile(self._context.chat).context_scope if self._context.is_group else "chat"
            value = ""
            if scope == "member":
                value = self._context.sender.ref.key
            elif scope == "thread":
                rows = await self._store.read(history.thread(self._turn_id))
                value = (rows[0]["thread"] or "") if rows else ""
            self._part = Part(chat, scope, value)
        return self._part


_log = structlog.get_logger("turns")
_GRACE_SECONDS = 5.0
_FULL_DISK_SECONDS = 5.0
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
        """Answer the message of `job`. Raises StoreError when nothing can be
        kept. Where only the end of this turn cannot, it is said that something went wrong, unless that cannot be kept
        either: then it raises why."""
        # One log for all attempts: what is known and could not be written yet is known to the next one.
        log = StoreTurnLog(self._store, job.runs_for, job.turn_id, self._clock, self._faults)
        while True:
            try:
                await self._attempt(job, log)
            except StoreError as problem:
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
            turn.output.begins = self._beginnings.claim(job.context, turn, is_aside=job.immediate)
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
        is_silent = context.private or job.runs_for.private or context.kind is Kind.EXPIRY

        given = TurnInput(
            id=str(job.turn_id),
            functions=self._functions(context.bot),
            profile=lambda: profiles.profile(chat),
            log=log,
            past=past,
            # Private messages show no progress to the group either.
            status=_nothing_is_shown if is_silent else sign.say,
            addressed=job.addressed,
            live_role=functools.partial(self._members.role, chat),
        )
        if job.question is not None:
            approval = WaitingApproval(
                self._store, self._questions, self._decisions, job.question.id, chat=chat, turn_id=job.turn_id
            )
            given = replace(given, answering=(job.question, context.text), approval=approval)
        turn = Turn(given, self._clock.monotonic() + self._settings.turn_timeout_seconds)
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
            text, setting = turn.input.profile().texts.say("model.timeout"), "router.turn_timeout_seconds"
            return unserved or interrupted(job, turn, log.results, ReasonCode.MODEL_FAILED, text, setting)
        except StoreError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the border where a failing turn becomes an answer
            short_id = uuid.uuid4().hex[:8]
            _log.error("turn_failed", turn=turn.input.id, id=short_id, exc_info=error)
            text = turn.input.profile().texts.say("failures.turn", id=short_id)
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
        _log.error("turn_given_up", turn=turn.input.id, attempts=job.attempts)
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
        if turn.input.functions.beginning is None or not self._beginnings.claim(context, turn, is_aside=job.immediate):
            return await self._answered(context, turn, router)
        begun = await self._beginnings.begin(context, turn, router)
        outcome = await self._answered(context, turn, router)
        if begun is not None and outcome.question is not None:
            begun = await self._beginnings.give_way(context, turn, begun, router)
        return with_beginning(begun, outcome)

    async def _answered(self, context: MessageContext, turn: Turn, router: FunctionCallRouter) -> TurnOutcome:
        outcome = await router.dispatch(context, turn)
        if outcome.kind is OutcomeKind.SENT:
            return outcome
        if outcome.kind is OutcomeKind.FALLBACK and not turn.memory.effects:
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
