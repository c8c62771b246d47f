"""Texts without quotes: what stands behind DESCRIPTION and LIKE, and where BEGIN … END and TABLE … END TABLE end."""

from __future__ import annotations

import re
from typing import NamedTuple

_EXAMPLE_END = re.compile(r"[ \t](?:(?:DESCRIPTION|OPTIONAL|REQUIRED|DEFAULT|ENUM|LIKE|AS)\b|'|//|\#)", re.IGNORECASE)
_DESCRIPTION_END = re.compile(r"[ \t](?:OPTIONAL|REQUIRED|DEFAULT|ENUM|LIKE)\b")
_ONE_VALUE = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$|[^\W\d]\w*$")
_OWN_READING = ("'", '"', "`", "[", "{", "#", "(", "“", "„", "”", "‘", "«", "「", "＂")
"""What begins a value that is read as everywhere."""

_NOT_PROSE = re.compile(
    r"""[ \t]*(?: $ | [A-Z_]{2,}\b | '| // | \# | (?i:REM)\b | \d+[ \t] )  # blank, a keyword, a comment, a number
      | [^"=\n]*["=]                                                        # a text or an assignment
      | [ \t]*[\w.]+\(                                                      # a call
      | .*\b(?i:THEN)[ \t]*$""",
    re.VERBOSE | re.MULTILINE,
)
_CLOSED_LATER = re.compile(
    r'[^"\n]*\n(?:(?![ \t]*(?:PARAM\b|DESCRIPTION\b|\n))[^"\n]*\n)*?[^"\n]*"(?=[ \t]*$)', re.IGNORECASE | re.MULTILINE
)
_MARK = ("=", ".", "(", ",", ")", "]", "}", ":", "+=", "-=", "*=", "/=", "&=", "^=")
_HAS_END_TABLE = re.compile(r"^[ \t]*END[ \t]+TABLE\b", re.IGNORECASE | re.MULTILINE)


class Raw(NamedTuple):
    """A text without quotes, from `start` to `end` in the script."""

    text: str
    start: int
    end: int


def description(text: str, position: int) -> Raw | None:
    """What stands behind a DESCRIPTION of its own that ends at `position`, unless that is a text on one line.

    Without quotes it goes to the line's end, and over the lines that follow as long as these read like prose: not
    blank, not begun with a word in capitals, and without a quote or `=`. In quotes it may end in a later line. None
    where it is to be read as everywhere."""
    line = _line(text, position)
    if line.text.startswith('"') and '"' not in line.text[1:]:
        closed = _CLOSED_LATER.match(text, line.start + 1)
        if closed:
            parts = closed.group()[:-1].splitlines()
            return Raw(" ".join(part.strip() for part in parts).strip(), line.start, closed.end())
    if line.text.startswith(_OWN_READING):
        return None
    words, end = _prose(text, line)
    return Raw(" ".join(words), line.start, end) if words else None


def _prose(text: str, line: Raw) -> tuple[list[str], int]:
    """This line and those behind it that read like prose, and where they end."""
    words = [line.text] if line.text else []
    end = line.end
    while (following := text.find("\n", end)) >= 0 and not _NOT_PROSE.match(text, following + 1):
        line = _line(text, following + 1)
        words.append(line.text)
        end = line.end
    return words, end


def param_description(text: str, position: int) -> Raw | None:
    """What stands without quotes behind the DESCRIPTION of a PARAM; None where quotes begin, or nothing is there."""
    return _up_to(_DESCRIPTION_END, text, position)


def example(text: str, position: int) -> Raw | None:
    """What stands behind LIKE of a PARAM, where it is neither in quotes nor one number or word."""
    raw = _up_to(_EXAMPLE_END, text, position)
    return None if raw is None or _ONE_VALUE.match(raw.text) else raw


def _up_to(last: re.Pattern[str], text: str, position: int) -> Raw | None:
    line = _line(text, position)
    if line.text.startswith(_OWN_READING):
        return None
    found = last.search(text, line.start, line.end)
    words = text[line.start : found.start() if found else line.end].rstrip()
    return Raw(words, line.start, line.start + len(words)) if words else None


def _line(text: str, position: int) -> Raw:
    """The rest of the line without the blanks around it."""
    end = text.find("\n", position)
    rest = text[position : len(text) if end < 0 else end].rstrip()
    words = rest.lstrip()
    return Raw(words, position + len(rest) - len(words), position + len(rest))


def is_named_otherwise(text: str, position: int) -> bool:
    """Whether the word that ends at `position` is a name and begins no statement: `begin = 1`, `begin.x`."""
    return _line(text, position).text.startswith(_MARK)


def has_end_table(text: str, position: int) -> bool:
    """Whether END TABLE follows."""
    return _HAS_END_TABLE.search(text, position) is not None


def block_end(text: str, position: int, word: str) -> re.Match[str] | None:
    """The line that ends the block BEGIN `word`, from `position` on: END and the same word. SYSTEM PROMPT may end with
    either of its words."""
    last = r"(?:SYSTEM[ \t]+)?PROMPT|SYSTEM" if word == "SYSTEM" else re.escape(word)
    return re.compile(rf"^[ \t]*END[ \t]+(?:{last})[ \t]*(?:(?:'|//|\#|REM\b).*)?$", re.I | re.M).search(text, position)
