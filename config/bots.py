"""Settings of what chats see: the bots, what each function may do where, and what holds in which chat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from config.basic import Parameters
from config.irc import RoleHolder
from config.memory import ContextScope
from config.terms import BotName, ChatPattern, Language, ModuleName, RoleName, Roles, Seconds, Section, Timezone, Word

ChatSettingName = Literal["language", "timezone", "persona", "functions_on"]
"""What a chat may change for itself, where the settings allow it."""

Persona = Annotated[str, Field(max_length=8000)]
"""How the bot speaks, in words for the model."""


class FunctionSettings(Section):
    """What is set for one function, by its name. What is left out is as the function itself declares it."""

    enabled: bool | None = None
    """False: it is neither offered nor can it be called. Left out: as the layer below says, at last true."""
    roles: Roles | None = None
    """Who may call it: the least role (`admin`), or a list of roles."""
    timeout_seconds: Seconds | None = None
    """After this time a run is stopped."""
    require_at: bool | None = None
    """True: in a group it runs only when the bot is addressed; a slash command addresses it."""
    scope: Literal["group", "private", "both"] | None = None
    """Where it may be called."""
    approval: Literal["none", "asker"] | RoleName | None = None
    """Whose yes each run waits for: that of whoever asks, or of the least role. A rule of `approvals.required` goes
    before it."""


Plugins = Annotated[tuple[ModuleName, ...], Field(max_length=200)]
"""Modules of functions: a built-in one by its name, another by its dotted name."""
FunctionsSettings = Mapping[Word, FunctionSettings]
"""FunctionSettings by function name."""


class BotSettings(Section):
    """One bot: a name and a way to speak, with functions of its own."""

    name: Word = "Rollcall"
    """What the bot is called in its chats; a message that begins with it addresses the bot."""
    aliases: tuple[Word, ...] = Field(default=(), max_length=50)
    """Other words that address the bot."""
    persona: Persona = ""
    """How the bot speaks, in words for the model; commands are not affected."""
    language: Language | None = None
    """The language of its sentences. Left out: the `language` at the top."""
    timezone: Timezone | None = None
    """The IANA time zone its chats live in. Left out: the `timezone` at the top."""
    context_scope: ContextScope | None = None
    """What of a group a model is shown: all of the `chat`, the `thread` of replies, or the asking `member`'s own
    conversation. Left out: chat."""
    functions: FunctionsSettings = Field(default_factory=dict)
    """What is different for functions in the chats of this bot."""
    plugins: Plugins = ()
    """Modules of functions that this bot alone has, beside the `plugins` at the top."""
    parameters: Parameters = Field(default_factory=dict)
    """What the BASIC scripts of this bot find as variables, by their names."""


class ChatSettings(Section):
    """What is set for one chat, or for all chats that a pattern fits. What is left out comes from a layer below."""

    bot: BotName | None = None
    """The bot that serves the chat, by its key in `bots`. Left out: `default`."""
    language: Language | None = None
    """The language of the bot's sentences there."""
    timezone: Timezone | None = None
    """The IANA time zone the chat lives in."""
    persona: Persona | None = None
    """How the bot speaks there, in words for the model."""
    functions_on: bool | None = None
    """False: the model calls no functions there; commands and chat go on."""
    context_scope: ContextScope | None = None
    """What of the group a model is shown: the `chat`, the `thread`, or the asking `member`'s own conversation."""
    enabled: bool | None = None
    """False: the bot is silent there, though the chat is in `allow`."""
    functions: FunctionsSettings = Field(default_factory=dict)
    """What is different for functions there."""


class ChatsSettings(Section):
    """Which chats the bot serves, and what is special in some of them."""

    allow: tuple[ChatPattern, ...] = Field(default=(), max_length=10_000)
    """The chats that are served, as `platform:account:chat`; `*` stands for any characters. Empty: none."""
    changeable: tuple[ChatSettingName, ...] = ("language", "timezone", "persona", "functions_on")
    """Where what a chat has set for itself counts more than the settings."""
    settings: Mapping[ChatPattern, ChatSettings] = Field(default_factory=dict)
    """What is special, by the chat's key or a pattern. Where several fit, each setting comes from the one that is most
    precise: the key itself, then the pattern with the most letters that are not `*`, then the one that stands first."""


MembersSettings = Mapping[RoleHolder, RoleName]
"""Roles by `platform:account:member`."""
BotsSettings = Mapping[BotName, BotSettings]
"""The bots by their keys."""
