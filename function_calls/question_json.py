"""Question as plain data: what waits for an answer, and a run that ended in asking, survive a restart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from function_calls.approval_terms import ApprovalTerms
from function_calls.call import Resumed
from function_calls.context_json import context_from_json, context_to_json
from function_calls.spec import Choice, Question
from services.json_values import JsonObject
from services.refs import Role


def question_to_json(question: Question) -> JsonObject:
    """`question` as plain data; of what only some questions have, what is empty is left out."""
    message: JsonObject = {"text": question.text}
    if question.choices:
        message["choices"] = [[choice.label, choice.value] for choice in question.choices]
    data: JsonObject = {
        "kind": question.kind,
        "message": message,
        "function": question.function,
        "arguments": question.arguments,
        "field": question.field,
        "terms": None if question.terms is None else _terms_to_json(question.terms),
        "nested": question.nested,
    }
    if question.resume is not None:
        data["resume"] = question.resume
        data["number"] = question.number
        data["allowed"] = question.allowed
        data["key"] = question.key
    if question.goes_on is not None:
        before = question.goes_on
        data["goes_on"] = [before.state, before.answer, before.kind, before.number]
    if question.is_of_a_run:
        data["said"] = list(question.said)
        data["only_choices"] = question.only_choices
    if question.takes_files:
        data["takes_files"] = True
    return data


def question_from_json(data: Mapping[str, Any]) -> Question:
    """The question that `question_to_json` wrote."""
    return Question(
        kind=data["kind"],
        text=data["message"]["text"],
        function=data["function"],
        arguments=data["arguments"],
        field=data["field"],
        choices=tuple(Choice(*one) for one in data["message"].get("choices", ())),
        terms=_terms_from_json(data["terms"]) if data.get("terms") else None,
        nested=data.get("nested", False),
        resume=data.get("resume"),
        number=data.get("number", 1),
        allowed=data.get("allowed", ""),
        said=tuple(data.get("said", ())),
        key=data.get("key", ""),
        goes_on=Resumed(*data["goes_on"]) if data.get("goes_on") else None,
        only_choices=data.get("only_choices", False),
        takes_files=data.get("takes_files", False),
    )


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
