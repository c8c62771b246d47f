"""Recognition of comments, and messages for characters that are not allowed in scripts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from function_calls.basic.language.tokens import Kind, Token
from function_calls.basic.nodes import At

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
"""Tokens that may follow a text in single quotes."""

_COMMENT_LINE = re.compile(r"[ \t]*(?:REM\b|'+|//+|#+(?!\{))[ \t]*(.*)", re.IGNORECASE)
_WORDS = re.compile(r"\w")
_TOOL_NAME = re.compile(r"(?:TOOL|NAME)[ \t]*:[ \t]*([\w-]+)$", re.IGNORECASE)


def begins_text(tokens: Sequence[Token], text: str, start: int, end: int) -> bool:
    """Whether the `'` at `start` begins a text, and not a comment.

    `tokens` are those before it. `end` is the offset after the closing quote, or -1 if there is none."""
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
    """Whether `tokens` end where the header expects a text: after a clause of PARAM, or after DESCRIPTION."""
    if tokens[-1].value not in _CLAUSES or tokens[-1].kind is not Kind.WORD:
        return False
    first = next((at for at in range(len(tokens), 0, -1) if tokens[at - 1].kind is Kind.LINE), 0)
    return bool(tokens[first].value == ("PARAM" if first < len(tokens) - 1 else "DESCRIPTION"))


def _ends_well(text: str, end: int) -> bool:
    return _ENDS_WELL.match(text, end) is not None


def _is_keyword(tokens: Sequence[Token]) -> bool:
    """Whether the last tokens begin a keyword, as in `SEND FILE 'a.pdf'`: the first word of a statement, or an
    upper-case word after another one or at the start of a value."""
    before = tokens[-2] if len(tokens) > 1 else None
    if before is None or before.kind is Kind.LINE or before.value in ("THEN", "ELSE"):
        return True
    if before.kind is Kind.NUMBER:
        return len(tokens) == 2 or tokens[-3].kind is Kind.LINE
    begins_value = before.kind is Kind.SYMBOL and before.text not in (")", "]", "}", ".")
    return tokens[-1].text.isupper() and (before.kind is Kind.WORD or begins_value)


def comments_above(lines: Sequence[str], at: At) -> str:
    """Text of the comment lines directly above `at`, joined by spaces. Blank lines and decoration (`REM ====`) are
    skipped."""
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
    """Tool name from a comment such as `' TOOL: cat_fact` above `at`; empty if there is none."""
    for line in reversed(lines[: at.line - 1]):
        found = _COMMENT_LINE.match(line)
        if found is None and line.strip():
            break
        if found and (named := _TOOL_NAME.match(found.group(1).rstrip())):
            return named.group(1)
    return ""


FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
"""Control characters, bidirectional overrides and lone surrogates. Rejected everywhere, even in texts, because authors
cannot see them."""

MEANT = {
    **dict.fromkeys("“”„‟«»「」『』＂〝〞", '"'),
    **dict.fromkeys("‘’‚‛＇", "'"),
    **dict.fromkeys("，、", ","),
    **dict.fromkeys("－−–—‐‑‒―", "-"),
    **dict.fromkeys("×＊∗", "*"),
    **dict.fromkeys("÷／∕", "/"),
    **dict.fromkeys("［【", "["),
    **dict.fromkeys("］】", "]"),
    **dict.fromkeys("．。", "."),
    **dict(zip("（）｛｝：；＝＜＞＋＼＾＆＃％", "(){}:;=<>+\\^&#%", strict=True)),
    "≤": "<=",
    "≥": ">=",
    "≠": "<>",
}
"""The language's spelling of similar-looking characters."""
QUOTES = frozenset(character for character, meant in MEANT.items() if meant in ('"', "'"))

_INSTEAD = {
    "&&": "write AND",
    "||": "write OR",
    "|": "write OR",
    "!": "write NOT, or <> for `is not equal`",
    "??": "write NVL(value, default)",
    "?": "write IIF(condition, yes, no) to choose a value, and PRINT in full",
    "@": "put an address such as name@host in quotes",
    "$": "put amounts and other texts in quotes, and use `${…}` inside quotes only",
    "…": "write three dots inside quotes",
}


def forbidden(character: str) -> str:
    """Error message for an invisible character of FORBIDDEN, which names it."""
    return f"invisible character ({_named(character)}); delete it and save the file as plain text in UTF-8"


def out_of_place(character: str) -> str:
    """Error message for a character that has no meaning outside of quotes, with a hint at its replacement."""
    if character in MEANT:
        return f"unexpected character `{character}`; write `{MEANT[character]}`"
    digit = unicodedata.digit(character, None) if len(character) == 1 else None
    if digit is not None:
        return f"unexpected digit `{character}`; write `{digit}`"
    if character in _INSTEAD:
        return f"unexpected `{character}`; {_INSTEAD[character]}"
    if not character.isprintable() or character.isspace():
        return f"invisible character ({_named(character)}); delete it"
    return f"unexpected `{character}`; put text in quotes"


def plain(word: str) -> str:
    """NFKC form of a word, such as `IF` for the full-width `ＩＦ`."""
    return unicodedata.normalize("NFKC", word)


def _named(character: str) -> str:
    return f"U+{ord(character):04X} {unicodedata.name(character, '')}".rstrip()
