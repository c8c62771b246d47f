"""SUB and FUNCTION."""

from __future__ import annotations

from function_calls.basic.blocks import Blocks
from function_calls.basic.codes import Code
from function_calls.basic.labels import Labels
from function_calls.basic.nodes import At, Define
from function_calls.basic.reading import Reading
from function_calls.basic.tokens import Cursor, Kind, Token


class Procedures:
    """Reads them, and knows those that were read."""

    __slots__ = ("_blocks", "_labels", "_lines", "_reading", "found")

    def __init__(self, reading: Reading, blocks: Blocks, labels: Labels) -> None:
        self._reading = reading
        self._blocks = blocks
        self._labels = labels
        self._lines: dict[str, int] = {}
        self.found: list[Define] = []

    def define(self, cursor: Cursor) -> None:
        """Read the SUB or FUNCTION at the cursor. What is wrong with it is remembered."""
        token = cursor.take()
        name, parameters = self._blocks.header(cursor, lambda: self._header(cursor, token)) or ("", ())
        self._blocks.line_end(cursor, str(token.value))
        if name in self._lines:
            message = (
                f"`{name}` is a SUB or FUNCTION in line {self._lines[name]} already; give one of them another name"
            )
            self._reading.fault(token.at, Code.DUPLICATE_NAME, message)
        elif name:
            self._lines[name] = token.at.line
        with self._blocks.open.block(str(token.value), token) as opened, self._labels.of_their_own():
            body = self._blocks.body(cursor)
            has_end = self._blocks.end(cursor, opened)
        if has_end:
            self._blocks.line_end(cursor, "the end of the block")
        if name:
            self.found.append(Define(token.at, name, parameters, body))

    def _header(self, cursor: Cursor, token: Token) -> tuple[str, tuple[str, ...]]:
        if cursor.now.kind is not Kind.WORD:
            cursor.fail(f"the name is missing behind {token.value}, {cursor.found()}; write {token.value} greet(name)")
        name = cursor.take().text.lower()
        parameters: list[str] = []
        if cursor.is_symbol("("):
            opener = cursor.take()
            while not cursor.is_symbol(")"):
                self._parameter(cursor, opener.at, parameters)
                if not cursor.symbol(","):
                    break
            if cursor.is_line_end:
                cursor.fail(f"`(` is not closed behind {token.value} {name}", at=opener.at)
            cursor.expect(")", f"the parameters of {name}")
        self._type(cursor)
        return name, tuple(parameters)

    def _parameter(self, cursor: Cursor, opener: At, parameters: list[str]) -> None:
        if cursor.is_at("BYVAL") or cursor.is_at("BYREF"):
            cursor.index += 1
        token = cursor.now
        if cursor.is_line_end:
            cursor.fail("`(` is not closed", at=opener)
        if token.kind is not Kind.WORD:
            cursor.fail(f"a parameter is a name, {cursor.found()}")
        cursor.index += 1
        name = token.text.lower()
        if name in parameters:
            cursor.fail(f"there are two parameters {token.text}", Code.DUPLICATE_NAME, token.at)
        parameters.append(name)
        self._type(cursor)
        if cursor.is_symbol("="):
            cursor.fail("a parameter has no value of its own; give it one in the first line of the body")

    def _type(self, cursor: Cursor) -> None:
        """AS type says nothing here: values know what they are."""
        if cursor.words("AS"):
            if cursor.now.kind is not Kind.WORD:
                cursor.fail(f"a type is missing behind AS, {cursor.found()}")
            cursor.index += 1
