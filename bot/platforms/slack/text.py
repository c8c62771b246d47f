"""Texts of Slack: mrkdwn from Markdown, and plain text from mrkdwn."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from bot.platforms.markdown import plain_lines

_URL = re.compile(r"(https?://[^\s<>|\x02]*[^\s<>|\x02.,;:!?()\[\]{}'\"*_~`])")
_BRACKETED = re.compile(r"<([^<>|\n]+)(?:\|([^<>\n]*))?>")
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_LINK = re.compile(r"(?<!!)\[([^\]\n]+)\]\(\s*<?(https?://[^\s)>|]+|mailto:[^\s)>|]+)>?[^)\n]*\)")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_HEADING = re.compile(r"#{1,6}\s+(.*?)\s*#*$")
_MARKS = (
    ("*", re.compile(r"(?<![\w*\\])(\*\*|__)(?=[^\s*_])(?P<text>.+?)(?<=[^\s\\])\1(?!\w)")),
    ("~", re.compile(r"(?<!~)~~(?=\S)(?P<text>.+?)(?<=\S)~~(?!~)")),
    ("_", re.compile(r"(?<![\w*\\])([*_])(?=[^\s*_])(?P<text>[^*_\n]+?)(?<=[^\s\\])\1(?![\w*])")),
)
"""Slack's mark, and its form in Markdown."""
_KEPT = re.compile("\x02(\\d+)\x02")


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
    return "\n".join(_lines(markdown.replace("\x02", "")))


def _lines(markdown: str) -> Iterator[str]:
    in_code = False
    for line in markdown.split("\n"):
        if _FENCE.match(line) and (in_code or "`" not in line.strip().lstrip("`")):
            in_code = not in_code
            yield "```"
        elif in_code:
            yield _escaped(line)
        else:
            heading = _HEADING.fullmatch(line)
            shown = _spans(heading[1] if heading else line)
            if shown or not line.strip():
                yield f"*{shown.replace('*', '')}*" if heading and shown else shown
    if in_code:
        yield "```"


def _spans(line: str) -> str:
    """One line with its code, links, bold, italic and struck text."""
    kept: list[str] = []

    def keep(text: str) -> str:
        kept.append(text)
        return f"\x02{len(kept) - 1}\x02"

    line = _CODE.sub(lambda found: keep(f"`{_escaped(found[2].strip() or found[2])}`"), line)
    line = _LINK.sub(lambda found: keep(f"<{_escaped(found[2])}|{_escaped(found[1])}>"), line)
    for mark, pattern in _MARKS:
        line = pattern.sub(lambda found, mark=mark: f"{keep(mark)}{found['text']}{keep(mark)}", line)  # type: ignore[misc]
    return _KEPT.sub(lambda found: kept[int(found[1])], linked("\n".join(plain_lines(line))))
