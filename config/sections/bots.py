"""Settings of bots, functions and chats, of approvals and budgets, and of the operators' chat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from config.sections.basic import Parameters
from config.sections.irc import RoleHolder
from config.sections.models import ContextScope
from config.terms import (
    BotName,
    ChatKey,
    ChatPattern,
    Count,
    Language,
    ModuleName,
    Number,
    RoleName,
    Roles,
    Seconds,
    Section,
    Timezone,
    Tokens,
    Word,
    fault,
)

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


class OperatorsSettings(Section):
    """Those who run the bot."""

    chat: ChatKey | None = None
    """The chat that is told when an edit breaks settings or functions, and when all is well again, as
    `platform:account:chat`; it has to be in `chats.allow`. Without one it is told in the log alone."""


class ApprovalRule(Section):
    """Functions that run only after somebody of a role has said yes, to exactly what is to be done."""

    functions: tuple[Word, ...] = Field(default=(), max_length=1000)
    """The functions, by name."""
    tags: tuple[Word, ...] = Field(default=(), max_length=100)
    """Every function with one of these tags."""
    sensitive: bool = False
    """True: every function with parameters whose values stay out of logs."""
    chats: tuple[ChatPattern, ...] = Field(default=("*",), min_length=1, max_length=1000)
    """Where it holds, as `platform:account:chat`; `*` stands for any characters."""
    by: RoleName = "admin"
    """The least role that may say yes. Whoever asked may do it too, if they have the role."""
    by_other: bool = False
    """True: whoever asked may not; somebody else has to."""

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if not (self.functions or self.tags or self.sensitive):
            raise fault("names no function: it needs functions, tags or sensitive")
        return self


class ApprovalsSettings(Section):
    """What needs a person's yes."""

    required: tuple[ApprovalRule, ...] = Field(default=(), max_length=1000)
    """What needs one always. Of several rules for a function in a chat, the first one counts."""
    tainted: Literal["asker"] | RoleName = "asker"
    """Who is asked before an effect beyond the asker's own things, when its turn has read text from outside: whoever
    asked for it, or the least role that may say yes."""
    expires_seconds: Count = Field(default=600, ge=10, le=604_800)
    """How long such a question waits for its answer."""
    open_per_member: Count = Field(default=3, ge=1, le=1000)
    """So many such questions of one member wait in a chat; the next one is not asked, and the member is told so."""
    open_per_chat: Count = Field(default=10, ge=1, le=1000)
    """The same for all members of a chat together."""


_Share = Annotated[Count, Field(ge=0, le=1_000_000_000)]


class AllowanceSettings(Section):
    """What may be used in a day, which begins at midnight in the chat's time zone. What is left out has no limit."""

    requests: _Share | None = None
    """Requests to a language model; a message takes one or more."""
    tokens: _Share | None = None
    """Tokens of requests and answers together."""
    money: Number | None = Field(default=None, ge=0, le=1_000_000)
    """Money, in the currency of `prices`."""
    units: _Share | None = None
    """Units of the functions that cost something, by `functions`."""


class PriceSettings(Section):
    """What a model costs, for a million tokens."""

    prompt: Number = Field(default=0, ge=0, le=100_000)
    """For what it is sent."""
    completion: Number = Field(default=0, ge=0, le=100_000)
    """For what it answers."""


class BudgetsSettings(Section):
    """Budgets of a day. With none set, nothing is counted."""

    member: AllowanceSettings = AllowanceSettings()
    """For each member, in all chats together."""
    chat: AllowanceSettings = AllowanceSettings()
    """For each chat, all its members together."""
    answer_tokens: Tokens = 500
    """How long an answer is taken to be before it is known."""
    prices: Mapping[Word, PriceSettings] = Field(default_factory=dict)
    """What models cost, by their names in `models`. Others are free."""
    functions: Mapping[Word, Annotated[Count, Field(ge=1, le=1_000_000)]] = Field(default_factory=dict)
    """Units that one run of a function takes, by its name. Others are free."""
