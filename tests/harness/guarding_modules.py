"""The modules on the way to a handler, the tests that see what they let through, and which of their conditions may be
taken out without a test noticing it: with the reason why that is no fault."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Guarding(NamedTuple):
    """One module."""

    tests: tuple[str, ...]
    harmless: Mapping[str, str]
    """The reason why it is no fault, for the condition by its name: the function, a colon, the condition."""


GUARDING: Mapping[str, Guarding] = {}
