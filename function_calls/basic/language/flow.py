"""Parser of control flow statements: EXIT, CONTINUE, GOTO, RETURN, ON ERROR, THROW, ASSERT and others."""

from __future__ import annotations

from typing import Literal as OneOf
from typing import cast

from function_calls.basic.codes import Code
from function_calls.basic.language.expressions import Expressions
from function_calls.basic.language.open_blocks import LOOPS, PROCEDURES, Labels, OpenBlocks, is_over
from function_calls.basic.language.parser_state import ParserState
from function_calls.basic.language.tokens import Cursor, Kind
from function_calls.basic.nodes import Assert, Continue, Goto, Leave, OnError, Return, Statement, Stop, Throw

_LEAVES = {
    "FOR": frozenset(("FOR",)),
    "DO": frozenset(("DO", "WHILE")),
    "WHILE": frozenset(("DO", "WHILE")),
    "SUB": PROCEDURES,
    "FUNCTION": PROCEDURES,
    "SELECT": frozenset(("SELECT",)),
    "SWITCH": frozenset(("SELECT",)),
    "LOOP": LOOPS,
}
"""Kinds of block that EXIT leaves, by the word after it."""
_AGAIN = frozenset(("FOR", "DO", "WHILE", "LOOP"))
_SAME = {"SWITCH": "select"}


class Flow:
    """Parser of control flow statements."""

    def __init__(self, reading: ParserState, read: Expressions, opened: OpenBlocks, labels: Labels) -> None:
        self._reading = reading
        self._read = read
        self._open = opened
        self._labels = labels

    def exit(self, cursor: Cursor, into: list[Statement]) -> None:
        """Parse EXIT of a block; without a word it ends the run."""
        token = cursor.take()
        word = str(cursor.now.value)
        if is_over(cursor):
            into.append(Stop(token.at))
            return
        if cursor.now.kind is not Kind.WORD or word not in _LEAVES:
            cursor.fail(
                f"expected one of {', '.join(_LEAVES)} after EXIT, or nothing to end the script, {cursor.found()}"
            )
        cursor.index += 1
        if self._open.innermost(_LEAVES[word]) is None:
            self._reading.fault(token.at, Code.MISPLACED, f"EXIT {word} is not inside a {word}")
        what = _SAME.get(word, word.lower())
        into.append(Leave(token.at, cast("OneOf['for', 'do', 'while', 'sub', 'function', 'select', 'loop']", what)))

    def break_(self, cursor: Cursor, into: list[Statement]) -> None:
        """Parse BREAK: leaves the innermost loop or SWITCH, as in C, but not a SELECT."""
        token = cursor.take()
        innermost = self._open.innermost(LOOPS | {"SELECT"})
        if innermost is not None and innermost.written == "SWITCH":
            into.append(Leave(token.at, "select"))
            return
        if self._open.innermost(LOOPS) is None:
            self._reading.fault(token.at, Code.MISPLACED, "BREAK is not inside a loop")
        into.append(Leave(token.at, "loop"))

    def continue_(self, cursor: Cursor, into: list[Statement]) -> None:
        """Parse CONTINUE [FOR | DO | WHILE] and append it to `into`. Outside of such a loop it is reported as
        MISPLACED."""
        token = cursor.take()
        word = ""
        if cursor.now.kind is Kind.WORD and cursor.now.value in _AGAIN:
            word = str(cursor.take().value)
        if self._open.innermost(_LEAVES[word or "LOOP"]) is None:
            message = f"CONTINUE {word} is not inside a {word}" if word else "CONTINUE is not inside a loop"
            self._reading.fault(token.at, Code.MISPLACED, message)
        into.append(Continue(token.at, cast("OneOf['for', 'do', 'while', 'loop']", word.lower() or "loop")))

    def return_(self, cursor: Cursor, into: list[Statement]) -> None:
        """Parse RETURN [value] and append it to `into`."""
        token = cursor.take()
        into.append(Return(token.at, None if is_over(cursor) else self._read.expression(cursor)))

    def stop(self, cursor: Cursor, into: list[Statement]) -> None:
        """Parse END or STOP and append it to `into`. Raises ScriptError if another word follows on the line."""
        token = cursor.take()
        if not is_over(cursor):
            cursor.fail(
                f"unknown statement {token.value} {cursor.now.text}; to end the script write {token.value} alone",
                Code.STRAY_END,
                token.at,
            )
        into.append(Stop(token.at))

    def goto(self, cursor: Cursor, into: list[Statement]) -> None:
        """Parse GOTO or GOSUB and append it to `into`; the jump is registered."""
        token = cursor.take()
        label = self.label(cursor, str(token.value))
        into.append(Goto(token.at, label, token.value == "GOSUB"))

    def label(self, cursor: Cursor, what: str) -> str:
        """Parse the label after `what`, and register the jump. Raises ScriptError if there is no label."""
        token = cursor.now
        name = label_name(cursor)
        self._labels.add_jump(
            token.at, name, what, self._open.outermost if what == "ON ERROR GOTO" else self._open.path
        )
        return name

    def on(self, cursor: Cursor, into: list[Statement]) -> bool:
        """Parse ON ERROR …; returns False for keywords such as ON INSERT OF. Raises ScriptError for other words after
        ON ERROR."""
        if not cursor.is_at("ON", "ERROR"):
            return False
        token = cursor.now
        cursor.index += 2
        if cursor.words("RESUME", "NEXT"):
            into.append(OnError(token.at, resume=True))
        elif cursor.words("GOTO"):
            is_off = cursor.now.kind is Kind.NUMBER and cursor.now.value == 0
            if is_off:
                cursor.index += 1
            into.append(OnError(token.at, resume=False, label="" if is_off else self.label(cursor, "ON ERROR GOTO")))
        else:
            cursor.fail(f"expected RESUME NEXT, GOTO 0 or GOTO label after ON ERROR, {cursor.found()}")
        return True

    def throw(self, cursor: Cursor, into: list[Statement]) -> None:
        """Parse THROW e or ERROR e."""
        token = cursor.take()
        if is_over(cursor):
            cursor.fail(f'expected a message after {token.value}; write {token.value} "what is wrong"')
        into.append(Throw(token.at, self._read.expression(cursor)))

    def assert_(self, cursor: Cursor, into: list[Statement]) -> None:
        """Parse ASSERT condition [, message] and append it to `into`."""
        token = cursor.take()
        condition = self._read.expression(cursor)
        into.append(Assert(token.at, condition, self._read.expression(cursor) if cursor.symbol(",") else None))


def label_name(cursor: Cursor) -> str:
    """Parse a label: a name in lower case, or a number without leading zeros. Raises ScriptError."""
    token = cursor.now
    if token.kind is Kind.NUMBER and isinstance(token.value, int):
        cursor.index += 1
        return str(token.value)
    if token.kind is not Kind.WORD:
        cursor.fail(f"expected a label, {cursor.found()}; a label is a name or a line number")
    cursor.index += 1
    return token.text.lower()
