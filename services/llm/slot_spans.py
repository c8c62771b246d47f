"""From the words that slots took to the arguments of a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.json_values import JsonObject, JsonValue
from services.llm.alignment import Alignment, Span, fits
from services.llm.slot_values import TYPED, Slot, SlotKind, value_of
from services.llm.templates import FunctionFacts
from services.llm.utterance import Utterance, Word
from services.llm.word_classes import FILLERS, PREPOSITIONS, REQUESTS
from services.text_index import listed

_POINTING = frozenset(
    listed("""
    it that this them those these here there one ones item items thing things something anything everything all whole
    entire list me current location area position nearby 它 这 那 个 些 全 部 所 有 都
    """)
)
"""Words that point at something said before; alone they are no value."""
_LOOSE = frozenset(listed("please thanks thank right currently exactly nearby located kindly 请 吗 呢 吧 啊 了"))
"""Words that may hang on either end of a value without belonging to it."""
_LOOSE_SHORT = _LOOSE | FILLERS | REQUESTS
_LEADING = frozenset(listed("the a an my our that some between among 在 从"))
"""Words that come before a value without belonging to it."""
_OPEN = frozenset(listed("the a an my our your this that"))
"""Words that something must follow: a text that ends with one goes on outside the slot."""
_BEFORE_TIMES = frozenset(listed("at on by in for around"))
_Range = tuple[int, int]
"""The numbers of the first and the last word."""


@dataclass(frozen=True, slots=True)
class Filled:
    """The arguments read from one alignment."""

    arguments: JsonObject
    missing: tuple[str, ...]
    """Required parameters without a value."""
    unusable: tuple[str, ...]
    """Slots that took words which are no value."""


def filled(said: Utterance, alignment: Alignment, facts: FunctionFacts) -> Filled:
    """The arguments of the call that `alignment` stands for."""
    slots = facts.slots
    raw = _raw_texts(said, alignment.spans, slots, facts.own_stems)
    arguments: dict[str, JsonValue] = {}
    unusable: list[str] = []
    for name in dict.fromkeys((*(span.slot.name for span in alignment.spans), *raw)):
        value = value_of(raw.get(name, ""), slots[name])
        if value is None:
            unusable.append(name)
        else:
            arguments[name] = value
    _take_sole_number(said, alignment.spans, slots, arguments)
    missing = tuple(name for name, slot in slots.items() if slot.required and name not in arguments)
    return Filled(arguments, missing, tuple(unusable))


def _raw_texts(
    said: Utterance, spans: Sequence[Span], slots: Mapping[str, Slot], own: frozenset[str]
) -> dict[str, str]:
    """What each slot took, less what only hangs on; a time at the end of a text goes to a time slot that took none.
    Words that are all the function's `own` (`my todo list` of a function for todos) are no value."""
    texts: dict[str, str] = {}
    taken = {span.slot.name for span in spans}
    free_time = next((name for name, slot in slots.items() if slot.kind is SlotKind.TIME and name not in taken), None)
    for span in spans:
        words: _Range | None
        if span.slot.kind in TYPED:
            words = _fitting(said, span)
        else:
            words = _trimmed(said, span.slot, (span.first, _end_before_a_time(said, span, spans)))
            inner, time = _parted(said, words)
            if free_time is not None and inner is not None and time is not None:
                texts[free_time], free_time, words = said.between(*time), None, inner
            elif span.slot.kind is SlotKind.SHORT and not _is_bare_number(said, words):
                words = inner
            words = _less_own(said, span.slot, _trimmed(said, span.slot, words), own) if words is not None else None
        if words is not None and not _says_nothing(said.words[words[0] : words[1] + 1], span.slot, own):
            texts[span.slot.name] = said.between(*words)
    return texts


def _end_before_a_time(said: Utterance, span: Span, spans: Sequence[Span]) -> int:
    """The last word of a text, less the preposition of a time that comes right behind it: `pizza at` before `7pm`."""
    is_followed = any(one.slot.kind is SlotKind.TIME and one.first == span.last + 1 for one in spans)
    loses_one = is_followed and span.last > span.first and said.words[span.last].text in _BEFORE_TIMES
    return span.last - loses_one


def _is_bare_number(said: Utterance, whole: _Range) -> bool:
    """Whether there is nothing but one number: the number of something, though it might be an hour as well."""
    return whole[0] == whole[1] and said.words[whole[0]].meaning.is_number


def _fitting(said: Utterance, span: Span) -> _Range | None:
    """From the first to the last word that looks like a value, so that prepositions around it fall off."""
    fitting = [at for at in range(span.first, span.last + 1) if fits(said.words[at], span.slot)]
    return (fitting[0], fitting[-1]) if fitting else None


def _parted(said: Utterance, whole: _Range) -> tuple[_Range | None, _Range | None]:
    """The words of `whole` less a time at either end, and that time (the longer one where both ends have one)."""
    words = said.words
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


def _trimmed(said: Utterance, slot: Slot, whole: _Range) -> _Range:
    """Less the words that hang on: short values lose every filler at their ends, free text only polite words."""
    loose = _LOOSE_SHORT if slot.kind is SlotKind.SHORT else _LOOSE
    leading = loose | _LEADING
    words = said.words
    first, last = whole
    while last > first and words[last].text in loose and not words[last].is_time:
        last -= 1
    if words[last].text in _OPEN:
        while last > first and words[last].text in _OPEN | PREPOSITIONS:
            last -= 1
    while first < last and words[first].text in leading and not words[first].is_time:
        first += 1
    return first, last


def _less_own(said: Utterance, slot: Slot, whole: _Range, own: frozenset[str]) -> _Range:
    """A short value less the function's own words before it: `forecast Oslo` is Oslo."""
    first, last = whole
    while slot.kind is SlotKind.SHORT and first < last and said.words[first].meaning.stem in own:
        first, last = _trimmed(said, slot, (first + 1, last))
    return first, last


def _says_nothing(words: Sequence[Word], slot: Slot, own: frozenset[str]) -> bool:
    if slot.kind is SlotKind.TIME:  # one character of a Chinese time is half a word
        return len(words) == 1 and words[0].is_han and not words[0].meaning.is_number
    if slot.kind in TYPED:
        return False
    return all(word.text in _POINTING or word.text in FILLERS or word.meaning.stem in own for word in words)


def _take_sole_number(
    said: Utterance, spans: Sequence[Span], slots: Mapping[str, Slot], arguments: dict[str, JsonValue]
) -> None:
    """A number that no slot took belongs to the one number parameter that has none."""
    numeric = [slot for slot in slots.values() if slot.kind is SlotKind.NUMBER]
    if len(numeric) != 1 or numeric[0].name in arguments:
        return
    taken = {at for span in spans for at in range(span.first, span.last + 1)}
    loose = [
        at for at, word in enumerate(said.words) if word.meaning.is_number and not word.is_time and at not in taken
    ]
    if len(loose) == 1:
        value = value_of(said.between(loose[0], loose[0]), numeric[0])
        if value is not None:
            arguments[numeric[0].name] = value
