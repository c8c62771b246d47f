"""Stored form of open questions, and texts that functions declare for their questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog

from config.texts import Phrases
from function_calls.context import context_from_json, context_to_json
from function_calls.result import question_from_json, question_to_json
from function_calls.spec import FunctionSpec
from function_calls.turn import Continuation, OpenQuestion
from services.refs import JsonObject

_log = structlog.get_logger("questions")


def open_to_json(open_question: OpenQuestion) -> JsonObject:
    """The question and its continuation as plain data."""
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


def declared_text(spec: FunctionSpec, text: str, arguments: JsonObject, texts: Phrases) -> str:
    """Text of a question as the function declares it; empty if it declares none or names an unknown text."""
    try:
        return texts.resolve(text, **_placeholders(spec, arguments))
    except LookupError as problem:
        _log.error("text_missing", function=spec.name, source=spec.origin.source, problem=str(problem))
        return ""


def _placeholders(spec: FunctionSpec, arguments: JsonObject) -> JsonObject:
    """A value for every placeholder; empty for missing arguments."""
    return {name: shown_value(arguments.get(name, "")) for name in spec.parameters["properties"]}


def shown_value(value: Any) -> str:
    """An argument as people are shown it."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
