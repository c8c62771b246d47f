"""The known word that is nearest to one that is not known, for messages."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_MOST_SEARCHES = 20
"""Of one script. Each takes about a millisecond, and a file full of faults has told its author enough by then."""


class Nearest:
    """Looks for near words, each once, and not without end."""

    __slots__ = ("_found", "_searches")

    def __init__(self) -> None:
        self._found: dict[str, str] = {}
        self._searches = 0

    def hint(self, words: Iterable[str], known: Iterable[str]) -> str:
        """`; did you mean X?` for the first of `words`, in upper case, that is near to one of `known`; else empty."""
        candidates: list[str] | None = None
        for word in words:
            if word not in self._found:
                if self._searches >= _MOST_SEARCHES or len(word) > 40:
                    return ""
                self._searches += 1
                candidates = candidates if candidates is not None else sorted(known)
                near = get_close_matches(word, candidates, 1, 0.7)
                self._found[word] = near[0] if near else ""
            if self._found[word]:
                return f"; did you mean {self._found[word]}?"
        return ""
