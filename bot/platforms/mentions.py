"""Detection of the bot's name in a text, for networks without structured mentions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

# Scripts without spaces between words: a name may be adjacent to other letters.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003134f"
)
_LETTER = rf"[^\W{_UNSPACED}]"
_MARKS = "\u0300-\u036f"
_WORD_GOES_ON = rf"(?!{_LETTER}|[{_MARKS}]|[-.'’]{_LETTER})"
_AFTER_A_NAME = re.compile(r"[,，:：、;；.。!！…]*[ \t]*")
_ENDS_A_CLAUSE = ",，.。;；:：!！?？、)）…"


class ParsedText(NamedTuple):
    """A text with its mention of the bot removed."""

    mentions_bot: bool
    text: str
    """NFC, without the bot's name if it was mentioned."""


ParseText = Callable[[str], ParsedText]


def mention_parser(names: Sequence[str]) -> ParseText:
    """A pure function that finds `names` (the bot's name and aliases, any case) in a text: as `@name` anywhere, or as
    the first word before a comma or similar. Raises ValueError without names."""
    known = sorted({unicodedata.normalize("NFC", name).strip() for name in names} - {""}, key=len, reverse=True)
    if not known:
        raise ValueError("a bot needs at least one name")
    any_name = "|".join(_whole(name) for name in known)
    unspaced = [re.escape(name) for name in known if re.fullmatch(f"[{_UNSPACED}]", name[-1])]
    at = re.compile(rf"(?:(?<!{_LETTER})|(?P<command>(?:^|(?<=\s))/[^\s@＠]+))[@＠](?:{any_name})", re.IGNORECASE)
    head = re.compile(
        rf"\s*(?:(?:{any_name})(?:\s*(?:[,，、;；!！?？…：]|:(?!\d|//)|\.\.+|$)|\s+[-–—]\s)"
        + (rf"|(?:{'|'.join(unspaced)})\s" if unspaced else "")
        + ")",
        re.IGNORECASE,
    )

    def hear(text: str) -> ParsedText:
        text = unicodedata.normalize("NFC", text)
        without = _without_each(at, text)
        if without is not None:
            return ParsedText(mentions_bot=True, text=without)
        called = head.match(text)
        if called is not None:
            return ParsedText(mentions_bot=True, text=text[called.end() :].lstrip("!！?？….").strip())
        return ParsedText(mentions_bot=False, text=text.strip())

    return hear


class Found(NamedTuple):
    """The names that a text mentions."""

    names: tuple[str, ...]
    """In lower case, in order of first occurrence."""
    text: str
    """The text without the mentions."""


def name_finder(names: Collection[str]) -> Callable[[str], Found | None]:
    """A pure function that finds `names` as `@name` in a text, in any case, at word boundaries; None without a match.
    Addresses such as `me@name.org`, `@name:server` and `/@name` do not count."""
    any_name = "|".join(_whole(name) for name in sorted(names, key=len, reverse=True))
    at = re.compile(
        rf"(?<!{_LETTER})(?<![/.+\-])(?P<command>)[@＠](?P<name>{any_name})(?![@/:]{_LETTER})", re.IGNORECASE
    )

    def find(text: str) -> Found | None:
        if "@" not in text and "＠" not in text:
            return None
        found = dict.fromkeys(one["name"].casefold() for one in at.finditer(text))
        without = _without_each(at, text) if found else None
        return None if without is None else Found(tuple(found), without)

    return find


def _whole(name: str) -> str:
    ends_in_letter = re.fullmatch(_LETTER, name[-1]) is not None
    return re.escape(name) + (_WORD_GOES_ON if ends_in_letter else "")


def _without_each(mention: re.Pattern[str], text: str) -> str | None:
    """`text` without the mentions and the gaps they leave; None if nothing was found."""
    found = mention.search(text)
    if found is None:
        return None
    while found is not None:
        command = found["command"] or ""
        text = _joined(text[: found.start()] + command, text[found.end() :])
        found = mention.search(text)
    return text.strip()


def _joined(left: str, right: str) -> str:
    before, after = left.rstrip(" \t"), right.lstrip(" \t")
    if not before or before.endswith("\n"):
        return before + _AFTER_A_NAME.sub("", right, count=1)
    if not after or after[0] in _ENDS_A_CLAUSE or after[0] == "\n":
        return before.rstrip(",， ") + after
    touching = before == left and after == right
    return before + ("" if touching else " ") + after
