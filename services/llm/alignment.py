"""How well a message fits a template: the cheapest way to lay the one over the other, and a score from 0 to 1."""

from __future__ import annotations

from dataclasses import dataclass

from services.llm.slot_values import TYPED, Slot, SlotKind
from services.llm.templates import Lexicon, Literal, Template
from services.llm.utterance import Utterance, Word
from services.text_index import listed

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
_LOST_ACTION, _LOST_PREPOSITION, _LOST_VALUE, _LOST_TYPED = 0.8, 0.9, 0.6, 1.2
_SHORT_WORDS, _EXTRA_WORD, _PERSONAL_WORD = 3, 0.3, 0.6
_FIRST_TIME, _MORE_TIME = 0.3, 0.08
_LOST_QUESTION, _WORDLESS, _LOOSE_WORD = 0.3, 0.15, 0.1
_TYPED_BONUS = 0.5
_UNBROKEN = 0.3
"""Two free values beside each other are told apart by a colon or a question mark."""
_SKIP_WORD, _MATCH, _SKIP_ITEM = -1, -2, -3


@dataclass(frozen=True, slots=True)
class Span:
    """The words that a slot took, by their first and last number."""

    slot: Slot
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
    """The part of it that is content words."""
    spans: tuple[Span, ...]

    @property
    def likeness(self) -> float:
        """0 for nothing in common, 1 for the same."""
        return 2 * self.matched / (2 * self.matched + self.cost) if self.matched else 0.0


class Aligner:
    """Lays one message over templates; costs that depend on the function or the slot alone are computed once."""

    def __init__(self, said: Utterance, lexicon: Lexicon) -> None:
        self._said = said
        self._lexicon = lexicon
        self._skip = [
            _skip_cost(word, previous) for previous, word in zip((None, *said.words), said.words, strict=False)
        ]
        self._absorb: dict[tuple[int, str], list[float]] = {}

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
                unbroken = (
                    _UNBROKEN if isinstance(previous, Slot) and {item.kind, previous.kind}.isdisjoint(TYPED) else 0.0
                )
                costs, choice = self._after_slot(item, template.function, costs, unbroken)
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
        absorb = self._absorption(slot, function)
        skip = _SKIP_REQUIRED if slot.required else _SKIP_OPTIONAL
        after, choice = [before[0] + skip], [_SKIP_ITEM]
        last, inside, start = after[0], float("inf"), 0
        for place, word in enumerate(self._said.words):
            opened = before[place] + _opening_of(slot, word) + (0.0 if word.is_after_break else unbroken)
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
        """Walk the choices back, and add what only the whole shows."""
        matched = content = 0.0
        spans: list[Span] = []
        lost: set[int] = set()
        skipped = 0
        place, number = len(self._said.words), len(template.items)
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
                spans.append(Span(item, how, place - 1))
                matched += self._bonus(spans[-1])
                place = how
        cost += self._penalty(template, lost, spans)
        if not template.content_words and not spans:
            cost += _WORDLESS * (skipped + place + len(lost))
        return Alignment(template, cost, matched, content, tuple(reversed(spans)))

    def _bonus(self, span: Span) -> float:
        """What a slot tells by being filled with words that look right; free text tells nothing."""
        if span.slot.kind not in TYPED:
            return 0.0
        fitting = any(fits(self._said.words[at], span.slot) for at in range(span.first, span.last + 1))
        return _TYPED_BONUS if fitting else 0.0

    def _penalty(self, template: Template, lost: set[int], spans: list[Span]) -> float:
        penalty = 0.0
        by_slot = {id(span.slot): span for span in spans}
        for number, item in enumerate(template.items):
            if isinstance(item, Literal):
                penalty += self._loss(item) if number in lost else 0.0
                continue
            span = by_slot.get(id(item))
            if span is None:
                penalty += _lost_value(item)
                continue
            length = self._length(span)
            if item.kind is not SlotKind.SHORT:
                penalty += _LOOSE_WORD * max(0, length - _SHORT_WORDS) if template.content_words <= 1 else 0.0
                continue
            penalty += _EXTRA_WORD * max(0, length - (_SHORT_WORDS if template.content_words else 1))
            words = self._said.words[span.first : span.last + 1]
            penalty += _PERSONAL_WORD * sum(word.text in _PERSONAL for word in words)
            before = template.items[number - 1] if number else None
            if isinstance(before, Literal) and before.is_preposition and number - 1 in lost:
                penalty += _LOST_PREPOSITION
        return penalty

    def _loss(self, literal: Literal) -> float:
        """What is said without the word that makes the example an order, or a question, is something else."""
        if literal.is_action:
            return _LOST_ACTION
        return _LOST_QUESTION if literal.is_question and not self._said.is_question else 0.0

    def _length(self, span: Span) -> int:
        """In words; two Chinese characters count as one."""
        words = [word for word in self._said.words[span.first : span.last + 1] if not word.meaning.is_filler]
        return round(sum(0.5 if word.is_han else 1.0 for word in words if not word.is_time))

    def _absorption(self, slot: Slot, function: int) -> list[float]:
        """What it costs `slot` to take each word of the message."""
        key = (function, slot.name)
        known = self._absorb.get(key)
        if known is None:
            known = self._absorb[key] = [self._absorption_of(word, slot, function) for word in self._said.words]
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


def _lost_value(slot: Slot) -> float:
    """What is said without the value that the example shows is likely something else."""
    if not slot.required:
        return 0.0
    return _LOST_TYPED if slot.kind in TYPED else _LOST_VALUE


def _opening_of(slot: Slot, word: Word) -> float:
    """What it costs `slot` to begin with `word`, beside taking it."""
    if slot.kind in TYPED:
        begins = fits(word, slot) and not (
            slot.kind is SlotKind.EXPRESSION and word.text.isalpha() and word.meaning.is_filler
        )
        return 0.0 if begins else _MISFIT[slot.kind]
    return _LEADING_QUESTION if word.meaning.is_question else 0.0


def _skip_cost(word: Word, previous: Word | None) -> float:
    """What it costs to leave `word` out. When something is to happen seldom changes what is meant."""
    cost = word.meaning.skip_cost
    if word.is_opening:
        return min(cost, _OPENING_COST)
    if word.is_time:
        return min(cost, _MORE_TIME if previous is not None and previous.is_time else _FIRST_TIME)
    return cost


_PERSONAL = frozenset(listed("my i your till 我的"))


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
