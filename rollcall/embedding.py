"""A router for other programs: functions and a model, without a daemon, a chat network or a database."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self
from zoneinfo import ZoneInfo

from pydantic import BaseModel

from config.settings import RouterSettings
from config.texts import Texts
from function_calls.call import CallRequest, Path
from function_calls.checks.permissions import Open, Policies
from function_calls.context import Kind, MessageContext, MessageKey, Sender
from function_calls.filters.call import CallFilter
from function_calls.invocation import Invoker
from function_calls.llm import FunctionCallLLM
from function_calls.loading.python_functions import as_spec
from function_calls.outcome import TurnOutcome
from function_calls.profile import ChatProfile
from function_calls.questions.open_questions import Answered
from function_calls.questions.resume import read_answer
from function_calls.registry import FunctionRegistry
from function_calls.router import FunctionCallRouter
from function_calls.spec import FunctionResult, FunctionSpec
from function_calls.turn import OpenQuestion, Turn, TurnInput
from services.clock import Clock, Deadlines, SystemClock
from services.llm.model import ChatModel
from services.llm.offline.offline import OfflineModel
from services.llm.profile import ModelProfile
from services.llm.protocols.openai_chat import OpenAIChat
from services.llm.protocols.own_provider import CallWithFunctions, OwnProvider
from services.llm.resilient import ResilientModel
from services.refs import ChatRef, MemberRef, Role
from services.retry import Retry

_PLATFORM, _ACCOUNT = "embedded", "bot"


def a_message(
    text: str = "", sender: str = "you", *, chat: str = "main", role: Role = Role.MEMBER, is_group: bool = False
) -> MessageContext:
    """A message to the bot, sent now. A group message mentions the bot."""
    where = ChatRef(_PLATFORM, _ACCOUNT, chat)
    return MessageContext(
        key=MessageKey(where, uuid.uuid4().hex),
        kind=Kind.MESSAGE,
        chat=where,
        is_group=is_group,
        sender=Sender(MemberRef(_PLATFORM, _ACCOUNT, sender), sender, role),
        text=text,
        sent_at=datetime.now(UTC),
        mentions_bot=True,
    )


class Router:
    """Answers messages and runs functions. Existence, scope, role, arguments, timeout and result of a run are checked
    as in the daemon; budgets, approvals, the call log and chat history are features of the daemon only. Open questions
    are kept in memory."""

    def __init__(
        self,
        functions: Sequence[Callable[..., Any] | FunctionSpec],
        model: ModelProfile | ChatModel | CallWithFunctions | None = None,
        *,
        services: Mapping[type, object] | None = None,
        filters: Sequence[CallFilter] = (),
        language: str = "en",
        timezone: str = "UTC",
        timeout_seconds: float = 120.0,
    ) -> None:
        """`functions`: specs, or functions marked with `tool_function`. `model`: a server of OpenAI chat completions,
        or a function that takes messages and tools; without it, messages are matched with the functions' examples.
        `services`: by type, for keyword-only parameters; a Clock is included. `filters`: wrap all runs except those of
        `invoke`. `timeout_seconds`: limit for an answer. Raises DefinitionError for an invalid function."""
        self._clock = clock = SystemClock()
        texts = Texts()
        self._profile = ChatProfile("default", "Rollcall", "", texts.of(language), ZoneInfo(timezone), True, {}, {})
        self._registry = FunctionRegistry()
        bound = {Clock: clock, **(services or {})}
        self._registry.register_functions(
            [one if isinstance(one, FunctionSpec) else as_spec(one, bound) for one in functions]
        )
        self._timeout_seconds = timeout_seconds
        self._model = _chat_model(model, texts, clock, timeout_seconds)
        policies, deadlines = Policies(Open(), Open()), Deadlines(clock)
        self._direct = Invoker(policies, deadlines, clock)
        invoker = Invoker(policies, deadlines, clock, filters=filters)
        self._router = FunctionCallRouter(invoker, FunctionCallLLM(self._model, invoker, RouterSettings(), clock))
        self._open: dict[tuple[ChatRef, MemberRef], OpenQuestion] = {}

    async def answer(self, message: str | MessageContext) -> str:
        """Text of the reply to `message`, or empty."""
        return "\n".join(one.text for one in (await self.dispatch(message)).messages)

    async def dispatch(self, message: str | MessageContext) -> TurnOutcome:
        """Outcome of `message`: resumes the run that its sender was asked about, runs a command, or lets the model
        select functions or answer in text."""
        context = a_message(message) if isinstance(message, str) else message
        who, answering = (context.chat, context.sender.ref), None
        asked = self._open.get(who)
        if asked and read_answer(asked.question, context.text, self._profile.texts).kind is not Answered.UNRELATED:
            answering = (self._open.pop(who), context.text)
        turn = self._turn(answering)
        outcome = await self._router.dispatch(context, turn) or await self._router.run_chat_fallback(context, turn)
        if outcome.question is not None:
            self._open[who] = outcome.question
        return outcome

    async def invoke(
        self, name: str, arguments: object = None, message: MessageContext | None = None, *, confirmed: bool = False
    ) -> FunctionResult:
        """Result of the function `name`, without a model and filters. `arguments`: a mapping, a pydantic model or a
        dataclass. `message`: determines the caller and the chat. `confirmed`: skip the confirmation question."""
        raw = arguments or {}
        if isinstance(raw, BaseModel):
            raw = raw.model_dump(mode="json", by_alias=True)
        elif is_dataclass(raw) and not isinstance(raw, type):
            raw = asdict(raw)
        if not isinstance(raw, Mapping):
            raise TypeError(
                f"arguments have to be a mapping, a pydantic model or a dataclass, not {type(raw).__name__}"
            )
        context = message or a_message()
        return await self._direct.invoke(CallRequest(context, name, raw, self._turn(), Path.API, confirmed=confirmed))

    async def close(self) -> None:
        """Close the connections of the model."""
        await self._model.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _turn(self, answering: tuple[OpenQuestion, str] | None = None) -> Turn:
        functions = self._registry.of("default")
        given = TurnInput(uuid.uuid4().hex, functions, lambda: self._profile, answering=answering)
        return Turn(given, self._clock.monotonic() + self._timeout_seconds)


def _chat_model(
    model: ModelProfile | ChatModel | CallWithFunctions | None, texts: Texts, clock: Clock, timeout_seconds: float
) -> ChatModel:
    if model is None:
        return OfflineModel(texts)
    if isinstance(model, ModelProfile):
        return ResilientModel(OpenAIChat(model, clock), Retry(clock), clock, timeout_seconds)
    return OwnProvider("own", model) if callable(model) else model
