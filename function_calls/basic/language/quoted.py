"""Quoted texts with escapes and `${…}`, and continuation of statements on the next line."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from function_calls.basic.language.tokens import Inner, Kind, Token
from function_calls.basic.nodes import At
from services.patterns import lazy_pattern

_WAITING = frozenset([",", "+", "-", "*", "/", "\\", "^", "&", "=", "<>", "<", "<=", ">", ">=", "."])
_OF_VALUES = _WAITING - {","}
"""Operators after which `b = 2` on the next line is an assignment, not a comparison."""
_WAITING_WORDS = frozenset(("AND", "OR", "NOT", "MOD"))
_OPENING = frozenset(("(", "[", "{", "#{"))

_STATEMENT = lazy_pattern(
    r"""[ \t]*(?:
        (?:IF|ELSEIF|FOR|WHILE|SELECT|SWITCH|CASE|RETURN|SUB|FUNCTION|GOTO|GOSUB|THROW|WITH|DIM|LET|SET|PARAM|DESCRIPTION
          |TALK|HEAR|PRINT|SAVE|SEND|WAIT|CLEAR|BEGIN)
        [ \t]+(?!(?:AND|OR|MOD|IN|LIKE|IS|NOT)\b)[\w"'`]
      | END[ \t]+(?:IF|FOR|WHILE|SELECT|SWITCH|WITH|SUB|FUNCTION)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
"""Lines that are unmistakably a new statement."""
_ASSIGNMENT = lazy_pattern(r"[ \t]*\w[\w.]*[ \t]*=")
_ALONE = lazy_pattern(
    r"[ \t]*(?:NEXT(?:[ \t]+\w+)?|WEND|LOOP|ELSE|ENDIF|END|RETURN|EXIT|BREAK|CONTINUE|STOP)[ \t]*(?:$|'|//|#|:)",
    re.IGNORECASE | re.MULTILINE,
)
_CONTINUATION = lazy_pattern(
    r"""[ \t]*(?:
        [)\]},.:+\-*/\\^&=<>;] | != | (?:AND|OR|MOD|IN|LIKE|IS|NOT|TO|AS)\b     # cannot begin a statement
      | $ | ' | \#(?!\{) | REM\b                                                # a comment: the line after it decides
    )""",
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
_ENTRY = lazy_pattern(r"""[ \t]*(?:["'`\d\[{#(-]|\w+[ \t]*:)""")
"""Entry of a list or map; the comma before it is missing."""
_VALUE = lazy_pattern(r"""[ \t]*["'`\[{#]""")


_CODE = lazy_pattern(
    r"""[ \t]*(?:
        (?:IF|ELSE|ELSEIF|FOR|NEXT|DO|LOOP|WHILE|WEND|SELECT|SWITCH|CASE|RETURN|SUB|FUNCTION|CALL|GOTO|EXIT|WITH|END|PARAM
          |DESCRIPTION|REM|TALK|HEAR|PRINT|SAVE|SEND|SET|LET|DIM|GET|POST|FIND|WAIT|USE|ADD|CLEAR|BEGIN)\b
      | (?i:TALK|PRINT|SAVE|SEND(?:[ \t]+\w+)?|RETURN|DESCRIPTION|CASE|ELSEIF|GET|POST|FIND)[ \t]+["'`]
      | (?i:END|ELSE|NEXT|WEND|LOOP|RETURN|STOP|BREAK|CONTINUE|END[ \t]+\w+|ENDIF|NEXT[ \t]+\w+)[ \t]*$
      | (?i:IF|ELSEIF|FOR|WHILE|SELECT|SWITCH|PARAM|SUB|FUNCTION)[ \t][^"\n]*(?:=|<|>|\b(?i:THEN|IN|AS)\b)
      | \w[\w.\[\]]*[ \t]*[+\-*/]?=
      | ' | // | \#
    )""",
    re.VERBOSE | re.MULTILINE,
)
"""Lines that are code rather than the continuation of a text."""


def continues(last: Token, text: str, position: int, brackets: Sequence[str], over_blank_line: bool) -> bool:
    """Whether the statement whose line ends with `last` continues on the line at `position`.

    Within brackets a line may also end after a value, unless the next line is unmistakably a statement: then a bracket
    was not closed."""
    if waits(last):
        if not brackets and (over_blank_line or _is_code(last, text, position)):
            return False
        return not _STATEMENT.match(text, position)
    if not brackets:
        return False
    if last.kind is Kind.SYMBOL and last.text in _OPENING:
        return not _STATEMENT.match(text, position)
    if _CONTINUATION.match(text, position):
        return True
    return (_VALUE if brackets[-1] == "(" else _ENTRY).match(text, position) is not None


def _is_code(last: Token, text: str, position: int) -> bool:
    """Whether the line at `position`, after an operator, is a new statement although it could be a continuation."""
    if _ALONE.match(text, position):
        return True
    return last.text in _OF_VALUES and _ASSIGNMENT.match(text, position) is not None


_ROWS = {
    "WHERE": frozenset(("UPDATE", "FIND", "DELETE", "FILTER", "AGGREGATE")),
    "SET": frozenset(("UPDATE", "INSERT")),
    "VALUES": frozenset(("INSERT",)),
    "(": frozenset(("INSERT",)),
    "WITH": frozenset(("SAVE", "INSERT", "UPDATE", "FIND", "MERGE")),
    "ORDER": frozenset(("FIND",)),
    "LIMIT": frozenset(("FIND",)),
}
"""Clauses of row statements that may be on a line of their own, each with the keywords it belongs to."""
_BEGINS_PART = lazy_pattern(
    r"""[ \t]*(?: (?P<part>WHERE|LIMIT|VALUES|SET|WITH)(?=[ \t]+["'(\w]|[ \t]*\(|[ \t]*$)
      | (?P<order>ORDER)(?=[ \t]+BY\b) | (?P<bracket>\() )""",
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
_COLUMNS = lazy_pattern(r"""[ \t]+["']?\w+["']?[ \t]*(?:=|AS\b)|[ \t]*$""", re.IGNORECASE | re.MULTILINE)
_PART_WORDS = frozenset(("WHERE", "SET", "VALUES", "WITH", "ORDER", "BY", "LIMIT"))


def row_statement_continues(tokens: Sequence[Token], text: str, position: int) -> bool:
    """Whether `tokens` end in a row statement, such as `UPDATE stock`, that continues with a clause at `position` (`SET
    count = 1`), or with the operand of a clause word at the end of the line."""
    last = tokens[-1]
    waiting = last.kind is Kind.WORD and last.value in _PART_WORDS
    found = _BEGINS_PART.match(text, position)
    if found is None and not waiting:
        return False
    first = next((at for at in range(len(tokens), 0, -1) if tokens[at - 1].kind is Kind.LINE), 0)
    words = [token.value for token in tokens[first:] if token.kind is Kind.WORD]
    if waiting:
        part = "ORDER" if last.value == "BY" else str(last.value)
        if _ROWS[part].intersection(words[:-1]):
            return not (_ALONE.match(text, position) or _STATEMENT.match(text, position))
    if found is None:
        return False
    part = (found["part"] or found["order"] or found["bracket"]).upper()
    if not _ROWS[part].intersection(words):
        return False
    if part not in ("SET", "WITH", "("):
        return True
    # These words can also begin a statement, so the open statement must still expect them.
    is_open = not any(token.text == "," or token.value in _PART_WORDS for token in tokens[first:])
    return is_open and (part == "(" or _COLUMNS.match(text, found.end("part")) is not None)


def waits(last: Token) -> bool:
    """Whether a value must follow this token."""
    if last.kind is Kind.SYMBOL:
        return last.text in _WAITING
    return last.kind is Kind.WORD and last.value in _WAITING_WORDS


Part = str | Inner

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\n": ""}
_KEPT = frozenset("\"'`\\$")
_CHUNKS = {quote: re.compile(rf"[^{quote}\\$\n]+") for quote in "\"'`"}
_HEX = re.compile(r"[0-9A-Fa-f]{4}")
_INNER = re.compile(
    r"""[^"'`{}\\\n]+ | \\. | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' | `(?:[^`\\\n]|\\.)*` | [{}] | \n | .""",
    re.VERBOSE,
)
_RAW = re.compile(r"[^$\\]+")


class Quoted(NamedTuple):
    """A parsed text of a script, quoted or from a block: its parts, its end, and a problem if it is invalid."""

    parts: tuple[Part, ...]
    """Never empty."""
    end: int
    """Offset after the text."""
    wrong_at: int = -1
    """Offset of a problem, or -1."""
    wrong: str = ""


def quoted(text: str, start: int, at: Callable[[int], At], no_inner_before: int = 0) -> Quoted:
    """Read the text whose quote is at `start`. `at` converts an offset to a position.

    A text in backticks may span lines, one in `"` only lines that read like prose; those are part of it even if it is
    never closed. A `${` before `no_inner_before` is not parsed, because it is known to be unclosed."""
    return _Reader(text, start, at, no_inner_before).read()


def parts_of(raw: str, at: Callable[[int], At]) -> Quoted:
    """Parts of a block's lines; only `${…}` and `\\${` have a special meaning."""
    parts: list[Part] = []
    position, wrong_at = 0, -1
    while position < len(raw):
        chunk = _RAW.match(raw, position)
        if chunk:
            parts.append(chunk.group())
            position = chunk.end()
        elif raw.startswith("\\${", position):
            parts.append("${")
            position += 3
        elif wrong_at < 0 and _begins_inner(raw, position):
            end = _inner_end(raw, position + 2, "")
            if end < 0:
                wrong_at = position
                continue
            parts.append(Inner(raw[position + 2 : end], at(position + 2)))
            position = end + 1
        else:
            parts.append(raw[position])
            position += 1
    return Quoted(_joined(parts), len(raw), wrong_at, _NO_BRACE if wrong_at >= 0 else "")


_NO_BRACE = "`${` is not closed; write ${name}, or \\${ for a literal `${`"


class _Reader:
    __slots__ = ("_at", "_chunk", "_no_inner_before", "_parts", "_position", "_quote", "_start", "_text", "_wrong_at")

    def __init__(self, text: str, start: int, at: Callable[[int], At], no_inner_before: int) -> None:
        self._text = text
        self._start = start
        self._at = at
        self._quote = text[start]
        self._chunk = _CHUNKS[self._quote]
        self._parts: list[Part] = []
        self._position = start + 1
        self._wrong_at = -1
        self._no_inner_before = no_inner_before

    def read(self) -> Quoted:
        text, quote = self._text, self._quote
        while self._position < len(text):
            chunk = self._chunk.match(text, self._position)
            if chunk:
                self._parts.append(chunk.group())
                self._position = chunk.end()
                continue
            character = text[self._position]
            if character == quote:
                if quote == "`" or not text.startswith(quote * 2, self._position):
                    return self._done(self._position + 1)
                self._take(quote, 2)
            elif character == "\n":
                if not self._goes_on():
                    return Quoted(_joined(self._parts), self._position, self._start, self._open())
                self._take("\n", 1)
            elif character == "\\":
                self._escape()
            elif not self._interpolation():
                self._take(character, 1)
        line_end = text.find("\n", self._start)
        end = self._position if line_end < 0 else line_end
        return Quoted(_joined(self._parts), end, self._start, self._open())

    def _goes_on(self) -> bool:
        """Whether the text continues after this line end."""
        following = self._position + 1
        is_prose = following < len(self._text) and not _CODE.match(self._text, following)
        return self._quote == "`" or (self._quote == '"' and is_prose)

    def _take(self, part: Part, length: int) -> None:
        self._parts.append(part)
        self._position += length

    def _escape(self) -> None:
        following = self._text[self._position + 1 : self._position + 2]
        if following == "u" and (code := _HEX.match(self._text, self._position + 2)):
            number = int(code.group(), 16)
            self._take("�" if 0xD800 <= number < 0xE000 else chr(number), 6)
        elif following == "\n" and self._quote != "`":
            self._take("\\", 1)
        elif following in _ESCAPES:
            self._take(_ESCAPES[following], 2)
        elif following in _KEPT and following:
            self._take(following, 2)
        else:
            self._take("\\", 1)  # `C:\data` keeps its backslash

    def _interpolation(self) -> bool:
        start = self._position
        if self._wrong_at >= 0 or start < self._no_inner_before or not _begins_inner(self._text, start):
            return False
        end = _inner_end(self._text, start + 2, self._quote)
        if end < 0:
            self._wrong_at = start  # searching a brace for each further `${` would take quadratic time
            return False
        source = self._text[start + 2 : end]
        escaped = "\\" + self._quote
        if self._quote != "`" and escaped in source:
            source = source.replace(escaped, self._quote)
        self._take(Inner(source, self._at(start + 2)), end + 1 - start)
        return True

    def _done(self, end: int) -> Quoted:
        wrong = _NO_BRACE if self._wrong_at >= 0 else ""
        return Quoted(_joined(self._parts), end, self._wrong_at, wrong)

    def _open(self) -> str:
        if self._quote == "`":
            return "the text that begins here is not closed; expected a backtick at its end"
        message = f"the text that begins here is not closed; expected {self._quote} on the same line"
        if f"\\{self._quote}" in self._text[self._start : self._position]:
            return f"{message}. \\{self._quote} does not close it; write a backslash at the end of a text as \\\\"
        return message


def _begins_inner(text: str, position: int) -> bool:
    """Whether a `${…}` begins here. `${{name}}` is a dollar sign before a template placeholder of another system."""
    return text.startswith("${", position) and not text.startswith("{", position + 2)


def _inner_end(text: str, position: int, quote: str) -> int:
    """Offset of the `}` that closes the `${` before `position`, or -1. May be on another line only within backticks."""
    depth = 0
    length = len(text)
    while position < length:
        found = _INNER.match(text, position)
        if found is None:
            return -1
        piece = found.group()
        if piece == "}":
            if not depth:
                return position
            depth -= 1
        elif piece == "{":
            depth += 1
        elif (piece == "\n" and quote != "`") or piece == quote:
            return -1
        position = found.end()
    return -1


def _joined(parts: list[Part]) -> tuple[Part, ...]:
    """The parts with adjacent strings joined; at least an empty string."""
    joined: list[Part] = []
    pending: list[str] = []
    for part in parts:
        if isinstance(part, str):
            pending.append(part)
            continue
        if pending:
            joined.append("".join(pending))
            pending = []
        joined.append(part)
    if pending:
        joined.append("".join(pending))
    return tuple(joined) or ("",)
