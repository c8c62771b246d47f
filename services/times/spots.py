"""A place in a phrase where some part may begin, with all that a rule may ask about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from services.times.moments import Moment
from services.times.parts import Part
from services.times.readings import Reading
from services.times.tokens import Line

Parts: TypeAlias = Iterator[tuple[Part, int]]
"""What a rule finds: parts, the likeliest first, each with the item at which it ends."""
Inner: TypeAlias = tuple[Part, Reading, int]
"""A phrase within the phrase: what it says, what it means, where it ends."""


@dataclass(frozen=True, slots=True)
class Spot:
    """Where, behind what."""

    line: Line
    at: int
    so_far: Part
    """What the phrase says up to here."""
    link: str
    """The word that links, before this one: `at`, `on`, `in` …"""
    has_the: bool
    in_range: bool
    """Whether the whole phrase is the other end of a range."""
    moment: Moment
    inner: Callable[[int], Inner | None]
    """The longest phrase that begins at an item."""
    other_end: Callable[[int], tuple[Part, int] | None]
    """The same for the end of a range, which need not mean anything alone."""

    @property
    def word(self) -> str:
        """The word here."""
        return self.line.words[self.at]

    def ahead(self, count: int = 1) -> str:
        """The word so many items further on."""
        return self.line.words[self.at + count]
