"""Whether a statement goes on in the next line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from function_calls.basic.tokens import Kind, Token
from services.lazy_patterns import lazy_pattern

_WAITING = frozenset([",", "+", "-", "*", "/", "\\", "^", "&", "=", "<>", "<", "<=", ">", ">=", "."])
_OF_VALUES = _WAITING - {","}
"""Behind these no comparison stands: `b = 2` in the next line is an assignment."""
_WAITING_WORDS = frozenset(("AND", "OR", "NOT", "MOD"))
_OPENING = frozenset(("(", "[", "{", "#{"))

_STATEMENT = lazy_pattern(
    r"""[ \t]*(?:
        (?:IF|ELSEIF|FOR|WHILE|SELECT|SWITCH|CASE|RETURN|SUB|FUNCTION|GOTO|GOSUB|THROW|WITH|DIM|LET|SET|PARAM|DESCRIPTION
          |TALK|HEAR|PRINT|SAVE|SEND|WAIT|CLEAR|BEGIN)
        [ \t]+(?!(?:AND|OR|MOD|IN|LIKE|IS|NOT)\b)[\w"'`]
      | END[ \t]+(?:IF|FOR|WHILE|SELECT|SWITCH|WITH|SUB|FUNCTION)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
"""What is plainly a statement of its own."""
_ASSIGNMENT = lazy_pattern(r"[ \t]*\w[\w.]*[ \t]*=")
_ALONE = lazy_pattern(
    r"[ \t]*(?:NEXT(?:[ \t]+\w+)?|WEND|LOOP|ELSE|ENDIF|END|RETURN|EXIT|BREAK|CONTINUE|STOP)[ \t]*(?:$|'|//|#|:)",
    re.IGNORECASE | re.MULTILINE,
)
_GOES_ON = lazy_pattern(
    r"""[ \t]*(?:
        [)\]},.:+\-*/\\^&=<>;] | != | (?:AND|OR|MOD|IN|LIKE|IS|NOT|TO|AS)\b     # what nothing begins with
      | $ | ' | \#(?!\{) | REM\b                                                # a comment: the line behind it decides
    )""",
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
_ENTRY = lazy_pattern(r"""[ \t]*(?:["'`\d\[{#(-]|\w+[ \t]*:)""")
"""An entry of a list or a map; a comma is missing before it."""
_VALUE = lazy_pattern(r"""[ \t]*["'`\[{#]""")


_CODE = lazy_pattern(
    r"""[ \t]*(?:
        (?:IF|ELSE|ELSEIF|FOR|NEXT|DO|LOOP|WHILE|WEND|SELECT|SWITCH|CASE|RETURN|SUB|FUNCTION|CALL|GOTO|EXIT|WITH|END|PARAM
          |DESCRIPTION|REM|TALK|HEAR|PRINT|SAVE|SEND|SET|LET|DIM|GET|POST|FIND|WAIT|USE|ADD|CLEAR|BEGIN)\b
      | (?i:TALK|PRINT|SAVE|SEND(?:[ \t]+\w+)?|RETURN|DESCRIPTION|CASE|ELSEIF|GET|POST|FIND)[ \t]+["'`]
      | (?i:END|ELSE|NEXT|WEND|LOOP|RETURN|STOP|BREAK|CONTINUE|END[ \t]+\w+|ENDIF|NEXT[ \t]+\w+)[ \t]*$
      | (?i:IF|ELSEIF|FOR|WHILE|SELECT|SWITCH|PARAM|SUB|FUNCTION)[ \t][^"\n]*(?:=|<|>|\b(?i:THEN|IN|AS)\b)
      | \w[\w.\[\]]*[ \t]*[+\-*/]?=
      | ' | // | \#
    )""",
    re.VERBOSE | re.MULTILINE,
)
"""What is no line of a text, but code."""


def reads_like_prose(text: str, position: int) -> bool:
    """Whether the line that begins at `position` can belong to a text that was begun before it."""
    return position < len(text) and not _CODE.match(text, position)


def goes_on(last: Token, text: str, position: int, brackets: Sequence[str], over_blank_line: bool) -> bool:
    """Whether the statement that has `last` before the line's end goes on at `position`, where the next line begins.

    Within brackets a line may also end behind a value, unless what follows can only be a statement of its own: then
    a bracket was not closed."""
    if waits(last):
        if not brackets and (over_blank_line or _is_code(last, text, position)):
            return False
        return not _STATEMENT.match(text, position)
    if not brackets:
        return False
    if last.kind is Kind.SYMBOL and last.text in _OPENING:
        return not _STATEMENT.match(text, position)
    if _GOES_ON.match(text, position):
        return True
    return (_VALUE if brackets[-1] == "(" else _ENTRY).match(text, position) is not None


def _is_code(last: Token, text: str, position: int) -> bool:
    """Whether the line at `position` is none that goes on behind an operator, though it could be read so."""
    if _ALONE.match(text, position):
        return True
    return last.text in _OF_VALUES and _ASSIGNMENT.match(text, position) is not None


_ROWS = {
    "WHERE": frozenset(("UPDATE", "FIND", "DELETE", "FILTER", "AGGREGATE")),
    "SET": frozenset(("UPDATE", "INSERT")),
    "VALUES": frozenset(("INSERT",)),
    "(": frozenset(("INSERT",)),
    "WITH": frozenset(("SAVE", "INSERT", "UPDATE", "FIND", "MERGE")),
    "ORDER": frozenset(("FIND",)),
    "LIMIT": frozenset(("FIND",)),
}
"""The parts of statements on rows that may have a line of their own, by their first words."""
_BEGINS_PART = lazy_pattern(
    r"""[ \t]*(?: (?P<part>WHERE|LIMIT|VALUES|SET|WITH)(?=[ \t]+["'(\w]|[ \t]*\(|[ \t]*$)
      | (?P<order>ORDER)(?=[ \t]+BY\b) | (?P<bracket>\() )""",
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
_COLUMNS = lazy_pattern(r"""[ \t]+["']?\w+["']?[ \t]*(?:=|AS\b)|[ \t]*$""", re.IGNORECASE | re.MULTILINE)
_PART_WORDS = frozenset(("WHERE", "SET", "VALUES", "WITH", "ORDER", "BY", "LIMIT"))


def goes_on_with_rows(tokens: Sequence[Token], text: str, position: int) -> bool:
    """Whether `tokens` end in a statement on rows, such as `UPDATE stock`, of which another part stands in the line at
    `position`: `SET count = 1`, or what SET at the end of the line waits for."""
    last = tokens[-1]
    waiting = last.kind is Kind.WORD and last.value in _PART_WORDS
    found = _BEGINS_PART.match(text, position)
    if found is None and not waiting:
        return False
    first = next((at for at in range(len(tokens), 0, -1) if tokens[at - 1].kind is Kind.LINE), 0)
    words = [token.value for token in tokens[first:] if token.kind is Kind.WORD]
    if waiting:
        part = "ORDER" if last.value == "BY" else str(last.value)
        if _ROWS[part].intersection(words[:-1]):
            return not (_ALONE.match(text, position) or _STATEMENT.match(text, position))
    if found is None:
        return False
    part = (found["part"] or found["order"] or found["bracket"]).upper()
    if not _ROWS[part].intersection(words):
        return False
    if part not in ("SET", "WITH", "("):
        return True
    # These could also begin a statement, so that the one before must need them.
    is_open = not any(token.text == "," or token.value in _PART_WORDS for token in tokens[first:])
    return is_open and (part == "(" or _COLUMNS.match(text, found.end("part")) is not None)


def waits(last: Token) -> bool:
    """Whether a value has to follow this token."""
    if last.kind is Kind.SYMBOL:
        return last.text in _WAITING
    return last.kind is Kind.WORD and last.value in _WAITING_WORDS
