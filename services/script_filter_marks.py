"""Values in filters that are written as a text: while the text is read a mark stands where a value belongs, and nothing
that a value holds is read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from services.json_values import JsonValue
from services.script_filters import FilterFault, Problem
from services.script_values import as_number, as_text

MARKS = "\U000f0000-\U000ffffd"
"""The characters that are marks, for a class of a pattern. They are no letters, digits or spaces to it."""
_FIRST, _LAST = map(ord, MARKS.split("-"))
_MARK = re.compile(f"[{MARKS}]")
_NAME = re.compile(r"[^\W\d][\w$-]*(?:\.[\w$-]+)*")
PLAIN_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_ORDERS = {"desc": True, "asc": False, "": False}


@dataclass(frozen=True, slots=True)
class Marks:
    """The values of a text, in the order of their marks."""

    values: Sequence[JsonValue] = ()
    texts: Sequence[str] = field(default=())
    """As they are said."""

    def filled(self, text: str) -> str:
        """`text` with what the values say in the place of their marks."""
        return _MARK.sub(lambda mark: self.texts[ord(mark[0]) - _FIRST], text) if self.values else text

    def alone(self, text: str) -> bool:
        """Whether `text` is one mark and nothing else."""
        return len(text) == 1 and _FIRST <= ord(text) <= _LAST

    def value(self, mark: str) -> JsonValue:
        """The value that has this mark; a text that writes a number as a number, as it is where it stands in the filter
        itself without quotes."""
        value = self.values[ord(mark) - _FIRST]
        return as_number(value) if isinstance(value, str) and PLAIN_NUMBER.fullmatch(value) else value

    def values_in_list(self, mark: str) -> Sequence[JsonValue]:
        """What a value says that is all that stands between the brackets of an IN: the items of a list, or those that
        commas separate in a text, in quotes or without."""
        value = self.value(mark)
        if isinstance(value, list):
            return value
        if not isinstance(value, str):
            return (value,)
        items = [_unquoted(one.strip()) for one in value.split(",")]
        return [as_number(one) if PLAIN_NUMBER.fullmatch(one) else one for one in items]

    def name(self, text: str, position: int) -> str:
        """`text`, in which values stand, as the name of a field. Raises FilterFault for what is none: a value says
        which field it is and nothing more."""
        filled = self.filled(text)
        if not _NAME.fullmatch(filled):
            raise FilterFault(Problem.VALUE_HERE, position, filled[:40])
        return filled

    def count(self, mark: str, position: int) -> int:
        """The value behind a LIMIT. Raises FilterFault."""
        number = as_number(self.values[ord(mark) - _FIRST])
        if number is None or number < 0 or number != int(number):
            raise FilterFault(Problem.NO_LIMIT, position)
        return int(number)

    def descends(self, mark: str, position: int) -> bool:
        """Whether the value behind a field of ORDER BY is DESC and not ASC or nothing. Raises FilterFault."""
        said = self.filled(mark).strip().lower()
        if said not in _ORDERS:
            raise FilterFault(Problem.VALUE_HERE, position, said[:40])
        return _ORDERS[said]


NO_MARKS = Marks()


def marked(parts: Sequence[JsonValue]) -> tuple[str, Marks]:
    """The text with a mark for each value, and the values. Of `parts` a text is the filter's own, and a list holds a
    value, and behind it how that is said where it is no text."""
    text, values, texts = "", list[JsonValue](), list[str]()
    for part in parts:
        if isinstance(part, list) and part:
            if not as_text(part[-1]):
                continue  # nothing is written where nothing is said
            text += chr(_FIRST + len(values))
            values.append(part[0])
            texts.append(as_text(part[-1]))
            if _FIRST + len(values) > _LAST:
                raise FilterFault(Problem.TOO_MANY)
        else:
            text += _MARK.sub("\ufffd", as_text(part))
    return text, Marks(values, texts)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text
