"""Parser of the script header: PARAM, RETURNS, DESCRIPTION and META. `tool_definition.py` interprets the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn, cast

from function_calls.basic.codes import Code, ScriptError
from function_calls.basic.language.form_parts import ExpressionParser
from function_calls.basic.language.param_types import type_named
from function_calls.basic.language.tokens import Cursor, Inner, Kind, Token
from function_calls.basic.nodes import At, Expression, ListOf, Literal, MapOf, Param, Unary
from services.refs import JsonValue

_CLAUSES = frozenset({"AS", "LIKE", "DESCRIPTION", "OPTIONAL", "REQUIRED", "DEFAULT", "ENUM"})
_CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None}


def read_param(cursor: Cursor, read: ExpressionParser) -> Param:
    """Parse the PARAM or RETURNS at the cursor, up to the end of its line. Raises ScriptError (BAD_PARAM)."""
    return _ParamReader(cursor, read).param()


def read_description(cursor: Cursor) -> tuple[str, At]:
    """Parse the DESCRIPTION at the cursor, up to the end of its line. Returns its text, possibly empty, and its
    position. Raises ScriptError (BAD_PARAM)."""
    at = cursor.take().at
    text = "" if cursor.is_line_end else _described(cursor)
    if not cursor.is_line_end:
        cursor.fail(
            f'expected the end of the line, {cursor.found()}; put the whole text in quotes: DESCRIPTION "…"',
            Code.BAD_PARAM,
        )
    return text, at


def read_metadata(cursor: Cursor, read: ExpressionParser) -> tuple[str, JsonValue]:
    """Parse the META at the cursor: a name that begins with `x-`, and a literal value. Raises ScriptError."""
    cursor.take()
    tokens = _touching(cursor)
    name = _text_of(tokens).lower()
    if not name.startswith("x-") or name.endswith("-"):
        cursor.fail('expected a name that begins with `x-`; write META x-team "sales"', Code.BAD_PARAM)
    cursor.index += len(tokens)
    return name, _ParamReader(cursor, read, name="META").value_after(name).value


@dataclass(frozen=True, slots=True)
class _Written:
    """A literal value, with its source for unquoted values."""

    value: JsonValue
    raw: str

    def of(self, type_name: str) -> JsonValue:
        """The value; for text types a number is returned as typed: `01234`, `1.50`."""
        kind = type_named(type_name)
        is_number = isinstance(self.value, int | float) and not isinstance(self.value, bool)
        return self.raw if is_number and kind is not None and type_name and kind.is_text else self.value


@dataclass(slots=True)
class _ParamReader:
    """Parser of one PARAM, with clauses in any order."""

    cursor: Cursor
    read: ExpressionParser
    name: str = ""
    seen: set[str] = field(default_factory=set)
    type: str = ""
    type_at: At | None = None
    choices: list[_Written] = field(default_factory=list)
    like: _Written | None = None
    default: _Written | None = None
    description: str = ""

    def param(self) -> Param:
        at = self.cursor.take().at
        self._read_name()
        while not self.cursor.is_line_end:
            token = self.cursor.now
            word = str(token.value) if token.kind is Kind.WORD else ""
            if word not in _CLAUSES:
                self._bad(f"PARAM {self.name}: expected a clause such as DESCRIPTION, {self.cursor.found()}")
            if word in self.seen:
                self._bad(f"PARAM {self.name}: duplicate {word}")
            self.seen.add(word)
            self.cursor.take()
            self._read_clause(word)
        if {"OPTIONAL", "REQUIRED"} <= self.seen:
            self._bad(f"PARAM {self.name} cannot be both OPTIONAL and REQUIRED")
        return Param(
            at,
            self.name,
            self.type,
            self.type_at,
            choices=tuple(one.of(self.type) for one in self.choices),
            like=self.like.of(self.type) if self.like else None,
            has_like=self.like is not None,
            description=self.description,
            optional="OPTIONAL" in self.seen,
            default=self.default.of(self.type) if self.default else None,
            has_default=self.default is not None,
        )

    def _read_clause(self, word: str) -> None:
        match word:
            case "AS":
                self._read_type()
            case "LIKE":
                self.like = self.value_after("LIKE")
            case "DEFAULT":
                self.cursor.symbol("=")
                self.default = self.value_after("DEFAULT")
            case "ENUM":
                self._read_choices("ENUM")
            case "DESCRIPTION":
                self._read_description()

    def _read_name(self) -> None:
        cursor, token = self.cursor, self.cursor.now
        if cursor.is_line_end:
            self._bad(f"expected a name after PARAM, {cursor.found()}")
        if token.kind is not Kind.WORD:
            joined = _text_of(_touching(cursor))
            self._bad(
                f"`{joined}` is not a valid name: names begin with a letter and consist of letters, digits and `_`",
                token.at,
            )
        after = cursor.ahead()
        if token.value in ("AS", "LIKE") or (token.value in _CLAUSES and after.kind is Kind.TEXT):
            self._bad(f"expected a name after PARAM, found {token.value}")
        self.name = token.text
        if after.at == token.end and after.kind not in (Kind.LINE, Kind.END, Kind.TEXT):
            joined = _text_of(_touching(cursor))
            self._bad(f"`{joined}` is not a valid name: names consist of letters, digits and `_`", token.at)
        cursor.take()

    def _read_type(self) -> None:
        cursor, token = self.cursor, self.cursor.now
        self.type_at = token.at
        if token.kind is Kind.WORD and token.value == "ENUM":
            return
        if token.kind is Kind.TEXT or cursor.is_symbol("["):
            self._read_literals()
        elif token.kind is not Kind.WORD or token.value in _CLAUSES:
            self._bad(f"PARAM {self.name}: expected a type after AS, {cursor.found()}")
        else:
            self.type = cursor.take().text.lower()

    def _read_literals(self) -> None:
        """Parse `AS "easy", "hard"`. A single text with spaces is the description instead of a choice."""
        self._read_choices("AS")
        only = self.choices[0].value if len(self.choices) == 1 else None
        if isinstance(only, str) and len(only.split()) > 1:
            self.choices, self.description = [], only

    def _read_description(self) -> None:
        if self.cursor.is_line_end or (self.cursor.now.kind is Kind.WORD and self.cursor.now.value in _CLAUSES):
            self._bad(f"PARAM {self.name}: expected a text after DESCRIPTION, {self.cursor.found()}")
        self.description = _described(self.cursor)

    def _read_choices(self, behind: str) -> None:
        if self.choices:
            self._bad(f"PARAM {self.name}: the choices are listed twice")
        cursor = self.cursor
        closed = "]" if cursor.symbol("[") else ")" if cursor.symbol("(") else ""
        while True:
            if cursor.is_symbol(",", "]", ")"):
                self._bad(f"PARAM {self.name}: expected a choice, {cursor.found()}")
            self.choices.append(self.value_after(behind, *(",", closed)))
            if not cursor.symbol(","):
                break
        if closed and not cursor.symbol(closed):
            self._bad(f"PARAM {self.name}: expected `{closed}` after the choices, {cursor.found()}")

    def value_after(self, behind: str, *ends: str) -> _Written:
        """Parse a value of the header: text, number, boolean, list, map, or unquoted words up to the next clause or one
        of `ends`. Raises if there is no value after the word `behind`, or it is not constant."""
        cursor, token = self.cursor, self.cursor.now
        if token.kind is Kind.TEXT:
            self._check_quotes(token, behind)
            return _Written(_joined_texts(cursor), "")
        if cursor.is_symbol("[", "{", "#{"):
            try:
                return _Written(self._constant(self.read.operand(cursor)), "")
            except ScriptError as error:
                if error.fault.code is Code.TOO_DEEP:
                    raise
                raise self._fault(error.fault.message, error.fault.at) from None
        found: list[Token] = []
        while not (cursor.is_line_end or (cursor.now.kind is Kind.WORD and cursor.now.value in _CLAUSES)):
            if cursor.is_symbol(*ends):
                break
            found.append(cursor.take())
        if not found:
            self._bad(f"PARAM {self.name}: expected a value after {behind}, {cursor.found()}")
        raw = _text_of(found)
        return _Written(_plain(found, raw), raw)

    def _check_quotes(self, token: Token, behind: str) -> None:
        """Raise ScriptError for `Ann"` with a missing first quote, which would be read as unquoted words."""
        if token.text.endswith('"') and token.text.count('"') == 1 and len(token.text) > 1:
            self._bad(f"PARAM {self.name}: missing quote before {token.text} after {behind}", token.at)

    def _constant(self, expression: Expression) -> JsonValue:
        if isinstance(expression, Literal):
            return expression.value
        if isinstance(expression, ListOf):
            return [self._constant(one) for one in expression.items]
        if isinstance(expression, MapOf):
            return {key: self._constant(one) for key, one in expression.entries}
        if isinstance(expression, Unary) and expression.operator == "-":
            value = self._constant(expression.operand)
            if isinstance(value, int | float):
                return -value
        raise ScriptError(expression.at, Code.SYNTAX, f"PARAM {self.name} accepts only literal values")

    def _bad(self, why: str, at: At | None = None) -> NoReturn:
        raise self._fault(why, at)

    def _fault(self, why: str, at: At | None = None) -> ScriptError:
        name = self.name or "city"
        right = f'write PARAM {name} AS string LIKE "an example" DESCRIPTION "what it is"'
        return ScriptError(at or self.cursor.now.at, Code.BAD_PARAM, f"{why}; {right}")


def _plain(found: Sequence[Token], raw: str) -> JsonValue:
    """Value of unquoted tokens: a number, perhaps with a sign, a constant such as TRUE, or else the text `raw`."""
    first, last = found[0], found[-1]
    if len(found) == 1 and first.kind is Kind.NUMBER:
        return first.value
    if len(found) == 1 and first.kind is Kind.WORD and first.value in _CONSTANTS:
        return _CONSTANTS[first.value]
    if len(found) == 2 and first.text in ("-", "+") and last.kind is Kind.NUMBER:
        return -last.value if first.text == "-" else last.value
    return raw


def _described(cursor: Cursor) -> str:
    """Parse the text of a DESCRIPTION, quoted or to the end of the line; whitespace is collapsed."""
    if cursor.now.kind in (Kind.TEXT, Kind.BLOCK):
        text = _joined_texts(cursor)
    else:
        found: list[Token] = []
        while not cursor.is_line_end:
            found.append(cursor.take())
        text = _text_of(found)
    return " ".join(text.split())


def _joined_texts(cursor: Cursor) -> str:
    """Parse `"a"` or `"a" + "b"`. `${…}` is kept as text, because the header has no variables."""
    text = _literal(cursor.take())
    while cursor.is_symbol("+", "&") and cursor.ahead().kind is Kind.TEXT:
        cursor.take()
        text += _literal(cursor.take())
    return text


def _literal(token: Token) -> str:
    parts = cast("tuple[str | Inner, ...]", token.value)
    return "".join(part if isinstance(part, str) else f"${{{part.source}}}" for part in parts)


def _touching(cursor: Cursor) -> list[Token]:
    """Tokens from the cursor on that are not separated by spaces."""
    found = [cursor.now]
    while True:
        token = cursor.ahead(len(found))
        if token.kind in (Kind.LINE, Kind.END) or token.at != found[-1].end:
            return found
        found.append(token)


def _text_of(tokens: Sequence[Token]) -> str:
    """Source of the tokens, with the original spaces."""
    text, ends = "", None
    for token in tokens:
        gap = token.at.column - ends.column if ends is not None and ends.line == token.at.line else 1
        text += " " * max(gap, 0) + token.text if ends is not None else token.text
        ends = token.end
    return text
