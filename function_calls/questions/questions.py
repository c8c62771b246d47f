"""Open questions: what a turn asks, its stored form, and how messages answer it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

import orjson
import structlog

from config.texts import Phrases
from function_calls.context import MessageContext, context_from_json, context_to_json
from function_calls.result import question_from_json, question_to_json
from function_calls.schema.commands import allowed, spoken_name
from function_calls.spec import Choice, FunctionResult, FunctionSpec, Message, Question
from services.refs import JsonObject


@dataclass(frozen=True, slots=True)
class Continuation:
    """Where a turn that asked a question goes on: plain data, so that it survives a restart."""

    path: str
    fingerprint: str
    """Of the spec when it was asked: a function that has changed since is not run on an old answer."""
    state: JsonObject
    transcript: Sequence[JsonObject] = ()
    """The model conversation so far; empty for a command."""
    call_id: str = ""
    """The model's call that the question interrupted."""
    calls: Sequence[JsonObject] = ()
    """The calls of the same answer that have not run."""
    rounds: int = 0
    final: bool = False
    """The model is not asked again after the calls."""
    asked: Sequence[str] = ()
    """Parameters that were asked for already: none is asked twice."""
    uncertain: bool = False
    """The model only guessed that this is meant: a yes is asked for before it runs."""
    taint: Sequence[str] = ()
    """What the turn has read, as `Turn.taint` has it."""
    asked_at: float | None = None
    """When the message came that led here, in seconds since 1970; None where nobody knows."""
    remembered: JsonObject = field(default_factory=dict)
    """What the rounds with the model knew of what they had done; empty for a command."""


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question that waits for its answer."""

    question: Question
    continuation: Continuation
    id: int = 0
    asker: MessageContext | None = None
    """Of one that a handler asked: whose run it is and where, without the words. The handler is told even when no
    answer comes."""
    private: bool = False
    """Nobody else in the chat was shown it."""


_REASON_CHARS = 300
_MARKS = ",，.。:：;；!！-–—"
_SEPARATORS = f" \t\n{_MARKS}"
_WORD = re.compile(r"(?<![^\s,，:：;；(（])#?([0-9a-z]+)(?![^\s,，:：;；.。!！)）])", re.IGNORECASE | re.ASCII)
"""What may be the code of an approval: a word of its own."""
_CODE = re.compile(r"[0-9a-f]{5}", re.ASCII)


class Answered(StrEnum):
    """How a message answers a question."""

    FILLED = "filled"
    YES = "yes"
    ALWAYS = "always"  # yes, and the chat is not to be asked again
    NO = "no"
    CANCELLED = "cancelled"
    UNRELATED = "unrelated"  # the question stays open


class Answer(NamedTuple):
    """A message read as the answer to a question."""

    kind: Answered
    value: str = ""
    """What fills the question; for a no to an approval the reason, where one was given."""


def read_decision(code: str, text: str, texts: Phrases) -> Answer:
    """What `text` says to the approval `code`: yes, always, no with or without a reason, or nothing of the kind."""
    said = without_code(code, text).strip(_SEPARATORS)
    word = " ".join(said.casefold().split())
    if word in texts.words("approvals.always_words"):
        return Answer(Answered.ALWAYS)
    return read_yes_or_no(said, texts)


def read_yes_or_no(text: str, texts: Phrases) -> Answer:
    """What `text` says to a question whether something shall be done: yes; no, perhaps with a reason; or nothing of the
    kind."""
    plain = _plain_word(text, texts)
    return _refusal(text.strip(_SEPARATORS), texts) if plain is Answered.UNRELATED else Answer(plain)


def is_about_a_code(text: str, texts: Phrases, *, clearly: bool) -> bool:
    """Whether `text` has the form of a decision about what bears a code. `clearly`: what people may as well say to each
    other is none."""
    found = [one for one in _WORD.finditer(text) if _CODE.fullmatch(one[1].lower())]
    if len(found) != 1:
        return False
    code = found[0][1].lower()
    if not found[0][0].startswith("#"):
        # Five digits may be a number, and five letters a word.
        if code.isalpha() or (clearly and code.isdigit()):
            return False
        said = without_code(code, text).strip(_SEPARATORS).casefold()
        own_words = (f"approvals.{one}_words" for one in ("yes", "no", "always"))
        if not any(said.startswith(word) for key in own_words for word in texts.words(key)):
            return False
    return read_decision(code, text, texts).kind is not Answered.UNRELATED


def codes_in(text: str) -> frozenset[str]:
    """The words of `text` that may be codes of approvals, in lower case."""
    return frozenset(word.lower() for word in _WORD.findall(text))


def without_code(code: str, text: str) -> str:
    """`text` without the code of the approval."""
    return _WORD.sub(lambda found: " " if found[1].lower() == code else found[0], text)


def _plain_word(text: str, texts: Phrases) -> Answered:
    """Yes or no, where `text` is nothing but words for it and what usually stands beside them."""
    said = text.casefold().replace("’", "'").strip()
    meanings = dict.fromkeys(texts.words("answers.beside"), Answered.UNRELATED)
    for key in ("answers.yes", "approvals.yes_words"):
        meanings |= dict.fromkeys(texts.words(key), Answered.YES)
    for key in ("answers.no", "answers.cancel", "approvals.no_words"):
        meanings |= dict.fromkeys(texts.words(key), Answered.NO)
    phrases = sorted(meanings, key=len, reverse=True)
    heard: set[Answered] = set()
    at = 0
    while at < len(said):
        if said[at] in _SEPARATORS:
            at += 1
            continue
        phrase = next((one for one in phrases if said.startswith(one, at) and _is_whole(said, at + len(one))), "")
        if not phrase:
            return Answered.UNRELATED
        heard.add(meanings[phrase])
        at += len(phrase)
    decided = heard - {Answered.UNRELATED}
    # “Yes, no” is neither.
    return decided.pop() if len(decided) == 1 else Answered.UNRELATED


def _is_whole(text: str, end: int) -> bool:
    """Whether a word of letters that ends there goes no further."""
    if end >= len(text) or not text[end - 1].isascii() or not text[end - 1].isalnum():
        return True
    return not (text[end].isascii() and (text[end].isalnum() or text[end] in "'_"))


def _refusal(said: str, texts: Phrases) -> Answer:
    refusing, plain = texts.words("approvals.no_words"), texts.words("answers.no")
    because = texts.words("approvals.because_words")
    for word in sorted({*refusing, *plain, *texts.words("answers.cancel")}, key=len, reverse=True):
        head, rest = said[: len(word)], said[len(word) :]
        if head.casefold() != word:
            continue
        reason = rest.strip(_SEPARATORS)
        first = next((one for one in because if reason.casefold().startswith(one)), "")
        # A plain “no” begins many a sentence; it is an answer only where it stands alone or a reason clearly follows.
        if rest and not first and rest.lstrip()[:1] not in _MARKS and word not in refusing:
            continue
        if rest and word.isascii() and rest[0].isalnum():
            continue
        reason = " ".join(reason[len(first) :].strip(_SEPARATORS).split())
        return Answer(Answered.NO, reason[:_REASON_CHARS])
    return Answer(Answered.UNRELATED)


_log = structlog.get_logger("questions")


def argument_question(spec: FunctionSpec, raw: JsonObject, field: str, texts: Phrases) -> Question:
    """Ask for one missing argument: the function's own words, else a sentence made from the schema."""
    schema = spec.parameters["properties"].get(field, {})
    text = _own_words(spec, spec.execution.ask.get(field, ""), raw, texts)
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
    text = _own_words(spec, spec.access.confirm, arguments, texts)
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
    facts = [spec.name, spec.parameters, spec.execution.effect.value, sorted(spec.access.roles), spec.access.confirm]
    if spec.origin.version:
        facts.append(spec.origin.version)
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
        _log.error("text_missing", function=spec.name, source=spec.origin.source, problem=str(problem))
        return ""


def _said(spec: FunctionSpec, arguments: JsonObject) -> JsonObject:
    """A value for every placeholder that a sentence may have: what was not said is empty."""
    return {name: _shown(arguments.get(name, "")) for name in spec.parameters["properties"]}


def _shown(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
