"""Effective settings of a chat: defaults < YAML < the chat's own settings, each with the layer it comes from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

from config.sections.bots import (
    LONGEST_GREETING,
    BotSettings,
    ChatSettingName,
    ChatSettings,
    FunctionSettings,
    FunctionsSettings,
)
from config.sections.mcp import PLATFORM
from config.sections.models import ContextScope
from config.settings import DEFAULT_BOT, Settings
from config.terms import CHIME_IN, QUIET_HOURS, RoleName, Section, is_language, is_timezone

THREAD = ","
"""Separates a thread or topic from its chat in a key. No network permits a comma in the ids of its chats."""
DEFAULT_LAYER = "default"
CHAT_LAYER = "chat"
LONGEST_PERSONA = 2000
"""Maximum length, in characters, of a persona set by a chat."""
_FLAGS = {"on": True, "true": True, "yes": True, "1": True, "off": False, "false": False, "no": False, "0": False}

Value = TypeVar("Value")
_Entries = Sequence[tuple[str, ChatSettings]]
"""Entries of `chats.settings` that match a chat, each with its key."""
IgnoredReason = Literal["unknown", "not_changeable", "bad_value"]
"""Reason why a chat's own setting is ignored."""


@dataclass(frozen=True, slots=True)
class ResolvedFunction:
    """Settings of one function in one chat. None: as declared by the function."""

    enabled: bool
    roles: frozenset[RoleName] | None
    timeout_seconds: float | None
    require_at: bool | None
    scope: Literal["group", "private", "both"] | None
    layers: Mapping[str, str]
    """Layer of each field's value: `default`, or a key of the settings."""
    approval: Literal["none", "asker"] | RoleName | None = None


@dataclass(frozen=True, slots=True)
class ResolvedChat:
    """Effective settings of one chat, as returned by `chat_settings`."""

    key: str
    """`platform:account:native`."""
    enabled: bool
    """False: the bot ignores the chat."""
    bot: str
    """Key of the bot that serves the chat."""
    bot_name: str
    aliases: tuple[str, ...]
    """Additional words that address the bot."""
    language: str
    timezone: str
    """An IANA name known to this machine."""
    persona: str
    functions_on: bool
    """False: the model calls no functions in the chat."""
    context_scope: ContextScope
    """Which of a group's messages a model is shown."""
    memory_digest: bool
    """True: each night, the model makes notes of the day's messages."""
    chime_in: str
    quiet_hours: str
    welcome: str
    """Text for members who join; `off` for none."""
    goodbye: str
    triggers: Mapping[str, str]
    """Texts of the settings file, by the word to which they reply."""
    voice_answers: bool
    """True: answers to voice messages are read aloud, too."""
    models: tuple[str, ...]
    """Names of the models that answer in the chat, in order; may include unusable ones."""
    selectable_models: tuple[str, ...]
    """Names of the models that the chat's admins may choose."""
    thinking_models: tuple[str, ...]
    """The same as `models` for messages that ask to think harder; empty if that changes nothing."""
    functions: Mapping[str, ResolvedFunction]
    """Functions with settings that apply to the chat; all others are enabled."""
    layers: Mapping[str, str]
    """Layer of each setting's value: `default`, a key of the settings, or `chat`."""
    ignored: Mapping[str, IgnoredReason]
    """The chat's own settings that are ignored, with the reason."""


def is_allowed(settings: Settings, chat_key: str) -> str | None:
    """The first pattern of `chats.allow` that includes the chat; None if the chat is not allowed."""
    return next((pattern for pattern in settings.chats.allow if matches(pattern, chat_key)), None)


def matches(pattern: str, chat_key: str) -> bool:
    """Whether `pattern`, where `*` matches any characters, matches the whole of `chat_key`, or of the chat of which it
    is a thread: `telegram:main:-100,45` is one of `telegram:main:-100`. In linear time."""
    return _matches(pattern, chat_key) or (THREAD in chat_key and _matches(pattern, chat_key.rpartition(THREAD)[0]))


def _matches(pattern: str, chat_key: str) -> bool:
    first, *others = pattern.split("*")
    if not others:
        return pattern == chat_key
    *between, last = others
    if not chat_key.startswith(first) or not chat_key.endswith(last):
        return False
    position, end = len(first), len(chat_key) - len(last)
    for piece in between:
        found = chat_key.find(piece, position, end)
        if found < 0:
            return False
        position = found + len(piece)
    return position <= end


def why_ignored(settings: Settings, name: str, text: str, selectable: Sequence[str] = ()) -> IgnoredReason | None:
    """Reason why a chat with the `selectable` models cannot set `name` to `text`; None if it can. Check this before
    storing."""
    if name not in get_args(ChatSettingName):
        return "unknown"
    if name not in settings.chats.changeable or (name == "model" and not selectable):
        return "not_changeable"
    return None if _is_good(name, text, selectable) else "bad_value"


def _is_good(name: str, text: str, selectable: Sequence[str]) -> bool:
    match name:
        case "language":
            return is_language(text)
        case "timezone":
            return is_timezone(text)
        case "persona":
            return len(text) <= LONGEST_PERSONA
        case "chime_in" | "quiet_hours":
            return re.fullmatch(CHIME_IN if name == "chime_in" else QUIET_HOURS, text) is not None
        case "welcome" | "goodbye":
            return 0 < len(text) <= LONGEST_GREETING
        case "model":
            return text in selectable
        case _:
            return text.lower() in _FLAGS


def chat_settings(settings: Settings, chat_key: str, stored: Mapping[str, str]) -> ResolvedChat:
    """Effective settings of the chat `chat_key`, with the layer of each value. Invalid stored settings are ignored and
    listed; raises nothing for them. `stored`: its own settings by name, as text (`on` or `off` for `functions_on`). The
    time grows with the settings: call it once per turn."""
    entries = _entries(settings, chat_key)
    layers: dict[str, str] = {}
    bots = _of_entries("bot", entries)
    bot_key = _pick(layers, "bot", DEFAULT_BOT, [*bots, *_bots_of_programs(settings, chat_key)])
    bot = settings.bots[bot_key]
    models = _models(layers, settings, bot_key, entries)
    selectable = tuple(name for name in settings.chats.selectable_models if name in models)
    ignored = {name: why for name, text in stored.items() if (why := why_ignored(settings, name, text, selectable))}
    own = {name: text for name, text in stored.items() if name not in ignored}
    if "model" in own:
        layers["model"] = CHAT_LAYER
        models = tuple(dict.fromkeys((own["model"], *models)))

    def text(name: str, default: str) -> str:
        """A setting of chats and bots that is text, with a default of the whole file."""
        top = default if name in settings.model_fields_set else None
        of_bot: tuple[str, str | None] = (f"bots.{bot_key}.{name}", getattr(bot, name) or None)
        return _pick(layers, name, default, [*_of_chat(name, own, entries), of_bot, (name, top)])

    return ResolvedChat(
        key=chat_key,
        enabled=_pick(layers, "enabled", True, _of_entries("enabled", entries)),
        bot=bot_key,
        bot_name=bot.name,
        aliases=bot.aliases,
        language=text("language", settings.language),
        timezone=text("timezone", settings.timezone),
        persona=text("persona", ""),
        functions_on=_functions_on(layers, settings, own, entries, chat_key),
        context_scope=_context_scope(layers, bot_key, bot, entries),
        memory_digest=_pick(layers, "memory_digest", False, _flag("memory_digest", own, entries)),
        chime_in=_pick(layers, "chime_in", "off", _of_chat("chime_in", own, entries)),
        quiet_hours=_pick(layers, "quiet_hours", "off", _of_chat("quiet_hours", own, entries)),
        welcome=_pick(layers, "welcome", "off", _of_chat("welcome", own, entries)),
        goodbye=_pick(layers, "goodbye", "off", _of_chat("goodbye", own, entries)),
        triggers={word: text for _, entry in reversed(entries) for word, text in entry.triggers.items()},
        voice_answers=_pick(layers, "voice_answers", False, _flag("voice_answers", own, entries)),
        models=models,
        selectable_models=selectable,
        thinking_models=_thinking_models(settings, models),
        functions=_functions(settings, bot_key, entries),
        layers=layers,
        ignored=ignored,
    )


def _of_entries(name: str, entries: Sequence[tuple[str, Section]]) -> list[tuple[str, Any]]:
    """Values of a setting by layer, without the chat's own."""
    return [(f"{at}.{name}", getattr(entry, name)) for at, entry in entries]


def _of_chat(name: str, own: Mapping[str, str], entries: _Entries) -> list[tuple[str, str | None]]:
    """Values of a setting that is text, by layer: the chat's own, then those of `chats.settings`."""
    return [(CHAT_LAYER, own.get(name)), *_of_entries(name, entries)]


def _bots_of_programs(settings: Settings, chat_key: str) -> list[tuple[str, str | None]]:
    """The bot of each MCP client that has its own chat `chat_key`, with its settings key; empty for other chats."""
    if not chat_key.startswith(f"{PLATFORM}:"):
        return []
    return [
        (f"mcp.serve.clients[{index}].bot", client.bot)
        for index, client in enumerate(settings.mcp.serve.clients)
        if client.chat_key == chat_key
    ]


def _context_scope(layers: dict[str, str], bot_key: str, bot: BotSettings, entries: _Entries) -> ContextScope:
    of_bot = (f"bots.{bot_key}.context_scope", bot.context_scope)
    return _pick(layers, "context_scope", "chat", [*_of_entries("context_scope", entries), of_bot])


def _flag(name: str, own: Mapping[str, str], entries: _Entries) -> list[tuple[str, bool | None]]:
    """Values of a setting that is on or off, by layer."""
    value = own.get(name)
    of_chat = (CHAT_LAYER, None if value is None else _FLAGS[value.lower()])
    return [of_chat, *_of_entries(name, entries)]


def _models(layers: dict[str, str], settings: Settings, bot_key: str, entries: _Entries) -> tuple[str, ...]:
    of_bot = (f"bots.{bot_key}.models", settings.bots[bot_key].models)
    names = tuple(one.name for one in settings.answering_models)
    return _pick(layers, "model", names, [*_of_entries("models", entries), of_bot])


def _thinking_models(settings: Settings, models: tuple[str, ...]) -> tuple[str, ...]:
    usable = {one.name: one for one in settings.models if one.usable and one.name in models}
    thinking = settings.router.thinking.model
    if thinking in usable:
        return tuple(dict.fromkeys((thinking, *models)))
    return models if any(one.thinking_effort for one in usable.values()) else ()


def _functions_on(
    layers: dict[str, str], settings: Settings, own: Mapping[str, str], entries: _Entries, chat_key: str
) -> bool:
    if not settings.router.enabled:
        layers["functions_on"] = "router.enabled"
        return False
    by_share = ("rollout.percent", None if settings.rollout.includes(chat_key) else False)
    return _pick(layers, "functions_on", True, [*_flag("functions_on", own, entries), by_share])


def _functions(settings: Settings, bot_key: str, entries: _Entries) -> dict[str, ResolvedFunction]:
    """Settings by name of all functions that any layer mentions: chat before bot before all chats."""
    layers: list[tuple[str, FunctionsSettings]] = [
        *((f"{at}.functions", entry.functions) for at, entry in entries),
        (f"bots.{bot_key}.functions", settings.bots[bot_key].functions),
        ("functions", settings.functions),
    ]
    names = dict.fromkeys(name for _, functions in layers for name in functions)
    return {
        name: _function([(f"{at}.{name}", functions[name]) for at, functions in layers if name in functions])
        for name in names
    }


def _function(entries: Sequence[tuple[str, FunctionSettings]]) -> ResolvedFunction:
    layers: dict[str, str] = {}

    def of(name: str) -> Any:
        return _pick(layers, name, None, _of_entries(name, entries))

    return ResolvedFunction(
        enabled=_pick(layers, "enabled", True, _of_entries("enabled", entries)),
        roles=of("roles"),
        timeout_seconds=of("timeout_seconds"),
        require_at=of("require_at"),
        approval=of("approval"),
        scope=of("scope"),
        layers=layers,
    )


def _entries(settings: Settings, chat_key: str) -> _Entries:
    """Entries of `chats.settings` that match the chat, most specific first: the exact key, then patterns with more
    characters other than `*`."""
    fitting = [pattern for pattern in settings.chats.settings if matches(pattern, chat_key)]
    fitting.sort(key=lambda pattern: (pattern != chat_key, pattern.count("*") - len(pattern)))
    return [(f"chats.settings.{pattern}", settings.chats.settings[pattern]) for pattern in fitting]


def _pick(layers: dict[str, str], name: str, default: Value, candidates: Sequence[tuple[str, Value | None]]) -> Value:
    """The first candidate that is not None, else `default`; records its layer in `layers`."""
    for layer, value in candidates:
        if value is not None:
            layers[name] = layer
            return value
    layers[name] = DEFAULT_LAYER
    return default
