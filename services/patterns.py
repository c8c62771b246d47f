"""Regular expressions compiled on first use, words in texts, and characters that are invisible or misleading."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
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


def one_line(text: str, most_chars: int | None = None) -> str:
    """`text` on a single line, without NUL and repeated spaces, so that it cannot imitate several messages. With
    `most_chars` also without other invisible characters, and cut like `shortened`."""
    if most_chars is not None:
        text = "".join(sign if sign.isprintable() else " " for sign in text)
    line = " ".join(text.replace("\0", " ").split())
    return line if most_chars is None else shortened(line, most_chars)


def shortened(text: str, most_chars: int) -> str:
    """Cut `text` to at most `most_chars` characters, after a word unless that would lose more than half; a cut text
    ends with an ellipsis."""
    if len(text) <= most_chars:
        return text
    cut = text[: most_chars - 1]
    head, space, _ = cut.rpartition(" ")
    return (head if space and len(head) > most_chars // 2 else cut).rstrip(" ,;:") + "…"


# Scripts written without spaces have no word boundaries.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_LETTER = rf"[^\W_{_UNSPACED}]"


def word_finder(words: Sequence[str]) -> Callable[[str], str]:
    """A function that returns the first of `words` in a text, or an empty string. Case and invisible characters do not
    count; a word is not found within a longer one, except in scripts without spaces."""
    expression = re.compile("|".join(f"({_expression(word)})" for word in words))

    def find(text: str) -> str:
        found = expression.search(folded(text)) if words else None
        return words[found.lastindex - 1] if found is not None and found.lastindex else ""

    return find


def _expression(word: str) -> str:
    plain = folded(word)
    parts = r"\s+".join(map(re.escape, plain.split()))
    before = rf"(?<!{_LETTER})" if re.match(_LETTER, plain) else ""
    after = rf"(?!{_LETTER})" if re.search(rf"{_LETTER}\Z", plain) else ""
    return f"{before}{parts}{after}"


def folded(text: str) -> str:
    """`text` in NFKC form and casefolded, without invisible characters (category Cf)."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return plain if plain.isascii() else "".join(one for one in plain if unicodedata.category(one) != "Cf")


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
