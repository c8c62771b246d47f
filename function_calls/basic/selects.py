"""SELECT CASE and SWITCH."""

from __future__ import annotations

from typing import Literal as OneOf
from typing import cast

from function_calls.basic.blocks import Blocks, Body
from function_calls.basic.codes import Code
from function_calls.basic.expressions import Expressions
from function_calls.basic.nodes import At, Case, Literal, Select, Statement
from function_calls.basic.reading import Reading
from function_calls.basic.tokens import Cursor, Kind

Comparison = OneOf["=", "<>", "<", "<=", ">", ">="]
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


class Selects:
    """Reads them."""

    __slots__ = ("_blocks", "_read", "_reading")

    def __init__(self, reading: Reading, read: Expressions, blocks: Blocks) -> None:
        self._reading = reading
        self._read = read
        self._blocks = blocks

    def select(self, cursor: Cursor, into: list[Statement]) -> None:
        """SELECT [CASE] x, SWITCH x: up to END SELECT or END SWITCH."""
        blocks, token = self._blocks, cursor.take()
        if cursor.is_at("CASE") and token.value == "SELECT":
            cursor.index += 1
        subject = blocks.header(cursor, lambda: self._read.expression(cursor)) or Literal(token.at, None)
        blocks.line_end(cursor, str(token.value))
        cases: list[tuple[tuple[Case, ...], Body]] = []
        otherwise: list[Statement] = []
        last: At | None = None
        with blocks.open.block("SELECT", token) as opened:
            before = blocks.body(cursor)
            if before:
                message = f"this stands before the first CASE of the {token.value} in line {token.at.line}"
                self._reading.fault(before[0].at, Code.MISPLACED, message)
            while (ending := blocks.open.ending(cursor)) and not ending.is_end and ending.kind == "SELECT":
                blocks.open.divide()
                if last is not None:
                    message = f"line {last.line} is for all else, so no other can stand behind it; put that one last"
                    self._reading.fault(ending.token.at, Code.MISPLACED, message)
                is_otherwise, fits = self._case(cursor)
                body = blocks.body(cursor)
                if is_otherwise:
                    last = last or ending.token.at
                    otherwise.extend(body)
                else:
                    cases.append((fits, body))
            blocks.end(cursor, opened)
        into.append(Select(token.at, subject, tuple(cases), tuple(otherwise)))

    def _case(self, cursor: Cursor) -> tuple[bool, tuple[Case, ...]]:
        """Whether it is for all else, and otherwise what it fits."""
        is_default = cursor.words("DEFAULT")
        if is_default or cursor.words("CASE", "ELSE") or cursor.words("CASE", "DEFAULT"):
            cursor.words("THEN")
            self._blocks.line_end(cursor, "DEFAULT" if is_default else "CASE ELSE")
            return True, ()
        cursor.index += 1
        fits = self._blocks.header(cursor, lambda: self._fits(cursor)) or ()
        cursor.words("THEN")
        self._blocks.line_end(cursor, "CASE")
        return False, fits

    def _fits(self, cursor: Cursor) -> tuple[Case, ...]:
        found = [self._fit(cursor)]
        while cursor.symbol(","):
            found.append(self._fit(cursor))
        return tuple(found)

    def _fit(self, cursor: Cursor) -> Case:
        at = cursor.now.at
        has_is = cursor.is_at("IS") and cursor.ahead().kind is Kind.SYMBOL
        if has_is:
            cursor.index += 1
        if cursor.is_symbol(*_COMPARISONS):
            operator = cursor.take().text
            return Case(at, self._read.expression(cursor), operator=cast("Comparison", operator))
        if has_is:
            cursor.fail(f"a comparison is missing behind IS, {cursor.found()}; write CASE IS > 3")
        low = self._read.expression(cursor)
        return Case(at, low, self._read.expression(cursor)) if cursor.words("TO") else Case(at, low)
