"""Lexer: from script text to tokens, in one pass."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple
from unicodedata import category, decimal, normalize

from function_calls.basic.codes import Code, ScriptProblem
from function_calls.basic.language.comments import FORBIDDEN, MEANT, QUOTES, begins_text, forbidden, out_of_place
from function_calls.basic.language.quoted import Quoted, continues, parts_of, quoted, row_statement_continues
from function_calls.basic.language.tokens import Inner, Kind, Token
from function_calls.basic.nodes import At
from services.refs import JsonValue

_EXAMPLE_END = re.compile(r"[ \t](?:(?:DESCRIPTION|OPTIONAL|REQUIRED|DEFAULT|ENUM|LIKE|AS)\b|'|//|\#)", re.IGNORECASE)
_DESCRIPTION_END = re.compile(r"[ \t](?:OPTIONAL|REQUIRED|DEFAULT|ENUM|LIKE)\b")
_ONE_VALUE = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$|[^\W\d]\w*$")
_OWN_READING = ("'", '"', "`", "[", "{", "#", "(", "“", "„", "”", "‘", "«", "「", "＂")
"""Beginnings of values that the ordinary lexer rules read."""

_NOT_PROSE = re.compile(
    r"""[ \t]*(?: $ | [A-Z_]{2,}\b | '| // | \# | (?i:REM)\b | \d+[ \t] )  # blank, a keyword, a comment, a number
      | [^"=\n]*["=]                                                        # a text or an assignment
      | [ \t]*[\w.]+\(                                                      # a call
      | .*\b(?i:THEN)[ \t]*$""",
    re.VERBOSE | re.MULTILINE,
)
_CLOSED_LATER = re.compile(
    r'[^"\n]*\n(?:(?![ \t]*(?:PARAM\b|DESCRIPTION\b|\n))[^"\n]*\n)*?[^"\n]*"(?=[ \t]*$)', re.IGNORECASE | re.MULTILINE
)
_MARK = ("=", ".", "(", ",", ")", "]", "}", ":", "+=", "-=", "*=", "/=", "&=", "^=")
_HAS_END_TABLE = re.compile(r"^[ \t]*END[ \t]+TABLE\b", re.IGNORECASE | re.MULTILINE)


class Raw(NamedTuple):
    """An unquoted text, from `start` to `end` in the script."""

    text: str
    start: int
    end: int


def description(text: str, position: int) -> Raw | None:
    """Text after a DESCRIPTION statement that ends at `position`; None if the ordinary rules apply.

    Unquoted text extends to the end of the line, and over following lines that read like prose: not blank, not begun
    with an upper-case word, and without a quote or `=`. Quoted text may end in a later line."""
    line = _line(text, position)
    if line.text.startswith('"') and '"' not in line.text[1:]:
        closed = _CLOSED_LATER.match(text, line.start + 1)
        if closed:
            parts = closed.group()[:-1].splitlines()
            return Raw(" ".join(part.strip() for part in parts).strip(), line.start, closed.end())
    if line.text.startswith(_OWN_READING):
        return None
    words, end = _prose(text, line)
    return Raw(" ".join(words), line.start, end) if words else None


def _prose(text: str, line: Raw) -> tuple[list[str], int]:
    """Text of this line and of following lines of prose, and their end offset."""
    words = [line.text] if line.text else []
    end = line.end
    while (following := text.find("\n", end)) >= 0 and not _NOT_PROSE.match(text, following + 1):
        line = _line(text, following + 1)
        words.append(line.text)
        end = line.end
    return words, end


def example(text: str, position: int) -> Raw | None:
    """Unquoted example after LIKE of a PARAM; None if it is quoted, or a single number or word."""
    raw = _up_to(_EXAMPLE_END, text, position)
    return None if raw is None or _ONE_VALUE.match(raw.text) else raw


def _up_to(last: re.Pattern[str], text: str, position: int) -> Raw | None:
    """Unquoted text up to `last`; None if there is none, or if it is quoted."""
    line = _line(text, position)
    if line.text.startswith(_OWN_READING):
        return None
    found = last.search(text, line.start, line.end)
    words = text[line.start : found.start() if found else line.end].rstrip()
    return Raw(words, line.start, line.start + len(words)) if words else None


def _line(text: str, position: int) -> Raw:
    """Rest of the line from `position`, stripped, with its offsets."""
    end = text.find("\n", position)
    rest = text[position : len(text) if end < 0 else end].rstrip()
    words = rest.lstrip()
    return Raw(words, position + len(rest) - len(words), position + len(rest))


def is_named_otherwise(text: str, position: int) -> bool:
    """Whether the word that ends at `position` is a name instead of a statement: `begin = 1`, `begin.x`."""
    return _line(text, position).text.startswith(_MARK)


def block_end(text: str, position: int, word: str) -> re.Match[str] | None:
    """Match of the line that ends the block BEGIN `word`, searched from `position`; None if the block is not ended. A
    SYSTEM PROMPT block may end with either of its words."""
    last = r"(?:SYSTEM[ \t]+)?PROMPT|SYSTEM" if word == "SYSTEM" else re.escape(word)
    return re.compile(rf"^[ \t]*END[ \t]+(?:{last})[ \t]*(?:(?:'|//|\#|REM\b).*)?$", re.I | re.M).search(text, position)


_TOKEN = re.compile(
    r"""[ \t\xa0\u3000]*(?:
      (?P<word>[^\W\d]\w*)\$?
    | (?P<symbol><>|<=|>=|!=|==|[,=<>+\-*\\^]|/(?!/)|\.(?![0-9])|\?\.(?![0-9]))
    | (?P<plain>"[^"\\$\n]*"(?!"))
    | (?P<newline>\n(?:[ \t]*\n)*)
    | (?P<bracket>[()\[\]{}]|\#\{)
    | (?P<number>(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<comment>(?://|\#).*)
    | (?P<quote>["'`])
    | (?P<mark>[:;%]|&&?|\|\|?|\?\??|!)
    | (?P<end>\Z)
    | (?P<other>.)
    )""",
    re.VERBOSE,
)
_ONE_SPELLING = {"!=": "<>", "==": "=", "?.": "."}
_CLOSES = {")": "(", "]": "[", "}": "{"}
_SPECIAL = frozenset(
    ["_", "REM", "DESCRIPTION", "PARAM", "LIKE", "BEGIN", "TABLE", "HTTP", "HTTPS", "WS", "WSS", "FTP", "FTPS"]
)
_URL = re.compile(r"://[^\s,\"'`()\[\]{}<>]+")
_REST_OF_LINE_IS_COMMENT = re.compile(r"[ \t]*(?:(?:'|//|#|REM\b).*)?(?:\n(?:[ \t]*\n)*|\Z)", re.IGNORECASE)
_NOTHING_MORE = re.compile(r"[ \t]*(?:\n|\Z|'|//|#)")
_BLOCK_BEGINS = re.compile(r"[ \t]+([^\W\d]\w*)")
_TYPOGRAPHIC_ENDS = {'"': re.compile('[^“”„‟«»「」『』＂〝〞"\n]*'), "'": re.compile("[^‘’‚‛＇'\n]*")}
_FOREIGN = {"&&": "AND", "||": "OR", "|": "OR", "!": "NOT"}
_TYPED = re.compile(
    r"(?:^|:|\b(?:LET|FOR|THEN|ELSE|CONST))[ \t]*(?!\d)(\w+(?:%(?=[ \t])|[!#]))[ \t]*=(?!=)",
    re.IGNORECASE | re.MULTILINE,
)
"""Assignment to a name with a type suffix, `n% = 5`. Excludes `n%=5`, a likely slip for `n = n % 5`."""
_FAR = 100
"""Maximum nesting distance at which a closing bracket is matched with its opening one."""
_MOST_DIGITS = 300
"""Maximum length of a number literal."""


def tokens_of(text: str) -> tuple[list[Token], list[ScriptProblem]]:
    """Tokenize a script. Returns the tokens, the last one END, and at most one problem per line. Never raises.

    A line with a problem keeps its tokens, with the presumed meaning of wrong characters, so that an IF with a
    typographic quote still opens its block."""
    lexer = _Lexer(as_lines(text), 1, -1)
    lexer.drop_forbidden()
    lexer.run()
    return lexer.tokens, lexer.faults


def as_lines(text: str) -> str:
    """The text without a byte order mark and with `\\n` line ends."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def tokens_inside(inner: Inner) -> tuple[list[Token], list[ScriptProblem]]:
    """Tokenize the source of a `${…}`; positions refer to the script. Returns the tokens and the problems found."""
    lexer = _Lexer(inner.source, inner.at.line, -inner.at.column)
    lexer.brackets.append("{")
    lexer.run()
    return lexer.tokens, lexer.faults


class _Lexer:
    """Lexer of one text, with the tokens and problems found so far."""

    __slots__ = (
        "_block", "_faulty", "_no_end_table", "_no_inner_before", "_param", "base", "brackets", "faults",
        "line", "text", "tokens",
    )  # fmt: skip

    def __init__(self, text: str, line: int, base: int) -> None:
        self.text = text
        self.faults: list[ScriptProblem] = []
        self.tokens: list[Token] = []
        self.brackets: list[str] = []
        """Open brackets, outermost first, and each `?` whose `:` has not been read."""
        self.line = line
        self.base = base
        """Offset in the text that corresponds to column 0 of the current line."""
        self._faulty: set[int] = set()
        self._param = False
        """Whether the current statement is a PARAM."""
        self._block: tuple[str, At] | None = None
        """Keyword after a BEGIN on the current line, and the position of the BEGIN; the block starts on the next
        line."""
        self._no_inner_before = 0
        self._no_end_table = False

    def run(self) -> None:
        text, append, match, rare = self.text, self.tokens.append, _TOKEN.match, self._rare
        typed = {name.upper() for name in _TYPED.findall(text)}
        position, line, base = 0, self.line, self.base
        while True:
            found = match(text, position)
            assert found is not None
            kind = found.lastgroup
            assert kind is not None
            piece: str = found[kind]
            position = found.end()
            if kind == "word":
                start = found.start(kind)
                value = piece.upper()
                if typed and value + text[position : position + 1] in typed:
                    position += 1
                if value in _SPECIAL and (moved := self._special(piece, value, start)) >= 0:
                    position, line, base = moved, self.line, self.base
                else:
                    append(Token(Kind.WORD, piece, value, At(line, start - base)))
            elif kind == "symbol":
                at = At(line, position - len(piece) - base)
                append(Token(Kind.SYMBOL, _ONE_SPELLING.get(piece, piece), None, at))
            elif kind == "plain":
                at = At(line, position - len(piece) - base)
                append(Token(Kind.TEXT, piece, (piece[1:-1],), at))
            elif kind == "end":
                break
            elif kind != "comment":
                position = rare[kind](self, piece, position - len(piece), position)
                line, base = self.line, self.base
        if self._block:
            self._read_block(len(text))
        self.put(Kind.END, "", None, len(text))

    def at(self, offset: int) -> At:
        """Position of an offset in the current line or after it."""
        lines = self.text.count("\n", max(self.base + 1, 0), offset)
        if not lines:
            return At(self.line, offset - self.base)
        return At(self.line + lines, offset - self.text.rfind("\n", 0, offset))

    def put(self, kind: Kind, piece: str, value: JsonValue, start: int) -> None:
        """Append a token that begins at `start` in the current line."""
        self.tokens.append(Token(kind, piece, value, At(self.line, start - self.base)))

    def go(self, start: int, end: int) -> int:
        """Advance the line count over the text from `start` to `end`; returns `end`."""
        lines = self.text.count("\n", start, end)
        if lines:
            self.line += lines
            self.base = self.text.rfind("\n", start, end)
        return end

    def line_end(self, offset: int) -> int:
        """Offset of the end of the line that contains `offset`."""
        end = self.text.find("\n", offset)
        return len(self.text) if end < 0 else end

    def fault(self, at: At, code: Code, message: str) -> None:
        """Report a problem. Only the first problem of a line is kept."""
        if at.line not in self._faulty:
            self._faulty.add(at.line)
            self.faults.append(ScriptProblem(at, code, message))

    def drop_forbidden(self) -> None:
        """Report characters that no script may contain, and replace them with spaces."""
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

    # Words with lexer rules of their own

    def _begins_statement(self) -> bool:
        tokens = self.tokens
        if not tokens or tokens[-1].kind is Kind.LINE:
            return True
        return tokens[-1].kind is Kind.NUMBER and (len(tokens) == 1 or tokens[-2].kind is Kind.LINE)

    def _special(self, piece: str, value: str, start: int) -> int:
        """Read a word with special lexer rules. Returns the offset after it, or -1 to read it as an ordinary word."""
        end = start + len(piece)
        if value == "_":
            found = _REST_OF_LINE_IS_COMMENT.match(self.text, end)
            return self.go(start, found.end()) if found else -1
        if value == "REM":
            return self.line_end(end) if self._begins_statement() or self._is_remark(start, end) else -1
        if self._param and self.tokens[-1].value == "PARAM":
            return -1
        if value == "LIKE":
            return self._raw(piece, value, start, example(self.text, end)) if self._param else -1
        if value == "DESCRIPTION" and self._param:
            return self._raw(piece, value, start, _up_to(_DESCRIPTION_END, self.text, end))
        if value.startswith(("HTTP", "WS", "FTP")):
            url = _URL.match(self.text, end)
            return self._raw("", "", start, Raw(piece + url.group(), start, url.end())) if url else -1
        if self._begins_statement() and not is_named_otherwise(self.text, end):
            return self._statement(piece, value, start)
        return -1

    def _is_remark(self, start: int, end: int) -> bool:
        """Whether a REM within a statement begins a comment, as in `x = 1 REM …`, and is no key or member."""
        if self.brackets:
            before = self.text[max(self.base + 1, 0) : start]
            return not before.strip() and not is_named_otherwise(self.text, end)
        return self.tokens[-1].text != "."

    def _statement(self, piece: str, value: str, start: int) -> int:
        end = start + len(piece)
        if value == "DESCRIPTION":
            return self._raw(piece, value, start, description(self.text, end))
        if value == "PARAM":
            self._param = True
        elif found := _BLOCK_BEGINS.match(self.text, end):
            word = "TABLE" if value == "TABLE" else found.group(1).upper()
            if value == "BEGIN" or self._has_end_table(end):
                self._block = word, self.at(start)
        return -1

    def _has_end_table(self, position: int) -> bool:
        if not self._no_end_table:
            self._no_end_table = _HAS_END_TABLE.search(self.text, position) is None
        return not self._no_end_table

    def _raw(self, piece: str, value: str, start: int, raw: Raw | None) -> int:
        if raw is None:
            return -1
        if piece:
            self.put(Kind.WORD, piece, value, start)
        self.tokens.append(Token(Kind.TEXT, raw.text, (raw.text,), self.at(raw.start)))
        return self.go(start, raw.end)

    # Other tokens

    def _newline(self, piece: str, start: int, end: int) -> int:
        if self._block:
            return self._read_block(start)
        last = self.tokens[-1] if self.tokens else None
        while self.brackets and self.brackets[-1] == "?":
            self.brackets.pop()
        if last is None or last.kind is Kind.LINE:
            if last and last.text == ":":
                self.tokens[-1] = last._replace(text=":\n")
        elif not (
            continues(last, self.text, end, self.brackets, piece.count("\n") > 1)
            or (not self.brackets and row_statement_continues(self.tokens, self.text, end))
        ):
            self.put(Kind.LINE, "\n", None, start)
            self.brackets.clear()
            self._param = False
        return self.go(start, end)

    def _read_block(self, start: int) -> int:
        assert self._block is not None
        word, begin = self._block
        self._block = None
        self.brackets.clear()
        first = min(start + 1, len(self.text))
        found = block_end(self.text, first, word)
        if found is None:
            self.fault(
                begin, Code.NOT_CLOSED, f"the block that begins here is not closed; expected END {word} on its own line"
            )
        raw = self.text[first : found.start() if found else len(self.text)].removesuffix("\n")
        parts = parts_of(raw, lambda offset: self.at(first + offset))
        if parts.wrong:
            self.fault(self.at(first + parts.wrong_at), Code.OPEN_TEXT, parts.wrong)
        self.tokens.append(Token(Kind.BLOCK, raw, parts.parts, self.at(first)))
        return self.go(start, found.end() if found else len(self.text))

    def _bracket(self, piece: str, start: int, end: int) -> int:
        self.put(Kind.SYMBOL, piece, None, start)
        opener = _CLOSES.get(piece)
        if opener is None:
            self.brackets.append(piece.removeprefix("#"))
        elif opener in self.brackets[-_FAR:]:
            while self.brackets.pop() != opener:
                pass
        return end

    def _number(self, piece: str, start: int, end: int) -> int:
        value: JsonValue = 0
        if len(piece) <= _MOST_DIGITS:
            value = int(piece) if piece.isdigit() else float(piece)
        if len(piece) > _MOST_DIGITS or value == float("inf"):
            self.fault(self.at(start), Code.SYNTAX, "the number that begins here is too long; put it in quotes")
            value = 0
        self.put(Kind.NUMBER, piece, value, start)
        return end

    def _quote(self, piece: str, start: int, end: int) -> int:
        if piece == "'" and (not self.tokens or self.tokens[-1].kind is Kind.LINE):
            return self.line_end(end)
        found = quoted(self.text, start, self.at, self._no_inner_before)
        if piece == "'":
            closed = -1 if found.wrong_at == start else found.end
            if not begins_text(self.tokens, self.text, start, closed):
                return self.line_end(end)
        return self._quoted(piece, start, found)

    def _quoted(self, quote: str, start: int, found: Quoted) -> int:
        if found.wrong:
            self.fault(self.at(found.wrong_at), Code.OPEN_TEXT, found.wrong)
            if found.wrong_at != start:
                self._no_inner_before = len(self.text) if quote == "`" else self.line_end(start)
        self.put(Kind.TEXT, self.text[start : found.end], found.parts, start)
        return self.go(start, found.end)

    def _mark(self, piece: str, start: int, end: int) -> int:
        if piece == "%":
            self.put(Kind.WORD, piece, "MOD", start)
        elif piece == ":" and not self.brackets:
            # `x := 1` is read as `x = 1`.
            if not self.text.startswith("=", end) and self.tokens and self.tokens[-1].kind is not Kind.LINE:
                self.put(Kind.LINE, piece, None, start)
                self._param = False
        elif piece in (":", "&") or (piece == "?" and not self._begins_statement()):
            self.put(Kind.SYMBOL, piece, None, start)
            if piece == "?":
                self.brackets.append(piece)
            elif piece == ":" and self.brackets[-1] == "?":
                self.brackets.pop()
        elif piece == ";":
            if self.brackets or not _NOTHING_MORE.match(self.text, end) or self._is_print():
                self.put(Kind.SYMBOL, piece, None, start)
        else:
            self.fault(self.at(start), Code.BAD_CHARACTER, out_of_place(piece))
            if piece in _FOREIGN:
                self.put(Kind.WORD, piece, _FOREIGN[piece], start)
        return end

    def _is_print(self) -> bool:
        """Whether the statement is a PRINT; a `;` at its end suppresses the line break."""
        for token in reversed(self.tokens):
            if token.kind is Kind.LINE:
                return False
            if token.value == "PRINT":
                return True
        return False

    def _other(self, piece: str, start: int, end: int) -> int:
        """Read a character outside the language's syntax and return the next position. Reports BAD_CHARACTER, then
        continues with the sign or digit that was probably meant, such as typographic quotes; marks extend the word
        before them."""
        if category(piece).startswith("M") and self.is_behind_word(start):
            return self._longer_word(end)
        self.fault(self.at(start), Code.BAD_CHARACTER, out_of_place(piece))
        meant = MEANT.get(piece, "")
        if piece in QUOTES:
            closing = _TYPOGRAPHIC_ENDS[meant].match(self.text, end)
            last = closing.end() if closing else end
            self.put(Kind.TEXT, self.text[start:last], (self.text[end:last],), start)
            return min(last + 1, self.line_end(end))
        if meant == "#":
            return self.line_end(end)
        if meant and meant in "()[]{}":
            return self._bracket(meant, start, end)
        if meant and meant in ":;%&":
            return self._mark(meant, start, end)
        digit = decimal(piece, None)
        if meant or digit is not None:
            self.put(Kind.SYMBOL if meant else Kind.NUMBER, meant or piece, digit, start)
        return end

    def _longer_word(self, end: int) -> int:
        """Extend the last word over following letters and combining marks (vowel signs, decomposed accents)."""
        word = self.tokens.pop()
        start = word.at.column + self.base
        while end < len(self.text) and (self.text[end].isalnum() or self.text[end] == "_" or _is_mark(self.text[end])):
            end += 1
        whole = normalize("NFC", self.text[start:end])
        self.put(Kind.WORD, whole, whole.upper(), start)
        return end

    # Class attribute: bound methods on the instance would form a reference cycle and keep all tokens alive until the
    # garbage collector runs.
    _rare: ClassVar[Mapping[str, Callable[[Any, str, int, int], int]]] = {
        "newline": _newline,
        "bracket": _bracket,
        "number": _number,
        "quote": _quote,
        "mark": _mark,
        "other": _other,
    }


def _is_mark(character: str) -> bool:
    return category(character).startswith("M")
