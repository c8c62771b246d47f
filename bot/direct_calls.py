"""Runs of a function outside a chat's queue: from the command line or another program."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import structlog

from bot.chats.chats import Chats
from bot.delivery.delivery import Address, Delivery, Origin, OutboundMessage, OutboxRows
from bot.delivery.outgoing import addressed_to
from bot.intake.intake import fit_text
from bot.turns.turn_log import StoreTurnLog
from config.texts import Phrases
from function_calls.call import CallRequest, Path
from function_calls.checks.permissions import callable_here
from function_calls.context import Kind, MessageContext, MessageKey, Sender
from function_calls.failures import unknown
from function_calls.invocation import Invoker
from function_calls.questions.callers import Answering, Asked, Person, Reply, to_ask, understood
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
from services.clock import Clock, Deadlines
from services.fault_points import FaultPoints
from services.llm.model import CallersModel
from services.refs import ChatRef, Effect, ErrorCode, MemberRef, Role
from services.store.ids import Ids
from services.store.port import Store, StoreError, Write
from services.timers.timetable import Timetable

_MOST_TRIES = 3
"""So often the same thing is asked of somebody whose answers are none."""
_LONGEST_ANSWER = 32_768

_log = structlog.get_logger("direct_calls")


@dataclass(slots=True)
class RunningCall:
    """One call while it runs."""

    context: MessageContext
    turn: Turn
    turn_id: int
    log: StoreTurnLog
    path: Path
    here: list[Message] = field(default_factory=list)
    unsent: list[Message] = field(default_factory=list)
    said_elsewhere: int = 0
    is_handed_over: bool = False
    """Whoever called is gone, and what they began is being ended by somebody else."""


BeforeAsking = Callable[[RunningCall, FunctionResult], Awaitable[None]]


class CallerQuestions:
    """Puts questions to callers and goes on with their answers."""

    def __init__(
        self,
        answering: Answering,
        registry: FunctionRegistry,
        store: Store,
        deadlines: Deadlines,
        clock: Clock,
        wait_seconds: Callable[[Question], float],
    ) -> None:
        """`wait_seconds`: how long a question waits."""
        self._answering = answering
        self._registry = registry
        self._store = store
        self._deadlines = deadlines
        self._clock = clock
        self._wait_seconds = wait_seconds
        self._ending: set[asyncio.Task[None]] = set()

    async def settled(self) -> None:
        """Return when the runs have come to their end whose callers went away before they had answered."""
        while self._ending:
            await asyncio.wait(self._ending)

    async def with_answers(
        self, running: RunningCall, result: FunctionResult, person: Person, before_asking: BeforeAsking
    ) -> FunctionResult:
        """`result`, and where it asks what whoever called may answer, what came of that in the end. `before_asking` is
        called with each result that asks."""
        turn, path = running.turn, running.path
        filled: frozenset[str] = frozenset()
        for _ in range(MOST_QUESTIONS):
            asked = to_ask(result, turn, filled)
            if asked is None:
                break
            await before_asking(running, result)
            reply = await self._reply(running, asked, person)
            if reply.role is not None:
                sender = replace(running.context.sender, role=reply.role)
                running.context = replace(running.context, sender=sender)
            turn.input = replace(turn.input, functions=self._registry.of(running.context.bot))
            if isinstance(asked.question, ArgumentQuestion):
                filled |= {asked.question.field}
            result = await self._answering.resume(running.context, turn, asked, reply, path)
        question = result.question
        if question is None or question.saved_run is None:
            return result
        # It needs the approval of another member, or asks too often.
        ended = await self._answering.end(running.context, turn, question, path)
        return result if isinstance(question, ApprovalQuestion) and ended.error is None else ended

    async def _reply(self, running: RunningCall, asked: Asked, person: Person) -> Reply:
        """What whoever called says, as far as it is an answer. The call has so much longer as they took."""
        turn, question = running.turn, asked.question
        began = self._clock.monotonic()
        by = began + self._wait_seconds(question)
        try:
            for _ in range(_MOST_TRIES):
                reply = await self._deadlines.run(person.answer(asked), by)
                if reply.kind != "answered":
                    return reply
                text = fit_text(reply.text, _LONGEST_ANSWER)
                if understood(question, text, turn.input.profile().texts).kind is not Answered.UNRELATED:
                    return reply._replace(text=text)
            _log.warning("answers_are_none", turn=turn.input.id, function=question.function)
        except TimeoutError:
            pass
        except asyncio.CancelledError:
            running.is_handed_over = True
            task = asyncio.create_task(self._end(running, question), name="a run whose caller is gone")
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
            raise
        finally:
            turn.deadline += self._clock.monotonic() - began
        return Reply("expired")

    async def _end(self, running: RunningCall, question: Question) -> None:
        """Let the run come to its end that waited for an answer of somebody who is gone."""
        try:
            await self._answering.end(running.context, running.turn, question, running.path)
            await self._store.commit(running.log.rest())
        except StoreError as error:
            _log.error("run_not_ended", turn=running.turn.input.id, function=question.function, problem=str(error))
        finally:
            running.log.unbind()


_WITHOUT_PEOPLE = frozenset({"cli", "mcp"})
"""The platforms whose chats no network has: nobody reads there what is said later."""

Status = Callable[[str], Awaitable[None]]
"""Told what is going on while a run takes long."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, from where, and by which way."""

    member: MemberRef
    name: str
    role: Role
    chat: ChatRef
    is_group: bool
    path: Path


class Called(NamedTuple):
    """What came of a call."""

    result: FunctionResult
    here: tuple[Message, ...] = ()
    """What is said to the caller: in this chat, or to them alone."""
    unsent: tuple[Message, ...] = ()
    """What was to go to others and cannot be sent from here."""
    unheard: bool = False
    """It set something for later in a chat where nobody will hear it."""


async def _nothing_is_shown(text: str) -> None:
    return None


class DirectCalls:
    """Runs functions for callers that are in no chat's queue."""

    def __init__(
        self,
        *,
        registry: FunctionRegistry,
        chats: Chats,
        invoker: Invoker,
        store: Store,
        delivery: Delivery,
        timetable: Timetable,
        timeout_seconds: float,
        wait_seconds: Callable[[Question], float],
        deadlines: Deadlines,
        clock: Clock,
        ids: Ids,
        epoch: int,
        faults: FaultPoints,
    ) -> None:
        """`timeout_seconds`: the longest that one call may take, with all that runs within it, but without the time in
        which it waits for answers: `wait_seconds` says how long for each."""
        self.chats = chats
        self._registry = registry
        self._invoker = invoker
        self._store = store
        self._delivery = delivery
        self._timetable = timetable
        self._timeout_seconds = timeout_seconds
        self._questions = CallerQuestions(Answering(invoker), registry, store, deadlines, clock, wait_seconds)
        self._clock = clock
        self._ids = ids
        self._rows = OutboxRows(ids, epoch)
        self._faults = faults

    def functions(self, chat: ChatRef) -> BotFunctions:
        """The functions of the bot that has `chat`."""
        return self._registry.of(self.chats.of(chat).settings.bot)

    def functions_of(self, bot: str) -> BotFunctions:
        """The functions of `bot`."""
        return self._registry.of(bot)

    def callable_by(self, caller: Caller) -> Sequence[FunctionSpec]:
        """What `caller` may call now, in registration order."""
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
        """Run the function `name`; `person` is asked what it asks, and `model` for words. Cancelled, what had ended is
        on record, an effect that was under way stays unknown, and a run that waits for an answer ends as one that
        nobody answered. Raises StoreError."""
        context, turn_id = self._context(caller), self._ids.next()
        log = StoreTurnLog(self._store, context, turn_id, self._clock, self._faults)
        turn = self._turn(context, turn_id, log=log, status=status, can_ask=person is not None, callers_model=model)
        log.bind(turn)
        running = RunningCall(context, turn, turn_id, log, caller.path)
        try:
            result = await self._invoker.invoke(
                CallRequest(context, name, arguments, turn, caller.path, confirmed=confirmed)
            )
            if person is not None and result.question is not None:
                result = await self._questions.with_answers(running, result, person, self._before_asking)
        except BaseException:
            if not running.is_handed_over:
                self._store.post(log.rest())
            if turn.memory.in_flight:
                _log.warning(
                    "call_cut_short", turn=turn.input.id, function=turn.memory.in_flight, member=caller.member.key
                )
            raise
        finally:
            if not running.is_handed_over:
                log.unbind()
        writes, parcels = self._sorted(running, result.messages)
        # The run is over: that nobody waits any more does not undo what belongs to it.
        await asyncio.shield(self._keep([*log.rest(), *writes], parcels))
        return Called(result, tuple(running.here), tuple(running.unsent), await self._is_unheard(name, context, turn))

    async def settled(self) -> None:
        """Return when the runs have come to their end whose callers went away before they had answered."""
        await self._questions.settled()

    async def _before_asking(self, running: RunningCall, result: FunctionResult) -> None:
        """While somebody thinks, nothing is held back that others are told or that has to be remembered."""
        said = result.messages if isinstance(result.question, InputQuestion) else ()
        writes, parcels = self._sorted(running, said)
        await running.log.settle()
        if writes:
            await self._keep(writes, parcels)

    def _context(self, caller: Caller) -> MessageContext:
        chat = caller.chat
        return MessageContext(
            key=MessageKey(chat, uuid.uuid4().hex),
            kind=Kind.MESSAGE,
            chat=chat,
            is_group=caller.is_group,
            sender=Sender(caller.member, caller.name, caller.role),
            text="",
            sent_at=self._clock.now(),
            bot=self.chats.of(chat).settings.bot,
        )

    def _turn(self, context: MessageContext, turn_id: int, **given: Any) -> Turn:
        """A new turn; `given` are further fields of its TurnInput."""
        chat, chats = context.chat, self.chats
        functions = self._registry.of(context.bot)
        turn_input = TurnInput(str(turn_id), functions, lambda: chats.profile(chat), **given)
        return Turn(turn_input, self._clock.monotonic() + self._timeout_seconds)

    async def _keep(self, writes: Sequence[Write], parcels: Sequence[OutboundMessage]) -> None:
        await self._store.commit(writes)
        self._delivery.hand_over(parcels)

    def _sorted(self, running: RunningCall, messages: Sequence[Message]) -> tuple[list[Write], list[OutboundMessage]]:
        """The writes and parcels of those of `messages` that are for others. What is for the caller, and what nobody
        can be given here, `running` keeps."""
        writes: list[Write] = []
        parcels: list[OutboundMessage] = []
        context, turn = running.context, running.turn
        profile, now_ms = turn.input.profile(), self._clock.now_ms()
        here, elsewhere = _told_apart(messages, context)
        running.here += here
        for number, message in enumerate(elsewhere, running.said_elsewhere):
            chat, private_to = addressed_to(message, context.chat)
            platform = self._delivery.platform(chat)
            if platform is None or (chat != context.chat and self.chats.of(chat).allowed_by is None):
                _log.error(
                    "message_to_a_chat_that_is_not_served", turn=turn.input.id, chat=chat.key, setting="chats.allow"
                )
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
            parcels += pieces
        running.said_elsewhere += len(elsewhere)
        return writes, parcels

    async def _is_unheard(self, name: str, context: MessageContext, turn: Turn) -> bool:
        """Whether the call set a reminder, or something else for later, that will reach nobody."""
        if context.chat.platform not in _WITHOUT_PEOPLE or not turn.memory.effects:
            return False
        spec = turn.input.functions.find(name)
        if spec is None or spec.execution.effect is Effect.READ:
            return False
        for number in range(turn.memory.runs):
            if await self._timetable.added_by(f"{turn.input.id}:{number}"):
                return True
        return False


def stopped(spec: FunctionSpec, texts: Phrases) -> FunctionResult:
    """What is told of a run that was cut short to somebody who still waits for it."""
    if spec.execution.effect is Effect.ONCE:
        return unknown(spec, texts)
    return FunctionResult.fail(ErrorCode.CANCELLED, texts.say("stop.stopped"))


def _told_apart(messages: Sequence[Message], context: MessageContext) -> tuple[list[Message], list[Message]]:
    """What is for the caller, and what is for others; what says nothing is left out."""
    here: list[Message] = []
    elsewhere: list[Message] = []
    for message in messages:
        if message.to in (None, context.chat, context.sender.ref):
            here.append(message)
        elif message.text.strip() or message.attachments:
            elsewhere.append(message)
    return here, elsewhere
