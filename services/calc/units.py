"""Exact numbers, and units of measure with exact conversion."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation, Overflow, localcontext
from difflib import get_close_matches
from fractions import Fraction
from functools import cached_property

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


# One unit per line: symbol, size in base units, and names.
_LENGTH = """
nm 1e-9 nanometre nanometer 纳米
µm 1e-6 um micrometre micrometer micron 微米
mm 0.001 millimetre millimeter 毫米
cm 0.01 centimetre centimeter 厘米 公分
dm 0.1 decimetre decimeter 分米
m 1 metre meter 米 公尺
km 1000 kilometre kilometer 千米 公里
in 0.0254 inch inches " 英寸
ft 0.3048 foot feet ' 英尺
yd 0.9144 yard 码
mi 1609.344 mile 英里
nmi 1852 nautical-mile 海里
ly 9460730472580800 light-year 光年
里 500 li 华里
"""
_MASS = """
µg 1e-9 ug microgram 微克
mg 1e-6 milligram 毫克
g 0.001 gram gramme 克
kg 1 kilogram kilogramme kilo 千克 公斤
t 1000 tonne metric-ton 吨
oz 0.028349523125 ounce 盎司
lb 0.45359237 lbs pound 磅
st 6.35029318 stone 英石
ton 907.18474 short-ton us-ton
斤 0.5 jin catty 市斤
两 0.05 liang
"""
_VOLUME = """
ml 0.001 millilitre milliliter cc 毫升
cl 0.01 centilitre centiliter 厘升
dl 0.1 decilitre deciliter 分升
l 1 litre liter 升 公升
m³ 1000 m3 cubic-metre cubic-meter 立方米
tsp 0.00492892159375 teaspoon 茶匙
tbsp 0.01478676478125 tablespoon 汤匙
floz 0.0295735295625 fl-oz fluid-ounce 液盎司
cup 0.2365882365 cups 杯
pt 0.473176473 pint 品脱
qt 0.946352946 quart 夸脱
gal 3.785411784 gallon 加仑
"""
_SPEED = """
m/s 1 mps metres-per-second meters-per-second 米每秒 米/秒
km/h 5/18 kmh kph kilometres-per-hour kilometers-per-hour 公里每小时 公里/小时 千米每小时
mph 0.44704 mile-per-hour miles-per-hour 英里每小时
kn 463/900 knot kt 节
ft/s 0.3048 fps foot-per-second feet-per-second
mach 340.29 马赫
"""
_TIME = """
ns 1e-9 nanosecond 纳秒
µs 1e-6 us microsecond 微秒
ms 0.001 millisecond 毫秒
s 1 sec second 秒 秒钟
min 60 minute 分钟
h 3600 hr hour 小时 钟头
d 86400 day 天 日
week 604800 wk 周 星期
month 2629746 个月 月
year 31556952 yr 年
"""
_DATA = """
bit 1 bits 比特 位
B 8 byte 字节
kbit 1000 kilobit
Mbit 1e6 megabit
Gbit 1e9 gigabit
KB 8000 kilobyte
MB 8e6 megabyte 兆
GB 8e9 gigabyte
TB 8e12 terabyte
PB 8e15 petabyte
KiB 8192 kibibyte
MiB 8388608 mebibyte
GiB 8589934592 gibibyte
TiB 8796093022208 tebibyte
"""
# The first number is added to a temperature; multiplied by the second, the sum is in kelvin.
_TEMPERATURE = {
    "°C": (Fraction("273.15"), Fraction(1), "c celsius centigrade degrees-celsius degree-celsius 摄氏度 摄氏"),
    "°F": (Fraction("459.67"), Fraction(5, 9), "f fahrenheit degrees-fahrenheit degree-fahrenheit 华氏度 华氏"),
    "K": (Fraction(0), Fraction(1), "kelvin kelvins 开尔文 开"),
}


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
        tables = {"length": _LENGTH, "mass": _MASS, "volume": _VOLUME, "speed": _SPEED, "time": _TIME, "data": _DATA}
        units: dict[str, Unit] = {}
        for kind, lines in tables.items():
            for line in lines.strip().splitlines():
                symbol, factor, *names = line.split()
                unit = Unit(symbol, kind, Fraction(factor))
                units.update(dict.fromkeys((symbol, *names), unit))
        for symbol, (before, kelvin, words) in _TEMPERATURE.items():
            unit = Unit(symbol, "temperature", kelvin, before)
            units.update(dict.fromkeys((symbol, symbol.casefold(), *words.split()), unit))
        for name, unit in list(units.items()):
            units.setdefault(name.casefold(), unit)
        return units
