"""State of a turn between model rounds: calls made, repeated calls, and how the turn ends."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import orjson
import structlog

from config.settings import RouterSettings
from config.texts import Phrases
from function_calls.call import Path
from function_calls.failures import FAILURE_ID
from function_calls.outcome import OutcomeKind, TurnOutcome, cause, sent, shown, suspended
from function_calls.registry import FIND_FUNCTIONS, BotFunctions
from function_calls.result import result_from_json, result_to_json
from function_calls.rounds.claims import Act, acts_from_json, acts_to_json, nested_acts
from function_calls.rounds.conversation import doubt_message, fenced, result_text
from function_calls.schema.commands import done_text
from function_calls.spec import TAINTING, ArgumentQuestion, FunctionResult, FunctionSpec, Message, Question
from function_calls.turn import Continuation, Turn
from services.llm.model import ModelError, ModelMessage, ToolCall, call_to_json, message_to_json
from services.refs import Effect, ErrorCode, JsonObject, ReasonCode

FROM_BEFORE = MappingProxyType({"from_before": True})
"""The metadata of a result that was given to an identical call before: what it says has been said."""
Signature = tuple[str, str]
"""The name of a function, and its arguments in one form."""


@dataclass(slots=True)
class CallsMade:
    """What was called in a turn, and what came of it."""

    count: int = 0
    """Calls that were to be run."""
    _times: dict[Signature, int] = field(default_factory=dict)
    _found: dict[Signature, FunctionResult] = field(default_factory=dict)
    """What reads gave."""
    _done: dict[Signature, FunctionResult] = field(default_factory=dict)
    """What effects gave."""

    def repeated(self, signature: Signature, most: int) -> FunctionResult | None:
        """Note a call. Where an identical one was made and this one is not to be run, what that one gave: an effect is
        run once, a read at most `most` times."""
        times = self._times[signature] = self._times.get(signature, 0) + 1
        before = self._done.get(signature)
        if before is None and times > most:
            before = self._found.get(signature)
        return None if before is None else replace(before, messages=(), metadata=FROM_BEFORE)

    def ended(self, spec: FunctionSpec, signature: Signature, result: FunctionResult) -> None:
        """Note what a call gave. What failed may be tried again, unless it is to happen once at most."""
        if result.question is not None or (result.error is not None and spec.execution.effect is not Effect.ONCE):
            return
        kept = self._found if spec.execution.effect is Effect.READ else self._done
        kept[signature] = result

    def to_json(self) -> JsonObject:
        """As plain data. What reads gave is left out: they may be run again."""
        return {
            "count": self.count,
            "times": [[*signature, times] for signature, times in self._times.items()],
            "done": [[*signature, result_to_json(result)] for signature, result in self._done.items()],
        }


def calls_from_json(data: JsonObject) -> CallsMade:
    """The calls that `to_json` wrote."""
    times = {(name, arguments): times for name, arguments, times in data["times"]}
    done = {(name, arguments): result_from_json(result) for name, arguments, result in data["done"]}
    return CallsMade(data["count"], times, _done=done)


def signature_of(spec: FunctionSpec, arguments: Mapping[str, Any]) -> Signature:
    """What identical calls have in common."""
    return spec.name, orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS).decode()


@dataclass(slots=True)
class LoopWatch:
    """What the calls of one turn have brought so far.

    A round makes progress when one of its calls gives a function's result that this turn has not seen, with arguments
    that are not those of its last call made longer. Calls that repeat, alternate or grow make none.
    """

    stalled: int = 0
    """Rounds without progress, one after another."""
    _seen: set[tuple[str, str]] = field(default_factory=set)
    """Functions, each with the digest of something that it gave."""
    _latest: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _progress: bool = False

    def note(self, function: str, arguments: Mapping[str, Any], result: FunctionResult) -> None:
        """A call of this round has ended. What was given to it from before is nothing new."""
        if result.metadata is FROM_BEFORE:
            return
        given = orjson.dumps((result.data, result.error, [one.text for one in result.messages]), default=str)
        found = (function, hashlib.blake2b(given, digest_size=16).hexdigest())
        if found not in self._seen and not _grown(self._latest.get(function), arguments):
            self._progress = True
        self._seen.add(found)
        self._latest[function] = arguments

    def end_round(self) -> None:
        """All calls of the round have ended."""
        self.stalled = 0 if self._progress else self.stalled + 1
        self._progress = False

    def to_json(self) -> JsonObject:
        """As plain data, in the middle of a round too."""
        return {
            "stalled": self.stalled,
            "seen": sorted(self._seen),
            "latest": dict(self._latest),
            "progress": self._progress,
        }


def loops_from_json(data: JsonObject) -> LoopWatch:
    """The watch that `to_json` wrote."""
    seen = {(function, digest) for function, digest in data["seen"]}
    return LoopWatch(data["stalled"], seen, data["latest"], data["progress"])


def _grown(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> bool:
    """Whether `now` is `before` with one or more of its texts made longer."""
    if before is None or before.keys() != now.keys() or before == now:
        return False
    return all(
        now[name] == value
        or (isinstance(value, str) and isinstance(now[name], str) and value != "" and value in now[name])
        for name, value in before.items()
    )


_log = structlog.get_logger("llm")


@dataclass(slots=True)
class Progress:
    """Where a turn stands between rounds."""

    messages: list[ModelMessage]
    said: list[Message]
    """Messages of effects, the turn's own list: they are sent whatever the model says."""
    round_number: int = 0
    found: list[Message] = field(default_factory=list)
    """Messages of reads since the last round: sent when the model has no words of its own."""
    calls: CallsMade = field(default_factory=CallsMade)
    repairs: int = 0
    called: list[str] = field(default_factory=list)
    handled: bool = False
    """A function took the message as its own."""
    error: ErrorCode | None = None
    failure: str = ""
    """What a person is told when the model cannot put it right."""
    went_wrong: bool = False
    """A call of the latest answer gave an error."""
    asked: tuple[str, ...] = ()
    cause: str = ""
    """Of `error`, for `/why`."""
    failed: dict[str, str] = field(default_factory=dict)
    """The ids under which the log has what failed and was not made good, by the functions' names."""
    loops: LoopWatch = field(default_factory=LoopWatch)
    acts: list[Act] = field(default_factory=list)
    """Effects that went well."""
    quiet: list[FunctionSpec] = field(default_factory=list)
    """The functions whose effects of this turn went well without a word to the chat."""
    has_read: bool = False
    """A read gave something, so that the model may report what it found."""
    told_before: str = ""
    """What was reported earlier, where the message asks for it."""
    doubted: str = ""
    """What the model said before it was asked whether that is true."""

    def note(
        self,
        call: ToolCall,
        spec: FunctionSpec | None,
        result: FunctionResult,
        settings: RouterSettings,
        before: Sequence[str] = (),
    ) -> bool:
        """Tell the model how the call went, keep what is to be said. `before`: what was said when it asked something.
        True when the call itself was faulty."""
        is_read = spec is not None and spec.execution.effect is Effect.READ
        said = spec is not None and not is_read
        self.loops.note(call.name, call.arguments or {}, result)
        text = result_text(result, settings, said=said, before=before)
        if spec is not None and (result.outside or not spec.execution.touches.isdisjoint(TAINTING)):
            text = fenced(text, spec.name)
        self.messages.append(ModelMessage("tool", text, call_id=call.id))
        if result.error is not None:
            self.went_wrong = True
            code = result.error.code
            if code in (ErrorCode.BAD_ARGUMENTS, ErrorCode.MISSING_ARGUMENTS):
                code = ErrorCode.SCHEMA_MISMATCH
            self.cause = self.cause if self.error else (code.value if spec is None else cause(result, spec))
            if spec is not None and FAILURE_ID in result.metadata:
                self.failed[spec.name] = str(result.metadata[FAILURE_ID])
            self.error = self.error or code
            self.failure = result.error.text if spec is not None and call.fault is None else ""
            if _may_have_happened(result):
                self.said += result.for_chat()
            return code in _FAULTS_OF_THE_MODEL
        if spec is None or spec is FIND_FUNCTIONS or result.question is not None or result.metadata is FROM_BEFORE:
            return False
        messages = shown(result)
        if is_read:
            self.has_read = True
        else:
            self.acts.append(Act(spec, call.arguments or {}, result))
            if not messages:
                self.quiet.append(spec)
        self.called.append(spec.name)
        self.failed.pop(spec.name, None)
        self.handled = self.handled or result.handled
        (self.found if is_read else self.said).extend(messages)
        return False

    def remember(self, on: Continuation, functions: BotFunctions) -> None:
        """Take up what was known before the question. One that was stored by an older release has nothing of it."""
        known = on.remembered
        if known:
            self.calls, self.loops = calls_from_json(known["calls"]), loops_from_json(known["loops"])
            self.acts = acts_from_json(known["acts"], functions)
            self.has_read, self.told_before = known["has_read"], known["told_before"]

    def _remembered(self, turn: Turn) -> JsonObject:
        """What `remember` takes up."""
        return {
            "calls": self.calls.to_json(),
            "loops": self.loops.to_json(),
            "acts": acts_to_json([*self.acts, *nested_acts(turn)]),
            "has_read": self.has_read,
            "told_before": self.told_before,
        }

    def answered(self, call: ToolCall, result: FunctionResult, functions: BotFunctions) -> None:
        """Keep what the call gave that a question interrupted: the model may repeat it as it made it, or as it was run
        with what the person answered."""
        calls = (one for message in reversed(self.messages) for one in message.calls)
        made = next((one for one in calls if one.id == call.id), call)
        for one in (made, call):
            spec = functions.find(one.name)
            if spec is not None and one.arguments is not None:
                self.calls.ended(spec, signature_of(spec, one.arguments), result)

    def doubt(self, text: str) -> None:
        """Ask the model in another round whether what it says is true."""
        self.doubted = text
        self.messages += [ModelMessage("assistant", text), doubt_message()]
        self.round_number += 1

    def refuse_all(self, calls: Sequence[ToolCall], texts: Phrases, settings: RouterSettings) -> None:
        """None of these calls is run: the answer holds more than a whole turn may."""
        text = texts.say("failures.too_many_calls")
        refused = FunctionResult.fail(ErrorCode.TOO_MANY_CALLS, text)
        for call in calls:
            self.messages.append(ModelMessage("tool", result_text(refused, settings, said=False), call_id=call.id))
        self.error, self.failure, self.went_wrong = ErrorCode.TOO_MANY_CALLS, text, True

    def suspended(
        self,
        turn: Turn,
        spec: FunctionSpec,
        call: ToolCall,
        rest: Sequence[ToolCall],
        result: FunctionResult,
        question: Question,
        *,
        final: bool,
    ) -> TurnOutcome:
        """End the turn with the question that `result` asks, and save the rounds for its answer."""
        outcome = suspended(
            turn,
            spec,
            result,
            question,
            Path.MODEL,
            self.asked,
            transcript=[message_to_json(message) for message in self.messages],
            call_id=call.id,
            calls=[call_to_json(one) for one in rest],
            rounds=self.round_number,
            final=final,
            uncertain=call.uncertain,
            remembered=self._remembered(turn),
        )
        error = ErrorCode.SCHEMA_MISMATCH if isinstance(question, ArgumentQuestion) else None
        return replace(outcome, messages=(*self.said, *self.found, *outcome.messages), error=error)

    def all_direct(self, turn: Turn) -> bool:
        """Whether every call of the latest answer speaks for itself."""
        if self.went_wrong:
            return False
        for message in reversed(self.messages):
            if message.role != "assistant":
                continue
            for call in message.calls:
                spec = turn.input.functions.find(call.name)
                if spec is None or not spec.execution.return_direct:
                    return False
            return True
        return False

    def told(self, turn: Turn) -> list[Message]:
        """What the chat hears where no model puts it in words: what effects said, one sentence for those that said
        nothing, and what was found."""
        quiet = self.quiet
        if not (quiet or self.said or self.found):
            quiet = [act.spec for act in nested_acts(turn)]
        named = done_text(quiet, turn.input.profile().texts)
        return [*self.said, *([Message(named)] if named else []), *self.found]

    def done(self, turn: Turn, text: str, *, direct: bool = False) -> TurnOutcome:
        """The model has said all it wanted: its words, or what the functions found, and what of it failed. `direct`:
        it was not asked, since the functions speak for themselves, by silence too where nobody waits for an answer."""
        if text:
            messages = [*self.said, Message(text)]
        elif direct and turn.input.answering is None:
            messages = [*self.said, *self.found]
        else:
            messages = self.told(turn)
        reason = ReasonCode.FUNCTION if self.called else ReasonCode.CHAT
        if not messages and (self.failure or self.went_wrong):
            messages = [Message(self.failure or turn.input.profile().texts.say("failures.model_confused"))]
            reason = ReasonCode.REFUSED if self.error is ErrorCode.REFUSED else ReasonCode.FUNCTION_FAILED
            return sent(reason, messages, self.cause, self.error)
        if self.went_wrong and self.failure and not text and all(one.text != self.failure for one in messages):
            messages.append(Message(self.failure))
        if not messages and self.called and not self.handled and not turn.memory.effects:
            return TurnOutcome(OutcomeKind.FALLBACK, ReasonCode.CHAT, detail=self.called[-1])
        if self.error is ErrorCode.REFUSED and not self.called:
            return sent(ReasonCode.REFUSED, messages, self.cause, self.error)
        if self.failed and not self.called:
            # The model has put it in words; what it was, the log knows.
            return sent(ReasonCode.FUNCTION_FAILED, messages, ", ".join(self.failed.values()), self.error)
        return sent(reason, messages, self._named(), self.error)

    def _named(self) -> str:
        """The functions that were called, each once, and of those that failed the ids."""
        if len(self.called) == 1 and not self.failed:
            return self.called[0]
        failed = [f"{name} (✗ {short_id})" for name, short_id in self.failed.items()]
        return ", ".join([*dict.fromkeys(self.called), *failed])

    def gave_up(self, turn: Turn, text: str) -> TurnOutcome:
        """The rounds are used up, the model runs in a circle, or it keeps making faulty calls."""
        words = text or self.failure or turn.input.profile().texts.say("failures.model_confused")
        reason = ReasonCode.FUNCTION if self.said or self.quiet else ReasonCode.MODEL_FAILED
        messages = self.told(turn) if self.said or self.quiet else _as_one([*self.found, Message(words)])
        return sent(reason, messages, ", ".join(self.called), self.error)

    def model_failed(self, turn: Turn, error: ModelError, *, is_told: bool = False) -> TurnOutcome:
        """No usable answer. What functions did is said; else one clear sentence, unless nothing was tried and the chat
        `is_told` already that there is no model to ask."""
        texts = turn.input.profile().texts
        code = self.error or error.code
        _log.warning(
            "model_failed", turn=turn.input.id, code=error.code.value, error=str(error), request_id=error.request_id
        )
        told = self.told(turn)
        if told:
            return sent(ReasonCode.FUNCTION, told, ", ".join(self.called), code)
        if is_told and not self.failure and not turn.memory.effects:
            return sent(ReasonCode.MODEL_DOWN, [], error.trouble.value, code)
        key = f"model.{error.code.value}"
        words = self.failure or texts.say(key if texts.has(key) else "model.provider_error")
        return sent(ReasonCode.MODEL_FAILED, [Message(words)], error.code.value, code)

    def over_budget(self, turn: Turn, text: str, setting: str) -> TurnOutcome:
        """The model is not asked, since a share of the day is used up. What functions did is said, then `text`."""
        messages = [*self.told(turn), *([Message(text)] if text else [])]
        if not messages and self.failure:
            messages = [Message(self.failure)]
        return sent(ReasonCode.OVER_BUDGET, messages, setting, ErrorCode.REFUSED)


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


def _as_one(messages: Sequence[Message]) -> list[Message]:
    """`messages` with one in place of all that go to this chat."""
    here = [message for message in messages if message.to is None]
    files = tuple(file for message in here for file in message.attachments)
    joined = Message("\n".join(message.text for message in here), attachments=files)
    return [*(message for message in messages if message.to is not None), joined]


def _may_have_happened(result: FunctionResult) -> bool:
    """Whether something may have changed although the run failed, and nobody has heard of it."""
    if result.error is None or result.metadata is FROM_BEFORE:
        return False
    return result.error.code is ErrorCode.UNKNOWN_OUTCOME
