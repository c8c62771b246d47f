"""Questions for missing arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from config.texts import Phrases
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.outcome import TurnOutcome
from function_calls.profile import ChatProfile
from function_calls.questions.open_questions import Answer, Answered, bare_word, declared_text
from function_calls.questions.waiting_runs import WaitingTurn
from function_calls.registry import BotFunctions
from function_calls.schema.arguments import SchemaArguments
from function_calls.schema.commands import allowed, fault_text, spoken_name, value_of
from function_calls.schema.definition import build_spec
from function_calls.spec import ArgumentError, ArgumentQuestion, Choice, FunctionResult, FunctionSpec
from services.refs import ErrorCode, JsonObject


async def _not_run(context: MessageContext, arguments: Any, call: Call) -> FunctionResult:
    raise NotImplementedError("a model's call for a question is no function")


INSUFFICIENT = build_spec(
    name="insufficient_arguments",
    description="",
    handler=_not_run,
    arguments=SchemaArguments({"type": "object", "properties": {}}),
    parameters={"type": "object", "properties": {}, "required": []},
    options={"effect": "read", "offered_to": []},
    source="function_calls/questions/argument_questions.py:1",
)
"""Special call of a model that asks the member for missing values before it calls a function."""


def models_question(arguments: Mapping[str, Any], functions: BotFunctions, texts: Phrases) -> str:
    """Text of the question in an INSUFFICIENT call; empty if it has none. The confirmation prompt of the function that
    the call names takes precedence."""
    name, text = arguments.get("function"), arguments.get("question") or arguments.get("message")
    spec = functions.find(name) if isinstance(name, str) else None
    prompt = "" if spec is None else declared_text(spec, spec.access.confirm, {}, texts).strip()
    return prompt or (text.strip() if isinstance(text, str) else "")


async def resume_model(waiting: WaitingTurn, text: str) -> TurnOutcome:
    """Continue the model's rounds with the member's answer to an INSUFFICIENT call, or drop them."""
    answer = read_argument(text, waiting.texts)
    if answer.kind is not Answered.FILLED:
        return await waiting.drop(INSUFFICIENT, is_clear=False)
    waiting.restore()
    result = FunctionResult(data={"answer": answer.value})
    return await waiting.rounds.resume(waiting.context, waiting.turn, waiting.on, result, INSUFFICIENT.name)


def faulty(spec: FunctionSpec, fault: ArgumentError, raw: Mapping[str, Any], profile: ChatProfile) -> FunctionResult:
    """Failed result for invalid arguments, with the valid values and the usage line; if arguments are only missing,
    with the question for the first of them."""
    texts: Phrases = profile.texts
    fields, text = (*fault.problems, *fault.missing), fault_text(spec, fault, texts)
    if fault.problems or not spec.parameters["properties"].keys() >= set(fault.missing):
        # A value inside another one cannot be asked for.
        return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, text, fields)
    question = argument_question(spec, dict(raw), fault.missing[0], texts)
    return replace(FunctionResult.fail(ErrorCode.MISSING_ARGUMENTS, text, fields), question=question)


def argument_question(spec: FunctionSpec, raw: JsonObject, field: str, texts: Phrases) -> ArgumentQuestion:
    """Ask for the missing argument `field`: in the declared words, else in a sentence made from the schema."""
    schema = spec.parameters["properties"].get(field, {})
    text = declared_text(spec, spec.execution.ask.get(field, ""), raw, texts)
    if not text:
        described = schema.get("description") or field
        text = texts.say(
            "questions.argument",
            name=spoken_name(spec, texts.language),
            field=described.rstrip("."),
            allowed=allowed(schema, texts),
        )
    choices = tuple(Choice(str(value), str(value)) for value in schema.get("enum", ())[:10])
    return ArgumentQuestion(text, spec.name, raw, choices, field=field)


def read_argument(text: str, texts: Phrases) -> Answer:
    """FILLED with the value, CANCELLED, or UNRELATED for a message without text."""
    word = bare_word(text)
    if not word:
        return Answer(Answered.UNRELATED)
    if word in texts.words("answers.cancel"):
        return Answer(Answered.CANCELLED)
    return Answer(Answered.FILLED, text.strip())


def with_value(question: ArgumentQuestion, spec: FunctionSpec, value: str) -> JsonObject:
    """The arguments of `question` with the answer `value`."""
    return {**question.arguments, question.field: value_of(spec.parameters["properties"][question.field], value)}


async def resume(waiting: WaitingTurn, question: ArgumentQuestion, spec: FunctionSpec, text: str) -> TurnOutcome:
    """Run the function with the argument that `text` supplies, or drop the call."""
    answer = read_argument(text, waiting.texts)
    if answer.kind is not Answered.FILLED:
        return await waiting.drop(spec, is_clear=answer.kind is Answered.CANCELLED)
    waiting.turn.memory.answered = question.field
    return await waiting.run(question, spec, with_value(question, spec, answer.value))
