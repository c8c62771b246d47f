"""The blocks that are open where the parser stands, and which words end or divide one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from function_calls.basic.codes import Code, ScriptFault
from function_calls.basic.labels import Path
from function_calls.basic.nodes import At
from function_calls.basic.reading import Reading
from function_calls.basic.tokens import Cursor, Kind, Token

_ENDS = {
    "NEXT": "FOR",
    "WEND": "WHILE",
    "LOOP": "DO",
    "ENDIF": "IF",
    "ENDFOR": "FOR",
    "ENDWHILE": "WHILE",
    "ENDSELECT": "SELECT",
    "ENDSWITCH": "SELECT",
    "ENDWITH": "WITH",
    "ENDSUB": "SUB",
    "ENDFUNCTION": "FUNCTION",
}
_ENDS_BEHIND_END = {
    word: word if word != "SWITCH" else "SELECT"
    for word in ("IF", "FOR", "WHILE", "SELECT", "SWITCH", "WITH", "SUB", "FUNCTION")
}
_DIVIDES = {"ELSE": "IF", "ELSEIF": "IF", "CASE": "SELECT", "DEFAULT": "SELECT"}
ENDING_WORDS = frozenset({*_ENDS, *_DIVIDES, "END"})
"""With these a line may begin that ends or divides a block."""
WRITTEN = {
    "IF": "END IF",
    "FOR": "NEXT",
    "WHILE": "WEND",
    "DO": "LOOP",
    "SELECT": "END SELECT",
    "WITH": "END WITH",
    "SUB": "END SUB",
    "FUNCTION": "END FUNCTION",
}
"""How the end of each kind of block is written."""
_FAMILIES = (frozenset(("FOR", "WHILE", "DO")), frozenset(("SUB", "FUNCTION")))
LOOPS = _FAMILIES[0]
PROCEDURES = _FAMILIES[1]


class TooManyBlocks(Exception):
    """Blocks stand too deep within one another; what follows cannot be told apart any more."""


class Opened(NamedTuple):
    """A block."""

    kind: str
    """A key of WRITTEN."""
    at: At
    number: int
    written: str
    """Its first word as the author has it: SWITCH, FOR."""
    variable: str = ""
    """Of a FOR."""


class Ending(NamedTuple):
    """The words that end or divide a block."""

    kind: str
    words: int
    is_end: bool
    token: Token

    @property
    def written(self) -> str:
        """They, for a message."""
        return str(self.token.value) if self.words == 1 else f"END {self.kind}"


class OpenBlocks:
    """From the outermost one inwards."""

    __slots__ = ("_count", "_reading", "_suspects", "stack")

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._count = 0
        self._suspects: dict[tuple[str, int], At] = {}
        self.stack: list[Opened] = []

    @contextmanager
    def block(self, kind: str, token: Token, variable: str = "") -> Iterator[Opened]:
        """A block of this kind begins with `token`, and lasts. Raises TooManyBlocks."""
        try:
            self._reading.enter(token.at)
        except ScriptFault as error:
            # Values in the first lines of blocks are a level deeper, and have been told before.
            while self._reading.faults and self._reading.faults[-1].code is Code.TOO_DEEP:
                self._reading.faults.pop()
            self._reading.failed(error.fault, token.at.line, token.at.line)
            raise TooManyBlocks from None
        self._count += 1
        opened = Opened(kind, token.at, self._count, str(token.value), variable)
        self.stack.append(opened)
        try:
            yield opened
        finally:
            self.stack.pop()
            self._reading.depth -= 1

    def divide(self) -> None:
        """Another part of the innermost block begins: no GOTO leads from one into the other."""
        self._count += 1
        self.stack[-1] = self.stack[-1]._replace(number=self._count)

    @property
    def path(self) -> Path:
        """The blocks that are open."""
        return tuple(opened.number for opened in self.stack)

    def innermost(self, kinds: frozenset[str]) -> Opened | None:
        """The innermost open block of these kinds, in the same SUB or FUNCTION."""
        for opened in reversed(self.stack):
            if opened.kind in kinds:
                return opened
            if opened.kind in PROCEDURES:
                return None
        return None

    def ending(self, cursor: Cursor) -> Ending | None:
        """The words at the cursor that end or divide a block, whether or not it is open."""
        token = cursor.now
        if token.kind is not Kind.WORD or token.value not in ENDING_WORDS:
            return None
        following = cursor.ahead()
        if token.value == "END":
            kind = _ENDS_BEHIND_END.get(following.value) if following.kind is Kind.WORD else None
            return Ending(kind, 2, True, token) if kind else None
        if following.kind is Kind.SYMBOL and following.text in ("=", ".", "[") and not self._is_case(token):
            return None
        if token.value in _ENDS:
            return Ending(_ENDS[token.value], 1, True, token)
        return Ending(_DIVIDES[token.value], 1, False, token)

    def _is_case(self, token: Token) -> bool:
        return token.value == "CASE" and bool(self.stack) and self.stack[-1].kind == "SELECT"

    def is_stray(self, ending: Ending) -> bool:
        """Whether no open block can be meant, which is then a fault. A word that ends a block like the innermost one,
        such as LOOP for WEND, is a fault too, but ends it."""
        kinds = [opened.kind for opened in self.stack]
        if ending.kind in kinds:
            return False
        if ending.is_end and kinds and any({kinds[-1], ending.kind} <= family for family in _FAMILIES):
            innermost = self.stack[-1]
            message = (
                f"{ending.written} ends a {ending.kind}, but here the {innermost.written} of line {innermost.at.line} "
                f"is open: write {WRITTEN[innermost.kind]}"
            )
            self._reading.fault(ending.token.at, Code.SYNTAX, message)
            return False
        self._stray(ending)
        return True

    def closes(self, ending: Ending | None, opened: Opened) -> bool:
        """Whether this ends `opened`, the innermost block."""
        if ending is None or not ending.is_end:
            return False
        if ending.kind == opened.kind:
            if ending.token.at.column < opened.at.column and ending.token.at.line > opened.at.line:
                # Its indentation says that it was meant for a block around this one.
                self._suspects[opened.kind, ending.token.at.column] = opened.at
            return True
        return not any(ending.kind == other.kind for other in self.stack)

    def not_closed(self, opened: Opened) -> None:
        """Remember the fault, at the block that most likely is the one without an end."""
        at = self._suspects.get((opened.kind, opened.at.column), opened.at)
        at = at if at > opened.at else opened.at
        message = f"the {opened.written} in line {at.line} has no {WRITTEN[opened.kind]}"
        self._reading.fault(at, Code.NOT_CLOSED, message)

    def _stray(self, ending: Ending) -> None:
        written = ending.written
        if ending.is_end:
            kind = f"{'an' if ending.kind == 'IF' else 'a'} {ending.kind}"
            message = f"{written} ends {kind}, but none is open here; delete it, or look where its {ending.kind} is"
            self._reading.fault(ending.token.at, Code.STRAY_END, message)
            return
        hint = "; behind an IF that has its statement on the same line, ELSE stands on that line too"
        message = f"{written} stands in no {ending.kind}{hint if ending.kind == 'IF' else ''}"
        self._reading.fault(ending.token.at, Code.MISPLACED, message)


def is_over(cursor: Cursor) -> bool:
    """Whether the statement is over, also before an ELSE on the same line."""
    token = cursor.now
    if token.kind is Kind.WORD and token.value in ENDING_WORDS:
        return token.value in ("ELSE", "ELSEIF", "ENDIF") or cursor.is_at("END", "IF")
    return cursor.is_line_end
