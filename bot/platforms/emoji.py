"""Names of common emoji, as Slack and Mattermost have them."""

from __future__ import annotations

import re

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
_ALIASES = {"thumbsup": "+1", "thumbsdown": "-1", "thinking": "thinking_face", "robot": "robot_face"}
_SKIN = re.compile(r"::.*|_(?:medium_)?(?:light|medium|dark)_skin_tone$")


def emoji_of(name: str) -> str:
    """The emoji with that name, without its skin tone; `:name:` if it is not among the common ones."""
    name = _SKIN.sub("", name)
    return _EMOJI.get(_ALIASES.get(name, name), f":{name}:")


def emoji_name(emoji: str) -> str:
    """The name of `emoji`, which may be `:name:`; empty if it is not among the common ones."""
    if re.fullmatch(r":[\w+-]+:", emoji):
        return emoji.strip(":")
    return _NAMES.get(re.sub("[\U0001f3fb-\U0001f3ff\ufe0f]", "", emoji), "")
