"""Settings of bots, functions and chats, of approvals and budgets, and of the operators' chat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self, get_args

from pydantic import Field, model_validator

from config.sections.basic import Parameters
from config.sections.irc import RoleHolder
from config.sections.models import ContextScope, ModelNames
from config.terms import (
    BotName,
    ChatKey,
    ChatPattern,
    ChimeIn,
    Count,
    Language,
    ModuleName,
    Number,
    QuietHours,
    RoleName,
    Roles,
    Seconds,
    Section,
    Timezone,
    Tokens,
    Word,
    settings_error,
)

ChatSettingName = Literal[
    "language",
    "timezone",
    "persona",
    "functions_on",
    "memory_digest",
    "chime_in",
    "quiet_hours",
    "voice_answers",
    "model",
    "welcome",
    "goodbye",
]
"""A setting that chats may change, if the operator permits it."""

LONGEST_GREETING = 500
"""Maximum length, in characters, of a text for members who come or go."""
LONGEST_TRIGGER = 1000
"""Maximum length, in characters, of the text of a trigger."""
Greeting = Annotated[str, Field(min_length=1, max_length=LONGEST_GREETING)]
"""A text with the placeholders {new_member}, {inviter} and {chat}; `off` for none."""
Triggers = Annotated[
    Mapping[Word, Annotated[str, Field(min_length=1, max_length=LONGEST_TRIGGER)]], Field(max_length=200)
]
"""Texts by the word or phrase to which they reply."""

Persona = Annotated[str, Field(max_length=8000)]
"""The bot's style, described for the model."""


class FunctionSettings(Section):
    """Settings of one function. Missing keys are as declared by the function."""

    enabled: bool | None = None
    """False: the function is neither offered nor callable. Missing: as in the layer below, by default true."""
    roles: Roles | None = None
    """Permitted roles: the lowest one (`admin`), or a list."""
    timeout_seconds: Seconds | None = None
    """Timeout of a run."""
    require_at: bool | None = None
    """True: in groups it runs only if the bot is addressed, as by a slash command."""
    scope: Literal["group", "private", "both"] | None = None
    """Kinds of chats where it may be called."""
    approval: Literal["none", "asker"] | RoleName | None = None
    """Required approval of each run: of the asker, or of a member with at least this role. Rules in
    `approvals.required` have precedence."""


Plugins = Annotated[tuple[ModuleName, ...], Field(max_length=200)]
"""Modules of functions: built-in ones by name, others by dotted name."""
FunctionsSettings = Mapping[Word, FunctionSettings]
"""Settings of functions by name."""


class BotSettings(Section):
    """One bot with its name, style and functions."""

    name: Word = "Rollcall"
    """Name of the bot, by which messages address it: `@Rollcall …`, `hey Rollcall …`, `…, Rollcall?`."""
    aliases: tuple[Word, ...] = Field(default=(), max_length=50)
    """Additional words that address the bot."""
    persona: Persona = ""
    """The bot's style, described for the model; commands are not affected."""
    language: Language | None = None
    """Language of its texts. Missing: the top-level `language`."""
    timezone: Timezone | None = None
    """IANA time zone of its chats. Missing: the top-level `timezone`."""
    context_scope: ContextScope | None = None
    """Messages of a group that a model is shown: the whole `chat`, the `thread` of replies, or the asking `member`'s
    conversation with the bot. Missing: chat."""
    models: ModelNames | None = None
    """Models that answer in the bot's chats, by name in `models`, in order; no others do. Missing: all."""
    functions: FunctionsSettings = Field(default_factory=dict)
    """Settings of functions in this bot's chats."""
    plugins: Plugins = ()
    """Modules of functions for this bot only, in addition to the top-level `plugins`."""
    parameters: Parameters = Field(default_factory=dict)
    """Variables of this bot's BASIC scripts, by name."""


class ChatSettings(Section):
    """Settings of one chat, or of all chats that match a pattern. Missing keys come from a layer below."""

    bot: BotName | None = None
    """Key in `bots` of the bot that serves the chat. Missing: `default`."""
    language: Language | None = None
    """Language of the bot's texts in the chat."""
    timezone: Timezone | None = None
    """IANA time zone of the chat."""
    persona: Persona | None = None
    """The bot's style in the chat, described for the model."""
    functions_on: bool | None = None
    """False: the model calls no functions in the chat; commands and chat still work."""
    context_scope: ContextScope | None = None
    """Messages of the group shown to a model: the `chat`, the `thread`, or the asking `member`'s conversation."""
    memory_digest: bool | None = None
    """True: the model reads the day's messages each night and makes notes on members and the chat."""
    chime_in: ChimeIn | None = None
    """When the bot answers messages of a group that are not addressed to it; it needs a language model. `chance 2%`:
    this share of the eligible messages in the long run. `judge 6`: if the model finds that it should, asked at most 6
    times per hour. Missing: off."""
    quiet_hours: QuietHours | None = None
    """Daily period, as `22:00-07:00` in the chat's time zone, in which the bot speaks only if addressed, and sends
    reminders; the output of schedules is sent together afterwards. Missing: off."""
    voice_answers: bool | None = None
    """True: answers to voice messages are also sent as voice messages, by the models of `media.speaking`."""
    models: ModelNames | None = None
    """Models that answer in the chat, by name in `models`, in order; no others do."""
    welcome: Greeting | None = None
    """Text for members who join, a minute later, with the placeholders `{new_member}`, `{inviter}` and `{chat}`.
    Missing: off."""
    goodbye: Greeting | None = None
    """The same for members who leave; `{new_member}` is their name."""
    triggers: Triggers = Field(default_factory=dict)
    """Texts with which the bot replies to messages that are not addressed to it, by the word or phrase in them."""
    enabled: bool | None = None
    """False: the bot is silent in the chat, even if it is in `allow`."""
    functions: FunctionsSettings = Field(default_factory=dict)
    """Settings of functions in the chat."""


class ChatsSettings(Section):
    """Chats that the bot serves, and their settings."""

    allow: tuple[ChatPattern, ...] = Field(default=(), max_length=10_000)
    """Chats that are served, as `platform:account:chat`; `*` matches any characters. Empty: none."""
    changeable: tuple[ChatSettingName, ...] = get_args(ChatSettingName)
    """Settings that chats may override."""
    selectable_models: ModelNames = ()
    """Models that a chat may choose as its first one with `/settings model`, if they are among its models."""
    settings: Mapping[ChatPattern, ChatSettings] = Field(default_factory=dict)
    """Settings by the chat's key or a pattern. If several match, each setting comes from the most specific: the exact
    key, then the pattern with the most characters other than `*`, then the first one."""


MembersSettings = Mapping[RoleHolder, RoleName]
"""Roles by `platform:account:member`."""
BotsSettings = Mapping[BotName, BotSettings]
"""Bots by key."""


class OperatorsSettings(Section):
    """The operators of the bot."""

    chat: ChatKey | None = None
    """Chat that is notified when a change breaks settings or functions, and when they work again, as
    `platform:account:chat`; it must be in `chats.allow`. Missing: only the log."""


class ApprovalRule(Section):
    """Functions that run only after a member with a certain role has approved exactly this run."""

    functions: tuple[Word, ...] = Field(default=(), max_length=1000)
    """Functions by name."""
    tags: tuple[Word, ...] = Field(default=(), max_length=100)
    """All functions with one of these tags."""
    sensitive: bool = False
    """True: all functions with parameters that are redacted in logs."""
    chats: tuple[ChatPattern, ...] = Field(default=("*",), min_length=1, max_length=1000)
    """Chats where the rule applies, as `platform:account:chat`; `*` matches any characters."""
    by: RoleName = "admin"
    """The lowest role that may approve. Askers with that role may approve their own requests."""
    by_other: bool = False
    """True: a member other than the asker has to approve."""

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if not (self.functions or self.tags or self.sensitive):
            raise settings_error("names no function: it needs functions, tags or sensitive")
        return self


class ApprovalsSettings(Section):
    """Approvals of function runs."""

    required: tuple[ApprovalRule, ...] = Field(default=(), max_length=1000)
    """Rules for required approvals. The first matching rule for a function in a chat applies."""
    unvouched: Literal["asker"] | RoleName = "asker"
    """Approver of an effect beyond the asker's own things in this chat if the asker's words do not name the function
    and the values that a model chose: the asker, or the least role of a member."""
    expires_seconds: Count = Field(default=600, ge=10, le=604_800)
    """Time after which an approval question expires."""
    open_per_member: Count = Field(default=3, ge=1, le=1000)
    """Maximum number of open approval questions of one member in a chat; the member is notified of further ones."""
    open_per_chat: Count = Field(default=10, ge=1, le=1000)
    """The same limit for all members of a chat together."""


_Share = Annotated[Count, Field(ge=0, le=1_000_000_000)]


class AllowanceSettings(Section):
    """Limits per day, which begins at midnight in the chat's time zone. Missing keys: no limit."""

    requests: _Share | None = None
    """Requests to a language model; a message needs one or more."""
    tokens: _Share | None = None
    """Tokens of requests and answers."""
    money: Number | None = Field(default=None, ge=0, le=1_000_000)
    """Money, in the currency of `prices`."""
    units: _Share | None = None
    """Units of the functions with a cost in `functions`."""


class PriceSettings(Section):
    """Price of a model per million tokens."""

    prompt: Number = Field(default=0, ge=0, le=100_000)
    """For input tokens."""
    completion: Number = Field(default=0, ge=0, le=100_000)
    """For output tokens."""


class BudgetsSettings(Section):
    """Daily budgets. The use of models is counted also without any."""

    member: AllowanceSettings = AllowanceSettings()
    """Per member, in all chats together."""
    chat: AllowanceSettings = AllowanceSettings()
    """Per chat, all members together."""
    answer_tokens: Tokens = 500
    """Estimated length of an answer before it is known."""
    prices: Mapping[Word, PriceSettings] = Field(default_factory=dict)
    """Prices of models, by name in `models`. Others are free."""
    functions: Mapping[Word, Annotated[Count, Field(ge=1, le=1_000_000)]] = Field(default_factory=dict)
    """Units per run of a function, by name. Others are free."""
