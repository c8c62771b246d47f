"""Parser of block statements: IF, loops, SELECT and WITH."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal as OneOf
from typing import NoReturn, TypeVar, cast

from function_calls.basic import nodes
from function_calls.basic.codes import Code, ScriptError
from function_calls.basic.language.expressions import Expressions, key, more_specific_problem
from function_calls.basic.language.open_blocks import ENDING_WORDS, Ending, OpenBlocks, Opened, is_over
from function_calls.basic.language.parser_state import ParserState
from function_calls.basic.language.tokens import Cursor, Kind, Token, has_then
from function_calls.basic.nodes import At, Expression, Statement

DIVIDED = ","
"""Text of a NEXT token that replaces the comma of `NEXT i, j`."""


def split_next_lists(tokens: Sequence[Token]) -> Sequence[Token]:
    """Split `NEXT i, j` into one NEXT for each loop. Returns the same tokens if there is none."""
    if not any(_has_more(tokens, index) for index, token in enumerate(tokens) if token.value == "NEXT"):
        return tokens
    found: list[Token] = []
    index = 0
    while index < len(tokens):
        found.append(tokens[index])
        if tokens[index].value == "NEXT":
            while _has_more(tokens, index):
                comma = tokens[index + 2]
                end = Token(Kind.LINE, "\n", None, comma.at)
                found += [tokens[index + 1], end, Token(Kind.WORD, DIVIDED, "NEXT", comma.at)]
                index += 2
        index += 1
    return found


def _has_more(tokens: Sequence[Token], index: int) -> bool:
    """Whether the word `NEXT` or the comma at `index` is followed by a name, a comma and another name."""
    following = tokens[index + 1 : index + 4]
    kinds = [token.kind for token in following]
    return kinds == [Kind.WORD, Kind.SYMBOL, Kind.WORD] and following[1].text == ","


One = Callable[[Cursor, list[Statement], bool], None]
"""Parses one statement into the list; the flag is True within a one-line IF. Never raises ScriptError."""
Body = tuple[Statement, ...]
Read = TypeVar("Read")
_HEADERS = frozenset(("PARAM", "DESCRIPTION", "RETURNS", "META", "SUB", "FUNCTION"))
_BEHIND_A_NAME = frozenset(("=", ".", "(", "[", "+", "-", "*", "/", "\\", "^", "&"))
_GO = ("GOTO", "GOSUB")
_INLINE_ENDS = frozenset(("ELSE", "ELSEIF", "ENDIF"))


Comparison = OneOf["=", "<>", "<", "<=", ">", ">="]
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
_FAR = 300
"""Maximum distance in tokens of END WITH. A WITH usually has a dozen entries."""
_BLOCKS = {"IF": "IF", "SELECT": "SELECT", "SWITCH": "SELECT"}
"""Blocks misplaced in a WITH, by first word."""
_WITH_MAPS_HEADERS = frozenset(("PARAM", "SUB", "FUNCTION", "BEGIN"))


class Blocks:
    """Parser of blocks with their bodies."""

    def __init__(self, reading: ParserState, read: Expressions, opened: OpenBlocks, one: One) -> None:
        self._reading = reading
        self._read = read
        self._one = one
        self.open = opened

    def body(self, cursor: Cursor) -> Body:
        """Parse statements up to an end or division of an open block, or a statement only allowed at the top level."""
        found: list[Statement] = []
        while True:
            token = cursor.now
            if token.kind is Kind.LINE:
                cursor.index += 1
            elif token.kind is Kind.END:
                break
            elif token.kind is not Kind.WORD:
                self._one(cursor, found, False)
            elif token.value in ENDING_WORDS and (ending := self.open.ending(cursor)):
                if not self.open.is_stray(cursor, ending):
                    break
                self.skip_line(cursor)
            elif token.value in _HEADERS and self._begins_anew(cursor, token):
                break
            else:
                self._one(cursor, found, False)
        return tuple(found)

    def end(self, cursor: Cursor, opened: Opened) -> bool:
        """Consume the end of the block, or report that it is missing; returns whether it was there."""
        ending = self.open.ending(cursor)
        if not self.open.closes(ending, opened):
            self.open.not_closed(opened)
            return False
        assert ending is not None
        cursor.index += ending.words
        if ending.kind != opened.kind:
            # The wrong end was already reported; also skip its condition or variable.
            if ending.token.value == "LOOP":
                self.skip_line(cursor)
            elif ending.token.value == "NEXT" and not is_over(cursor):
                cursor.index += 1
        return True

    def header(self, cursor: Cursor, read: Callable[[], Read]) -> Read | None:
        """Return the result of `read`. A ScriptError is reported, its line skipped and None returned, to still parse
        the block."""
        try:
            return read()
        except ScriptError as error:
            fault = more_specific_problem(cursor, error.fault, self._reading)
            self._reading.failed(fault, fault.at.line, fault.at.line)
            self.skip_line(cursor)
            return None

    def line_end(self, cursor: Cursor, after: str) -> None:
        """Report a problem if the line continues, and skip the rest of it."""
        if not cursor.is_line_end:
            message = (
                f"expected the end of the line after {after}, {cursor.found()}; put the next statement on a new line"
            )
            self._reading.fault(cursor.now.at, Code.SYNTAX, message)
            while not cursor.is_line_end:
                cursor.index += 1

    def skip_line(self, cursor: Cursor) -> None:
        """Skip the rest of the statement."""
        while not cursor.is_line_end:
            cursor.index += 1

    # IF

    def if_(self, cursor: Cursor, into: list[Statement]) -> None:
        """Parse a one-line IF, or an IF block up to END IF."""
        token = cursor.take()
        begin = cursor.index
        try:
            condition = self._condition(cursor)
        except ScriptError as error:
            fault = more_specific_problem(cursor, error.fault, self._reading)
            self._reading.failed(fault, fault.at.line, fault.at.line)
            cursor.index = begin
            if not self._leads_to_lines(cursor):
                return
            condition = nodes.Literal(token.at, None)
        if cursor.is_line_end and not _is_colon(cursor.now):
            self._if_lines(cursor, token, condition, into)
        else:
            with self._reading.deeper(token.at):
                self._if_line(cursor, token, condition, into)

    def _condition(self, cursor: Cursor) -> Expression:
        found = self._read.expression(cursor)
        token = cursor.now
        if cursor.words("THEN"):
            return found
        if token.value in _GO or (token.kind is Kind.LINE and cursor.ahead().value == "THEN"):
            return found  # IF a GOTO 10; or THEN on the next line, reported there
        is_over_here = token.kind in (Kind.LINE, Kind.END)
        if not is_over_here and has_then(cursor.tokens, cursor.index + 1):
            cursor.fail(f"expected an operator in the condition, {cursor.found()}")
        message = f"expected THEN after the condition, {cursor.found()}"
        if not is_over_here and token.kind not in (Kind.WORD, Kind.NUMBER):
            cursor.fail(message)
        # Continue as if THEN were there, to keep the block structure.
        self._reading.fault(token.at, Code.SYNTAX, message)
        return found

    def _leads_to_lines(self, cursor: Cursor) -> bool:
        """Skip the line of an invalid IF; returns whether it opens a block."""
        then = last = -1
        while not cursor.is_line_end:
            last = cursor.index
            if cursor.is_at("THEN"):
                then = last
            cursor.index += 1
        return then in (-1, last) and not _is_colon(cursor.now)

    def _if_line(self, cursor: Cursor, token: Token, condition: Expression, into: list[Statement]) -> None:
        branches = [(condition, self._inline(cursor))]
        otherwise: Body = ()
        while cursor.now.kind is Kind.WORD:
            if cursor.words("ELSEIF") or cursor.words("ELSE", "IF"):
                found = self._condition(cursor)
                branches.append((found, self._inline(cursor)))
            elif cursor.words("ELSE"):
                if cursor.is_line_end and not _is_colon(cursor.now):
                    cursor.index -= 1
                    cursor.fail("expected a statement after ELSE on the same line; add one, or remove ELSE")
                otherwise = self._inline(cursor)
                if cursor.is_at("ELSE"):
                    cursor.fail("this IF already has an ELSE", Code.MISPLACED)
            elif cursor.words("END", "IF") or cursor.words("ENDIF"):
                break
            else:
                break
        into.append(nodes.If(token.at, tuple(branches), otherwise))

    def _inline(self, cursor: Cursor) -> Body:
        """Parse the statements of a branch on this line; empty if there are none."""
        found: list[Statement] = []
        while True:
            token = cursor.now
            if _is_colon(token):
                cursor.index += 1
            elif is_over(cursor):
                return tuple(found)
            else:
                self._one(cursor, found, True)

    def _if_lines(self, cursor: Cursor, token: Token, condition: Expression, into: list[Statement]) -> None:
        branches: list[tuple[Expression, Body]] = []
        otherwise: list[Statement] = []
        has_else = False
        with self.open.block("IF", token) as opened:
            while True:
                body = self.body(cursor)
                if has_else:
                    otherwise.extend(body)
                else:
                    branches.append((condition, body))
                ending = self.open.ending(cursor)
                if ending is None or ending.is_end or ending.kind != "IF":
                    self.end(cursor, opened)
                    break
                self.open.divide()
                if has_else:
                    message = f"the IF on line {opened.at.line} already has an ELSE"
                    self._reading.fault(ending.token.at, Code.MISPLACED, message)
                if cursor.words("ELSEIF") or cursor.words("ELSE", "IF"):
                    condition = self.header(cursor, lambda: self._condition(cursor)) or nodes.Literal(
                        ending.token.at, None
                    )
                else:
                    cursor.index += 1
                    has_else = True
        into.append(nodes.If(token.at, tuple(branches), tuple(otherwise)))

    # Loops

    def for_(self, cursor: Cursor, into: list[Statement]) -> None:
        """Parse FOR i = a TO b, or FOR EACH x IN y."""
        token = cursor.take()
        nothing = nodes.Literal(token.at, None)
        if token.value == "FOREACH" or cursor.words("EACH") or cursor.ahead().value == "IN":
            variable, of = self.header(cursor, lambda: self._each(cursor)) or ("", nothing)
            cursor.words("DO")
            self.line_end(cursor, "FOR EACH")
            body = self._loop_body(cursor, token, variable)
            into.append(nodes.ForEach(token.at, variable, of, body))
            return
        counting = self.header(cursor, lambda: self._counting(cursor)) or ("", nothing, nothing, None)
        cursor.words("DO")
        self.line_end(cursor, "FOR")
        body = self._loop_body(cursor, token, counting[0])
        into.append(nodes.ForTo(token.at, *counting, body))

    def _each(self, cursor: Cursor) -> tuple[str, Expression]:
        variable = self._variable(cursor, "FOR EACH item IN list")
        if not cursor.words("IN"):
            cursor.fail(f"expected IN, {cursor.found()}; write FOR EACH {variable} IN list")
        of = self._read.expression(cursor)
        if cursor.is_at("LAST"):
            at = cursor.take().at
            of = nodes.Apply(at, "last", (of, self._read.expression(cursor)))
        return variable, of

    def _counting(self, cursor: Cursor) -> tuple[str, Expression, Expression, Expression | None]:
        variable = self._variable(cursor, "FOR i = 1 TO 10, or FOR EACH item IN list")
        if not cursor.symbol("="):
            cursor.fail(
                f"expected `=`, {cursor.found()}; write FOR {variable} = 1 TO 10, or FOR EACH {variable} IN list"
            )
        first = self._read.expression(cursor)
        if not cursor.words("TO"):
            cursor.fail(f"expected TO, {cursor.found()}; write FOR {variable} = 1 TO 10")
        last = self._read.expression(cursor)
        return variable, first, last, self._read.expression(cursor) if cursor.words("STEP") else None

    def _variable(self, cursor: Cursor, right: str) -> str:
        if cursor.now.kind is not Kind.WORD:
            cursor.fail(f"expected a variable name, {cursor.found()}; write {right}")
        return cursor.take().text.lower()

    def _loop_body(self, cursor: Cursor, token: Token, variable: str) -> Body:
        with self.open.block("FOR", token, variable) as opened:
            body = self.body(cursor)
            ending = self.open.ending(cursor)
            if ending and cursor.is_at("NEXT") and self._is_next_of_other(cursor, opened):
                if not self._is_named_behind(cursor, opened):
                    self.open.not_closed(opened)
            elif self.end(cursor, opened) and ending and ending.token.value == "NEXT":
                self._behind_next(cursor, opened)
        return body

    def _is_next_of_other(self, cursor: Cursor, opened: Opened) -> bool:
        """Whether NEXT names the variable of an enclosing FOR."""
        following = cursor.ahead()
        if following.kind is not Kind.WORD or not opened.variable or following.text.lower() == opened.variable:
            return False
        return any(other.kind == "FOR" and other.variable == following.text.lower() for other in self.open.stack[:-1])

    def _is_named_behind(self, cursor: Cursor, opened: Opened) -> bool:
        """Whether this is `NEXT i, j` with the loops in the wrong order, which is then reported."""
        behind, name = cursor.ahead(3), cursor.ahead(4)
        if behind.text != DIVIDED or behind.value != "NEXT" or name.text.lower() != opened.variable:
            return False
        message = f"the inner loop must end first; write NEXT {opened.variable}, {cursor.ahead().text}"
        self._reading.fault(cursor.now.at, Code.SYNTAX, message)
        self.open.reported_end = behind.at
        return True

    def _behind_next(self, cursor: Cursor, opened: Opened) -> None:
        token = cursor.now
        if token.kind is Kind.WORD and token.value not in _INLINE_ENDS:
            cursor.index += 1
            if opened.variable and token.text.lower() != opened.variable:
                message = f"the FOR on line {opened.at.line} counts {opened.variable}; write NEXT {opened.variable}"
                self._reading.fault(token.at, Code.SYNTAX, message)

    def while_(self, cursor: Cursor, into: list[Statement]) -> None:
        """Parse WHILE … WEND and append the loop to `into`. Raises ScriptError, or TooManyBlocks."""
        token = cursor.take()
        condition = self.header(cursor, lambda: self._read.expression(cursor)) or nodes.Literal(token.at, None)
        cursor.words("DO")
        self.line_end(cursor, "WHILE")
        with self.open.block("WHILE", token) as opened:
            body = self.body(cursor)
            self.end(cursor, opened)
        into.append(nodes.Loop(token.at, "while", condition, until=False, at_end=False, body=body))

    def do(self, cursor: Cursor, into: list[Statement]) -> None:
        """Parse DO … LOOP with an optional condition at either end, and append the loop to `into`. Two conditions are
        reported as an error."""
        token = cursor.take()
        condition, until = self.header(cursor, lambda: self._loop_condition(cursor)) or (None, False)
        self.line_end(cursor, "DO")
        at_end = False
        with self.open.block("DO", token) as opened:
            body = self.body(cursor)
            ending: Ending | None = self.open.ending(cursor)
            if self.end(cursor, opened) and ending and ending.token.value == "LOOP":
                behind, until_behind = self._loop_condition(cursor)
                if behind is not None and condition is not None:
                    message = f"the DO on line {token.at.line} already has a condition; remove one of the two"
                    self._reading.fault(ending.token.at, Code.SYNTAX, message)
                elif behind is not None:
                    condition, until, at_end = behind, until_behind, True
        into.append(nodes.Loop(token.at, "do", condition, until=until, at_end=at_end, body=body))

    def _loop_condition(self, cursor: Cursor) -> tuple[Expression | None, bool]:
        until = cursor.is_at("UNTIL")
        if not until and not cursor.is_at("WHILE"):
            return None, False
        cursor.index += 1
        return self._read.expression(cursor), until

    def _begins_anew(self, cursor: Cursor, token: Token) -> bool:
        """Whether a new tool, SUB or FUNCTION begins here, which ends all open blocks."""
        following = cursor.ahead()
        if following.kind is Kind.SYMBOL and following.text in _BEHIND_A_NAME:
            return False
        if self.open.is_nested(cursor):
            return False
        outermost = self.open.stack[0] if self.open.stack else None
        return outermost is None or token.at.column <= outermost.at.column

    # SELECT and SWITCH

    def select(self, cursor: Cursor, into: list[Statement]) -> None:
        """Parse SELECT [CASE] x or SWITCH x, up to END SELECT or END SWITCH."""
        token = cursor.take()
        if cursor.is_at("CASE") and token.value == "SELECT":
            cursor.index += 1
        subject = self.header(cursor, lambda: self._read.expression(cursor)) or nodes.Literal(token.at, None)
        self.line_end(cursor, str(token.value))
        cases: list[tuple[tuple[nodes.Case, ...], Body]] = []
        otherwise: list[Statement] = []
        last: At | None = None
        with self.open.block("SELECT", token) as opened:
            before = self.body(cursor)
            if before:
                message = f"expected CASE as the first statement of the {token.value} on line {token.at.line}"
                self._reading.fault(before[0].at, Code.MISPLACED, message)
            while (ending := self.open.ending(cursor)) and not ending.is_end and ending.kind == "SELECT":
                self.open.divide()
                if last is not None:
                    message = f"the default case on line {last.line} must be the last one; move it to the end"
                    self._reading.fault(ending.token.at, Code.MISPLACED, message)
                is_otherwise, fits = self._case(cursor)
                body = self.body(cursor)
                if is_otherwise:
                    last = last or ending.token.at
                    otherwise.extend(body)
                else:
                    cases.append((fits, body))
            self.end(cursor, opened)
        into.append(nodes.Select(token.at, subject, tuple(cases), tuple(otherwise)))

    def _case(self, cursor: Cursor) -> tuple[bool, tuple[nodes.Case, ...]]:
        """Parse the line of a case: whether it is the default, and otherwise its conditions."""
        is_default = cursor.words("DEFAULT")
        if is_default or cursor.words("CASE", "ELSE") or cursor.words("CASE", "DEFAULT"):
            cursor.words("THEN")
            self.line_end(cursor, "DEFAULT" if is_default else "CASE ELSE")
            return True, ()
        cursor.index += 1
        fits = self.header(cursor, lambda: self._fits(cursor)) or ()
        cursor.words("THEN")
        self.line_end(cursor, "CASE")
        return False, fits

    def _fits(self, cursor: Cursor) -> tuple[nodes.Case, ...]:
        found = [self._fit(cursor)]
        while cursor.symbol(","):
            found.append(self._fit(cursor))
        return tuple(found)

    def _fit(self, cursor: Cursor) -> nodes.Case:
        at = cursor.now.at
        has_is = cursor.is_at("IS") and cursor.ahead().kind is Kind.SYMBOL
        if has_is:
            cursor.index += 1
        if cursor.is_symbol(*_COMPARISONS):
            operator = cursor.take().text
            return nodes.Case(at, self._read.expression(cursor), operator=cast("Comparison", operator))
        if has_is:
            cursor.fail(f"expected a comparison after IS, {cursor.found()}; write CASE IS > 3")
        low = self._read.expression(cursor)
        return nodes.Case(at, low, self._read.expression(cursor)) if cursor.words("TO") else nodes.Case(at, low)

    # WITH

    def with_(self, cursor: Cursor, into: list[Statement]) -> None:
        """Parse WITH target and its entries, up to END WITH."""
        into.append(self._with(cursor))

    def _with(self, cursor: Cursor) -> nodes.With:
        token = cursor.take()
        cursor.symbol(".")
        target = self.header(cursor, lambda: self._read.target(cursor)) or nodes.Name(token.at, "with")
        self.line_end(cursor, "WITH")
        entries: list[tuple[str, Expression | nodes.With]] = []
        with self.open.block("WITH", token) as opened:
            while not self._is_over(cursor):
                begin = cursor.index
                try:
                    entries.append(self._entry(cursor))
                    self.line_end(cursor, "the entry")
                except ScriptError as error:
                    self._reading.failed(error.fault, error.fault.at.line, error.fault.at.line)
                    self._skip(cursor, begin)
                    while cursor.now.text == ":":
                        cursor.index += 1
                        self.skip_line(cursor)
            self.end(cursor, opened)
        return nodes.With(token.at, target, tuple(entries))

    def _skip(self, cursor: Cursor, begin: int) -> None:
        """Skip the invalid line that began at `begin`; if it opens a block, skip the whole block."""
        reached, cursor.index = max(begin, cursor.index), begin
        kind = _BLOCKS.get(str(cursor.now.value)) if cursor.now.kind is Kind.WORD else None
        token, last = cursor.now, cursor.now
        cursor.index = reached
        while not cursor.is_line_end:
            last = cursor.take()
        if kind is None or (kind == "IF" and last.value != "THEN"):
            return
        depth = 1
        for count in range(1, _FAR):
            first, previous = cursor.ahead(count), cursor.ahead(count - 1)
            if first.kind is Kind.END:
                return
            if previous.kind is not Kind.LINE or first.kind is not Kind.WORD:
                continue
            here, cursor.index = cursor.index, cursor.index + count
            ending = self.open.ending(cursor)
            cursor.index = here
            if ending is not None and ending.is_end and ending.kind == "WITH":
                return
            depth += (first.value == token.value) - (ending is not None and ending.is_end and ending.kind == kind)
            if not depth and ending is not None:
                cursor.index += count + ending.words
                return

    def _is_over(self, cursor: Cursor) -> bool:
        """Skip line ends. Whether the entries are over: at the end of an open block or of the script, or before a line
        that cannot be an entry."""
        while True:
            while cursor.now.kind is Kind.LINE:
                cursor.index += 1
            token = cursor.now
            if token.kind is Kind.END:
                return True
            if token.kind is not Kind.WORD:
                return False
            ending = self.open.ending(cursor)
            if ending is None:
                return _is_none(cursor) and not _has_end(cursor)
            if not self.open.is_stray(cursor, ending):
                return True
            self.skip_line(cursor)

    def _entry(self, cursor: Cursor) -> tuple[str, Expression | nodes.With]:
        if cursor.is_at("WITH") and cursor.ahead().text != "=":
            named = cursor.ahead(2 if cursor.ahead().text == "." else 1)
            inner = self._with(cursor)
            if not isinstance(inner.target, nodes.Name):
                message = "a nested WITH needs the name of a single entry, without `.` or `[…]`"
                self._reading.fault(inner.at, Code.SYNTAX, message)
            return named.text, inner
        cursor.symbol(".")
        token = cursor.now
        if token.kind not in (Kind.WORD, Kind.TEXT):
            self._no_entry(cursor, token.text)
        name = key(cursor)
        if not cursor.symbol("="):
            self._no_entry(cursor, name)
        if cursor.is_line_end:
            cursor.fail(f"expected a value after `{name} =`, {cursor.found()}")
        return name, self._read.expression(cursor)

    def _no_entry(self, cursor: Cursor, name: str) -> NoReturn:
        hint = ""
        if cursor.is_symbol(".", "["):
            hint = f"; nest a block WITH {name} … END WITH"
        elif cursor.now.kind is Kind.LINE and cursor.now.text.startswith(":"):
            hint = f"; write {name} = value"
        cursor.fail(f"expected `key = value` inside WITH, {cursor.found()}{hint}; put other statements after END WITH")


def _is_colon(token: Token) -> bool:
    """Whether this is a `:` with another statement after it on the line."""
    return token.kind is Kind.LINE and token.text == ":"


def _is_none(cursor: Cursor) -> bool:
    """Whether these words cannot begin an entry."""
    token, following = cursor.now, cursor.ahead()
    if following.kind in (Kind.SYMBOL, Kind.LINE, Kind.END):
        return False
    return token.value in _WITH_MAPS_HEADERS or (token.value != "WITH" and following.text != "=")


def _has_end(cursor: Cursor) -> bool:
    """Whether END WITH follows within _FAR tokens and before another WITH."""
    for count in range(1, _FAR):
        token, before = cursor.ahead(count), cursor.ahead(count - 1)
        if token.kind is Kind.END or token.value in _WITH_MAPS_HEADERS:
            return False
        if token.value == "WITH":
            return bool(before.value == "END")
        if token.value == "ENDWITH" and before.kind is Kind.LINE:
            return True
    return False
