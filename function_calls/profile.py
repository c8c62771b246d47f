"""ChatProfile: effective settings of a chat, and texts of reason codes."""

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
    """Note of a script for the models of a chat."""

    name: str
    words: str
    is_instruction: bool
    """True: an instruction in the operator's own words. False: information."""
    bot: str
    """Name of the bot whose models get it."""
    script: str
    """Name of the script."""
    from_outside: bool = False
    """May contain outside text."""
    of_member: str = ""
    """Key of the member whose words may be in it, or empty."""


@dataclass(frozen=True, slots=True)
class ChatProfile:
    """Effective settings of a chat."""

    bot: str
    """Name of the bot profile that serves the chat."""
    bot_name: str
    """The bot's display name in the chat."""
    persona: str
    texts: Phrases
    """The bot's texts in the chat's language; `texts.language` is its code."""
    timezone: ZoneInfo
    functions_on: bool
    """False: no function calling by the model. Commands and chat still work."""
    functions: Mapping[str, ResolvedFunction]
    """Functions with settings that apply here; the others follow their spec."""
    layers: Mapping[str, str]
    """Source of each setting that is not a default, for `/why`."""
    active: frozenset[str] = frozenset()
    """Names of the functions and groups that the chat has activated. Some may no longer exist."""
    context_scope: ContextScope = "chat"
    """Which part of a group's messages a model is shown."""
    models: tuple[str, ...] | None = None
    """Names of the models that answer, in order; None: all."""
    thinking_models: tuple[str, ...] = ()
    """The same for messages that ask to think harder; empty if that changes nothing."""
    voice_answers: bool = False
    """Answers to voice messages are read aloud, too."""
    notes: tuple[ChatNote, ...] = ()
    """Notes of this bot's scripts for models in this chat, oldest first."""


_IDS = re.compile(r"[0-9a-f]{8}(?:, [0-9a-f]{8})*")
_WHOLE_SECTIONS = ("approvals", "questions", "schedules")
"""Sections that can decide as a whole. The name of another section means a function."""


def reason_text(texts: Phrases, reason: ReasonCode, detail: str) -> str:
    """Text of the reason why a message ended as it did. `detail`, the subject of the code, is a function, an id, a
    settings key, a command that would change it, or `@key name`: key of a text and the function that it mentions."""
    key, _, name = detail.removeprefix("@").partition(" ")
    if detail.startswith("@") and texts.has(key):
        return texts.say(key, name=name)
    key = f"reasons.{reason.value}"
    variant = f"{key}_by_{_kind(detail)}"
    return texts.say(variant if texts.has(variant) else key, detail=layer_text(texts, detail))


def _kind(detail: str) -> str:
    """Kind of `detail`: `setting`, `id`, `hand` for a command to call first, or `name`."""
    if _IDS.fullmatch(detail):
        return "id"
    if detail.startswith("/use "):
        return "hand"
    root = re.split(r"[.\[]", detail, maxsplit=1)[0]
    is_key = root in Settings.model_fields and (root != detail or root in _WHOLE_SECTIONS)
    return "setting" if is_key or detail in (CHAT_LAYER, DEFAULT_LAYER) else "name"


def layer_text(texts: Phrases, layer: str) -> str:
    """Source of a setting as text: a settings key unchanged, `chat` and `default` as words."""
    return texts.say(f"layers.{layer}") if layer in (CHAT_LAYER, DEFAULT_LAYER) else layer
