"""Functions for numbers, randomness and ids."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.environment import World
from function_calls.basic.functions.declaration import (
    ANY,
    LIST,
    NUMBER,
    TEXT,
    WHOLE,
    LanguageFunction,
    function,
    with_aliases,
)
from function_calls.basic.values import OPERATORS, as_number, kind_of, normalized_number
from services.refs import JsonValue

_EXACT = Context(prec=700, rounding=ROUND_HALF_UP)
_LEADING = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3}(?!\d))?")
_MOST_DIGITS = 15


def rounded(number: int | float, digits: int) -> int | float:
    """Round to `digits` decimals, with halves rounded away from zero. Returns an int for 0 or fewer decimals. Raises
    RunError for numbers that are too large."""
    digits = max(min(digits, 300), -300)
    if type(number) is int and digits >= 0:
        return number
    exact = Decimal(repr(number)).quantize(Decimal(1).scaleb(-digits), context=_EXACT)
    return normalized_number(int(exact)) if digits <= 0 else float(exact)


def _val(text: str) -> JsonValue:
    """Parse the number at the start of the text, as in classic BASIC; 0 if there is none."""
    whole = as_number(text)
    if whole is not None:
        return whole
    found = _LEADING.match(text[:100])
    return as_number(found.group()) or 0 if found else 0


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


def _whole(cut: Callable[[float], int]) -> Callable[[int | float], JsonValue]:
    return lambda number: normalized_number(cut(number))


def _power(base: int | float, exponent: int | float) -> JsonValue:
    return OPERATORS["^"](base, exponent)


def _modulo(number: int | float, by: int | float) -> JsonValue:
    return OPERATORS["mod"](number, by)


def _in_base(prefix: str) -> Callable[[int], JsonValue]:
    return lambda number: format(number, prefix)


def _real(name: str, reckon: Callable[..., float], about: str, example: str, gives: JsonValue) -> LanguageFunction:
    return function(f"{name}(number)", (NUMBER,), _of_reals(name, reckon), about, example, gives)


NUMBERS = (
    function(
        "VAL(text)", (TEXT,), _val, "The number at the start of a text; 0 if there is none.", 'VAL("12 apples")', 12
    ),
    function(
        "INT(number)", (NUMBER,), _whole(math.floor), "The number rounded down to a whole number.", "INT(-2.5)", -3
    ),
    *with_aliases(
        function("FIX(number)", (NUMBER,), _whole(math.trunc), "The number without its decimals.", "FIX(-2.5)", -2),
        "trunc",
    ),
    function(
        "FLOOR(number)", (NUMBER,), _whole(math.floor), "The number rounded down to a whole number.", "FLOOR(2.7)", 2
    ),
    *with_aliases(
        function(
            "CEIL(number)", (NUMBER,), _whole(math.ceil), "The number rounded up to a whole number.", "CEIL(2.1)", 3
        ),
        "ceiling",
    ),
    function(
        "ROUND(number, [decimals])",
        (NUMBER, WHOLE),
        lambda number, digits=0: rounded(number, digits),
        "The number rounded to a number of decimals (default 0); halves are rounded away from zero.",
        "ROUND(2.345, 2)",
        2.35,
        fewest=1,
    ),
    function(
        "ABS(number)", (NUMBER,), lambda number: normalized_number(abs(number)), "The absolute value.", "ABS(-3)", 3
    ),
    *with_aliases(
        function(
            "SGN(number)",
            (NUMBER,),
            lambda number: (number > 0) - (number < 0),
            "-1 for a negative number, 0 for zero, 1 for a positive number.",
            "SGN(-3)",
            -1,
        ),
        "sign",
    ),
    *with_aliases(_real("SQR", math.sqrt, "The square root.", "SQR(9)", 3), "sqrt"),
    function("POWER(base, exponent)", (NUMBER, NUMBER), _power, "The same as `^`.", "POWER(2, 10)", 1024),
    function("MODULO(number, by)", (NUMBER, NUMBER), _modulo, "The same as MOD.", "MODULO(7, 3)", 1),
    _real("SIN", math.sin, "The sine of an angle in radians.", "SIN(0)", 0),
    _real("COS", math.cos, "The cosine of an angle in radians.", "COS(0)", 1),
    _real("TAN", math.tan, "The tangent of an angle in radians.", "TAN(0)", 0),
    _real("ASIN", math.asin, "The angle in radians that has this sine.", "ASIN(0)", 0),
    _real("ACOS", math.acos, "The angle in radians that has this cosine.", "ACOS(1)", 0),
    *with_aliases(_real("ATN", math.atan, "The angle in radians that has this tangent.", "ATN(0)", 0), "atan"),
    _real("EXP", math.exp, "e to the power of the number.", "EXP(0)", 1),
    *with_aliases(
        function(
            "LOG(number, [base])",
            (NUMBER, NUMBER),
            _of_reals("LOG", _log),
            "The logarithm to the base; by default the natural logarithm.",
            "LOG(8, 2)",
            3,
            fewest=1,
        ),
        "ln",
    ),
    _real("LOG10", math.log10, "The logarithm to the base 10.", "LOG10(1000)", 3),
    function("PI()", (), lambda: math.pi, "The number π.", "ROUND(PI(), 2)", 3.14),
    function("HEX(number)", (WHOLE,), _in_base("X"), "The number in hexadecimal.", "HEX(255)", "FF"),
    function("OCT(number)", (WHOLE,), _in_base("o"), "The number in octal.", "OCT(8)", "10"),
    function("BIN(number)", (WHOLE,), _in_base("b"), "The number in binary.", "BIN(5)", "101"),
    function(
        "BETWEEN(number, low, high)",
        (NUMBER, NUMBER, NUMBER),
        lambda number, low, high: low <= number <= high,
        "Whether the number is between low and high, both included.",
        "BETWEEN(5, 1, 10)",
        True,
    ),
)


def _random(world: World, low: JsonValue = None, high: JsonValue = None) -> JsonValue:
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


def _rnd(world: World, number: int | float = 1) -> JsonValue:
    """RND(number). In classic BASIC the argument selects the seeding; it is ignored."""
    return world.random.random()


def _randomize(world: World, seed: int | float | None = None) -> JsonValue:
    world.random.seed(world.unique() if seed is None else seed)
    return None


def _pick(world: World, items: list[Any]) -> JsonValue:
    return items[world.random.randrange(len(items))] if items else None


def _shuffle(world: World, items: list[Any]) -> JsonValue:
    mixed = items.copy()
    world.random.shuffle(mixed)
    return mixed


def _sample(world: World, items: list[Any], count: int) -> JsonValue:
    return world.random.sample(items, max(0, min(count, len(items))))


CHANCE = (
    function(
        "RANDOM([low], [high])",
        (ANY, ANY),
        _random,
        "A random whole number from low to high, both included; with one number, from 1 to it; without arguments, a "
        "fraction below 1. For a list, a random item.",
        "RANDOM(6, 6)",
        6,
        fewest=0,
        world=True,
    ),
    function(
        "RND([any])", (NUMBER,), _rnd, "A random fraction from 0 to below 1.", "INT(RND())", 0, fewest=0, world=True
    ),
    function(
        "RANDOMIZE([seed])",
        (NUMBER,),
        _randomize,
        "Restarts the random numbers; with the same number, the same sequence follows.",
        "RANDOMIZE(1)",
        None,
        fewest=0,
        world=True,
    ),
    *with_aliases(function("PICK(list)", (LIST,), _pick, "A random item.", 'PICK(["a"])', "a", world=True), "choice"),
    function("SHUFFLE(list)", (LIST,), _shuffle, "The items in random order.", "SHUFFLE([1])", [1], world=True),
    function(
        "SAMPLE(list, count)",
        (LIST, WHOLE),
        _sample,
        "A number of random items, each at most once.",
        "COUNT(SAMPLE([1, 2, 3], 2))",
        2,
        world=True,
    ),
    *with_aliases(
        function("GUID()", (), lambda world: world.unique(), "A new unique id.", "LEN(GUID())", 36, world=True),
        "uuid",
        "newid",
    ),
)
