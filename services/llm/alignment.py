"""The cheapest way to lay a message over a template: which words answer which, and what is left over on either side."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from services.llm.slot_values import TYPED, Slot, SlotKind
from services.llm.templates import Lexicon, Literal, Template
from services.llm.utterance import Utterance, Word

_CONCEPT_SHARE = 0.35
"""Of a literal's weight: the cost of a word that only means something alike."""
_SKIP_REQUIRED, _SKIP_OPTIONAL = 0.9, 0.1
_ABSORB, _ABSORB_FITTING = 0.06, 0.03
_ABSORB_REFUSED = 0.5
_ABSORB_NAME, _ABSORB_MARK = 0.6, 0.3
_LEADING_QUESTION = 0.45
_MISFIT = {SlotKind.TIME: 0.7, SlotKind.NUMBER: 1.2, SlotKind.CHOICE: 1.2, SlotKind.EXPRESSION: 0.9}
_HAN_SHARE = 0.5
_OPENING_COST = 0.04
_FIRST_TIME, _MORE_TIME = 0.3, 0.08
_UNBROKEN = 0.3
"""Two free values beside each other are told apart by a colon or a question mark."""
TYPED_BONUS = 0.5
"""The weight of a slot whose words look like its values; free text tells nothing."""
_SKIP_WORD, _MATCH, _SKIP_ITEM = -1, -2, -3


@dataclass(frozen=True, slots=True)
class Span:
    """The words that a slot took, by their first and last number."""

    slot: Slot
    item: int
    """The slot's place among the items of the template."""
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Alignment:
    """One way to lay a message over a template."""

    template: Template
    cost: float
    matched: float
    """The weight of what was found."""
    content: float
    """The part of it that is words which tell what the sentence is about."""
    spans: tuple[Span, ...]
    lost: frozenset[int]
    """The places of the items that nothing in the message answers."""
    skipped: int
    """How many words of the message answer nothing."""


class Aligner:
    """Lays one message over templates; what depends on the slot alone is computed once."""

    def __init__(self, said: Utterance, lexicon: Lexicon) -> None:
        self._said = said
        self._lexicon = lexicon
        previous = (None, *said.words[:-1])
        self._skip = [_skip_cost(word, before) for before, word in zip(previous, said.words, strict=True)]
        self.leftover_cost = sum(self._skip)
        """What it costs to leave every word of the message out."""
        self._absorb: dict[tuple[int, str], tuple[list[float], list[float]]] = {}

    def align(self, template: Template) -> Alignment:
        """The cheapest alignment with `template`."""
        costs = [0.0]
        for skip in self._skip:
            costs.append(costs[-1] + skip)
        choices: list[list[int]] = []
        previous: Literal | Slot | None = None
        for item in template.items:
            if isinstance(item, Literal):
                costs, choice = self._after_literal(item, costs)
            else:
                costs, choice = self._after_slot(item, template.function, costs, _unbroken(previous, item))
            choices.append(choice)
            previous = item
        return self._traced(template, costs[-1], choices)

    def _after_literal(self, literal: Literal, before: list[float]) -> tuple[list[float], list[int]]:
        weight, wanted, concepts = literal.weight, literal.stem, literal.concepts
        after, choice = [before[0] + weight], [_SKIP_ITEM]
        last = after[0]
        for place, word in enumerate(self._said.words):
            best, how = before[place + 1] + weight, _SKIP_ITEM
            skipped = last + self._skip[place]
            if skipped < best:
                best, how = skipped, _SKIP_WORD
            meaning = word.meaning
            if meaning.stem == wanted:
                if before[place] <= best:
                    best, how = before[place], _MATCH
            elif concepts and meaning.concepts and not concepts.isdisjoint(meaning.concepts):
                alike = before[place] + weight * _CONCEPT_SHARE
                if alike < best:
                    best, how = alike, _MATCH
            after.append(best)
            choice.append(how)
            last = best
        return after, choice

    def _after_slot(
        self, slot: Slot, function: int, before: list[float], unbroken: float
    ) -> tuple[list[float], list[int]]:
        """A choice of 0 or more is the number of the first word that the slot takes. `unbroken` is the cost of
        beginning where no clause ends."""
        absorb, opening = self._absorption(slot, function)
        skip = _SKIP_REQUIRED if slot.required else _SKIP_OPTIONAL
        after, choice = [before[0] + skip], [_SKIP_ITEM]
        last, inside, start = after[0], inf, 0
        for place, word in enumerate(self._said.words):
            opened = before[place] + opening[place] + (0.0 if word.is_after_break else unbroken)
            if opened < inside:
                inside, start = opened, place
            inside += absorb[place]
            best, how = before[place + 1] + skip, _SKIP_ITEM
            if inside < best:
                best, how = inside, start
            skipped = last + self._skip[place]
            if skipped < best:
                best, how = skipped, _SKIP_WORD
            after.append(best)
            choice.append(how)
            last = best
        return after, choice

    def _traced(self, template: Template, cost: float, choices: list[list[int]]) -> Alignment:
        """The alignment that the choices lead back to."""
        matched = content = 0.0
        spans: list[Span] = []
        lost: set[int] = set()
        place, number, skipped = len(self._said.words), len(template.items), 0
        while number:
            item, how = template.items[number - 1], choices[number - 1][place]
            if how == _SKIP_WORD:
                place -= 1
                skipped += 1
                continue
            number -= 1
            if how == _SKIP_ITEM:
                lost.add(number)
            elif isinstance(item, Literal):
                place -= 1
                share = 1.0 if self._said.words[place].meaning.stem == item.stem else 1 - _CONCEPT_SHARE
                matched += item.weight * share
                content += item.weight * share if item.tells else 0.0
            else:
                spans.append(Span(item, number, how, place - 1))
                matched += self._bonus(spans[-1])
                place = how
        return Alignment(template, cost, matched, content, tuple(reversed(spans)), frozenset(lost), skipped + place)

    def _bonus(self, span: Span) -> float:
        fitting = span.slot.kind in TYPED and any(
            fits(self._said.words[at], span.slot) for at in range(span.first, span.last + 1)
        )
        return TYPED_BONUS if fitting else 0.0

    def _absorption(self, slot: Slot, function: int) -> tuple[list[float], list[float]]:
        """For each word of the message: what it costs `slot` to take it, and to begin with it."""
        key = (function, slot.name)
        known = self._absorb.get(key)
        if known is None:
            words = self._said.words
            known = self._absorb[key] = (
                [self._absorption_of(word, slot, function) for word in words],
                [_opening_of(word, slot) for word in words],
            )
        return known

    def _absorption_of(self, word: Word, slot: Slot, function: int) -> float:
        share = _HAN_SHARE if word.is_han else 1.0
        if slot.kind in TYPED:
            if fits(word, slot):
                return _ABSORB_FITTING * share
            return share * (_ABSORB if word.meaning.is_filler else _MISFIT[slot.kind])
        meaning = word.meaning
        if meaning.is_negation or meaning.is_destructive:
            return _ABSORB_REFUSED * share
        if not meaning.is_filler and self._lexicon.names_another(meaning.stem, function):
            return _ABSORB_NAME * share
        if not meaning.is_filler and self._lexicon.marks_another(meaning.stem, function):
            return _ABSORB_MARK * share
        return _ABSORB * share


def _unbroken(previous: Literal | Slot | None, slot: Slot) -> float:
    """What it costs `slot` to begin where no clause ends."""
    both_free = isinstance(previous, Slot) and slot.kind not in TYPED and previous.kind not in TYPED
    return _UNBROKEN if both_free else 0.0


def _opening_of(word: Word, slot: Slot) -> float:
    """What it costs `slot` to begin with `word`, beside taking it; a value of a kind begins with a word of the kind."""
    if slot.kind not in TYPED:
        return _LEADING_QUESTION if word.meaning.is_question else 0.0
    is_small_word = word.meaning.is_filler and word.text.isalpha()
    return 0.0 if fits(word, slot) and not is_small_word else inf


def _skip_cost(word: Word, previous: Word | None) -> float:
    """What it costs to leave `word` out. When something is to happen seldom changes what is meant."""
    cost = word.meaning.skip_cost
    if word.is_opening:
        return min(cost, _OPENING_COST)
    if word.is_time:
        return min(cost, _MORE_TIME if previous is not None and previous.is_time else _FIRST_TIME)
    return cost


def fits(word: Word, slot: Slot) -> bool:
    """Whether `word` looks like part of a value of `slot`."""
    meaning = word.meaning
    match slot.kind:
        case SlotKind.TIME:
            return word.is_time or meaning.is_number
        case SlotKind.NUMBER:
            return meaning.is_number
        case SlotKind.EXPRESSION:
            return meaning.is_number or meaning.is_operator
        case SlotKind.CHOICE:
            return meaning.stem in slot.choice_stems
        case _:
            return True
