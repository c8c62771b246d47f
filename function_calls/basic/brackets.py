"""What stands in brackets: arguments, items, the entries of a map; and what is said where a bracket is not closed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NoReturn

from function_calls.basic.codes import Code
from function_calls.basic.nodes import Expression
from function_calls.basic.tokens import Cursor, Inner, Kind, Token

Read = Callable[[Cursor], Expression]


def items(cursor: Cursor, read: Read, closer: str, *, may_end_in_comma: bool = False) -> Iterator[Expression]:
    """The values with commas between them from the open bracket at the cursor on; behind the last one the cursor stands
    behind `closer`. Raises ScriptFault."""
    opener = cursor.take()
    while not cursor.is_symbol(closer):
        yield read(cursor)
        if not cursor.symbol(","):
            break
        if cursor.is_line_end:
            close(cursor, opener, closer)
        if cursor.is_symbol(closer) and not may_end_in_comma:
            cursor.fail(f"a value is missing behind `,`, {cursor.found()}")
    close(cursor, opener, closer)


def entries(cursor: Cursor, read: Read) -> Iterator[tuple[str, Expression]]:
    """The entries of the map that begins at the cursor. Raises ScriptFault."""
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
    """The key at the cursor, as written: a word, a text or a number. Raises ScriptFault."""
    token = cursor.now
    if token.kind not in (Kind.WORD, Kind.NUMBER, Kind.TEXT):
        cursor.fail(f"the name of an entry is missing, {cursor.found()}")
    parts: tuple[str | Inner, ...] = token.value if token.kind is Kind.TEXT else (token.text,)
    if len(parts) != 1 or not isinstance(parts[0], str):
        cursor.fail('a key cannot have `${}`; give the map this entry in a statement: map["…"] = value')
    cursor.take()
    return parts[0]


def close(cursor: Cursor, opener: Token, closer: str) -> None:
    """Pass the bracket that closes. Raises ScriptFault, at the bracket that is not closed where the statement ends."""
    if cursor.symbol(closer):
        return
    is_behind = cursor.is_symbol(",") or cursor.is_at("THEN")
    if cursor.is_line_end or (opener.text == "(" and is_behind and not _is_closed(cursor)):
        cursor.fail(
            f"`{opener.text}` is not closed; `{closer}` is missing before the statement ends", Code.SYNTAX, opener.at
        )
    if phrase := unknown_phrase(cursor):
        cursor.fail(f"there is no keyword {phrase}", Code.UNKNOWN_STATEMENT, before(cursor).at)
    between = "an operator" if opener.text == "(" else "a comma"
    cursor.fail(f"`{closer}`, or {between} before the next value, is missing, {cursor.found()}")


def _is_closed(cursor: Cursor) -> bool:
    """Whether a parenthesis that is open at the cursor is closed in this statement."""
    depth, count = 1, 0
    while (token := cursor.ahead(count)).kind not in (Kind.LINE, Kind.END) and depth:
        depth += token.kind is Kind.SYMBOL and token.text == "("
        depth -= token.kind is Kind.SYMBOL and token.text == ")"
        count += 1
    return not depth


def unknown_phrase(cursor: Cursor) -> str:
    """The words that look like a keyword that is not known, in upper case: a word in capitals directly before the
    cursor, with those behind it. Empty where there are none."""
    first, words = before(cursor), list[str]()
    if first.kind is not Kind.WORD or not first.text.isupper() or len(first.text) < 2:
        return ""
    while (token := cursor.ahead(len(words)) if words else cursor.now).kind is Kind.WORD and token.text.isupper():
        words.append(token.text)
    follows = cursor.now.kind in (Kind.TEXT, Kind.NUMBER, Kind.WORD)
    return " ".join((str(first.value), *words[:2])) if follows else ""


def before(cursor: Cursor) -> Token:
    """The token before the cursor, which is not the first one."""
    cursor.index -= 1
    token = cursor.now
    cursor.index += 1
    return token


def _no_colon(cursor: Cursor, opener: Token, name: str) -> NoReturn:
    if cursor.is_line_end:
        close(cursor, opener, "}")
    hint = "; in a map write `:` and not `=`" if cursor.is_symbol("=") else ""
    cursor.fail(f"`:` is missing behind the key {name}, {cursor.found()}{hint}")
