"""Alternatives as people list them."""

from __future__ import annotations

import re
from collections.abc import Sequence

_COMMAS = re.compile(r"[,，、;；|\n]+")
_OR = re.compile(r"\s*(?:\b(?:or|versus|vs)\b\.?|还是|或者|或是)\s*", re.IGNORECASE)
_AND = re.compile(r"\s*(?:\band\b|和|与)\s*", re.IGNORECASE)
_LEADING = re.compile(r"^(?:(?:either|or|and|还是|或者|和)\s+)", re.IGNORECASE)


def alternatives(options: Sequence[str]) -> tuple[str, ...]:
    """The alternatives in `options`, in order, each once, spaces trimmed. A list that came as one text (`tea, coffee
    or milk`) or as the words of one (`green` `tea,` `coffee`) is divided at its commas, else at `or`, else at `and`. In
    other lists every text is an alternative, commas inside it too; only a bare `or` is none."""
    texts = [" ".join(option.replace("\0", " ").split()) for option in options]
    texts = [text for text in texts if text]
    if len(texts) == 1 or any(text[-1] in ",，、;；|" for text in texts):
        texts = _divided(" ".join(texts))
    elif len(texts) > 2:
        texts = [text for text in texts if not _OR.fullmatch(text)]
    unique = {text.casefold(): text for text in reversed(texts) if text}
    return tuple(reversed(unique.values()))


def chosen(option: str, options: Sequence[str]) -> int | None:
    """The index of the alternative that `option` means: its number from 1 (`2`, `#2`), its text, or the only one
    whose text begins with it. None when there is no such alternative."""
    wanted = " ".join(option.split()).casefold()
    folded = [text.casefold() for text in options]
    if wanted in folded:
        return folded.index(wanted)
    digits = wanted.removeprefix("#")
    if digits.isdecimal():
        index = int(digits) - 1 if len(digits) < 4 else -1
        return index if 0 <= index < len(options) else None
    beginning = [index for index, text in enumerate(folded) if wanted and text.startswith(wanted)]
    return beginning[0] if len(beginning) == 1 else None


def _divided(text: str) -> list[str]:
    for separator in (_COMMAS, _OR, _AND):
        parts = [part for part in separator.split(text) if part.strip()]
        if len(parts) > 1:
            break
    if separator is _COMMAS and len(parts) > 1:
        *first, last = parts  # `tea, coffee or milk`
        parts = [*first, *_OR.split(last)]
    return [_LEADING.sub("", part.strip()).strip() for part in parts]
