"""Statements: which kind one is.

In this order: a line's number, a statement of the language, a label, an assignment, the call of a SUB, a keyword in one
of its forms, the call of a function. A word of the language before `=` or `.` is a name."""

from __future__ import annotations

from collections.abc import Callable

from function_calls.basic.assignments import Assignments
from function_calls.basic.blocks import Blocks
from function_calls.basic.brackets import before
from function_calls.basic.calls import Calls
from function_calls.basic.codes import Code, ScriptFault
from function_calls.basic.expressions import Expressions
from function_calls.basic.flow import Flow, label_name
from function_calls.basic.foreign import words_at
from function_calls.basic.keyword_forms import KeywordForms, MatchedForm, words_of
from function_calls.basic.labels import Labels
from function_calls.basic.mistaken import better_told
from function_calls.basic.no_statements import OVER_LINES, NoStatements
from function_calls.basic.nodes import (
    Assign,
    Evaluate,
    Goto,
    Label,
    Literal,
    Member,
    Name,
    Statement,
)
from function_calls.basic.open_blocks import ENDING_WORDS, PROCEDURES, OpenBlocks, is_over
from function_calls.basic.reading import Reading
from function_calls.basic.selects import Selects
from function_calls.basic.survey import Survey
from function_calls.basic.tokens import Cursor, Kind, Token
from function_calls.basic.with_maps import WithMaps

Reader = Callable[[Cursor, list[Statement]], None]
_MORE_OF_THE_LANGUAGE = (
    "EXIT", "BREAK", "CONTINUE", "RETURN", "STOP", "GOTO", "GOSUB", "THROW", "ERROR", "ASSERT", "LET", "DIM", "REDIM",
    "PARAM", "DESCRIPTION", "SUB", "FUNCTION", "ON", "SET", "CALL", "CLEAR", "THEN", "ERR", "REM",
)  # fmt: skip
LANGUAGE = ENDING_WORDS | OVER_LINES | frozenset(_MORE_OF_THE_LANGUAGE)
"""The words with which statements of the language begin."""


class Statements:
    """Reads the statements of one script."""

    __slots__ = (
        "_calls", "_forms", "_goals", "_language", "_maybe", "_read", "_reading", "_told", "_words",
        "assignments", "blocks", "labels", "open",
    )  # fmt: skip

    def __init__(self, forms: KeywordForms, reading: Reading, names: Survey) -> None:
        read = Expressions(forms, reading)
        self._forms = forms
        self._words = words_of(forms.names)
        self._reading = reading
        self._read = read
        self._goals = names.goals
        self.labels = Labels(reading)
        self.open = OpenBlocks(reading)
        self.blocks = Blocks(reading, read, self.open, self.one)
        self.assignments = Assignments(reading, read)
        self._calls = Calls(reading, read, self._words)
        self._told = NoStatements(forms, reading)
        flow = Flow(reading, read, self.open, self.labels)
        selects = Selects(reading, read, self.blocks)
        self._language: dict[str, Reader] = {
            "IF": self.blocks.if_,
            "FOR": self.blocks.for_,
            "FOREACH": self.blocks.for_,
            "WHILE": self.blocks.while_,
            "DO": self.blocks.do,
            "SELECT": selects.select,
            "SWITCH": selects.select,
            "WITH": WithMaps(reading, read, self.blocks).with_,
            "EXIT": flow.exit,
            "BREAK": flow.break_,
            "CONTINUE": flow.continue_,
            "RETURN": flow.return_,
            "END": flow.stop,
            "STOP": flow.stop,
            "GOTO": flow.goto,
            "GOSUB": flow.goto,
            "THROW": flow.throw,
            "ERROR": flow.throw,
            "ASSERT": flow.assert_,
            "LET": self.assignments.let,
            "CONST": self.assignments.const,
            "DIM": self.assignments.dim,
            "REDIM": self.assignments.dim,
            "PARAM": self._misplaced,
            "DESCRIPTION": self._misplaced,
            "SUB": self._misplaced,
            "FUNCTION": self._misplaced,
        }
        self._maybe: dict[str, Callable[[Cursor, list[Statement]], bool]] = {
            "ON": flow.on,
            "SET": self.assignments.set,
            "CALL": self._calls.call,
            "CLEAR": self._clear_error,
            "ERR": self._err_clear,
        }

    @property
    def read(self) -> Expressions:
        """What reads its expressions."""
        return self._read

    def one(self, cursor: Cursor, into: list[Statement], is_inline: bool = False) -> None:
        """Read the statement at the cursor into the list, and pass it: the cursor then stands at the end of a line, of
        a statement, or, in an IF on one line, at ELSE. What is wrong with it is remembered."""
        token = cursor.now
        try:
            self._statement(cursor, into, is_inline)
            if not cursor.is_line_end and not self._is_over(cursor, token, is_inline):
                self._told.more(cursor, token)
        except ScriptFault as error:
            fault = better_told(cursor, error.fault, self._reading)
            self.blocks.skip_line(cursor)
            self._reading.failed(fault, token.at.line, cursor.now.at.line)
        except RecursionError:
            self._reading.fault(token.at, Code.TOO_DEEP, "too much stands within one another here; divide it")
            self.blocks.skip_line(cursor)

    def _is_over(self, cursor: Cursor, first: Token, is_inline: bool) -> bool:
        """Whether the statement that began with `first` is, though its line goes on: before an ELSE on the line of an
        IF, before the end of a block on a line with a number, and where a block has no end."""
        if is_inline and is_over(cursor):
            return True
        if first.kind is Kind.NUMBER and self.open.ending(cursor) is not None:
            return True
        return before(cursor).kind is Kind.LINE

    def _statement(self, cursor: Cursor, into: list[Statement], is_inline: bool) -> None:
        token = cursor.now
        if token.kind is Kind.NUMBER:
            self._number(cursor, into, is_inline)
            return
        if token.kind is not Kind.WORD:
            self._told.no_statement(cursor)
        following = cursor.ahead()
        if following.kind is Kind.SYMBOL and following.text == "=":
            self._told.check_name(cursor, token)
            self.assignments.simple(cursor, into)
            return
        value = token.value
        if self._reading.foreign and self._told.belongs_to_told(cursor):
            self.blocks.skip_line(cursor)
        elif value in self._language and not (_is_member(following) or self._is_changed(cursor, token)):
            self._language[value](cursor, into)
        elif not (value in self._maybe and self._maybe[value](cursor, into)):
            self._other(cursor, token, following, into)

    def _is_changed(self, cursor: Cursor, token: Token) -> bool:
        """Whether it is a variable of the script that gets another value: `description += "…"`, `stop[0] = 1`."""
        return token.text.lower() in self._reading.variables and self.assignments.is_here(cursor)

    def _other(self, cursor: Cursor, token: Token, following: Token, into: list[Statement]) -> None:
        """A statement that begins with no word of the language."""
        name = token.text.lower()
        if following.kind is Kind.LINE and following.text.startswith(":") and self._is_label(token):
            cursor.index += 1
            self.labels.stands(token.at, name, self.open.path)
            into.append(Label(token.at, name))
            return
        if following.kind is Kind.SYMBOL and self.assignments.is_here(cursor):
            self.assignments.assign(cursor, into)
            return
        if name in self._reading.definitions:
            into.append(Evaluate(token.at, self._calls.called(cursor)))
            return
        if token.value in self._words.first and not _is_member(following):
            matched = self._match(cursor)
            if matched is not None:
                want = matched.want
                into.append(Evaluate(token.at, want) if matched.into is None else Assign(token.at, matched.into, want))
                return
        if token.value in ("CONSOLE", "DOCUMENT") and name not in self._reading.variables:
            self._told.check_foreign(cursor, [str(token.value)])
        if not self._calls.function(cursor, token, following, into):
            self._told.unknown(cursor, token, following, self._language)

    def _match(self, cursor: Cursor) -> MatchedForm | None:
        """The keyword at the cursor. One that goes on as only a statement of another language does is told as that."""
        begin = cursor.index
        try:
            return self._forms.match(cursor, self._read, inside=False)
        except ScriptFault:
            reached, cursor.index = cursor.index, begin
            if len(words := words_at(cursor)) == 2 and cursor.ahead(2).kind is Kind.TEXT:
                self._told.check_foreign(cursor, words)
            cursor.index = reached
            raise

    def _number(self, cursor: Cursor, into: list[Statement], is_inline: bool) -> None:
        """A line's number, and what stands on the line. On the line of an IF it is where that goes."""
        token = cursor.now
        if not isinstance(token.value, int):
            cursor.fail(f"`{token.text}` is no line's number; such a number is whole")
        following = cursor.ahead()
        if following.kind is Kind.SYMBOL and following.text == "=":
            self._told.no_name(cursor)
        name = label_name(cursor)
        if is_inline:
            self.labels.wanted(token.at, name, "GOTO", self.open.path)
            into.append(Goto(token.at, name))
            return
        self.labels.stands(token.at, name, self.open.path)
        into.append(Label(token.at, name))
        # The line may also hold the end of a block, which is not this one's to read.
        if not cursor.is_line_end and self.open.ending(cursor) is None:
            self._statement(cursor, into, is_inline)

    def _is_label(self, token: Token) -> bool:
        name = token.text.lower()
        if name in self._goals:
            return True
        return not (token.value in self._words.names or self._reading.knows(name))

    def _clear_error(self, cursor: Cursor, into: list[Statement]) -> bool:
        """CLEAR ERROR: from here on there was none."""
        if not cursor.is_at("CLEAR", "ERROR"):
            return False
        token = cursor.now
        cursor.index += 2
        into.append(Assign(token.at, Name(token.at, "err"), Literal(token.at, 0)))
        return True

    def _err_clear(self, cursor: Cursor, into: list[Statement]) -> bool:
        """ERR.CLEAR() with its parentheses, which it does not need."""
        token, member, opener = cursor.now, cursor.ahead(2), cursor.ahead(3)
        is_clear = _is_member(cursor.ahead()) and member.value == "CLEAR" and opener.text == "("
        if not is_clear or "err" in self._reading.variables:
            return False
        cursor.index += 4
        cursor.expect(")", "ERR.CLEAR(")
        into.append(Evaluate(token.at, Member(member.at, Name(token.at, "err"), "clear")))
        return True

    def _misplaced(self, cursor: Cursor, into: list[Statement]) -> None:
        """What belongs to the top of a script, within a block."""
        token, around = cursor.now, self.open.stack[-1] if self.open.stack else None
        where = f"not within the {around.written} of line {around.at.line}" if around else "and something else here"
        if token.value in PROCEDURES:
            of = self.open.innermost(PROCEDURES)
            if of is not None:
                where = f"and none within another: put it behind the END {of.kind} of the one in line {of.at.line}"
            message = f"{token.value} stands at the top of a script, {where}"
            self._reading.fault(token.at, Code.MISPLACED, message)
            self.open.skip_procedure(cursor)
            return
        hint = "; a SUB has its parameters in parentheses behind its name" if token.value == "PARAM" else ""
        cursor.fail(f"{token.value} stands at the top of a script, {where}{hint}", Code.MISPLACED)


def _is_member(token: Token) -> bool:
    return token.kind is Kind.SYMBOL and token.text == "."
