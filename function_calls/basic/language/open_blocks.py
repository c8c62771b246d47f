"""Open blocks and labels during parsing, words that end or divide blocks, and correction of misspelt ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from function_calls.basic.codes import Code, ScriptError, ScriptProblem
from function_calls.basic.language.parser_state import ParserState
from function_calls.basic.language.scopes import is_assignment
from function_calls.basic.language.tokens import Cursor, Kind, Token, has_then
from function_calls.basic.nodes import At

Path = tuple[int, ...]
"""Numbers of the blocks around a statement, outermost first."""


class _Place(NamedTuple):
    at: At
    path: Path


class _Jump(NamedTuple):
    at: At
    """Position of the label's name."""
    label: str
    what: str
    path: Path


class Labels:
    """Labels and jumps of the procedure being parsed."""

    def __init__(self, reading: ParserState) -> None:
        self._reading = reading
        self._places: dict[str, _Place] = {}
        self._jumps: list[_Jump] = []

    def define(self, at: At, name: str, path: Path) -> None:
        """Register a label of the block `path`. A second definition is reported as DUPLICATE_NAME."""
        first = self._places.setdefault(name, _Place(at, path))
        if first.at != at:
            message = f"the label {name} is already defined on line {first.at.line}; rename one of them"
            self._reading.fault(at, Code.DUPLICATE_NAME, message)

    def add_jump(self, at: At, name: str, what: str, path: Path) -> None:
        """Register a jump of GOTO, GOSUB or ON ERROR GOTO."""
        self._jumps.append(_Jump(at, name, what, path))

    @contextmanager
    def nested_scope(self) -> Iterator[None]:
        """Context manager for a SUB or FUNCTION: uses a separate set of labels and resolves its jumps at the end."""
        outside = self._places, self._jumps
        self._places, self._jumps = {}, []
        try:
            yield
            self.settle()
        finally:
            self._places, self._jumps = outside

    def settle(self) -> None:
        """Report invalid jumps at the end of a SUB, FUNCTION or tool, and clear the labels."""
        for jump in self._jumps:
            place = self._places.get(jump.label)
            if place is None:
                self._unknown(jump)
            elif place.path != jump.path[: len(place.path)]:
                message = (
                    f"{jump.what} {jump.label} would jump into a block: the label on line {place.at.line} is inside "
                    "an IF, a loop or a SELECT; move it before or after that"
                )
                self._reading.fault(jump.at, Code.MISPLACED, message)
        self._places.clear()
        self._jumps.clear()

    def _unknown(self, jump: _Jump) -> None:
        hint = self._reading.nearest.hint((jump.label,), self._places)
        message = f"unknown label {jump.label}{hint}; a label is a line number, or `{jump.label}:` on a line"
        self._reading.fault(jump.at, Code.UNKNOWN_LABEL, message)


OPENS = {
    "IF": "IF", "FOR": "FOR", "FOREACH": "FOR", "WHILE": "WHILE", "SELECT": "SELECT", "SWITCH": "SELECT",
    "WITH": "WITH", "SUB": "SUB", "FUNCTION": "FUNCTION", "DO": "DO",
}  # fmt: skip
"""Kind of block by the word that begins it."""
_ENDS_BEHIND_END = {word: kind for word, kind in OPENS.items() if word not in ("FOREACH", "DO")}
_ENDS = {
    **{f"END{word}": kind for word, kind in _ENDS_BEHIND_END.items()},
    "WEND": "WHILE",
    "LOOP": "DO",
    "NEXT": "FOR",
}
_DIVIDES = {"ELSE": "IF", "ELSEIF": "IF", "CASE": "SELECT", "DEFAULT": "SELECT"}
ENDING_WORDS = frozenset({*_ENDS, *_DIVIDES, "END"})
"""Words that end or divide a block."""
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
"""Usual end of each kind of block."""
_FAMILIES = (frozenset(("FOR", "WHILE", "DO")), frozenset(("SUB", "FUNCTION")))
LOOPS = _FAMILIES[0]
PROCEDURES = _FAMILIES[1]


_MOST_LOOKINGS = 20
"""Limit per script for scans of the remaining tokens for a block end."""


class TooManyBlocks(Exception):
    """Raised when blocks are nested too deeply to continue parsing."""


class Opened(NamedTuple):
    """An open block."""

    kind: str
    """A key of WRITTEN."""
    at: At
    number: int
    written: str
    """First word as written, such as SWITCH or FOR."""
    variable: str = ""
    """Loop variable of a FOR."""


class Ending(NamedTuple):
    """Words that end or divide a block."""

    kind: str
    words: int
    is_end: bool
    token: Token

    @property
    def written(self) -> str:
        """The ending as written, for messages: its single word, or `END` and the kind of the block."""
        return str(self.token.value) if self.words == 1 else f"END {self.kind}"


class OpenBlocks:
    """Stack of open blocks, outermost first."""

    def __init__(self, reading: ParserState) -> None:
        self._reading = reading
        self._count = 0
        self._lookings = 0
        self._wrong: At | None = None
        """Position of an end of another kind that is accepted as the end of the innermost block."""
        self._suspects: dict[tuple[str, int], At] = {}
        self.stack: list[Opened] = []
        self.reported_end: At | None = None
        """Position of a stray end that was already reported."""

    @contextmanager
    def block(self, kind: str, token: Token, variable: str = "") -> Iterator[Opened]:
        """Context manager for a block that begins with `token`; it is on the stack until the end. Raises TooManyBlocks,
        after reporting it, for too many nested blocks."""
        try:
            self._reading.enter(token.at)
        except ScriptError as error:
            # Expressions in the first lines of blocks are a level deeper and were reported before.
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
        """Begin another part of the innermost block; GOTO cannot jump between parts."""
        self._count += 1
        self.stack[-1] = self.stack[-1]._replace(number=self._count)

    @property
    def path(self) -> Path:
        """Numbers of the open blocks, from the outermost; they identify a place for jumps."""
        return tuple(opened.number for opened in self.stack)

    @property
    def outermost(self) -> Path:
        """Number of the enclosing SUB or FUNCTION; empty in the script itself."""
        return tuple(opened.number for opened in self.stack if opened.kind in PROCEDURES)

    def innermost(self, kinds: frozenset[str]) -> Opened | None:
        """The innermost open block of these kinds, within the same SUB or FUNCTION; None if no such block is open."""
        for opened in reversed(self.stack):
            if opened.kind in kinds:
                return opened
            if opened.kind in PROCEDURES:
                return None
        return None

    def ending(self, cursor: Cursor) -> Ending | None:
        """The words at the cursor that end or divide a block, open or not; None if there are none."""
        token = cursor.now
        if token.kind is not Kind.WORD or token.value not in ENDING_WORDS:
            return None
        following = cursor.ahead()
        if token.value == "END":
            kind = _ENDS_BEHIND_END.get(following.value) if following.kind is Kind.WORD else None
            return Ending(kind, 2, True, token) if kind else None
        is_case = token.value == "CASE" and bool(self.stack) and self.stack[-1].kind == "SELECT"
        if following.kind is Kind.SYMBOL and following.text in ("=", ".", "[") and not is_case:
            return None
        if token.value in _ENDS:
            return Ending(_ENDS[token.value], 1, True, token)
        return Ending(_DIVIDES[token.value], 1, False, token)

    def is_stray(self, cursor: Cursor, ending: Ending) -> bool:
        """Whether the words at the cursor match no open block, which is reported. An end of another kind than the
        innermost block, whose own end is missing, is reported too but accepted as its end."""
        kinds = [opened.kind for opened in self.stack]
        if ending.token.at == self.reported_end:
            return True
        if not ending.is_end or not kinds or ending.kind == kinds[-1]:
            if ending.kind not in kinds:
                self._stray(ending)
            return ending.kind not in kinds
        if self._is_wrong(cursor, ending, kinds):
            innermost = self.stack[-1]
            message = (
                f"unexpected {ending.written}: the {innermost.written} on line {innermost.at.line} is still open; "
                f"write {WRITTEN[innermost.kind]}"
            )
            self._reading.fault(ending.token.at, Code.SYNTAX, message)
            self._wrong = ending.token.at
            return False
        if ending.kind in kinds:
            return False
        self._stray(ending)
        return True

    def _is_wrong(self, cursor: Cursor, ending: Ending, kinds: list[str]) -> bool:
        """Whether the words at the cursor were meant as the end of the innermost block."""
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
        """Whether the SUB or FUNCTION at the cursor is nested in another one, as shown by their ends."""
        if self.innermost(PROCEDURES) is None or cursor.now.value not in PROCEDURES:
            return False
        self._lookings += 1
        return self._lookings <= _MOST_LOOKINGS and _count(cursor, "SUB") > 1

    def skip_procedure(self, cursor: Cursor) -> None:
        """Skip the SUB or FUNCTION at the cursor; without an end only its first line."""
        self._lookings += 1
        if self._lookings <= _MOST_LOOKINGS:
            cursor.index += next(ends_ahead(cursor, "SUB"), 0)
        while not cursor.is_line_end:
            cursor.index += 1

    def closes(self, ending: Ending | None, opened: Opened) -> bool:
        """Whether this ends `opened`, the innermost block: an end of the same kind, or one that fits no open block. An
        end with less indentation is remembered as a suspect."""
        if ending is None or not ending.is_end:
            return False
        if ending.token.at == self._wrong:
            return True
        if ending.kind == opened.kind:
            if ending.token.at.column < opened.at.column and ending.token.at.line > opened.at.line:
                # By its indentation it was meant for an outer block.
                self._suspects[opened.kind, ending.token.at.column] = opened.at
            return True
        return not any(ending.kind == other.kind for other in self.stack)

    def not_closed(self, opened: Opened) -> None:
        """Report an unclosed block, at the block that most likely lacks its end."""
        at = self._suspects.get((opened.kind, opened.at.column), opened.at)
        at = at if at > opened.at else opened.at
        message = f"the {opened.written} on line {at.line} has no {WRITTEN[opened.kind]}"
        self._reading.fault(at, Code.NOT_CLOSED, message)

    def _stray(self, ending: Ending) -> None:
        written = ending.written
        if ending.is_end:
            message = (
                f"unexpected {written}: no {ending.kind} is open; delete it, or check where its {ending.kind} begins"
            )
            self._reading.fault(ending.token.at, Code.STRAY_END, message)
            return
        hint = "; the ELSE of a one-line IF must be on the same line"
        message = f"unexpected {written}: no {ending.kind} is open{hint if ending.kind == 'IF' else ''}"
        self._reading.fault(ending.token.at, Code.MISPLACED, message)


def is_over(cursor: Cursor) -> bool:
    """Whether the statement ends here, possibly before an ELSE on the same line."""
    token = cursor.now
    if token.kind is Kind.WORD and token.value in ENDING_WORDS:
        return token.value in ("ELSE", "ELSEIF", "ENDIF") or cursor.is_at("END", "IF")
    return cursor.is_line_end


def ends_ahead(cursor: Cursor, kind: str) -> Iterator[int]:
    """Token distances from the cursor to the ends of this kind that close blocks begun at or before it. SUB and
    FUNCTION count as one kind."""
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
            elif OPENS.get(word) in kinds and (word != "IF" or _has_lines(cursor, count)):
                depth += 1
        if token.kind is not Kind.NUMBER:
            begins = token.kind is Kind.LINE
        count += 1


def _count(cursor: Cursor, kind: str) -> int:
    return sum(1 for _ in ends_ahead(cursor, kind))


def _has_lines(cursor: Cursor, count: int) -> bool:
    """Whether the IF `count` tokens ahead is a block IF."""
    while (token := cursor.ahead(count)).kind not in (Kind.LINE, Kind.END):
        if token.kind is Kind.WORD and token.value == "THEN":
            behind = cursor.ahead(count + 1)
            return behind.kind is Kind.LINE and behind.text != ":"
        count += 1
    return True


_MEANT = (*OPENS, *_DIVIDES, *_ENDS)
_SHORTEST, _LONGEST = 2, 12
_CONDITIONS = frozenset(("IF", "ELSEIF"))
_NO_VALUES = frozenset(("AND", "OR", "NOT", "IN", "IS", "LIKE", "MOD", "IF", "ELSEIF", "CONTAINS"))
_MOST = 20
"""Limit of corrections per script."""


class SpellingCorrection:
    """Correction of misspelt block words in `tokens`, with a problem in `faults` for each."""

    def __init__(self, tokens: Sequence[Token], knows: Callable[[Token], bool]) -> None:
        """`knows` tests for known words."""
        self.tokens = list(tokens)
        self.faults: list[ScriptProblem] = []
        self._knows = knows
        self._words = {token.value for token in tokens if token.kind is Kind.WORD}

    def run(self) -> None:
        """Correct the tokens."""
        begins = True
        for index, token in enumerate(self.tokens):
            if len(self.faults) >= _MOST:
                return
            if begins and token.kind is Kind.WORD:
                self._begins(index, token)
                begins = False
            elif token.kind is not Kind.NUMBER:
                begins = token.kind is Kind.LINE

    def _begins(self, index: int, token: Token) -> None:
        """Check the first word of a statement at `index`; correct it if it is probably a misspelt keyword of a
        block."""
        if token.value == "END":
            self._behind_end(index + 1)
        elif token.value in _CONDITIONS or (token.value == "ELSE" and self.tokens[index + 1].value == "IF"):
            self._then(index + 1)
        elif not self._knows(token) and not is_assignment(self.tokens, index):
            if _is_near(str(token.value), "END") and self.tokens[index + 1].value in _ENDS_BEHIND_END:
                self._mend(index, "END", f"END {self.tokens[index + 1].value}")
                return
            for word in _MEANT:
                if _is_near(str(token.value), word) and self._fits(index, word):
                    shown = f"END {word[3:]}" if word.startswith("END") else word
                    self._mend(index, word, shown)
                    if word in _CONDITIONS:
                        self._then(index + 1)
                    return

    def _behind_end(self, index: int) -> None:
        token = self.tokens[index]
        if token.kind is not Kind.WORD or token.value in _ENDS_BEHIND_END or self.tokens[index + 1].kind is Kind.SYMBOL:
            return
        for word in _ENDS_BEHIND_END:
            if _is_near(str(token.value), word) and word in self._words:
                self._mend(index, word, f"END {word}", index - 1)
                return

    def _then(self, index: int) -> None:
        """Correct a misspelt THEN after a condition that begins at `index`, unless the line contains THEN."""
        wrong = 0
        while (token := self.tokens[index]).kind not in (Kind.LINE, Kind.END):
            if token.value == "THEN":
                return
            before = self.tokens[index - 1]
            is_behind_value = before.kind in (Kind.NUMBER, Kind.TEXT, Kind.WORD) or before.text in (")", "]")
            if not wrong and token.kind is Kind.WORD and is_behind_value and before.value not in _NO_VALUES:
                wrong = index if _is_near(str(token.value), "THEN") else 0
            index += 1
        if wrong:
            self._mend(wrong, "THEN", "THEN")

    def _mend(self, index: int, word: str, shown: str, at: int = -1) -> None:
        token = self.tokens[index]
        first = self.tokens[at if at >= 0 else index]
        written = f"{first.value} {token.value}" if first is not token else str(token.value)
        message = f"unknown statement {written}; did you mean {shown}?"
        if word == "THEN":
            message = f"expected THEN, found `{token.text}`; did you mean THEN?"
        self.faults.append(ScriptProblem(first.at, Code.UNKNOWN_STATEMENT, message))
        self.tokens[index] = token._replace(text=word, value=word)

    def _fits(self, index: int, word: str) -> bool:
        """Whether the tokens after `index` are valid after the keyword `word`, and the script has the other words of
        its block."""
        following = self.tokens[index + 1]
        is_alone = following.kind in (Kind.LINE, Kind.END)
        if word in OPENS and word != "DO":
            return not is_alone and self._opens(index, word)
        match word:
            case "NEXT":
                return is_alone or (
                    following.kind is Kind.WORD and self.tokens[index + 2].kind in (Kind.LINE, Kind.END)
                )
            case "LOOP":
                return is_alone or following.value in ("WHILE", "UNTIL")
            case "DO":
                return (is_alone or following.value in ("WHILE", "UNTIL")) and "LOOP" in self._words
            case "ELSE":
                return (is_alone or following.value == "IF") and "IF" in self._words
            case "ELSEIF":
                return has_then(self.tokens, index)
            case "CASE" | "DEFAULT":
                return is_alone is (word == "DEFAULT") and bool({"SELECT", "SWITCH"} & self._words)
            case _:
                return is_alone

    def _opens(self, index: int, word: str) -> bool:
        """Whether the line is valid for a block that begins with `word`."""
        following = self.tokens[index + 1]
        if word == "IF":
            return has_then(self.tokens, index)
        if word in ("FOR", "FOREACH"):
            behind = self.tokens[index + 2]
            is_counting = following.kind is Kind.WORD and (behind.text == "=" or behind.value == "IN")
            return is_counting or following.value == "EACH"
        if word in ("SUB", "FUNCTION", "WITH") and following.kind is not Kind.WORD:
            return False
        return (word == "SELECT" and following.value == "CASE") or bool(
            {word, f"END{word}", WRITTEN.get(word)} & self._words
        )


def _is_near(written: str, word: str) -> bool:
    """Whether the words differ by one wrong, missing or additional letter, or by two swapped letters."""
    if not _SHORTEST <= len(written) <= _LONGEST or abs(len(written) - len(word)) > 1 or written == word:
        return False
    same = 0
    while same < min(len(written), len(word)) and written[same] == word[same]:
        same += 1
    left, right = written[same:], word[same:]
    if left[1:] == right[1:] or left[1:] == right or left == right[1:]:
        return True
    return left[:2] == right[1::-1] and left[2:] == right[2:]
