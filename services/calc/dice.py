"""Dice, coins and random picks from a list of alternatives."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from services.patterns import lazy_pattern

MOST_DICE = 100
MOST_SIDES = 1000
_TERM = lazy_pattern(r"([+-]?)(?:(\d{0,4})d(\d{1,5}|%)|(\d{1,6}))")
_PLAIN_SIDES = lazy_pattern(r"(\d{1,4})\s*(?:-?\s*sided?(?:\s+(?:die|dice))?|面(?:骰子?|的骰子)?)")


class BadDice(ValueError):
    """Invalid dice notation, or too many dice or sides."""


@dataclass(frozen=True, slots=True)
class Roll:
    """Result of rolling dice, with the face of each die in order."""

    notation: str
    """The notation in normal form."""
    faces: tuple[int, ...]
    total: int
    """Sum of all faces with their signs, and the constants."""


class Dice:
    """Random results. `rng`: `random.SystemRandom()` for people, a seeded `Random` for tests."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def roll(self, notation: str) -> Roll:
        """Roll `2d6+1`, `d20`, `d%`, `3d6-1d4`; `20 sided` is a `1d20`. At most 100 dice of 1 to 1000 sides. Raises
        BadDice."""
        terms = _terms(notation)
        faces: list[int] = []
        total = 0
        for sign, count, sides in terms:
            if sides:
                fallen = [self._rng.randint(1, sides) for _ in range(count)]
                faces += fallen
                total += sign * sum(fallen)
            else:
                total += sign * count
        return Roll(_normal(terms), tuple(faces), total)

    def flip(self) -> bool:
        """Flip a coin: True for heads."""
        return self._rng.random() < 0.5

    def pick(self, options: Sequence[str]) -> str:
        """One of `options`, with equal probability; IndexError if empty."""
        return self._rng.choice(options)


def _terms(notation: str) -> list[tuple[int, int, int]]:
    """Sign, count and sides of each term; 0 sides for a constant, whose count is its value. Raises BadDice."""
    text = "".join(notation.casefold().split()).replace("−", "-")
    plain = _PLAIN_SIDES.fullmatch(notation.casefold().strip())
    text = f"1d{plain[1]}" if plain else text
    found = list(_TERM.finditer(text))
    whole = "".join(match[0] for match in found) == text
    if not whole or not found or any(not match[1] for match in found[1:]):
        raise BadDice(notation)
    terms = [_term(match) for match in found]
    dice = [(count, sides) for _, count, sides in terms if sides]
    if not 1 <= sum(count for count, _ in dice) <= MOST_DICE or any(sides > MOST_SIDES for _, sides in dice):
        raise BadDice(notation)
    return terms


def _term(match: re.Match[str]) -> tuple[int, int, int]:
    sign = -1 if match[1] == "-" else 1
    if match[4]:
        return sign, int(match[4]), 0
    sides = 100 if match[3] == "%" else int(match[3])
    if not sides:
        raise BadDice(match[0])
    return sign, int(match[2] or 1), sides


def _normal(terms: Sequence[tuple[int, int, int]]) -> str:
    text = "".join(f"{'-' if sign < 0 else '+'}{count}{f'd{sides}' if sides else ''}" for sign, count, sides in terms)
    return text.removeprefix("+")


_COMMAS = re.compile(r"[,，、;；|\n]+")
_OR = re.compile(r"\s*(?:\b(?:or|versus|vs)\b\.?|还是|或者|或是)\s*", re.IGNORECASE)
_AND = re.compile(r"\s*(?:\band\b|和|与)\s*", re.IGNORECASE)
_LEADING = re.compile(r"^(?:(?:either|or|and|还是|或者|和)\s+)", re.IGNORECASE)


def alternatives(options: Sequence[str]) -> tuple[str, ...]:
    """The different alternatives in `options`, in order, trimmed. A list that is one text (`tea, coffee or milk`) or
    the words of one (`green` `tea,` `coffee`) is split at commas, else at `or`, else at `and`. In other lists every
    text is an alternative, even with commas; only a bare `or` is dropped."""
    texts = [" ".join(option.replace("\0", " ").split()) for option in options]
    texts = [text for text in texts if text]
    if len(texts) == 1 or any(text[-1] in ",，、;；|" for text in texts):
        texts = _divided(" ".join(texts))
    elif len(texts) > 2:
        texts = [text for text in texts if not _OR.fullmatch(text)]
    unique = {text.casefold(): text for text in reversed(texts) if text}
    return tuple(reversed(unique.values()))


def chosen(option: str, options: Sequence[str]) -> int | None:
    """Index of the alternative that `option` selects: by number from 1 (`2`, `#2`), text, or unique beginning of the
    text. None if nothing matches."""
    wanted = " ".join(option.split()).casefold()
    folded = [text.casefold() for text in options]
    if wanted in folded:
        return folded.index(wanted)
    digits = wanted.removeprefix("#")
    if digits.isdecimal():
        index = int(digits) - 1 if len(digits) < 4 else -1
        return index if 0 <= index < len(options) else None
    beginning = [index for index, text in enumerate(folded) if wanted and text.startswith(wanted)]
    return beginning[0] if len(beginning) == 1 else None


def _divided(text: str) -> list[str]:
    for separator in (_COMMAS, _OR, _AND):
        parts = [part for part in separator.split(text) if part.strip()]
        if len(parts) > 1:
            break
    if separator is _COMMAS and len(parts) > 1:
        *first, last = parts  # `tea, coffee or milk`
        parts = [*first, *_OR.split(last)]
    return [_LEADING.sub("", part.strip()).strip() for part in parts]
