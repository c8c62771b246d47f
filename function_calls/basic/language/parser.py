"""Parser: from script text to its syntax tree and all syntax problems."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from function_calls.basic.codes import Code, ScriptError, ScriptProblem
from function_calls.basic.language.blocks import Blocks, split_next_lists
from function_calls.basic.language.comments import comments_above, name_above
from function_calls.basic.language.form_parts import keyword_words_of
from function_calls.basic.language.forms import Forms
from function_calls.basic.language.header import read_description, read_metadata, read_param
from function_calls.basic.language.lexer import as_lines, tokens_of
from function_calls.basic.language.open_blocks import Labels, SpellingCorrection, TooManyBlocks
from function_calls.basic.language.parser_state import Arity, ParserState
from function_calls.basic.language.scopes import Survey, survey
from function_calls.basic.language.statements import LANGUAGE, Statements
from function_calls.basic.language.tokens import Cursor, Kind, Token
from function_calls.basic.nodes import At, Define, Goto, If, Param, Return, Script, Select, Statement, Stop, Throw, Unit
from services.refs import JsonValue


class Procedures:
    """Parser of SUB and FUNCTION, with the definitions found so far."""

    def __init__(self, reading: ParserState, blocks: Blocks, labels: Labels) -> None:
        self._reading = reading
        self._blocks = blocks
        self._labels = labels
        self._lines: dict[str, int] = {}
        self.found: list[Define] = []

    def define(self, cursor: Cursor) -> None:
        """Parse the SUB or FUNCTION at the cursor. Problems are reported, not raised."""
        token = cursor.take()
        name, parameters = self._blocks.header(cursor, lambda: self._header(cursor, token)) or ("", ())
        self._blocks.line_end(cursor, str(token.value))
        if name in self._lines:
            message = f"the SUB or FUNCTION `{name}` is already defined on line {self._lines[name]}; rename one of them"
            self._reading.fault(token.at, Code.DUPLICATE_NAME, message)
        elif name:
            self._lines[name] = token.at.line
        with self._blocks.open.block(str(token.value), token) as opened, self._labels.nested_scope():
            body = self._blocks.body(cursor)
            has_end = self._blocks.end(cursor, opened)
        if has_end:
            self._blocks.line_end(cursor, f"END {token.value}")
        if name:
            self.found.append(Define(token.at, name, parameters, body))

    def _header(self, cursor: Cursor, token: Token) -> tuple[str, tuple[str, ...]]:
        if cursor.now.kind is not Kind.WORD:
            cursor.fail(f"expected a name after {token.value}, {cursor.found()}; write {token.value} greet(name)")
        name = cursor.take().text.lower()
        parameters: list[str] = []
        if cursor.is_symbol("("):
            opener = cursor.take()
            while not cursor.is_symbol(")"):
                self._parameter(cursor, opener.at, parameters)
                if not cursor.symbol(","):
                    break
            if cursor.is_line_end:
                cursor.fail(f"`(` is not closed after {token.value} {name}", at=opener.at)
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
            cursor.fail(f"expected the name of a parameter, {cursor.found()}")
        cursor.index += 1
        name = token.text.lower()
        if name in parameters:
            cursor.fail(f"duplicate parameter {token.text}", Code.DUPLICATE_NAME, token.at)
        parameters.append(name)
        self._type(cursor)
        if cursor.is_symbol("="):
            cursor.fail("parameters have no default values; assign one at the start of the body")

    def _type(self, cursor: Cursor) -> None:
        """Parse and ignore AS type; values are dynamically typed."""
        if cursor.words("AS"):
            if cursor.now.kind is not Kind.WORD:
                cursor.fail(f"expected a type after AS, {cursor.found()}")
            cursor.index += 1


_WRITTEN: Mapping[str, str] = {
    "IF": "IF condition THEN … ELSE … END IF",
    "ELSE": "IF condition THEN … ELSE … END IF",
    "ELSEIF": "IF condition THEN … ELSEIF … END IF",
    "FOR": "FOR i = 1 TO 10 … NEXT, or FOR EACH item IN list … NEXT",
    "FOREACH": "FOR EACH item IN list … NEXT",
    "WHILE": "WHILE condition … WEND",
    "DO": "DO … LOOP UNTIL condition",
    "SWITCH": "SELECT CASE value … CASE 1 … END SELECT",
    "SELECT": "SELECT CASE value … CASE 1 … END SELECT",
    "FUNCTION": "FUNCTION name(a, b) … END FUNCTION",
    "SUB": "SUB name(a, b) … END SUB",
    "TRY": "ON ERROR RESUME NEXT before it, and IF ERROR THEN after it",
}
"""Correct syntax by the first word of the statement."""
_GO_ON = frozenset(("ELSE", "ELSEIF", "WHILE", "CATCH", "FINALLY"))
"""Words after `}` that continue the statement."""
_OPENS = frozenset(("{", "#{"))


def without_braces(tokens: Sequence[Token]) -> tuple[list[Token], list[ScriptProblem]]:
    """Remove blocks in braces from the tokens. Returns the rest and a problem for each block."""
    kept: list[Token] = []
    faults: list[ScriptProblem] = []
    begins, index = True, 0
    while index < len(tokens):
        token = tokens[index]
        if begins and token.kind is Kind.WORD and token.value in _WRITTEN and (brace := _brace_of(tokens, index)):
            message = f"blocks in braces are not supported; write {_WRITTEN[token.value]}, each part on its own line"
            faults.append(ScriptProblem(token.at, Code.SYNTAX, message))
            index = _behind(tokens, brace)
            continue
        begins = token.kind is Kind.LINE
        kept.append(token)
        index += 1
    return kept, faults


def _brace_of(tokens: Sequence[Token], index: int) -> int:
    """Index of the brace that opens the block of the statement at `index`, or 0. A map at the end of a line, as in `IF
    x = {`, follows an operator."""
    first = tokens[index]
    behind = tokens[index + 1]
    if behind.kind is Kind.SYMBOL and behind.text not in ("(", "{"):
        return 0
    if first.value == "ELSE" and behind.value != "IF" and behind.text != "{":
        return 0
    while tokens[index].kind not in (Kind.LINE, Kind.END) and tokens[index].at.line == first.at.line:
        if tokens[index].value == "THEN" and tokens[index + 1].text != "{":
            return 0
        if tokens[index].text == "{" and tokens[index].kind is Kind.SYMBOL:
            ends_line = tokens[index + 1].kind is Kind.LINE or tokens[index + 1].at.line > first.at.line
            before = tokens[index - 1]
            if (ends_line or _holds_statements(tokens, index)) and (
                before.kind in (Kind.WORD, Kind.NUMBER, Kind.TEXT) or before.text in (")", "]")
            ):
                return index if before.value not in ("IN", "TO") else 0
        index += 1
    return 0


def _holds_statements(tokens: Sequence[Token], brace: int) -> bool:
    """Whether a brace within a line opens a block, as in `if (x) { TALK "a" }`, and not a map."""
    first, second = tokens[brace + 1], tokens[brace + 2] if brace + 2 < len(tokens) else tokens[-1]
    return first.kind is Kind.WORD and second.text not in (":", ",", "}") and bool(_closed(tokens, brace))


def _behind(tokens: Sequence[Token], brace: int) -> int:
    """Index after the block that begins with this brace and its continuations; the end of the line if it is not
    closed."""
    while closed := _closed(tokens, brace):
        following = closed + 1
        while tokens[following].kind is Kind.LINE and tokens[following + 1].value in _GO_ON - {"WHILE"}:
            if not _brace_of(tokens, following + 1):
                break
            following += 1
        if tokens[following].value not in _GO_ON:
            return following
        brace = following
        while tokens[brace].kind not in (Kind.LINE, Kind.END) and tokens[brace].text not in _OPENS:
            brace += 1
        if tokens[brace].text != "{":
            break
    return _line_end(tokens, brace)


def _closed(tokens: Sequence[Token], brace: int) -> int:
    depth = 0
    for index in range(brace, len(tokens)):
        if tokens[index].kind is Kind.SYMBOL:
            depth += (tokens[index].text in _OPENS) - (tokens[index].text == "}")
            if not depth:
                return index
    return 0


def _line_end(tokens: Sequence[Token], index: int) -> int:
    while tokens[index].kind not in (Kind.LINE, Kind.END):
        index += 1
    return index


_MOST_FAULTS = 100


class Parsed(NamedTuple):
    """Result of parsing a script."""

    script: Script
    """Has at least one unit, even for an empty file. After problems it contains the valid parts."""
    faults: tuple[ScriptProblem, ...]
    """Sorted by position, without duplicates."""


def parse(text: str, forms: Forms, functions: Mapping[str, Arity]) -> Parsed:
    """Parse a script. Never raises, whatever the text.

    `functions` are the built-ins, by lower-case name. Parsing continues after a problem, so that several are reported
    at once."""
    read, found = tokens_of(text)
    written = split_next_lists(read)
    tokens, names, slips = _corrected(written, forms, functions)
    reading = ParserState(functions, forms.names, names, frozenset(fault.at.line for fault in found))
    for slip in slips:
        reading.failed(slip, slip.at.line, slip.at.line)
    statements = Statements(forms, reading, names)
    units = _Units(statements, reading, as_lines(text).split("\n"))
    try:
        units.read(Cursor(tokens))
    except TooManyBlocks:
        units.finish()
    script = Script(tuple(units.found), tuple(units.procedures.found))
    return Parsed(script, _in_order((*found, *reading.faults)))


def _corrected(
    written: Sequence[Token], forms: Forms, functions: Mapping[str, Arity]
) -> tuple[Sequence[Token], Survey, list[ScriptProblem]]:
    """Correct misspelt words and remove blocks in braces. Returns the tokens, their names and the problems."""
    names = survey(written)
    tokens, faults = without_braces(written)
    first = keyword_words_of(forms.names).first

    def knows(token: Token) -> bool:
        name = token.text.lower()
        callable_names = name in functions or name in names.definitions
        return callable_names or token.value in LANGUAGE or token.value in first or name in names.goals

    correction = SpellingCorrection(tokens, knows)
    correction.run()
    tokens, faults = correction.tokens, [*faults, *correction.faults]
    if not faults:
        return written, names, faults
    again = survey(tokens)
    # Procedures in a skipped block may be called elsewhere.
    definitions = {**names.definitions, **again.definitions}
    return tokens, Survey(names.variables | again.variables, definitions, names.goals | again.goals), faults


def _in_order(faults: Iterable[ScriptProblem]) -> tuple[ScriptProblem, ...]:
    by_place: dict[tuple[At, Code], ScriptProblem] = {}
    for fault in faults:
        by_place.setdefault((fault.at, fault.code), fault)
    found = sorted(by_place.values(), key=lambda fault: fault.at)
    if len(found) > _MOST_FAULTS:
        more = found[_MOST_FAULTS]
        rest = ScriptProblem(
            more.at, more.code, f"{len(found) - _MOST_FAULTS} more errors from here on; fix the previous ones first"
        )
        return (*found[:_MOST_FAULTS], rest)
    return tuple(found)


class _Units:
    """Parser of the tools of a file."""

    def __init__(self, statements: Statements, reading: ParserState, lines: list[str]) -> None:
        self._statements = statements
        self._reading = reading
        self._lines = lines
        self.found: list[Unit] = []
        self.procedures = Procedures(reading, statements.blocks, statements.labels)
        self._begin()

    def _begin(self) -> None:
        self._at: At | None = None
        self._params: list[Param] = []
        self._results: list[Param] = []
        self._metadata: dict[str, JsonValue] = {}
        self._description = ""
        self._description_at: At | None = None
        self._body: list[Statement] = []

    def read(self, cursor: Cursor) -> None:
        """Parse all tools to the end of the script. Raises TooManyBlocks; other errors are reported."""
        blocks = self._statements.blocks
        while True:
            found = blocks.body(cursor)
            if found:
                self._at = self._at or found[0].at
                self._body.extend(found)
            token = cursor.now
            if token.kind is Kind.END:
                break
            if token.value in ("SUB", "FUNCTION"):
                self.procedures.define(cursor)
            else:
                self._read_header(cursor)
        self.finish()

    def _read_header(self, cursor: Cursor) -> None:
        token = cursor.now
        if self._body and _ends(self._body[-1]):
            self.finish()
        self._at = self._at or token.at
        try:
            if token.value in ("PARAM", "RETURNS"):
                declared = self._params if token.value == "PARAM" else self._results
                declared.append(read_param(cursor, self._statements.read))
            elif token.value == "META":
                name, value = read_metadata(cursor, self._statements.read)
                self._metadata[name] = value
            else:
                self._description, self._description_at = read_description(cursor)
        except ScriptError as error:
            self._statements.blocks.skip_line(cursor)
            self._reading.failed(error.fault, token.at.line, cursor.now.at.line)
        self._statements.blocks.line_end(cursor, str(token.value))

    def finish(self) -> None:
        """Append the current tool to `found`, and start a new one. Only the first tool of a script may be empty."""
        self._statements.labels.settle()
        if self._at is None and self.found:
            return
        at = self._at or At(1, 1)
        above = at if self._at else At(len(self._lines) + 1, 1)
        self.found.append(
            Unit(
                at,
                tuple(self._params),
                self._description,
                self._description_at,
                comments_above(self._lines, above),
                tuple(self._body),
                name_above(self._lines, above),
                tuple(self._results),
                tuple(self._metadata.items()),
            )
        )
        self._begin()


def _ends(statement: Statement) -> bool:
    """Whether control never continues to the next statement: after a jump, RETURN, END or THROW, or if all branches end
    so."""
    if isinstance(statement, If):
        return _all_end(statement.otherwise, *(body for _, body in statement.branches))
    if isinstance(statement, Select):
        return _all_end(statement.otherwise, *(body for _, body in statement.cases))
    if isinstance(statement, Goto):
        return not statement.comes_back
    return isinstance(statement, Return | Stop | Throw)


def _all_end(*bodies: tuple[Statement, ...]) -> bool:
    return all(body and _ends(body[-1]) for body in bodies)
