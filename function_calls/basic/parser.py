"""The parser: from the text of a script to its tree, with all faults that reading finds.

A file is a tool, nearly always. Where a PARAM or DESCRIPTION stands behind code that ends for certain, by RETURN or
END, another tool begins. SUBs and FUNCTIONs belong to all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import NamedTuple, cast

from function_calls.basic.braces import without_braces
from function_calls.basic.codes import Code, Fault, ScriptFault
from function_calls.basic.comments import comments_above, name_above
from function_calls.basic.expressions import Expressions
from function_calls.basic.keyword_forms import KeywordForms, words_of
from function_calls.basic.lexer import as_lines, tokens_of
from function_calls.basic.misspelt import mended
from function_calls.basic.nexts import with_nexts_of_their_own
from function_calls.basic.nodes import At, Goto, If, Param, Return, Script, Select, Statement, Stop, Throw, Unit
from function_calls.basic.open_blocks import TooManyBlocks
from function_calls.basic.procedures import Procedures
from function_calls.basic.reading import Arity as Arity
from function_calls.basic.reading import Reading
from function_calls.basic.statements import LANGUAGE, Statements
from function_calls.basic.survey import Survey, survey
from function_calls.basic.tokens import Cursor, Kind, Token

ReadParam = Callable[[Cursor, Expressions], Param]
ReadDescription = Callable[[Cursor, Expressions], tuple[str, At]]
_MOST_FAULTS = 100


class Parsed(NamedTuple):
    """What came of a text."""

    script: Script
    """At least one unit, also of an empty file. With faults it is what could be understood."""
    faults: tuple[Fault, ...]
    """In the order of the script, none twice."""


class Header(NamedTuple):
    """What reads PARAM and DESCRIPTION; the cursor stands at these words. Both raise ScriptFault."""

    read_param: ReadParam
    read_description: ReadDescription


def parse(text: str, forms: KeywordForms, functions: Mapping[str, Arity], header: Header | None = None) -> Parsed:
    """The tree of a script and what is wrong with it. Never raises, whatever the text.

    `functions` are those of the language, by their names in lower case. Reading goes on behind a fault, so that
    several are found at once."""
    read, found = tokens_of(text)
    written = with_nexts_of_their_own(read)
    tokens, names, slips = _mended(written, forms, functions)
    reading = Reading(functions, forms.names, names, frozenset(fault.at.line for fault in found))
    for slip in slips:
        reading.failed(slip, slip.at.line, slip.at.line)
    statements = Statements(forms, reading, names)
    units = _Units(statements, header or _own_header(), reading, as_lines(text).split("\n"))
    try:
        units.read(Cursor(tokens))
    except TooManyBlocks:
        units.finish()
    script = Script(tuple(units.found), tuple(units.procedures.found))
    return Parsed(script, _in_order((*found, *reading.faults)))


def _mended(
    written: Sequence[Token], forms: KeywordForms, functions: Mapping[str, Arity]
) -> tuple[Sequence[Token], Survey, list[Fault]]:
    """The tokens with the words and blocks that were nearly right mended, their names, and what was wrong."""
    names = survey(written)
    tokens, faults = without_braces(written)
    first = words_of(forms.names).first

    def knows(token: Token) -> bool:
        name = token.text.lower()
        callable_names = name in functions or name in names.definitions
        return callable_names or token.value in LANGUAGE or token.value in first or name in names.goals

    tokens, slips = mended(tokens, knows)
    faults += slips
    if not faults:
        return written, names, faults
    again = survey(tokens)
    # What stands in a block that was passed over may be called from outside of it.
    definitions = {**names.definitions, **again.definitions}
    return tokens, Survey(names.variables | again.variables, definitions, names.goals | again.goals), faults


def _own_header() -> Header:
    module = import_module("function_calls.basic.header")
    return Header(cast("ReadParam", module.read_param), cast("ReadDescription", module.read_description))


def _in_order(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    by_place: dict[tuple[At, Code], Fault] = {}
    for fault in faults:
        by_place.setdefault((fault.at, fault.code), fault)
    found = sorted(by_place.values(), key=lambda fault: fault.at)
    if len(found) > _MOST_FAULTS:
        more = found[_MOST_FAULTS]
        rest = Fault(
            more.at, more.code, f"{len(found) - _MOST_FAULTS} more faults stand from here on; mend those before"
        )
        return (*found[:_MOST_FAULTS], rest)
    return tuple(found)


class _Units:
    """Reads the tools of a file."""

    __slots__ = (
        "_at", "_body", "_description", "_description_at", "_header", "_lines", "_params", "_reading", "_statements",
        "found", "procedures",
    )  # fmt: skip

    def __init__(self, statements: Statements, header: Header, reading: Reading, lines: list[str]) -> None:
        self._statements = statements
        self._header = header
        self._reading = reading
        self._lines = lines
        self.found: list[Unit] = []
        self.procedures = Procedures(reading, statements.blocks, statements.labels)
        self._begin()

    def _begin(self) -> None:
        self._at: At | None = None
        self._params: list[Param] = []
        self._description = ""
        self._description_at: At | None = None
        self._body: list[Statement] = []

    def read(self, cursor: Cursor) -> None:
        """Read all of them. Raises TooManyBlocks."""
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
            if token.value == "PARAM":
                self._params.append(self._header.read_param(cursor, self._statements.read))
            else:
                self._description, self._description_at = self._header.read_description(cursor, self._statements.read)
        except ScriptFault as error:
            self._statements.blocks.skip_line(cursor)
            self._reading.failed(error.fault, token.at.line, cursor.now.at.line)
        self._statements.blocks.line_end(cursor, str(token.value))

    def finish(self) -> None:
        """The tool is over: put it to those that were found."""
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
            )
        )
        self._begin()


def _ends(statement: Statement) -> bool:
    """Whether nothing behind this statement is ever come to from it."""
    if isinstance(statement, If):
        return _all_end(statement.otherwise, *(body for _, body in statement.branches))
    if isinstance(statement, Select):
        return _all_end(statement.otherwise, *(body for _, body in statement.cases))
    if isinstance(statement, Goto):
        return not statement.comes_back
    return isinstance(statement, Return | Stop | Throw)


def _all_end(*bodies: tuple[Statement, ...]) -> bool:
    return all(body and _ends(body[-1]) for body in bodies)
