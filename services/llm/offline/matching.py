"""Alignment of messages with example sentences: similarity, slot values, and ranking of functions."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest
from math import inf

from services.llm.model import OfferedFunction
from services.llm.offline.templates import (
    KNOWN,
    SHORT_KINDS,
    TYPED,
    FunctionFacts,
    Lexicon,
    Literal,
    Slot,
    SlotKind,
    Template,
    all_examples,
    dice_in,
    is_group_word,
    own_examples,
    templates_of,
    value_of,
    without_slots,
)
from services.llm.offline.utterance import MOST_SKIP_COST, SpokenTimes, Utterance, Word, clauses, read
from services.llm.offline.vocabulary import FILLERS, PREPOSITIONS, REQUESTS, STATES
from services.patterns import lazy_pattern
from services.refs import JsonObject, JsonValue
from services.text_index import is_unspaced, listed

_CONCEPT_SHARE = 0.25
"""Cost of matching only by concept, as a share of the literal's weight."""
_FORM_SHARE = 0.8
"""Cost of matching another form of an action, as `rolled` for `roll`, as a share of the literal's weight."""
_SKIP_REQUIRED, _SKIP_OPTIONAL = 0.9, 0.1
_ABSORB, _ABSORB_FITTING = 0.06, 0.03
_ABSORB_REFUSED = 0.5
_ABSORB_ANYBODY = 0.2
_ABSORB_NAME, _ABSORB_MARK = 0.5, 0.3
_FREE = 0.5
"""Share of these costs in free text."""
_LEADING_QUESTION = 0.45
_LEADING_VERB = 0.9
_LEADING_TIME = 0.4
_SPLIT_TIME = 0.6
"""Cost of a value that starts with a verb: it is the rest of a statement about the words before it."""
_MISFIT = {SlotKind.TIME: 0.7, SlotKind.NUMBER: 1.2, SlotKind.CHOICE: 1.2, SlotKind.EXPRESSION: 0.9}
_OPENING_COST = 0.04
_FIRST_TIME, _MORE_TIME = 0.3, 0.08
_COLON = 0.8
"""Cost of a slot after a colon in the example that follows none in the message."""
_UNBROKEN = 0.3
"""Cost of adjacent free-text slots without a colon or question mark between them."""
TYPED_BONUS = 0.5
"""Weight of a slot whose words look like its values; free text adds none."""
_SKIP_WORD, _MATCH, _SKIP_ITEM = -1, -2, -3


@dataclass(frozen=True, slots=True)
class Span:
    """Words taken by a slot, as an inclusive range."""

    slot: Slot
    item: int
    """Index of the slot in the template's items."""
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Alignment:
    """Alignment of a message with a template: matched and lost items, words taken by slots, and its cost."""

    template: Template
    cost: float
    matched: float
    """Total weight of the matched items."""
    content: float
    """Part of `matched` from content words."""
    spans: tuple[Span, ...]
    lost: frozenset[int]
    """Indexes of template items without a match."""
    skipped: int
    """Number of message words without a match."""


class Aligner:
    """Aligns one message with templates; costs that depend only on the slot are cached."""

    def __init__(self, utterance: Utterance, lexicon: Lexicon) -> None:
        self._utterance = utterance
        self._lexicon = lexicon
        previous = (None, *utterance.words[:-1])
        self._skip = [_skip_cost(word, before) for before, word in zip(previous, utterance.words, strict=True)]
        self.leftover_cost = sum(self._skip)
        """Cost of skipping every word of the message."""
        self._stems = {word.meaning.stem for word in utterance.words}
        self._concepts = frozenset[str]().union(*(word.meaning.concepts for word in utterance.words))
        self._places: dict[tuple[str, str, bool], list[tuple[int, float]]] = {}
        self._absorb: dict[tuple[int, str, SlotKind], tuple[list[float], list[float]]] = {}
        self._openings: dict[tuple[SlotKind, frozenset[str]], list[float]] = {}

    def align(self, template: Template, least: float) -> Alignment | None:
        """Compute the alignment with the lowest cost, by dynamic programming. Words and items without a match are part
        of its cost. None if its likeness cannot exceed `least`."""
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
        most = template.content_weight + template.filler_weight + TYPED_BONUS * len(template.typed_slots)
        if 2 * most <= least * (2 * most + costs[-1]):
            return None
        return self._traced(template, costs[-1], choices)

    def _after_literal(self, literal: Literal, before: list[float]) -> tuple[list[float], list[int]]:
        """Costs and choices after a literal. Skipping it is always possible; a match at a word may make it cheaper to
        skip the words after that."""
        weight = literal.weight
        after = [cost + weight for cost in before]
        choice = [_SKIP_ITEM] * len(after)
        for place, share in self._places_of(literal):
            cost = before[place] + weight * share
            at = place + 1
            if cost > after[at] or (share and cost == after[at]):
                continue
            after[at], choice[at] = cost, _MATCH
            for skip in self._skip[at:]:
                cost += skip
                at += 1
                if cost >= after[at]:
                    break
                after[at], choice[at] = cost, _SKIP_WORD
        return after, choice

    def _places_of(self, literal: Literal) -> list[tuple[int, float]]:
        """Indexes of the words that match `literal`, each with the share of its weight that the match costs."""
        if literal.stem not in self._stems and (literal.is_key or self._concepts.isdisjoint(literal.concepts)):
            return []
        key = (literal.stem, literal.form, literal.is_key)
        known = self._places.get(key)
        if known is None:
            known = self._places[key] = [
                (place, 1 - share)
                for place, word in enumerate(self._utterance.words)
                if (share := _share_of(word, literal)) > 0
            ]
        return known

    def _after_slot(
        self, slot: Slot, function: int, before: list[float], unbroken: float
    ) -> tuple[list[float], list[int]]:
        """Costs and choices after a slot. A choice of 0 or more is the first word that the slot takes; `unbroken` is
        the cost of starting it within a clause."""
        absorb, opening = self._absorption(slot, function)
        skip = _SKIP_REQUIRED if slot.required else _SKIP_OPTIONAL
        after, choice = [before[0] + skip], [_SKIP_ITEM]
        last, inside, start = after[0], inf, 0
        for place, word in enumerate(self._utterance.words):
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
        """Reconstruct the alignment from the `choices` of each item, from the last word backwards."""
        matched = content = 0.0
        spans: list[Span] = []
        lost: set[int] = set()
        place, number, skipped = len(self._utterance.words), len(template.items), 0
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
                share = _share_of(self._utterance.words[place], item)
                matched += item.weight * share
                content += item.weight * share if item.tells else 0.0
            else:
                spans.append(Span(item, number, how, place - 1))
                matched += self._bonus(spans[-1])
                place = how
        return Alignment(template, cost, matched, content, tuple(reversed(spans)), frozenset(lost), skipped + place)

    def _bonus(self, span: Span) -> float:
        fitting = span.slot.kind in TYPED and any(
            fits(self._utterance.words[at], span.slot) for at in range(span.first, span.last + 1)
        )
        return TYPED_BONUS if fitting else 0.0

    def _absorption(self, slot: Slot, function: int) -> tuple[list[float], list[float]]:
        """Costs per word of the message for `slot`: to take it, and to start with it."""
        key = (function, slot.name, slot.kind)
        known = self._absorb.get(key)
        if known is None:
            absorb = [self._absorption_of(word, slot, function) for word in self._utterance.words]
            known = self._absorb[key] = (absorb, self._opening(slot))
        return known

    def _opening(self, slot: Slot) -> list[float]:
        """Cost per word of the message for `slot` to start with it."""
        key = (slot.kind, slot.choice_stems)
        known = self._openings.get(key)
        if known is None:
            words = self._utterance.words
            known = self._openings[key] = [
                _opening_of(word, slot)
                + (_SPLIT_TIME if place and _is_inside(words, place, slot) else 0.0)
                + (_LEADING_TIME if slot.kind in SHORT_KINDS and _precedes_value(words, place) else 0.0)
                for place, word in enumerate(words)
            ]
        return known

    def _absorption_of(self, word: Word, slot: Slot, function: int) -> float:
        share = word.size
        if slot.kind in TYPED:
            if fits(word, slot):
                return _ABSORB_FITTING * share
            return share * (_ABSORB if word.meaning.is_filler else _MISFIT[slot.kind])
        meaning = word.meaning
        if slot.kind is SlotKind.WHO:
            return (_ABSORB_FITTING if is_group_word(word.text) else _ABSORB_ANYBODY) * share
        if slot.kind is SlotKind.SHORT and meaning.is_action and is_unspaced(word.text):
            return (_ABSORB if self._lexicon.facts[function].writes else _ABSORB_REFUSED) * share
        free = _FREE if slot.kind is SlotKind.LONG else 1.0
        if meaning.is_negation or meaning.is_destructive:
            return _ABSORB_REFUSED * share * free
        if not meaning.is_filler and self._lexicon.names_another(meaning.stem, function):
            return _ABSORB_NAME * share * free
        if not meaning.is_filler and self._lexicon.marks_another(meaning.stem, function):
            return _ABSORB_MARK * share * free
        return _ABSORB * share * free


_OTHER_ENDS = frozenset({"finish", "remove"})
_OTHER_ENDS_CHINESE = frozenset({"完成", "删除", "清空"})


def _ends_otherwise(word: Word) -> bool:
    """Whether the last word of a text says that something is finished or to be removed: `todo milk done`."""
    return not word.meaning.concepts.isdisjoint(_OTHER_ENDS) or word.meaning.stem in _OTHER_ENDS_CHINESE


def _is_inside(words: Sequence[Word], place: int, slot: Slot) -> bool:
    """Whether a text that begins at `place` would divide a time."""
    return slot.kind not in TYPED and words[place].continues_moment


def _precedes_value(words: Sequence[Word], place: int) -> bool:
    """Whether a time and a preposition begin at `place`: `tomorrow in` before a city."""
    after = next((word for word in words[place:] if not word.is_moment), None)
    return words[place].is_moment and after is not None and after.text in PREPOSITIONS


def _share_of(word: Word, literal: Literal) -> float:
    """Share of the literal's weight that `word` matches; 0 if it does not."""
    if word.meaning.stem != literal.stem:
        is_alike = not literal.is_key and not literal.concepts.isdisjoint(word.meaning.concepts)
        return 1 - _CONCEPT_SHARE if is_alike else 0.0
    return 1 - _FORM_SHARE if word.meaning.form and word.meaning.form != literal.form else 1.0


def _unbroken(previous: Literal | Slot | None, slot: Slot) -> float:
    """Cost for `slot` of starting within a clause: 0 unless it and the item before it are free text."""
    both_free = (
        isinstance(previous, Slot)
        and slot.kind not in TYPED
        and previous.kind not in TYPED
        and SlotKind.WHO not in (slot.kind, previous.kind)
    )
    if slot.is_after_break and isinstance(previous, Literal):
        return _COLON
    return _UNBROKEN if both_free else 0.0


def _opening_of(word: Word, slot: Slot) -> float:
    """Extra cost for `slot` of starting with `word`; typed values must start with a word of their type."""
    if slot.kind not in TYPED:
        return _LEADING_QUESTION if word.meaning.is_question else _LEADING_VERB if word.text in STATES else 0.0
    is_small_word = word.meaning.is_filler and word.text.isalpha()
    return 0.0 if fits(word, slot) and not is_small_word else inf


def _skip_cost(word: Word, previous: Word | None) -> float:
    """Cost of skipping `word`. Times are cheap, because they rarely identify a function."""
    cost = word.meaning.skip_cost
    if word.is_opening:
        return min(cost, _OPENING_COST)
    if word.is_time:
        return min(cost, _MORE_TIME if previous is not None and previous.is_time else _FIRST_TIME)
    return cost


def fits(word: Word, slot: Slot) -> bool:
    """Whether `word` looks like part of a value of `slot`."""
    return word.meaning.stem in slot.choice_stems if slot.kind is SlotKind.CHOICE else _fits_kind(word, slot.kind)


def _fits_kind(word: Word, kind: SlotKind) -> bool:
    match kind:
        case SlotKind.TIME:
            return word.is_moment
        case SlotKind.NUMBER:
            return word.meaning.is_number
        case SlotKind.EXPRESSION:
            return word.meaning.is_number or word.meaning.is_operator
        case _:
            return True


_POINTING = frozenset(
    listed("""
    it that this them those these here there one ones item items thing things something anything everything all whole
    entire list me current location area position nearby again later once more every each out off away
    再 它 这 那 个 些 全 部 所 有 都
    """)
)
"""Words that refer to earlier messages; not a value on their own."""
_LOOSE = frozenset(listed("please thanks thank right currently exactly nearby located kindly 请 吗 呢 吧 啊 了"))
"""Words to strip from both ends of a value."""
_LOOSE_SHORT = _LOOSE | FILLERS | REQUESTS
_LEADING = frozenset(listed("the a an my our that some between among 在 从"))
"""Words to strip from the start of a value."""
_OPEN = frozenset(listed("the a an my our your this that"))
"""Words that cannot end a value: the text continues outside the slot."""
_COMMAS = frozenset(",;，；。.!！?？")
_BEFORE_TIMES = frozenset(listed("at on by in for around"))
_COUNTED = frozenset("号第条项")
_BEFORE_VALUES = frozenset(listed("to from of about 到"))
_BEFORE_AMOUNTS = frozenset(listed("in a an half"))
_Range = tuple[int, int]
"""First and last word of an inclusive range."""


@dataclass(frozen=True, slots=True)
class Filled:
    """Arguments extracted from an alignment, and slots without a valid value."""

    arguments: JsonObject
    missing: tuple[str, ...]
    """Required parameters without a value."""
    unusable: tuple[str, ...]
    """Slots whose words are not a valid value."""


def filled(
    utterance: Utterance,
    alignment: Alignment,
    facts: FunctionFacts,
    lexicon: Lexicon,
    spoken_times: SpokenTimes | None = None,
) -> Filled:
    """Extract the arguments of a call from `alignment`; a sole unused number goes to a sole unfilled number
    parameter. With `spoken_times`, a free text and the time next to it are parted again by its rules."""
    slots = facts.slots
    raw = _raw_texts(utterance, alignment.spans, slots, facts.own_stems)
    raw |= _question_and_options(utterance, alignment.spans)
    if spoken_times is not None:
        raw |= _parted_again(utterance, alignment.spans, slots, spoken_times)
    arguments: dict[str, JsonValue] = {}
    unusable: list[str] = []
    spanned = {span.slot.name: span.slot for span in alignment.spans}
    for name in dict.fromkeys((*spanned, *raw)):
        slot = spanned.get(name, slots[name])
        value = dice_in(utterance.text) or None if slot.kind is SlotKind.DICE else value_of(raw.get(name, ""), slot)
        if value is not None and slot.kind is SlotKind.FUNCTION:
            named = lexicon.function_in(str(value))
            value = None if named is None else named[0 if slots[name].kind is SlotKind.FUNCTION else 1]
        if value is None:
            unusable.append(name)
        else:
            arguments[name] = value
    _take_sole_number(utterance, alignment.spans, slots, arguments)
    _take_choice(utterance, slots, arguments)
    for name, slot in slots.items():
        if slot.kind is SlotKind.DICE and name not in arguments and (dice := dice_in(utterance.text)):
            arguments[name] = dice
        elif name == "days" and slot.kind is SlotKind.NUMBER and spoken_times is not None and name not in arguments:
            days = value_of(str(spoken_times.days_ahead(utterance.text) or ""), slot)
            arguments |= {} if days is None else {name: days}
    missing = tuple(name for name, slot in slots.items() if slot.required and name not in arguments)
    return Filled(arguments, missing, tuple(unusable))


def _raw_texts(
    utterance: Utterance, spans: Sequence[Span], slots: Mapping[str, Slot], own: frozenset[str]
) -> dict[str, str]:
    """Trimmed text of each slot. A time at either end of a text moves to an unfilled time slot. Words that all belong
    to the function itself (`own`, as `my todo list` of a todo function) are not a value."""
    texts: dict[str, str] = {}
    filled_names = {span.slot.name for span in spans}
    free_time = next(
        (name for name, slot in slots.items() if slot.kind is SlotKind.TIME and name not in filled_names), None
    )
    for span in spans:
        words: _Range | None
        if span.slot.kind in TYPED:
            words = _fitting(utterance, span)
        else:
            whole = (span.first, _end_before_a_time(utterance, span, spans))
            words = _trimmed(utterance, span.slot, _one_clause(utterance, span.slot, whole))
            inner, time = _parted(utterance, words)
            if free_time is not None and inner is not None and time is not None:
                texts[free_time], free_time, words = utterance.between(*time), None, inner
            elif span.slot.kind in SHORT_KINDS and not _is_bare_number(utterance, words):
                words = inner
            words = (
                _less_own(utterance, span.slot, _trimmed(utterance, span.slot, words), own)
                if words is not None
                else None
            )
        if words is not None and not _says_nothing(utterance.words[words[0] : words[1] + 1], span.slot, own):
            texts[span.slot.name] = utterance.between(*words)
    return texts


_QUESTION_END = lazy_pattern(r"(?<=[?:？：])\s*|(?<=[,，])\s*(?=\S+\s*[/、])|\s+-\s+")
_TWO = 2
_SEPARATED = lazy_pattern(r"\s*[/|、]\s*|\s*,\s*(?:or\s+)?|\s+or\s+|还是|\s*，\s*")


def _question_and_options(utterance: Utterance, spans: Sequence[Span]) -> dict[str, str]:
    """A question and the list of its answers by slot, if they are next to each other; else empty. They are separated by
    a colon or question mark, or a comma after a longer question; or the answers are two words, or separated by slashes
    or, in Chinese, by spaces."""
    text = next((span for span in spans if span.slot.kind is SlotKind.LONG), None)
    options = next((span for span in spans if span.slot.kind is SlotKind.LIST), None)
    if text is None or options is None or options.first != text.last + 1:
        return {}
    end = len(utterance.words) - 1 if options.item == max(span.item for span in spans) else options.last
    said = utterance.between(text.first, end)
    parts = [part for part in _QUESTION_END.split(said) if part.strip()]
    separated = _SEPARATED.split(said)
    if len(parts) > 1:
        question, answers = said[: said.rindex(parts[-1])], parts[-1]
    elif "/" not in said and len(separated[0].split()) > _TWO < len(separated):
        question, answers = separated[0], "/".join(separated[1:])
    elif (
        ("/" in said or len(separated) == _TWO)
        and len(first := _SEPARATED.split(said, maxsplit=1)) > 1
        and " " in first[0]
    ):
        question, _, one = first[0].rpartition(" ")
        answers = f"{one}/{first[1]}"
    elif is_unspaced(said) and " " in said and not _SEPARATED.search(said):
        question, _, answers = said.partition(" ")
        answers = "、".join(answers.split())
    else:
        return {}
    return {text.slot.name: question.strip(" :：,，"), options.slot.name: answers}


def _parted_again(
    utterance: Utterance, spans: Sequence[Span], slots: Mapping[str, Slot], spoken_times: SpokenTimes
) -> dict[str, str]:
    """A free text, which may be empty, and its time by slot, if no other value or word of the example is between them;
    else empty."""
    text = next((span for span in spans if span.slot.kind is SlotKind.LONG), None)
    time = next((slot for slot in slots.values() if slot.kind is SlotKind.TIME), None)
    if text is None or time is None:
        return {}
    first, last = text.first, text.last
    for span in spans:
        if span.slot.kind is SlotKind.TIME:
            between = utterance.words[span.last + 1 : first] or utterance.words[last + 1 : span.first]
            if not all(word.meaning.is_filler for word in between):
                return {}
            first, last = min(first, span.first), max(last, span.last)
    while first and utterance.words[first - 1].is_moment and not any(s.first <= first - 1 <= s.last for s in spans):
        first -= 1
    said, when = spoken_times.parted(utterance.between(first, last))
    if all(word.text in _POINTING for word in read(said).words):
        said = ""
    return {text.slot.name: said, time.name: when} if when else {}


def _end_before_a_time(utterance: Utterance, span: Span, spans: Sequence[Span]) -> int:
    """Index of the last word of a text, without the preposition of a directly following time: `pizza at` before
    `7pm`."""
    is_followed = any(one.slot.kind is SlotKind.TIME and one.first == span.last + 1 for one in spans)
    loses_one = is_followed and span.last > span.first and utterance.words[span.last].text in _BEFORE_TIMES
    return span.last - loses_one


def _one_clause(utterance: Utterance, slot: Slot, whole: _Range) -> _Range:
    """`whole` without what follows a comma in a short value, and without a request such as `, can you` at the end of a
    text."""
    words, (first, last) = utterance.words, whole
    for place in range(first + 1, last + 1):
        if _COMMAS.isdisjoint(utterance.text[words[place - 1].end : words[place].start]):
            continue
        rest = words[place : last + 1]
        if slot.kind is SlotKind.SHORT or all(word.text in REQUESTS or word.meaning.is_filler for word in rest):
            return first, place - 1
    return whole


def _is_bare_number(utterance: Utterance, whole: _Range) -> bool:
    """Whether the range is a single number, which is kept as a value although it could be an hour."""
    words = utterance.words[whole[0] : whole[1] + 1]
    numbers = [word.meaning.is_number for word in words]
    return any(numbers[:2]) and all(
        word.meaning.is_number or word.meaning.is_filler or word.text in _COUNTED for word in words
    )


def _fitting(utterance: Utterance, span: Span) -> _Range | None:
    """Range from the first to the last word that looks like a value, or None; drops prepositions around it, but not the
    words of an amount of time: `in an hour`."""
    fitting = [at for at in range(span.first, span.last + 1) if fits(utterance.words[at], span.slot)]
    if not fitting:
        return None
    first = fitting[0]
    while span.slot.kind is SlotKind.TIME and first and _continues_time(utterance.words[first - 1]):
        first -= 1
    return first, fitting[-1]


def _continues_time(word: Word) -> bool:
    is_link = word.meaning.is_filler and word.text not in _BEFORE_VALUES
    return word.text in _BEFORE_AMOUNTS or (word.is_moment and is_link)


def _parted(utterance: Utterance, whole: _Range) -> tuple[_Range | None, _Range | None]:
    """Split `whole` into the rest and a time at either end, the longer one if both ends have one. The time is None
    without time words, the rest None if all words are times."""
    words = utterance.words
    first, last = whole
    while first <= last and words[last].is_time:
        last -= 1
    while first <= last and words[first].is_time:
        first += 1
    if (first, last) == whole:
        return whole, None
    if first > last:
        return None, whole
    before, after = (whole[0], first - 1), (last + 1, whole[1])
    return (first, last), max((before, after), key=lambda part: part[1] - part[0])


def _trimmed(utterance: Utterance, slot: Slot, whole: _Range) -> _Range:
    """Strip loose words from both ends, keeping at least one word and times: from short values all fillers at the ends,
    from free text only polite words."""
    loose = _LOOSE_SHORT if slot.kind in SHORT_KINDS else _LOOSE
    leading = _LOOSE if slot.kind is SlotKind.LIST else loose | _LEADING
    words = utterance.words
    first, last = whole
    while last > first and words[last].text in loose and not words[last].is_time:
        last -= 1
    if words[last].text in _OPEN:
        while last > first and words[last].text in _OPEN | PREPOSITIONS:
            last -= 1
    while first < last and words[first].text in leading and not words[first].is_time:
        first += 1
    return first, last


def _less_own(utterance: Utterance, slot: Slot, whole: _Range, own: frozenset[str]) -> _Range:
    """Strip the function's own words from the start of a short value: `forecast Oslo` becomes Oslo."""
    first, last = whole
    while slot.kind in SHORT_KINDS and first < last and utterance.words[first].meaning.stem in own:
        first, last = _trimmed(utterance, slot, (first + 1, last))
    return first, last


def _says_nothing(words: Sequence[Word], slot: Slot, own: frozenset[str]) -> bool:
    if slot.kind is SlotKind.TIME:  # a single character of a Chinese time is incomplete
        return len(words) == 1 and is_unspaced(words[0].text) and not words[0].meaning.is_number
    if slot.kind in TYPED:
        return False
    return all(
        word.text in _POINTING
        or word.meaning.is_negation
        or word.meaning.is_destructive
        or word.text in FILLERS
        or word.meaning.stem in own
        for word in words
    )


_PRIORITIES = {
    "high": lazy_pattern(
        r"[(（,，\s]*(?:with |at |as )?"
        r"(?:high(?:est)? prio(?:rity)?|urgent(?:ly)?|asap|很急|紧急|加急|高优先级|优先级高|重要)[)）!！.。]*$",
        re.IGNORECASE,
    ),
    "low": lazy_pattern(
        r"[(（,，\s]*(?:with |at |as )?"
        r"(?:low(?:est)? prio(?:rity)?|not urgent|no rush|不急|低优先级|优先级低)[)）!！.。]*$",
        re.IGNORECASE,
    ),
}
_SHOWN = {
    "all": lazy_pattern(
        r"\b(?:everything|all (?:the )?(?:todos|tasks|items|entries)|also the (?:finished|done))\b|全部|所有",
        re.IGNORECASE,
    ),
    "done": lazy_pattern(r"\b(?:done|finished|completed)\b|完成|做完", re.IGNORECASE),
}


def _take_choice(utterance: Utterance, slots: Mapping[str, Slot], arguments: dict[str, JsonValue]) -> None:
    """Read a priority from the end of a text, and which entries of a list to show."""
    text, priority = arguments.get("text"), slots.get("priority")
    if priority is not None and isinstance(text, str) and "priority" not in arguments:
        for value, words in _PRIORITIES.items():
            rest = words.sub("", text) if words.search(text) else words.sub("", utterance.text)
            if rest != text and rest != utterance.text:
                arguments["priority"] = value
                arguments["text"] = words.sub("", text).rstrip("( ,，") or text
                break
    if "show" in slots and "show" not in arguments:
        shown = next((value for value, words in _SHOWN.items() if words.search(utterance.text)), None)
        if shown is not None and shown in dict(slots["show"].choices).values():
            arguments["show"] = shown


def _take_sole_number(
    utterance: Utterance, spans: Sequence[Span], slots: Mapping[str, Slot], arguments: dict[str, JsonValue]
) -> None:
    """Assign the only unused number to the only number parameter, if that is unfilled."""
    numeric = [slot for slot in slots.values() if slot.kind is SlotKind.NUMBER]
    if len(numeric) != 1 or numeric[0].name in arguments:
        return
    used = {at for span in spans for at in range(span.first, span.last + 1)}
    loose = [
        at for at, word in enumerate(utterance.words) if word.meaning.is_number and not word.is_time and at not in used
    ]
    if len(loose) == 1:
        value = value_of(utterance.between(loose[0], loose[0]), numeric[0])
        if value is not None:
            arguments[numeric[0].name] = value


# Added to the cost of an alignment.
_LOST_ACTION, _LOST_PREPOSITION = 0.8, 0.9
_LOST_QUESTION, _OTHER_QUESTION = 0.5, 0.1
_LOST_VALUE, _LOST_TYPED = 0.6, 1.2
_SHORT_WORDS, _EXTRA_WORD, _PERSONAL_WORD, _LOOSE_WORD = 3, 0.3, 0.6, 0.1
_WORDLESS = 0.15
_OTHER_END = 0.5
_PERSONAL = frozenset({"my", "i", "your", "till", "we", "he", "she", "they", "跟", "我", "你", "他", "她", "了"})
_SUBJECTS = frozenset(listed("it he she they we"))
# Subtracted from the score.
_MISSING, _UNUSABLE, _UNKNOWN, _EMPTY = 0.08, 0.15, 0.3, 0.1
_THIN, _THIN_SHARE = 0.15, 0.6
_ONE_WORD, _ONE_WORD_ENOUGH = 0.3, 2
_TAKES_AWAY, _NEGATED, _ASKS, _REPORTS, _UNREAD = 0.3, 0.3, 0.3, 0.3, 0.3


def likeness(utterance: Utterance, alignment: Alignment) -> float:
    """Similarity of message and example from 0 (nothing in common) to 1 (same words): matched weight relative to the
    remaining cost."""
    if not alignment.matched:
        return 0.0
    template = alignment.template
    cost = (
        alignment.cost
        + sum(_cost_of_loss(utterance, template.items[number]) for number in alignment.lost)
        + sum(_span_cost(utterance, alignment, one) for one in alignment.spans)
    )
    if not template.content_words and not alignment.spans:
        cost += _WORDLESS * (alignment.skipped + len(alignment.lost))
    return 2 * alignment.matched / (2 * alignment.matched + cost)


def score(utterance: Utterance, alignment: Alignment, like: float, values: Filled, facts: FunctionFacts) -> float:
    """`like` minus penalties: missing or unusable values, few content words, and a destructive, negated or questioning
    message for a function of another kind. At least 0; 0 if no content word matches."""
    template = alignment.template
    if template.content_words and not alignment.content:
        return 0.0
    unusable = [span.slot for span in alignment.spans if span.slot.name in values.unusable]
    unknown = sum(
        slot.kind in KNOWN
        or slot.kind in (SlotKind.LIST, SlotKind.EXPRESSION)
        or (slot.required and not facts.slots[slot.name].required)
        for slot in unusable
    )
    total = like - _MISSING * len(values.missing) - _UNUSABLE * len(values.unusable) - _UNKNOWN * unknown
    if alignment.content < template.content_weight * _THIN_SHARE:
        total -= _THIN
    total -= _unread(utterance, alignment, values, facts)
    outside = _outside_texts(utterance, alignment.spans)
    if utterance.is_destructive and not facts.is_destructive and any(word.meaning.is_destructive for word in outside):
        total -= _TAKES_AWAY
    is_state = any(isinstance(item, Literal) and item.is_state for item in template.items)
    if utterance.is_statement and not is_state and not (utterance.is_report and not facts.reports):
        total -= _REPORTS
    if template.asks and not utterance.is_question and utterance.words[0].text in _SUBJECTS:
        total -= _REPORTS
    negates = any(isinstance(item, Literal) and item.is_negation for item in template.items)
    is_negated = any(word.meaning.is_negation for word in outside)
    if is_negated and not negates and (facts.writes or not utterance.is_question):
        total -= _NEGATED
    return max(0.0, total - _penalty(utterance, template, facts))


def _unread(utterance: Utterance, alignment: Alignment, values: Filled, facts: FunctionFacts) -> float:
    """Penalty for what the function would ignore: words, numbers and values."""
    template, words = alignment.template, utterance.words
    literals = [item for item in template.items if isinstance(item, Literal)]
    penalty = 0.0
    if len(template.items) == len(literals) == 1 and len(words) > _ONE_WORD_ENOUGH:
        penalty += _ONE_WORD
    if len(words) == 1 and literals and all(words[0].meaning.stem != one.stem for one in literals):
        penalty += _ONE_WORD
    if facts.writes and template.has_slots and not any(span.slot.name in values.arguments for span in alignment.spans):
        penalty += _EMPTY
    if facts.is_destructive and not template.has_slots and _has_other_words(utterance, literals):
        penalty += _UNREAD
    if _leaves_words(utterance, alignment.spans, values.arguments, facts):
        penalty += _UNREAD
    return penalty


def _penalty(utterance: Utterance, template: Template, facts: FunctionFacts) -> float:
    """Penalty for a message about the past, or a question for a function with effects whose example asks nothing."""
    reports = _REPORTS if utterance.is_report and not facts.reports else 0.0
    return reports + (_ASKS if facts.writes and utterance.is_question and not template.asks else 0.0)


def _has_other_words(utterance: Utterance, literals: Sequence[Literal]) -> bool:
    """Whether a content word of the message is none of the `literals`, as the topic of one reminder in a request to
    delete them all."""
    return any(
        not (word.meaning.is_filler or word.is_opening or any(_share_of(word, literal) for literal in literals))
        for word in utterance.words
        if word.size >= 1 and word.text not in _POINTING
    )


_REPEATS = frozenset(listed("every daily weekly monthly hourly 每"))


def _leaves_words(utterance: Utterance, spans: Sequence[Span], arguments: JsonObject, facts: FunctionFacts) -> bool:
    """Whether a number in digits, the hour of a time or a recurrence is in no slot, and a number not in the
    `arguments` either, or a word in the slot of a place is not part of its name. Optional values of functions without
    effects are no times. A function of days, as the weather, ignores times."""
    said = str(arguments)
    for span in spans:
        if span.slot.kind is SlotKind.PLACE and any(
            word.text not in said.lower() and not word.meaning.is_filler and not word.is_time
            for word in utterance.words[span.first : span.last + 1]
        ):
            return True
    taken = (span for span in spans if facts.writes or span.slot.kind in TYPED or facts.slots[span.slot.name].required)
    inside = {at for span in taken for at in range(span.first, span.last + 1)}
    takes_times = "days" in facts.slots or any(facts.slots[name].kind is SlotKind.TIME for name in arguments)
    return any(
        at not in inside and not (takes_times if word.is_moment else word.text in said)
        for at, word in enumerate(utterance.words)
        if word.text[0].isdigit() or (word.is_moment and (word.meaning.is_number or word.text in _REPEATS))
    )


def _outside_texts(utterance: Utterance, spans: Sequence[Span]) -> list[Word]:
    """Words of the message that are not in a free text, which may say anything."""
    inside = {at for span in spans if span.slot.kind is SlotKind.LONG for at in range(span.first, span.last + 1)}
    return [word for at, word in enumerate(utterance.words) if at not in inside]


def _cost_of_loss(utterance: Utterance, item: Literal | Slot) -> float:
    """Penalty for a lost item: without its action, question word or shown value, the message probably means something
    else."""
    if isinstance(item, Literal):
        if item.is_question and not (item.is_key or item.is_action):
            return _OTHER_QUESTION if utterance.is_question else _LOST_QUESTION
        return _loss(item)
    if not item.required:
        return 0.0
    return _LOST_TYPED if item.kind in TYPED else _LOST_VALUE


def _loss(literal: Literal) -> float:
    return _LOST_TYPED if literal.is_key else _LOST_ACTION if literal.is_action else 0.0


def _span_cost(utterance: Utterance, alignment: Alignment, span: Span) -> float:
    """Penalty for unlikely values: short values are rarely long or personal, and follow the example's preposition."""
    template = alignment.template
    length = _length(utterance, span)
    if span.slot.kind is not SlotKind.SHORT and span.slot.kind not in KNOWN:
        loose = _LOOSE_WORD * max(0, length - _SHORT_WORDS) if template.content_words <= 1 else 0.0
        if span.slot.kind is SlotKind.LONG and span.item == len(template.items) - 1:
            loose += _OTHER_END if _ends_otherwise(utterance.words[span.last]) else 0.0
            loose += _LOST_PREPOSITION if _lost_its_pronoun(template, alignment.lost, span.item) else 0.0
        return loose + _crossing(utterance, span, template.items)
    cost = _EXTRA_WORD * max(0, length - (_SHORT_WORDS if template.content_words else 1))
    cost += _PERSONAL_WORD * sum(word.text in _PERSONAL for word in utterance.words[span.first : span.last + 1])
    return cost + (_LOST_PREPOSITION if _lost_its_preposition(template, alignment.lost, span.item) else 0.0)


def _crossing(utterance: Utterance, span: Span, items: Sequence[Literal | Slot]) -> float:
    """Cost of a Chinese value of more than one clause that is not the last of the `items`."""
    if span.slot.kind is not SlotKind.LONG or span.item == len(items) - 1:
        return 0.0
    words = utterance.words[span.first : span.last + 1]
    pairs = itertools.pairwise(words)
    gaps = [utterance.text[one.end : two.start] for one, two in pairs if is_unspaced(one.text)]
    return _LOST_VALUE * sum(not _COMMAS.isdisjoint(gap) for gap in gaps)


def _lost_its_preposition(template: Template, lost: frozenset[int], number: int) -> bool:
    before = template.items[number - 1] if number else None
    return isinstance(before, Literal) and before.is_preposition and number - 1 in lost


def _lost_its_pronoun(template: Template, lost: frozenset[int], number: int) -> bool:
    """Whether the message lacks the Chinese pronoun before the value: in `提醒我{text}` the verb has an object."""
    before = template.items[number - 1] if number else None
    return isinstance(before, Literal) and before.stem == "我" and number - 1 in lost


def _length(utterance: Utterance, span: Span) -> int:
    """Length in words without fillers and times; two Chinese characters count as one word."""
    words = (
        word for word in utterance.words[span.first : span.last + 1] if not word.meaning.is_filler and not word.is_time
    )
    return round(sum(word.size for word in words))


NAME_THRESHOLD = 0.45
"""Minimum score for suggesting a function."""
READ_THRESHOLD = 0.68
"""Minimum score for calling a function without effects."""
ASK_THRESHOLD = 0.78
"""Minimum score for calling a function with effects, after confirmation."""
WORTH_A_LOOK = 0.40
"""Minimum score; templates that cannot reach it are not aligned."""
_VISIBLE = (SlotKind.TIME, SlotKind.NUMBER, SlotKind.EXPRESSION)
"""Kinds of values that are recognised in a message regardless of the function."""
_ROUNDING = 1e-9
_CLAUSE = 0.12
"""Subtracted from the score of a single clause."""
_CLAUSE_WORDS = 3
"""Shorter clauses are not requests by themselves."""


@dataclass(frozen=True, slots=True)
class Match:
    """Function that a message may mean, with the arguments found and the closest example."""

    function: OfferedFunction
    score: float
    """Similarity to the closest example minus penalties, from 0 to 1."""
    arguments: JsonObject
    """Values found in the message; required ones may be missing."""
    example: str

    def is_callable(self, shift: float = 0.0) -> bool:
        """Whether the score is high enough for a call; `shift` is added to the threshold."""
        return self.score >= (ASK_THRESHOLD if self.function.writes else READ_THRESHOLD) + shift


class ExampleIndex:
    """Index of functions' examples, searched by `matches`. Immutable."""

    def __init__(self, functions: Sequence[OfferedFunction], spoken_times: SpokenTimes | None = None) -> None:
        """Without `spoken_times`, times in messages are found by time words and only the declared examples are used,
        which is faster."""
        examples = own_examples if spoken_times is None else all_examples
        self.functions = tuple(functions)
        self._spoken_times = spoken_times
        self._lexicon = Lexicon(self.functions, examples)
        self._templates = tuple(templates_of(self.functions, self._lexicon, examples))
        self._postings: defaultdict[str, list[tuple[int, float, float]]] = defaultdict(list)
        self._wordless: dict[int, list[Literal]] = {}
        """Literals of each template without content words."""
        self._losses = [0.0] * len(self._templates)
        for number, template in enumerate(self._templates):
            self._post(number, template)

    def best(self, text: str, limit: int = 3) -> list[Match]:
        """Like `matches` for scores above NAME_THRESHOLD, but if no function is similar enough to the whole text to be
        called, and exactly one to a single clause, then that one is first. If there are numbers, it must be a
        clause with one."""
        utterance = read(text, self._spoken_times)
        whole = self._ranked(utterance, limit, NAME_THRESHOLD)
        if (whole and whole[0].is_callable()) or utterance.is_for_another:
            return whole
        parts = [read(clause, self._spoken_times) for clause in clauses(text)]
        numbered = [any(word.text[0].isdigit() for word in part.words) for part in parts]
        ranked = [
            self._ranked(part, 1, READ_THRESHOLD + _CLAUSE)
            for part, has_number in zip(parts, numbered, strict=True)
            if len(part.words) >= _CLAUSE_WORDS and has_number == any(numbered)
        ]
        sure = [
            replace(found[0], score=found[0].score - _CLAUSE)
            for found in ranked
            if found and without_slots(found[0].example).strip()
        ]
        sure = [match for match in sure if match.is_callable()]
        if len({match.function.name for match in sure}) != 1:
            return whole
        first = max(sure, key=lambda match: match.score)
        return [first, *(match for match in whole if match.function is not first.function)][:limit]

    def matches(self, text: str, limit: int = 3, *, among: Container[str] | None = None) -> list[Match]:
        """At most `limit` functions that resemble `text`, best first; ties in registration order. `among` restricts the
        names. Empty if nothing scores above WORTH_A_LOOK."""
        return self._ranked(read(text, self._spoken_times), limit, among=among)

    def _ranked(
        self, utterance: Utterance, limit: int, least: float = WORTH_A_LOOK, among: Container[str] | None = None
    ) -> list[Match]:
        """The matches of `utterance` that score above `least`."""
        if not utterance.words or utterance.is_for_another:
            return []
        best: dict[int, tuple[float, Alignment, Filled]] = {}
        aligner = Aligner(utterance, self._lexicon)
        last = 0.0  # lowest score within the limit so far
        for bound, number in self._candidates(utterance, aligner.leftover_cost, least, among):
            if bound < last - _ROUNDING:
                break
            function = self._templates[number].function
            known = best[function][0] if function in best else least
            if known >= bound:
                continue
            found = self._compared(utterance, aligner, self._templates[number], known)
            if found is not None:
                best[function] = found
                if len(best) >= limit:
                    last = nlargest(limit, (one[0] for one in best.values()))[-1]
        ranked = sorted(best.items(), key=lambda found: (-found[1][0], found[0]))[:limit]
        return [
            Match(self.functions[number], score, values.arguments, alignment.template.example)
            for number, (score, alignment, values) in ranked
        ]

    def _compared(
        self, utterance: Utterance, aligner: Aligner, template: Template, known: float
    ) -> tuple[float, Alignment, Filled] | None:
        """Score of `template` with its alignment and values; None unless it exceeds `known`."""
        alignment = aligner.align(template, known)
        if alignment is None:
            return None
        like = likeness(utterance, alignment)
        if like <= known:
            return None
        facts = self._lexicon.facts[template.function]
        values = filled(utterance, alignment, facts, self._lexicon, self._spoken_times)
        total = score(utterance, alignment, like, values, facts)
        return (total, alignment, values) if total > known else None

    def _post(self, number: int, template: Template) -> None:
        if not template.content_words:
            self._wordless[number] = [item for item in template.items if isinstance(item, Literal)]
        for item in template.items:
            if isinstance(item, Literal) and (item.tells or item.is_key):
                weight, loss = item.weight if item.tells else 0.0, _loss(item)
                self._losses[number] += loss
                self._postings[item.stem if item.tells else f"!{item.stem}"].append((number, weight, loss))
                for concept in () if item.is_key else sorted(item.concepts):
                    self._postings[f"={concept}"].append((number, weight * (1 - _CONCEPT_SHARE), loss))

    def _candidates(
        self, utterance: Utterance, leftover_cost: float, least: float, among: Container[str] | None
    ) -> list[tuple[float, int]]:
        """Templates that may score at least `least`, with the upper bound of their score, highest first."""
        shared: defaultdict[int, float] = defaultdict(float)
        averted: defaultdict[int, float] = defaultdict(float)
        for key in self._keys(utterance):
            for number, weight, loss in self._postings.get(key, ()):
                shared[number] += weight
                averted[number] += loss
        stems = {word.meaning.stem for word in utterance.words}
        concepts = frozenset[str]().union(*(word.meaning.concepts for word in utterance.words))
        fillers = {
            number: sum(one.weight for one in literals if one.stem not in stems and concepts.isdisjoint(one.concepts))
            for number, literals in self._wordless.items()
        }
        shared.update(dict.fromkeys(fillers, 0.0))
        absent = {kind for kind in _VISIBLE if not any(_fits_kind(word, kind) for word in utterance.words)}
        found: list[tuple[float, int]] = []
        for number, weight in shared.items():
            template = self._templates[number]
            if among is None or self.functions[template.function].name in among:
                losses = max(0.0, self._losses[number] - averted[number])
                bound = _bound(template, weight, losses, leftover_cost, absent, fillers.get(number, 0.0))
                bound -= _penalty(utterance, template, self._lexicon.facts[template.function])
                if bound >= least:
                    found.append((bound, number))
        return sorted(found, key=lambda one: (-one[0], one[1]))

    def _keys(self, utterance: Utterance) -> Iterator[str]:
        seen: set[str] = set()
        for word in utterance.words:
            meaning = word.meaning
            alike = () if meaning.is_filler else (meaning.stem, *(f"={concept}" for concept in meaning.concepts))
            for key in (f"!{meaning.stem}", *alike):
                if key not in seen:
                    seen.add(key)
                    yield key


def _bound(
    template: Template,
    shared: float,
    losses: float,
    leftover_cost: float,
    absent: Container[SlotKind],
    missing: float,
) -> float:
    """Upper bound of a template's score (0 to 1) from the weight of its words in the message (`shared`): all shared
    words matched, all slots filled except those of kinds that are `absent`, and no words left over except those that a
    template without slots cannot take. `losses`: cost of lost actions and key words; `leftover_cost`: cost of skipping
    the whole message; `missing`: weight of other words of the template that the message lacks, or 0 if unknown."""
    content = min(shared, template.content_weight)
    unfilled = [slot for slot in template.typed_slots if slot.kind in absent]
    matched = content + template.filler_weight - missing + TYPED_BONUS * (len(template.typed_slots) - len(unfilled))
    if not matched or (template.content_words and not content):
        return 0.0
    cost = template.content_weight - content + losses + missing
    cost += (_SKIP_REQUIRED + _LOST_TYPED) * sum(slot.required for slot in unfilled)
    if not template.has_slots:
        most = MOST_SKIP_COST if template.content_words else MOST_SKIP_COST / 2
        cost += max(0.0, leftover_cost - most * len(template.items))
    thin = _THIN if content < template.content_weight * _THIN_SHARE else 0.0
    return 2 * matched / (2 * matched + cost) - thin
