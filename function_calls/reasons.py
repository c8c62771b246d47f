"""Reason codes in words: what `/why` and `rollcall why` say, and the layers that settings come from."""

from __future__ import annotations

from config.chat_settings import CHAT_LAYER, DEFAULT_LAYER
from config.texts import Phrases
from services.refs import ReasonCode


def reason_text(texts: Phrases, reason: ReasonCode, detail: str) -> str:
    """Why a message ended as it did. `detail` is what the code speaks of: a function, an id, or a settings key."""
    return texts.say(f"reasons.{reason.value}", detail=layer_text(texts, detail))


def layer_text(texts: Phrases, layer: str) -> str:
    """Where a setting comes from: a key of the settings as it stands, and the chat itself in words."""
    return texts.say(f"layers.{layer}") if layer in (CHAT_LAYER, DEFAULT_LAYER) else layer
