"""How a message answers a question, and what it says to one for a person's yes."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from config.texts import Phrases

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
