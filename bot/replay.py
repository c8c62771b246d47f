"""Replay: cases from a file through the real gate, router and wire reader, with the model's answers written in each.
How behaviour is compared from one version to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from zoneinfo import ZoneInfo

import orjson

from bot.chats import ServedChat
from bot.gate import judge
from bot.inbound_text import fit
from config.chat_settings import chat_settings
from config.settings import RouterSettings, Settings
from config.texts import Texts
from function_calls.arguments import SchemaArguments
from function_calls.call import Call
from function_calls.context import Kind, MessageContext, MessageKey, Sender
from function_calls.encodings import imported_definition
from function_calls.filters.call import Invocation, Proceed
from function_calls.invocation import Invoker
from function_calls.llm import FunctionCallLLM
from function_calls.policies import Open, Policies
from function_calls.profile import ChatProfile
from function_calls.registry import BotFunctions
from function_calls.router import FunctionCallRouter
from function_calls.spec import FunctionResult, FunctionSpec
from function_calls.turn import HistoryLine, OutcomeKind, Turn
from services.clock import InstantClock
from services.deadlines import Deadlines
from services.json_values import JsonObject
from services.llm.model import ModelAnswer, ModelError, ModelRequest
from services.llm.openai_answers import read_body, read_stream
from services.llm.resilient import ResilientModel
from services.refs import ChatRef, ErrorCode, MemberRef, Role
from services.retry import Retry

_PROTOCOLS = frozenset({"openai"})
_LONGEST_TEXT = 100_000


class BadCase(ValueError):
    """A case that cannot be replayed; says what is wrong with it."""


class WrittenModel:
    """A ChatModel whose answers stand in a case, as bytes of the wire."""

    name = "written"

    def __init__(self, answers: Sequence[JsonObject], clock: InstantClock) -> None:
        self._answers = list(answers)
        self._clock = clock
        self._last_error: ModelError | None = None
        self.exhausted = False

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        if not self._answers:
            self.exhausted = True
            if self._last_error is not None:
                raise ModelError(self._last_error.code, str(self._last_error))
            # Nothing more is said: the turn ends with what it has.
            return ModelAnswer()
        written = self._answers.pop(0)
        self._last_error = None
        try:
            return self._read(written)
        except ModelError as error:
            self._last_error = error
            raise

    async def probe(self) -> str:
        return "written"

    async def close(self) -> None:
        return None

    def _read(self, written: JsonObject) -> ModelAnswer:
        if "sse" in written:
            return read_stream(_as_bytes(written["sse"]))
        headers = {str(name).lower(): str(value) for name, value in (written.get("headers") or {}).items()}
        return read_body(
            int(written.get("status", 200)), headers, _as_bytes(written.get("body", "")), self._clock.now()
        )


@dataclass(slots=True)
class Recorder:
    """Notes what handlers received; stands around every run."""

    calls: list[JsonObject] = field(default_factory=list)

    async def __call__(self, invocation: Invocation, proceed: Proceed) -> FunctionResult:
        spec = invocation.spec
        self.calls.append({"name": spec.name, "arguments": spec.arguments.dump(invocation.arguments)})
        return await proceed(invocation)


async def replay(case: Mapping[str, Any], settings: Settings, texts: Texts, functions: BotFunctions) -> JsonObject:
    """The result line of one case. `functions` serve where the case names none. Raises BadCase."""
    wanted = case.get("settings") or {}
    protocol = wanted.get("protocol", "openai")
    if protocol not in _PROTOCOLS:
        raise BadCase(f"settings.protocol {protocol!r} is not one of {', '.join(sorted(_PROTOCOLS))}")
    if "functions" in case:
        functions = BotFunctions(_recorder_specs(case["functions"], case.get("results") or {}))
    clock = InstantClock()
    model = WrittenModel(case.get("model") or [], clock)
    recorder = Recorder()
    router = _router(model, clock, settings.router, recorder)
    context = _context(case.get("message") or {}, clock)
    served = _served(settings, texts, context)
    verdict = judge(context, served, functions, None)
    result: JsonObject = {"id": case.get("id"), "calls": [], "reply": "", "reason": verdict.reason.value, "error": None}
    if verdict.is_for_us:
        turn = Turn(
            id=str(case.get("id")),
            functions=functions,
            profile=lambda: served.profile,
            deadline=clock.monotonic() + settings.router.turn_timeout_seconds,
            addressed=verdict.addressed,
            history=_history(case.get("history") or [], clock),
        )
        outcome = await router.dispatch(context, turn)
        if outcome.kind is OutcomeKind.FALLBACK and not turn.effects:
            outcome = await router.run_chat_fallback(context, turn)
        result["calls"] = recorder.calls
        result["reply"] = "\n".join(message.text for message in outcome.messages)
        result["reason"] = outcome.reason.value
        result["error"] = outcome.error.value if outcome.error else None
    if model.exhausted:
        result["model_exhausted"] = True
    result["ok"] = _as_expected(result, case.get("expect") or {})
    return result


def _router(
    model: WrittenModel, clock: InstantClock, settings: RouterSettings, recorder: Recorder
) -> FunctionCallRouter:
    invoker = Invoker(Policies(Open(), Open(), Open()), Deadlines(clock), clock, filters=[recorder])
    resilient = ResilientModel(model, Retry(clock), clock)
    return FunctionCallRouter(invoker, FunctionCallLLM(resilient, invoker, settings, clock))


def _recorder_specs(definitions: Sequence[JsonObject], results: Mapping[str, Any]) -> list[FunctionSpec]:
    specs: list[FunctionSpec] = []
    for definition in definitions:
        foreign = imported_definition(definition)
        specs.append(
            FunctionSpec(
                name=foreign.name,
                description=foreign.description,
                handler=_returns(results.get(foreign.name)),
                parameters=foreign.parameters,
                # What is compared is what the model said.
                arguments=SchemaArguments(foreign.parameters, fills_defaults=False),
                metadata=foreign.metadata,
                roles=frozenset(Role),
            )
        )
    return specs


def _returns(value: Any) -> Any:
    async def handle(context: MessageContext, arguments: Any, call: Call) -> FunctionResult:
        return FunctionResult(data=value)

    return handle


def _context(message: Mapping[str, Any], clock: InstantClock) -> MessageContext:
    chat = str(message.get("chat") or "replay:main:chat")
    ref = ChatRef.parse(chat) if chat.count(":") >= 2 else ChatRef("replay", "main", chat)
    name = str(message.get("sender") or "Ann")
    context = MessageContext(
        key=MessageKey(ref, "1"),
        kind=Kind.MESSAGE,
        chat=ref,
        is_group=bool(message.get("is_group", True)),
        sender=Sender(MemberRef(ref.platform, ref.account, name), name, Role(message.get("role") or "member")),
        text=str(message.get("text") or ""),
        sent_at=clock.now(),
        mentions_bot=bool(message.get("addressed", True)),
    )
    return fit(context, _LONGEST_TEXT)


def _served(settings: Settings, texts: Texts, context: MessageContext) -> ServedChat:
    """The chat as it would be set up; replay has no list of chats that are served."""
    resolved = chat_settings(settings, context.chat.key, {})
    profile = ChatProfile(
        bot=resolved.bot,
        bot_name=resolved.bot_name,
        persona=resolved.persona,
        texts=texts.of(resolved.language),
        timezone=ZoneInfo(resolved.timezone),
        functions_on=resolved.functions_on,
        functions=resolved.functions,
        layers=resolved.layers,
    )
    return ServedChat("*", resolved, profile)


def _history(lines: Sequence[Mapping[str, Any]], clock: InstantClock) -> Any:
    """History in either form: `{"sender", "text"}`, or messages as OpenAI has them, of which the words count."""
    read: list[HistoryLine] = []
    for line in lines:
        role = line.get("role")
        text = line.get("text") if role is None else line.get("content")
        if isinstance(text, list):
            text = " ".join(str(part.get("text", "")) for part in text if isinstance(part, Mapping))
        if not isinstance(text, str) or not text or role in ("system", "developer", "tool", "function"):
            continue
        read.append(HistoryLine(str(line.get("sender") or "Ann"), text, clock.now_ms(), role == "assistant"))

    async def history() -> Sequence[HistoryLine]:
        return read

    return history


def _as_expected(result: JsonObject, expect: Mapping[str, Any]) -> bool:
    if "calls" in expect:
        wanted = [{"name": one["name"], "arguments": one["arguments"]} for one in expect["calls"]]
        if wanted != result["calls"]:
            return False
    if "error" in expect and (expect["error"] and ErrorCode(expect["error"]).value) != result["error"]:
        return False
    return all(expect[key] == result[key] for key in ("reply", "reason") if key in expect)


def _as_bytes(body: Any) -> bytes:
    return body.encode() if isinstance(body, str) else orjson.dumps(body)
