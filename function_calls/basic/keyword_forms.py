"""What the parser asks of the forms of keywords, and they of it."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, Protocol

from function_calls.basic.nodes import Expression, Target, Want
from function_calls.basic.tokens import Cursor, Token


class Reads(Protocol):
    """Reads what stands in a statement. All methods raise ScriptFault."""

    def expression(self, cursor: Cursor) -> Expression:
        """The expression at the cursor, as long as it goes."""

    def operand(self, cursor: Cursor) -> Expression:
        """The same up to the first operator."""

    def target(self, cursor: Cursor) -> Target:
        """What can be assigned to."""

    def text(self, token: Token) -> Expression:
        """The Literal or Template of a TEXT or a BLOCK."""


class MatchedForm(Protocol):
    """A keyword that was read."""

    @property
    def want(self) -> Want:
        """It, with its arguments."""

    @property
    def into(self) -> Target | None:
        """What receives its result, where the form says so."""


class KeywordForms(Protocol):
    """The forms of all keywords."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the keywords: `SEND MAIL`."""

    def match(self, cursor: Cursor, read: Reads, *, inside: bool) -> MatchedForm | None:
        """The keyword that begins at the cursor, or None. Raises ScriptFault where it begins and goes wrong."""


class KeywordWords(NamedTuple):
    """What keywords begin with."""

    first: frozenset[str]
    """`SEND`, and `SEND_MAIL` for SEND MAIL."""
    pairs: frozenset[str]
    """The first two words of each, or its only one."""
    names: frozenset[str]


@lru_cache(maxsize=8)
def words_of(names: tuple[str, ...]) -> KeywordWords:
    """The words of keywords with these names. Kept, since all scripts are read with the same keywords."""
    split = [name.split() for name in names]
    first = frozenset(word for words in split for word in (words[0], "_".join(words)))
    return KeywordWords(first, frozenset(" ".join(words[:2]) for words in split), frozenset(names))
