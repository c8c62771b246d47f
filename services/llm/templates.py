"""Examples of functions as templates: literal words, each with the weight of what it tells, and slots."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from services.llm.concepts import concepts_of
from services.llm.model import OfferedFunction
from services.llm.slot_values import TYPED, Slot, slots_of
from services.llm.utterance import Word, read
from services.llm.word_classes import DESTRUCTIVE, FILLERS, PREPOSITIONS
from services.text_index import stem, terms

_SLOT = re.compile(r"\{(\w+)\}")
_FILLER_WEIGHT = 0.12
_TIME_WEIGHT = 0.25
_LEAST_WEIGHT, _SPECIFIC_WEIGHT = 0.4, 0.8
_QUESTION_SHARE = 0.6
_HAN_SHARE = 0.6
"""A Chinese word is two characters on average, so one of them tells less than an English word."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A word of an example."""

    stem: str
    weight: float
    concepts: frozenset[str]
    is_filler: bool
    is_question: bool
    is_action: bool
    is_preposition: bool

    @property
    def tells(self) -> bool:
        """Whether the word tells what the sentence is about."""
        return not self.is_filler and not self.is_question


@dataclass(frozen=True, slots=True)
class Template:
    """One example of one function."""

    function: int
    """The function's number in the offer."""
    example: str
    items: tuple[Literal | Slot, ...]
    filler_weight: float
    content_weight: float
    content_words: int
    has_slots: bool
    typed_slots: int


@dataclass(frozen=True, slots=True)
class FunctionFacts:
    """What alignment needs to know of one function."""

    slots: dict[str, Slot]
    writes: bool
    is_destructive: bool
    """Its own words say that it takes something away."""
    own_stems: frozenset[str]
    """The words of its name, and those that several of its examples share: what it is about, never a value."""


class Lexicon:
    """Which functions use which words, over all functions of an offer."""

    def __init__(self, functions: Sequence[OfferedFunction]) -> None:
        self._count = len(functions)
        literal_users: defaultdict[str, set[int]] = defaultdict(set)
        self._name_users: defaultdict[str, set[int]] = defaultdict(set)
        self._users: Counter[str] = Counter()
        self.facts: list[FunctionFacts] = []
        for number, function in enumerate(functions):
            in_name = {term for term in terms(function.original.replace("_", " ")) if term.isalpha()}
            by_example = [{word.meaning.stem for word in _literal_words(example)} for example in function.examples]
            times = Counter(word for words in by_example for word in words)
            in_examples = set(times)
            own = in_name | {word for word, count in times.items() if count > 1}
            for word in in_name:
                self._name_users[word].add(number)
            for word in in_examples:
                literal_users[word].add(number)
            self._users.update(in_examples | in_name | set(terms(function.description)))
            self.facts.append(_facts(function, in_name | in_examples, own))
        self._literal_users = literal_users

    def weight(self, word_stem: str) -> float:
        """How much a content word tells: most when only one function uses it."""
        users = max(1, self._users[word_stem])
        specificity = math.log(1 + self._count / users) / math.log(1 + self._count) if self._count else 1.0
        return _LEAST_WEIGHT + _SPECIFIC_WEIGHT * specificity

    def names_another(self, word_stem: str, function: int) -> bool:
        """Whether the word stands in the names of other functions only."""
        users = self._name_users.get(word_stem)
        return users is not None and function not in users

    def marks_another(self, word_stem: str, function: int) -> bool:
        """Whether exactly one function has the word in its examples, and another one than `function`."""
        users = self._literal_users.get(word_stem)
        return users is not None and len(users) == 1 and function not in users


def templates_of(functions: Sequence[OfferedFunction], lexicon: Lexicon) -> Iterator[Template]:
    """The templates of all examples. An example with nothing to recognise it by gives none."""
    for number, function in enumerate(functions):
        for example in function.examples:
            items = tuple(_items(example, lexicon, lexicon.facts[number].slots))
            literals = [item for item in items if isinstance(item, Literal)]
            slots = [item for item in items if isinstance(item, Slot)]
            content = [literal for literal in literals if literal.tells]
            if items:
                yield Template(
                    function=number,
                    example=example,
                    items=items,
                    filler_weight=sum(literal.weight for literal in literals if not literal.tells),
                    content_weight=sum(literal.weight for literal in content),
                    content_words=len(content),
                    has_slots=bool(slots),
                    typed_slots=sum(slot.kind in TYPED for slot in slots),
                )


def without_slots(example: str) -> str:
    """The words of `example` alone, for an index of words."""
    return _SLOT.sub(" ", example)


def with_values(example: str, values: dict[str, str]) -> str:
    """`example` with each slot replaced by the value of its name; an unknown slot stays as it is."""
    return _SLOT.sub(lambda found: values.get(found[1], found[0]), example)


def _items(example: str, lexicon: Lexicon, slots: dict[str, Slot]) -> Iterator[Literal | Slot]:
    """Literals and slots in order; a slot without a parameter of that name is left out."""
    parts = _SLOT.split(example)
    literals = [_words_of(part) for part in parts[::2]]
    only_time = all(word.is_time or word.meaning.is_filler for words in literals for word in words)
    for place, part in enumerate(parts):
        if place % 2 == 0:
            yield from (
                _literal(word, lexicon, by_the_way=word.is_time and not only_time) for word in literals[place // 2]
            )
        elif part in slots:
            yield slots[part]


def _literal(word: Word, lexicon: Lexicon, *, by_the_way: bool) -> Literal:
    """`by_the_way`: a time that only goes with what the example is about."""
    meaning = word.meaning
    weight = _FILLER_WEIGHT if meaning.is_filler else lexicon.weight(meaning.stem)
    if by_the_way:
        weight = min(weight, _TIME_WEIGHT)
    if meaning.is_question:
        weight *= _QUESTION_SHARE
    if word.is_han:
        weight *= _HAN_SHARE
    return Literal(
        stem=meaning.stem,
        weight=weight,
        concepts=meaning.concepts,
        is_filler=meaning.is_filler or by_the_way,
        is_question=meaning.is_question,
        is_action=meaning.is_action,
        is_preposition=word.text in PREPOSITIONS,
    )


@lru_cache(maxsize=2048)
def _words_of(part: str) -> tuple[Word, ...]:
    """The words of an example, or of a part of one. Whenever a source changes, the index is made anew, of nearly the
    same examples."""
    return read(part).words


def _literal_words(example: str) -> Iterable[Word]:
    return (word for word in _words_of(without_slots(example)) if word.text not in FILLERS)


def _facts(function: OfferedFunction, stems: set[str], own: set[str]) -> FunctionFacts:
    takes_away = {stem(word) for word in DESTRUCTIVE}
    concepts = {concept for word in stems for concept in concepts_of(word)}
    return FunctionFacts(
        slots=slots_of(function.parameters),
        writes=function.writes,
        is_destructive=bool(stems & takes_away) or "remove" in concepts,
        own_stems=frozenset(own),
    )
