"""Calls of other functions by scripts, with the rights of caller and script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import StrEnum
from pathlib import PurePosixPath
from typing import NamedTuple

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.keywords import Asks, Grants, ScriptRun, Value
from function_calls.basic.run.session import HeldUpWithin, count_up
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
    """Whether a script with these grants may call `spec`. What does not reach beyond the chat needs none; the caller's
    own rights are checked where it runs."""
    return not reaches_out(spec) or any(name_matches(pattern, spec.name) for pattern in grants.functions)


def tool_name(text: str) -> str:
    """The name of the tool that a script means by `x`, `x.bas` or `shop.gbdialog/x.bas`."""
    name = PurePosixPath(text.strip().replace("\\", "/")).name
    return name[: -len(".bas")] if name.casefold().endswith(".bas") else name


SAID = "basic.said"
"""In the metadata of a script's result: what its messages are."""
STOPPED_AT = "basic.stopped_at"
"""In the metadata of the result of a run that stopped: where and why, for its author. The chat is told less."""


class Said(StrEnum):
    """What the messages of a script are."""

    TALK = "talk"
    """Said to the chat, also where another script has called this one."""
    VALUE = "value"
    """What it returned."""
    DONE = "done"
    """That it has run."""


STOPPED_WITHIN = "call.stopped"
"""In what a run keeps: why a script stopped that it called last. That says all, with that script's name and line."""
MOST_CALLS = 200
"""In one run: each of them is noted, and may be as much work as the run itself."""
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
    """The function that a script names."""

    spec: FunctionSpec
    by_command: bool
    """By the word with which people call it."""


def function_called(run: ScriptRun, text: str) -> Meant:
    """The function that a script names, by its name or by a command word of it, as far as its caller may call it here
    and the script may call it at all. Raises RunError."""
    functions = [one for one in run.call.functions() if not one.begins_chats]
    found = _meant(functions, text)
    if found is None:
        raise RunError(RunCode.NO_SUCH_THING, _unknown(run, functions, tool_name(text)))
    if not may_call(found.spec, run.grants):
        raise RunError(RunCode.NOT_ALLOWED, run.call.say("basic.call.not_granted", name=found.spec.name))
    return found


def _meant(functions: Sequence[FunctionSpec], text: str) -> Meant | None:
    names = dict.fromkeys((text.strip(), tool_name(text), tool_name(text).casefold()))
    # What only the clock runs has nothing to do for a script, and its name may be the word for something that has.
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
    """That nothing has this name, and what may be meant."""
    told = run.call.say("basic.call.unknown", name=name[:100])
    by_word = {word: spec.name for spec in functions for word in (spec.name.casefold(), *spec.command.words)}
    near = get_close_matches(name[:100].casefold(), by_word, 1, _NEAR)
    return f"{told} {run.call.say('commands.did_you_mean', commands=by_word[near[0]])}" if near else told


def arguments_of_call(run: ScriptRun, meant: Meant, given: Sequence[Value] | Mapping[str, Value]) -> JsonObject:
    """The arguments of a call. A single text behind a command word is read as people type it there. Raises RunError."""
    spec = meant.spec
    if meant.by_command and not isinstance(given, Mapping) and len(given) == 1 and isinstance(given[0], str):
        try:
            return arguments_of(plan_for(spec), given[0])
        except ArgumentError as fault:
            raise RunError(RunCode.BAD_VALUE, fault_text(spec, fault, run.call.profile.texts)) from None
    return named_arguments(run, spec, given)


def named_arguments(run: ScriptRun, spec: FunctionSpec, given: Sequence[Value] | Mapping[str, Value]) -> JsonObject:
    """The arguments of a call by their names: a map has them already, and so has a map that is the only value, unless
    the first parameter is one; others fill the parameters in order. What is NULL is left out. Raises RunError."""
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
    """`given` under the names of the parameters: scripts need not write them in the same case."""
    folded = {name.casefold(): name for name in properties}
    return {name if name in properties else folded.get(name.casefold(), name): one for name, one in given.items()}


async def call_function(run: ScriptRun, name: str, given: Sequence[Value] | Mapping[str, Value]) -> Value | Asks:
    """What the function of that name gives for these values, in order or by their names; or the question that it asks
    first. Raises RunError and HeldUpWithin."""
    asked = _Asked.of(run)
    run.kept.pop(_ASKED, None)
    if asked.waits is not None:
        called = str(asked.waits["function"])
        result = await _goes_on(run, asked.waits)
    else:
        meant = function_called(run, name)
        spec, called = meant.spec, meant.spec.name
        if not run.asked:
            count_up(run, _CALLS, MOST_CALLS, "call.too_often")
        arguments = arguments_of_call(run, meant, given)
        if run.answer is not None:
            asked = asked.answered(run, spec)
        elif run.asked:
            # It was held up for a person's yes, which was given.
            asked = replace(asked, is_confirmed=True)
        result = await run.call.invoke(spec.name, {**arguments, **asked.given}, confirmed=asked.is_confirmed)
    run.outside = run.outside or result.outside
    run.heard = True
    if result.question is not None:
        if asked.waits is not None and isinstance(result.question, ApprovalQuestion) and result.question.goes_on:
            # The nested run now needs an approval to continue, and scripts do not wait for that.
            await _ended(run, asked.waits)
        return _held_up(run, called, result, result.question, asked)
    return _value(run, result)


async def end_within(call: Call, resumed: Resumed) -> FunctionResult:
    """Let the run that a script was calling, and whose question it passed on, come to its end as the script does. What
    the chat has to hear of that: nothing, but that nobody knows what became of an effect."""
    kept = resumed.state["kept"].get(_ASKED)
    waits: JsonObject | None = kept[3] if kept is not None else None
    if waits is None:
        return FunctionResult()
    result = await _given(call, waits, "", resumed.kind)
    return result if unknown_end(result) else FunctionResult()


async def _goes_on(run: ScriptRun, waits: JsonObject) -> FunctionResult:
    """The result of the run that has asked something, with the answer; where it may not go on, it comes to its end.
    Raises RunError."""
    name = waits["function"]
    spec = next((one for one in run.call.functions() if one.name == name), None)
    if spec is not None and waits["edition"] != spec.fingerprint:
        raise RunError(RunCode.UNAVAILABLE, run.call.say("questions.changed", name=name))
    if spec is not None and not may_call(spec, run.grants):
        await _ended(run, waits)
        raise RunError(RunCode.NOT_ALLOWED, run.call.say("basic.call.not_granted", name=name))
    return await _given(run.call, waits, run.answer or "", "answered")


async def _ended(run: ScriptRun, waits: JsonObject) -> None:
    """Let the run that has asked something come to its end. Of that the chat hears only what it has to."""
    result = await _given(run.call, waits, "", "expired")
    for message in unknown_end(result):
        run.say(message)


async def _given(call: Call, waits: JsonObject, answer: str, kind: ResumedKind) -> FunctionResult:
    """The result of the run that has asked something, which is given what came of that."""
    before = Resumed(waits["state"], answer, kind, waits["number"])
    return await call.invoke(waits["function"], waits["arguments"], goes_on=before, allowed=waits["allowed"])


@dataclass(frozen=True, slots=True)
class _Asked:
    """What came of the questions of a call so far."""

    given: JsonObject
    """The arguments that the member gave."""
    field: str = ""
    """The argument that the last question was about; empty for a yes."""
    is_confirmed: bool = False
    waits: JsonObject | None = None
    """Of a run that has asked in its midst: what it goes on from."""

    @classmethod
    def of(cls, run: ScriptRun) -> _Asked:
        kept = run.kept.get(_ASKED) if run.asked else None
        return cls({}) if kept is None else cls(*kept)

    def answered(self, run: ScriptRun, spec: FunctionSpec) -> _Asked:
        """The same with the answer to the last question. Raises RunError for a no."""
        answer = run.answer or ""
        if self.field:
            value = value_of(spec.parameters["properties"][self.field], answer)
            return replace(self, given={**self.given, self.field: value}, field="")
        if read_yes_or_no(answer, run.call.profile.texts).kind is not Answered.YES:
            raise RunError(RunCode.NOT_ALLOWED, run.call.say("questions.dropped"))
        return replace(self, is_confirmed=True)

    def keep(self, run: ScriptRun, field: str = "", waits: JsonObject | None = None) -> None:
        """Know it again with the answer."""
        run.kept[_ASKED] = [self.given, field, self.is_confirmed, waits]


def _held_up(run: ScriptRun, called: str, result: FunctionResult, question: Question, asked: _Asked) -> Asks:
    """Pass a question of the function `called` on as the script's own."""
    match question:
        case ArgumentQuestion() if question.field not in asked.given:
            asked.keep(run, question.field)
            return Asks(question.text, question.choices)
        case ConfirmQuestion() if not asked.is_confirmed:
            asked.keep(run)
            return Asks(question.text, question.choices, only_choices=True)
        case ApprovalQuestion(goes_on=None) if not asked.is_confirmed:
            asked.keep(run)
            raise HeldUpWithin(question)
        case InputQuestion() if question.function == called:
            spec = next((one for one in run.call.functions() if one.name == called), None)
            if spec is not None:
                for message in result.messages:
                    run.say(message)
                asked.keep(run, waits=_waits(spec, question))
                raise HeldUpWithin(question)
    # The answer to a question that was passed on leads to the function that asked it, not to this script.
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
    """What a script is given of a result. What is for others than this chat, and files, go where they are meant for."""
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
        # Whatever the script makes of it: people have to hear that nobody knows.
        run.say(Message(error.text))
    if of_script:
        run.kept[STOPPED_WITHIN] = error.text
    return RunError(_CODES.get(error.code, RunCode.FAILED), error.text)
