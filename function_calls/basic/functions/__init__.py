"""Built-in functions.

LEN, SPLIT, DATEADD and others, grouped by subject. Used by the machine and, for argument counts, by the parser.
"""

from __future__ import annotations

from collections.abc import Mapping

from function_calls.basic.functions.dates import DATES
from function_calls.basic.functions.declaration import EXAMPLE_NOW, LanguageFunction
from function_calls.basic.functions.encodings import ENCODINGS
from function_calls.basic.functions.formatting import FORMATTING
from function_calls.basic.functions.lists import CHANGING, LISTS
from function_calls.basic.functions.logic import LOGIC
from function_calls.basic.functions.numbers import CHANCE, NUMBERS
from function_calls.basic.functions.texts import TEXTS

__all__ = ["ARITIES", "CHANGING", "EXAMPLE_NOW", "FUNCTIONS", "SUBJECTS", "LanguageFunction"]

SUBJECTS: Mapping[str, tuple[LanguageFunction, ...]] = {
    "Texts": tuple(TEXTS),
    "Numbers": tuple(NUMBERS),
    "Lists and maps": tuple(LISTS),
    "Dates and times": tuple(DATES),
    "Patterns": tuple(FORMATTING),
    "Choosing and asking": tuple(LOGIC),
    "Chance": tuple(CHANCE),
    "Other formats": tuple(ENCODINGS),
}
"""All built-in functions, in the order of the reference page."""

FUNCTIONS: Mapping[str, LanguageFunction] = {each.name: each for subject in SUBJECTS.values() for each in subject}

ARITIES: Mapping[str, tuple[int, int | None]] = {each.name: (each.fewest, each.most) for each in FUNCTIONS.values()}
"""Minimum and maximum number of arguments by function name, for the parser; a maximum of None is unlimited."""
