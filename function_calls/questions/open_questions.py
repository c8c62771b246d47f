"""Stored form of open questions, and texts that functions declare for their questions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

import orjson
import structlog

from config.texts import Phrases, placeholders
from function_calls.context import context_from_json, context_to_json
from function_calls.result import question_from_json, question_to_json
from function_calls.spec import FunctionSpec
from function_calls.turn import Continuation, OpenQuestion
from services.patterns import visible_line
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
        **({"words": list(on.words)} if on.words else {}),
    }


def open_from_json(id_: int, data: Mapping[str, Any]) -> OpenQuestion:
    """Restore a question that `open_to_json` wrote."""
    keys = ("path", "fingerprint", "state", "transcript", "call_id", "calls", "rounds", "final", "asked", "uncertain")
    on = Continuation(
        **{key: data[key] for key in keys},
        taint=data.get("taint", ()),
        asked_at=data.get("asked_at"),
        words=tuple(data.get("words", ())),
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


_OPTIONAL_PART = re.compile(r"\[([^\[\]]*)\]")


def run_question(spec: FunctionSpec, arguments: JsonObject, texts: Phrases) -> str:
    """`Set this reminder: tea, in 20 minutes?` for a built-in function with such a text, else empty. Arguments that the
    sentence doesn't name follow in brackets, except defaults."""
    template = texts.templates.get(f"functions.confirm.{spec.name}", "") if spec.origin.built_in else ""
    given = arguments.keys()
    template = _OPTIONAL_PART.sub(lambda part: part[1] if placeholders(part[1]) <= given else "", template)
    named = placeholders(template)
    if not template or not named <= given:
        return ""
    question = texts.resolve(template, **{name: visible_line(shown_value(arguments[name])) for name in named})
    properties = spec.parameters["properties"]
    rest = {
        name: visible_line(shown_value(value))
        for name, value in arguments.items()
        if name not in named and value != properties.get(name, {}).get("default")
    }
    return f"{question} ({argument_list(rest, texts)})" if rest else question


def argument_list(shown: Mapping[str, str], texts: Phrases) -> str:
    """`place: Oslo, from unit: km`."""
    return ", ".join(
        texts.say("questions.shown", name=name.replace("_", " "), value=value) for name, value in shown.items()
    )


def shown_value(value: Any) -> str:
    """Displayed form of an argument."""
    return ", ".join(map(shown_value, value)) if isinstance(value, list) else plain(value)


def plain(value: Any) -> str:
    """`value` as text or JSON."""
    return value if isinstance(value, str) else orjson.dumps(value, default=str).decode()


_REASON_CHARS = 300
_MARKS = ",，.。:：;；!！-–—"
SEPARATORS = f" \t\n{_MARKS}"


class Answered(StrEnum):
    """Kind of answer that a message gives."""

    FILLED = "filled"
    YES = "yes"
    ALWAYS = "always"  # yes, and the chat is not to be asked again
    NO = "no"
    CANCELLED = "cancelled"
    UNRELATED = "unrelated"  # the question stays open


class Answer(NamedTuple):
    """Interpretation of a message as an answer to a question."""

    kind: Answered
    value: str = ""
    """The requested value; for a no, the reason if given."""


def read_yes_or_no(text: str, texts: Phrases) -> Answer:
    """YES, NO with or without a reason, or UNRELATED."""
    plain = _plain_word(text, texts)
    return _refusal(text.strip(SEPARATORS), texts) if plain is Answered.UNRELATED else Answer(plain)


def bare_word(text: str) -> str:
    """`text` without surrounding punctuation, in lower case."""
    return text.strip(" \n.!。！").casefold()


def _plain_word(text: str, texts: Phrases) -> Answered:
    """YES or NO if `text` consists only of words for it and of filler words."""
    word = text.casefold().replace("’", "'").strip()
    meanings = dict.fromkeys(texts.words("answers.beside"), Answered.UNRELATED)
    for key in ("answers.yes", "approvals.yes_words"):
        meanings |= dict.fromkeys(texts.words(key), Answered.YES)
    for key in ("answers.no", "answers.cancel", "approvals.no_words"):
        meanings |= dict.fromkeys(texts.words(key), Answered.NO)
    phrases = sorted(meanings, key=len, reverse=True)
    kinds: set[Answered] = set()
    at = 0
    while at < len(word):
        if word[at] in SEPARATORS:
            at += 1
            continue
        phrase = next((one for one in phrases if word.startswith(one, at) and _is_whole(word, at + len(one))), "")
        if not phrase:
            return Answered.UNRELATED
        kinds.add(meanings[phrase])
        at += len(phrase)
    decided = kinds - {Answered.UNRELATED}
    # "Yes, no" is neither.
    return decided.pop() if len(decided) == 1 else Answered.UNRELATED


def _is_whole(text: str, end: int) -> bool:
    """Whether a word that ends at `end` is not continued by further letters."""
    if end >= len(text) or not text[end - 1].isascii() or not text[end - 1].isalnum():
        return True
    return not (text[end].isascii() and (text[end].isalnum() or text[end] in "'_"))


def _refusal(answer: str, texts: Phrases) -> Answer:
    """NO with the reason that follows it, or UNRELATED."""
    refusing, plain = texts.words("approvals.no_words"), texts.words("answers.no")
    because = texts.words("approvals.because_words")
    for word in sorted({*refusing, *plain, *texts.words("answers.cancel")}, key=len, reverse=True):
        head, rest = answer[: len(word)], answer[len(word) :]
        if head.casefold() != word:
            continue
        reason = rest.strip(SEPARATORS)
        first = next((one for one in because if reason.casefold().startswith(one)), "")
        # Many sentences start with "no": it is an answer only if it is alone or followed by a reason.
        if rest and not first and rest.lstrip()[:1] not in _MARKS and word not in refusing:
            continue
        if rest and word.isascii() and rest[0].isalnum():
            continue
        reason = " ".join(reason[len(first) :].strip(SEPARATORS).split())
        return Answer(Answered.NO, reason[:_REASON_CHARS])
    return Answer(Answered.UNRELATED)
