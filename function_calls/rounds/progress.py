"""State of a turn between model rounds: calls made, repeated calls, and how the turn ends."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson
import structlog

from config.settings import RouterSettings
from config.texts import Phrases
from function_calls.call import Path
from function_calls.context import MessageContext
from function_calls.failures import FAILURE_ID
from function_calls.outcome import OutcomeKind, TurnOutcome, cause, sent, shown, suspended
from function_calls.registry import FIND_FUNCTIONS
from function_calls.result import result_from_json, result_to_json
from function_calls.rounds.claims import Act, acts_from_json, acts_to_json, admits, is_cheerful, nested_acts
from function_calls.rounds.conversation import doubt_message, fenced, result_text
from function_calls.schema.commands import done_text, plain_name, spoken_name
from function_calls.spec import (
    TAINTING,
    ArgumentQuestion,
    FunctionError,
    FunctionResult,
    FunctionSpec,
    Message,
    Question,
)
from function_calls.turn import Continuation, Turn
from services.llm.model import ModelError, ModelMessage, ToolCall, call_to_json, message_to_json
from services.refs import Effect, ErrorCode, JsonObject, ReasonCode

REPEATED_RESULT = MappingProxyType({"from_before": True})
"""Metadata of a cached result, returned for a repeated call; its messages have already been sent."""
Signature = tuple[str, str]
"""A function's name and its arguments in canonical form."""


@dataclass(slots=True)
class CallsMade:
    """Calls of a turn and their results."""

    count: int = 0
    """Number of calls accepted for running."""
    _times: dict[Signature, int] = field(default_factory=dict)
    _found: dict[Signature, FunctionResult] = field(default_factory=dict)
    """Results of reads."""
    _done: dict[Signature, FunctionResult] = field(default_factory=dict)
    """Results of effects."""

    def repeated(self, signature: Signature, most: int) -> FunctionResult | None:
        """Count a call. Returns the cached result of an identical call if this one must not run: effects run once,
        reads at most `most` times."""
        times = self._times[signature] = self._times.get(signature, 0) + 1
        before = self._done.get(signature)
        if before is None and times > most:
            before = self._found.get(signature)
        return None if before is None else replace(before, messages=(), metadata=REPEATED_RESULT)

    def ended(self, spec: FunctionSpec, signature: Signature, result: FunctionResult) -> None:
        """Cache the result of a call. Failed calls may be repeated, except those of `once` functions."""
        if result.question is not None or (result.error is not None and spec.execution.effect is not Effect.ONCE):
            return
        results = self._found if spec.execution.effect is Effect.READ else self._done
        results[signature] = result

    def to_json(self) -> JsonObject:
        """Plain data without the results of reads, which may run again."""
        return {
            "count": self.count,
            "times": [[*signature, times] for signature, times in self._times.items()],
            "done": [[*signature, result_to_json(result)] for signature, result in self._done.items()],
        }


def calls_from_json(data: JsonObject) -> CallsMade:
    """Restore the calls that `to_json` wrote."""
    times = {(name, arguments): times for name, arguments, times in data["times"]}
    done = {(name, arguments): result_from_json(result) for name, arguments, result in data["done"]}
    return CallsMade(data["count"], times, _done=done)


def signature_of(spec: FunctionSpec, arguments: Mapping[str, Any]) -> Signature:
    """Key that identical calls share."""
    return spec.name, orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS).decode()


@dataclass(slots=True)
class LoopWatch:
    """Detects model rounds without progress.

    A round makes progress if one of its calls returns a result of a function that is new in this turn, unless the
    arguments only extend those of the function's last call. Calls that repeat, alternate or grow make no progress.
    """

    stalled: int = 0
    """Number of consecutive rounds without progress."""
    _seen: set[tuple[str, str]] = field(default_factory=set)
    """Function names with digests of their results."""
    _latest: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _progress: bool = False

    def note(self, function: str, arguments: Mapping[str, Any], result: FunctionResult) -> None:
        """Record a completed call of this round. Cached results are ignored."""
        if result.metadata is REPEATED_RESULT:
            return
        content = orjson.dumps((result.data, result.error, [one.text for one in result.messages]), default=str)
        found = (function, hashlib.blake2b(content, digest_size=16).hexdigest())
        if found not in self._seen and not _grown(self._latest.get(function), arguments):
            self._progress = True
        self._seen.add(found)
        self._latest[function] = arguments

    def end_round(self) -> None:
        """End the round."""
        self.stalled = 0 if self._progress else self.stalled + 1
        self._progress = False

    def to_json(self) -> JsonObject:
        """Plain data; also valid in the middle of a round."""
        return {
            "stalled": self.stalled,
            "seen": sorted(self._seen),
            "latest": dict(self._latest),
            "progress": self._progress,
        }


def loops_from_json(data: JsonObject) -> LoopWatch:
    """Restore the watch that `to_json` wrote."""
    seen = {(function, digest) for function, digest in data["seen"]}
    return LoopWatch(data["stalled"], seen, data["latest"], data["progress"])


def _grown(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> bool:
    """Whether `now` equals `before` except for text values that were extended."""
    if before is None or before.keys() != now.keys() or before == now:
        return False
    return all(
        now[name] == value
        or (isinstance(value, str) and isinstance(now[name], str) and value != "" and value in now[name])
        for name, value in before.items()
    )


_log = structlog.get_logger("llm")
_MOST_LISTED = 5
_LONGEST_REASON = 200
_SENTENCE_ENDS = (". ", "! ", "。", "！")


class Undone(NamedTuple):
    """An effect call that was refused, failed or has an unknown outcome."""

    function: str
    reason: str
    """Text for the chat, or empty."""
    round_number: int
    is_unknown: bool = False
    replaced_by: str | None = None
    """Function whose success in a later round replaces this call, which was the model's mistake; empty for any."""


@dataclass(slots=True)
class Progress:
    """State of a turn between model rounds."""

    context: MessageContext
    turn: Turn
    settings: RouterSettings
    messages: list[ModelMessage]
    round_number: int = 0
    found: list[Message] = field(default_factory=list)
    """Messages of reads since the last round: sent if the model adds no text."""
    calls: CallsMade = field(default_factory=CallsMade)
    repairs: int = 0
    called: list[str] = field(default_factory=list)
    handled: bool = False
    """A function has handled the message."""
    error: ErrorCode | None = None
    failure: str = ""
    """Error text for the chat if the model cannot recover."""
    went_wrong: bool = False
    """A call of the latest answer failed."""
    asked: tuple[str, ...] = ()
    cause: str = ""
    """Cause of `error`, for `/why`."""
    failed: dict[str, str] = field(default_factory=dict)
    """Log ids of failures without a later success, by function name."""
    loops: LoopWatch = field(default_factory=LoopWatch)
    acts: list[Act] = field(default_factory=list)
    """Successful effects."""
    undone: dict[Signature, Undone] = field(default_factory=dict)
    """Effect calls without a later success."""
    quiet: list[FunctionSpec] = field(default_factory=list)
    """Functions whose successful effects sent no message to the chat."""
    has_read: bool = False
    """A read returned a result, so the model may report it."""
    earlier_reports: str = ""
    """Earlier reports of the bot, if the message asks about the past."""
    doubted: str = ""
    """The model's answer that it was asked to verify."""

    @property
    def said(self) -> list[Message]:
        """Messages of effects: sent whatever the model answers."""
        return self.turn.output.said

    @property
    def texts(self) -> Phrases:
        """Texts in the chat's language."""
        return self.turn.input.profile().texts

    def note(
        self, call: ToolCall, spec: FunctionSpec | None, result: FunctionResult, before: Sequence[str] = ()
    ) -> bool:
        """Add the result of `call` to the conversation and collect its messages. `before`: texts sent with its
        question. Returns True if the call itself was invalid."""
        is_read = spec is not None and spec.execution.effect is Effect.READ
        said = spec is not None and not is_read
        self.loops.note(call.name, call.arguments or {}, result)
        text = result_text(result, self.settings, said=said, before=before)
        if spec is not None and (result.outside or not spec.execution.touches.isdisjoint(TAINTING)):
            text = fenced(text, spec.name)
        self.messages.append(ModelMessage("tool", text, call_id=call.id))
        if result.error is not None:
            return self._note_error(call, spec, result, result.error)
        if spec is None or spec is FIND_FUNCTIONS or result.metadata is REPEATED_RESULT:
            return False
        if result.question is not None:
            if not is_read:
                self._add_undone(call, spec, result.question.text)
            return False
        messages = shown(result)
        self._remove_undone(call, spec)
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

    def _note_error(
        self, call: ToolCall, spec: FunctionSpec | None, result: FunctionResult, error: FunctionError
    ) -> bool:
        """Record a failed call. Returns True if the call itself was invalid."""
        self.went_wrong = True
        code = error.code
        if code in (ErrorCode.BAD_ARGUMENTS, ErrorCode.MISSING_ARGUMENTS):
            code = ErrorCode.SCHEMA_MISMATCH
        self.cause = self.cause if self.error else (code.value if spec is None else cause(result, spec))
        if spec is not None and FAILURE_ID in result.metadata:
            self.failed[spec.name] = str(result.metadata[FAILURE_ID])
        self.error = self.error or code
        self.failure = error.text if spec is not None and call.fault is None else ""
        if _may_have_happened(result):
            self.said.extend(result.for_chat())
        if spec is None or spec.execution.effect is not Effect.READ:
            self._add_undone(call, spec, error.text, code)
        return code in _FAULTS_OF_THE_MODEL

    def _add_undone(
        self, call: ToolCall, spec: FunctionSpec | None, reason: str, code: ErrorCode | None = None
    ) -> None:
        if not call.name:
            return
        is_mistake = code is ErrorCode.NOT_FOUND or (
            code in _FAULTS_OF_THE_MODEL and code is not ErrorCode.TOO_MANY_CALLS
        )
        self.undone[_key(call)] = Undone(
            call.name if spec is None else spec.name,
            "" if call.fault else reason,
            self.round_number,
            code is ErrorCode.UNKNOWN_OUTCOME,
            (spec.name if spec else "") if is_mistake else None,
        )

    def _remove_undone(self, call: ToolCall, spec: FunctionSpec) -> None:
        """Remove the call, which succeeded, or else the earlier mistake that it replaces."""
        if self.undone.pop(_key(call), None) is not None:
            return
        for key, one in self.undone.items():
            if one.replaced_by in ("", spec.name) and one.round_number < self.round_number:
                del self.undone[key]
                return

    def report(self, messages: Sequence[Message], text: str = "") -> list[Message]:
        """The bot's own line of what was done and what was not. Empty if no effect failed, if the model's `text` says
        it, or if the bot's `messages` say it and `text` has no word of success."""
        texts = self.texts
        undone = list((self.undone if is_cheerful(text) else self._unsaid(messages)).values())
        if not undone or (len({one.function for one in undone}) == 1 and admits(text)):
            return []
        done = {act.spec.name: act.spec for act in (*self.acts, *nested_acts(self.turn))}
        listed: dict[str, dict[str, None]] = {"not_done": {}, "partly_done": {}, "unknown": {}}
        for one in undone:
            key = "unknown" if one.is_unknown else "partly_done" if one.function in done else "not_done"
            listed[key][_described(one, self.turn)] = None
        lines = []
        for key, described in listed.items():
            names = "; ".join([*described][:_MOST_LISTED]) + ("; …" if len(described) > _MOST_LISTED else "")
            lines += [texts.say(f"claims.{key}", names=names)] if names else []
        failed = {one.function for one in undone}
        lines.append(done_text((spec for name, spec in done.items() if name not in failed), texts))
        return [Message("\n".join(filter(None, lines)))]

    def _unsaid(self, messages: Sequence[Message]) -> dict[Signature, Undone]:
        """`undone` without the calls whose failure is one of the bot's `messages`."""
        said = {message.text for message in messages}
        return {key: one for key, one in self.undone.items() if not one.reason or one.reason not in said}

    def remember(self, on: Continuation) -> None:
        """Restore the state from before the question. Records of older releases have none."""
        known = on.remembered
        if known:
            self.calls, self.loops = calls_from_json(known["calls"]), loops_from_json(known["loops"])
            self.acts = acts_from_json(known["acts"], self.turn.input.functions)
            self.has_read, self.earlier_reports = known["has_read"], known["told_before"]
            self.undone = {(name, arguments): Undone(*one) for name, arguments, *one in known.get("undone", ())}

    def _remembered(self) -> JsonObject:
        """State for `remember`."""
        return {
            "calls": self.calls.to_json(),
            "loops": self.loops.to_json(),
            "acts": acts_to_json([*self.acts, *nested_acts(self.turn)]),
            "undone": [[*key, *one] for key, one in self._unsaid(self.said).items()],
            "has_read": self.has_read,
            "told_before": self.earlier_reports,
        }

    def answered(self, call: ToolCall, result: FunctionResult) -> None:
        """Cache the result of the call that a question interrupted, under the arguments of the model and under those of
        the run, because the model may repeat either."""
        calls = (one for message in reversed(self.messages) for one in message.calls)
        made = next((one for one in calls if one.id == call.id), call)
        for one in (made, call):
            spec = self.turn.input.functions.find(one.name)
            if spec is not None and one.arguments is not None:
                self.calls.ended(spec, signature_of(spec, one.arguments), result)

    def doubt(self, text: str) -> None:
        """Ask the model in another round to verify its answer."""
        self.doubted = text
        self.messages += [ModelMessage("assistant", text), doubt_message()]
        self.round_number += 1

    def refuse_all(self, calls: Sequence[ToolCall]) -> None:
        """Refuse all calls of an answer that contains more than a whole turn may have."""
        text = self.texts.say("failures.too_many_calls")
        refused = FunctionResult.fail(ErrorCode.TOO_MANY_CALLS, text)
        for call in calls:
            self.messages.append(ModelMessage("tool", result_text(refused, self.settings, said=False), call_id=call.id))
            spec = self.turn.input.functions.find(call.name)
            if spec is None or spec.execution.effect is not Effect.READ:
                self._add_undone(call, spec, text, ErrorCode.TOO_MANY_CALLS)
        self.error, self.failure, self.went_wrong = ErrorCode.TOO_MANY_CALLS, text, True

    def suspended(
        self,
        spec: FunctionSpec,
        call: ToolCall,
        rest: Sequence[ToolCall],
        result: FunctionResult,
        question: Question,
        *,
        final: bool,
    ) -> TurnOutcome:
        """End the turn with the question of `result`, and save the rounds for its answer."""
        outcome = suspended(
            self.turn,
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
            remembered=self._remembered(),
        )
        error = ErrorCode.SCHEMA_MISMATCH if isinstance(question, ArgumentQuestion) else None
        return replace(outcome, messages=(*self.said, *self.found, *outcome.messages), error=error)

    def all_direct(self) -> bool:
        """Whether all calls of the latest answer have `return_direct`."""
        if self.went_wrong:
            return False
        for message in reversed(self.messages):
            if message.role != "assistant":
                continue
            for call in message.calls:
                spec = self.turn.input.functions.find(call.name)
                if spec is None or not spec.execution.return_direct:
                    return False
            return True
        return False

    def chat_messages(self) -> list[Message]:
        """Messages for the chat without a text of the model: those of effects, a sentence for effects without messages,
        and those of reads."""
        quiet = self.quiet
        if not (quiet or self.said or self.found):
            quiet = [act.spec for act in nested_acts(self.turn)]
        named = done_text(quiet, self.texts)
        return [*self.said, *([Message(named)] if named else []), *self.found]

    def done(self, text: str, *, direct: bool = False, was_false: bool = False) -> TurnOutcome:
        """Outcome after the last answer: the model's text or the functions' messages, and a failure. `direct`: the
        functions' messages are the answer; without any, nothing is sent unless the message answers a question.
        `was_false`: the text is what remains after false claims were removed; the report follows in any case."""
        is_reported = was_false and bool(self.undone)
        if is_reported:
            messages = [*self.said, *([Message(text, markdown=True)] if text else []), *self.report(self.said)]
        elif text:
            messages = [*self.said, Message(text, markdown=True)]
        elif direct and self.turn.input.answering is None:
            messages = [*self.said, *self.found]
        else:
            messages = self.chat_messages()
        reason = ReasonCode.FUNCTION if self.called else ReasonCode.CHAT
        if not messages and (self.failure or self.went_wrong):
            messages = [Message(self.failure or self.texts.say("failures.model_confused"))]
            reason = ReasonCode.REFUSED if self.error is ErrorCode.REFUSED else ReasonCode.FUNCTION_FAILED
            return sent(reason, messages, self.cause, self.error)
        if (
            self.went_wrong
            and self.failure
            and not text
            and not is_reported
            and all(one.text != self.failure for one in messages)
        ):
            messages.append(Message(self.failure))
        if not is_reported:
            messages += self.report(messages, text)
        if not messages and self.called and not self.handled and not self.turn.memory.effects:
            return TurnOutcome(OutcomeKind.FALLBACK, ReasonCode.CHAT, detail=self.called[-1])
        if self.error is ErrorCode.REFUSED and not self.called:
            return sent(ReasonCode.REFUSED, messages, self.cause, self.error)
        if self.failed and not self.called:
            # The model has reported the failure in its text; the ids lead to the log.
            return sent(ReasonCode.FUNCTION_FAILED, messages, ", ".join(self.failed.values()), self.error)
        named = self._named()
        detail = f"@vouching.words {named}" if named in self.turn.memory.vouched else named
        return sent(reason, messages, detail, self.error)

    def _named(self) -> str:
        """Names of the called functions without duplicates, and log ids of the failures."""
        if len(self.called) == 1 and not self.failed:
            return self.called[0]
        failed = [f"{name} (✗ {short_id})" for name, short_id in self.failed.items()]
        return ", ".join([*dict.fromkeys(self.called), *failed])

    def gave_up(self, text: str) -> TurnOutcome:
        """Outcome if the rounds are used up, the model repeats itself, or it keeps making invalid calls."""
        words = text or self.failure or self.texts.say("failures.model_confused")
        reason = ReasonCode.FUNCTION if self.said or self.quiet else ReasonCode.MODEL_FAILED
        last = Message(words, markdown=bool(text))
        messages = self.chat_messages() if self.said or self.quiet else _as_one([*self.found, last])
        if text or self.said or self.quiet:
            messages += self.report(messages, text)
        return sent(reason, messages, ", ".join(self.called), self.error)

    def model_failed(self, error: ModelError, *, was_notified: bool = False) -> TurnOutcome:
        """Outcome without a usable answer: the messages of effects and reads, or else an error text. Silent if nothing
        was tried and the chat `was_notified` of the outage already."""
        code = self.error or error.code
        _log.warning(
            "model_failed",
            turn=self.turn.input.id,
            code=error.code.value,
            error=str(error),
            request_id=error.request_id,
        )
        messages = self.chat_messages()
        if messages:
            messages += self.report(messages)
            return sent(ReasonCode.FUNCTION, messages, ", ".join(self.called), code)
        if was_notified and not self.failure and not self.turn.memory.effects:
            return sent(ReasonCode.MODEL_DOWN, [], error.problem.value, code)
        key = f"model.{error.code.value}"
        words = self.failure or self.texts.say(key if self.texts.has(key) else "model.provider_error")
        return sent(ReasonCode.MODEL_FAILED, [Message(words)], error.code.value, code)

    def over_budget(self, text: str, setting: str) -> TurnOutcome:
        """Outcome if a daily budget is used up: the messages of effects and reads, then `text`."""
        messages = [*self.chat_messages(), *([Message(text)] if text else [])]
        if not messages and self.failure:
            messages = [Message(self.failure)]
        messages += self.report(messages)
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


def _key(call: ToolCall) -> Signature:
    """Key of a call, whether or not it could be parsed: its id if it has no arguments."""
    if call.arguments is None:
        return call.name, call.id
    return call.name, orjson.dumps(call.arguments, option=orjson.OPT_SORT_KEYS).decode()


def _described(one: Undone, turn: Turn) -> str:
    """Function of the call and, if the outcome is known, the first line of the reason."""
    spec = turn.input.functions.find(one.function)
    reason = one.reason.strip().split("\n")[0]
    if reason.endswith((":", "：")):
        reason = reason[: max(map(reason.rfind, _SENTENCE_ENDS)) + 1]  # the lines that follow are left out
    reason = reason[:_LONGEST_REASON].rstrip(".。!！ ")
    if spec is None:
        return reason or plain_name(one.function)
    name = spoken_name(spec, turn.input.profile().texts.language)
    is_plain = one.is_unknown or not reason or one.reason == turn.input.profile().texts.say("questions.dropped")
    return name if is_plain else f"{name} – {reason}"


def _as_one(messages: Sequence[Message]) -> list[Message]:
    """`messages` with all messages for this chat joined into one."""
    here = [message for message in messages if message.to is None]
    files = tuple(file for message in here for file in message.attachments)
    text, markdown = "\n".join(message.text for message in here), all(message.markdown for message in here)
    joined = Message(text, attachments=files, markdown=markdown)
    return [*(message for message in messages if message.to is not None), joined]


def _may_have_happened(result: FunctionResult) -> bool:
    """Whether a failed run may have had an effect that has not been reported yet."""
    if result.error is None or result.metadata is REPEATED_RESULT:
        return False
    return result.error.code is ErrorCode.UNKNOWN_OUTCOME
