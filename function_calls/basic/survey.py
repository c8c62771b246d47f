"""What a script names, found before it is read: its SUBs and FUNCTIONs, which may be called before they stand there,
and its variables, which keywords and functions of the same name must not hide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from function_calls.basic.tokens import Kind, Token

_WORD, _NUMBER, _SYMBOL, _LINE = Kind.WORD, Kind.NUMBER, Kind.SYMBOL, Kind.LINE
_DECLARES = frozenset(["EACH", "DIM", "REDIM", "PRESERVE", "PARAM"])
_GIVES = frozenset(["FOR", "HEAR", "INPUT", "GOTO", "GOSUB"]) | _DECLARES
"""What stands behind these receives a value, or is gone to; behind FOR, HEAR and INPUT only where no other words
follow."""
_BEFORE_ASSIGNMENT = frozenset(["THEN", "ELSE", "SET", "LET", "CONST"])
_OPENERS = frozenset(("(", "[", "{", "#{"))
_CLOSERS = frozenset((")", "]", "}"))
CHANGES = frozenset(["+", "-", "*", "/", "&", "\\"])
"""What may stand before the `=` of an assignment: `total += 1`."""


class Survey(NamedTuple):
    """All in lower case."""

    variables: frozenset[str]
    definitions: dict[str, int]
    """SUBs and FUNCTIONs, with how many parameters each has; the first one counts where two have one name."""
    goals: frozenset[str]
    """Names of labels that something goes to."""


def survey(tokens: Sequence[Token]) -> Survey:
    """Look through a script."""
    looking = _Looking(tokens)
    looking.run()
    return Survey(frozenset(looking.variables), looking.definitions, frozenset(looking.goals))


class _Looking:
    __slots__ = ("_tokens", "_withs", "definitions", "goals", "variables")

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._withs = 0
        """How many WITHs are open: what stands before `=` in there is a key."""
        self.variables: set[str] = set()
        self.definitions: dict[str, int] = {}
        self.goals: set[str] = set()

    def run(self) -> None:
        begins = True
        following = self._tokens[0]
        for index in range(1, len(self._tokens)):
            token, following = following, self._tokens[index]
            kind = token.kind
            if kind is _WORD:
                if begins:
                    self._begins(token, following, index)
                if token.value in _GIVES and following.kind is _WORD:
                    self._gives(token, following, index)
                begins = token.value in _BEFORE_ASSIGNMENT
            else:
                begins = kind is _LINE or (begins and kind is _NUMBER)

    def _begins(self, token: Token, following: Token, index: int) -> None:
        """A statement begins with these two; `index` is that of the second one."""
        value = token.value
        if following.kind is _SYMBOL:
            if not self._withs and (following.text == "=" or is_assignment(self._tokens, index - 1)):
                self.variables.add(token.text.lower())
        elif value == "ENDWITH":
            self._withs -= 1
        elif following.kind is not _WORD:
            return
        elif value == "WITH":
            self._withs += 1
            self.variables.add(following.text.lower())
        elif value == "END":
            self._withs -= following.value == "WITH"
        elif value in ("SUB", "FUNCTION"):
            names = parameters_at(self._tokens, index + 1)
            self.definitions.setdefault(following.text.lower(), len(names))
            self.variables.update(names)

    def _gives(self, token: Token, following: Token, index: int) -> None:
        if token.value in ("GOTO", "GOSUB"):
            self.goals.add(following.text.lower())
        elif following.value not in _DECLARES:
            behind = self._tokens[index + 1]
            if token.value in _DECLARES or behind.kind is not _WORD or behind.value in ("IN", "AS"):
                self.variables.add(following.text.lower())


def parameters_at(tokens: Sequence[Token], index: int) -> tuple[str, ...]:
    """The names between the parentheses at `index`, as far as these are names; none without parentheses."""
    names: list[str] = []
    if not _is(tokens[index], "("):
        return ()
    index += 1
    expects = True
    while tokens[index].kind in (Kind.WORD, Kind.SYMBOL) and not _is(tokens[index], ")"):
        token = tokens[index]
        if token.kind is Kind.WORD and expects and token.value not in ("BYVAL", "BYREF"):
            names.append(token.text.lower())
            expects = False
        elif token.text == ",":
            expects = True
        index += 1
    return tuple(names)


def is_assignment(tokens: Sequence[Token], index: int) -> bool:
    """Whether an assignment begins with the word at `index`: behind it and what selects a part of it stands `=`."""
    index += 1
    while True:
        token = tokens[index]
        if token.kind is not Kind.SYMBOL:
            return False
        if token.text == "=":
            return True
        if token.text in CHANGES:
            following = tokens[index + 1]
            return _is(following, "=") and following.at == (token.at.line, token.at.column + 1)
        if token.text == "." and tokens[index + 1].kind is Kind.WORD:
            index += 2
        elif token.text in ("(", "["):
            index = _behind(tokens, index)
        else:
            return False


def _behind(tokens: Sequence[Token], index: int) -> int:
    """Where it goes on behind the bracket at `index`; at the end of its statement if it is not closed."""
    depth = 0
    while tokens[index].kind not in (Kind.LINE, Kind.END):
        token = tokens[index]
        if token.kind is Kind.SYMBOL:
            if token.text in _OPENERS:
                depth += 1
            elif token.text in _CLOSERS:
                depth -= 1
                if not depth:
                    return index + 1
        index += 1
    return index


def _is(token: Token, symbol: str) -> bool:
    return token.kind is Kind.SYMBOL and token.text == symbol
