"""Turns: lease, dispatch, commit. Exceptions become replies."""

from __future__ import annotations

import asyncio
import functools
import uuid
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import orjson
import structlog

from bot.chats.chat_notes import StartScripts, with_start_messages
from bot.chats.chats import Chats
from bot.chats.open_questions import OpenQuestions
from bot.chats.summaries import Part, Summaries, line_of
from bot.delivery.delivery import Delivery
from bot.engine.embedded import Job
from bot.intake.gate import ApprovalOutcomes
from bot.platforms.base import Outgoing
from bot.turns.attached import AttachedFiles
from bot.turns.closing import Closing, end_not_stored, explained, given_up, interrupted, stopped
from bot.turns.turn_log import StoreTurnLog
from bot.turns.voice import Voice
from config.settings import RouterSettings
from function_calls.context import Kind, MessageContext, context_to_json
from function_calls.outcome import OutcomeKind, TurnOutcome, sent
from function_calls.ports import Members
from function_calls.registry import BotFunctions
from function_calls.router import FunctionCallRouter
from function_calls.schema.commands import spoken_name
from function_calls.spec import ApprovalOutcome
from function_calls.turn import HistoryLine, Turn, TurnInput
from services.background import Background
from services.chats.members import MemberZones
from services.chats.memory import Memory, Place
from services.clock import Clock, Deadlines
from services.fault_points import FaultPoints
from services.patterns import visible_line
from services.refs import ChatRef, ReasonCode
from services.store.chats import history
from services.store.port import BadUnit, Store, StoreError, StoreFull
from services.store.turns import inbox, timers
from services.timers.timer import timer_of

SHOWN_AFTER_SECONDS = 0.4
WORKING = "…"


class TypingIndicator:
    """Typing indicator of one turn, which shows itself after `SHOWN_AFTER_SECONDS`."""

    __slots__ = ("_is_shown", "_show", "_task", "_timer", "follow", "text")

    def __init__(self, show: Callable[[str], None]) -> None:
        """`show` shows a text in the chat of the turn; an empty text clears the status."""
        self._show = show
        self._is_shown = False
        self._task: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(SHOWN_AFTER_SECONDS, self.show, WORKING)
        self.text = ""
        """The latest text of `say`."""
        self.follow: Callable[[], Coroutine[object, object, None]] | None = None
        """Started when the indicator is first shown, and cancelled by `stop_following`."""

    async def say(self, text: str) -> None:
        """Show `text` instead of the default indicator."""
        self.text = text
        self._timer.cancel()
        self.show(text)

    def show(self, text: str) -> None:
        """Show `text` in the chat now; an empty text ends the display."""
        self._is_shown = bool(text)
        self._show(text)
        if text and self.follow is not None and self._task is None:
            self._task = asyncio.create_task(self.follow())

    def stop_following(self) -> None:
        """Cancel the task of `follow`, and start it no more."""
        self.follow = None
        if self._task is not None:
            self._task.cancel()

    def clear(self) -> None:
        """Cancel the indicator and clear the status at the end of the turn."""
        self.stop_following()
        self._timer.cancel()
        if self._is_shown:
            self.show("")


@dataclass(eq=False, repr=False)
class WaitingApproval:
    """State of one approval question, for the turn that answers it."""

    store: Store
    questions: OpenQuestions
    decisions: ApprovalOutcomes
    id: int
    chat: ChatRef
    turn_id: int

    async def claim(self, allows: bool) -> bool:
        return await self.questions.claim(self.store, self.chat.key, self.id, self.turn_id, allows=allows)

    async def claimed(self) -> bool:
        return await self.questions.claimed(self.store, self.id, self.turn_id)

    async def how_closed(self) -> ApprovalOutcome:
        return await self.decisions.how_closed(self.id)

    def others_wait(self) -> bool:
        return bool(self.questions.approvals_in(self.chat.key))


@dataclass(eq=False, repr=False)
class TurnHistory:
    """History before one message. Requests a summary after the turn if the history was longer than shown."""

    store: Store
    summaries: Summaries
    chats: Chats
    context: MessageContext
    turn_id: int
    count: int

    def __post_init__(self) -> None:
        self._part: Part | None = None
        self._is_cut = False

    async def lines(self) -> Sequence[HistoryLine]:
        """The latest lines in scope, oldest first. Raises StoreError."""
        chat, part = self.context.chat.key, await self._own_part()
        if part.scope == "chat":
            query = history.recent(chat, self.turn_id, self.count)
        else:
            query = history.recent_in(chat, part.scope, part.value, self.turn_id, self.count)
        return [line_of(row) for row in reversed(await self.store.read(query))]

    async def recall(self) -> str:
        """The summary of what was said before `lines`."""
        self._is_cut = True
        return await self.summaries.of(await self._own_part())

    def turn_ended(self) -> None:
        """Request a summary of the part that the turn could not see, for the next turn."""
        if self._is_cut and self._part is not None:
            self.summaries.consider(self._part, self.turn_id, self.chats.profile(self.context.chat))

    async def _own_part(self) -> Part:
        if self._part is None:
            chat = self.context.chat.key
            scope = self.chats.profile(self.context.chat).context_scope if self.context.is_group else "chat"
            value = ""
            if scope == "member":
                value = self.context.sender.ref.key
            elif scope == "thread":
                rows = await self.store.read(history.thread(self.turn_id))
                value = (rows[0]["thread"] or "") if rows else ""
            self._part = Part(chat, scope, value)
        return self._part


_log = structlog.get_logger("turns")
_GRACE_SECONDS = 5.0
_STATUS_SECONDS = 3.0
"""Minimum interval between changes of a status message."""
_STATUS_CHARS = 200
_FULL_DISK_SECONDS = 5.0
_CHIME_IN_WITHIN = timedelta(minutes=2)
_SPECIFIC_REASONS = frozenset({ReasonCode.NOT_ADDRESSED, ReasonCode.EXPIRED, ReasonCode.UNKNOWN_COMMAND})
"""Reasons of silent turns that are kept because they are more specific than SILENT."""


@dataclass(eq=False, repr=False, kw_only=True)
class Turns:
    """Runs the turns of the jobs that the engine dispatches."""

    router: FunctionCallRouter
    functions: Callable[[str], BotFunctions]
    chats: Chats
    members: Members
    questions: OpenQuestions
    decisions: ApprovalOutcomes
    start_scripts: StartScripts
    closing: Closing
    store: Store
    delivery: Delivery
    zones: MemberZones
    memory: Memory
    attached: AttachedFiles
    voice: Voice
    summaries: Summaries
    deadlines: Deadlines
    settings: RouterSettings
    attempts: int
    clock: Clock
    epoch: int
    faults: FaultPoints

    def __post_init__(self) -> None:
        self._background = Background()

    def show_typing(self, chat: ChatRef, text: str) -> None:
        """Show `text` as the status of a turn in `chat`, best effort; an empty text clears the status."""
        self._background.start(self.delivery.typing(chat, text))

    def use(self, router: FunctionCallRouter, settings: RouterSettings, attempts: int) -> None:
        """Apply new settings to turns that start from now on."""
        self.router = router
        self.settings = settings
        self.attempts = attempts

    async def run(self, job: Job) -> None:
        """Answer the message of `job`. If only the end of this turn cannot be stored, replies with an error message
        instead. Raises StoreError if nothing can be stored."""
        # One log for all attempts, so that a retry knows the results that could not be written yet.
        log = StoreTurnLog(self.store, job.runs_for, job.turn_id, self.clock, self.faults)
        while True:
            try:
                await self._attempt(job, log)
            except StoreError as problem:
                if isinstance(problem, BadUnit) and not job.end_error_id:
                    _end_with_error(job, log, problem)
                    continue
                if not isinstance(problem, StoreFull):
                    raise
                _log.error("turn_waits_for_room", turn=job.turn_id, problem=str(problem))
                job.answered = True
                await self.clock.sleep(_FULL_DISK_SECONDS)
                job.repeated = True
            except Exception as problem:
                if job.end_error_id:
                    raise
                _end_with_error(job, log, problem)
            else:
                return

    async def _attempt(self, job: Job, log: StoreTurnLog) -> None:
        job.answered, job.started_ms = False, self.clock.now_ms()
        sign = TypingIndicator(functools.partial(self.show_typing, job.context.chat))
        unasked = bool(job.context.unasked)
        unheard = self.voice.may_name_bot(job.context)
        if unasked or unheard:
            sign.clear()
        past = self._history(job)
        turn = self._turn(job, log, sign, past)
        seconds = self.settings.status_after_seconds
        is_silent = unasked or unheard or _is_silent(job)
        if seconds and not is_silent and self.delivery.has_status_messages(job.context.chat):
            sign.follow = functools.partial(self._show_status, job, turn, sign, self.clock.monotonic() + seconds)
        try:
            if (job.recovered or job.repeated) and not unasked:
                # An earlier attempt may have started the chat, whatever the outcome of this one.
                is_first = await self.start_scripts.claim(job.context, turn, is_aside=job.immediate)
                turn.output.ran_start_function = is_first
            if job.end_error_id:
                outcome = end_not_stored(job, turn, log.results, job.end_error_id)
            else:
                outcome = (
                    stopped(job, turn, log.results)
                    if job.stopped
                    else await self._answer_or_explain(job, turn, log, self.router)
                )
            if unasked and outcome.reason is not ReasonCode.CHIMED_IN:
                outcome = sent(ReasonCode.NOT_CHIMED_IN, [], turn.input.profile().layers["chime_in"])
            job.answered = True
            sign.stop_following()
            await self.closing.close(job, turn, log, outcome)
            past.turn_ended()
        finally:
            sign.clear()
            log.unbind()

    async def _show_status(self, job: Job, turn: Turn, sign: TypingIndicator, at: float) -> None:
        """Post the status message at the time `at` of the monotonic clock, and keep it up to date until cancelled."""
        context, shown = job.context, ""
        reply_to = context.key.native_id if context.kind is Kind.MESSAGE else None
        await self.clock.sleep(at - self.clock.monotonic())
        while True:
            text = _status_text(turn, sign.text)
            if text != shown and self.delivery.show_status(
                job.turn_id, Outgoing(context.chat, "", text, reply_to=reply_to)
            ):
                shown = text
            await self.clock.sleep(_STATUS_SECONDS)

    def _history(self, job: Job) -> TurnHistory:
        # One line more than is shown, to detect that history is left out.
        count = self.settings.history_messages and self.settings.history_messages + 1
        return TurnHistory(self.store, self.summaries, self.chats, job.context, job.turn_id, count)

    def _turn(self, job: Job, log: StoreTurnLog, sign: TypingIndicator, past: TurnHistory) -> Turn:
        context = job.context
        chat = context.chat
        profiles = self.chats
        place = Place(chat.key, context.sender.ref.key if context.is_group and context.private else "")
        turn_input = TurnInput(
            id=str(job.turn_id),
            functions=self.functions(context.bot),
            profile=lambda: profiles.profile(chat),
            log=log,
            history=past,
            # A private message shows no progress in the group.
            status=_nothing_is_shown if _is_silent(job) else sign.say,
            addressed=job.addressed,
            live_role=functools.partial(self.members.role, chat),
            own_zone=functools.partial(self.zones.of, context.sender.ref),
            recall=functools.partial(self.memory.recall, place),
            attached=lambda: self.attached.load(context, profiles.profile(chat)),
            network=self.delivery.shows(chat),
            leave_queue=functools.partial(job.leave_queue, job) if job.leave_queue else None,
        )
        if job.question is not None:
            approval = WaitingApproval(
                self.store, self.questions, self.decisions, job.question.id, chat=chat, turn_id=job.turn_id
            )
            turn_input = replace(turn_input, answering=(job.question, context.text), approval=approval)
        turn = Turn(turn_input, self.clock.monotonic() + self.settings.turn_timeout_seconds)
        log.bind(turn)
        return turn

    async def _answer_or_explain(
        self, job: Job, turn: Turn, log: StoreTurnLog, router: FunctionCallRouter
    ) -> TurnOutcome:
        unserved = self._no_longer_served(job.context)
        if job.attempts >= self.attempts:
            return unserved or await self._give_up(job, turn, log)
        if unserved is not None and job.question is None:
            return unserved
        try:
            await self._count_and_load(job, log)
            if unserved is not None:
                await self.deadlines.run(router.end_waiting(job.context, turn), turn.deadline + _GRACE_SECONDS)
                return unserved
            return await self.deadlines.run(
                self._hear_and_dispatch(job, turn, router), lambda: turn.deadline + _GRACE_SECONDS
            )
        except asyncio.CancelledError:
            if not job.stopped:
                raise
            return stopped(job, turn, log.results)
        except TimeoutError:
            text, setting = turn.input.profile().texts.say("model.timeout"), "router.turn_timeout_seconds"
            return unserved or interrupted(job, turn, log.results, ReasonCode.MODEL_FAILED, text, setting)
        except StoreError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - boundary: the exception of a turn becomes a reply
            short_id = uuid.uuid4().hex[:8]
            _log.error("turn_failed", turn=turn.input.id, id=short_id, exc_info=error)
            text = turn.input.profile().texts.say("failures.turn", id=short_id)
            return unserved or interrupted(job, turn, log.results, ReasonCode.FUNCTION_FAILED, text, short_id)

    async def _count_and_load(self, job: Job, log: StoreTurnLog) -> None:
        """Before the repeated run of a turn: durably count the attempt, which may crash the process, and load the log.
        Does nothing in the first run. Raises StoreError."""
        if job.recovered and not job.is_counted:
            await self.store.commit([inbox.take_up(job.turn_id, self.epoch, job.attempts + 1)])
        if job.recovered or job.repeated:
            await log.load()

    async def _give_up(self, job: Job, turn: Turn, log: StoreTurnLog) -> TurnOutcome:
        """Outcome of a turn whose runs crashed the process too often. Nothing of it is run again. Raises StoreError."""
        _log.error("turn_given_up", turn=turn.input.id, attempts=job.attempts)
        await log.load()
        timer = None
        if job.context.timer is not None:
            rows = await self.store.read(timers.of_id(job.context.timer.timer_id))
            timer = timer_of(rows[0]) if rows else None
        return given_up(job, turn, log.results, timer)

    def _no_longer_served(self, context: MessageContext) -> TurnOutcome | None:
        """Silent outcome if the settings no longer serve the chat; None if they do."""
        served = self.chats.of(context.chat)
        if served.allowed_by is None:
            return sent(ReasonCode.CHAT_NOT_ALLOWED, [], "chats.allow")
        if not served.settings.enabled:
            return sent(ReasonCode.CHAT_OFF, [], served.settings.layers["enabled"])
        return None

    async def _hear_and_dispatch(self, job: Job, turn: Turn, router: FunctionCallRouter) -> TurnOutcome:
        """Outcome of a turn. What is heard in a voice message is stored as its text first, so that a repeated run does
        not hear it again. Raises StoreError."""
        if self.voice.concerns(job.context):
            heard = await self.voice.hear(job.context, turn)
            if isinstance(heard, TurnOutcome):
                return heard
            context, chat = heard, heard.chat
            body = orjson.dumps(context_to_json(context)).decode()
            # The history has a line for each of several joined messages.
            edited = [] if context.parts else [history.edited(chat.key, context.key.native_id, context.marked_text)]
            await self.store.commit([inbox.replace(job.turn_id, body), *edited])
            job.context, answering = context, turn.input.answering
            turn.input = replace(
                turn.input,
                attached=lambda: self.attached.load(context, self.chats.profile(chat)),
                addressed=turn.input.addressed or context.calls_bot,
                answering=None if answering is None else (answering[0], context.text),
            )
        if job.question is None and self.voice.is_for_others(job.context):
            return TurnOutcome(OutcomeKind.SILENT, ReasonCode.NOT_ADDRESSED)
        outcome = await self._dispatch_with_current_role(job, turn, router)
        if not job.context.spoken:
            return outcome
        platform = self.delivery.platform(job.context.chat)
        most_bytes = platform.limits.file_bytes if platform is not None and platform.limits.attachments else 0
        return await self.voice.answered(outcome, job.context, turn, most_bytes=most_bytes)

    async def _dispatch_with_current_role(self, job: Job, turn: Turn, router: FunctionCallRouter) -> TurnOutcome:
        context = job.context
        if context.unasked:
            return await self._join_in(context, turn, router)
        # The role comes from the current settings, not from the time of the message.
        role = self.chats.role(context.sender.ref.key, context.sender.role)
        if role is not context.sender.role:
            context = replace(context, sender=replace(context.sender, role=role))
        if turn.input.functions.start_function is None or not await self.start_scripts.claim(
            context, turn, is_aside=job.immediate
        ):
            return await self._route_or_chat(context, turn, router)
        start = await self.start_scripts.begin(context, turn, router)
        outcome = await self._route_or_chat(context, turn, router)
        if start is not None and outcome.question is not None:
            start = await self.start_scripts.drop_question(context, turn, start, router)
        return with_start_messages(start, outcome)

    async def _join_in(self, context: MessageContext, turn: Turn, router: FunctionCallRouter) -> TurnOutcome:
        """Outcome of a turn in which the bot speaks unasked; silent if it may not any more, or if it is too late."""
        now = self.clock.now()
        if now - context.sent_at > _CHIME_IN_WITHIN or self.chats.quiet_until(context.chat, now) is not None:
            return sent(ReasonCode.NOT_CHIMED_IN, [])
        outcome = await router.dispatch(context, turn)
        if outcome.reason is not ReasonCode.CHAT:
            return outcome
        return replace(outcome, reason=ReasonCode.CHIMED_IN, detail=turn.input.profile().layers["chime_in"])

    async def _route_or_chat(self, context: MessageContext, turn: Turn, router: FunctionCallRouter) -> TurnOutcome:
        outcome = await router.dispatch(context, turn)
        if outcome.kind is OutcomeKind.SENT:
            return outcome
        if outcome.kind is OutcomeKind.FALLBACK and not turn.memory.effects:
            return explained(await router.run_chat_fallback(context, turn), outcome, turn)
        if outcome.error is None and outcome.reason not in _SPECIFIC_REASONS:
            return replace(outcome, kind=OutcomeKind.SILENT, reason=ReasonCode.SILENT)
        return outcome


def _end_with_error(job: Job, log: StoreTurnLog, problem: Exception) -> None:
    """Make the next attempt of `job` report an error only: one message must not end the process."""
    job.end_error_id, job.repeated = uuid.uuid4().hex[:8], True
    log.drop()
    _log.error("turn_cannot_be_kept", turn=job.turn_id, id=job.end_error_id, exc_info=problem)


def _is_silent(job: Job) -> bool:
    """Whether the turn shows no progress: its answer is private, or nobody waits for it."""
    return job.context.private or job.runs_for.private or job.context.kind is Kind.EXPIRY


def _status_text(turn: Turn, text: str) -> str:
    """Text of the status message: `text` of the running function, or else the function's name and its place among the
    calls of the model's answer."""
    texts, running = turn.input.profile().texts, turn.memory.running
    if not text and running is not None:
        text = spoken_name(running, texts.language)
        number, count = turn.memory.place
        if count > 1:
            text = texts.say("status.of_several", name=text, number=number, count=count)
    text = visible_line(text)[:_STATUS_CHARS].rstrip(" .…")
    return texts.say("status.working_on", status=text) if text else texts.say("status.working")


async def _nothing_is_shown(text: str) -> None:
    return None
