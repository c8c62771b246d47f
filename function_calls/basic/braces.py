"""Blocks in braces, as other languages have them: each is told once, with how it is written here, and passed over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from function_calls.basic.codes import Code, Fault
from function_calls.basic.tokens import Kind, Token

_WRITTEN: Mapping[str, str] = MappingProxyType(
    {
        "IF": "IF condition THEN … ELSE … END IF",
        "ELSE": "IF condition THEN … ELSE … END IF",
        "ELSEIF": "IF condition THEN … ELSEIF … END IF",
        "FOR": "FOR i = 1 TO 10 … NEXT, or FOR EACH item IN list … NEXT",
        "FOREACH": "FOR EACH item IN list … NEXT",
        "WHILE": "WHILE condition … WEND",
        "DO": "DO … LOOP UNTIL condition",
        "SWITCH": "SELECT CASE value … CASE 1 … END SELECT",
        "SELECT": "SELECT CASE value … CASE 1 … END SELECT",
        "FUNCTION": "FUNCTION name(a, b) … END FUNCTION",
        "SUB": "SUB name(a, b) … END SUB",
        "TRY": "ON ERROR RESUME NEXT before it, and IF ERROR THEN behind it",
    }
)
"""By the first word of the statement."""
_GO_ON = frozenset(("ELSE", "ELSEIF", "WHILE", "CATCH", "FINALLY"))
"""What may stand behind `}`, with more of the same statement."""
_OPENS = frozenset(("{", "#{"))


def without_braces(tokens: Sequence[Token]) -> tuple[list[Token], list[Fault]]:
    """The tokens without such blocks, and a fault for each."""
    kept: list[Token] = []
    faults: list[Fault] = []
    begins, index = True, 0
    while index < len(tokens):
        token = tokens[index]
        if begins and token.kind is Kind.WORD and token.value in _WRITTEN and (brace := _brace_of(tokens, index)):
            told = f"blocks do not stand in braces here; write {_WRITTEN[token.value]}, each part on lines of its own"
            faults.append(Fault(token.at, Code.SYNTAX, told))
            index = _behind(tokens, brace)
            continue
        begins = token.kind is Kind.LINE
        kept.append(token)
        index += 1
    return kept, faults


def _brace_of(tokens: Sequence[Token], index: int) -> int:
    """Where the brace is that opens the block of the statement at `index`; 0 where none does. A map that begins a
    line's end, as in `IF x = {`, stands behind an operator."""
    first = tokens[index]
    behind = tokens[index + 1]
    if behind.kind is Kind.SYMBOL and behind.text not in ("(", "{"):
        return 0
    if first.value == "ELSE" and behind.value != "IF" and behind.text != "{":
        return 0
    while tokens[index].kind not in (Kind.LINE, Kind.END) and tokens[index].at.line == first.at.line:
        if tokens[index].value == "THEN" and tokens[index + 1].text != "{":
            return 0
        if tokens[index].text == "{" and tokens[index].kind is Kind.SYMBOL:
            ends_line = tokens[index + 1].kind is Kind.LINE or tokens[index + 1].at.line > first.at.line
            before = tokens[index - 1]
            if (ends_line or _holds_statements(tokens, index)) and (
                before.kind in (Kind.WORD, Kind.NUMBER, Kind.TEXT) or before.text in (")", "]")
            ):
                return index if before.value not in ("IN", "TO") else 0
        index += 1
    return 0


def _holds_statements(tokens: Sequence[Token], brace: int) -> bool:
    """Whether a brace within a line opens a block, as in `if (x) { TALK "a" }`, and not a map."""
    first, second = tokens[brace + 1], tokens[brace + 2] if brace + 2 < len(tokens) else tokens[-1]
    return first.kind is Kind.WORD and second.text not in (":", ",", "}") and bool(_closed(tokens, brace))


def _behind(tokens: Sequence[Token], brace: int) -> int:
    """Where it goes on behind the block that begins with this brace, and those that belong to it; at the end of the
    line where it has no end."""
    while closed := _closed(tokens, brace):
        following = closed + 1
        while tokens[following].kind is Kind.LINE and tokens[following + 1].value in _GO_ON - {"WHILE"}:
            if not _brace_of(tokens, following + 1):
                break
            following += 1
        if tokens[following].value not in _GO_ON:
            return following
        brace = following
        while tokens[brace].kind not in (Kind.LINE, Kind.END) and tokens[brace].text not in _OPENS:
            brace += 1
        if tokens[brace].text != "{":
            break
    return _line_end(tokens, brace)


def _closed(tokens: Sequence[Token], brace: int) -> int:
    depth = 0
    for index in range(brace, len(tokens)):
        if tokens[index].kind is Kind.SYMBOL:
            depth += (tokens[index].text in _OPENS) - (tokens[index].text == "}")
            if not depth:
                return index
    return 0


def _line_end(tokens: Sequence[Token], index: int) -> int:
    while tokens[index].kind not in (Kind.LINE, Kind.END):
        index += 1
    return index
