"""Text of others as people are shown it before they decide about it."""

from __future__ import annotations

import unicodedata


def visible(text: str) -> str:
    """`text` with what cannot be seen, or turns the direction of reading, written out."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        f"<U+{ord(one):04X}>" if unicodedata.category(one) in ("Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp") else one
        for one in text
    )
