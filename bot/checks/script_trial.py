"""Trial of a script without a chat, on a temporary database, for `rollcall basic run` and the desk."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import httpx2

from bot.daemon import Daemon
from config.sections.basic import BasicSource
from config.sections.bots import ChatSettings
from config.settings import Settings, SourcesSettings
from function_calls.call import CallRequest
from function_calls.call import Path as CallPath
from function_calls.context import Kind, MessageContext, MessageKey, Sender
from function_calls.outcome import asking_messages
from function_calls.questions.open_questions import Answered
from function_calls.questions.resume import read_answer
from function_calls.spec import (
    ApprovalQuestion,
    Approved,
    ArgumentQuestion,
    FunctionResult,
    FunctionSpec,
    InputQuestion,
    Message,
    OfferedTo,
    Question,
    Resumed,
    ResumedKind,
)
from function_calls.turn import Turn, TurnInput
from services.clock import Clock
from services.refs import ChatRef, ErrorCode, JsonObject, MemberRef, Role
from services.web.addresses import WebError
from services.web.http import WebClient

_TURN_SECONDS = 600.0

NextAnswer = Callable[[], Awaitable[str | None]]
"""Returns the member's answer to the last question; None for no answer."""


@dataclass(frozen=True, slots=True)
class Trying:
    """Member and chat of the trial."""

    member: MemberRef
    name: str
    role: Role
    chat: ChatRef
    is_group: bool = True


class Said(NamedTuple):
    """A message of the run; the last one before a question has the question."""

    message: Message
    is_question: bool


class Answer(NamedTuple):
    """The member's answer."""

    text: str


class Ended(NamedTuple):
    """The run has ended, or waits for an answer that will not come."""

    result: FunctionResult


Step = Said | Answer | Ended


class ScriptTrial:
    """Runs functions of a daemon interactively."""

    def __init__(self, daemon: Daemon, clock: Clock, trying: Trying, seconds: float = _TURN_SECONDS) -> None:
        """`seconds`: time limit of the trial, waiting for answers included."""
        self._daemon = daemon
        self._clock = clock
        self._deadline = clock.monotonic() + seconds
        self._trying = trying
        self._turns = 0

    async def steps(self, spec: FunctionSpec, arguments: JsonObject, next_answer: NextAnswer) -> AsyncIterator[Step]:
        """The events of the run in order; the last one is Ended."""
        texts = self._daemon.chats.profile(self._trying.chat).texts
        context = self._context("")
        # The start script of a chat is not a command.
        path = CallPath.COMMAND if OfferedTo.COMMAND in spec.access.offered_to else CallPath.NESTED
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
                # As in a chat: an unrelated answer leaves the question open.
                result = FunctionResult(question=question)
                continue
            result = await self._goes_on(question, answered.kind, answered.value, self._context(said))
        else:
            for message in result.for_chat():
                yield Said(message, is_question=False)
        yield Ended(result)

    async def _goes_on(self, question: Question, kind: Answered, value: str, context: MessageContext) -> FunctionResult:
        """Result of the run that the question interrupted, resumed with the answer; without a saved run it starts
        again, or is dropped after a no."""
        before = question.saved_run
        says_no = kind in (Answered.NO, Answered.CANCELLED)
        if before is None:
            if says_no:
                return FunctionResult(messages=(Message(self._say("questions.dropped")),))
            arguments = dict(question.arguments)
            if isinstance(question, ArgumentQuestion):
                arguments[question.field] = value
            return await self._run(
                question.function, arguments, CallPath.COMMAND, context, question=question, confirmed=True
            )
        ended: ResumedKind = "cancelled" if says_no else "answered"
        ends = replace(before, answer="" if says_no else value, kind=ended)
        result = await self._run(question.function, question.arguments, CallPath.COMMAND, context, ends, question)
        if says_no and not result.messages and result.error is None:
            return FunctionResult(messages=(Message(self._say("questions.dropped")),))
        return result

    async def _run(
        self,
        name: str,
        arguments: JsonObject,
        path: CallPath,
        context: MessageContext,
        resumed: Resumed | None = None,
        question: Question | None = None,
        *,
        confirmed: bool = False,
    ) -> FunctionResult:
        daemon, chat = self._daemon, context.chat
        self._turns += 1
        given = TurnInput(
            id=f"trial-{self._turns}",
            functions=daemon.registry.of(context.bot),
            profile=lambda: daemon.chats.profile(chat),
        )
        turn = Turn(given, self._deadline)
        if question is not None:
            allowed = question.allowed if isinstance(question, InputQuestion) else ""
            digest = question.terms.digest if isinstance(question, ApprovalQuestion) else allowed
            turn.memory.approved = Approved(digest, context.sender, always=False) if digest else None
        key = turn.next_key()
        if resumed is not None:
            turn.memory.resume(key, resumed)
        return await daemon.invoker.invoke(
            CallRequest(context, name, arguments, turn, path, key=key, confirmed=confirmed)
        )

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


def no_web(why: str) -> WebClient:
    """A web client that rejects every request with WebError; `why` follows the host's name in its text."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        raise WebError(ErrorCode.REFUSED, f"{host} {why}")

    return WebClient(resolve=resolve, transport=lambda: _Refusing(why))


class _Refusing(httpx2.AsyncBaseTransport):
    """Transport that rejects every request."""

    def __init__(self, why: str) -> None:
        self._why = why

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        raise WebError(ErrorCode.REFUSED, f"{request.url.host} {self._why}")


def script_source(file: Path, source: BasicSource) -> BasicSource:
    """A script of `source` as a source of its own, for the bot of its folder `<bot>.gbai` if it is in one."""
    bot = next((folder.stem.lower() for folder in file.resolve().parents if folder.suffix == ".gbai"), source.bot)
    return source.model_copy(update={"path": file, "bot": bot})


def trial_settings(settings: Settings, source: BasicSource, chat: ChatRef, *, network: bool = False) -> Settings:
    """The settings with the scripts of `source` only, and without models, mail, MCP servers and custom functions unless
    `network` is set. `chat` belongs to the bot of the source."""
    if source.bot not in settings.bots:
        source = source.model_copy(update={"bot": "default"})
    own_chat = ChatSettings(bot=source.bot)
    chats = settings.chats.model_copy(
        update={"allow": ("*",), "settings": {**settings.chats.settings, chat.key: own_chat}}
    )
    if network:
        sources = settings.sources.model_copy(update={"basic": (source,)})
        return settings.model_copy(update={"sources": sources, "chats": chats})
    sources = SourcesSettings(basic=(source,), basic_keywords=settings.sources.basic_keywords)
    bare = {name: bot.model_copy(update={"plugins": ()}) for name, bot in settings.bots.items()}
    defaults = Settings()
    return settings.model_copy(
        update={
            "sources": sources,
            "chats": chats,
            "bots": bare,
            "plugins": (),
            "models": (),
            "mcp": defaults.mcp,
            "mail": defaults.mail,
        }
    )


def specs_of(daemon: Daemon, chat: ChatRef, file: Path) -> list[FunctionSpec]:
    """The functions of a script file for the bot of `chat`."""
    # Source paths may be relative to the working folder, whatever form `file` has.
    wanted = file.resolve()
    specs = daemon.registry.of(daemon.chats.of(chat).settings.bot).specs
    return [spec for spec in specs if Path(spec.origin.source.rpartition(":")[0]).resolve() == wanted]
