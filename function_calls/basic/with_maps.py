"""WITH … END WITH, which builds a map."""

from __future__ import annotations

from typing import NoReturn

from function_calls.basic.blocks import Blocks
from function_calls.basic.brackets import key
from function_calls.basic.codes import Code, ScriptFault
from function_calls.basic.expressions import Expressions
from function_calls.basic.nodes import Expression, Name, Statement, With
from function_calls.basic.reading import Reading
from function_calls.basic.tokens import Cursor, Kind

_FAR = 300
"""Tokens. A WITH has a dozen entries, so its end is not further away."""
_BLOCKS = {"IF": "IF", "SELECT": "SELECT", "SWITCH": "SELECT"}
"""What people put into a WITH, by the words with which it begins."""
_HEADERS = frozenset(("PARAM", "SUB", "FUNCTION", "BEGIN"))


def _is_none(cursor: Cursor) -> bool:
    """Whether an entry cannot begin with these words."""
    token, following = cursor.now, cursor.ahead()
    if following.kind in (Kind.SYMBOL, Kind.LINE, Kind.END):
        return False
    return token.value in _HEADERS or (token.value != "WITH" and following.text != "=")


def _has_end(cursor: Cursor) -> bool:
    """Whether END WITH follows, before another WITH and not far away."""
    for count in range(1, _FAR):
        token, before = cursor.ahead(count), cursor.ahead(count - 1)
        if token.kind is Kind.END or token.value in _HEADERS:
            return False
        if token.value == "WITH":
            return bool(before.value == "END")
        if token.value == "ENDWITH" and before.kind is Kind.LINE:
            return True
    return False


class WithMaps:
    """Reads them."""

    __slots__ = ("_blocks", "_read", "_reading")

    def __init__(self, reading: Reading, read: Expressions, blocks: Blocks) -> None:
        self._reading = reading
        self._read = read
        self._blocks = blocks

    def with_(self, cursor: Cursor, into: list[Statement]) -> None:
        """WITH target, with its entries on the lines up to END WITH."""
        into.append(self._with(cursor))

    def _with(self, cursor: Cursor) -> With:
        blocks, token = self._blocks, cursor.take()
        cursor.symbol(".")
        target = blocks.header(cursor, lambda: self._read.target(cursor)) or Name(token.at, "with")
        blocks.line_end(cursor, "WITH")
        entries: list[tuple[str, Expression | With]] = []
        with blocks.open.block("WITH", token) as opened:
            while not self._is_over(cursor):
                begin = cursor.index
                try:
                    entries.append(self._entry(cursor))
                    blocks.line_end(cursor, "the entry")
                except ScriptFault as error:
                    self._reading.failed(error.fault, error.fault.at.line, error.fault.at.line)
                    self._skip(cursor, begin)
                    while cursor.now.text == ":":
                        cursor.index += 1
                        blocks.skip_line(cursor)
            blocks.end(cursor, opened)
        return With(token.at, target, tuple(entries))

    def _skip(self, cursor: Cursor, begin: int) -> None:
        """Pass the line that began at `begin`, and where it begins a block all of that: it has been told."""
        reached, cursor.index = max(begin, cursor.index), begin
        kind = _BLOCKS.get(str(cursor.now.value)) if cursor.now.kind is Kind.WORD else None
        token, last = cursor.now, cursor.now
        cursor.index = reached
        while not cursor.is_line_end:
            last = cursor.take()
        if kind is None or (kind == "IF" and last.value != "THEN"):
            return
        depth = 1
        for count in range(1, _FAR):
            first, previous = cursor.ahead(count), cursor.ahead(count - 1)
            if first.kind is Kind.END:
                return
            if previous.kind is not Kind.LINE or first.kind is not Kind.WORD:
                continue
            here, cursor.index = cursor.index, cursor.index + count
            ending = self._blocks.open.ending(cursor)
            cursor.index = here
            if ending is not None and ending.is_end and ending.kind == "WITH":
                return
            depth += (first.value == token.value) - (ending is not None and ending.is_end and ending.kind == kind)
            if not depth and ending is not None:
                cursor.index += count + ending.words
                return

    def _is_over(self, cursor: Cursor) -> bool:
        """Pass line ends. Whether the entries are over: at an end that an open block has, at the script's, or where
        something begins that is plainly none."""
        while True:
            while cursor.now.kind is Kind.LINE:
                cursor.index += 1
            token = cursor.now
            if token.kind is Kind.END:
                return True
            if token.kind is not Kind.WORD:
                return False
            ending = self._blocks.open.ending(cursor)
            if ending is None:
                return _is_none(cursor) and not _has_end(cursor)
            if not self._blocks.open.is_stray(cursor, ending):
                return True
            self._blocks.skip_line(cursor)

    def _entry(self, cursor: Cursor) -> tuple[str, Expression | With]:
        if cursor.is_at("WITH") and cursor.ahead().text != "=":
            named = cursor.ahead(2 if cursor.ahead().text == "." else 1)
            inner = self._with(cursor)
            if not isinstance(inner.target, Name):
                message = "within a WITH another one names one entry, without `.` and `[…]` behind it"
                self._reading.fault(inner.at, Code.SYNTAX, message)
            return named.text, inner
        cursor.symbol(".")
        token = cursor.now
        if token.kind not in (Kind.WORD, Kind.TEXT):
            self._no_entry(cursor, token.text)
        name = key(cursor)
        if not cursor.symbol("="):
            self._no_entry(cursor, name)
        if cursor.is_line_end:
            cursor.fail(f"a value is missing behind `{name} =`, {cursor.found()}")
        return name, self._read.expression(cursor)

    def _no_entry(self, cursor: Cursor, name: str) -> NoReturn:
        hint = ""
        if cursor.is_symbol(".", "["):
            hint = f"; put a WITH {name} … END WITH inside of this one"
        elif cursor.now.kind is Kind.LINE and cursor.now.text.startswith(":"):
            hint = f"; write {name} = value"
        cursor.fail(f"in WITH each line is `key = value`{hint}, {cursor.found()}; all else stands behind END WITH")
