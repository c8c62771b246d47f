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
        # The package keeps what it has compiled; what was found stays here and is not looked for again.
        found = self.__dict__[name] = getattr(re.compile(self.pattern, self._flags), name)
        return found


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """The expression, to call the methods of. Several hundred of them compiled at once took a tenth of every start, and
    few are used before somebody speaks of a time. A mistake in `pattern` shows only then."""
    return cast("re.Pattern[str]", _LazyPattern(pattern, flags))


_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})


def is_visible(text: str) -> bool:
    """Whether what is seen of `text` is all of it: no control characters, nothing that turns the direction round or
    takes no room, no half characters, no spaces but the plain one."""
    return all(one == " " or unicodedata.category(one) not in _UNSEEN | {"Zs"} for one in text)


def visible(text: str) -> str:
    """`text` with such characters written out as `<U+202E>`; lines, tabs and wide spaces stay."""
    return _written_out(text.replace("\r\n", "\n"), kept="\n\t")


def visible_line(text: str) -> str:
    """The same on one line, as people are shown what they decide about: ends of lines and tabs are written out too."""
    return _written_out(text, kept="")


def _written_out(text: str, kept: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        f"<U+{ord(one):04X}>" if one not in kept and unicodedata.category(one) in _UNSEEN else one for one in text
    )
