"""Parser of statements: dispatch by first word, assignments, calls, and messages for invalid lines."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NoReturn, cast

from function_calls.basic import nodes
from function_calls.basic.codes import Code, ScriptError
from function_calls.basic.language.blocks import Blocks
from function_calls.basic.language.comments import plain
from function_calls.basic.language.expressions import (
    Expressions,
    mistaken_word,
    more_specific_problem,
    unknown_phrase,
)
from function_calls.basic.language.flow import Flow, label_name
from function_calls.basic.language.form_parts import keyword_words_of
from function_calls.basic.language.forms import Forms, Matched
from function_calls.basic.language.open_blocks import ENDING_WORDS, OPENS, PROCEDURES, Labels, OpenBlocks, is_over
from function_calls.basic.language.parser_state import ParserState
from function_calls.basic.language.scopes import Survey, is_assignment
from function_calls.basic.language.tokens import Cursor, Kind, Token
from function_calls.basic.language.unsupported import (
    COMPANIONS,
    NO_EFFECT,
    foreign_phrase,
    unsupported_message,
    words_at,
)
from function_calls.basic.nodes import At, Expression, Statement

_STARTS: dict[str, Callable[[At], Expression]] = {
    **dict.fromkeys(("STRING", "TEXT", "CHAR", "VARCHAR"), lambda at: nodes.Literal(at, "")),
    **dict.fromkeys(
        ("NUMBER", "INTEGER", "INT", "LONG", "SINGLE", "DOUBLE", "FLOAT", "DECIMAL", "CURRENCY"),
        lambda at: nodes.Literal(at, 0),
    ),
    **dict.fromkeys(("BOOLEAN", "BOOL"), lambda at: nodes.Literal(at, value=False)),
    **dict.fromkeys(("OBJECT", "MAP", "DICTIONARY"), lambda at: nodes.MapOf(at, ())),
    **dict.fromkeys(("DATE", "DATETIME", "TIME", "VARIANT", "ANY"), lambda at: nodes.Literal(at, None)),
}
"""Initial value by declared type; all other types start as an empty list."""


class Assignments:
    """Parser of assignments and declarations."""

    def __init__(self, reading: ParserState, read: Expressions) -> None:
        self._reading = reading
        self._read = read

    def simple(self, cursor: Cursor, into: list[Statement]) -> None:
        """Parse `name = value` and append the assignment to `into`."""
        token = cursor.take()
        cursor.index += 1
        into.append(
            nodes.Assign(token.at, nodes.Name(token.at, token.text.lower()), self._value(cursor, token.at, token.text))
        )

    def assign(self, cursor: Cursor, into: list[Statement], at: At | None = None) -> None:
        """Parse `target = value` or a compound assignment. `at` is the start of the statement."""
        first = cursor.now
        target = self._read.target(cursor)
        operator = "" if cursor.symbol("=") else cursor.take().text
        if operator:
            cursor.index += 1
        value = self._value(cursor, first.at, first.text if isinstance(target, nodes.Name) else "")
        if operator:
            value = nodes.Binary(first.at, cast("nodes.Operator", operator), target, value)
        into.append(nodes.Assign(at or first.at, target, value))

    def let(self, cursor: Cursor, into: list[Statement]) -> None:
        """Parse LET target = value and append the assignment to `into`. Raises ScriptError for anything else."""
        token = cursor.take()
        if cursor.now.kind is not Kind.WORD or not is_assignment(cursor.tokens, cursor.index):
            cursor.fail(f"expected `name = value` after LET, {cursor.found()}")
        self.assign(cursor, into, token.at)

    def const(self, cursor: Cursor, into: list[Statement]) -> None:
        """Parse CONST with one or more names, which become ordinary variables. Raises ScriptError for anything else."""
        token = cursor.take()
        while True:
            if cursor.now.kind is not Kind.WORD or cursor.ahead().text != "=":
                cursor.fail(f"expected `name = value` after CONST, {cursor.found()}")
            self.assign(cursor, into, token.at)
            if not cursor.symbol(","):
                return

    def set(self, cursor: Cursor, into: list[Statement]) -> bool:
        """Parse SET target = value; a text as target is SET SESSION. False for keywords such as SET CONTEXT."""
        if cursor.ahead().kind is Kind.TEXT and cursor.ahead(2).text in ("=", ","):
            at = cursor.take().at
            key = self._read.text(cursor.take())
            cursor.index += 1
            arguments = (("key", key), ("value", self._value(cursor, at, "")))
            into.append(nodes.Evaluate(at, nodes.KeywordCall(at, "SET SESSION", arguments)))
            return True
        if cursor.ahead().kind is not Kind.WORD or not is_assignment(cursor.tokens, cursor.index + 1):
            return False
        token = cursor.take()
        self.assign(cursor, into, token.at)
        return True

    def dim(self, cursor: Cursor, into: list[Statement]) -> None:
        """Parse DIM or REDIM of one or more variables. Raises ScriptError for REDIM PRESERVE."""
        token = cursor.take()
        if token.value == "REDIM" and cursor.is_at("PRESERVE"):
            cursor.fail("REDIM PRESERVE is not needed: lists grow automatically; write PUSH list, value")
        while True:
            self._declare(cursor, token, into)
            if not cursor.symbol(","):
                return

    def _declare(self, cursor: Cursor, token: Token, into: list[Statement]) -> None:
        name = cursor.now
        if name.kind is not Kind.WORD:
            cursor.fail(f"expected a variable name after {token.value}, {cursor.found()}")
        cursor.index += 1
        size = self._size(cursor, name.text)
        start = self._start(cursor)
        target = nodes.Name(name.at, name.text.lower())
        if cursor.symbol("="):
            into.append(nodes.Assign(token.at, target, self._value(cursor, name.at, name.text)))
        elif start is not None and size is None:
            into.append(nodes.Assign(token.at, target, start))
        else:
            into.append(nodes.Dim(token.at, target.name, size))

    def _size(self, cursor: Cursor, name: str) -> Expression | None:
        closer = {"(": ")", "[": "]"}.get(cursor.now.text) if cursor.now.kind is Kind.SYMBOL else None
        if closer is None:
            return None
        opener = cursor.take()
        if cursor.symbol(closer):
            return None
        size = self._read.expression(cursor)
        if cursor.words("TO"):
            size = self._read.expression(cursor)
        if cursor.is_symbol(","):
            cursor.fail(f"lists have one dimension; for a table assign lists as items: {name}[0] = [1, 2]")
        cursor.expect(closer, f"the size of {name} (`{opener.text}`)")
        return size

    def _start(self, cursor: Cursor) -> Expression | None:
        if not cursor.words("AS"):
            return None
        cursor.words("NEW")
        token = cursor.now
        if token.kind is not Kind.WORD:
            cursor.fail(f"expected a type after AS, {cursor.found()}")
        cursor.index += 1
        if cursor.symbol("("):
            cursor.expect(")", "the type")
        make = _STARTS.get(token.value)
        return make(token.at) if make else None

    def _value(self, cursor: Cursor, at: At, name: str) -> Expression:
        if cursor.is_line_end:
            cursor.fail(f"expected a value after `=`, {cursor.found()}")
        value = self._read.expression(cursor)
        # `today = TODAY` calls the function, since the variable has no value yet.
        if isinstance(value, nodes.Name) and value.name == name.lower() and self._reading.takes_none(value.name):
            return nodes.Apply(value.at, value.name, ())
        return value


OVER_LINES = frozenset(OPENS) - PROCEDURES
"""Words that begin a block."""
_OPERATORS = ("+", "-", "*", "/", "\\", "^", "&")
_BEGINS_VALUE = (Kind.TEXT, Kind.NUMBER, Kind.WORD)
_NO_NAMES = frozenset((
    "IF", "THEN", "ELSE", "ELSEIF", "ENDIF", "END", "FOR", "WHILE", "WEND", "LOOP", "DO", "GOTO", "GOSUB", "LET", "DIM",
    "TALK", "PRINT", "HEAR", "SUB", "FUNCTION", "RETURN", "AND", "OR", "NOT", "MOD", "CONST",
))  # fmt: skip
"""Rejected as variable names. Other words of the language, such as next, error and description, are allowed."""
_FENCE = "``"
_LONGEST_SHOWN = 60
_MOST_BEGUN = 12


class StatementErrors:
    """Messages for lines that are no valid statement."""

    def __init__(self, forms: Forms, reading: ParserState) -> None:
        self._forms = forms
        self._reading = reading

    def check_foreign(self, cursor: Cursor, words: list[str]) -> None:
        """Raise ScriptError if the statement at the cursor belongs to another language."""
        if phrase := foreign_phrase(words, self._forms.names):
            self._reading.foreign.add(phrase)
            cursor.fail(unsupported_message(phrase), Code.UNKNOWN_STATEMENT)

    def continues_reported(self, cursor: Cursor) -> bool:
        """Whether this continues a foreign statement that was already reported, such as CATCH after TRY."""
        words = words_at(cursor)
        return any(COMPANIONS.get(" ".join(words[:count])) in self._reading.foreign for count in (1, 2))

    def check_name(self, cursor: Cursor, token: Token) -> None:
        """Raise ScriptError for an assignment to a reserved word."""
        if token.value in _NO_NAMES:
            cursor.fail(f"{token.value} is a reserved word and cannot be a variable; choose another name")

    def no_statement(self, cursor: Cursor) -> NoReturn:
        """Raise ScriptError for a line that does not begin with a word."""
        token = cursor.now
        following = cursor.ahead()
        if following.kind is Kind.SYMBOL and following.text == "=" and token.kind is not Kind.SYMBOL:
            self.no_name(cursor)
        if token.kind is Kind.TEXT and token.text.startswith(_FENCE):
            cursor.fail("the fence ``` is not part of a script; delete it here and at the end of the script")
        if token.kind is Kind.TEXT:
            cursor.fail(f"a text is not a statement; to send it, write TALK {token.text.splitlines()[0][:40]}")
        if token.kind is Kind.SYMBOL and token.text == "=":
            cursor.fail("expected a name before `=`; write `name = value` on one line")
        if token.kind is Kind.SYMBOL and token.text in (*_OPERATORS, ","):
            right = "put it at the end of the previous line, or end that line with ` _`"
            cursor.fail(f"a line cannot begin with `{token.text}`; {right}")
        if token.kind is Kind.SYMBOL and token.text == ".":
            cursor.fail("`.key = value` is only allowed between WITH and END WITH")
        if token.kind is Kind.SYMBOL and token.text in (")", "]", "}"):
            cursor.fail(f"unexpected `{token.text}`: no bracket is open; delete it, or check where its bracket begins")
        cursor.fail(f"expected a statement, {cursor.found()}")

    def no_name(self, cursor: Cursor) -> NoReturn:
        """Raise ScriptError for an assignment to something other than a name."""
        cursor.fail(
            f"expected a variable name before `=`, {cursor.found()}; names begin with a letter, as in total = 3"
        )

    def more(self, cursor: Cursor, first: Token) -> NoReturn:
        """Raise ScriptError for tokens after a complete statement, with a hint at the probable mistake."""
        token = cursor.now
        if first.value in OVER_LINES and first.at.line < token.at.line:
            message = f"expected the end of the line after the {first.value} of line {first.at.line}, {cursor.found()}"
            cursor.fail(f"{message}; put the next statement on a new line")
        if token.kind is Kind.SYMBOL and token.text in (")", "]", "}"):
            cursor.fail(f"unexpected `{token.text}`: no bracket is open; delete it, or check where its bracket begins")
        if token.kind is Kind.SYMBOL and token.text == ";":
            cursor.fail("statements on one line are separated by `:`, not by `;`")
        if token.kind is Kind.WORD and token.value == "THEN":
            cursor.fail("unexpected THEN: there is no IF before it on this line")
        if fault := mistaken_word(cursor, self._reading):
            raise ScriptError(*fault[:3])
        if phrase := unknown_phrase(cursor):
            first_word = phrase.split()[0]
            if begun := self._begun_with(first_word):
                cursor.index -= 1
                cursor.fail(f"unknown {first_word} keyword; expected one of {begun}", Code.UNKNOWN_STATEMENT)
            known = (*self._forms.names, *(name.upper() for name in self._reading.functions))
            hint = self._reading.nearest.hint((phrase, phrase.split()[0]), known)
            cursor.index -= 1
            cursor.fail(f"unknown keyword {phrase}{hint}", Code.UNKNOWN_STATEMENT)
        if token.kind in _BEGINS_VALUE:
            shown = token.text.splitlines()[0][:40]
            cursor.fail(f"expected an operator such as `+`, a comma or a new line before `{shown}`")
        right = _in_parentheses(cursor, first) if cursor.is_symbol(",") else ""
        cursor.fail(f"expected the end of the {first.text} statement, {cursor.found()}{right}")

    def unknown(self, cursor: Cursor, token: Token, following: Token, language: Collection[str]) -> NoReturn:
        """Raise ScriptError for an unknown first word. `language`: the words that begin statements."""
        if following.kind is Kind.SYMBOL and following.text == "(":
            raise ScriptError(*self._reading.no_function(token.at, token.text.lower())[:3])
        name = token.text if len(token.text) <= _LONGEST_SHOWN else f"{token.text[:_LONGEST_SHOWN]}…"
        if token.text.lower() in self._reading.variables or (
            following.kind is Kind.SYMBOL and following.text in _OPERATORS
        ):
            cursor.fail(f"`{name}` is not a statement; write `{name} = …` to assign it, or `TALK {name}` to send it")
        if token.value == "THEN":
            cursor.fail("THEN must be on the same line as its IF, after the condition")
        word = plain(token.text)
        if word != token.text:
            cursor.fail(f"`{token.text}` is written in full-width letters; write {word}", Code.UNKNOWN_STATEMENT)
        words = words_at(cursor)
        self.check_foreign(cursor, words)
        phrases = [" ".join(words[:count]) for count in range(len(words), 0, -1)]
        if begun := self._begun_with(str(token.value)):
            longer = [one for one in phrases if " " in one]
            if hint := self._reading.nearest.hint(longer, begun.split(", ")):
                cursor.fail(f"unknown statement {longer[-1]}{hint}", Code.UNKNOWN_STATEMENT)
            message = f"unknown {token.value} statement; expected one of {begun}"
            if token.value == "SET" and following.kind is Kind.WORD and len(following.text) <= _LONGEST_SHOWN // 4:
                message += f". To assign a variable, write SET {following.text} = …"
            cursor.fail(message, Code.UNKNOWN_STATEMENT)
        known = (*self._forms.names, *language, *(name.upper() for name in self._reading.definitions))
        hint = self._reading.nearest.hint(phrases, known)
        cursor.fail(f"unknown statement {name.upper()}{hint}", Code.UNKNOWN_STATEMENT)

    def _begun_with(self, word: str) -> str:
        """Keywords of several words that begin with this word, as a list for messages."""
        return ", ".join(
            [name for name in self._forms.names if name.startswith(f"{word} ") and name not in NO_EFFECT][:_MOST_BEGUN]
        )


def _in_parentheses(cursor: Cursor, first: Token) -> str:
    """Hint for a comma that belongs to a FORMAT without parentheses: `y = FORMAT x, "0.00"`."""
    count = 1
    while count <= cursor.index and (token := cursor.ahead(-count)).at > first.at and token.kind is not Kind.LINE:
        if token.value == "FORMAT" and token.kind is Kind.WORD:
            return '; write FORMAT(value, "0.00")'
        count += 1
    return ""


Reader = Callable[[Cursor, list[Statement]], None]
_MORE_OF_THE_LANGUAGE = (
    "EXIT", "BREAK", "CONTINUE", "RETURN", "STOP", "GOTO", "GOSUB", "THROW", "ERROR", "ASSERT", "LET", "DIM", "REDIM",
    "PARAM", "DESCRIPTION", "RETURNS", "META", "SUB", "FUNCTION", "ON", "SET", "CALL", "CLEAR", "THEN", "ERR", "REM",
)  # fmt: skip
LANGUAGE = ENDING_WORDS | OVER_LINES | frozenset(_MORE_OF_THE_LANGUAGE)
"""Words that begin statements of the language."""


class Statements:
    """Parser of the statements of one script."""

    def __init__(self, forms: Forms, reading: ParserState, names: Survey) -> None:
        read = Expressions(forms, reading)
        self._forms = forms
        self._words = keyword_words_of(forms.names)
        self._reading = reading
        self._read = read
        self._goals = names.goals
        self.labels = Labels(reading)
        self.open = OpenBlocks(reading)
        self.blocks = Blocks(reading, read, self.open, self.one)
        self.assignments = Assignments(reading, read)
        self._errors = StatementErrors(forms, reading)
        flow = Flow(reading, read, self.open, self.labels)
        self._language: dict[str, Reader] = {
            "IF": self.blocks.if_,
            "FOR": self.blocks.for_,
            "FOREACH": self.blocks.for_,
            "WHILE": self.blocks.while_,
            "DO": self.blocks.do,
            "SELECT": self.blocks.select,
            "SWITCH": self.blocks.select,
            "WITH": self.blocks.with_,
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
            **dict.fromkeys(("PARAM", "DESCRIPTION", "RETURNS", "META", "SUB", "FUNCTION"), self._misplaced),
        }
        self._maybe: dict[str, Callable[[Cursor, list[Statement]], bool]] = {
            "ON": flow.on,
            "SET": self.assignments.set,
            "CALL": self._call,
            "CLEAR": self._clear_error,
            "ERR": self._err_clear,
        }

    @property
    def read(self) -> Expressions:
        """The parser of expressions."""
        return self._read

    def one(self, cursor: Cursor, into: list[Statement], is_inline: bool = False) -> None:
        """Parse the statement at the cursor, append it to `into`, and stop at the end of the line or statement, or at
        ELSE in a one-line IF. Problems are collected, not raised."""
        token = cursor.now
        try:
            self._statement(cursor, into, is_inline)
            if not cursor.is_line_end and not self._is_over(cursor, token, is_inline):
                self._errors.more(cursor, token)
        except ScriptError as error:
            fault = more_specific_problem(cursor, error.fault, self._reading)
            self.blocks.skip_line(cursor)
            self._reading.failed(fault, token.at.line, cursor.now.at.line)
        except RecursionError:
            self._reading.fault(token.at, Code.TOO_DEEP, "this statement is nested too deeply; split it")
            self.blocks.skip_line(cursor)

    def _is_over(self, cursor: Cursor, first: Token, is_inline: bool) -> bool:
        """Whether the statement that began with `first` may end before the end of its line: before ELSE in a one-line
        IF, before a block end on a numbered line, and after a block without an end."""
        if is_inline and is_over(cursor):
            return True
        if first.kind is Kind.NUMBER and self.open.ending(cursor) is not None:
            return True
        return cursor.ahead(-1).kind is Kind.LINE

    def _statement(self, cursor: Cursor, into: list[Statement], is_inline: bool) -> None:
        token = cursor.now
        if token.kind is Kind.NUMBER:
            self._number(cursor, into, is_inline)
            return
        if token.kind is not Kind.WORD:
            self._errors.no_statement(cursor)
        following = cursor.ahead()
        if following.kind is Kind.SYMBOL and following.text == "=":
            self._errors.check_name(cursor, token)
            self.assignments.simple(cursor, into)
            return
        value = token.value
        if self._reading.foreign and self._errors.continues_reported(cursor):
            self.blocks.skip_line(cursor)
        elif value in self._language and not (_is_member(following) or self._is_changed(cursor, token)):
            self._language[value](cursor, into)
        elif not (value in self._maybe and self._maybe[value](cursor, into)):
            self._other(cursor, token, following, into)

    def _is_changed(self, cursor: Cursor, token: Token) -> bool:
        """Whether it assigns to a variable of the script: `description += "…"`, `stop[0] = 1`."""
        return token.text.lower() in self._reading.variables and is_assignment(cursor.tokens, cursor.index)

    def _other(self, cursor: Cursor, token: Token, following: Token, into: list[Statement]) -> None:
        """Parse a statement that does not begin with a word of the language: label, assignment, call or keyword. Raises
        ScriptError if it is none of these."""
        name = token.text.lower()
        if following.kind is Kind.LINE and following.text.startswith(":") and self._is_label(token):
            cursor.index += 1
            self.labels.define(token.at, name, self.open.path)
            into.append(nodes.Label(token.at, name))
            return
        if following.kind is Kind.SYMBOL and is_assignment(cursor.tokens, cursor.index):
            self.assignments.assign(cursor, into)
            return
        if name in self._reading.definitions:
            into.append(nodes.Evaluate(token.at, self._called(cursor)))
            return
        if token.value in self._words.first and not _is_member(following):
            matched = self._match(cursor)
            if matched is not None:
                want = matched.keyword_call
                into.append(
                    nodes.Evaluate(token.at, want)
                    if matched.into is None
                    else nodes.Assign(token.at, matched.into, want)
                )
                return
        if token.value in ("CONSOLE", "DOCUMENT") and name not in self._reading.variables:
            self._errors.check_foreign(cursor, [str(token.value)])
        if not self._function(cursor, token, following, into):
            self._errors.unknown(cursor, token, following, self._language)

    def _call(self, cursor: Cursor, into: list[Statement]) -> bool:
        """Parse CALL of a SUB, a FUNCTION or a built-in; returns False, without consuming tokens, for the keyword CALL.
        Raises ScriptError if the name is unknown and there is no keyword CALL."""
        token, named = cursor.now, cursor.ahead()
        if named.kind is not Kind.WORD or not self._reading.knows(named.text.lower()):
            if named.kind is Kind.WORD and "CALL" not in self._words.first:
                raise ScriptError(*self._reading.no_function(named.at, named.text.lower())[:3])
            return False
        cursor.index += 1
        into.append(nodes.Evaluate(token.at, self._called(cursor)))
        return True

    def _function(self, cursor: Cursor, token: Token, following: Token, into: list[Statement]) -> bool:
        """Parse a call statement, `name(…)`, `x.name(…)`, or `name …` for a known function; returns whether it is
        one."""
        is_known = token.text.lower() in self._reading.functions
        if following.kind is Kind.SYMBOL and following.text in ("(", ".", "["):
            if is_known or following.text != "(" or token.text.lower() in self._reading.variables:
                found = self._read.expression(cursor)
                if not isinstance(found, nodes.Apply | nodes.Member):
                    cursor.fail("the value of this expression is not used; write `name = …` to store it", at=token.at)
                into.append(nodes.Evaluate(token.at, found))
                return True
        elif is_known:
            into.append(nodes.Evaluate(token.at, self._called(cursor)))
            return True
        return False

    def _called(self, cursor: Cursor) -> Expression:
        """Parse the call `name(…)`, `name a, b` or `name`. Raises ScriptError if a value or the number of arguments is
        invalid."""
        token, following = cursor.now, cursor.ahead()
        if following.kind is Kind.SYMBOL and following.text == "(":
            return self._read.expression(cursor)
        cursor.index += 1
        arguments: list[Expression] = []
        while not is_over(cursor):
            arguments.append(self._read.expression(cursor))
            if not cursor.symbol(","):
                break
        name = token.text.lower()
        self._reading.check_call(token.at, name, len(arguments))
        return nodes.Apply(token.at, name, tuple(arguments))

    def _match(self, cursor: Cursor) -> Matched | None:
        """Match the keyword at the cursor; None if no form begins here. Raises ScriptError; a foreign statement with
        the same words is reported as such."""
        begin = cursor.index
        try:
            return self._forms.match(cursor, self._read, inside=False)
        except ScriptError:
            reached, cursor.index = cursor.index, begin
            if len(words := words_at(cursor)) == 2 and cursor.ahead(2).kind is Kind.TEXT:
                self._errors.check_foreign(cursor, words)
            cursor.index = reached
            raise

    def _number(self, cursor: Cursor, into: list[Statement], is_inline: bool) -> None:
        """Parse a line number and the statement after it. In a one-line IF the number is a jump target. Raises
        ScriptError if it is not a whole number."""
        token = cursor.now
        if not isinstance(token.value, int):
            cursor.fail(f"`{token.text}` is not a line number; line numbers are whole numbers")
        following = cursor.ahead()
        if following.kind is Kind.SYMBOL and following.text == "=":
            self._errors.no_name(cursor)
        name = label_name(cursor)
        if is_inline:
            self.labels.add_jump(token.at, name, "GOTO", self.open.path)
            into.append(nodes.Goto(token.at, name))
            return
        self.labels.define(token.at, name, self.open.path)
        into.append(nodes.Label(token.at, name))
        # An end of a block on this line belongs to the enclosing block.
        if not cursor.is_line_end and self.open.ending(cursor) is None:
            self._statement(cursor, into, is_inline)

    def _is_label(self, token: Token) -> bool:
        name = token.text.lower()
        if name in self._goals:
            return True
        return not (token.value in self._words.names or self._reading.knows(name))

    def _clear_error(self, cursor: Cursor, into: list[Statement]) -> bool:
        """Parse CLEAR ERROR as `err = 0`. Returns False, without consuming tokens, for other statements."""
        if not cursor.is_at("CLEAR", "ERROR"):
            return False
        token = cursor.now
        cursor.index += 2
        into.append(nodes.Assign(token.at, nodes.Name(token.at, "err"), nodes.Literal(token.at, 0)))
        return True

    def _err_clear(self, cursor: Cursor, into: list[Statement]) -> bool:
        """Parse ERR.CLEAR(); the parentheses are optional. Returns False, without consuming tokens, for other
        statements or if `err` is a variable of the script."""
        token, member, opener = cursor.now, cursor.ahead(2), cursor.ahead(3)
        is_clear = _is_member(cursor.ahead()) and member.value == "CLEAR" and opener.text == "("
        if not is_clear or "err" in self._reading.variables:
            return False
        cursor.index += 4
        cursor.expect(")", "ERR.CLEAR(")
        into.append(nodes.Evaluate(token.at, nodes.Member(member.at, nodes.Name(token.at, "err"), "clear")))
        return True

    def _misplaced(self, cursor: Cursor, into: list[Statement]) -> None:
        """Report a statement within a block that is only allowed at the top level of a script."""
        token, around = cursor.now, self.open.stack[-1] if self.open.stack else None
        where = f", not inside the {around.written} on line {around.at.line}" if around else ""
        if token.value in PROCEDURES:
            of = self.open.innermost(PROCEDURES)
            if of is not None:
                where = (
                    f", not inside another one; put it after the END {of.kind} of the {of.kind} on line {of.at.line}"
                )
            message = f"{token.value} is only allowed at the top level of a script{where}"
            self._reading.fault(token.at, Code.MISPLACED, message)
            self.open.skip_procedure(cursor)
            return
        hint = "; write the parameters of a SUB in parentheses after its name" if token.value == "PARAM" else ""
        cursor.fail(f"{token.value} is only allowed at the top level of a script{where}{hint}", Code.MISPLACED)


def _is_member(token: Token) -> bool:
    return token.kind is Kind.SYMBOL and token.text == "."
