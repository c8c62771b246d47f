"""Names that networks have for common emoji."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bot.platforms.base import SendFailed

_SKIN = re.compile(r"::.*|_(?:medium_)?(?:light|medium|dark)_skin_tone$")


class EmojiNames:
    """The names of one kind of network."""

    def __init__(self, names: str, aliases: Mapping[str, str] | None = None) -> None:
        """`names`: each name with its emoji, separated by spaces. `aliases`: further names with the one they mean."""
        self._emoji: dict[str, str] = dict(re.findall(r"(\S+) (\S+)", names))
        self._names = {sign.rstrip("\ufe0f"): name for name, sign in self._emoji.items()}
        self._aliases = aliases or {}

    def emoji(self, name: str) -> str:
        """The emoji with that name, without its skin tone; `:name:` if it is not among the common ones."""
        name = _SKIN.sub("", name)
        return self._emoji.get(self._aliases.get(name, name), f":{name}:")

    def name(self, emoji: str, network: str) -> str:
        """The name of `emoji`, which may be `:name:`; empty for an empty text. Raises SendFailed if it is not among the
        common ones."""
        if re.fullmatch(r":[\w+-]+:", emoji, re.ASCII):
            return emoji.strip(":")
        name = self._names.get(re.sub("[\U0001f3fb-\U0001f3ff\ufe0f]", "", emoji), "")
        if emoji and not name:
            raise SendFailed(f"{network} has no name for this emoji", retryable=False)
        return name


COMMON = EmojiNames(
    "+1 👍 -1 👎 white_check_mark ✅ heavy_check_mark ✔️ ballot_box_with_check ☑️ x ❌ no_entry ⛔ no_entry_sign 🚫 "
    "octagonal_sign 🛑 ok_hand 👌 ok 🆗 heart ❤️ eyes 👀 hourglass ⌛ hourglass_flowing_sand ⏳ stopwatch ⏱️ tada 🎉 "
    "clap 👏 pray 🙏 raised_hands 🙌 wave 👋 rocket 🚀 fire 🔥 100 💯 thinking_face 🤔 question ❓ exclamation ❗ "
    "warning ⚠️ joy 😂 smile 😄 slightly_smiling_face 🙂 cry 😢 star ⭐ bulb 💡 memo 📝 zzz 💤 robot_face 🤖",
    {"thumbsup": "+1", "thumbsdown": "-1", "thinking": "thinking_face", "robot": "robot_face"},
)
"""Names of Slack and Mattermost."""
