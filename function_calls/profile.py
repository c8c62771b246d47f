"""ChatProfile: the settings in force in one chat, and reason codes in words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple
from zoneinfo import ZoneInfo

from config.chat_settings import CHAT_LAYER, DEFAULT_LAYER, ResolvedFunction
from config.sections.models import ContextScope
from config.settings import Settings
from config.texts import Phrases
from services.refs import ReasonCode


class ChatNote(NamedTuple):
    """What a script wants models to know in a chat."""

    name: str
    words: str
    is_instruction: bool
    """True: how to behave, in the operator's own words. False: information."""
    bot: str
    """Whose models are told."""
    script: str
    """Which one wants it."""
    from_outside: bool = False
    """It may hold words from outside."""
    of_member: str = ""
    """The key of the member whose words may be in it; empty where none may be."""


@dataclass(frozen=True, slots=True)
class ChatProfile:
    """The settings of one chat."""

    bot: str
    """The profile that serves the chat."""
    bot_name: str
    """What the bot is called there."""
    persona: str
    texts: Phrases
    """The bot's sentences in the chat's language; `texts.language` names it."""
    timezone: ZoneInfo
    functions_on: bool
    """False: no function calling by the model; commands and chat go on."""
    functions: Mapping[str, ResolvedFunction]
    """Functions for which settings say something that holds here; for others their spec does."""
    layers: Mapping[str, str]
    """For each setting that is not a default: where its value comes from, for `/why`."""
    at_hand: frozenset[str] = frozenset()
    """The names of functions and groups that the chat has taken to hand. Some of them may be gone."""
    context_scope: ContextScope = "chat"
    """What of a group a model is shown."""
    notes: tuple[ChatNote, ...] = ()
    """What scripts of this bot want models to know here, the oldest first."""


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
