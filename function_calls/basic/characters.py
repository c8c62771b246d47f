"""Characters that a script must not hold, and those that are written for another one: full-width and typographic."""

from __future__ import annotations

import re
import unicodedata

FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
"""Control characters, those that turn the direction of what is shown, and halves of characters: nowhere allowed, not in
texts either, because an author cannot see them."""

MEANT = {
    **dict.fromkeys("“”„‟«»「」『』＂〝〞", '"'),
    **dict.fromkeys("‘’‚‛＇", "'"),
    **dict.fromkeys("，、", ","),
    **dict.fromkeys("－−–—‐‑‒―", "-"),
    **dict.fromkeys("×＊∗", "*"),
    **dict.fromkeys("÷／∕", "/"),
    **dict.fromkeys("［【", "["),
    **dict.fromkeys("］】", "]"),
    **dict.fromkeys("．。", "."),
    **dict(zip("（）｛｝：；＝＜＞＋＼＾＆＃％", "(){}:;=<>+\\^&#%", strict=True)),
    "≤": "<=",
    "≥": ">=",
    "≠": "<>",
}
"""What the author means with a character that looks like one of the language."""
QUOTES = frozenset(character for character, meant in MEANT.items() if meant in ('"', "'"))

_INSTEAD = {
    "&&": "write AND",
    "||": "write OR",
    "|": "write OR",
    "!": "write NOT, or <> for `is not equal`",
    "??": "write NVL(value, otherwise)",
    "?": "a choice between two values is written IIF(condition, yes, no), and PRINT in full",
    "@": "an address such as name@host is a text and stands in quotes",
    "$": "amounts and other texts stand in quotes, and `${…}` stands inside of quotes",
    "…": "write three dots, inside of quotes",
}


def forbidden(character: str) -> str:
    """What to tell the author of a FORBIDDEN character."""
    return (
        f"a character stands here that cannot be seen ({_named(character)}); delete it, and save the file as plain "
        "text in UTF-8"
    )


def out_of_place(character: str) -> str:
    """What to tell the author of a character that has no meaning outside of quotes."""
    if character in MEANT:
        return f"`{character}` is not a character of the language; write `{MEANT[character]}`"
    digit = unicodedata.digit(character, None) if len(character) == 1 else None
    if digit is not None:
        return f"`{character}` is not a digit of the language; write `{digit}`"
    if character in _INSTEAD:
        return f"`{character}` has no meaning in a script; {_INSTEAD[character]}"
    if not character.isprintable() or character.isspace():
        return f"a character stands here that cannot be seen ({_named(character)}); delete it"
    return f"`{character}` has no meaning in a script; words that are to be shown stand in quotes"


def plain(word: str) -> str:
    """The word in the characters that a keyboard has: `ＩＦ` is `IF`."""
    return unicodedata.normalize("NFKC", word)


def _named(character: str) -> str:
    return f"U+{ord(character):04X} {unicodedata.name(character, '')}".rstrip()
