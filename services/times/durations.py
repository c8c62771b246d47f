"""How long: 20 minutes, an hour and a half, 1d 2hr 5min, half an hour, a couple of weeks."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from services.times.lexicon import UNITS
from services.times.readings import Grain, Length
from services.times.tokens import NUMBER, WORD, Line

_SECONDS = {Grain.SECOND: 1, Grain.MINUTE: 60, Grain.HOUR: 3600, Grain.DAY: 86_400}
_DAYS = {Grain.DAY: 1, Grain.WEEK: 7, "fortnight": 14}
_MONTHS = {Grain.MONTH: 1, Grain.QUARTER: 3, Grain.YEAR: 12, "decade": 120, "century": 1200}
_FINENESS = [Grain.SECOND, Grain.MINUTE, Grain.HOUR, Grain.DAY, Grain.WEEK, Grain.MONTH, Grain.QUARTER, Grain.YEAR]
_SIGNS = {"½": Fraction(1, 2), "¼": Fraction(1, 4), "¾": Fraction(3, 4)}
_FEW = {"couple": 2, "few": 3, "several": 3, "pair": 2, "dozen": 12}
_MOST_COUNT = 100_000
_NAMED = {"half": Fraction(1, 2), "quarter": Fraction(1, 4)}


@dataclass(frozen=True, slots=True)
class Amount:
    """A length as it was said."""

    length: Length
    grain: Grain
    """Of its finest unit."""
    unit: Grain | str
    """The unit itself, where there is one alone."""
    count: Fraction
    is_bare: bool = False
    """Its number was "a", or it had none."""


def amount_at(line: Line, index: int) -> tuple[Amount, int] | None:
    """The length that begins at `index`, as long as it goes, and where it ends."""
    first = _one_at(line, index)
    if first is None:
        return None
    amount, end = first
    while True:
        more = _more_at(line, end, amount)
        if more is None:
            return amount, end
        amount, end = more


def unit_at(line: Line, index: int) -> Grain | str | None:
    """The unit of time that stands at `index`."""
    return UNITS.get(line.words[index])


def _more_at(line: Line, index: int, amount: Amount) -> tuple[Amount, int] | None:
    """What goes on with a length: `and a half`, `, 3 hours`, `30` behind `1h`."""
    is_minutes = line.kinds[index] == NUMBER and line.glued(index) and line.values[index] < 60
    if amount.unit == Grain.HOUR and is_minutes and unit_at(line, index + 1) is None:
        return _sum(amount, _amount(Fraction(line.values[index]), Grain.MINUTE)), index + 1
    start = index
    while line.words[start] in (",", "and", "+", "&", "plus"):
        start += 1
    if start - index > 2:
        return None
    if line.words[index] == "and":
        fraction = _fraction_at(line, index + 1)
        if (
            fraction is not None
            and unit_at(line, fraction[1]) is None
            and line.words[fraction[1]] not in ("of", "past")
        ):
            return _sum(amount, _amount(fraction[0] * 1, amount.unit)), fraction[1]
    more = _one_at(line, start)
    if more is None or more[0].unit == amount.unit or (more[0].is_bare and start == index):
        return None
    return _sum(amount, more[0]), more[1]


def _one_at(line: Line, index: int) -> tuple[Amount, int] | None:
    """One number and its unit."""
    counted = count_at(line, index)
    if counted is None:
        return None
    count, end, is_bare = counted
    if count > _MOST_COUNT:
        return None
    sign = line.words[end]
    if sign in ("'", '"', "′", "″") and line.kinds[end - 1] == NUMBER and line.glued(end):
        return _amount(count, Grain.MINUTE if sign in ("'", "′") else Grain.SECOND), end + 1
    if line.words[end] == "-" and unit_at(line, end + 1) is not None:
        end += 1
    if line.words[end] in ("business", "working", "work") and unit_at(line, end + 1) == Grain.DAY:
        return _amount(count, "weekday", is_bare=is_bare), end + 2
    unit = unit_at(line, end)
    if unit is None or unit == "weekend" or (len(line.words[end]) == 1 and line.kinds[end - 1] != NUMBER):
        return None
    if line.words[end] == ".":
        return None
    after = end + 1
    if line.words[after] == "." and len(line.words[end]) <= 4 and line.kinds[after + 1] in (NUMBER, WORD):
        after += 1  # an abbreviation's full stop
    return _amount(count, unit, is_bare=is_bare), after


def count_at(line: Line, index: int) -> tuple[Fraction, int, bool] | None:
    """How many, where it ends, and whether it was only "a": 2, 2.5, 1/4, 2 and a half, a couple of, half an."""
    word, kind = line.words[index], line.kinds[index]
    if kind == NUMBER:
        return _digits_at(line, index)
    if word in ("a", "an"):
        return _indefinite_at(line, index)
    if word in _FEW:
        return Fraction(_FEW[word]), index + 2 if line.words[index + 1] == "of" else index + 1, False
    if word in _SIGNS:
        return _SIGNS[word], index + 1, False
    if word == "half" and line.words[index + 1] in ("a", "an", "hour", "day", "year", "-"):
        return Fraction(1, 2), index + (1 if line.words[index + 1] in ("hour", "day", "year") else 2), False
    if word == "quarter" and line.words[index + 1] in ("hour", "-"):
        return Fraction(1, 4), index + (1 if line.words[index + 1] == "hour" else 2), False
    if word == "another":
        counted = count_at(line, index + 1)
        return (counted[0], counted[1], False) if counted else (Fraction(1), index + 1, False)
    return None


def _digits_at(line: Line, index: int) -> tuple[Fraction, int, bool] | None:
    count, end = Fraction(line.values[index]), index + 1
    sign = line.words[end]
    if line.glued(end) and sign in (".", "/", ",") and line.is_digits(end + 1) and line.glued(end + 1):
        digits = line.words[end + 1]
        if sign == "/":
            return (count / line.values[end + 1], end + 2, False) if line.values[end + 1] else None
        if sign == "." or len(digits) != 3:
            return count + Fraction(int(digits), 10 ** len(digits)), end + 2, False
        return count * 1000 + int(digits), end + 2, False
    if sign in _SIGNS:
        return count + _SIGNS[sign], end + 1, False
    if sign == "and":
        fraction = _fraction_at(line, end + 1)
        if fraction is not None and unit_at(line, fraction[1]) is not None:
            return count + fraction[0], fraction[1], False
    if line.words[index] == "three" and sign == "quarters":
        after = end + 1
        while line.words[after] in ("of", "an", "a"):
            after += 1
        return Fraction(3, 4), after, False
    if line.words[end] == "more":
        end += 1
    return count, end, False


def _indefinite_at(line: Line, index: int) -> tuple[Fraction, int, bool]:
    after = line.words[index + 1]
    if after in _FEW:
        return Fraction(_FEW[after]), index + 3 if line.words[index + 2] == "of" else index + 2, False
    if after in ("half", "quarter"):
        end = index + 2
        while line.words[end] in ("of", "an", "a", "-"):
            end += 1
        return _NAMED[after], end, False
    return Fraction(1), index + 1, True


def _fraction_at(line: Line, index: int) -> tuple[Fraction, int] | None:
    """`a half`, `an half`, `half`, `a quarter`, `three quarters`."""
    if line.words[index] == "three" and line.words[index + 1] == "quarters":
        return Fraction(3, 4), index + 2
    start = index + 1 if line.words[index] in ("a", "an") else index
    fraction = _NAMED.get(line.words[start])
    return None if fraction is None else (fraction, start + 1)


def _sum(left: Amount, right: Amount) -> Amount:
    grain = min(left.grain, right.grain, key=_FINENESS.index)
    return Amount(left.length + right.length, grain, right.unit, right.count)


def _amount(count: Fraction, unit: Grain | str, *, is_bare: bool = False) -> Amount:
    """`count` of a unit; what is left of a calendar unit becomes smaller ones."""
    if unit in _MONTHS:
        months = count * _MONTHS[unit]
        grain = Grain.YEAR if _MONTHS[unit] >= 12 else Grain(unit)
        return Amount(_of_months(months), grain, unit, count, is_bare)
    if unit == "weekday":
        return Amount(Length(days=int(count)), Grain.DAY, unit, count, is_bare)
    if unit in _DAYS:
        days, part = divmod(count * _DAYS[unit], 1)
        grain = Grain.HOUR if part else Grain.DAY if unit == Grain.DAY else Grain.WEEK
        return Amount(Length(days=int(days), seconds=float(part * 86_400)), grain, unit, count, is_bare)
    grain = Grain(unit)
    return Amount(Length(seconds=float(count * _SECONDS[grain])), grain, unit, count, is_bare)


def _of_months(months: Fraction) -> Length:
    whole, rest = divmod(months, 1)
    return Length(months=int(whole), days=round(rest * 30))
