"""A minimal tokenizer and parsers of expressions and scripts, for tests of forms, headers and definitions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

from function_calls.basic.language.forms import Forms, form_of
from function_calls.basic.language.header import read_description, read_param
from function_calls.basic.language.tokens import Cursor, Inner, Kind, Token
from function_calls.basic.nodes import (
    Apply,
    Assign,
    At,
    Binary,
    Evaluate,
    Expression,
    Index,
    IsNull,
    ListOf,
    Literal,
    MapOf,
    Member,
    Name,
    Operator,
    Param,
    Return,
    Script,
    Statement,
    Target,
    Template,
    Unary,
    Unit,
)

_TOKEN = re.compile(
    r"(?P<space>[ \t]+)|(?P<line>\n)|(?P<block>«[^»]*»)|(?P<text>\"[^\"\n]*\")|(?P<number>\d+(\.\d+)?)"
    r"|(?P<word>[^\W\d]\w*\$?)"
    r"|(?P<symbol>#\{|<>|<=|>=|[()\[\]{},.:;=<>+\-*/\\^&])|(?P<other>.)"
)
_LEVELS: Sequence[tuple[str, ...]] = (
    ("OR",),
    ("AND",),
    ("=", "<>", "<", "<=", ">", ">=", "LIKE", "IN"),
    ("+", "-", "&"),
    ("*", "/", "MOD"),
)
_MOST_DEEP = 30


def small_tokens(source: str) -> list[Token]:
    """Tokens of `source`; a block is written «…»."""
    tokens: list[Token] = []
    line, begin = 1, 0
    for match in _TOKEN.finditer(source):
        kind, text, at = str(match.lastgroup), match.group(), At(line, match.start() - begin + 1)
        if kind == "line":
            tokens.append(Token(Kind.LINE, text, None, at))
            line, begin = line + 1, match.end()
        elif kind in ("text", "block"):
            tokens.append(Token(Kind[kind.upper()], text, _parts(text[1:-1], at), at))
        elif kind == "number":
            tokens.append(Token(Kind.NUMBER, text, float(text) if "." in text else int(text), at))
        elif kind == "word":
            tokens.append(Token(Kind.WORD, text.rstrip("$"), text.rstrip("$").upper(), at))
        elif kind in ("symbol", "other"):
            tokens.append(Token(Kind.SYMBOL, text, None, at))
    return [*tokens, Token(Kind.END, "", None, At(line, len(source) - begin + 1))]


def _parts(text: str, at: At) -> tuple[str | Inner, ...]:
    found = re.split(r"\$\{([^}]*)\}", text)
    return tuple(Inner(one, at) if index % 2 else one for index, one in enumerate(found) if one or index % 2)


class SmallExpressions:
    """Parses expressions, including keywords."""

    def __init__(self, forms: Forms | None = None) -> None:
        self.forms = forms or Forms([])
        self._depth = 0

    def expression(self, cursor: Cursor) -> Expression:
        self._depth += 1
        try:
            if self._depth > _MOST_DEEP:
                cursor.fail("too deep")
            return self._level(cursor, 0)
        finally:
            self._depth -= 1

    def operand(self, cursor: Cursor) -> Expression:
        return self._single(cursor)

    def target(self, cursor: Cursor) -> Target:
        if cursor.now.kind is not Kind.WORD:
            cursor.fail("a variable is missing")
        return cast(Target, self._behind(cursor, Name(cursor.now.at, cursor.take().text.lower())))

    def text(self, token: Token) -> Expression:
        parts = cast("tuple[str | Inner, ...]", token.value)
        if all(isinstance(part, str) for part in parts):
            return Literal(token.at, "".join(cast("tuple[str, ...]", parts)))
        return Template(
            token.at,
            tuple(
                Literal(token.at, one) if isinstance(one, str) else self.expression(Cursor(small_tokens(one.source)))
                for one in parts
            ),
        )

    def _level(self, cursor: Cursor, level: int) -> Expression:
        if level == len(_LEVELS):
            return self._single(cursor)
        left = self._level(cursor, level + 1)
        while True:
            token = cursor.now
            if level == 2 and cursor.words("IS"):
                negated = cursor.words("NOT")
                if not cursor.words("NULL"):
                    cursor.fail("NULL is missing")
                left = IsNull(token.at, left, negated)
                continue
            written = token.value if token.kind is Kind.WORD else token.text if token.kind is Kind.SYMBOL else ""
            if written not in _LEVELS[level]:
                return left
            cursor.take()
            left = Binary(token.at, cast(Operator, str(written).lower()), left, self._level(cursor, level + 1))

    def _single(self, cursor: Cursor) -> Expression:
        token = cursor.now
        if cursor.words("NOT"):
            return Unary(token.at, "not", self._level(cursor, 2))
        if cursor.symbol("-"):
            return Unary(token.at, "-", self._single(cursor))
        if token.kind is Kind.NUMBER:
            return Literal(token.at, cursor.take().value)
        if token.kind is Kind.TEXT:
            return self.text(cursor.take())
        if cursor.symbol("("):
            inner = self.expression(cursor)
            cursor.expect(")", "an expression")
            return self._behind(cursor, inner)
        if cursor.symbol("["):
            return ListOf(token.at, tuple(self._items(cursor, "]")))
        if cursor.symbol("{", "#{"):
            return self._map(cursor, token.at)
        if token.kind is not Kind.WORD or token.value in ("THEN", "ELSE", "AND", "OR"):
            cursor.fail("expected a value")
        return self._word(cursor)

    def _word(self, cursor: Cursor) -> Expression:
        found = self.forms.match(cursor, self, inside=True)
        if found is not None:
            return self._behind(cursor, found.keyword_call)
        token = cursor.take()
        if token.value in ("NULL", "TRUE", "FALSE"):
            return Literal(token.at, {"NULL": None, "TRUE": True, "FALSE": False}[token.value])
        if cursor.symbol("("):
            return self._behind(cursor, Apply(token.at, token.text.lower(), tuple(self._items(cursor, ")"))))
        return self._behind(cursor, Name(token.at, token.text.lower()))

    def _items(self, cursor: Cursor, closed: str) -> list[Expression]:
        items: list[Expression] = []
        while not cursor.symbol(closed):
            if items and not cursor.symbol(","):
                cursor.fail(f"`{closed}` is missing")
            items.append(self.expression(cursor))
        return items

    def _map(self, cursor: Cursor, at: At) -> Expression:
        entries: list[tuple[str, Expression]] = []
        while not cursor.symbol("}"):
            if entries and not cursor.symbol(","):
                cursor.fail("expected `}`")
            key = cursor.take().text.strip('"')
            cursor.expect(":", "a key")
            entries.append((key, self.expression(cursor)))
        return MapOf(at, tuple(entries))

    def _behind(self, cursor: Cursor, of: Expression) -> Expression:
        while True:
            at = cursor.now.at
            if cursor.symbol("."):
                if cursor.now.kind is not Kind.WORD:
                    cursor.fail("a name is missing")
                of = Member(at, of, cursor.take().text)
            elif cursor.symbol("["):
                of = Index(at, of, self.expression(cursor))
                cursor.expect("]", "an index")
            else:
                return of


def small_script(text: str) -> Script:
    """A script of PARAM, DESCRIPTION, comments with `#`, TALK, assignments and RETURN. A header after a RETURN starts a
    new unit."""
    comments, lines = _without_comments(text)
    units: list[Unit] = []
    draft = _Draft()
    cursor, read = Cursor(small_tokens("\n".join(lines))), SmallExpressions(Forms([form_of("TALK {text}")]))
    while cursor.now.kind is not Kind.END:
        if cursor.now.kind is Kind.LINE:
            cursor.take()
            continue
        if cursor.is_at("PARAM") or cursor.is_at("DESCRIPTION"):
            if draft.body and isinstance(draft.body[-1], Return):
                units.append(draft.unit(comments))
                draft = _Draft(begins=cursor.now.at.line)
            if cursor.is_at("PARAM"):
                draft.params.append(read_param(cursor, read))
            else:
                draft.description, draft.description_at = read_description(cursor)
        else:
            draft.body.append(_statement(cursor, read))
    return Script((*units, draft.unit(comments)), ())


def _without_comments(text: str) -> tuple[dict[int, str], list[str]]:
    lines = text.splitlines()
    comments = {number: line.lstrip("# ") for number, line in enumerate(lines, 1) if line.startswith("#")}
    return comments, ["" if line.startswith("#") else line for line in lines]


class _Draft:
    """A unit during parsing."""

    def __init__(self, begins: int = 1) -> None:
        self.begins = begins
        self.params: list[Param] = []
        self.description = ""
        self.description_at: At | None = None
        self.body: list[Statement] = []

    def unit(self, comments: dict[int, str]) -> Unit:
        places = [one.at.line for one in (*self.params, *self.body)]
        first = min([*places, *([self.description_at.line] if self.description_at else [])], default=10_000)
        comment = "\n".join(text for line, text in comments.items() if line < first)
        at = At(self.begins, 1)
        return Unit(at, tuple(self.params), self.description, self.description_at, comment, tuple(self.body))


def _statement(cursor: Cursor, read: SmallExpressions) -> Statement:
    at = cursor.now.at
    if cursor.words("RETURN"):
        return Return(at, None if cursor.is_line_end else read.expression(cursor))
    if cursor.ahead().text == "=" or cursor.ahead().text == "[":
        target = read.target(cursor)
        cursor.expect("=", "a variable")
        return Assign(at, target, read.expression(cursor))
    keyword = read.forms.match(cursor, read, inside=False)
    return Evaluate(at, keyword.keyword_call if keyword is not None else read.expression(cursor))
