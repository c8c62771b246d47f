"""Reason codes in words: what `/why` and `rollcall why` say, and the layers that settings come from."""

from __future__ import annotations

import re

from config.chat_settings import CHAT_LAYER, DEFAULT_LAYER
from config.settings import Settings
from config.texts import Phrases
from services.refs import ReasonCode

_IDS = re.compile(r"[0-9a-f]{8}(?:, [0-9a-f]{8})*")
_WHOLE_SECTIONS = ("approvals", "questions", "schedules")
"""Sections that decide something as a whole. What is called like another one is a function."""


def reason_text(texts: Phrases, reason: ReasonCode, detail: str) -> str:
    """Why a message ended as it did. `detail` is what the code speaks of: a function, an id, a settings key, a command
    that would change it, or `@key name`: a sentence of the texts and the function that it speaks of."""
    key, _, name = detail.removeprefix("@").partition(" ")
    if reason is ReasonCode.REFUSED and detail.startswith("@") and texts.has(key):
        return texts.say(key, name=name)
    key = f"reasons.{reason.value}"
    variant = f"{key}_by_{_kind(detail)}"
    return texts.say(variant if texts.has(variant) else key, detail=layer_text(texts, detail))


def _kind(detail: str) -> str:
    """What `detail` is: a setting, an id, a command to call first, or a name."""
    if _IDS.fullmatch(detail):
        return "id"
    if detail.startswith("/use "):
        return "hand"
    root = re.split(r"[.\[]", detail, maxsplit=1)[0]
    is_key = root in Settings.model_fields and (root != detail or root in _WHOLE_SECTIONS)
    return "setting" if is_key or detail in (CHAT_LAYER, DEFAULT_LAYER) else "name"


def layer_text(texts: Phrases, layer: str) -> str:
    """Where a setting comes from: a key of the settings as it stands, and the chat itself in words."""
    return texts.say(f"layers.{layer}") if layer in (CHAT_LAYER, DEFAULT_LAYER) else layer
