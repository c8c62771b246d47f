"""Texts of Slack: mrkdwn from Markdown, and plain text from mrkdwn."""

from __future__ import annotations

import re
from collections.abc import Callable

from bot.platforms.markdown import Format

_URL = re.compile(r"(https?://[^\s<>|]*[^\s<>|.,;:!?()\[\]{}'\"*_~`])")
_BRACKETED = re.compile(r"<([^<>|\n]+)(?:\|([^<>\n]*))?>")
_LINKED = re.compile(r"(?:https?://|mailto:)[^\s<>|]+")
_MARKS = {"b": "*", "i": "_", "s": "~"}


def urls(text: str) -> list[tuple[str, bool]]:
    """`text` in parts that are not empty, each with whether it is a URL."""
    return [(part, bool(number % 2)) for number, part in enumerate(_URL.split(text)) if part]


def linked(text: str) -> str:
    """`text` for a message. Its only control sequences are URLs, so it mentions and notifies nobody."""
    return "".join(f"<{_escaped(part)}>" if is_url else _escaped(part) for part, is_url in urls(text))


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def plain(text: str, name_of: Callable[[str], str]) -> str:
    """A text of Slack without its control sequences; a mention becomes `@` and `name_of` its user id."""

    def shown(found: re.Match[str]) -> str:
        sign, target, label = found[1][0], found[1][1:], found[2]
        if sign == "@":
            return f"@{name_of(target)}"
        if sign == "#":
            return f"#{label or target}"
        if sign == "!":
            return label or f"@{target}"
        return f"{label} ({found[1]})" if label and label not in target else found[1].removeprefix("mailto:")

    return _BRACKETED.sub(shown, text).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def mrkdwn(markdown: str) -> str:
    """Markdown in Slack's format. Headings become bold lines; tables and images become text, as in `plain_lines`; HTML
    and control sequences are shown as they are, so the text notifies nobody."""
    return "\n".join(_Mrkdwn().lines(markdown))


class _Mrkdwn(Format):
    def text(self, text: str) -> str:
        return linked(text)

    def code(self, code: str) -> str:
        return f"`{_escaped(code)}`"

    def block(self, code: str) -> str:
        return f"```\n{_escaped(code)}\n```"

    def link(self, words: str, url: str) -> str:
        if _LINKED.fullmatch(url) is None:
            return linked(f"{words} ({url})")
        return f"<{_escaped(url)}|{_escaped(words)}>" if words else f"<{_escaped(url)}>"

    def emphasis(self, words: str, kinds: str, *, is_inside_word: bool) -> str:
        # Slack shows the marks inside of words.
        for kind in kinds if not is_inside_word else "":
            words = f"{_MARKS[kind]}{words}{_MARKS[kind]}"
        return words

    def heading(self, words: str) -> str:
        return f"*{words.replace('*', '')}*"
