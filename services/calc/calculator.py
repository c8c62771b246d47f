"""Calculator for expressions as people write them: `15% of 80`, `2^10`, `3 plus 4`, `80的15%`, `sqrt(2)`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cache

from config.word_tables import word_tables
from services.calc.units import (
    CONSTANTS,
    Number,
    TooLarge,
    Undefined,
    bounded,
    cosine,
    cube_root,
    exponential,
    factorial,
    logarithm,
    rounded_to,
    sine,
    square_root,
    tangent,
)

MOST_CHARACTERS = 500
NUMBER = "number"
NAME = "name"
VERB = "verb"
END = "end"


class Problem(StrEnum):
    """Reason why an expression is invalid or has no value."""

    EMPTY = "empty"
    TOO_LONG = "too_long"
    TOO_DEEP = "too_deep"
    UNEXPECTED = "unexpected"
    UNFINISHED = "unfinished"
    UNKNOWN = "unknown"
    WRONG_ARGUMENTS = "wrong_arguments"
    DIVISION_BY_ZERO = "division_by_zero"
    TOO_LARGE = "too_large"
    UNDEFINED = "undefined"


class BadExpression(ValueError):
    """An expression without a value. `position` counts characters from 1; `found` is the text at that position."""

    def __init__(self, problem: Problem, position: int, found: str = "") -> None:
        super().__init__(f"{problem} at {position}")
        self.problem = problem
        self.position = position
        self.found = found


@dataclass(frozen=True, slots=True)
class Token:
    """A number, a name or a sign; `kind` of a sign is the sign."""

    kind: str
    position: int
    text: str
    value: Fraction = Fraction(0)
    name: str = ""
    """Meaning of a NAME or a VERB."""


_NAMES = frozenset(
    {"sqrt", "cbrt", "abs", "round", "floor", "ceil", "min", "max", "sin", "cos", "tan"}
    | {"log", "log2", "log10", "ln", "exp", "pi", "e"}
)
_SIGNS: Mapping[str, str] = {
    **{sign: sign for sign in "+-*/^%!(),"},
    **dict.fromkeys("×·⋅∗＊", "*"),
    **dict.fromkeys("÷∕", "/"),
    **dict.fromkeys("−–—", "-"),
    **dict.fromkeys("√", "sqrt"),
    "π": "pi",
    "²": "squared",
    "³": "cubed",
    "°": "degrees",
    "[": "(",
    "]": ")",
    "、": ",",
}
_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_TRAILING = re.compile(r"(?:[=?.!\s。]|\bequals\b|等于多少|等于几|等于|是多少)+$")
_DIGITS = r"\d+(?:\.\d+)?|\.\d+"
_NUMBER = re.compile(rf"(?:\d{{1,3}}(?:[,_']\d{{3}})+(?![\d])(?:\.\d+)?|{_DIGITS})(?:e[+-]?\d{{1,4}}(?![a-z\d]))?")
_NUMBER_IN_CALL = re.compile(rf"(?:{_DIGITS})(?:e[+-]?\d{{1,4}}(?![a-z\d]))?")
_POWER = re.compile(r"的(?=\s*-?\d+\s*次方)")
_NAME = re.compile(r"[a-z]+(?:10|2)?")


@cache
def _spellings() -> Mapping[str, str]:
    """Signs and functions by the words for them. 次方 only ends a power: its operator is 的."""
    lines = (line.split(": ") for line in word_tables("calculator")["spellings"])
    return {word: meaning for meaning, words in lines for word in words.split("|")} | {"次方": ""}


@cache
def _words() -> re.Pattern[str]:
    return re.compile(
        "|".join(
            rf"{re.escape(word)}(?![a-z])" if word[-1].isascii() and word[-1].isalpha() else re.escape(word)
            for word in sorted(_spellings(), key=len, reverse=True)
        )
    )


def tokens_of(text: str) -> list[Token]:
    """The tokens of `text`, an END token last. Raises BadExpression if it is empty, longer than 500 characters or has
    an unknown word."""
    if len(text) > MOST_CHARACTERS:
        raise BadExpression(Problem.TOO_LONG, MOST_CHARACTERS + 1)
    lowered = "".join(sign.lower() if len(sign.lower()) == 1 else sign for sign in text.translate(_FULL_WIDTH))
    lowered = lowered[: len(lowered) - _length_of_tail(lowered)]
    if not lowered.strip():
        raise BadExpression(Problem.EMPTY, 1)
    found: list[Token] = []
    open_calls: list[bool] = []
    at = 0
    while at < len(lowered):
        if lowered[at].isspace():
            at += 1
            continue
        token = _token(lowered, at, in_call=any(open_calls))
        if token.kind == "(":
            open_calls.append(bool(found) and found[-1].kind == NAME)
        elif token.kind == ")" and open_calls:
            open_calls.pop()
        if token.kind:
            found.append(token)
        at += len(token.text)
    return [*found, Token(END, len(lowered) + 1, "")]


def _length_of_tail(text: str) -> int:
    """Length of a trailing `= ?` or the like; an exclamation mark after a digit is a factorial."""
    tail = _TRAILING.search(text)
    if not tail:
        return 0
    factorial = re.match(r"!", tail[0]) and text[: tail.start()].rstrip()[-1:].isdigit()
    return len(tail[0]) - (1 if factorial else 0)


def _token(text: str, at: int, *, in_call: bool) -> Token:
    """The token at index `at`. Inside a call a comma separates arguments, not digits. Raises BadExpression for an
    unknown word or sign."""
    number = (_NUMBER_IN_CALL if in_call else _NUMBER).match(text, at)
    if number:
        return Token(NUMBER, at + 1, number[0], Fraction(re.sub("[,_']", "", number[0])))
    if _POWER.match(text, at):
        return Token("^", at + 1, "的")
    name = _NAME.match(text, at)
    if name and name[0] in _NAMES:
        return Token(NAME, at + 1, name[0], name=name[0])
    spelling = _words().match(text, at)
    if spelling:
        return _sign(_spellings()[spelling[0]], at, spelling[0])
    if text[at] in _SIGNS:
        return _sign(_SIGNS[text[at]], at, text[at])
    raise BadExpression(Problem.UNKNOWN, at + 1, name[0] if name else text[at])


def _sign(meaning: str, at: int, text: str) -> Token:
    if meaning in _NAMES:
        return Token(NAME, at + 1, text, name=meaning)
    if meaning.startswith(VERB):
        return Token(VERB, at + 1, text, name=meaning.removeprefix("verb "))
    return Token(meaning, at + 1, text)


__all__ = ["BadExpression", "Number", "Problem", "calculate"]

_DEEPEST = 50
_ONE, _TWO, _TEN = Number(Fraction(1)), Number(Fraction(2)), Number(Fraction(10))
_HUNDRED = Number(Fraction(100))
_HALF_TURN = Number(Fraction(180))
_FACTORS: Mapping[str, Callable[[Number, Number], Number]] = {
    "*": Number.__mul__,
    "/": Number.__truediv__,
    "//": Number.__floordiv__,
    "mod": Number.__mod__,
    "of": Number.__mul__,
    "off": lambda share, whole: whole - share * whole,
}
_POSTFIX: Mapping[str, Callable[[Number], Number]] = {
    "%": lambda number: number / _HUNDRED,
    "!": factorial,
    "squared": lambda number: number * number,
    "cubed": lambda number: number * number * number,
    "rooted": square_root,
    "degrees": lambda number: number * CONSTANTS["pi"] / _HALF_TURN,
}
_OF_ONE: Mapping[str, Callable[..., Number]] = {
    "sqrt": square_root,
    "cbrt": cube_root,
    "abs": lambda number: Number(abs(number.value), number.exact),
    "floor": lambda number: number // _ONE,
    "ceil": lambda number: -(-number // _ONE),
    "round": lambda number: rounded_to(number, Number(Fraction(0))),
    "sin": sine,
    "cos": cosine,
    "tan": tangent,
    "ln": logarithm,
    "log": lambda number: logarithm(number, _TEN),
    "log10": lambda number: logarithm(number, _TEN),
    "log2": lambda number: logarithm(number, _TWO),
    "exp": exponential,
}
_OF_TWO: Mapping[str, Callable[..., Number]] = {"round": rounded_to, "log": logarithm}
_OF_MANY: Mapping[str, Callable[..., Number]] = {
    "min": lambda *numbers: min(numbers, key=lambda number: number.value),
    "max": lambda *numbers: max(numbers, key=lambda number: number.value),
}
_AND: Mapping[str, str] = {"add": "+", "multiply": "*"}


def calculate(expression: str) -> Number:
    """The value of `expression`. As on a pocket calculator, a percentage after plus or minus refers to the left operand
    (`80 + 10%` is 88). Angles are in radians unless in degrees; `log` has base 10. Raises BadExpression if it is
    invalid or has no value."""
    return _Parser(tokens_of(expression)).whole()


class _Parser:
    """Precedence climbing parser that computes values as it parses."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._and = ""
        """The operator meant by `and`."""

    def whole(self) -> Number:
        verb = self._take(VERB)
        if verb is None:
            value = self._sum()
        elif verb.name == "subtract":
            taken = self._sum()
            self._need("from")
            value = _computed(verb, Number.__sub__, self._sum(), taken)
        else:
            self._and = _AND.get(verb.name, "")
            value = self._sum()
            if verb.name == "divide" or self._now.kind == "by":
                value = self._divided_or_multiplied(verb, value)
        if self._now.kind != END:
            raise self._unexpected()
        return value

    @property
    def _now(self) -> Token:
        return self._tokens[self._at]

    def _divided_or_multiplied(self, verb: Token, value: Number) -> Number:
        """Value of the rest of `divide 8 by 2` or `multiply 8 by 2` after the first operand. Raises BadExpression."""
        by = self._need("by")
        other = self._sum()
        operate = Number.__mul__ if verb.name == "multiply" else Number.__truediv__
        return _computed(by, operate, value, other)

    def _sum(self) -> Number:
        value, _ = self._product()
        while True:
            sign = self._now
            kind = self._and if sign.kind == "and" else sign.kind
            if kind not in ("+", "-"):
                return value
            self._at += 1
            other, is_percentage = self._product()
            if is_percentage:
                other = _computed(sign, Number.__mul__, value, other)
            value = _computed(sign, Number.__add__ if kind == "+" else Number.__sub__, value, other)

    def _product(self) -> tuple[Number, bool]:
        """Value of a product, and whether it is a plain percentage (`10%`). Raises BadExpression."""
        value, is_percentage = self._signed()
        while True:
            sign = self._now
            kind = self._and if sign.kind == "and" else sign.kind
            if kind == "%" or kind in _FACTORS:
                self._at += 1
            elif kind in (NAME, "("):
                kind = "*"  # 2 pi, 3(4 + 5)
            else:
                return value, is_percentage
            other, _ = self._signed()
            operate = _FACTORS["mod" if kind == "%" else kind]
            value, is_percentage = _computed(sign, operate, value, other), False

    def _signed(self) -> tuple[Number, bool]:
        sign = self._now
        if sign.kind not in ("+", "-"):
            return self._power()
        self._at += 1
        with_depth = self._deeper(sign)
        value, _ = self._signed()
        self._depth = with_depth
        return (-value if sign.kind == "-" else value), False

    def _power(self) -> tuple[Number, bool]:
        value, is_percentage = self._with_postfixes()
        sign = self._take("^")
        if sign is None:
            return value, is_percentage
        depth = self._deeper(sign)
        exponent, _ = self._signed()
        self._depth = depth
        return _computed(sign, Number.__pow__, value, exponent), False

    def _with_postfixes(self) -> tuple[Number, bool]:
        value, is_percentage = self._atom()
        while self._now.kind in _POSTFIX and not self._is_remainder():
            sign = self._now
            self._at += 1
            value = _computed(sign, _POSTFIX[sign.kind], value)
            is_percentage = sign.kind == "%"
        return value, is_percentage

    def _is_remainder(self) -> bool:
        """Whether % is modulo (`17 % 5`) and not a percentage (`17 %`)."""
        return self._now.kind == "%" and self._tokens[self._at + 1].kind in (NUMBER, NAME, "(")

    def _atom(self) -> tuple[Number, bool]:
        token = self._now
        self._at += 1
        if token.kind == NUMBER:
            return _computed(token, lambda: bounded(token.value)), False
        if token.kind == "(":
            depth = self._deeper(token)
            value = self._sum()
            self._depth = depth
            self._need(")")
            return value, False
        if token.kind == NAME:
            return self._named(token), False
        if token.kind == "percent_of":
            value, _ = self._atom()
            return value / _HUNDRED, True
        self._at -= 1
        raise self._unexpected()

    def _named(self, token: Token) -> Number:
        if token.name in CONSTANTS:
            return CONSTANTS[token.name]
        depth = self._deeper(token)
        if self._take("("):
            arguments = [self._sum()]
            while self._take(","):
                arguments.append(self._sum())
            self._need(")")
        else:
            arguments = [self._power()[0]]  # sqrt 16, the square root of 16
        self._depth = depth
        return _computed(token, _function(token, len(arguments)), *arguments)

    def _take(self, kind: str) -> Token | None:
        token = self._now
        if token.kind != kind:
            return None
        self._at += 1
        return token

    def _need(self, kind: str) -> Token:
        token = self._take(kind)
        if token is None:
            raise self._unexpected()
        return token

    def _deeper(self, token: Token) -> int:
        """Increase the nesting depth. Returns the previous one, to be restored. Raises BadExpression above 50."""
        before = self._depth
        self._depth += 1
        if self._depth > _DEEPEST:
            raise BadExpression(Problem.TOO_DEEP, token.position, token.text)
        return before

    def _unexpected(self) -> BadExpression:
        token = self._now
        problem = Problem.UNFINISHED if token.kind == END else Problem.UNEXPECTED
        return BadExpression(problem, token.position, token.text)


def _function(token: Token, count: int) -> Callable[..., Number]:
    """The function that `token` names, for `count` arguments. Raises BadExpression for a wrong number of arguments."""
    if token.name in _OF_MANY:
        return _OF_MANY[token.name]
    found = {1: _OF_ONE, 2: _OF_TWO}.get(count, {}).get(token.name)
    if found is None:
        raise BadExpression(Problem.WRONG_ARGUMENTS, token.position, token.text)
    return found


def _computed(token: Token, operate: Callable[..., Number], *values: Number) -> Number:
    """The result of `operate`. Arithmetic errors become BadExpression at `token`."""
    try:
        return operate(*values)
    except ZeroDivisionError as error:
        raise BadExpression(Problem.DIVISION_BY_ZERO, token.position, token.text) from error
    except TooLarge as error:
        raise BadExpression(Problem.TOO_LARGE, token.position, token.text) from error
    except Undefined as error:
        raise BadExpression(Problem.UNDEFINED, token.position, token.text) from error
