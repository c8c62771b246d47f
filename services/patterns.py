"""Regular expressions compiled on first use, and characters that are invisible or misleading."""

from __future__ import annotations

import re
import unicodedata
from typing import Any, cast


class _LazyPattern:
    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        # `re` caches the compiled pattern; the method is stored here, so that the next look-up is direct.
        found = self.__dict__[name] = getattr(re.compile(self.pattern, self._flags), name)
        return found


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """A pattern that is compiled when it is first used. Several hundred of them took a tenth of the start-up time, and
    few are needed before somebody writes a time. Errors in `pattern` are raised only then."""
    return cast("re.Pattern[str]", _LazyPattern(pattern, flags))


def one_line(text: str) -> str:
    """`text` on a single line, without NUL and repeated spaces, so that it cannot imitate several messages."""
    return " ".join(text.replace("\0", " ").split())


_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})


def is_visible(text: str) -> bool:
    """Whether all of `text` is visible: no control, bidirectional or zero-width characters, lone surrogates, or spaces
    other than the plain space."""
    return all(one == " " or unicodedata.category(one) not in _UNSEEN | {"Zs"} for one in text)


def visible(text: str) -> str:
    """`text` with control, format and other invisible characters written as `<U+202E>`; line ends, tabs and wide spaces
    are kept."""
    return _written_out(text.replace("\r\n", "\n"), allowed="\n\t")


def visible_line(text: str) -> str:
    """`text` on one line, as shown to people for a decision: as `visible`, but line ends and tabs are escaped, too."""
    return _written_out(text, allowed="")


def _written_out(text: str, allowed: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        f"<U+{ord(one):04X}>" if one not in allowed and unicodedata.category(one) in _UNSEEN else one for one in text
    )
