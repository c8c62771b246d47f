"""Replay: cases through the real gate, router and wire reader, with the model's answers written in each and no network.
How behaviour is compared from one version to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, NoReturn

from bot.chats import Chats, ServedChat
from bot.gate import judge
from bot.given import Given
from bot.inbound_text import fit
from bot.replay_case import BadCase, Case, WrittenMessage
from bot.scratch import scratch_daemon
from bot.written_model import WrittenModel
from config.settings import Settings
from config.texts import Texts
from function_calls.arguments import SchemaArguments
from function_calls.call import Call
from function_calls.context import Kind, MessageContext, MessageKey, Sender
from function_calls.definition import DefinitionError
from function_calls.encodings import imported_definition
from function_calls.filters.call import Invocation, Proceed
from function_calls.invocation import Invoker
from function_calls.llm import FunctionCallLLM
from function_calls.outcome import OutcomeKind, TurnOutcome
from function_calls.policies import Open, Policies
from function_calls.registry import BotFunctions, FunctionRegistry
from function_calls.router import FunctionCallRouter
from function_calls.schema import UnusableSchema
from function_calls.spec import FunctionResult, FunctionSpec, Handler
from function_calls.turn import HistoryLine, KnownPast, Turn
from services.clock import InstantClock
from services.deadlines import Deadlines
from services.http import WebClient, WebError
from services.json_values import JsonObject
from services.llm.resilient import ResilientModel
from services.refs import ChatRef, ErrorCode, MemberRef, Role
from services.retry import Retry

_LONGEST_TEXT = 100_000
_NOT_SAID = frozenset({"system", "developer", "tool", "function"})


@dataclass(slots=True)
class Recorder:
    """Notes what handlers received; stands around every run."""

    calls: list[JsonObject] = field(default_factory=list)

    async def __call__(self, invocation: Invocation, proceed: Proceed) -> FunctionResult:
        spec = invocation.spec
        self.calls.append({"name": spec.name, "arguments": spec.arguments.dump(invocation.arguments)})
        return await proceed(invocation)


class Replay:
    """Answers cases, each on its own: nothing of one is left for the next."""

    def __init__(self, settings: Settings, texts: Texts) -> None:
        self._settings = settings
        self._chats = Chats(settings, texts)

    async def run(self, case: Case) -> JsonObject:
        """The result line of `case`. Raises BadCase."""
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
        """With the functions that the case defines, and none of the daemon's policies."""
        invoker = Invoker(Policies(Open(), Open(), Open()), Deadlines(clock), clock, filters=[recorder])
        settings = _of_case(self._settings, case).router
        llm = FunctionCallLLM(_asked(model, clock), invoker, settings, clock, tool_choice=case.settings.tool_choice)
        return await self._routed(case, FunctionCallRouter(invoker, llm), _recorders(case), model, clock)

    async def _with_own_functions(
        self, case: Case, model: WrittenModel, recorder: Recorder, clock: InstantClock
    ) -> TurnOutcome:
        """With the daemon's functions and its router, on a database of their own."""
        given = Given(
            clock=clock,
            rng=Random(1),  # noqa: S311 - dice that fall the same each time
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
        # There is no list of chats that are served: a case may be of any.
        served = replace(self._chats.of(_chat(case.message)), allowed_by="*")
        context = _context(case.message, served, clock)
        verdict = judge(context, served, functions, None)
        if not verdict.is_for_us:
            return TurnOutcome(OutcomeKind.SILENT, verdict.reason, detail=verdict.detail)
        history = _history(case.history, served.profile.bot_name, clock)

        turn = Turn(
            id=str(case.id),
            functions=functions,
            profile=lambda: served.profile,
            deadline=clock.monotonic() + self._settings.router.turn_timeout_seconds,
            past=KnownPast(history),
        )
        turn.addressed = verdict.addressed
        outcome = await router.dispatch(context, turn)
        if outcome or turn.effects or model.has_run_out():
            return outcome
        return await router.run_chat_fallback(context, turn)


def _of_case(settings: Settings, case: Case) -> Settings:
    """`settings` with what the case says otherwise."""
    if case.settings.shortlist is None:
        return settings
    router = settings.router.model_copy(update={"shortlist": case.settings.shortlist, "shortlist_above": 0})
    return settings.model_copy(update={"router": router})


def _asked(model: WrittenModel, clock: InstantClock) -> ResilientModel:
    """`model` as the daemon asks one: again, when it fails in a way that may pass."""
    return ResilientModel(model, Retry(clock), clock)


def _recorders(case: Case) -> BotFunctions:
    """The functions that the case defines: everybody may call them, and they only return what the case says.
    Raises DefinitionError."""
    registry = FunctionRegistry()
    for definition in case.functions or ():
        foreign = imported_definition(definition)
        try:
            # What is compared is what the model said, so nothing is filled in.
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
                metadata=foreign.metadata,
                roles=frozenset(Role),
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
    """The chat by its whole key, or by a name alone."""
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
    return fit(context, _LONGEST_TEXT, served.profile.texts)


def _history(lines: Sequence[Mapping[str, Any]], bot_name: str, clock: InstantClock) -> Sequence[HistoryLine]:
    """History in either form: `{"sender", "text"}`, or messages as OpenAI has them, of which the words count."""
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
