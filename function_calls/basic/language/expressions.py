"""Parser of expressions: operator precedence, operands, words and brackets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NoReturn, TypeVar, cast

from function_calls.basic import nodes
from function_calls.basic.codes import Code, ScriptError, ScriptProblem
from function_calls.basic.language.form_parts import keyword_words_of
from function_calls.basic.language.forms import Forms
from function_calls.basic.language.lexer import tokens_inside
from function_calls.basic.language.parser_state import HIGHEST, ParserState
from function_calls.basic.language.quoted import Part
from function_calls.basic.language.tokens import Cursor, Inner, Kind, Token, behind_bracket
from function_calls.basic.language.unsupported import foreign_phrase, unsupported_message, words_at
from function_calls.basic.nodes import At, Expression, Target

_CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None, "NOTHING": None}
_NO_OPERANDS = frozenset(["THEN", "ELSE", "ELSEIF", "AND", "OR", "MOD", "LIKE", "IS"])
_NO_OPERANDS_UNLESS_VARIABLES = frozenset(["IN", "TO", "STEP", "AS"])
_ENDS_OPERAND = _NO_OPERANDS | _NO_OPERANDS_UNLESS_VARIABLES
_BEGIN_STATEMENTS = frozenset(["IF", "FOR", "WHILE", "WEND", "LOOP", "GOTO", "GOSUB", "ENDIF", "DIM", "LET", "RETURN"])
"""Words that are rejected as undefined variables in expressions; probably a statement that lost its line break."""
_OF_A_KEYWORD = 5
"""Nesting levels charged for a keyword in an expression, because matching its form uses more stack."""


_EMPTY: dict[str, Callable[[At], Expression]] = {
    **dict.fromkeys(("OBJECT", "MAP", "DICTIONARY"), lambda at: nodes.MapOf(at, ())),
    **dict.fromkeys(("ARRAY", "LIST"), lambda at: nodes.ListOf(at, ())),
}


class WordValues:
    """Parser of operands that begin with a word: constants, calls, keywords and variables."""

    def __init__(self, forms: Forms, reading: ParserState, read: Expressions) -> None:
        self._forms = forms
        self._reading = reading
        self._read = read
        self._words = keyword_words_of(forms.names)
        self._special: dict[str, Callable[[Cursor, Token], Expression | None]] = {
            "NOT": self._not,
            "NEW": self._new,
            "CREATE": self._new,
            "CALL": self._called,
            "ERROR": self._error,
        }

    def value(self, cursor: Cursor, token: Token) -> Expression:
        """Parse the operand that begins with the word `token` at the cursor. Raises ScriptError."""
        value = token.value
        if value in _CONSTANTS:
            cursor.index += 1
            return nodes.Literal(token.at, _CONSTANTS[value])
        reading = self._reading
        name = token.text.lower()
        following = cursor.ahead()
        calls = following.kind is Kind.SYMBOL and following.text == "("
        if calls and reading.knows(name) and not (value in self._words.first and _is_followed_by_as(cursor)):
            return self._call(cursor, token)
        if value in self._special and (special := self._special[value](cursor, following)) is not None:
            return special
        if value in self._words.first and (want := self._keyword(cursor, token, following)) is not None:
            return want
        if value in _NO_OPERANDS or (value in _NO_OPERANDS_UNLESS_VARIABLES and name not in reading.variables):
            cursor.fail(f"expected a value before {value}")
        if value in _BEGIN_STATEMENTS and name not in reading.variables:
            if value == "IF" and following.kind not in (Kind.LINE, Kind.END):
                cursor.fail("IF has no value; write IIF(condition, value, default)")
            cursor.fail(f"expected a value, found {value}, which starts a new statement")
        if calls:
            return self._call(cursor, token)
        cursor.index += 1
        if name not in reading.variables and reading.takes_none(name):
            return nodes.Apply(token.at, name, ())
        return nodes.Name(token.at, name)

    def _call(self, cursor: Cursor, token: Token) -> Expression:
        """Parse `name(…)`: a call, or an index if the name is a variable and not a function. Raises ScriptError if the
        arguments are invalid."""
        cursor.index += 1
        name = token.text.lower()
        arguments = self._read.items(cursor, ")")
        if not self._reading.knows(name) and name in self._reading.variables and arguments:
            self._read.height += len(arguments)
            self._read.check_height(self._read.height, token.at)
            found: Expression = nodes.Name(token.at, name)
            for index in arguments:
                found = nodes.Index(token.at, found, index)
            return found
        self._reading.check_call(token.at, name, len(arguments), arguments)
        return nodes.Apply(token.at, name, arguments)

    def _keyword(self, cursor: Cursor, token: Token, following: Token) -> Expression | None:
        """Parse the keyword at the cursor; None if the word is a variable."""
        needs_nothing = not _begins_value(token, following)
        if token.text.lower() in self._reading.variables and (
            needs_nothing
            or not (following.kind is Kind.TEXT or f"{token.value} {following.value}" in self._words.pairs)
        ):
            return None
        index, highest = cursor.index, self._read.highest
        self._read.highest = 0
        try:
            with self._reading.deeper(token.at, _OF_A_KEYWORD):
                matched = self._forms.match(cursor, self._read, inside=True)
        except ScriptError as error:
            if not needs_nothing or error.fault.code is Code.TOO_DEEP:
                raise
            matched = None
        finally:
            self._read.height, self._read.highest = self._read.highest + 2, highest
        if matched is None:
            cursor.index = index
            self._read.height = 0
            return None
        self._read.check_height(self._read.height, token.at)
        if matched.into is not None:
            cursor.fail(
                f"{matched.keyword_call.keyword} assigns its own variable; write it as a statement", at=token.at
            )
        return matched.keyword_call

    def _not(self, cursor: Cursor, following: Token) -> Expression:
        at = cursor.take().at
        with self._reading.deeper(at):
            operand = self._read.compared(cursor)
        self._read.height += 1
        return nodes.Unary(at, "not", operand)

    def _new(self, cursor: Cursor, following: Token) -> Expression | None:
        """Parse `NEW OBJECT` or `CREATE ARRAY`, with optional arguments that are ignored, to an empty value. Returns
        None, without consuming tokens, if `following` is another word."""
        made = _EMPTY.get(following.value) if following.kind is Kind.WORD else None
        if made is None:
            return None
        at = cursor.take().at
        cursor.index += 1
        if cursor.is_symbol("("):
            self._read.items(cursor, ")")
        return made(at)

    def _called(self, cursor: Cursor, following: Token) -> Expression | None:
        """Parse `CALL name(…)` of a function of the script or a built-in; None for the keyword CALL."""
        if following.kind is not Kind.WORD or not self._reading.knows(following.text.lower()):
            return None
        cursor.index += 1
        if cursor.ahead().kind is Kind.SYMBOL and cursor.ahead().text == "(":
            return self._call(cursor, following)
        cursor.index += 1
        self._reading.check_call(following.at, following.text.lower(), 0)
        return nodes.Apply(following.at, following.text.lower(), ())

    def _error(self, cursor: Cursor, following: Token) -> Expression | None:
        """Parse `ERROR MESSAGE`, the text of the last error. Returns None, without consuming tokens, if `following` is
        not MESSAGE."""
        if following.kind is not Kind.WORD or following.value != "MESSAGE":
            return None
        at = cursor.take().at
        cursor.index += 1
        return nodes.Name(at, "error_message")


def _is_followed_by_as(cursor: Cursor) -> bool:
    """Whether AS follows the parentheses, as in `FORMAT (a + b) AS "0.00"`: a keyword instead of a call."""
    following = cursor.tokens[behind_bracket(cursor.tokens, cursor.index + 1)]
    return following.kind is Kind.WORD and following.value == "AS"


def _begins_value(word: Token, following: Token) -> bool:
    """Whether the token after a word can begin a value, so that the word is more likely a keyword."""
    if following.kind is Kind.SYMBOL:
        return following.text in ("(", "{", "#{") or (following.text == "[" and following.at != word.end)
    if following.kind is Kind.WORD:
        return following.value not in _ENDS_OPERAND
    return following.kind in (Kind.TEXT, Kind.NUMBER, Kind.BLOCK)


Read = Callable[[Cursor], Expression]
Item = TypeVar("Item")


def items(cursor: Cursor, read: Read, closer: str, *, may_end_in_comma: bool = False) -> Iterator[Expression]:
    """Parse comma-separated values from the opening bracket at the cursor to `closer`. Raises ScriptError."""
    opener = cursor.take()
    while not cursor.is_symbol(closer):
        yield read(cursor)
        if not cursor.symbol(","):
            break
        if cursor.is_line_end:
            close(cursor, opener, closer)
        if cursor.is_symbol(closer) and not may_end_in_comma:
            cursor.fail(f"expected a value after `,`, {cursor.found()}")
    close(cursor, opener, closer)


def entries(cursor: Cursor, read: Read) -> Iterator[tuple[str, Expression]]:
    """Yield the name and value of each entry of the map at the cursor, to its `}`. Raises ScriptError if an entry is
    invalid."""
    opener = cursor.take()
    while not cursor.is_symbol("}"):
        name = key(cursor)
        if not cursor.symbol(":"):
            _no_colon(cursor, opener, name)
        yield name, read(cursor)
        if not cursor.symbol(","):
            break
        if cursor.is_line_end:
            close(cursor, opener, "}")
    close(cursor, opener, "}")


def key(cursor: Cursor) -> str:
    """Parse a map key as written: a word, a text or a number. Raises ScriptError."""
    token = cursor.now
    if token.kind not in (Kind.WORD, Kind.NUMBER, Kind.TEXT):
        cursor.fail(f"expected the name of an entry, {cursor.found()}")
    parts: tuple[str | Inner, ...] = token.value if token.kind is Kind.TEXT else (token.text,)
    if len(parts) != 1 or not isinstance(parts[0], str):
        cursor.fail('a key cannot contain `${}`; set this entry in a statement: map["…"] = value')
    cursor.take()
    return parts[0]


def close(cursor: Cursor, opener: Token, closer: str) -> None:
    """Consume the closing bracket. Raises ScriptError, at the opening bracket if the statement ends first."""
    if cursor.symbol(closer):
        return
    is_behind = cursor.is_symbol(",") or cursor.is_at("THEN")
    if cursor.is_line_end or (opener.text == "(" and is_behind and not _is_closed(cursor)):
        cursor.fail(
            f"`{opener.text}` is not closed; expected `{closer}` before the end of the statement",
            Code.SYNTAX,
            opener.at,
        )
    if phrase := unknown_phrase(cursor):
        cursor.fail(f"unknown keyword {phrase}", Code.UNKNOWN_STATEMENT, cursor.ahead(-1).at)
    between = "an operator" if opener.text == "(" else "a comma"
    cursor.fail(f"expected `{closer}`, or {between} before the next value, {cursor.found()}")


def _is_closed(cursor: Cursor) -> bool:
    """Whether a parenthesis that is open at the cursor is closed in this statement."""
    depth, count = 1, 0
    while (token := cursor.ahead(count)).kind not in (Kind.LINE, Kind.END) and depth:
        depth += token.kind is Kind.SYMBOL and token.text == "("
        depth -= token.kind is Kind.SYMBOL and token.text == ")"
        count += 1
    return not depth


def unknown_phrase(cursor: Cursor) -> str:
    """Words that look like an unknown keyword, in upper case: an upper-case word directly before the cursor and those
    after it. Empty if there are none."""
    first, words = cursor.ahead(-1), list[str]()
    if first.kind is not Kind.WORD or not first.text.isupper() or len(first.text) < 2:
        return ""
    while (token := cursor.ahead(len(words)) if words else cursor.now).kind is Kind.WORD and token.text.isupper():
        words.append(token.text)
    follows = cursor.now.kind in (Kind.TEXT, Kind.NUMBER, Kind.WORD)
    return " ".join((str(first.value), *words[:2])) if follows else ""


def _no_colon(cursor: Cursor, opener: Token, name: str) -> NoReturn:
    if cursor.is_line_end:
        close(cursor, opener, "}")
    hint = "; in a map write `:`, not `=`" if cursor.is_symbol("=") else ""
    cursor.fail(f"expected `:` after the key {name}, {cursor.found()}{hint}")


_LOOSEST, _COMPARISON, _SIGN, _POWER, _CLOSEST = 1, 4, 10, 11, 12
_SYMBOL_RANKS = {
    "=": 4, "<>": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "&": 5, "+": 6, "-": 6, "\\": 8, "*": 9, "/": 9, "^": _POWER,
}  # fmt: skip
_WORD_RANKS = {
    "OR": 1,
    "AND": 2,
    "IN": 4,
    "LIKE": 4,
    "IS": 4,
    "NOT": 4,
    "CONTAINS": 4,
    "STARTS": 4,
    "ENDS": 4,
    "MOD": 7,
}
_TEXT_TESTS = {"CONTAINS": "contains", "STARTS": "startswith", "ENDS": "endswith"}


class Expressions:
    """Parser of the expressions of one script. Its methods raise ScriptError for invalid syntax."""

    def __init__(self, forms: Forms, reading: ParserState) -> None:
        self._reading = reading
        self._words = WordValues(forms, reading, self)
        self.height = 0
        """Height of the expression parsed last."""
        self.highest = 0
        """Maximum height since the current keyword began."""
        self._brackets = {"(": self._group, "[": self._list, "{": self._map, "#{": self._map}

    def expression(self, cursor: Cursor) -> Expression:
        """Parse the longest expression at the cursor. Raises ScriptError if it is invalid or too deeply nested."""
        reading = self._reading
        reading.enter(cursor.now.at)
        try:
            found = self._climb(cursor, _LOOSEST)
            if cursor.is_symbol("?"):
                found = self._chosen(cursor, found)
        finally:
            reading.depth -= 1
        if self.height > self.highest:
            self.highest = self.height
        return found

    def operand(self, cursor: Cursor) -> Expression:
        """Parse an operand: the expression up to the first operator. Raises ScriptError."""
        with self._reading.deeper(cursor.now.at):
            found = self._climb(cursor, _CLOSEST)
        self.highest = max(self.highest, self.height)
        return found

    def target(self, cursor: Cursor) -> Target:
        """Parse an assignment target: a variable, member or item; `a(1)` is `a[1]`. Raises ScriptError if it does not
        begin with a word, is too long, or an index is invalid."""
        token = cursor.now
        if token.kind is not Kind.WORD:
            cursor.fail(f"expected a variable name, {cursor.found()}")
        cursor.index += 1
        found: Target = nodes.Name(token.at, token.text.lower())
        count = 0
        while cursor.now.kind is Kind.SYMBOL:
            symbol = cursor.now
            if symbol.text == ".":
                cursor.index += 1
                found = nodes.Member(symbol.at, found, self._name(cursor))
            elif symbol.text in ("[", "("):
                for index in self.items(cursor, "]" if symbol.text == "[" else ")"):
                    found = nodes.Index(symbol.at, found, index)
                    count += 1
            else:
                break
            count += 1
            self.check_height(count, symbol.at)
        return found

    def text(self, token: Token) -> Expression:
        """Convert a TEXT or BLOCK token to a Literal, or to a Template if it contains `${…}`. Raises ScriptError if
        such a part is empty, invalid, or more than one value."""
        parts = cast("tuple[Part, ...]", token.value)
        if len(parts) == 1 and isinstance(parts[0], str):
            return nodes.Literal(token.at, parts[0])
        found: list[Expression] = []
        height = 0
        for part in parts:
            if isinstance(part, str):
                found.append(nodes.Literal(token.at, part))
                continue
            tokens, faults = tokens_inside(part)
            if faults:
                raise ScriptError(*faults[0][:3])
            cursor = Cursor(tokens)
            if cursor.is_line_end:
                cursor.fail("`${}` is empty; put the name of a variable in it", at=part.at)
            found.append(self.expression(cursor))
            height = max(height, self.height)
            if not cursor.is_line_end:
                cursor.fail(f"expected `}}`, {cursor.found()}; `${{…}}` contains a single value")
        self.height = height + 1
        return nodes.Template(token.at, tuple(found))

    def compared(self, cursor: Cursor) -> Expression:
        """Parse an expression of operators that bind tighter than NOT. Raises ScriptError."""
        return self._climb(cursor, _COMPARISON)

    def _chosen(self, cursor: Cursor, condition: Expression) -> Expression:
        """Parse `condition ? yes : no` as `IIF(condition, yes, no)`."""
        at, height = cursor.take().at, self.height
        yes = self.expression(cursor)
        height = max(height, self.height)
        cursor.expect(":", "the value after `?`")
        no = self.expression(cursor)
        self.height = max(height, self.height) + 1
        self.check_height(self.height, at)
        return nodes.Apply(at, "iif", (condition, yes, no))

    # Operators

    def _climb(self, cursor: Cursor, least: int) -> Expression:
        """Precedence climbing: parse operators whose precedence is at least `least`. Raises ScriptError if the
        expression is invalid or its tree is higher than HIGHEST."""
        left = self._operand(cursor)
        while True:
            token = cursor.now
            if token.kind is Kind.SYMBOL:
                rank = _SYMBOL_RANKS.get(token.text, 0)
            elif token.kind is Kind.WORD:
                rank = _WORD_RANKS.get(token.value, 0)
            else:
                return left
            if rank < least or not rank:
                return left
            height = self.height
            if rank == _COMPARISON and token.kind is Kind.WORD:
                left = self._comparison(cursor, token, left)
            else:
                cursor.index += 1
                right = self._right(cursor, token, rank)
                operator = token.text if token.kind is Kind.SYMBOL else token.value.lower()
                left = nodes.Binary(token.at, cast("nodes.Operator", operator), left, right)
            self.height = (height if height > self.height else self.height) + 1
            if self.height > HIGHEST:
                self.check_height(self.height, token.at)

    def _right(self, cursor: Cursor, operator: Token, rank: int) -> Expression:
        if cursor.is_line_end or (cursor.now.kind is Kind.SYMBOL and cursor.now.text in (")", "]", "}", ",")):
            cursor.fail(f"expected a value after `{operator.text}`, {cursor.found()}")
        if rank != _POWER:
            return self._climb(cursor, rank + 1)
        with self._reading.deeper(operator.at):
            return self._climb(cursor, rank)

    def _comparison(self, cursor: Cursor, token: Token, left: Expression) -> Expression:
        """Parse an operator in words, such as `[NOT] IN`, IS or STARTS WITH, after the left operand. Raises ScriptError
        for NOT without an operator."""
        cursor.index += 1
        if token.value == "IS":
            return self._is_null(cursor, token, left)
        operator = token
        if token.value == "NOT":
            operator = cursor.now
            if not cursor.words("IN") and not cursor.words("LIKE"):
                cursor.fail("expected an operator: AND NOT, OR NOT, NOT IN or NOT LIKE", at=token.at)
        test = _TEXT_TESTS.get(operator.value, "")
        if test.endswith("with") and not cursor.words("WITH"):
            cursor.fail(f"expected WITH after {operator.value}, {cursor.found()}")
        right = self._right(cursor, operator, _COMPARISON)
        if test:
            self._reading.check_call(token.at, test, 2)
            return nodes.Apply(token.at, test, (left, right))
        found = nodes.Binary(token.at, cast("nodes.Operator", operator.value.lower()), left, right)
        return nodes.Unary(token.at, "not", found) if token.value == "NOT" else found

    def _is_null(self, cursor: Cursor, token: Token, left: Expression) -> Expression:
        negated = cursor.words("NOT")
        if not cursor.words("NULL") and not cursor.words("NOTHING"):
            cursor.fail("expected NULL or NOT NULL after IS; to compare values write `=` or `<>`", at=token.at)
        return nodes.IsNull(token.at, left, negated)

    # Operands

    def _operand(self, cursor: Cursor) -> Expression:
        token = cursor.now
        kind = token.kind
        self.height = 0
        if kind is Kind.WORD:
            found = self._words.value(cursor, token)
        elif kind is Kind.TEXT:
            cursor.index += 1
            found = self.text(token)
        elif kind is Kind.NUMBER:
            cursor.index += 1
            found = nodes.Literal(token.at, token.value)
        elif kind is Kind.SYMBOL and token.text in self._brackets:
            found = self._brackets[token.text](cursor)
        elif kind is Kind.SYMBOL and token.text in ("-", "+"):
            return self._signed(cursor, token)
        else:
            cursor.fail(f"expected a value, {cursor.found()}")
        following = cursor.now
        if following.kind is Kind.SYMBOL and following.text in (".", "["):
            return self._members(cursor, found)
        return found

    def _signed(self, cursor: Cursor, token: Token) -> Expression:
        cursor.index += 1
        with self._reading.deeper(token.at):
            operand = self._climb(cursor, _SIGN)
        if token.text == "+":
            return operand
        if isinstance(operand, nodes.Literal) and isinstance(operand.value, int | float) and operand.value is not True:
            return nodes.Literal(token.at, -operand.value)
        self.height += 1
        return nodes.Unary(token.at, "-", operand)

    def _members(self, cursor: Cursor, found: Expression) -> Expression:
        while cursor.now.kind is Kind.SYMBOL and cursor.now.text in (".", "["):
            symbol, height, links = cursor.now, self.height, 1
            if symbol.text == ".":
                cursor.index += 1
                word = cursor.now
                name = self._name(cursor)
                if cursor.is_symbol("("):
                    arguments = (found, *self.items(cursor, ")"))
                    self._reading.check_call(word.at, name.lower(), len(arguments))
                    found = nodes.Apply(word.at, name.lower(), arguments)
                else:
                    self.height = 0
                    found = nodes.Member(symbol.at, found, name)
            else:
                for index in self.items(cursor, "]"):
                    found = nodes.Index(symbol.at, found, index)
                    links += 1
                links -= 1
            self.height = max(height, self.height) + links
            self.check_height(self.height, symbol.at)
        return found

    # Brackets

    def _group(self, cursor: Cursor) -> Expression:
        opener = cursor.take()
        found = self.expression(cursor)
        close(cursor, opener, ")")
        return found

    def _list(self, cursor: Cursor) -> Expression:
        return nodes.ListOf(cursor.now.at, self._all(items(cursor, self.expression, "]", may_end_in_comma=True)))

    def _map(self, cursor: Cursor) -> Expression:
        return nodes.MapOf(cursor.now.at, self._all(entries(cursor, self.expression)))

    def items(self, cursor: Cursor, closer: str) -> tuple[Expression, ...]:
        """Parse arguments or index values up to the bracket `closer`. Raises ScriptError if one is invalid, or if there
        is none before `]`."""
        at = cursor.now.at
        found = self._all(items(cursor, self.expression, closer))
        if not found and closer == "]":
            cursor.fail("expected an index between `[` and `]`", at=at)
        return found

    def _all(self, values: Iterator[Item]) -> tuple[Item, ...]:
        """The parsed values; their parent is one higher than the highest of them."""
        found: list[Item] = []
        height = 0
        for value in values:
            found.append(value)
            height = max(height, self.height)
        self.height = height + 1
        return tuple(found)

    def _name(self, cursor: Cursor) -> str:
        if cursor.now.kind is not Kind.WORD:
            cursor.fail(f"expected a name after `.`, {cursor.found()}")
        return cursor.take().text

    def check_height(self, height: int, at: At) -> None:
        if height > HIGHEST:
            message = f"more than {HIGHEST} operators or members in one expression; split it into several statements"
            raise ScriptError(at, Code.TOO_DEEP, message)


_BEGINS_VALUE = (Kind.TEXT, Kind.NUMBER, Kind.WORD)
_NO_VALUES = frozenset(
    ("AND", "OR", "NOT", "THEN", "ELSE", "TO", "IN", "IS", "AS", "STEP", "MOD", "LIKE", "WITH", "BY")
)
_LONGEST_SHOWN = 30


def more_specific_problem(cursor: Cursor, fault: ScriptProblem, reading: ParserState) -> ScriptProblem:
    """Replace a syntax problem at the cursor by a more specific one if the word before the cursor explains it."""
    if fault.code is not Code.SYNTAX or fault.at != cursor.now.at:
        return fault
    return mistaken_word(cursor, reading) or fault


def mistaken_word(cursor: Cursor, reading: ParserState) -> ScriptProblem | None:
    """Problem with the word before the cursor, parsed as a variable although a value follows it; None if there is no
    better explanation."""
    if not cursor.index or cursor.now.kind not in _BEGINS_VALUE or cursor.now.value in _NO_VALUES:
        return None
    word = cursor.ahead(-1)
    if word.kind is not Kind.WORD or word.text.lower() in reading.variables:
        return None
    if word.value == "IF":
        if cursor.ahead(-2).value == "END":
            return None
        return ScriptProblem(word.at, Code.SYNTAX, "IF has no value; write IIF(condition, value, default)")
    if (most := reading.functions.get(word.text.lower(), (0, 0))[1]) != 0:
        shown = cursor.now.text.splitlines()[0]
        shown = shown if len(shown) <= _LONGEST_SHOWN and most == 1 else "…"
        name = str(word.value)
        return ScriptProblem(word.at, Code.SYNTAX, f"{name} needs parentheses around its arguments: {name}({shown})")
    for back in (1, 2):
        # MERGE PDF is first parsed as the keyword MERGE, and fails after its second word.
        first = cursor.ahead(-back)
        if back > cursor.index or first.kind is not Kind.WORD:
            break
        cursor.index -= back
        words = words_at(cursor)
        cursor.index += back
        phrase = foreign_phrase(words, reading.keywords)
        if len(phrase.split()) >= back:
            return ScriptProblem(first.at, Code.UNKNOWN_STATEMENT, unsupported_message(phrase))
    return None
