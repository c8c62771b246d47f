"""The FORMAT function, with its patterns for numbers, dates and texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import NamedTuple

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.date_texts import Moment, read
from function_calls.basic.environment import World
from function_calls.basic.functions.declaration import LanguageFunction, function
from function_calls.basic.value_sizes import check_length
from function_calls.basic.values import as_number, kind_of, text_of
from services.refs import JsonValue

Unit = str
"""One of: year, quarter, month, week, day, hour, minute, second."""
MONTHS = {
    "en": (
        "January", "February", "March", "April", "May", "June",
        "July", "August", "September", "October", "November", "December",
    ),
    "zh": ("一月", "二月", "三月", "四月", "五月", "六月", "七月", "八月", "九月", "十月", "十一月", "十二月"),
    "pt": (
        "janeiro", "fevereiro", "março", "abril", "maio", "junho",
        "julho", "agosto", "setembro", "outubro", "novembro", "dezembro",
    ),
    "es": (
        "enero", "febrero", "marzo", "abril", "mayo", "junio",
        "julio", "agosto", "septiembre", "octubre", "noviembre", "diciembre",
    ),
}  # fmt: skip
DAYS = {
    "en": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "zh": ("星期一", "星期二", "星期三", "星期四", "星期五", "星期六", "星期日"),
    "pt": ("segunda-feira", "terça-feira", "quarta-feira", "quinta-feira", "sexta-feira", "sábado", "domingo"),
    "es": ("lunes", "martes", "miércoles", "jueves", "viernes", "sábado", "domingo"),
}
_HALVES = {"zh": ("上午", "下午")}
_UNIT_WORDS = {
    "year": "y yy yyyy year years 年",
    "quarter": "q qq quarter quarters 季度",
    "month": "m mm mon month months 月 个月",
    "week": "w ww wk week weeks 周 星期",
    "day": "d dd day days 天 日",
    "hour": "h hh hr hour hours 小时 时",
    "minute": "n nn mi min mins minute minutes 分钟 分",
    "second": "s ss sec secs second seconds 秒",
}
UNITS: Mapping[str, Unit] = {word: unit for unit, words in _UNIT_WORDS.items() for word in words.split()}


def month_name(month: int, language: str, *, short: bool = False) -> str:
    """Name of a month (1 to 12). Falls back to English if the language has no names here."""
    if short and _known(language) == "zh":
        return f"{month}月"
    name = MONTHS[_known(language)][month - 1]
    return name[:3] if short else name


def day_name(weekday: int, language: str, *, short: bool = False) -> str:
    """Name of a weekday, counted from 0 for Monday; with `short`, its first 3 letters, or `周` and a character in
    Chinese."""
    name = DAYS[_known(language)][weekday]
    if not short:
        return name
    return f"周{name[-1]}" if _known(language) == "zh" else name[:3]


def _known(language: str) -> str:
    short = language.replace("_", "-").split("-")[0].lower()
    return short if short in MONTHS else "en"


class _Piece(NamedTuple):
    """Part of a pattern: a literal text (empty `name`), or a run of one pattern letter."""

    text: str
    name: str = ""


_PIECES = re.compile(
    r"'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\"|\\(?P<escaped>.)|(?P<halves>[Aa][Mm]/[Pp][Mm]|[Aa]/[Pp])"
    r"|%(?P<percent>[A-Za-z])|(?P<word>[A-Za-z]+)|(?P<other>.)",
    re.DOTALL,
)
_WORD = re.compile(r"(?:[yY]{1,4}+|[mM]{1,4}+|[dD]{1,4}+|[hH]{1,2}+|[sS]{1,2}+|n{1,2}+|f{1,3}+|tt|TT|t|T|Z)++")
"""Possessive quantifiers prevent backtracking, so that long words match in linear time."""
_RUN = re.compile(r"([A-Za-z])\1*")
_NAMES: Mapping[str, str] = {
    "y": "year",
    "d": "day",
    "h": "hour",
    "s": "second",
    "n": "minute",
    "f": "fraction",
    "t": "half",
}
_LETTERS: Mapping[str, _Piece] = {
    "Y": _Piece("yyyy", "year"), "y": _Piece("yy", "year"), "m": _Piece("mm", "month"), "n": _Piece("m", "month"),
    "M": _Piece("mmm", "month"), "F": _Piece("mmmm", "month"), "d": _Piece("dd", "day"), "j": _Piece("d", "day"),
    "D": _Piece("ddd", "day"), "l": _Piece("dddd", "day"), "H": _Piece("hh", "hour"), "G": _Piece("h", "hour"),
    "h": _Piece("hh", "hour12"), "g": _Piece("h", "hour12"), "i": _Piece("nn", "minute"),
    "s": _Piece("ss", "second"), "A": _Piece("tt", "half"), "a": _Piece("tt", "half"),
}  # fmt: skip
"""Letters of patterns with one letter per part, as in PHP."""
_PERCENT: Mapping[str, _Piece] = {
    "Y": _Piece("yyyy", "year"), "y": _Piece("yy", "year"), "m": _Piece("mm", "month"),
    "B": _Piece("mmmm", "month"), "b": _Piece("mmm", "month"), "d": _Piece("dd", "day"), "e": _Piece("d", "day"),
    "A": _Piece("dddd", "day"), "a": _Piece("ddd", "day"), "H": _Piece("hh", "hour"),
    "I": _Piece("hh", "hour12"), "M": _Piece("nn", "minute"),
    "S": _Piece("ss", "second"), "p": _Piece("tt", "half"),
}  # fmt: skip
_SHORT = 60


def format_date(moment: Moment, pattern: str, language: str) -> str:
    """Format a date by a pattern. `MM` is the month, or the minutes after hours or before seconds; `hh` counts to 12
    only with AM/PM. Raises RunError (BAD_VALUE) if the pattern has no date part, or needs the date of a time without
    one."""
    pieces = _pieces(pattern)
    asked = {piece.name for piece in pieces} - {""}
    if not asked:
        raise RunError(
            RunCode.BAD_VALUE,
            f"FORMAT: the pattern `{pattern[:_SHORT]}` has no part for a date; write one such as dd/MM/yyyy HH:mm",
        )
    if moment.form == "time" and asked & {"year", "month", "day"}:
        raise RunError(RunCode.BAD_VALUE, "FORMAT: the pattern needs a date, but the value is a time of day")
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
    """Whether the pattern uses one letter per part (`Ymd`, `d/m/Y H:i`): a single `Y` and no letter twice in a row."""
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
    """Resolve each `m` and `M` to month or minute, by the fields before and after it. Returns a new list."""
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
_WRITERS: Mapping[str, _Writer] = {
    "year": lambda width, at, language, twelve: _year(width, at),
    "month": lambda width, at, language, twelve: _month(width, at, language),
    "day": lambda width, at, language, twelve: _day(width, at, language),
    "hour": lambda width, at, language, twelve: _hour(width, at, twelve=twelve),
    "hour12": lambda width, at, language, twelve: _hour(width, at, twelve=True),
    "minute": lambda width, at, language, twelve: _number(at.minute, width),
    "second": lambda width, at, language, twelve: _number(at.second, width),
    "fraction": lambda width, at, language, twelve: "0" * width,
    "half": lambda width, at, language, twelve: _HALVES.get(_known(language), ("AM", "PM"))[at.hour >= 12],
}


_EXACT = Context(prec=700, rounding=ROUND_HALF_UP)
_LONGEST = 200
_MOST_DECIMALS = 30
_NAMED = re.compile(
    r"(?P<name>[nNfFcCpPdDxX])(?P<digits>\d{0,2})(?:\[(?P<place>[A-Za-z]{2,3}(?:[-_][A-Za-z]{2,4})?)\])?"
)
_WORDS: Mapping[str, str] = {
    "currency": "C2",
    "standard": "N2",
    "fixed": "F2",
    "percent": "P2",
    "general": "G",
    "general number": "G",
}
_CORE = re.compile(r"[#0][#0,]*(?:\.[#0]+)?|\.[#0]+")


class _Place(NamedTuple):
    """Number and currency format of a region."""

    money: str
    """Currency pattern; `¤` is replaced by the number."""
    thousands: str
    point: str


_PLACES: Mapping[str, _Place] = {
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
_REGIONS: Mapping[str, str] = {
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


def format_number(number: int | float, pattern: str, language: str) -> str | None:
    """Format a number by a pattern, halves rounded away from zero; None if the pattern is not for numbers. Raises
    RunError (BAD_VALUE) for an unknown region or a pattern that is too long."""
    if len(pattern) > _LONGEST:
        raise RunError(RunCode.BAD_VALUE, f"a pattern for FORMAT may have at most {_LONGEST} characters")
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
        plain = place if found["place"] else _PLACES["en"]  # machine-readable unless the pattern names a region
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
    """Number format of the region in brackets, or the default of the language. Raises RunError for an unknown
    region."""
    if not written:
        return _PLACES.get(_short(language), _PLACES["en"])
    key = written.lower().replace("_", "-")
    key = _REGIONS.get(key, _REGIONS.get(_short(key), _short(key)))
    if key not in _PLACES:
        raise RunError(
            RunCode.BAD_VALUE,
            f"FORMAT: unknown number format [{written}]; known formats: {', '.join(_PLACES)}",
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
    """Fill the digits into a mask from the right, for telephone and document numbers."""
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


_TEXT_MARKS = re.compile("[@!><&]")


def _text(text: str, pattern: str) -> str:
    """Format a text: `@` is the whole text; in patterns with `@@` each `@` is one character. Without `@`: `!` and `>`
    are the text in upper case, `<` and `&` in lower case. Raises RunError if the result is too long."""
    if "@@" in pattern:
        characters = iter(text)
        return "".join(next(characters, "") if mark == "@" else mark for mark in pattern) + "".join(characters)
    check_length(len(text) * 3 * len(_TEXT_MARKS.findall(pattern)), "the result of FORMAT")
    if "@" in pattern:
        return pattern.replace("@", text)
    changed = {"!": text.upper(), ">": text.upper(), "<": text.lower(), "&": text.lower()}
    return "".join(changed.get(mark, mark) for mark in pattern)


FORMATTING: list[LanguageFunction] = []


@function(FORMATTING, "FORMAT(value, [pattern])", 'FORMAT(1234.5, "#,##0.00")', "1,234.50")
def _format(world: World, value: JsonValue, pattern: str = "") -> JsonValue:
    """A number, date or text formatted by the pattern; without a pattern, the value as a text."""
    if type(value) in (list, dict):
        raise RunError(RunCode.WRONG_TYPE, f"FORMAT needs a number, a date or a text, not {kind_of(value)}")
    if value is None or value == "" or not pattern:
        return text_of(value)
    if len(pattern) > _LONGEST:
        raise RunError(RunCode.BAD_VALUE, f"a pattern for FORMAT may have at most {_LONGEST} characters")
    number = None if type(value) is bool else as_number(value)
    if number is not None:
        made = format_number(number, pattern, world.language)
        if made is not None:
            return made
    moment = read(value, lambda: world.now().tzinfo) if type(value) is str else None
    if moment is not None and "@" not in pattern and any(mark.isalpha() for mark in pattern):
        return format_date(moment, pattern, world.language)
    if _TEXT_MARKS.search(pattern):
        return _text(text_of(value), pattern)
    what = "number" if number is not None else "text"
    known = "#,##0.00, 0000, 0%, n, F2, C2[pt]" if number is not None else "@, !, < and >, and no pattern for dates"
    raise RunError(
        RunCode.BAD_VALUE, f"FORMAT: unknown pattern `{pattern[:_SHORT]}` for a {what}; known patterns: {known}"
    )


@function(
    FORMATTING,
    "FORMAT_DATE(date, [pattern])",
    'FORMAT_DATE("2026-11-20", "dd.MM.yyyy")',
    "20.11.2026",
    also=("formatdate", "date_format"),
)
def _format_date(world: World, moment: Moment, pattern: str = "yyyy-MM-dd") -> JsonValue:
    """The date formatted by the pattern; the default is like 2026-11-20."""
    return format_date(moment, pattern[:_LONGEST], world.language)


@function(
    FORMATTING,
    "FORMAT_TIME(date, [pattern])",
    'FORMAT_TIME("2026-11-20 22:15:00", "hh:mm tt")',
    "10:15 PM",
    also=("formattime",),
)
def _format_time(world: World, moment: Moment, pattern: str = "HH:mm") -> JsonValue:
    """The time formatted by the pattern; the default is like 22:15."""
    return format_date(moment, pattern[:_LONGEST], world.language)
