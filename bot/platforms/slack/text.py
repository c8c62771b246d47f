"""Texts of Slack: mrkdwn from Markdown, plain text from mrkdwn, and names of emoji."""

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
_EMOJI: dict[str, str] = dict(
    re.findall(
        r"(\S+) (\S+)",
        "+1 👍 -1 👎 white_check_mark ✅ heavy_check_mark ✔️ ballot_box_with_check ☑️ x ❌ no_entry ⛔ no_entry_sign 🚫 "
        "octagonal_sign 🛑 ok_hand 👌 ok 🆗 heart ❤️ eyes 👀 hourglass ⌛ hourglass_flowing_sand ⏳ stopwatch ⏱️ tada 🎉 "
        "clap 👏 pray 🙏 raised_hands 🙌 wave 👋 rocket 🚀 fire 🔥 100 💯 thinking_face 🤔 question ❓ exclamation ❗ "
        "warning ⚠️ joy 😂 smile 😄 slightly_smiling_face 🙂 cry 😢 star ⭐ bulb 💡 memo 📝 zzz 💤 robot_face 🤖",
    )
)
_NAMES = {sign.rstrip("\ufe0f"): name for name, sign in _EMOJI.items()}
_ALIASES = {"thumbsup": "+1", "thumbsdown": "-1"}


def emoji_of(name: str) -> str:
    """The emoji with Slack's `name`, without its skin tone; `:name:` if it is not among the common ones."""
    name = name.partition("::")[0]
    return _EMOJI.get(_ALIASES.get(name, name), f":{name}:")


def emoji_name(emoji: str) -> str:
    """Slack's name of `emoji`, which may be `:name:`; empty if it is not among the common ones."""
    if re.fullmatch(r":[^:\s]+:", emoji):
        return emoji.strip(":")
    return _NAMES.get(re.sub("[\U0001f3fb-\U0001f3ff\ufe0f]", "", emoji), "")


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
