"""Tokenized messages: words with position, stem and grammatical role, and number words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from services.llm.offline.vocabulary import (
    ACTIONS,
    DESTRUCTIVE,
    FILLERS,
    FRACTIONS,
    GREETINGS,
    HAN_NUMBERS,
    HAN_SCALES,
    HAN_TIME_UNITS,
    HAN_TIMES,
    INVERTED,
    NEGATIONS,
    OPERATORS,
    PREPOSITIONS,
    QUESTION_WORDS,
    REQUESTS,
    THANKS,
    TIME_LINKS,
    TIME_WORDS,
    concepts_of,
)
from services.patterns import lazy_pattern
from services.text_index import Token, is_unspaced, scan, stem
from services.times.words.lexicon import NUMBERS, SCALES

_DIGITS = lazy_pattern(r"(?<![\d.])-?\d+(?:,\d{3})*(?:\.\d+)?")
_HAN = lazy_pattern(f"[{''.join(HAN_NUMBERS)}{''.join(HAN_SCALES)}]+")
_NUMBER_WORD = "|".join(sorted((*NUMBERS, *SCALES), key=len, reverse=True))
_SCALE = "|".join(SCALES)
_SPELLED = lazy_pattern(
    rf"\b(?:an?\s+(?=(?:{_SCALE})\b))?(?:{_NUMBER_WORD})(?:(?:(?<=hundred)\s+and\s+|[\s-]+)(?:{_NUMBER_WORD}))*\b",
    re.IGNORECASE,
)
_SCALED = lazy_pattern(rf"(\d+(?:\.\d+)?)\s+({_SCALE})\b", re.IGNORECASE)
_WORD = lazy_pattern(r"[a-z]+")


def is_number(word: str) -> bool:
    """Whether a lower-case word or a Chinese character is a number or part of one."""
    return word[0].isdigit() or word in NUMBERS or word in SCALES or word in HAN_NUMBERS or word in HAN_SCALES


def number_in(text: str) -> float | None:
    """The single number in `text`, in digits or words; English or Chinese; else None, also for several numbers in
    digits."""
    digits = _DIGITS.findall(text)
    if digits:
        return float(digits[0].replace(",", "")) if len(digits) == 1 else None
    han = _HAN.findall(text)
    if han:
        return _from_han(han[0]) if len(han) == 1 else None
    return _from_words(_WORD.findall(text.lower()))


def with_digits(text: str) -> str:
    """Replace English number words in `text` by digits: `two hundred` and `2 million`, too."""
    scaled = _SCALED.sub(lambda found: f"{float(found[1]) * SCALES[found[2].lower()]:.12g}", text)
    return _SPELLED.sub(lambda found: _written(_from_words(_WORD.findall(found[0].lower())), found[0]), scaled)


def _written(number: float | None, otherwise: str) -> str:
    return otherwise if number is None else f"{number:.12g}"


def _from_words(words: list[str]) -> float | None:
    total, part, seen = 0.0, 0.0, False
    for word in words:
        if word in NUMBERS:
            part += NUMBERS[word]
        elif word == "hundred":
            part = (part or 1) * 100
        elif word in SCALES:
            total, part = total + (part or 1) * SCALES[word], 0.0
        elif word in FRACTIONS and not seen:
            part += FRACTIONS[word]
        elif not seen or word == "and":
            continue
        else:
            break
        seen = True
    return total + part if seen else None


def _from_han(characters: str) -> float:
    if not any(character in HAN_SCALES for character in characters):
        return float("".join(str(HAN_NUMBERS[character]) for character in characters))
    total, section, digit = 0, 0, 0
    for character in characters:
        if character in HAN_NUMBERS:
            digit = HAN_NUMBERS[character]
            continue
        scale = HAN_SCALES[character]
        if scale >= 10_000:
            total, section = total + (section + digit or 1) * scale, 0
        else:
            section += (digit or 1) * scale
        digit = 0
    return float(total + section + digit)


MOST_WORDS = 80
"""Limit of words per message; the rest is ignored, because requests are shorter."""
MOST_SKIP_COST = 1.3
"""Highest skip cost; of actions and negations, which change the meaning most."""
_SKIP_FILLER, _SKIP_HAN, _SKIP_QUESTION, _SKIP_THANKS = 0.08, 0.6, 0.6, 0.3
_TWO_WORDS = lazy_pattern(
    r"\b(?:(?P<todo>to[ -]do)(?=[ -]?(?:list|item|task|thing))|(?P<timezone>time[ -]zone)(?=s?\b)"
    r"|(?P<am>a(?:\. ?| )m)\b|(?P<pm>p(?:\. ?| )m)\b|(?P<oclock>o[ '’]clock)\b)"
)
_DATE = lazy_pattern(r"[0-9]{1,4}[-/][0-9]{1,2}[-/][0-9]{1,4}|[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?")
_BREAKS = frozenset(":;?!\n。")
_CLITICS = {"s": "is", "re": "are", "m": "am", "ve": "have", "ll": "will", "d": "would"}
_NEGATED = {"ca": "can", "wo": "will", "sha": "shall"}
_SPELLINGS = {"whats": "what", "wheres": "where", "hows": "how", "whos": "who", "whens": "when"}


@dataclass(frozen=True, slots=True)
class Meaning:
    """Properties of a word that do not depend on its context."""

    stem: str
    concepts: frozenset[str]
    is_filler: bool
    is_action: bool
    is_question: bool
    is_negation: bool
    is_destructive: bool
    is_number: bool
    is_time: bool
    links_time: bool
    is_operator: bool
    skip_cost: float
    """Cost of skipping the word in an alignment."""


@dataclass(frozen=True, slots=True)
class Word:
    """Word, number, sign or character with its position in the text."""

    text: str
    start: int
    end: int
    is_time: bool
    is_opening: bool
    """Part of the polite introduction before the request."""
    is_after_break: bool
    """Directly follows a sign that ends a clause."""
    meaning: Meaning

    @property
    def is_han(self) -> bool:
        """Whether it is a character of a script without spaces between words."""
        return is_unspaced(self.text)


@dataclass(frozen=True, slots=True)
class Utterance:
    """Normalized text with its words and the kind of its request."""

    text: str
    """NFKC normalized; word positions refer to it."""
    words: tuple[Word, ...]
    is_question: bool
    """Asks for information instead of an action."""
    is_negated: bool
    is_destructive: bool
    """Asks to remove or undo something."""
    times: tuple[tuple[int, int], ...]
    """First and last word of each time that the time parser found."""

    def between(self, first: int, last: int) -> str:
        """Text from word `first` to word `last`, inclusive."""
        return self.text[self.words[first].start : self.words[last].end]


@lru_cache(maxsize=50_000)
def meaning_of(word: str) -> Meaning:
    """Meaning of a lower-case word or a Chinese character by itself: stem, concepts, roles and skip cost; cached."""
    stemmed = stem(word)
    filler = word in FILLERS or (not word.isalnum())
    action = word in ACTIONS
    number = is_number(word)
    if filler:
        skip = _SKIP_FILLER
    elif is_unspaced(word):
        skip = _SKIP_HAN
    elif word in THANKS:
        skip = _SKIP_THANKS
    elif word in QUESTION_WORDS:
        skip = _SKIP_QUESTION
    else:
        skip = MOST_SKIP_COST if action or word in NEGATIONS else 1.0
    return Meaning(
        stem=stemmed,
        concepts=frozenset() if filler and word not in PREPOSITIONS else concepts_of(stemmed),
        is_filler=filler,
        is_action=action,
        is_question=word in QUESTION_WORDS,
        is_negation=word in NEGATIONS,
        is_destructive=word in DESTRUCTIVE,
        is_number=number,
        is_time=word in TIME_WORDS,
        links_time=word in TIME_LINKS or word in HAN_TIME_UNITS,
        is_operator=word in OPERATORS or word in HAN_SCALES,
        skip_cost=skip,
    )


FindTimes: TypeAlias = Callable[[str], Sequence[tuple[int, int]]]
"""Positions of the times in a text, each with its exclusive end."""


def read(text: str, find_times: FindTimes | None = None) -> Utterance:
    """Parse `text` to at most 80 words with their roles; leading greetings are dropped. No words for an empty text.
    `find_times` completes the times that single words show."""
    normal = unicodedata.normalize("NFKC", text).strip()
    tokens = list(_tokens(normal))[:MOST_WORDS]
    while len(tokens) > 1 and tokens[0].text in GREETINGS:
        tokens.pop(0)
    times = _times(normal, tokens)
    whole_times = [] if find_times is None else [_words_in(tokens, *found) for found in find_times(normal)]
    for whole in whole_times:
        times[whole.start : whole.stop] = [True] * len(whole)
    opening = _opening(tokens)
    words = tuple(
        Word(
            text=token.text,
            start=token.start,
            end=token.end,
            is_time=times[place],
            is_opening=place < opening,
            is_after_break=place > 0 and not _BREAKS.isdisjoint(normal[tokens[place - 1].end : token.start]),
            meaning=meaning_of(token.text),
        )
        for place, token in enumerate(tokens)
    )
    negated = any(word.meaning.is_negation for word in words)
    question = _is_question(tokens)
    destructive = not question and any(word.meaning.is_destructive for word in words)
    found = tuple((whole.start, whole.stop - 1) for whole in whole_times if whole)
    return Utterance(normal, words, question, negated, destructive, found)


def _words_in(tokens: list[Token], start: int, end: int) -> range:
    """Indexes of the tokens between two positions of the text; may be empty."""
    inside = [place for place, token in enumerate(tokens) if start <= token.start and token.end <= end]
    return range(inside[0], inside[-1] + 1) if inside else range(0)


def _tokens(text: str) -> Iterator[Token]:
    """Tokens, with contractions split and spelling variants such as `to do list` joined."""
    joined = _TWO_WORDS.sub(lambda found: str(found.lastgroup).ljust(len(found[0])), text.lower())
    for token in scan(joined if len(joined) == len(text) else text):
        if "'" in token.text or "’" in token.text:
            yield from _contraction(token)
        elif token.text in _SPELLINGS:
            yield token._replace(text=_SPELLINGS[token.text])
        else:
            yield token


def _contraction(token: Token) -> Iterator[Token]:
    base, _, tail = token.text.replace("’", "'").partition("'")
    cut = token.start + len(base)
    if tail == "t" and base.endswith("n"):
        yield Token(_NEGATED.get(base[:-1], base[:-1]), token.start, token.end)
        yield Token("not", token.start, token.end)
    elif tail in _CLITICS:
        yield Token(base, token.start, cut)
        yield Token(_CLITICS[tail], cut, token.end)
    else:
        yield token._replace(text=base + tail)


def _opening(tokens: list[Token]) -> int:
    """Number of polite words before the request itself; 0 if all words are such."""
    for place, token in enumerate(tokens):
        if token.text not in REQUESTS:
            return place
    return 0


def _is_question(tokens: list[Token]) -> bool:
    words = [token.text for token in tokens[:12]]
    if any(word in "吗呢" for word in (token.text for token in tokens)):
        return True
    if not words:
        return False
    first = words[0]
    if first in ("can", "could", "will", "would", "may", "might") and words[1:2] in (["you"], ["we"]):
        words = words[2:]
    elif first in INVERTED and words[1:2] != ["not"]:
        return True
    body = next((word for word in words if word not in REQUESTS and word not in FILLERS), "")
    return body in QUESTION_WORDS


def _times(text: str, tokens: list[Token]) -> list[bool]:
    """Whether each token is part of a time: time words, and words that link them to each other or to numbers."""
    sure = [meaning_of(token.text).is_time or _DATE.fullmatch(token.text) is not None for token in tokens]
    for place, token in enumerate(tokens):
        if token.is_han:
            _mark_han_time(text, tokens, place, sure)
    marked = list(sure)
    for place in range(len(tokens)):
        if sure[place]:
            _spread(tokens, marked, place)
    return marked


def _spread(tokens: list[Token], marked: list[bool], place: int) -> None:
    """Mark numbers and links directly before a time word, and numbers directly after it."""
    for step in (-1, 1):
        at = place + step
        while 0 <= at < len(tokens) and not marked[at]:
            meaning = meaning_of(tokens[at].text)
            links = meaning.links_time and (step < 0 or _is_number_at(tokens, at + 1))
            if not (meaning.is_number or links):
                break
            marked[at] = True
            at += step


def _is_number_at(tokens: list[Token], place: int) -> bool:
    return place < len(tokens) and is_number(tokens[place].text)


def _mark_han_time(text: str, tokens: list[Token], place: int, sure: list[bool]) -> None:
    start = tokens[place].start
    for length in (4, 3, 2):
        if text[start : start + length] in HAN_TIMES:
            for at in range(place, min(place + length, len(tokens))):
                sure[at] = True
            return
    before = tokens[place - 1].text if place else ""
    follows_number = before[:1].isdigit() or before in HAN_NUMBERS or before in HAN_SCALES or before == "半"
    if tokens[place].text in HAN_TIME_UNITS and follows_number:
        sure[place] = True
