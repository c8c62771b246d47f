"""Questions: the one mechanism by which a turn stops to ask and a later message goes on from there."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson
import structlog

from config.texts import Phrases
from function_calls.answers import Answer, Answered, read_decision
from function_calls.approval_terms import ApprovalTerms
from function_calls.context_json import context_from_json, context_to_json
from function_calls.results import message_to_json
from function_calls.spec import Choice, FunctionSpec, Message, Question
from function_calls.turn import Continuation, OpenQuestion
from function_calls.usage import allowed, spoken_name
from services.json_values import JsonObject
from services.refs import Role

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


def read_answer(question: Question, text: str, texts: Phrases) -> Answer:
    """What `text`, said by the one who was asked, means for `question`."""
    if question.terms is not None:
        return read_decision(question.terms.code, text, texts)
    word = text.strip(" \n.!。！").casefold()
    if not word:
        return Answer(Answered.UNRELATED)
    if question.kind == "confirm":
        if word in texts.words("answers.yes"):
            return Answer(Answered.YES)
        if word in texts.words("answers.no") or word in texts.words("answers.cancel"):
            return Answer(Answered.NO)
        return Answer(Answered.UNRELATED)
    if word in texts.words("answers.cancel"):
        return Answer(Answered.CANCELLED)
    return Answer(Answered.FILLED, text.strip())


def fingerprint(spec: FunctionSpec) -> str:
    """Of everything in `spec` that an answer relies on."""
    facts = [spec.name, spec.parameters, spec.effect.value, sorted(spec.roles), spec.confirm]
    return hashlib.sha256(orjson.dumps(facts, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def question_message(question: Question) -> Message:
    """The question as it is said in the chat."""
    return Message(question.text, choices=question.choices)


def open_to_json(open_question: OpenQuestion) -> JsonObject:
    """The question and where it goes on, as plain data."""
    question, on = open_question.question, open_question.continuation
    return {
        "kind": question.kind,
        "message": message_to_json(question_message(question)),
        "function": question.function,
        "arguments": question.arguments,
        "field": question.field,
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
        "terms": None if question.terms is None else _terms_to_json(question.terms),
        "nested": question.nested,
    }


def open_from_json(id_: int, data: Mapping[str, Any]) -> OpenQuestion:
    """The question that `open_to_json` wrote."""
    question = Question(
        data["kind"],
        data["message"]["text"],
        data["function"],
        data["arguments"],
        data["field"],
        tuple(Choice(*one) for one in data["message"].get("choices", ())),
        _terms_from_json(data["terms"]) if data.get("terms") else None,
        data.get("nested", False),
    )
    keys = ("path", "fingerprint", "state", "transcript", "call_id", "calls", "rounds", "final", "asked", "uncertain")
    on = Continuation(
        **{key: data[key] for key in keys},
        taint=data.get("taint", ()),
        asked_at=data.get("asked_at"),
        remembered=data.get("remembered", {}),
    )
    return OpenQuestion(question, on, id_)


def _terms_to_json(terms: ApprovalTerms) -> JsonObject:
    return {
        "digest": terms.digest,
        "grant": terms.grant,
        "code": terms.code,
        "role": terms.role,
        "by_other": terms.by_other,
        "asker": context_to_json(terms.asker),
    }


def _terms_from_json(data: JsonObject) -> ApprovalTerms:
    role = None if data["role"] is None else Role(data["role"])
    asker = context_from_json(data["asker"])
    return ApprovalTerms(data["digest"], data["grant"], data["code"], role, data["by_other"], asker)


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
