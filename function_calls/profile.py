"""ChatProfile: what holds in one chat now, resolved from defaults, YAML and the chat's own row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple
from zoneinfo import ZoneInfo

from config.chat_settings import ResolvedFunction
from config.memory import ContextScope
from config.texts import Phrases


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
