"""Reading of answers: yes, no with a reason, and words that cancel."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from config.texts import Phrases

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
    """A message read as the answer to a question."""

    kind: Answered
    value: str = ""
    """The value that was asked for; of a no the reason, if one was given."""


def read_yes_or_no(text: str, texts: Phrases) -> Answer:
    """YES, NO with or without a reason, or UNRELATED."""
    plain = _plain_word(text, texts)
    return _refusal(text.strip(SEPARATORS), texts) if plain is Answered.UNRELATED else Answer(plain)


def bare_word(text: str) -> str:
    """`text` without surrounding punctuation, in lower case."""
    return text.strip(" \n.!。！").casefold()


def _plain_word(text: str, texts: Phrases) -> Answered:
    """YES or NO if `text` consists only of words for it and of filler words."""
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
        if said[at] in SEPARATORS:
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
    """Whether a word that ends at `end` is not continued by further letters."""
    if end >= len(text) or not text[end - 1].isascii() or not text[end - 1].isalnum():
        return True
    return not (text[end].isascii() and (text[end].isalnum() or text[end] in "'_"))


def _refusal(said: str, texts: Phrases) -> Answer:
    """NO with the reason that follows it, or UNRELATED."""
    refusing, plain = texts.words("approvals.no_words"), texts.words("answers.no")
    because = texts.words("approvals.because_words")
    for word in sorted({*refusing, *plain, *texts.words("answers.cancel")}, key=len, reverse=True):
        head, rest = said[: len(word)], said[len(word) :]
        if head.casefold() != word:
            continue
        reason = rest.strip(SEPARATORS)
        first = next((one for one in because if reason.casefold().startswith(one)), "")
        # Many sentences begin with “no”: it is an answer only if it is alone or clearly followed by a reason.
        if rest and not first and rest.lstrip()[:1] not in _MARKS and word not in refusing:
            continue
        if rest and word.isascii() and rest[0].isalnum():
            continue
        reason = " ".join(reason[len(first) :].strip(SEPARATORS).split())
        return Answer(Answered.NO, reason[:_REASON_CHARS])
    return Answer(Answered.UNRELATED)
