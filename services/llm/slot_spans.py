"""From the words that slots took to the arguments of a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.json_values import JsonObject, JsonValue
from services.llm.alignment import Alignment, Span, fits
from services.llm.slot_values import TYPED, Slot, SlotKind, value_of
from services.llm.utterance import Utterance, Word
from services.llm.word_classes import FILLERS, REQUESTS

_POINTING = frozenset("it that this them those these here there one item thing something anything everything me us 它 这个 那个".split())
"""Words that point at something said before; alone they are no value."""
_LOOSE = frozenset("please thanks thank right now currently exactly located kindly 请 吗 呢 吧 啊 了".split())
"""Words that may hang on either end of a value without belonging to it."""


@dataclass(frozen=True, slots=True)
class Filled:
    """The arguments read from one alignment."""

    arguments: JsonObject
    raw: Mapping[str, str]
    missing: tuple[str, ...]
    """Required parameters without a value."""
    unusable: tuple[str, ...]
    """Slots whose words gave no value."""


def filled(said: Utterance, alignment: Alignment, slots: Mapping[str, Slot]) -> Filled:
    """The arguments of the call that `alignment` stands for."""
    raw = dict(_raw_texts(said, alignment.spans, slots))
    arguments: dict[str, JsonValue] = {}
    unusable: list[str] = []
    for name, text in raw.items():
        value = value_of(text, slots[name])
        if value is None:
            unusable.append(name)
        else:
            arguments[name] = value
    _take_sole_number(said, alignment.spans, slots, arguments)
    missing = tuple(name for name, slot in slots.items() if slot.required and name not in arguments)
    return Filled(arguments, raw, missing, tuple(unusable))


def _raw_texts(said: Utterance, spans: Sequence[Span], slots: Mapping[str, Slot]) -> list[tuple[str, str]]:
    texts: list[tuple[str, str]] = []
    free_time = next((slot for slot in slots.values() if slot.kind is SlotKind.TIME), None)
    taken = {span.slot.name for span in spans}
    for span in spans:
        first, last = span.first, span.last
        if span.slot.kind in TYPED:
            first, last = _trim_misfits(said, span)
        else:
            inner = _without_times(said, first, last)
            if inner is None and span.slot.kind is SlotKind.SHORT:
                continue
            if free_time is not None and free_time.name not in taken and inner not in (None, (first, last)):
                taken.add(free_time.name)
                texts.append((free_time.name, _outside(said, (first, last), inner or (first, last))))
                first, last = inner or (first, last)
            elif span.slot.kind is SlotKind.SHORT:
                first, last = inner or (first, last)
            first, last = _trimmed(said, span.slot, first, last)
        if first <= last and not _only_points(said.words[first : last + 1]):
            texts.append((span.slot.name, said.between(first, last)))
    return texts


def _trim_misfits(said: Utterance, span: Span) -> tuple[int, int]:
    """From the first to the last word that looks like a value, so that prepositions around it fall off."""
    fitting = [at for at in range(span.first, span.last + 1) if fits(said.words[at], span.slot)]
    return (fitting[0], fitting[-1]) if fitting else (span.last + 1, span.last)


def _without_times(said: Utterance, first: int, last: int) -> tuple[int, int] | None:
    """The words between `first` and `last` less a time at either end; None when nothing else is there."""
    words = said.words
    while first <= last and words[last].is_time:
        last -= 1
    while first <= last and words[first].is_time:
        first += 1
    while first <= last and words[last].text in FILLERS and not words[last].is_han:
        last -= 1
    return (first, last) if first <= last else None


def _outside(said: Utterance, whole: tuple[int, int], inner: tuple[int, int]) -> str:
    """The longer of the two parts that `whole` has around `inner`."""
    before = (whole[0], inner[0] - 1)
    after = (inner[1] + 1, whole[1])
    longer = max((before, after), key=lambda part: part[1] - part[0])
    return said.between(*longer)


def _trimmed(said: Utterance, slot: Slot, first: int, last: int) -> tuple[int, int]:
    """Less the words that hang on: short values lose every filler at their ends, free text only polite words."""
    loose = _LOOSE | FILLERS | REQUESTS if slot.kind is SlotKind.SHORT else _LOOSE
    words = said.words
    while last > first and words[last].text in loose:
        last -= 1
    while first < last and words[first].text in (loose | {"the", "a", "an", "my", "that"}):
        first += 1
    return first, last


def _only_points(words: Sequence[Word]) -> bool:
    return all(word.text in _POINTING or word.text in FILLERS for word in words)


def _take_sole_number(
    said: Utterance, spans: Sequence[Span], slots: Mapping[str, Slot], arguments: dict[str, JsonValue]
) -> None:
    """A number that no slot took belongs to the one number parameter that has none."""
    numeric = [slot for slot in slots.values() if slot.kind is SlotKind.NUMBER]
    if len(numeric) != 1 or numeric[0].name in arguments:
        return
    taken = {at for span in spans for at in range(span.first, span.last + 1)}
    loose = [at for at, word in enumerate(said.words) if word.meaning.is_number and not word.is_time and at not in taken]
    if len(loose) == 1:
        value = value_of(said.between(loose[0], loose[0]), numeric[0])
        if value is not None:
            arguments[numeric[0].name] = value
