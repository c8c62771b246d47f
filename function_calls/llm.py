"""FunctionCallLLM: the rounds of one turn between a model and the functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import orjson
import structlog

from config.settings import RouterSettings
from function_calls.context import MessageContext
from function_calls.conversation import last_round_message, opening, result_text
from function_calls.invocation import Invoker
from function_calls.permissions import offered_here
from function_calls.questions import fingerprint, question_message
from function_calls.spec import FunctionResult, FunctionSpec, Message, Question
from function_calls.turn import Continuation, OpenQuestion, OutcomeKind, Path, Turn, TurnOutcome, sent
from services.clock import Clock
from services.fault_points import FaultPoints
from services.llm.model import (
    ChatModel,
    ModelAnswer,
    ModelError,
    ModelMessage,
    ModelRequest,
    ToolCall,
    call_from_json,
    call_to_json,
    message_from_json,
    message_to_json,
)
from services.refs import Effect, ErrorCode, ReasonCode

NO_FUNCTION = "none"
INSUFFICIENT = "insufficient_arguments"
_REPAIRS = 1
_log = structlog.get_logger("llm")

_FAULT_WORDS = {
    ErrorCode.INVALID_JSON: "the arguments are not valid JSON",
    ErrorCode.NOT_AN_OBJECT: "the arguments must be a JSON object",
    ErrorCode.TRUNCATED: "the arguments were cut off",
    ErrorCode.MALFORMED_BY_PROVIDER: "the call could not be read",
}


@dataclass(slots=True)
class Progress:
    """Where a turn stands between rounds."""

    messages: list[ModelMessage]
    round_number: int = 0
    said: list[Message] = field(default_factory=list)
    """Messages of effects: they are sent whatever the model says."""
    found: list[Message] = field(default_factory=list)
    """Messages of reads since the last round: sent when the model has no words of its own."""
    calls: int = 0
    repairs: int = 0
    seen: dict[tuple[str, bytes], int] = field(default_factory=dict)
    results: dict[tuple[str, bytes], FunctionResult] = field(default_factory=dict)
    called: list[str] = field(default_factory=list)
    error: ErrorCode | None = None
    failure: str = ""
    """What a person is told when the model cannot put it right."""
    went_wrong: bool = False
    """A call of the latest answer gave an error."""
    asked: tuple[str, ...] = ()


class FunctionCallLLM:
    """Offers functions to a model, reads the calls, runs them, and asks again until there is an answer."""

    def __init__(
        self,
        model: ChatModel,
        invoker: Invoker,
        settings: RouterSettings,
        clock: Clock,
        faults: FaultPoints | None = None,
    ) -> None:
        self._model = model
        self._invoker = invoker
        self._settings = settings
        self._clock = clock
        self._reach = (faults or FaultPoints()).reach

    async def select_function(
        self, context: MessageContext, turn: Turn, progress: Progress, *, last: bool = False, offered: bool = True
    ) -> ModelAnswer:
        """The model's answer to the conversation so far, with the functions that the sender may call here on offer;
        the stored one where there is one. Raises ModelError."""
        stored = turn.log.stored_answer(progress.round_number)
        if stored is not None:
            return stored
        offer = offered_here(context, turn) if offered else None
        messages = [*progress.messages, last_round_message()] if last and progress.round_number else progress.messages
        request = ModelRequest(
            messages=messages,
            offer=offer,
            tool_choice="none" if last else "auto",
            timeout_seconds=max(1.0, turn.deadline - self._clock.monotonic()),
            language=turn.profile().texts.language,
        )
        self._reach("route.before_llm")
        answer = await self._model.complete(request)
        self._reach("llm.after_response_before_persist")
        if answer.request_id:
            turn.request_ids.append(answer.request_id)
        turn.log.answer(progress.round_number, answer)
        return answer

    async def answer(self, context: MessageContext, turn: Turn) -> TurnOutcome:
        """Answer a message from the beginning."""
        history = await turn.history()
        return await self._rounds(context, turn, Progress(opening(context, turn.profile(), history, self._settings)))

    async def chat(self, context: MessageContext, turn: Turn) -> TurnOutcome:
        """Answer in words alone: no function is offered."""
        history = await turn.history()
        progress = Progress(opening(context, turn.profile(), history, self._settings), self._settings.max_rounds + 1)
        try:
            answer = await self.select_function(context, turn, progress, last=True, offered=False)
        except ModelError as error:
            return self._model_failed(turn, progress, error)
        if not answer.text:
            return self._model_failed(
                turn, progress, ModelError(ErrorCode.EMPTY_RESPONSE, "calls, though none were offered")
            )
        return sent(ReasonCode.CHAT, [Message(answer.text)])

    async def resume(
        self, context: MessageContext, turn: Turn, on: Continuation, result: FunctionResult, function: str
    ) -> TurnOutcome:
        """Go on where a question interrupted the rounds; `result` is what the interrupted call gave."""
        progress = Progress([message_from_json(one) for one in on.transcript], on.rounds, asked=tuple(on.asked))
        spec = turn.functions.find(function)
        call = ToolCall(on.call_id, function, None, uncertain=on.uncertain)
        rest = tuple(call_from_json(one) for one in on.calls)
        if result.question is not None and spec is not None:
            return self._suspended(turn, progress, spec, call, rest, result.question, final=on.final)
        self._note(progress, call, spec, result)
        outcome = await self._run_calls(context, turn, progress, rest, final=on.final, request_id="")
        if outcome is not None:
            return outcome
        if on.final or self._all_direct(turn, progress):
            return self._done(turn, progress, "")
        await turn.log.settle()
        progress.round_number += 1
        return await self._rounds(context, turn, progress)

    async def _rounds(self, context: MessageContext, turn: Turn, progress: Progress) -> TurnOutcome:
        while True:
            last = progress.round_number >= self._settings.max_rounds - 1
            try:
                answer = await self.select_function(context, turn, progress, last=last)
            except ModelError as error:
                return self._model_failed(turn, progress, error)
            if not answer.calls:
                return self._done(turn, progress, answer.text)
            if last:
                return self._gave_up(turn, progress, answer.text)
            progress.messages.append(ModelMessage("assistant", answer.text, answer.calls, opaque=answer.opaque))
            progress.found.clear()
            progress.went_wrong = False
            outcome = await self._run_calls(
                context, turn, progress, answer.calls, final=answer.final, request_id=answer.request_id
            )
            if outcome is not None:
                return outcome
            if answer.final or self._all_direct(turn, progress):
                return self._done(turn, progress, "")
            if progress.repairs > _REPAIRS:
                return self._gave_up(turn, progress, "")
            await turn.log.settle()
            progress.round_number += 1

    async def _run_calls(
        self,
        context: MessageContext,
        turn: Turn,
        progress: Progress,
        calls: Sequence[ToolCall],
        *,
        final: bool,
        request_id: str,
    ) -> TurnOutcome | None:
        """Run the calls of one answer in order; an outcome when the turn ends here."""
        faults = 0
        if len(calls) > self._settings.max_calls:
            self._refuse_all(progress, calls, turn)
            calls = ()
            faults = 1
        for index, call in enumerate(calls):
            if turn.functions.find(call.name) is None and call.name in (NO_FUNCTION, INSUFFICIENT):
                return await self._without_function(context, turn, progress, call)
            spec, result = await self._run_call(context, turn, progress, call, request_id)
            if result.question is not None and spec is not None:
                if result.question.field in progress.asked:
                    return sent(ReasonCode.USAGE, [*progress.said, *result.for_chat()], spec.name)
                rest = tuple(calls[index + 1 :])
                return self._suspended(turn, progress, spec, call, rest, result.question, final=final)
            faults += self._note(progress, call, spec, result)
        progress.repairs += bool(faults)
        return None

    async def _run_call(
        self, context: MessageContext, turn: Turn, progress: Progress, call: ToolCall, request_id: str
    ) -> tuple[FunctionSpec | None, FunctionResult]:
        spec = turn.functions.find(call.name)
        texts = turn.profile().texts
        if spec is None:
            return None, FunctionResult.fail(
                ErrorCode.UNKNOWN_FUNCTION, texts.say("refusals.unknown_function", name=_printable(call.name))
            )
        if call.arguments is None:
            fault = call.fault or ErrorCode.INVALID_JSON
            return spec, FunctionResult.fail(fault, _FAULT_WORDS.get(fault, "the call could not be read"))
        signature = (spec.name, orjson.dumps(call.arguments, option=orjson.OPT_SORT_KEYS))
        times = progress.seen[signature] = progress.seen.get(signature, 0) + 1
        before = progress.results.get(signature)
        if before is not None and (spec.effect is not Effect.READ or times > self._settings.identical_calls):
            return spec, replace(before, messages=(), metadata=_FROM_BEFORE)
        progress.calls += 1
        if progress.calls > self._settings.max_calls:
            return spec, FunctionResult.fail(ErrorCode.TOO_MANY_CALLS, texts.say("failures.too_many_calls"))
        result = await self._invoker.invoke(
            context,
            spec.name,
            call.arguments,
            turn,
            Path.MODEL,
            uncertain=call.uncertain,
            round_number=progress.round_number,
            request_id=request_id,
        )
        progress.results[signature] = result
        return spec, result

    def _note(self, progress: Progress, call: ToolCall, spec: FunctionSpec | None, result: FunctionResult) -> bool:
        """Tell the model how the call went, keep what is to be said. True when the call itself was faulty."""
        said = spec is not None and spec.effect is not Effect.READ
        text = result_text(result, self._settings, said=said)
        progress.messages.append(ModelMessage("tool", text, call_id=call.id))
        if result.error is not None:
            progress.went_wrong = True
            code = result.error.code
            if code in (ErrorCode.BAD_ARGUMENTS, ErrorCode.MISSING_ARGUMENTS):
                code = ErrorCode.SCHEMA_MISMATCH
            progress.error = progress.error or code
            progress.failure = result.error.text if spec is not None and call.fault is None else ""
            if spec is not None and spec.effect is not Effect.READ and _may_have_happened(result):
                progress.said += result.for_chat()
            return code in _FAULTS_OF_THE_MODEL
        if spec is None or result.metadata is _FROM_BEFORE:
            return False
        progress.called.append(spec.name)
        (progress.found if spec.effect is Effect.READ else progress.said).extend(shown(result))
        return False

    def _refuse_all(self, progress: Progress, calls: Sequence[ToolCall], turn: Turn) -> None:
        text = turn.profile().texts.say("failures.too_many_calls")
        refused = FunctionResult.fail(ErrorCode.TOO_MANY_CALLS, text)
        for call in calls:
            progress.messages.append(
                ModelMessage("tool", result_text(refused, self._settings, said=False), call_id=call.id)
            )
        progress.error, progress.failure, progress.went_wrong = ErrorCode.TOO_MANY_CALLS, text, True

    async def _without_function(
        self, context: MessageContext, turn: Turn, progress: Progress, call: ToolCall
    ) -> TurnOutcome:
        """The model says that no function fits, or which value is missing."""
        arguments: dict[str, Any] = call.arguments or {}
        asked = arguments.get("question") or arguments.get("message")
        if call.name == INSUFFICIENT and isinstance(asked, str) and asked.strip():
            return sent(ReasonCode.ASKED, [*progress.said, Message(asked.strip())])
        if turn.effects:
            return self._done(turn, progress, "")
        return TurnOutcome(OutcomeKind.FALLBACK, ReasonCode.CHAT)

    def _suspended(
        self,
        turn: Turn,
        progress: Progress,
        spec: FunctionSpec,
        call: ToolCall,
        rest: Sequence[ToolCall],
        question: Question,
        *,
        final: bool,
    ) -> TurnOutcome:
        """End the turn with a question; what is needed to go on goes with it."""
        on = Continuation(
            path=Path.MODEL.value,
            fingerprint=fingerprint(spec),
            state=turn.state,
            transcript=[message_to_json(message) for message in progress.messages],
            call_id=call.id,
            calls=[call_to_json(one) for one in rest],
            rounds=progress.round_number,
            final=final,
            asked=(*progress.asked, *([question.field] if question.field else [])),
            uncertain=call.uncertain,
        )
        messages = (*progress.said, *progress.found, question_message(question))
        error = ErrorCode.SCHEMA_MISMATCH if question.kind == "argument" else None
        return TurnOutcome(
            OutcomeKind.SENT, ReasonCode.ASKED, messages, OpenQuestion(question, on), error, detail=spec.name
        )

    def _all_direct(self, turn: Turn, progress: Progress) -> bool:
        """Whether every call of the latest answer speaks for itself."""
        calls = next(message.calls for message in reversed(progress.messages) if message.role == "assistant")
        specs = [turn.functions.find(call.name) for call in calls]
        return not progress.went_wrong and all(spec is not None and spec.return_direct for spec in specs)

    def _done(self, turn: Turn, progress: Progress, text: str) -> TurnOutcome:
        words = [Message(text)] if text else progress.found
        messages = [*progress.said, *words]
        reason = ReasonCode.FUNCTION if progress.called else ReasonCode.CHAT
        if not messages and (progress.failure or progress.went_wrong):
            messages = [Message(progress.failure or turn.profile().texts.say("failures.model_confused"))]
            reason = ReasonCode.FUNCTION_FAILED
        return sent(reason, messages, ", ".join(dict.fromkeys(progress.called)), progress.error)

    def _gave_up(self, turn: Turn, progress: Progress, text: str) -> TurnOutcome:
        """The rounds are used up, or the model keeps making faulty calls."""
        words = text or progress.failure or turn.profile().texts.say("failures.model_confused")
        reason = ReasonCode.FUNCTION if progress.said else ReasonCode.MODEL_FAILED
        messages = progress.said or [*progress.found, Message(words)]
        return sent(reason, messages, ", ".join(progress.called), progress.error)

    def _model_failed(self, turn: Turn, progress: Progress, error: ModelError) -> TurnOutcome:
        """No usable answer. What functions did is said; else one clear sentence."""
        texts = turn.profile().texts
        code = progress.error or error.code
        _log.warning("model_failed", turn=turn.id, code=error.code.value, error=str(error), request_id=error.request_id)
        if progress.said:
            return sent(ReasonCode.FUNCTION, progress.said, ", ".join(progress.called), code)
        if progress.found:
            return sent(ReasonCode.FUNCTION, progress.found, ", ".join(progress.called), code)
        key = f"model.{error.code.value}"
        words = progress.failure or texts.say(key if texts.has(key) else "model.provider_error")
        return sent(ReasonCode.MODEL_FAILED, [Message(words)], error.code.value, code)


_FAULTS_OF_THE_MODEL = frozenset(
    {
        ErrorCode.SCHEMA_MISMATCH,
        ErrorCode.UNKNOWN_FUNCTION,
        ErrorCode.INVALID_JSON,
        ErrorCode.NOT_AN_OBJECT,
        ErrorCode.TRUNCATED,
        ErrorCode.MALFORMED_BY_PROVIDER,
        ErrorCode.TOO_MANY_CALLS,
    }
)


def shown(result: FunctionResult) -> tuple[Message, ...]:
    """What people see of a result when no model puts it in words: its messages, else its data as text."""
    if result.messages or result.data is None or result.error is not None:
        return result.for_chat()
    data = result.data
    text = data if isinstance(data, str) else orjson.dumps(data, default=str, option=orjson.OPT_INDENT_2).decode()
    return (Message(text),) if text else ()


_FROM_BEFORE = MappingProxyType({"from_before": True})
"""The metadata of a result that was given to an identical call before: what it says has been said."""


def _may_have_happened(result: FunctionResult) -> bool:
    """Whether something may have changed although the run failed, and nobody has heard of it."""
    if result.error is None or result.metadata is _FROM_BEFORE:
        return False
    return result.error.code is ErrorCode.UNKNOWN_OUTCOME


def _printable(name: str) -> str:
    return "".join(character for character in name if character.isprintable())[:64]
