"""Questions: the one mechanism by which a turn stops to ask and a later message goes on from there."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson
import structlog

from config.texts import Phrases
from function_calls.answers import Answer, Answered, read_decision, read_yes_or_no
from function_calls.context import MessageContext
from function_calls.context_json import context_from_json, context_to_json
from function_calls.open_question import Continuation, OpenQuestion
from function_calls.question_json import question_from_json, question_to_json
from function_calls.spec import Choice, FunctionResult, FunctionSpec, Message, Question
from function_calls.usage import allowed, spoken_name
from services.json_values import JsonObject

_log = structlog.get_logger("questions")


def argument_question(spec: FunctionSpec, raw: JsonObject, field: str, texts: Phrases) -> Question:
    """Ask for one missing argument: the function's own words, else a sentence made from the schema."""
    schema = spec.parameters["properties"].get(field, {})
    text = _own_words(spec, spec.ask.get(field, ""), raw, texts)
    if not text:
        described = schema.get("description") or field
        text = texts.say(
            "questions.argument",
            name=spoken_name(spec, texts.language),
            field=described.rstrip("."),
            allowed=allowed(schema, texts),
        )
    choices = tuple(Choice(str(value), str(value)) for value in schema.get("enum", ())[:10])
    return Question("argument", text, spec.name, raw, field, choices)


def confirm_question(spec: FunctionSpec, arguments: JsonObject, texts: Phrases) -> Question:
    """Ask for a yes before a run: the function's own words, else what was understood."""
    text = _own_words(spec, spec.confirm, arguments, texts)
    if not text:
        understood = ", ".join(f"{name} = {_shown(value)}" for name, value in arguments.items())
        key = "questions.confirm_with" if understood else "questions.confirm"
        text = texts.say(
            key, name=spoken_name(spec, texts.language), description=spec.description.rstrip("."), arguments=understood
        )
    choices = (
        Choice(texts.say("questions.yes_label"), texts.words("answers.yes")[0]),
        Choice(texts.say("questions.no_label"), texts.words("answers.no")[0]),
    )
    return Question("confirm", text, spec.name, arguments, choices=choices)


def is_decision(question: Question) -> bool:
    """Whether it offers all the answers that there are: nothing else that is said is one."""
    return question.terms is not None or question.kind == "confirm" or question.only_choices


def read_answer(question: Question, text: str, texts: Phrases, *, has_files: bool = False) -> Answer:
    """What `text`, said by the one who was asked, means for `question`. `has_files`: it came with some."""
    if question.terms is not None:
        return read_decision(question.terms.code, text, texts)
    if question.kind == "input":
        if question.takes_files and has_files and not text.strip():
            return Answer(Answered.FILLED, "")
        return _read_input(question, text.strip(), texts)
    if question.kind == "confirm":
        return read_yes_or_no(text, texts)
    word = _word(text)
    if not word:
        return Answer(Answered.UNRELATED)
    if word in texts.words("answers.cancel"):
        return Answer(Answered.CANCELLED)
    return Answer(Answered.FILLED, text.strip())


def _read_input(question: Question, said: str, texts: Phrases) -> Answer:
    """What a function asked for may be anything, and what it offers as a choice is never a wish to stop."""
    if not said:
        return Answer(Answered.UNRELATED)
    for choice in question.choices:
        if said.casefold() in (choice.value.casefold(), choice.label.casefold()):
            return Answer(Answered.FILLED, choice.value)
    if _word(said) in texts.words("answers.cancel"):
        return Answer(Answered.CANCELLED)
    return _among(question.choices, said, texts) if question.only_choices else Answer(Answered.FILLED, said)


def _among(choices: Sequence[Choice], said: str, texts: Phrases) -> Answer:
    """Which of `choices` is meant. A no may bear its reason, and is handed on with it."""
    for choice in choices:
        if _word(said) in (_word(choice.value), _word(choice.label)):
            return Answer(Answered.FILLED, choice.value)
    decided = read_yes_or_no(said, texts)
    if decided.kind is not Answered.UNRELATED:
        for choice in choices:
            if read_yes_or_no(choice.value, texts).kind is decided.kind:
                return Answer(Answered.FILLED, said if decided.value else choice.value)
    return Answer(Answered.UNRELATED)


def _word(text: str) -> str:
    """`text` less the marks around it, to be compared with words."""
    return text.strip(" \n.!。！").casefold()


def fingerprint(spec: FunctionSpec) -> str:
    """Of everything in `spec` that an answer relies on."""
    facts = [spec.name, spec.parameters, spec.effect.value, sorted(spec.roles), spec.confirm]
    if spec.version:
        facts.append(spec.version)
    return hashlib.sha256(orjson.dumps(facts, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def question_message(question: Question) -> Message:
    """The question as it is said in the chat."""
    return Message(question.text, choices=question.choices)


def asking_messages(result: FunctionResult, texts: Phrases) -> tuple[Message, ...]:
    """What is said in the chat for a `result` that asks: of a handler that needs a word in the midst, what it has to
    say first as well."""
    question = result.question
    if question is None:
        return result.messages
    if question.kind != "input":
        # A run that was under way has said something before it came to need a yes.
        before = result.messages if question.goes_on is not None else ()
        return (*before, question_message(question))
    if question.text.strip():
        return (*result.messages, question_message(question))
    if not result.messages:
        return (Message(texts.say("questions.input"), choices=question.choices),)
    *others, last = result.messages
    return (*others, replace(last, choices=question.choices or last.choices))


def naming(messages: tuple[Message, ...], asked: OpenQuestion | None, context: MessageContext) -> tuple[Message, ...]:
    """`messages`, of which the last one asks, with a mention of the one member who may answer where others read it.
    `context`: the message of that member."""
    is_one_of_many = asked is not None and asked.question.terms is None and context.is_group and not context.private
    if not is_one_of_many or not messages or messages[-1].to is not None or messages[-1].mentions:
        return messages
    return (*messages[:-1], replace(messages[-1], mentions=(context.sender.ref,)))


def open_to_json(open_question: OpenQuestion) -> JsonObject:
    """The question and where it goes on, as plain data."""
    on, asker = open_question.continuation, open_question.asker
    return {
        **question_to_json(open_question.question),
        "path": on.path,
        "fingerprint": on.fingerprint,
        "state": on.state,
        "transcript": list(on.transcript),
        "call_id": on.call_id,
        "calls": list(on.calls),
        "rounds": on.rounds,
        "final": on.final,
        "asked": list(on.asked),
        "uncertain": on.uncertain,
        "taint": list(on.taint),
        "asked_at": on.asked_at,
        "remembered": on.remembered,
        "asker": None if asker is None else context_to_json(asker),
        "private": open_question.private,
    }


def open_from_json(id_: int, data: Mapping[str, Any]) -> OpenQuestion:
    """The question that `open_to_json` wrote."""
    keys = ("path", "fingerprint", "state", "transcript", "call_id", "calls", "rounds", "final", "asked", "uncertain")
    on = Continuation(
        **{key: data[key] for key in keys},
        taint=data.get("taint", ()),
        asked_at=data.get("asked_at"),
        remembered=data.get("remembered", {}),
    )
    asker = data.get("asker")
    asked_by = None if asker is None else context_from_json(asker)
    return OpenQuestion(question_from_json(data), on, id_, asked_by, data.get("private", False))


def _own_words(spec: FunctionSpec, text: str, arguments: JsonObject, texts: Phrases) -> str:
    """What the function itself wants asked; empty where it says nothing or names a sentence that there is not."""
    try:
        return texts.resolve(text, **_said(spec, arguments))
    except LookupError as problem:
        _log.error("text_missing", function=spec.name, source=spec.source, problem=str(problem))
        return ""


def _said(spec: FunctionSpec, arguments: JsonObject) -> JsonObject:
    """A value for every placeholder that a sentence may have: what was not said is empty."""
    return {name: _shown(arguments.get(name, "")) for name in spec.parameters["properties"]}


def _shown(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
