"""Function calls outside of a chat's queue: from the command line or another program."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from typing import Any, NamedTuple

import structlog

from bot.chats.chats import Chats
from bot.delivery.delivery import Address, Delivery, Origin, OutboxRows
from bot.delivery.outgoing import OutboundMessage, addressed_to
from bot.intake.intake import normalized_text
from bot.turns.closing import served_platform
from bot.turns.turn_log import StoreTurnLog
from config.texts import Phrases
from function_calls.call import CallRequest, Path
from function_calls.checks.permissions import callable_here
from function_calls.context import Kind, MessageContext, MessageKey, Sender
from function_calls.failures import unknown
from function_calls.invocation import Invoker
from function_calls.questions.callers import Answering, Asked, Person, Reply, question_for_caller, read_reply
from function_calls.questions.input_questions import MOST_QUESTIONS
from function_calls.questions.open_questions import Answered
from function_calls.registry import BotFunctions, FunctionRegistry
from function_calls.spec import (
    ApprovalQuestion,
    ArgumentQuestion,
    FunctionResult,
    FunctionSpec,
    InputQuestion,
    Message,
    Question,
)
from function_calls.turn import Turn, TurnInput
from services.background import Background
from services.clock import Clock, Deadlines
from services.fault_points import FaultPoints
from services.llm.model import CallersModel
from services.refs import ChatRef, Effect, ErrorCode, MemberRef, Role
from services.store.ids import Ids
from services.store.port import Store, StoreError, Write
from services.timers.timetable import Timetable

_MOST_TRIES = 3
"""How often a question is repeated after answers that do not fit."""
_LONGEST_ANSWER = 32_768

_log = structlog.get_logger("direct_calls")


@dataclass(slots=True)
class RunningCall:
    """One call in progress."""

    context: MessageContext
    turn: Turn
    turn_id: int
    log: StoreTurnLog
    path: Path
    here: list[Message] = field(default_factory=list)
    unsent: list[Message] = field(default_factory=list)
    sent_elsewhere: int = 0
    is_handed_over: bool = False
    """The caller is gone, and another task ends the run."""


BeforeAsking = Callable[[RunningCall, FunctionResult], Awaitable[None]]


@dataclass(eq=False, repr=False)
class CallerQuestions:
    """Asks callers the questions of a run and resumes it with their answers."""

    answering: Answering
    registry: FunctionRegistry
    store: Store
    deadlines: Deadlines
    clock: Clock
    wait_seconds: Callable[[Question], float]
    """How long a question waits for its answer."""

    def __post_init__(self) -> None:
        self._ending = Background()

    async def settled(self) -> None:
        """Wait for the runs whose callers disconnected before they answered."""
        await self._ending.idle()

    async def with_answers(
        self, running: RunningCall, result: FunctionResult, person: Person, before_asking: BeforeAsking
    ) -> FunctionResult:
        """The final result of the run, after all questions in `result` that the caller may answer. `before_asking` is
        called with each result that asks."""
        turn, path = running.turn, running.path
        filled: frozenset[str] = frozenset()
        for _ in range(MOST_QUESTIONS):
            asked = question_for_caller(result, turn, filled)
            if asked is None:
                break
            await before_asking(running, result)
            reply = await self._reply(running, asked, person)
            if reply.role is not None:
                sender = replace(running.context.sender, role=reply.role)
                running.context = replace(running.context, sender=sender)
            turn.input = replace(turn.input, functions=self.registry.of(running.context.bot))
            if isinstance(asked.question, ArgumentQuestion):
                filled |= {asked.question.field}
            result = await self.answering.resume(running.context, turn, asked, reply, path)
        question = result.question
        if question is None or question.saved_run is None:
            return result
        # The question needs another member's approval, or there were too many questions.
        ended = await self.answering.end(running.context, turn, question, path)
        return result if isinstance(question, ApprovalQuestion) and ended.error is None else ended

    async def _reply(self, running: RunningCall, asked: Asked, person: Person) -> Reply:
        """The caller's answer, after up to three attempts. The call's deadline is extended by the time that it took."""
        turn, question = running.turn, asked.question
        began = self.clock.monotonic()
        by = began + self.wait_seconds(question)
        try:
            for _ in range(_MOST_TRIES):
                reply = await self.deadlines.run(person.answer(asked), by)
                if reply.kind != "answered":
                    return reply
                text = normalized_text(reply.text, _LONGEST_ANSWER)
                if read_reply(question, text, turn.input.profile().texts).kind is not Answered.UNRELATED:
                    return reply._replace(text=text)
            _log.warning("answers_are_none", turn=turn.input.id, function=question.function)
        except TimeoutError:
            pass
        except asyncio.CancelledError:
            running.is_handed_over = True
            self._ending.start(self._end(running, question), "a run whose caller is gone")
            raise
        finally:
            turn.deadline += self.clock.monotonic() - began
        return Reply("expired")

    async def _end(self, running: RunningCall, question: Question) -> None:
        """End the run whose caller disconnected, as if the question had expired."""
        try:
            await self.answering.end(running.context, running.turn, question, running.path)
            await self.store.commit(running.log.rest())
        except StoreError as error:
            _log.error("run_not_ended", turn=running.turn.input.id, function=question.function, problem=str(error))
        finally:
            running.log.unbind()


_WITHOUT_PEOPLE = frozenset({"cli", "mcp"})
"""Platforms whose chats exist on no network, so that later messages reach nobody."""

Status = Callable[[str], Awaitable[None]]
"""Shows a progress text while a run takes long."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a function: member, role, chat and path."""

    member: MemberRef
    name: str
    role: Role
    chat: ChatRef
    is_group: bool
    path: Path


class Called(NamedTuple):
    """Result of a call."""

    result: FunctionResult
    here: tuple[Message, ...] = ()
    """Messages for the caller, in this chat or private."""
    unsent: tuple[Message, ...] = ()
    """Messages for other members or chats that cannot be sent from here."""
    unheard: bool = False
    """The call scheduled something in a chat where nobody will receive it."""


async def _nothing_is_shown(text: str) -> None:
    return None


@dataclass(eq=False, repr=False, kw_only=True)
class DirectCalls:
    """Runs functions for callers outside of a chat's queue."""

    registry: FunctionRegistry
    chats: Chats
    invoker: Invoker
    store: Store
    delivery: Delivery
    timetable: Timetable
    timeout_seconds: float
    """Limit for one call with all its nested runs, not counting the wait for answers."""
    wait_seconds: InitVar[Callable[[Question], float]]
    deadlines: InitVar[Deadlines]
    clock: Clock
    ids: Ids
    epoch: InitVar[int]
    faults: FaultPoints

    def __post_init__(self, wait_seconds: Callable[[Question], float], deadlines: Deadlines, epoch: int) -> None:
        self._questions = CallerQuestions(
            Answering(self.invoker), self.registry, self.store, deadlines, self.clock, wait_seconds
        )
        self._rows = OutboxRows(self.ids, epoch)

    def functions(self, chat: ChatRef) -> BotFunctions:
        """The functions of the bot that serves `chat`."""
        return self.registry.of(self.chats.of(chat).settings.bot)

    def functions_of(self, bot: str) -> BotFunctions:
        """The functions of `bot`."""
        return self.registry.of(bot)

    def callable_by(self, caller: Caller) -> Sequence[FunctionSpec]:
        """The functions that `caller` may call now, in registration order."""
        context = self._context(caller)
        return callable_here(context, self._turn(context, 0), caller.path)

    async def call(
        self,
        caller: Caller,
        name: str,
        arguments: Mapping[str, Any],
        *,
        confirmed: bool = False,
        status: Status = _nothing_is_shown,
        person: Person | None = None,
        model: CallersModel | None = None,
    ) -> Called:
        """Run the function `name`. `person` answers its questions, and `model` is the caller's language model. On
        cancellation, ended runs are recorded, a running effect stays unknown, and a run that waits for an answer ends
        as expired. Raises StoreError."""
        context, turn_id = self._context(caller), self.ids.next()
        log = StoreTurnLog(self.store, context, turn_id, self.clock, self.faults)
        turn = self._turn(context, turn_id, log=log, status=status, can_ask=person is not None, callers_model=model)
        log.bind(turn)
        running = RunningCall(context, turn, turn_id, log, caller.path)
        try:
            result = await self.invoker.invoke(
                CallRequest(context, name, arguments, turn, caller.path, confirmed=confirmed)
            )
            if person is not None and result.question is not None:
                result = await self._questions.with_answers(running, result, person, self._before_asking)
        except BaseException:
            if not running.is_handed_over:
                self.store.post(log.rest())
            if turn.memory.in_flight:
                _log.warning(
                    "call_cut_short", turn=turn.input.id, function=turn.memory.in_flight, member=caller.member.key
                )
            raise
        finally:
            if not running.is_handed_over:
                log.unbind()
        writes, outbound = self._sorted(running, result.messages)
        # The run is over: a cancelled caller must not undo its messages and writes.
        await asyncio.shield(self._keep([*log.rest(), *writes], outbound))
        return Called(result, tuple(running.here), tuple(running.unsent), await self._is_unknown(name, context, turn))

    async def settled(self) -> None:
        """Wait for the runs whose callers disconnected before they answered."""
        await self._questions.settled()

    async def _before_asking(self, running: RunningCall, result: FunctionResult) -> None:
        """Commit the writes and send the messages for others before the caller is asked, which may take long."""
        messages = result.messages if isinstance(result.question, InputQuestion) else ()
        writes, outbound = self._sorted(running, messages)
        await running.log.settle()
        if writes:
            await self._keep(writes, outbound)

    def _context(self, caller: Caller) -> MessageContext:
        chat = caller.chat
        return MessageContext(
            key=MessageKey(chat, uuid.uuid4().hex),
            kind=Kind.MESSAGE,
            chat=chat,
            is_group=caller.is_group,
            sender=Sender(caller.member, caller.name, caller.role),
            text="",
            sent_at=self.clock.now(),
            bot=self.chats.of(chat).settings.bot,
        )

    def _turn(self, context: MessageContext, turn_id: int, **options: Any) -> Turn:
        """A new turn; `options` are further fields of its TurnInput."""
        chat, chats = context.chat, self.chats
        functions = self.registry.of(context.bot)
        turn_input = TurnInput(str(turn_id), functions, lambda: chats.profile(chat), **options)
        return Turn(turn_input, self.clock.monotonic() + self.timeout_seconds)

    async def _keep(self, writes: Sequence[Write], outbound: Sequence[OutboundMessage]) -> None:
        await self.store.commit(writes)
        self.delivery.hand_over(outbound)

    def _sorted(self, running: RunningCall, messages: Sequence[Message]) -> tuple[list[Write], list[OutboundMessage]]:
        """The writes and outbound messages for those of `messages` that go to others. Messages for the caller, and
        those that cannot be sent, are added to `running`."""
        writes: list[Write] = []
        outbound: list[OutboundMessage] = []
        context, turn = running.context, running.turn
        profile, now_ms = turn.input.profile(), self.clock.now_ms()
        here, elsewhere = _split_by_chat(messages, context)
        running.here += here
        for number, message in enumerate(elsewhere, running.sent_elsewhere):
            chat, private_to = addressed_to(message, context.chat)
            platform = served_platform(chat, context.chat, self.delivery, self.chats, turn.input.id)
            if platform is None:
                running.unsent.append(message)
                continue
            origin = Origin(
                turn_id=running.turn_id,
                number=number,
                asked_by=context.sender.ref,
                bot_name=profile.bot_name,
                texts=profile.texts,
                outside=bool(turn.memory.outside),
            )
            rows, pieces = self._rows.of(message, Address(chat, private_to, platform), origin, now_ms)
            writes += rows
            outbound += pieces
        running.sent_elsewhere += len(elsewhere)
        return writes, outbound

    async def _is_unknown(self, name: str, context: MessageContext, turn: Turn) -> bool:
        """Whether the call scheduled something, such as a reminder, that will reach nobody."""
        if context.chat.platform not in _WITHOUT_PEOPLE or not turn.memory.effects:
            return False
        spec = turn.input.functions.find(name)
        if spec is None or spec.execution.effect is Effect.READ:
            return False
        for number in range(turn.memory.runs):
            if await self.timetable.added_by(f"{turn.input.id}:{number}"):
                return True
        return False


def stopped(spec: FunctionSpec, texts: Phrases) -> FunctionResult:
    """The result of a cancelled run, for a caller who still waits for it: CANCELLED, or an unknown outcome if the
    function must run only once."""
    if spec.execution.effect is Effect.ONCE:
        return unknown(spec, texts)
    return FunctionResult.fail(ErrorCode.CANCELLED, texts.say("stop.stopped"))


def _split_by_chat(messages: Sequence[Message], context: MessageContext) -> tuple[list[Message], list[Message]]:
    """The messages for the caller and those for others, without empty ones for others."""
    here: list[Message] = []
    elsewhere: list[Message] = []
    for message in messages:
        if message.to in (None, context.chat, context.sender.ref):
            here.append(message)
        elif message.text.strip() or message.attachments:
            elsewhere.append(message)
    return here, elsewhere
