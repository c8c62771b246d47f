"""ChatProfile: what holds in one chat now, resolved from defaults, YAML and the chat's own row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from config.texts import Phrases
from services.refs import Role


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
    disabled: Mapping[str, str]
    """Functions that are off here, each with the settings key that says so."""
    roles: Mapping[str, frozenset[Role]]
    """Functions for which this chat names other roles than their spec does."""
    layers: Mapping[str, str]
    """For each setting that is not a default: where its value comes from, for `/why`."""
