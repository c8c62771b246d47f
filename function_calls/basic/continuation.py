"""Whether a statement goes on in the next line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from function_calls.basic.tokens import Kind, Token

_WAITING = frozenset([",", "+", "-", "*", "/", "\\", "^", "&", "=", "<>", "<", "<=", ">", ">=", "."])
_OF_VALUES = _WAITING - {","}
"""Behind these no comparison stands: `b = 2` in the next line is an assignment."""
_WAITING_WORDS = frozenset(("AND", "OR", "NOT", "MOD"))
_OPENING = frozenset(("(", "[", "{", "#{"))

_STATEMENT = re.compile(
    r"""[ \t]*(?:
        (?:IF|ELSEIF|FOR|WHILE|SELECT|SWITCH|CASE|RETURN|SUB|FUNCTION|GOTO|GOSUB|THROW|WITH|DIM|LET|SET|PARAM|DESCRIPTION
          |TALK|HEAR|PRINT|SAVE|SEND|WAIT|CLEAR|BEGIN)
        [ \t]+(?!(?:AND|OR|MOD|IN|LIKE|IS|NOT)\b)[\w"'`]
      | END[ \t]+(?:IF|FOR|WHILE|SELECT|SWITCH|WITH|SUB|FUNCTION)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
"""What is plainly a statement of its own."""
_ASSIGNMENT = re.compile(r"[ \t]*\w[\w.]*[ \t]*=")
_ALONE = re.compile(
    r"[ \t]*(?:NEXT(?:[ \t]+\w+)?|WEND|LOOP|ELSE|ENDIF|END|RETURN|EXIT|BREAK|CONTINUE|STOP)[ \t]*(?:$|'|//|#|:)",
    re.IGNORECASE | re.MULTILINE,
)
_GOES_ON = re.compile(
    r"""[ \t]*(?:
        [)\]},.:+\-*/\\^&=<>;] | != | (?:AND|OR|MOD|IN|LIKE|IS|NOT|TO|AS)\b     # what nothing begins with
      | $ | ' | \#(?!\{) | REM\b                                                # a comment: the line behind it decides
    )""",
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
_ENTRY = re.compile(r"""[ \t]*(?:["'`\d\[{#(-]|\w+[ \t]*:)""")
"""An entry of a list or a map; a comma is missing before it."""
_VALUE = re.compile(r"""[ \t]*["'`\[{#]""")


_CODE = re.compile(
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


def waits(last: Token) -> bool:
    """Whether a value has to follow this token."""
    if last.kind is Kind.SYMBOL:
        return last.text in _WAITING
    return last.kind is Kind.WORD and last.value in _WAITING_WORDS
