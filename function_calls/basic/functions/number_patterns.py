"""Patterns for numbers: `#,##0.00`, `0000`, `0%`, `n`, `F2`, `C2[pt]`, `(00) 0000-0000`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Context, Decimal
from types import MappingProxyType
from typing import NamedTuple

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.conversions import text_of

_EXACT = Context(prec=700, rounding=ROUND_HALF_UP)
_LONGEST = 200
_MOST_DECIMALS = 30
_NAMED = re.compile(
    r"(?P<name>[nNfFcCpPdDxX])(?P<digits>\d{0,2})(?:\[(?P<place>[A-Za-z]{2,3}(?:[-_][A-Za-z]{2,4})?)\])?"
)
_WORDS: Mapping[str, str] = MappingProxyType(
    {"currency": "C2", "standard": "N2", "fixed": "F2", "percent": "P2", "general": "G", "general number": "G"}
)
_CORE = re.compile(r"[#0][#0,]*(?:\.[#0]+)?|\.[#0]+")


class _Place(NamedTuple):
    """How numbers and money are written somewhere."""

    money: str
    """With `¤` where the number stands."""
    thousands: str
    point: str


_PLACES: Mapping[str, _Place] = MappingProxyType(
    {
        "en": _Place("$¤", ",", "."),
        "gb": _Place("£¤", ",", "."),
        "zh": _Place("¥¤", ",", "."),
        "ja": _Place("¥¤", ",", "."),
        "ko": _Place("₩¤", ",", "."),
        "in": _Place("₹¤", ",", "."),
        "pt": _Place("R$ ¤", ".", ","),
        "de": _Place("¤ €", ".", ","),
        "es": _Place("¤ €", ".", ","),
        "it": _Place("¤ €", ".", ","),
        "nl": _Place("€ ¤", ".", ","),
        "fr": _Place("¤ €", " ", ","),
        "ru": _Place("¤ ₽", " ", ","),
    }
)
_REGIONS: Mapping[str, str] = MappingProxyType(
    {
        "en-gb": "gb",
        "en-in": "in",
        "hi": "in",
        "pt-br": "pt",
        "br": "pt",
        "us": "en",
        "uk": "gb",
        "cn": "zh",
        "jp": "ja",
    }
)


def format_number(number: int | float, pattern: str, language: str) -> str | None:
    """The number as the pattern wants it, a half rounded away from zero; None where it is no pattern for numbers.
    Raises RunFault (BAD_VALUE) for a place whose ways are not known here, or a pattern that is too long."""
    if len(pattern) > _LONGEST:
        raise RunFault(RunCode.BAD_VALUE, f"a pattern for FORMAT has {_LONGEST} characters at the most")
    exact = Decimal(repr(number))
    found = _NAMED.fullmatch(_WORDS.get(pattern.strip().lower(), pattern))
    if found:
        return _named(exact, number, found, language)
    if pattern.strip().lower() in ("g", "general", "general number"):
        return text_of(number)
    return _custom(exact, pattern)


def _named(exact: Decimal, number: int | float, found: re.Match[str], language: str) -> str:
    name, digits = found["name"], found["digits"]
    decimals = min(int(digits), _MOST_DECIMALS) if digits else 2
    place = _place(found["place"], language)
    if name == "f" and not digits:
        return text_of(number)
    if name in "nfF" and not (name == "n" and digits):
        plain = place if found["place"] else _PLACES["en"]  # for programs, unless a place is named
        return _signed(exact, decimals, plain._replace(thousands=""))
    if name in "Nn":
        return _signed(exact, decimals, place)
    if name in "cC":
        sign = "-" if _rounded(exact, decimals) < 0 else ""
        return sign + place.money.replace("¤", _signed(abs(exact), decimals, place))
    if name in "pP":
        return _signed(exact.scaleb(2, _EXACT), int(digits or 0) if digits else 0, place) + "%"
    whole = int(_rounded(exact, 0))
    width = min(int(digits or 1), 99)
    body = format(abs(whole), "X" if name in "xX" else "d").rjust(width, "0")
    return ("-" if whole < 0 else "") + body


def _place(written: str | None, language: str) -> _Place:
    """That of the brackets, or else of the language."""
    if not written:
        return _PLACES.get(_short(language), _PLACES["en"])
    key = written.lower().replace("_", "-")
    key = _REGIONS.get(key, _REGIONS.get(_short(key), _short(key)))
    if key not in _PLACES:
        raise RunFault(
            RunCode.BAD_VALUE,
            f"FORMAT does not know how numbers are written in [{written}]; it knows {', '.join(_PLACES)}",
        )
    return _PLACES[key]


def _short(language: str) -> str:
    return language.replace("_", "-").split("-")[0].lower()


def _rounded(exact: Decimal, decimals: int) -> Decimal:
    return exact.quantize(Decimal(1).scaleb(-decimals), context=_EXACT)


def _signed(exact: Decimal, decimals: int, place: _Place) -> str:
    value = _rounded(exact, decimals)
    whole, _, behind = format(abs(value), "f").partition(".")
    body = _in_threes(whole, place.thousands) + (place.point + behind if behind else "")
    return ("-" if value < 0 else "") + body


def _custom(exact: Decimal, pattern: str) -> str | None:
    sections = pattern.split(";")
    if len(sections) > 1 and exact < 0 and sections[1]:
        return _custom(abs(exact), sections[1])
    if len(sections) > 2 and exact == 0:
        return _custom(exact, sections[2]) or sections[2]
    section = sections[0]
    cores = list(_CORE.finditer(section))
    if not cores:
        return None
    if len(cores) > 1:
        return _masked(exact, section)
    core = cores[0]
    if "%" in section:
        exact = exact.scaleb(2, _EXACT)
    sign, body = _by_core(exact, core.group())
    return f"{sign}{section[: core.start()]}{body}{section[core.end() :]}"


def _by_core(exact: Decimal, core: str) -> tuple[str, str]:
    before, _, behind = core.partition(".")
    value = _rounded(exact, len(behind))
    whole, _, decimals = format(abs(value), "f").partition(".")
    least = len(behind.rstrip("#"))
    decimals = decimals[:least] + decimals[least:].rstrip("0")
    whole = whole.lstrip("0").rjust(max(before.replace(",", "").lstrip("#").count("0"), 1), "0")
    if "," in before:
        whole = _in_threes(whole, ",")
    return ("-" if value < 0 else ""), whole + ("." + decimals if decimals else "")


def _in_threes(digits: str, mark: str) -> str:
    head = len(digits) % 3
    groups = ([digits[:head]] if head else []) + [digits[place : place + 3] for place in range(head, len(digits), 3)]
    return mark.join(groups)


def _masked(exact: Decimal, pattern: str) -> str:
    """The digits put into the places of the pattern from the right: telephone numbers, numbers of papers."""
    digits = list(str(abs(int(_rounded(exact, 0)))))
    made: list[str] = []
    left = sum(pattern.count(place) for place in "#0")
    for character in reversed(pattern):
        if character not in "#0":
            made.append(character)
            continue
        left -= 1
        if digits:
            made.append(digits.pop())
        elif character == "0":
            made.append("0")
        if not left and digits:
            made.extend(reversed(digits))
    return ("-" if exact < 0 else "") + "".join(reversed(made))
