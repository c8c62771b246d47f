"""`rollcall replay FILE.jsonl`: recorded cases through the real gate, router and wire reader, without a network."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, NoReturn, Self, TextIO

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from bot.chats.chats import Chats, ServedChat
from bot.checks.scratch import scratch_daemon
from bot.cli.options import add_config, on_settings
from bot.intake.gate import judge
from bot.intake.intake import normalized
from bot.overrides import Overrides
from config.sections.models import ModelProfileSettings, Protocol
from config.settings import Settings
from config.texts import Texts
from function_calls.call import Call
from function_calls.checks.permissions import Open, Policies
from function_calls.context import Kind, MessageContext, MessageKey, Sender
from function_calls.encodings import imported_definition
from function_calls.filters.call import Invocation, Proceed
from function_calls.invocation import Invoker
from function_calls.llm import FunctionCallLLM
from function_calls.outcome import OutcomeKind, TurnOutcome
from function_calls.registry import BotFunctions, FunctionRegistry
from function_calls.router import FunctionCallRouter
from function_calls.schema.arguments import SchemaArguments
from function_calls.schema.definition import DefinitionError
from function_calls.schema.schema import UnusableSchema
from function_calls.spec import FunctionResult, FunctionSpec, Handler, Origin
from function_calls.turn import FixedHistory, HistoryLine, Turn, TurnInput
from services.clock import Deadlines, InstantClock
from services.llm.model import ModelAnswer, ModelError, ModelRequest, Offer, ToolCall
from services.llm.protocols.text_protocol import text_reader
from services.llm.reading import anthropic, openai
from services.llm.reading.dialects import dialect_of, reader_for
from services.llm.reading.markup import ReadText
from services.llm.resilient import ResilientModel
from services.refs import ChatRef, ErrorCode, JsonObject, MemberRef, ReasonCode, Role
from services.retry import Retry
from services.web.http import WebClient, WebError


class BadCase(ValueError):
    """An invalid case; the message has the problems."""


class _Part(BaseModel):
    """A part of a case. Null counts as missing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        return {key: one for key, one in value.items() if one is not None} if isinstance(value, Mapping) else value


class WrittenMessage(_Part):
    """The message to answer."""

    text: str = ""
    sender: str = "Ann"
    role: Role = Role.MEMBER
    chat: str = "replay:main:chat"
    is_group: bool = True
    addressed: bool = True


class WrittenAnswer(_Part):
    """One raw answer of the model: a response, or a stream of events."""

    status: int = 200
    headers: Mapping[str, Any] = Field(default_factory=dict)
    body: Any = ""
    sse: str | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set & {"status", "body", "sse"}:
            raise ValueError("has to have a status, a body or sse")
        return self


class ReplaySettings(_Part):
    """Protocol of the model, and the offered functions."""

    protocol: Protocol = "openai"
    profile: ModelProfileSettings = ModelProfileSettings()
    """As in the settings; or the name of a model family, which selects its dialect if it has one."""
    tool_choice: str = "auto"
    """`auto`, `none`, `required`, or the function that the first request requires."""
    shortlist: int | None = Field(None, ge=0)
    """Replaces `router.shortlist`, even for few functions."""

    @field_validator("profile", mode="before")
    @classmethod
    def _named(cls, profile: object) -> object:
        return {"dialect": dialect_of(profile)} if isinstance(profile, str) else profile

    @field_validator("tool_choice", mode="before")
    @classmethod
    def _by_name(cls, choice: Any) -> Any:
        """The name of a function given in OpenAI's format."""
        function = choice.get("function") if isinstance(choice, Mapping) else None
        return function.get("name") if isinstance(function, Mapping) else choice

    @field_validator("shortlist", mode="before")
    @classmethod
    def _off_is_none_at_all(cls, shortlist: Any) -> Any:
        """True means the value of the settings, False no shortlist."""
        return {True: None, False: 0}[shortlist] if isinstance(shortlist, bool) else shortlist


class ExpectedCall(BaseModel):
    """A call that a handler should receive."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    arguments: Mapping[str, Any]


class Expected(BaseModel):
    """Expected result; only given fields are compared."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    calls: list[ExpectedCall] | None = None
    reply: str | None = None
    reason: ReasonCode | None = None
    error: ErrorCode | None = None

    def differs_from(self, result: JsonObject) -> bool:
        """Whether a given field differs in `result`."""
        wanted = self.model_dump(mode="json", include=self.model_fields_set)
        return any(_canonical(value) != _canonical(result[key]) for key, value in wanted.items())


class Case(_Part):
    """One case."""

    id: Any = None
    message: WrittenMessage = WrittenMessage()
    history: tuple[Mapping[str, Any], ...] = ()
    functions: tuple[Mapping[str, Any], ...] | None = None
    """Definitions to offer instead of the registry's functions."""
    results: Mapping[str, Any] = Field(default_factory=dict)
    """Return values of functions by name, used instead of running them."""
    call: ExpectedCall | None = None
    """A call that the model makes before its answers, in no protocol: the function and its arguments are given."""
    model: tuple[WrittenAnswer, ...] = ()
    settings: ReplaySettings = ReplaySettings()
    expect: Expected
    """Empty to record the result without comparing it."""


def id_in(line: bytes) -> Any:
    """The id of the case in `line`, even if it is invalid; None without one."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return value.get("id") if isinstance(value, dict) else None


def read_case(line: bytes) -> Case:
    """Parse a case from a line of JSON. Raises BadCase with all problems."""
    try:
        return Case.model_validate(orjson.loads(line))
    except orjson.JSONDecodeError as error:
        raise BadCase(f"this is no JSON: {error}") from None
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        raise BadCase("; ".join(f"{'.'.join(map(str, one['loc'])) or 'case'}: {one['msg']}" for one in found)) from None


def _canonical(value: Any) -> bytes:
    """Canonical JSON: independent of key order, but `true`, `1` and `1.0` differ."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


class WrittenModel:
    """A ChatModel that returns the answers of a case in order."""

    name = "written"

    def __init__(self, case: Case, clock: InstantClock) -> None:
        self._answers = list(case.model)
        self._call = case.call
        self._settings = case.settings
        self._clock = clock
        self._last_error: ModelError | None = None
        self.exhausted = False

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        if self._call is not None:
            given, self._call = self._call, None
            return ModelAnswer(calls=(ToolCall("given", given.name, dict(given.arguments)),), finish="tool_calls")
        if self.has_run_out():
            if self._last_error is not None:
                raise ModelError(self._last_error.code, str(self._last_error))
            # An empty answer ends the turn.
            return ModelAnswer()
        written = self._answers.pop(0)
        self._last_error = None
        try:
            return self._read(written, request.offer)
        except ModelError as error:
            self._last_error = error
            raise

    def has_run_out(self) -> bool:
        """Whether more answers are requested than the case has; sets `exhausted`."""
        self.exhausted = self.exhausted or (not self._answers and self._call is None)
        return self.exhausted

    async def probe(self) -> str:
        return "written"

    async def close(self) -> None:
        return None

    def _read(self, written: WrittenAnswer, offer: Offer | None) -> ModelAnswer:
        headers = {name.lower(): str(value) for name, value in written.headers.items()}
        body = written.body.encode() if isinstance(written.body, str) else orjson.dumps(written.body)
        if self._settings.protocol == "anthropic":
            if written.sse is not None:
                return anthropic.read_stream(written.sse.encode())
            return anthropic.read_body(written.status, headers, body, self._clock.now())
        read_text = _text_reader(self._settings, offer)
        if written.sse is not None:
            return openai.read_stream(written.sse.encode(), read_text=read_text)
        return openai.read_body(written.status, headers, body, self._clock.now(), read_text)


def _text_reader(settings: ReplaySettings, offer: Offer | None) -> ReadText:
    if settings.protocol == "json_text":
        return text_reader("json", offer)
    if settings.protocol == "xml_text":
        return text_reader("xml", offer)
    return reader_for(settings.profile.dialect, offer)


_LONGEST_TEXT = 100_000
_NOT_SAID = frozenset({"system", "developer", "tool", "function"})


@dataclass(slots=True)
class Recorder:
    """Filter that records the calls that handlers receive."""

    calls: list[JsonObject] = field(default_factory=list)

    async def __call__(self, invocation: Invocation, proceed: Proceed) -> FunctionResult:
        spec = invocation.spec
        self.calls.append({"name": spec.name, "arguments": spec.arguments.dump(invocation.arguments)})
        return await proceed(invocation)


class Replay:
    """Replays cases independently of each other."""

    def __init__(self, settings: Settings, texts: Texts) -> None:
        self._settings = settings
        self._chats = Chats(settings, texts)

    async def run(self, case: Case) -> JsonObject:
        """The result line of `case`: `id`, `calls`, `reply`, `reason`, `error`, `model_exhausted` if the model had no
        more answers, and `ok` if it is as expected. Raises BadCase for invalid functions."""
        clock = InstantClock()
        model, recorder = WrittenModel(case, clock), Recorder()
        try:
            if case.functions is not None:
                outcome = await self._with_recorders(case, model, recorder, clock)
            else:
                outcome = await self._with_own_functions(case, model, recorder, clock)
        except DefinitionError as error:
            raise BadCase(str(error)) from None
        result: JsonObject = {
            "id": case.id,
            "calls": recorder.calls,
            "reply": "\n".join(message.text for message in outcome.messages),
            "reason": outcome.reason.value,
            "error": outcome.error.value if outcome.error else None,
        }
        if model.exhausted:
            result["model_exhausted"] = True
        return {**result, "ok": not case.expect.differs_from(result)}

    async def _with_recorders(
        self, case: Case, model: WrittenModel, recorder: Recorder, clock: InstantClock
    ) -> TurnOutcome:
        """Run with the functions that the case defines, without the daemon's policies. Raises DefinitionError if one of
        them is invalid."""
        invoker = Invoker(Policies(Open(), Open()), Deadlines(clock), clock, filters=[recorder])
        settings = _of_case(self._settings, case).router
        llm = FunctionCallLLM(_asked(model, clock), invoker, settings, clock, tool_choice=case.settings.tool_choice)
        return await self._routed(case, FunctionCallRouter(invoker, llm), _recorders(case), model, clock)

    async def _with_own_functions(
        self, case: Case, model: WrittenModel, recorder: Recorder, clock: InstantClock
    ) -> TurnOutcome:
        """Run with the daemon's functions and router, on a temporary database without network access. Raises
        DefinitionError."""
        given = Overrides(
            clock=clock,
            rng=Random(1),  # noqa: S311 - the same random numbers each time
            model=_asked(model, clock),
            filters=[recorder],
            web=WebClient(transport=_no_network),
        )
        async with scratch_daemon(_of_case(self._settings, case), given) as daemon:
            specs = daemon.registry.of(self._chats.of(_chat(case.message)).settings.bot).specs
            functions = BotFunctions(_with_result(spec, case.results) for spec in specs)
            return await self._routed(case, daemon.router, functions, model, clock)

    async def _routed(
        self,
        case: Case,
        router: FunctionCallRouter,
        functions: BotFunctions,
        model: WrittenModel,
        clock: InstantClock,
    ) -> TurnOutcome:
        # A case may use any chat, so chats.allow does not apply.
        served = replace(self._chats.of(_chat(case.message)), allowed_by="*")
        context = _context(case.message, served, clock)
        decision = judge(context, served, functions, None)
        if not decision.starts_turn:
            return TurnOutcome(OutcomeKind.SILENT, decision.reason, detail=decision.detail)
        history = _history(case.history, served.profile.bot_name, clock)

        given = TurnInput(
            id=str(case.id),
            functions=functions,
            profile=lambda: served.profile,
            history=FixedHistory(history),
            addressed=decision.addressed,
        )
        turn = Turn(given, clock.monotonic() + self._settings.router.turn_timeout_seconds)
        outcome = await router.dispatch(context, turn)
        if outcome or turn.memory.effects or model.has_run_out():
            return outcome
        return await router.run_chat_fallback(context, turn)


def _of_case(settings: Settings, case: Case) -> Settings:
    """`settings` with the case's shortlist, if it sets one; else unchanged."""
    if case.settings.shortlist is None:
        return settings
    limits = {"shortlist": case.settings.shortlist, "shortlist_above": 0, "function_tokens": 0}
    router = settings.router.model_copy(update=limits)
    return settings.model_copy(update={"router": router})


def _asked(model: WrittenModel, clock: InstantClock) -> ResilientModel:
    """`model` with the daemon's retries."""
    return ResilientModel(model, Retry(clock), clock)


def _recorders(case: Case) -> BotFunctions:
    """The functions that the case defines: open to everybody, returning the results of the case. Raises DefinitionError
    if one is invalid."""
    registry = FunctionRegistry()
    for definition in case.functions or ():
        foreign = imported_definition(definition)
        try:
            # The model's arguments are compared, so no defaults are filled in.
            arguments = SchemaArguments(foreign.parameters, fills_defaults=False)
        except UnusableSchema as error:
            raise DefinitionError(f"function {foreign.name!r}", [str(error)]) from None
        registry.register_function(
            FunctionSpec(
                name=foreign.name,
                description=foreign.description,
                handler=_returning(case.results.get(foreign.name)),
                parameters=foreign.parameters,
                arguments=arguments,
                origin=Origin(metadata=foreign.metadata),
            )
        )
    return BotFunctions(registry.specs)


def _with_result(spec: FunctionSpec, results: Mapping[str, Any]) -> FunctionSpec:
    return replace(spec, handler=_returning(results[spec.name])) if spec.name in results else spec


def _returning(value: Any) -> Handler:
    async def handle(context: MessageContext, arguments: Any, call: Call) -> FunctionResult:
        return FunctionResult(data=value)

    return handle


def _no_network() -> NoReturn:
    raise WebError(ErrorCode.ENVIRONMENT, "a replay has no network")


def _chat(message: WrittenMessage) -> ChatRef:
    """The chat by its full key, or by name only."""
    chat = message.chat
    return ChatRef.parse(chat) if chat.count(":") >= 2 else ChatRef("replay", "main", chat)


def _context(message: WrittenMessage, served: ServedChat, clock: InstantClock) -> MessageContext:
    chat = _chat(message)
    context = MessageContext(
        key=MessageKey(chat, "1"),
        kind=Kind.MESSAGE,
        chat=chat,
        is_group=message.is_group,
        sender=Sender(MemberRef(chat.platform, chat.account, message.sender), message.sender, message.role),
        text=message.text,
        sent_at=clock.now(),
        mentions_bot=message.addressed,
        bot=served.settings.bot,
    )
    return normalized(context, _LONGEST_TEXT, served.profile.texts)


def _history(lines: Sequence[Mapping[str, Any]], bot_name: str, clock: InstantClock) -> Sequence[HistoryLine]:
    """History as `{"sender", "text"}` or as messages in OpenAI's format, without system and tool messages."""
    read: list[HistoryLine] = []
    for line in lines:
        role = line.get("role")
        text = line.get("text") if role is None else line.get("content")
        if isinstance(text, list):
            text = " ".join(str(part.get("text", "")) for part in text if isinstance(part, Mapping))
        if not isinstance(text, str) or not text or role in _NOT_SAID:
            continue
        from_bot = role == "assistant"
        name = bot_name if from_bot else str(line.get("sender") or line.get("name") or "Ann")
        read.append(HistoryLine(name, text, clock.now_ms(), from_bot))
    return read


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE.jsonl")
    parser.add_argument("--out", type=Path, metavar="FILE", help="file for the result lines (default: standard output)")
    add_config(parser)
    parser.set_defaults(run=run)


@on_settings
def run(options: argparse.Namespace, settings: Settings) -> int:
    """Write one result line per case. 0: all as expected; 1: a difference or an invalid case; 2: a file cannot be read
    or written, or has no cases."""
    with ExitStack() as files:
        try:
            lines = [line for line in options.file.read_bytes().splitlines() if line.strip()]
            out = files.enter_context(options.out.open("w", encoding="utf-8")) if options.out else sys.stdout
        except OSError as error:
            print(f"{error.filename}: {error.strerror}", file=sys.stderr)
            return 2
        if not lines:
            print(f"{options.file} holds no case", file=sys.stderr)
            return 2
        good = asyncio.run(_replayed(lines, settings, out))
    print(f"{good} of {len(lines)} as expected", file=sys.stderr)
    return 0 if good == len(lines) else 1


async def _replayed(lines: Sequence[bytes], settings: Settings, out: TextIO) -> int:
    """Replay the cases in `lines`, and write a line of JSON with each result to `out`. Returns the number that ended as
    expected."""
    replay = Replay(settings, Texts())
    good = 0
    for line in lines:
        result = await _result(line, replay)
        good += result["ok"]
        out.write(orjson.dumps(result, default=str).decode() + "\n")
    return good


async def _result(line: bytes, replay: Replay) -> JsonObject:
    try:
        return await replay.run(read_case(line))
    except BadCase as bad:
        nothing: JsonObject = {"id": id_in(line), "calls": [], "reply": "", "reason": None, "error": None}
        return {**nothing, "ok": False, "problem": str(bad)}
