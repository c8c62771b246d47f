"""One run of a function from its beginning to its end, with the answers to what it asks at hand: for authors who try a
script. It is the same `invoke` with the same checks; nothing is sent to anybody."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

from bot.daemon import Daemon
from function_calls.answers import Answered
from function_calls.approval_terms import Approved
from function_calls.call import Resumed
from function_calls.context import Kind, MessageContext, MessageKey, Sender
from function_calls.questions import asking_messages, read_answer
from function_calls.spec import FunctionResult, FunctionSpec, Message, OfferedTo, Question
from function_calls.turn import Turn
from function_calls.turn_log import Path
from services.clock import Clock
from services.json_values import JsonObject
from services.refs import ChatRef, MemberRef, Role

_TURN_SECONDS = 600.0

NextAnswer = Callable[[], Awaitable[str | None]]
"""What the member says to the question that was asked last; None: nobody answers."""


@dataclass(frozen=True, slots=True)
class Trying:
    """Who tries it, and where."""

    member: MemberRef
    name: str
    role: Role
    chat: ChatRef
    is_group: bool = True


class Said(NamedTuple):
    """A message of the run. What is asked last is said with the question."""

    message: Message
    is_question: bool


class Answer(NamedTuple):
    """What the member said."""

    text: str


class Ended(NamedTuple):
    """The run is over, or waits for ever."""

    result: FunctionResult


Step = Said | Answer | Ended


class ScriptTrial:
    """Tries functions of a daemon."""

    def __init__(self, daemon: Daemon, clock: Clock, trying: Trying) -> None:
        self._daemon = daemon
        self._clock = clock
        self._trying = trying
        self._turns = 0

    async def steps(self, spec: FunctionSpec, arguments: JsonObject, next_answer: NextAnswer) -> AsyncIterator[Step]:
        """What happens, in its order; the last step is Ended."""
        texts = self._daemon.chats.profile(self._trying.chat).texts
        context = self._context("")
        # What begins a conversation is nobody's command.
        path = Path.COMMAND if OfferedTo.COMMAND in spec.offered_to else Path.NESTED
        result = await self._run(spec.name, arguments, path, context)
        while (question := result.question) is not None:
            messages = asking_messages(result, texts)
            for message in messages[:-1]:
                yield Said(message, is_question=False)
            yield Said(messages[-1], is_question=True)
            said = await next_answer()
            if said is None:
                break
            yield Answer(said)
            answered = read_answer(question, said, texts)
            if answered.kind is Answered.UNRELATED:
                # As in a chat: it is no answer, and the question stays.
                result = FunctionResult(question=question)
                continue
            result = await self._goes_on(question, answered.kind, answered.value, self._context(said))
        else:
            for message in result.for_chat():
                yield Said(message, is_question=False)
        yield Ended(result)

    async def _goes_on(self, question: Question, kind: Answered, value: str, context: MessageContext) -> FunctionResult:
        """The run that the question held up, with what was said to it."""
        before = question.goes_on or (
            None if question.resume is None else Resumed(question.resume, "", number=question.number)
        )
        says_no = kind in (Answered.NO, Answered.CANCELLED)
        if before is None:
            if says_no:
                return FunctionResult(messages=(Message(self._say("questions.dropped")),))
            arguments = {**question.arguments, **({question.field: value} if question.field else {})}
            return await self._run(
                question.function, arguments, Path.COMMAND, context, question=question, confirmed=True
            )
        ends: Resumed = Resumed(
            before.state, "" if says_no else value, "cancelled" if says_no else "answered", before.number
        )
        result = await self._run(question.function, question.arguments, Path.COMMAND, context, ends, question)
        if says_no and not result.messages and result.error is None:
            return FunctionResult(messages=(Message(self._say("questions.dropped")),))
        return result

    async def _run(
        self,
        name: str,
        arguments: JsonObject,
        path: Path,
        context: MessageContext,
        resumed: Resumed | None = None,
        question: Question | None = None,
        *,
        confirmed: bool = False,
    ) -> FunctionResult:
        daemon, chat = self._daemon, context.chat
        self._turns += 1
        turn = Turn(
            id=f"trial-{self._turns}",
            functions=daemon.registry.of(context.bot),
            profile=lambda: daemon.chats.profile(chat),
            deadline=self._clock.monotonic() + _TURN_SECONDS,
        )
        if question is not None:
            digest = question.terms.digest if question.terms is not None else question.allowed
            turn.approved = Approved(digest, context.sender, always=False) if digest else None
        key = turn.next_key()
        if resumed is not None:
            turn.resume(key, resumed)
        return await daemon.invoker.invoke(context, name, arguments, turn, path, confirmed=confirmed, key=key)

    def _say(self, key: str) -> str:
        return self._daemon.chats.profile(self._trying.chat).texts.say(key)

    def _context(self, text: str) -> MessageContext:
        trying = self._trying
        return MessageContext(
            key=MessageKey(trying.chat, uuid.uuid4().hex),
            kind=Kind.MESSAGE,
            chat=trying.chat,
            is_group=trying.is_group,
            sender=Sender(trying.member, trying.name, trying.role),
            text=text,
            sent_at=self._clock.now(),
            mentions_bot=True,
            bot=self._daemon.chats.of(trying.chat).settings.bot,
        )
