"""Characters that nobody sees, or that make others look different from what they are."""

from __future__ import annotations

import unicodedata

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
