"""Patterns for dates: `dd/MM/yyyy HH:mm`, `YYYY-MM-DD`, `d. MMMM`, `Ymd`, `%Y-%m-%d`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.functions.calendar_words import day_name, half_name, month_name
from function_calls.basic.moments import Moment


class _Piece(NamedTuple):
    """A part of a pattern: a literal text (no `name`), or so many times a letter."""

    text: str
    name: str = ""


_PIECES = re.compile(
    r"'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\"|\\(?P<escaped>.)|(?P<halves>[Aa][Mm]/[Pp][Mm]|[Aa]/[Pp])"
    r"|%(?P<percent>[A-Za-z])|(?P<word>[A-Za-z]+)|(?P<other>.)",
    re.DOTALL,
)
_WORD = re.compile(r"(?:[yY]{1,4}+|[mM]{1,4}+|[dD]{1,4}+|[hH]{1,2}+|[sS]{1,2}+|n{1,2}+|f{1,3}+|tt|TT|t|T|Z)++")
"""Nothing of it is tried twice, so a long word takes no longer than it is."""
_RUN = re.compile(r"([A-Za-z])\1*")
_NAMES: Mapping[str, str] = MappingProxyType(
    {"y": "year", "d": "day", "h": "hour", "s": "second", "n": "minute", "f": "fraction", "t": "half"}
)
_LETTERS: Mapping[str, _Piece] = MappingProxyType(
    {
        "Y": _Piece("yyyy", "year"), "y": _Piece("yy", "year"), "m": _Piece("mm", "month"), "n": _Piece("m", "month"),
        "M": _Piece("mmm", "month"), "F": _Piece("mmmm", "month"), "d": _Piece("dd", "day"), "j": _Piece("d", "day"),
        "D": _Piece("ddd", "day"), "l": _Piece("dddd", "day"), "H": _Piece("hh", "hour"), "G": _Piece("h", "hour"),
        "h": _Piece("hh", "hour12"), "g": _Piece("h", "hour12"), "i": _Piece("nn", "minute"),
        "s": _Piece("ss", "second"), "A": _Piece("tt", "half"), "a": _Piece("tt", "half"),
    }
)  # fmt: skip
"""Of patterns with one letter for each part, as web programs write them."""
_PERCENT: Mapping[str, _Piece] = MappingProxyType(
    {
        "Y": _Piece("yyyy", "year"), "y": _Piece("yy", "year"), "m": _Piece("mm", "month"),
        "B": _Piece("mmmm", "month"), "b": _Piece("mmm", "month"), "d": _Piece("dd", "day"), "e": _Piece("d", "day"),
        "A": _Piece("dddd", "day"), "a": _Piece("ddd", "day"), "H": _Piece("hh", "hour"),
        "I": _Piece("hh", "hour12"), "M": _Piece("nn", "minute"),
        "S": _Piece("ss", "second"), "p": _Piece("tt", "half"),
    }
)  # fmt: skip
_SHORT = 60


def format_date(moment: Moment, pattern: str, language: str) -> str:
    """The moment as the pattern wants it. `MM` is the month, and minutes where it stands behind hours or before
    seconds. `hh` counts to 12 only where AM or PM is written too. Raises RunFault (BAD_VALUE) for a pattern without any
    part of a date, or where the moment lacks what it asks for."""
    pieces = _pieces(pattern)
    asked = {piece.name for piece in pieces} - {""}
    if not asked:
        raise RunFault(
            RunCode.BAD_VALUE,
            f"FORMAT finds nothing of a date in the pattern `{pattern[:_SHORT]}`; dd/MM/yyyy HH:mm is one",
        )
    if moment.form == "time" and asked & {"year", "month", "day"}:
        raise RunFault(RunCode.BAD_VALUE, "FORMAT has a time without a date, and the pattern asks for the date")
    return "".join(_written(piece, moment.at, language, twelve="half" in asked) for piece in pieces)


def _pieces(pattern: str) -> list[_Piece]:
    single = _has_single_letters(pattern)
    pieces: list[_Piece] = []
    for found in _PIECES.finditer(pattern):
        kind = found.lastgroup or ""
        text = found.group(kind)
        if kind == "halves":
            pieces.append(_Piece("tt", "half"))
        elif kind == "percent":
            pieces.append(_PERCENT.get(text, _Piece(f"%{text}")))
        elif kind == "word" and single:
            pieces.extend(_LETTERS.get(letter, _Piece(letter)) for letter in text)
        elif kind == "word" and _WORD.fullmatch(text):
            pieces.extend(_runs(text))
        else:
            pieces.append(_Piece(text))
    return _with_minutes(pieces)


def _has_single_letters(pattern: str) -> bool:
    """`Ymd`, `d/m/Y H:i`: told by the `Y` that stands alone, and no letter twice in a row."""
    return bool(re.search(r"(?<!Y)Y(?!Y)", pattern)) and not re.search(r"([A-Za-z])\1|%", pattern)


def _runs(word: str) -> list[_Piece]:
    pieces = []
    for found in _RUN.finditer(word):
        text, letter = found.group(), found.group(1)
        if text in ("T", "Z"):
            pieces.append(_Piece(text))
        else:
            pieces.append(_Piece(text, letter if letter in "mM" else _NAMES[letter.lower()]))
    return pieces


def _with_minutes(pieces: list[_Piece]) -> list[_Piece]:
    """With every `m` and `M` decided."""
    named = [place for place, piece in enumerate(pieces) if piece.name]
    decided = list(pieces)
    for order, place in enumerate(named):
        piece = pieces[place]
        if piece.name in ("m", "M"):
            before = pieces[named[order - 1]].name if order else ""
            after = pieces[named[order + 1]].name if order + 1 < len(named) else ""
            decided[place] = _Piece(piece.text, "minute" if _is_minutes(piece, before, after) else "month")
    return decided


def _is_minutes(piece: _Piece, before: str, after: str) -> bool:
    if len(piece.text) > 2:
        return False
    alone = piece.name == "m" and not before and after in ("", "half")
    return alone or before in ("hour", "hour12") or after == "second"


def _written(piece: _Piece, at: datetime, language: str, *, twelve: bool) -> str:
    if not piece.name:
        return piece.text
    return _WRITERS[piece.name](len(piece.text), at, language, twelve)


def _number(number: int, width: int) -> str:
    return f"{number:0{min(width, 2)}d}"


def _year(width: int, at: datetime) -> str:
    return f"{at.year % 100:02d}" if width == 2 else f"{at.year:04d}"


def _month(width: int, at: datetime, language: str) -> str:
    return month_name(at.month, language, short=width == 3) if width > 2 else _number(at.month, width)


def _day(width: int, at: datetime, language: str) -> str:
    return day_name(at.weekday(), language, short=width == 3) if width > 2 else _number(at.day, width)


def _hour(width: int, at: datetime, *, twelve: bool) -> str:
    return _number((at.hour % 12 or 12) if twelve else at.hour, width)


_Writer = Callable[[int, datetime, str, bool], str]
_WRITERS: Mapping[str, _Writer] = MappingProxyType(
    {
        "year": lambda width, at, language, twelve: _year(width, at),
        "month": lambda width, at, language, twelve: _month(width, at, language),
        "day": lambda width, at, language, twelve: _day(width, at, language),
        "hour": lambda width, at, language, twelve: _hour(width, at, twelve=twelve),
        "hour12": lambda width, at, language, twelve: _hour(width, at, twelve=True),
        "minute": lambda width, at, language, twelve: _number(at.minute, width),
        "second": lambda width, at, language, twelve: _number(at.second, width),
        "fraction": lambda width, at, language, twelve: "0" * width,
        "half": lambda width, at, language, twelve: half_name(at.hour, language),
    }
)
