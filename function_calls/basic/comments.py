"""Comments: which `'` begins one, and what the lines above a tool say of it.

A comment begins with `REM`, `'`, `//` or `#` (but not `#{`) and goes on to the line's end. A `'` is a quote instead
where a value is expected and the line has the other quote too: behind an operator, a comma, an open bracket or a word
that takes a value; and where a PARAM or DESCRIPTION needs its text. Everywhere else it begins a comment."""

from __future__ import annotations

import re
from collections.abc import Sequence

from function_calls.basic.nodes import At
from function_calls.basic.tokens import Kind, Token

_TAKES_A_VALUE = frozenset((
    "AND", "OR", "NOT", "MOD", "LIKE", "IN", "IS", "AS", "TO", "CASE", "IF", "ELSEIF", "WHILE", "UNTIL", "STEP",
    "SELECT", "SWITCH", "THROW", "ASSERT",
))  # fmt: skip
_TAKES_NONE = frozenset((
    "THEN", "ELSE", "NEXT", "LOOP", "WEND", "DO", "END", "BREAK", "STOP", "CONTINUE", "EXIT", "DEFAULT", "NOW", "TODAY",
    "NULL", "NOTHING", "TRUE", "FALSE", "ENDIF", "ENDSELECT", "ENDSWITCH", "ENDWITH", "ENDSUB", "ENDFUNCTION",
    "ENDWHILE", "ENDFOR",
))  # fmt: skip
_CLAUSES = frozenset(("DESCRIPTION", "LIKE", "DEFAULT", "ENUM"))
_ENDS_WELL = re.compile(
    r"""[ \t]*(?: $ | [,)\]}+&:;=<>*/] | ' | // | \#
      | (?:AND|OR|THEN|ELSE|ELSEIF|END|ENDIF|TO|AS|IN|LIKE|IS|NOT|WITH|WHERE|BY|ON|FROM|REM)\b
      | (?:DESCRIPTION|OPTIONAL|DEFAULT|ENUM)\b )""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
"""What may stand behind a text."""

_COMMENT_LINE = re.compile(r"[ \t]*(?:REM\b|'+|//+|#+(?!\{))[ \t]*(.*)", re.IGNORECASE)
_WORDS = re.compile(r"\w")
_TOOL_NAME = re.compile(r"(?:TOOL|NAME)[ \t]*:[ \t]*([\w-]+)$", re.IGNORECASE)


def begins_text(tokens: Sequence[Token], text: str, start: int, end: int) -> bool:
    """Whether the `'` at `start` is a quote, `end` being behind the quote that would close it, or -1 if none would.

    `tokens` are those before it."""
    before = tokens[-1] if tokens else None
    if before is None or before.kind is Kind.LINE:
        return False
    if end >= 0 and _is_of_header(tokens):
        return True
    spaced = text[start + 1 : start + 2] in (" ", "\t", "\n", "")
    if before.kind is Kind.SYMBOL:
        if before.text in ")]}":
            return False
        return (end >= 0 and (not spaced or _ends_well(text, end))) or (end < 0 and not spaced)
    if before.kind is not Kind.WORD or end < 0 or before.value in _TAKES_NONE or not _ends_well(text, end):
        return False
    if len(tokens) > 1 and (tokens[-2].text == "." or tokens[-2].value in ("END", "EXIT")):
        return False
    return before.value in _TAKES_A_VALUE or _is_keyword(tokens)


def _is_of_header(tokens: Sequence[Token]) -> bool:
    """Whether the value of a clause of PARAM, or the text of a DESCRIPTION, has to stand behind `tokens`."""
    if tokens[-1].value not in _CLAUSES or tokens[-1].kind is not Kind.WORD:
        return False
    first = next((at for at in range(len(tokens), 0, -1) if tokens[at - 1].kind is Kind.LINE), 0)
    return bool(tokens[first].value == ("PARAM" if first < len(tokens) - 1 else "DESCRIPTION"))


def _ends_well(text: str, end: int) -> bool:
    return _ENDS_WELL.match(text, end) is not None


def _is_keyword(tokens: Sequence[Token]) -> bool:
    """Whether what stands before are the first words of a keyword, as in `SEND FILE 'a.pdf'`: the first word of the
    statement, or one in capitals behind another or where a value begins."""
    before = tokens[-2] if len(tokens) > 1 else None
    if before is None or before.kind is Kind.LINE or before.value in ("THEN", "ELSE"):
        return True
    if before.kind is Kind.NUMBER:
        return len(tokens) == 2 or tokens[-3].kind is Kind.LINE
    begins_value = before.kind is Kind.SYMBOL and before.text not in (")", "]", "}", ".")
    return tokens[-1].text.isupper() and (before.kind is Kind.WORD or begins_value)


def comments_above(lines: Sequence[str], at: At) -> str:
    """What the comment lines directly above `at` say, joined by spaces; blank lines between them do not count, and
    lines of decoration (`REM ====`) say nothing."""
    said: list[str] = []
    for line in reversed(lines[: at.line - 1]):
        if not line.strip():
            continue
        found = _COMMENT_LINE.match(line)
        if found is None:
            break
        words = found.group(1).strip("=-*~_#/ \t")
        if _WORDS.search(words) and not _TOOL_NAME.match(words):
            said.append(words)
    return " ".join(reversed(said))


def name_above(lines: Sequence[str], at: At) -> str:
    """The name that a comment line such as `' TOOL: cat_fact` above `at` gives to what stands there; empty if none."""
    for line in reversed(lines[: at.line - 1]):
        found = _COMMENT_LINE.match(line)
        if found is None and line.strip():
            break
        if found and (named := _TOOL_NAME.match(found.group(1).rstrip())):
            return named.group(1)
    return ""
