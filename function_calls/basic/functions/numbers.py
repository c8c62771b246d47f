"""Functions for numbers, randomness and ids."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.environment import World
from function_calls.basic.functions.declaration import NUMBER, WHOLE, LanguageFunction, function
from function_calls.basic.values import OPERATORS, as_number, kind_of, normalized_number
from services.refs import JsonValue

_EXACT = Context(prec=700, rounding=ROUND_HALF_UP)
_LEADING = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3}(?!\d))?")


def rounded(number: int | float, digits: int) -> int | float:
    """Round to `digits` decimals, with halves rounded away from zero. Returns an int for 0 or fewer decimals. Raises
    RunError for numbers that are too large."""
    digits = max(min(digits, 300), -300)
    if type(number) is int and digits >= 0:
        return number
    exact = Decimal(repr(number)).quantize(Decimal(1).scaleb(-digits), context=_EXACT)
    return normalized_number(int(exact)) if digits <= 0 else float(exact)


def _of_reals(name: str, reckon: Callable[..., float]) -> Callable[..., JsonValue]:
    """Wrap a function of `math`; overflow and undefined arguments become RunError (BAD_VALUE), which names `name`."""

    def run(*numbers: int | float) -> JsonValue:
        try:
            return normalized_number(reckon(*numbers))
        except OverflowError:
            raise RunError(RunCode.BAD_VALUE, f"{name}: the number is too large") from None
        except (ValueError, ZeroDivisionError):
            raise RunError(RunCode.BAD_VALUE, f"{name} is not defined for this number") from None

    return run


def _log(number: int | float, base: int | float | None = None) -> float:
    return math.log(number) if base is None else math.log(number) / math.log(base)


def _in_base(prefix: str) -> Callable[[int], JsonValue]:
    return lambda number: format(number, prefix)


NUMBERS: list[LanguageFunction] = []
CHANCE: list[LanguageFunction] = []


def _real(
    name: str, reckon: Callable[..., float], about: str, example: str, gives: JsonValue, also: Sequence[str] = ()
) -> None:
    do = _of_reals(name, reckon)
    function(NUMBERS, f"{name}(number)", example, gives, also=also, about=about, takes=(NUMBER,))(do)


@function(NUMBERS, "VAL(text)", 'VAL("12 apples")', 12)
def _val(text: str) -> JsonValue:
    """The number at the start of a text; 0 if there is none."""
    whole = as_number(text)
    if whole is not None:
        return whole
    found = _LEADING.match(text[:100])
    return as_number(found.group()) or 0 if found else 0


_real("INT", math.floor, "The number rounded down to a whole number.", "INT(-2.5)", -3)
_real("FIX", math.trunc, "The number without its decimals.", "FIX(-2.5)", -2, also=("trunc",))
_real("FLOOR", math.floor, "The number rounded down to a whole number.", "FLOOR(2.7)", 2)
_real("CEIL", math.ceil, "The number rounded up to a whole number.", "CEIL(2.1)", 3, also=("ceiling",))


@function(NUMBERS, "ROUND(number, [decimals])", "ROUND(2.345, 2)", 2.35)
def _round(number: int | float, digits: int = 0) -> JsonValue:
    """The number rounded to a number of decimals (default 0); halves are rounded away from zero."""
    return rounded(number, digits)


@function(NUMBERS, "ABS(number)", "ABS(-3)", 3)
def _abs(number: int | float) -> JsonValue:
    """The absolute value."""
    return normalized_number(abs(number))


@function(NUMBERS, "SGN(number)", "SGN(-3)", -1, also=("sign",))
def _sgn(number: int | float) -> JsonValue:
    """-1 for a negative number, 0 for zero, 1 for a positive number."""
    return (number > 0) - (number < 0)


_real("SQR", math.sqrt, "The square root.", "SQR(9)", 3, also=("sqrt",))


@function(NUMBERS, "POWER(base, exponent)", "POWER(2, 10)", 1024)
def _power(base: int | float, exponent: int | float) -> JsonValue:
    """The same as `^`."""
    return OPERATORS["^"](base, exponent)


@function(NUMBERS, "MODULO(number, by)", "MODULO(7, 3)", 1)
def _modulo(number: int | float, by: int | float) -> JsonValue:
    """The same as MOD."""
    return OPERATORS["mod"](number, by)


_real("SIN", math.sin, "The sine of an angle in radians.", "SIN(0)", 0)
_real("COS", math.cos, "The cosine of an angle in radians.", "COS(0)", 1)
_real("TAN", math.tan, "The tangent of an angle in radians.", "TAN(0)", 0)
_real("ASIN", math.asin, "The angle in radians that has this sine.", "ASIN(0)", 0)
_real("ACOS", math.acos, "The angle in radians that has this cosine.", "ACOS(1)", 0)
_real("ATN", math.atan, "The angle in radians that has this tangent.", "ATN(0)", 0, also=("atan",))
_real("EXP", math.exp, "e to the power of the number.", "EXP(0)", 1)
function(
    NUMBERS,
    "LOG(number, [base])",
    "LOG(8, 2)",
    3,
    also=("ln",),
    takes=(NUMBER, NUMBER),
    about="The logarithm to the base; by default the natural logarithm.",
    fewest=1,
)(_of_reals("LOG", _log))


_real("LOG10", math.log10, "The logarithm to the base 10.", "LOG10(1000)", 3)


@function(NUMBERS, "PI()", "ROUND(PI(), 2)", 3.14)
def _pi() -> JsonValue:
    """The number π."""
    return math.pi


function(NUMBERS, "HEX(number)", "HEX(255)", "FF", takes=(WHOLE,), about="The number in hexadecimal.")(_in_base("X"))
function(NUMBERS, "OCT(number)", "OCT(8)", "10", takes=(WHOLE,), about="The number in octal.")(_in_base("o"))
function(NUMBERS, "BIN(number)", "BIN(5)", "101", takes=(WHOLE,), about="The number in binary.")(_in_base("b"))


@function(NUMBERS, "BETWEEN(number, low, high)", "BETWEEN(5, 1, 10)", True)
def _between(number: int | float, low: int | float, high: int | float) -> JsonValue:
    """Whether the number is between low and high, both included."""
    return low <= number <= high


@function(CHANCE, "RANDOM([low], [high])", "RANDOM(6, 6)", 6)
def _random(world: World, low: JsonValue = None, high: JsonValue = None) -> JsonValue:
    """A random whole number from low to high, both included; with one number, from 1 to it; without arguments, a
    fraction below 1. For a list, a random item."""
    if low is None and high is None:
        return world.random.random()
    if type(low) is list and high is None:
        return _pick(world, low)
    first, last = (1, low) if high is None else (low, high)
    ends = as_number(first), as_number(last)
    if ends[0] is None or ends[1] is None:
        wrong = first if ends[0] is None else last
        raise RunError(RunCode.WRONG_TYPE, f"RANDOM needs two numbers, not {kind_of(wrong)}")
    least, most = sorted((int(ends[0]), int(ends[1])))
    return normalized_number(world.random.randint(least, most))


@function(CHANCE, "RND([any])", "INT(RND())", 0)
def _rnd(world: World, number: int | float = 1) -> JsonValue:
    """A random fraction from 0 to below 1.

    In classic BASIC the argument selects the seeding; it is ignored."""
    return world.random.random()


@function(CHANCE, "RANDOMIZE([seed])", "RANDOMIZE(1)", None)
def _randomize(world: World, seed: int | float | None = None) -> JsonValue:
    """Restarts the random numbers; with the same number, the same sequence follows."""
    world.random.seed(world.unique() if seed is None else seed)
    return None


@function(CHANCE, "PICK(list)", 'PICK(["a"])', "a", also=("choice",))
def _pick(world: World, items: list[Any]) -> JsonValue:
    """A random item."""
    return items[world.random.randrange(len(items))] if items else None


@function(CHANCE, "SHUFFLE(list)", "SHUFFLE([1])", [1])
def _shuffle(world: World, items: list[Any]) -> JsonValue:
    """The items in random order."""
    mixed = items.copy()
    world.random.shuffle(mixed)
    return mixed


@function(CHANCE, "SAMPLE(list, count)", "COUNT(SAMPLE([1, 2, 3], 2))", 2)
def _sample(world: World, items: list[Any], count: int) -> JsonValue:
    """A number of random items, each at most once."""
    return world.random.sample(items, max(0, min(count, len(items))))


@function(CHANCE, "GUID()", "LEN(GUID())", 36, also=("uuid", "newid"))
def _guid(world: World) -> JsonValue:
    """A new unique id."""
    return world.unique()
