"""Expressions in signs and in words, cut into tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

MOST_CHARACTERS = 500
NUMBER = "number"
NAME = "name"
VERB = "verb"
END = "end"


class Problem(StrEnum):
    """What is wrong with an expression."""

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
    """An expression that has no value. `position` counts characters from 1, `found` is what stands there."""

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
    """What a NAME or a VERB means."""


_NAMES = frozenset(
    {"sqrt", "cbrt", "abs", "round", "floor", "ceil", "min", "max", "sin", "cos", "tan"}
    | {"log", "log2", "log10", "ln", "exp", "pi", "e"}
)
_SPELLINGS: Mapping[str, str] = {
    "**": "^",
    "//": "//",
    "to the power of": "^",
    "multiplied by": "*",
    "divided by": "/",
    "the square root of": "sqrt",
    "square root of": "sqrt",
    "the cube root of": "cbrt",
    "cube root of": "cbrt",
    "the sum of": "verb add",
    "sum of": "verb add",
    "the product of": "verb multiply",
    "product of": "verb multiply",
    "multiply": "verb multiply",
    "subtract": "verb subtract",
    "divide": "verb divide",
    "add": "verb add",
    "percent": "%",
    "modulo": "mod",
    "factorial": "!",
    "squared": "squared",
    "cubed": "cubed",
    "degrees": "degrees",
    "degree": "degrees",
    "minus": "-",
    "times": "*",
    "plus": "+",
    "over": "/",
    "from": "from",
    "with": "by",
    "and": "and",
    "mod": "mod",
    "off": "off",
    "of": "of",
    "by": "by",
    "x": "*",
    "百分之": "percent_of",
    "平方根": "sqrt",
    "根号": "sqrt",
    "的平方根": "rooted",
    "的平方": "squared",
    "的立方": "cubed",
    "乘以": "*",
    "除以": "/",
    "加上": "+",
    "减去": "-",
    "次方": "",
    "乘": "*",
    "加": "+",
    "减": "-",
    "的": "of",
}
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
_WORDS = re.compile(
    "|".join(
        rf"{re.escape(word)}(?![a-z])" if word[-1].isascii() and word[-1].isalpha() else re.escape(word)
        for word in sorted(_SPELLINGS, key=len, reverse=True)
    )
)
_NAME = re.compile(r"[a-z]+(?:10|2)?")


def tokens_of(text: str) -> list[Token]:
    """The tokens of `text`, an END token last. Raises BadExpression."""
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
    """How much of `= ?` and the like stands at the end; an exclamation mark behind a digit is a factorial."""
    tail = _TRAILING.search(text)
    if not tail:
        return 0
    factorial = re.match(r"!", tail[0]) and text[: tail.start()].rstrip()[-1:].isdigit()
    return len(tail[0]) - (1 if factorial else 0)


def _token(text: str, at: int, *, in_call: bool) -> Token:
    """The token at index `at`. Inside a call a comma divides arguments instead of digits."""
    number = (_NUMBER_IN_CALL if in_call else _NUMBER).match(text, at)
    if number:
        return Token(NUMBER, at + 1, number[0], Fraction(re.sub("[,_']", "", number[0])))
    if _POWER.match(text, at):
        return Token("^", at + 1, "的")
    name = _NAME.match(text, at)
    if name and name[0] in _NAMES:
        return Token(NAME, at + 1, name[0], name=name[0])
    spelling = _WORDS.match(text, at)
    if spelling:
        return _sign(_SPELLINGS[spelling[0]], at, spelling[0])
    if text[at] in _SIGNS:
        return _sign(_SIGNS[text[at]], at, text[at])
    raise BadExpression(Problem.UNKNOWN, at + 1, name[0] if name else text[at])


def _sign(meaning: str, at: int, text: str) -> Token:
    if meaning in _NAMES:
        return Token(NAME, at + 1, text, name=meaning)
    if meaning.startswith(VERB):
        return Token(VERB, at + 1, text, name=meaning.removeprefix("verb "))
    return Token(meaning, at + 1, text)
