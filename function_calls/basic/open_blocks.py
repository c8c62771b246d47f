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
_OPENS = {
    **{word: word for word in ("IF", "FOR", "WHILE", "DO", "SELECT", "WITH", "SUB", "FUNCTION")},
    "FOREACH": "FOR",
    "SWITCH": "SELECT",
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


_MOST_LOOKINGS = 20
"""Of one script: how often all that follows is looked through for the end of a block."""


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

    __slots__ = ("_count", "_lookings", "_reading", "_suspects", "_wrong", "stack")

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._count = 0
        self._lookings = 0
        self._wrong: At | None = None
        """Where the words stand that end the innermost block, though they are those of another kind."""
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

    def is_stray(self, cursor: Cursor, ending: Ending) -> bool:
        """Whether no open block can be meant by the words at the cursor, which is then a fault. Words that end another
        kind of block than the innermost one, whose own end does not come any more, are a fault too, but end it."""
        kinds = [opened.kind for opened in self.stack]
        if not ending.is_end or not kinds or ending.kind == kinds[-1]:
            if ending.kind not in kinds:
                self._stray(ending)
            return ending.kind not in kinds
        if self._is_wrong(cursor, ending, kinds):
            innermost = self.stack[-1]
            message = (
                f"{ending.written} ends {_a(ending.kind)}, but here the {innermost.written} of line "
                f"{innermost.at.line} is open: write {WRITTEN[innermost.kind]}"
            )
            self._reading.fault(ending.token.at, Code.SYNTAX, message)
            self._wrong = ending.token.at
            return False
        if ending.kind in kinds:
            return False
        self._stray(ending)
        return True

    def _is_wrong(self, cursor: Cursor, ending: Ending, kinds: list[str]) -> bool:
        """Whether the words at the cursor were written for the end of the innermost block."""
        is_open = ending.kind in kinds
        if not is_open and any({kinds[-1], ending.kind} <= family for family in _FAMILIES):
            return True
        if self._lookings >= _MOST_LOOKINGS:
            return False
        self._lookings += 1
        if _count(cursor, kinds[-1]) >= kinds.count(kinds[-1]):
            return False
        return not is_open or _count(cursor, ending.kind) >= kinds.count(ending.kind)

    def is_nested(self, cursor: Cursor) -> bool:
        """Whether a SUB or FUNCTION that begins at the cursor stands within another one, as both have an end."""
        if self.innermost(PROCEDURES) is None or cursor.now.value not in PROCEDURES:
            return False
        self._lookings += 1
        return self._lookings <= _MOST_LOOKINGS and _count(cursor, "SUB") > 1

    def skip_procedure(self, cursor: Cursor) -> None:
        """Pass the SUB or FUNCTION at the cursor with all that stands in it; without an end only its first line."""
        self._lookings += 1
        if self._lookings <= _MOST_LOOKINGS:
            cursor.index += next(ends_ahead(cursor, "SUB"), 0)
        while not cursor.is_line_end:
            cursor.index += 1

    def closes(self, ending: Ending | None, opened: Opened) -> bool:
        """Whether this ends `opened`, the innermost block."""
        if ending is None or not ending.is_end:
            return False
        if ending.token.at == self._wrong:
            return True
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
            message = (
                f"{written} ends {_a(ending.kind)}, but none is open here; delete it, or look where "
                f"its {ending.kind} is"
            )
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


def ends_ahead(cursor: Cursor, kind: str) -> Iterator[int]:
    """How far from the cursor each block of this kind ends that begins before or at it; those of a SUB and a FUNCTION
    are of one kind."""
    kinds = PROCEDURES if kind in PROCEDURES else frozenset((kind,))
    count, depth, begins = 1, 0, False
    while (token := cursor.ahead(count)).kind is not Kind.END:
        following = cursor.ahead(count + 1)
        if begins and token.kind is Kind.WORD and following.text not in ("=", "."):
            word = str(token.value)
            ends = _ENDS_BEHIND_END.get(str(following.value)) if word == "END" else _ENDS.get(word)
            if ends in kinds and not depth:
                yield count
            elif ends in kinds:
                depth -= 1
            elif _OPENS.get(word) in kinds and (word != "IF" or _has_lines(cursor, count)):
                depth += 1
        if token.kind is not Kind.NUMBER:
            begins = token.kind is Kind.LINE
        count += 1


def _count(cursor: Cursor, kind: str) -> int:
    return sum(1 for _ in ends_ahead(cursor, kind))


def _has_lines(cursor: Cursor, count: int) -> bool:
    """Whether the IF so many tokens ahead has its statements on lines of their own."""
    while (token := cursor.ahead(count)).kind not in (Kind.LINE, Kind.END):
        if token.kind is Kind.WORD and token.value == "THEN":
            behind = cursor.ahead(count + 1)
            return behind.kind is Kind.LINE and behind.text != ":"
        count += 1
    return True


def _a(kind: str) -> str:
    return f"{'an' if kind == 'IF' else 'a'} {kind}"
