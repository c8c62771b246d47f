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
    if word in texts.words("approvals.yes_words") or word in texts.words("answers.yes"):
        return Answer(Answered.YES)
    return _refusal(said, texts)


def codes_in(text: str) -> frozenset[str]:
    """The words of `text` that may be codes of approvals, in lower case."""
    return frozenset(word.lower() for word in _WORD.findall(text))


def without_code(code: str, text: str) -> str:
    """`text` without the code of the approval."""
    return _WORD.sub(lambda found: " " if found[1].lower() == code else found[0], text)


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
