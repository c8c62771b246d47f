"""Numbers as people write them: 12, 1,500, 3.5, twenty-four, a hundred and two, 二十四."""

from __future__ import annotations

import re

from services.lazy_patterns import lazy_pattern
from services.llm.word_classes import FRACTIONS, HAN_NUMBERS, HAN_SCALES, NUMBERS, SCALES

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
    """Whether a word in lower case, or one Chinese character, is a number or part of one."""
    return word[0].isdigit() or word in NUMBERS or word in SCALES or word in HAN_NUMBERS or word in HAN_SCALES


def number_in(text: str) -> float | None:
    """The one number that `text` holds, in digits or words; None when there is none, or more than one in digits."""
    digits = _DIGITS.findall(text)
    if digits:
        return float(digits[0].replace(",", "")) if len(digits) == 1 else None
    han = _HAN.findall(text)
    if han:
        return _from_han(han[0]) if len(han) == 1 else None
    return _from_words(_WORD.findall(text.lower()))


def with_digits(text: str) -> str:
    """`text` with its numbers in English words as digits; what is no number stays."""
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
