"""Exact numbers, and units of measure with exact conversion."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation, Overflow, localcontext
from difflib import get_close_matches
from fractions import Fraction
from functools import cached_property

from config.word_tables import word_tables

_DIGITS = 50
_MOST_BITS = 4096
_MOST_DIGITS_SHOWN = 40
_MOST_DECIMALS_SHOWN = 15
_FINEST_SHOWN = 1_000_000_000_000_000
_SIGNIFICANT = 12
_TINY = Fraction(1, 10**14)
_LARGEST_FACTORIAL = 450


class TooLarge(ArithmeticError):
    """The number would have more than some 1,200 digits."""


class Undefined(ArithmeticError):
    """The function has no real value there, or the value cannot be computed precisely enough."""


@dataclass(frozen=True, slots=True)
class Number:
    """A real number; not `exact` if it was rounded to fifty digits during the calculation."""

    value: Fraction
    exact: bool = True

    def __add__(self, other: Number) -> Number:
        return bounded(self.value + other.value, exact=self.exact and other.exact)

    def __sub__(self, other: Number) -> Number:
        return bounded(self.value - other.value, exact=self.exact and other.exact)

    def __mul__(self, other: Number) -> Number:
        return bounded(self.value * other.value, exact=self.exact and other.exact)

    def __truediv__(self, other: Number) -> Number:
        return bounded(self.value / other.value, exact=self.exact and other.exact)

    def __floordiv__(self, other: Number) -> Number:
        return bounded(Fraction(self.value // other.value), exact=self.exact and other.exact)

    def __mod__(self, other: Number) -> Number:
        return bounded(self.value % other.value, exact=self.exact and other.exact)

    def __neg__(self) -> Number:
        return Number(-self.value, self.exact)

    def __pow__(self, other: Number) -> Number:
        """`self` to the power of `other`, exact if that is rational and not too long. Raises Undefined for a root of a
        negative number, TooLarge, and ZeroDivisionError."""
        exponent, base = other.value, self.value
        if exponent.denominator == 1:
            bits = max(base.numerator.bit_length(), base.denominator.bit_length())
            if bits <= 1 or bits * abs(exponent.numerator) <= _MOST_BITS:
                small = exponent.numerator % 2 if abs(base) == 1 else exponent.numerator
                return bounded(base**small, exact=self.exact and other.exact)
        if base == 0:
            if exponent < 0:
                raise ZeroDivisionError
            return Number(Fraction(0), self.exact)
        if base < 0 and exponent.denominator != 1:
            raise Undefined
        root = _exact_root(base, exponent)
        if root is not None:
            return bounded(root, exact=self.exact and other.exact)
        return _rounded(lambda: _decimal(base) ** _decimal(exponent))

    @property
    def text(self) -> str:
        """The number in decimal digits, all of them if they are few, else rounded to 12 significant digits; very large
        or small as `1.5 × 10^20`."""
        if self._is_short:
            return f"{self._in_decimal(_MOST_DIGITS_SHOWN + _MOST_DECIMALS_SHOWN):f}"
        rounded = self._in_decimal(_SIGNIFICANT)
        if -7 < rounded.adjusted() < 15:
            return f"{rounded:f}"
        mantissa, _, exponent = f"{rounded:e}".partition("e")
        return f"{mantissa} × 10^{int(exponent)}"

    @property
    def is_shown_exactly(self) -> bool:
        """Whether `text` is the exact number."""
        return self.exact and (self._is_short or Fraction(self._in_decimal(_SIGNIFICANT)) == self.value)

    @property
    def _is_short(self) -> bool:
        return self.exact and abs(self.value) < 10**_MOST_DIGITS_SHOWN and not _FINEST_SHOWN % self.value.denominator

    def _in_decimal(self, digits: int) -> Decimal:
        with localcontext(Context(prec=digits)):
            return (Decimal(self.value.numerator) / Decimal(self.value.denominator)).normalize()


def bounded(value: Fraction, *, exact: bool = True) -> Number:
    """`value` as a Number, rounded to 50 digits if its denominator is very long. Raises TooLarge."""
    if abs(value.numerator) >= value.denominator << _MOST_BITS:
        raise TooLarge
    if value.denominator.bit_length() > _MOST_BITS:
        return _rounded(lambda: _decimal(value))
    return Number(value, exact)


def factorial(number: Number) -> Number:
    """n! for an integer n. Raises Undefined for other numbers, and TooLarge above 450."""
    if number.value.denominator != 1 or number.value < 0:
        raise Undefined
    if number.value > _LARGEST_FACTORIAL:
        raise TooLarge
    return bounded(Fraction(math.factorial(number.value.numerator)), exact=number.exact)


def square_root(number: Number) -> Number:
    """The square root. Raises Undefined for negative numbers."""
    return number ** Number(Fraction(1, 2))


def cube_root(number: Number) -> Number:
    """The real cube root, also of negative numbers."""
    if number.value < 0:
        return -cube_root(-number)
    return number ** Number(Fraction(1, 3))


def logarithm(number: Number, base: Number | None = None) -> Number:
    """Logarithm to `base`, or the natural logarithm. Raises Undefined for `number` or `base` not above 0, and for base
    1."""
    if number.value <= 0 or (base is not None and (base.value <= 0 or base.value == 1)):
        raise Undefined
    if base is None:
        return Number(Fraction(0), number.exact) if number.value == 1 else _rounded(lambda: _decimal(number.value).ln())
    quotient = _rounded(lambda: _decimal(number.value).ln() / _decimal(base.value).ln())
    whole = Number(Fraction(round(quotient.value)))
    if abs(whole.value) < _MOST_BITS and (base**whole).value == number.value:
        return Number(whole.value, number.exact and base.exact)
    return quotient


def exponential(number: Number) -> Number:
    """e to the power of `number`. Rounded to fifty digits. Raises TooLarge."""
    return _rounded(lambda: _decimal(number.value).exp())


def sine(number: Number) -> Number:
    """Sine of an angle in radians, to the precision of a float. Raises Undefined beyond ±10^9."""
    return _from_float(math.sin, number)


def cosine(number: Number) -> Number:
    """Cosine of an angle in radians, to the precision of a float. Raises Undefined beyond ±10^9."""
    return _from_float(math.cos, number)


def tangent(number: Number) -> Number:
    """Tangent of an angle in radians. Raises Undefined at its poles and beyond ±10^9."""
    below = cosine(number)
    if not below.value:
        raise Undefined
    return Number(sine(number).value / below.value, exact=False)


def rounded_to(number: Number, places: Number) -> Number:
    """`number` rounded to that number of decimal places (negative: tens, hundreds, …), halves away from zero. Raises
    Undefined unless `places` is an integer from -50 to 50."""
    if places.value.denominator != 1 or abs(places.value) > _DIGITS:
        raise Undefined
    scale = Fraction(10) ** places.value.numerator
    scaled = abs(number.value) * scale
    nearest = math.floor(scaled + Fraction(1, 2)) / scale
    return Number(nearest if number.value >= 0 else -nearest, number.exact)


CONSTANTS: Mapping[str, Number] = {
    "pi": Number(Fraction("3.14159265358979323846264338327950288419716939937510"), exact=False),
    "e": Number(Fraction("2.71828182845904523536028747135266249775724709369995"), exact=False),
}


def _from_float(function: Callable[[float], float], number: Number) -> Number:
    if abs(number.value) > 10**9:
        raise Undefined  # a float has no digits left for the angle
    value = Fraction(function(float(number.value)))
    return Number(Fraction(0) if abs(value) < _TINY else value, exact=False)


def _exact_root(base: Fraction, exponent: Fraction) -> Fraction | None:
    """base to the power of 1/2 or 1/3 if that is rational, else None."""
    if exponent not in (Fraction(1, 2), Fraction(1, 3)):
        return None
    roots = [_whole_root(part, exponent.denominator) for part in (base.numerator, base.denominator)]
    return None if None in roots else Fraction(roots[0] or 0, roots[1] or 1)


def _whole_root(number: int, degree: int) -> int | None:
    """The root of an integer if it is an integer, else None."""
    if number == 0:
        return 0
    root = 1 << -(-number.bit_length() // degree)
    while (closer := ((degree - 1) * root + number // root ** (degree - 1)) // degree) < root:
        root = closer
    return root if number == root**degree else None


def _rounded(compute: Callable[[], Decimal]) -> Number:
    """Run `compute` with fifty digits. Raises TooLarge and Undefined."""
    try:
        with localcontext(Context(prec=_DIGITS, Emax=_MOST_BITS // 3, Emin=-_MOST_BITS // 3)):
            return bounded(Fraction(compute()), exact=False)
    except Overflow as error:
        raise TooLarge from error
    except InvalidOperation as error:
        raise Undefined from error


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


class UnknownUnit(LookupError):
    """No unit has this name; `similar` are close ones."""

    def __init__(self, name: str, similar: tuple[str, ...]) -> None:
        super().__init__(name)
        self.name = name
        self.similar = similar


class UnitsDiffer(ValueError):
    """`source` and `target` measure different quantities, such as length and mass."""

    def __init__(self, source: Unit, target: Unit) -> None:
        super().__init__(f"{source.symbol} and {target.symbol}")
        self.source = source
        self.target = target


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit. `(value + before) * factor` is the value in the base unit of its kind."""

    symbol: str
    kind: str
    """length, mass, temperature, volume, speed, time or data."""
    factor: Fraction
    before: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class Converted:
    """A value in two units, as returned by Units.convert."""

    value: Number
    source: Unit
    result: Number
    target: Unit


class Units:
    """All units by all their names. A year is the mean Gregorian year and a month a twelfth of it; cups, pints and
    gallons are US units."""

    def find(self, name: str) -> Unit:
        """The unit called `name`; an English or Chinese name, also in the plural, or a symbol; in its exact case first,
        then in any. Raises UnknownUnit."""
        written = "-".join(name.strip().rstrip(".").split())
        folded = written.casefold()
        names = (written, folded, folded.removesuffix("s"), folded.removesuffix("es"))
        unit = next((self._units[name] for name in names if name in self._units), None)
        if unit is None:
            raise UnknownUnit(name.strip(), tuple(get_close_matches(folded, self._units, n=3, cutoff=0.7)))
        return unit

    def convert(self, value: Fraction, source: str, target: str) -> Converted:
        """`value` of `source` converted to `target`. Raises UnknownUnit, UnitsDiffer and TooLarge."""
        old, new = self.find(source), self.find(target)
        if old.kind != new.kind:
            raise UnitsDiffer(old, new)
        result = (value + old.before) * old.factor / new.factor - new.before
        return Converted(bounded(value), old, bounded(result), new)

    @cached_property
    def _units(self) -> Mapping[str, Unit]:
        units: dict[str, Unit] = {}
        for kind, lines in word_tables("units").items():
            for line in lines:
                symbol, *words = line.split()
                before = words.pop(0) if kind == "temperature" else "0"
                unit = Unit(symbol, kind, Fraction(words[0]), Fraction(before))
                units.update(dict.fromkeys((symbol, *words[1:]), unit))
        for name, unit in list(units.items()):
            units.setdefault(name.casefold(), unit)
        return units
