"""What a lexer has made so far, and where it stands."""

from __future__ import annotations

from function_calls.basic.characters import FORBIDDEN, forbidden
from function_calls.basic.codes import Code, Fault
from function_calls.basic.nodes import At
from function_calls.basic.tokens import Kind, Token
from services.json_values import JsonValue


class Scanned:
    """Of one text."""

    __slots__ = ("_faulty", "base", "brackets", "faults", "line", "text", "tokens")

    def __init__(self, text: str, line: int, base: int) -> None:
        self.text = text
        self.faults: list[Fault] = []
        self.tokens: list[Token] = []
        self.brackets: list[str] = []
        """Those that are open."""
        self.line = line
        self.base = base
        """What is taken from an offset in this line to have its column."""
        self._faulty: set[int] = set()

    def at(self, offset: int) -> At:
        """The place of an offset in this line or behind it."""
        lines = self.text.count("\n", max(self.base + 1, 0), offset)
        if not lines:
            return At(self.line, offset - self.base)
        return At(self.line + lines, offset - self.text.rfind("\n", 0, offset))

    def put(self, kind: Kind, piece: str, value: JsonValue, start: int) -> None:
        """A token that begins at `start` in this line."""
        self.tokens.append(Token(kind, piece, value, At(self.line, start - self.base)))

    def go(self, start: int, end: int) -> int:
        """Go on behind `end`, over the lines that end before it."""
        lines = self.text.count("\n", start, end)
        if lines:
            self.line += lines
            self.base = self.text.rfind("\n", start, end)
        return end

    def line_end(self, offset: int) -> int:
        """Where the line ends that the offset is in."""
        end = self.text.find("\n", offset)
        return len(self.text) if end < 0 else end

    def fault(self, at: At, code: Code, message: str) -> None:
        """Something is wrong here. Of a line only the first fault counts."""
        if at.line not in self._faulty:
            self._faulty.add(at.line)
            self.faults.append(Fault(at, code, message))

    def drop_forbidden(self) -> None:
        """Put a space where a character stands that no script may hold."""
        if not FORBIDDEN.search(self.text):
            return
        for number, line in enumerate(self.text.split("\n"), 1):
            if found := FORBIDDEN.search(line):
                self.fault(At(number, found.start() + 1), Code.BAD_CHARACTER, forbidden(found.group()))
        self.text = FORBIDDEN.sub(" ", self.text)

    def is_behind_word(self, offset: int) -> bool:
        """Whether the last token is a word that ends at the offset."""
        last = self.tokens[-1] if self.tokens else None
        if last is None or last.kind is not Kind.WORD:
            return False
        return self.at(offset) == (last.at.line, last.at.column + len(last.text))
