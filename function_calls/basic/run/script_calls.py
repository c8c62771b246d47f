"""Calls of other functions by scripts, with the permissions of caller and script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import StrEnum
from pathlib import PurePosixPath
from typing import NamedTuple

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.keywords import Asks, Grants, ScriptRun, Value
from function_calls.basic.run.session import SuspendedByCall, count_up
from function_calls.call import Call
from function_calls.checks.permissions import reaches_out
from function_calls.questions.open_questions import Answered, read_yes_or_no
from function_calls.questions.waiting_runs import unknown_end
from function_calls.schema.commands import arguments_of, fault_text, plan_for, value_of
from function_calls.spec import (
    ApprovalQuestion,
    ArgumentError,
    ArgumentQuestion,
    ConfirmQuestion,
    FunctionError,
    FunctionResult,
    FunctionSpec,
    InputQuestion,
    Message,
    OfferedTo,
    Question,
    Resumed,
    ResumedKind,
)
from services.refs import ErrorCode, JsonObject
from services.storage import name_matches


def may_call(spec: FunctionSpec, grants: Grants) -> bool:
    """Whether a script with these grants may call `spec`. Functions without access outside the chat need no grant. The
    caller's own permissions are checked by `invoke`."""
    return not reaches_out(spec) or any(name_matches(pattern, spec.name) for pattern in grants.functions)


_SERVICE_PARTS = 2


def tool_name(text: str) -> str:
    """The tool name in a script's `x`, `x.bas` or `shop.gbdialog/x.bas`. The path of a service, `/crm/tickets/list`,
    names the function `crm_tickets_list`."""
    path = PurePosixPath(text.strip().replace("\\", "/"))
    is_service = path.is_absolute() and not path.suffix and len(path.parts) > _SERVICE_PARTS
    name = "_".join(path.parts[1:]) if is_service else path.name
    return name[: -len(".bas")] if name.casefold().endswith(".bas") else name


SAID = "basic.said"
"""Metadata key of a script's result: the kind of its messages, a `Said`."""
STOPPED_AT = "basic.stopped_at"
"""Metadata key of a stopped run's result: position and reason, for the author. The chat gets fewer details."""


class Said(StrEnum):
    """Kind of a script's messages."""

    TALK = "talk"
    """Messages for the chat, even if the script was called by another."""
    VALUE = "value"
    """The return value."""
    DONE = "done"
    """The confirmation that it has run."""


STOPPED_WITHIN = "call.stopped"
"""Key in `ScriptRun.stored_data`: error text of the last called script that stopped, with its name and line."""
MOST_CALLS = 200
"""Limit per run: each call is stored and may cost as much as the run itself."""
_CALLS = "call.count"
_ASKED = "call.asked"
_NEAR = 0.7
_CODES = {
    ErrorCode.REFUSED: RunCode.NOT_ALLOWED,
    ErrorCode.NOT_FOUND: RunCode.NO_SUCH_THING,
    ErrorCode.BAD_ARGUMENTS: RunCode.BAD_VALUE,
    ErrorCode.MISSING_ARGUMENTS: RunCode.BAD_VALUE,
    ErrorCode.TIMEOUT: RunCode.UNAVAILABLE,
    ErrorCode.TRANSIENT: RunCode.UNAVAILABLE,
    ErrorCode.ENVIRONMENT: RunCode.UNAVAILABLE,
}


class Meant(NamedTuple):
    """The function that a script calls."""

    spec: FunctionSpec
    by_command: bool
    """Whether it was found by a command word."""


def function_called(run: ScriptRun, text: str) -> Meant:
    """The function with this name or command word, if both the caller and the script may call it. Raises RunError
    otherwise (NO_SUCH_THING, NOT_ALLOWED)."""
    functions = [one for one in run.call.functions() if not one.is_start_function]
    found = _meant(functions, text)
    if found is None:
        raise RunError(RunCode.NO_SUCH_THING, _unknown(run, functions, tool_name(text)))
    if not may_call(found.spec, run.grants):
        raise RunError(RunCode.NOT_ALLOWED, run.call.say("basic.call.not_granted", name=found.spec.name))
    return found


def _meant(functions: Sequence[FunctionSpec], text: str) -> Meant | None:
    names = dict.fromkeys((text.strip(), tool_name(text), tool_name(text).casefold()))
    # Scheduled functions are useless to scripts, and their names may be command words of other functions.
    called = [spec for spec in functions if spec.access.offered_to != {OfferedTo.TIMER}]
    exact = {spec.name: spec for spec in called}
    folded = {spec.name.casefold(): spec for spec in called}
    words = {word: spec for spec in called for word in spec.command.words}
    for known in (exact, folded, words):
        for name in names:
            if name in known:
                return Meant(known[name], by_command=known is words)
    return None


def _unknown(run: ScriptRun, functions: Sequence[FunctionSpec], name: str) -> str:
    """Message for an unknown name, with a similar name if there is one."""
    message = run.call.say("basic.call.unknown", name=name[:100])
    by_word = {word: spec.name for spec in functions for word in (spec.name.casefold(), *spec.command.words)}
    near = get_close_matches(name[:100].casefold(), by_word, 1, _NEAR)
    return f"{message} {run.call.say('commands.did_you_mean', commands=by_word[near[0]])}" if near else message


def arguments_of_call(run: ScriptRun, meant: Meant, given: Sequence[Value] | Mapping[str, Value]) -> JsonObject:
    """Arguments of a call. A single text after a command word is parsed like a typed command. Raises RunError
    (BAD_VALUE) if they do not match the parameters."""
    spec = meant.spec
    if meant.by_command and not isinstance(given, Mapping) and len(given) == 1 and isinstance(given[0], str):
        try:
            return arguments_of(plan_for(spec), given[0])
        except ArgumentError as fault:
            raise RunError(RunCode.BAD_VALUE, fault_text(spec, fault, run.call.profile.texts)) from None
    return named_arguments(run, spec, given)


def named_arguments(run: ScriptRun, spec: FunctionSpec, given: Sequence[Value] | Mapping[str, Value]) -> JsonObject:
    """Arguments by name. A map is used as it is, also as the only value unless the first parameter is an object; other
    values are positional. NULLs are omitted. Raises RunError for more values than parameters."""
    properties: Mapping[str, JsonObject] = spec.parameters["properties"]
    first = next(iter(properties.values()), {})
    if isinstance(given, Mapping):
        named = _by_name(properties, given)
    elif len(given) == 1 and isinstance(given[0], dict) and first.get("type") != "object":
        named = _by_name(properties, given[0])
    elif len(given) > len(properties):
        text = run.call.say("basic.call.too_many", name=spec.name, most=len(properties), count=len(given))
        raise RunError(RunCode.BAD_VALUE, text)
    else:
        named = dict(zip(properties, given, strict=False))
    return {name: value for name, value in named.items() if value is not None}


def _by_name(properties: Mapping[str, JsonObject], given: Mapping[str, Value]) -> JsonObject:
    """`given` with its keys mapped to parameter names, ignoring case. Keys of no parameter are unchanged."""
    folded = {name.casefold(): name for name in properties}
    return {name if name in properties else folded.get(name.casefold(), name): one for name, one in given.items()}


async def call_function(run: ScriptRun, name: str, given: Sequence[Value] | Mapping[str, Value]) -> Value | Asks:
    """Call the function with positional or named values; returns its value or the question it asks first. Raises
    RunError if it may not be called or fails, and SuspendedByCall if it waits for an approval or for an answer that it
    resumes itself."""
    asked = _Asked.of(run)
    run.stored_data.pop(_ASKED, None)
    if asked.waits is not None:
        called = str(asked.waits["function"])
        result = await _resumed_call(run, asked.waits)
    else:
        meant = function_called(run, name)
        spec, called = meant.spec, meant.spec.name
        if not run.asked:
            count_up(run, _CALLS, MOST_CALLS, "call.too_often")
        arguments = arguments_of_call(run, meant, given)
        if run.answer is not None:
            asked = asked.answered(run, spec)
        elif run.asked:
            # It was suspended for an approval, which was given.
            asked = replace(asked, is_confirmed=True)
        result = await run.call.invoke(spec.name, {**arguments, **asked.given}, confirmed=asked.is_confirmed)
    run.has_outside_text = run.has_outside_text or result.outside
    run.knows_member_text = True
    if result.question is not None:
        if asked.waits is not None and isinstance(result.question, ApprovalQuestion) and result.question.interrupted:
            # The nested run now needs an approval to continue; scripts do not wait for that.
            await _ended(run, asked.waits)
        return _suspended(run, called, result, result.question, asked)
    return _value(run, result)


async def end_within(call: Call, resumed: Resumed) -> FunctionResult:
    """End the nested run whose question a script passed on, because the script ends. The result is empty unless the
    outcome of an effect is unknown, which has to be reported."""
    kept = resumed.state["kept"].get(_ASKED)
    waits: JsonObject | None = kept[3] if kept is not None else None
    if waits is None:
        return FunctionResult()
    result = await _given(call, waits, "", resumed.kind)
    return result if unknown_end(result) else FunctionResult()


async def _resumed_call(run: ScriptRun, waits: JsonObject) -> FunctionResult:
    """Resume the nested run with the answer and return its result; end it if the script may no longer call it. Raises
    RunError in that case, or if the function has changed."""
    name = waits["function"]
    spec = next((one for one in run.call.functions() if one.name == name), None)
    if spec is not None and waits["edition"] != spec.fingerprint:
        raise RunError(RunCode.UNAVAILABLE, run.call.say("questions.changed", name=name))
    if spec is not None and not may_call(spec, run.grants):
        await _ended(run, waits)
        raise RunError(RunCode.NOT_ALLOWED, run.call.say("basic.call.not_granted", name=name))
    return await _given(run.call, waits, run.answer or "", "answered")


async def _ended(run: ScriptRun, waits: JsonObject) -> None:
    """End the nested run that has asked a question; only an unknown outcome is reported to the chat."""
    result = await _given(run.call, waits, "", "expired")
    for message in unknown_end(result):
        run.say(message)


async def _given(call: Call, waits: JsonObject, answer: str, kind: ResumedKind) -> FunctionResult:
    """The result of the nested run, resumed with the outcome of its question."""
    before = Resumed(waits["state"], answer, kind, waits["number"])
    return await call.invoke(waits["function"], waits["arguments"], resumed=before, allowed=waits["allowed"])


@dataclass(frozen=True, slots=True)
class _Asked:
    """State of a call's questions so far."""

    given: JsonObject
    """Arguments supplied by the member."""
    field: str = ""
    """The argument that the last question asked for; empty for a confirmation."""
    is_confirmed: bool = False
    waits: JsonObject | None = None
    """Saved state of a nested run that asked a question while running."""

    @classmethod
    def of(cls, run: ScriptRun) -> _Asked:
        kept = run.stored_data.get(_ASKED) if run.asked else None
        return cls({}) if kept is None else cls(*kept)

    def answered(self, run: ScriptRun, spec: FunctionSpec) -> _Asked:
        """The state with the answer to the last question. Raises RunError for a no."""
        answer = run.answer or ""
        if self.field:
            value = value_of(spec.parameters["properties"][self.field], answer)
            return replace(self, given={**self.given, self.field: value}, field="")
        if read_yes_or_no(answer, run.call.profile.texts).kind is not Answered.YES:
            raise RunError(RunCode.NOT_ALLOWED, run.call.say("questions.dropped"))
        return replace(self, is_confirmed=True)

    def keep(self, run: ScriptRun, field: str = "", waits: JsonObject | None = None) -> None:
        """Save the state until the answer."""
        run.stored_data[_ASKED] = [self.given, field, self.is_confirmed, waits]


def _suspended(run: ScriptRun, called: str, result: FunctionResult, question: Question, asked: _Asked) -> Asks:
    """Pass on a question of the function `called` as the script's own question. Raises SuspendedByCall for approvals
    and for questions that the function itself resumes, and RunError for questions that cannot be passed on."""
    match question:
        case ArgumentQuestion() if question.field not in asked.given:
            asked.keep(run, question.field)
            return Asks(question.text, question.choices)
        case ConfirmQuestion() if not asked.is_confirmed:
            asked.keep(run)
            return Asks(question.text, question.choices, only_choices=True)
        case ApprovalQuestion(interrupted=None) if not asked.is_confirmed:
            asked.keep(run)
            raise SuspendedByCall(question)
        case InputQuestion() if question.function == called:
            spec = next((one for one in run.call.functions() if one.name == called), None)
            if spec is not None:
                for message in result.messages:
                    run.say(message)
                asked.keep(run, waits=_waits(spec, question))
                raise SuspendedByCall(question)
    # The answer to such a question would go to the function that asked it, not to this script.
    key = "asks_itself" if isinstance(question, InputQuestion) else "needs_yes"
    raise RunError(RunCode.NOT_ALLOWED, run.call.say(f"basic.call.{key}", name=called))


def _waits(spec: FunctionSpec, question: InputQuestion) -> JsonObject:
    return {
        "function": spec.name,
        "arguments": question.arguments,
        "state": question.resume,
        "number": question.number,
        "allowed": question.allowed,
        "edition": spec.fingerprint,
    }


def _value(run: ScriptRun, result: FunctionResult) -> Value:
    """The value of a result. Its messages for other recipients and its attachments are sent."""
    kind, error = result.metadata.get(SAID), result.error
    for message in result.messages:
        is_why = error is not None and message.text == error.text
        if (kind == Said.TALK and not is_why) or message.to is not None or message.attachments:
            run.say(message)
    if error is not None:
        raise _fault(run, error, of_script=kind is not None)
    text = "" if kind in (Said.TALK, Said.DONE) else result.reply
    if result.data is None:
        return text or None
    if text and isinstance(result.data, dict) and "text" not in result.data:
        return {**result.data, "text": text}
    return result.data


def _fault(run: ScriptRun, error: FunctionError, *, of_script: bool) -> RunError:
    if error.code is ErrorCode.UNKNOWN_OUTCOME:
        # An unknown outcome is reported to people, however the script handles the error.
        run.say(Message(error.text))
    if of_script:
        run.stored_data[STOPPED_WITHIN] = error.text
    return RunError(_CODES.get(error.code, RunCode.FAILED), error.text)
