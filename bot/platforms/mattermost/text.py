"""Texts of Mattermost: Markdown that notifies nobody, plain text in Markdown, and names of emoji."""

from __future__ import annotations

import re

_INVISIBLE = "\u200b"
"""Inserted where the server or a client would read a mention or formatting; the server reads the text behind
backslashes and character references."""
_URL = re.compile(r"(https?://[^\s<>]*[^\s<>.,;:!?()\[\]{}'\"*_~`])")
_CODE = re.compile(r"(```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]+`)", re.DOTALL)
_MENTION = r"(?<=(?<![A-Za-z0-9])@)(?=\w)"
_IN_TEXT = re.compile(rf"{_MENTION}|(?<=@)(?=&)|(?<=&)(?=#0*64;|#x0*40;|commat;)", re.IGNORECASE)
_IN_CODE = re.compile(r"(?<=@)(?=all|channel|here)", re.IGNORECASE)
_IN_PLAIN = re.compile(
    rf"{_MENTION}|(?<=&)(?=#?\w+;)|(?<=:)(?=[\w+-]+:)|(?<=<)(?=[A-Za-z/!?])|^(?=[ \t]*(?:[#>+=-]|\d+[.)])|[ ]{{4}}|\t)",
    re.MULTILINE,
)
_MARK = re.compile(r"([\\`*_~|\[\]])")
_IMAGE = re.compile(r"!(?=\[)")
_SKIN = re.compile(r"_(?:medium_)?(?:light|medium|dark)_skin_tone$")
_EMOJI: dict[str, str] = dict(
    re.findall(
        r"(\S+) (\S+)",
        "+1 👍 -1 👎 white_check_mark ✅ heavy_check_mark ✔️ ballot_box_with_check ☑️ x ❌ no_entry ⛔ no_entry_sign 🚫 "
        "octagonal_sign 🛑 ok_hand 👌 ok 🆗 heart ❤️ eyes 👀 hourglass ⌛ hourglass_flowing_sand ⏳ stopwatch ⏱️ tada 🎉 "
        "clap 👏 pray 🙏 raised_hands 🙌 wave 👋 rocket 🚀 fire 🔥 100 💯 thinking 🤔 question ❓ exclamation ❗ "
        "warning ⚠️ joy 😂 smile 😄 slightly_smiling_face 🙂 cry 😢 star ⭐ bulb 💡 memo 📝 zzz 💤 robot 🤖",
    )
)
_NAMES = {sign.rstrip("\ufe0f"): name for name, sign in _EMOJI.items()}
_ALIASES = {"thumbsup": "+1", "thumbsdown": "-1", "thinking_face": "thinking", "robot_face": "robot"}


def emoji_of(name: str) -> str:
    """The emoji with Mattermost's `name`, without its skin tone; `:name:` if it is not among the common ones."""
    name = _SKIN.sub("", name)
    return _EMOJI.get(_ALIASES.get(name, name), f":{name}:")


def emoji_name(emoji: str) -> str:
    """Mattermost's name of `emoji`, which may be `:name:`; empty if it is not among the common ones."""
    if re.fullmatch(r":[\w+-]+:", emoji, re.ASCII):
        return emoji.strip(":")
    return _NAMES.get(re.sub("[\U0001f3fb-\U0001f3ff\ufe0f]", "", emoji), "")


def message_of(text: str, *, markdown: bool) -> str:
    """`text`, Markdown or to be shown exactly, for a post. It mentions nobody, and shows no images: clients would
    fetch them."""
    parts = _CODE.split(text) if markdown else [text]
    return "".join(
        _IN_CODE.sub(_INVISIBLE, part) if number % 2 else _outside(part, markdown) for number, part in enumerate(parts)
    )


def _outside(text: str, markdown: bool) -> str:
    shown = []
    for number, part in enumerate(_URL.split(_IMAGE.sub("", text) if markdown else text)):
        if number % 2:
            part = re.sub(r"(?<![A-Za-z0-9])@", "%40", part)
        elif markdown:
            part = _IN_TEXT.sub(_INVISIBLE, part)
        else:
            part = _MARK.sub(r"\\\1", _IN_PLAIN.sub(_INVISIBLE, part))
        shown.append(part)
    return "".join(shown)
