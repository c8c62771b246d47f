"""One run of a function outside a chat's queue: by hand from the command line, or by another program. It is the same
`invoke` with the same checks, ledger and call log. A question is put to whoever called, where they can be asked; else
nobody is there to answer it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import structlog

from bot.caller_questions import CallerQuestions, RunningCall
from bot.chats import Chats
from bot.delivery import Delivery, Parcel
from bot.outbox_rows import Address, Origin, OutboxRows
from bot.outgoing import addressed_to
from bot.turn_log import StoreTurnLog
from config.texts import Phrases
from function_calls.answering import Answering, Person
from function_calls.context import Kind, MessageContext, MessageKey, Sender
from function_calls.failed_runs import unknown
from function_calls.invocation import Invoker
from function_calls.permissions import callable_here
from function_calls.registry import BotFunctions, FunctionRegistry
from function_calls.spec import FunctionResult, FunctionSpec, Message, Question
from function_calls.turn import Turn
from function_calls.turn_log import Path
from function_calls.words import CallersModel
from services.clock import Clock
from services.deadlines import Deadlines
from services.fault_points import FaultPoints
from services.refs import ChatRef, Effect, ErrorCode, MemberRef, Role
from services.store.ids import Ids
from services.store.port import Store, Write
from services.timetable import Timetable

_log = structlog.get_logger("direct_calls")
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
        turn = self._turn(context, turn_id, log, status)
        turn.can_ask, turn.callers_model = person is not None, model
        log.bind(turn)
        running = RunningCall(context, turn, turn_id, log, caller.path)
        try:
            result = await self._invoker.invoke(context, name, arguments, turn, caller.path, confirmed=confirmed)
            if person is not None and result.question is not None:
                result = await self._questions.with_answers(running, result, person, self._before_asking)
        except BaseException:
            if not running.is_handed_over:
                self._store.post(log.rest())
            if turn.in_flight:
                _log.warning("call_cut_short", turn=turn.id, function=turn.in_flight, member=caller.member.key)
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
        said = result.messages if result.question is not None and result.question.kind == "input" else ()
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

    def _turn(
        self,
        context: MessageContext,
        turn_id: int,
        log: StoreTurnLog | None = None,
        status: Status = _nothing_is_shown,
    ) -> Turn:
        chat, chats = context.chat, self.chats
        turn = Turn(
            id=str(turn_id),
            functions=self._registry.of(context.bot),
            profile=lambda: chats.profile(chat),
            deadline=self._clock.monotonic() + self._timeout_seconds,
            status=status,
        )
        if log is not None:
            turn.log = log
        return turn

    async def _keep(self, writes: Sequence[Write], parcels: Sequence[Parcel]) -> None:
        await self._store.commit(writes)
        self._delivery.hand_over(parcels)

    def _sorted(self, running: RunningCall, messages: Sequence[Message]) -> tuple[list[Write], list[Parcel]]:
        """The writes and parcels of those of `messages` that are for others. What is for the caller, and what nobody
        can be given here, `running` keeps."""
        writes: list[Write] = []
        parcels: list[Parcel] = []
        context, turn = running.context, running.turn
        profile, now_ms = turn.profile(), self._clock.now_ms()
        here, elsewhere = _told_apart(messages, context)
        running.here += here
        for number, message in enumerate(elsewhere, running.said_elsewhere):
            chat, private_to = addressed_to(message, context.chat)
            platform = self._delivery.platform(chat)
            if platform is None or (chat != context.chat and self.chats.of(chat).allowed_by is None):
                _log.error("message_to_a_chat_that_is_not_served", turn=turn.id, chat=chat.key, setting="chats.allow")
                running.unsent.append(message)
                continue
            origin = Origin(
                turn_id=running.turn_id,
                number=number,
                asked_by=context.sender.ref,
                bot_name=profile.bot_name,
                texts=profile.texts,
                outside=bool(turn.outside),
            )
            rows, pieces = self._rows.of(message, Address(chat, private_to, platform), origin, now_ms)
            writes += rows
            parcels += pieces
        running.said_elsewhere += len(elsewhere)
        return writes, parcels

    async def _is_unheard(self, name: str, context: MessageContext, turn: Turn) -> bool:
        """Whether the call set a reminder, or something else for later, that will reach nobody."""
        if context.chat.platform not in _WITHOUT_PEOPLE or not turn.effects:
            return False
        spec = turn.functions.find(name)
        if spec is None or spec.effect is Effect.READ:
            return False
        for number in range(turn.runs):
            if await self._timetable.added_by(f"{turn.id}:{number}"):
                return True
        return False


def stopped(spec: FunctionSpec, texts: Phrases) -> FunctionResult:
    """What is told of a run that was cut short to somebody who still waits for it."""
    if spec.effect is Effect.ONCE:
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
