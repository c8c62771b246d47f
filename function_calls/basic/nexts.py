"""`NEXT i, j`, which ends two loops."""

from __future__ import annotations

from collections.abc import Sequence

from function_calls.basic.tokens import Kind, Token

DIVIDED = ","
"""The text of a NEXT that stands for the comma of `NEXT i, j`."""


def with_nexts_of_their_own(tokens: Sequence[Token]) -> Sequence[Token]:
    """The tokens, in which each loop has a NEXT of its own."""
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
    """Whether behind the word `NEXT` or the comma at `index` stand a name, a comma and another name."""
    following = tokens[index + 1 : index + 4]
    kinds = [token.kind for token in following]
    return kinds == [Kind.WORD, Kind.SYMBOL, Kind.WORD] and following[1].text == ","
