"""A script calls another function: by the one way on which functions run, with the rights of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from function_calls.answers import Answered, read_yes_or_no
from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.keywords import Asks, ScriptRun, Value
from function_calls.scripts.ending import NeedsYes
from function_calls.scripts.rights import may_call, tool_name
from function_calls.spec import FunctionError, FunctionResult, FunctionSpec, Message, Question
from services.json_values import JsonObject
from services.refs import ErrorCode

SAID = "basic.said"
"""In the metadata of a script's result: what its messages are."""


class Said(StrEnum):
    """What the messages of a script are."""

    TALK = "talk"
    """Said to the chat, also where another script has called this one."""
    VALUE = "value"
    """What it returned."""
    DONE = "done"
    """That it has run."""


_CODES = {
    ErrorCode.REFUSED: RunCode.NOT_ALLOWED,
    ErrorCode.NOT_FOUND: RunCode.NO_SUCH_THING,
    ErrorCode.BAD_ARGUMENTS: RunCode.BAD_VALUE,
    ErrorCode.MISSING_ARGUMENTS: RunCode.BAD_VALUE,
    ErrorCode.TIMEOUT: RunCode.UNAVAILABLE,
    ErrorCode.TRANSIENT: RunCode.UNAVAILABLE,
    ErrorCode.ENVIRONMENT: RunCode.UNAVAILABLE,
}


def function_called(run: ScriptRun, text: str) -> FunctionSpec:
    """The function that a script names, as far as its caller may call it here and the script may call it at all. Raises
    RunFault."""
    texts = run.call.profile.texts
    names = (text.strip(), tool_name(text))
    known = {spec.name: spec for spec in run.call.functions()}
    spec = next((known[name] for name in names if name in known), None)
    if spec is None:
        folded = {name.casefold(): one for name, one in known.items()}
        spec = folded.get(names[1].casefold())
    if spec is None:
        raise RunFault(RunCode.NO_SUCH_THING, texts.say("basic.call.unknown", name=names[1][:100]))
    if not may_call(spec, run.grants):
        raise RunFault(RunCode.NOT_ALLOWED, texts.say("basic.call.not_granted", name=spec.name))
    return spec


def named_arguments(spec: FunctionSpec, given: Sequence[Value]) -> JsonObject:
    """The arguments of a call by their names: a map alone has them already, others fill the parameters in order. What
    is NULL is left out. Raises RunFault."""
    properties: Mapping[str, JsonObject] = spec.parameters["properties"]
    first = next(iter(properties.values()), {})
    if len(given) == 1 and isinstance(given[0], dict) and first.get("type") != "object":
        folded = {name.casefold(): name for name in properties}
        named: JsonObject = {folded.get(str(name).casefold(), str(name)): value for name, value in given[0].items()}
    elif len(given) > len(properties):
        raise RunFault(RunCode.BAD_VALUE, f"{spec.name} takes {len(properties)} values, not {len(given)}")
    else:
        named = dict(zip(properties, given, strict=False))
    return {name: value for name, value in named.items() if value is not None}


async def call_function(run: ScriptRun, spec: FunctionSpec, arguments: JsonObject) -> Value | Asks:
    """What the call gives; or the question that it asks first. Raises RunFault and NeedsYes."""
    # Held up for a person's yes before, or for the member's own: this is the run that it was for.
    is_confirmed = run.asked > 0
    if run.answer is not None and read_yes_or_no(run.answer, run.call.profile.texts).kind is not Answered.YES:
        raise RunFault(RunCode.NOT_ALLOWED, run.call.say("questions.dropped"))
    result = await run.call.invoke(spec.name, arguments, confirmed=is_confirmed)
    if result.question is not None:
        return _held_up(run, spec, result.question)
    run.outside = run.outside or result.outside
    return _value(run, result)


def _held_up(run: ScriptRun, spec: FunctionSpec, question: Question) -> Asks:
    if question.terms is not None and not run.asked and not question.is_of_a_run:
        raise NeedsYes(question)
    if question.kind == "confirm":
        return Asks(question.text, question.choices, only_choices=True)
    key = "needs_yes" if question.terms is not None else "asks_itself"
    raise RunFault(RunCode.NOT_ALLOWED, run.call.say(f"basic.call.{key}", name=spec.name))


def _value(run: ScriptRun, result: FunctionResult) -> Value:
    """What a script is given of a result. What is for others than this chat, and files, go where they are meant for."""
    kind = result.metadata.get(SAID)
    for message in result.messages:
        if kind == Said.TALK or message.to is not None or message.attachments:
            run.say(message)
    if result.error is not None:
        raise _fault(run, result.error)
    text = "" if kind in (Said.TALK, Said.DONE) else result.reply
    if result.data is None:
        return text or None
    if text and isinstance(result.data, dict) and "text" not in result.data:
        return {**result.data, "text": text}
    return result.data


def _fault(run: ScriptRun, error: FunctionError) -> RunFault:
    if error.code is ErrorCode.UNKNOWN_OUTCOME:
        # Whatever the script makes of it: people have to hear that nobody knows.
        run.say(Message(error.text))
    return RunFault(_CODES.get(error.code, RunCode.FAILED), error.text)
