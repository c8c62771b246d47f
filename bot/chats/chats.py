"""Served chats and their current settings, resolved from the settings file and the chat's own row."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import orjson

from config.chat_settings import DEFAULT_LAYER, IgnoredReason, ResolvedChat, chat_settings, is_allowed, why_ignored
from config.sections.timers import SchedulesSettings
from config.settings import Settings
from config.texts import Texts
from function_calls.context import MessageContext
from function_calls.ports import ForwardRule
from function_calls.profile import ChatNote, ChatProfile
from services.patterns import word_finder
from services.recent import Recent
from services.refs import ChatRef, Role
from services.store.chats import chat_notes
from services.store.chats import chat_settings as activations
from services.store.chats import chat_settings as rows
from services.store.port import Store

_MOST_CHATS = 10_000
MUTED_UNTIL = "muted_until"
"""Name of the stored time until which a chat has muted the bot, in ISO format; no setting of the chat."""
TRIGGER, FORWARD = "trigger ", "forward "
"""Beginnings of the names of stored rules, before a word or a code; no settings of the chat."""


@dataclass(frozen=True, slots=True)
class ServedChat:
    """Current settings of one chat."""

    allowed_by: str | None
    """The matching pattern of `chats.allow`; None: the chat is not served."""
    settings: ResolvedChat
    profile: ChatProfile
    triggers: Mapping[str, str]
    """Texts by the word to which they reply."""
    find_trigger: Callable[[str], str]
    """Returns the first word of a trigger in a text, the longest at its place; empty if there is none."""
    forwards: Sequence[tuple[ForwardRule, Callable[[str], str]]]
    """Rules that forward messages of the chat, each with a function that finds one of its words."""


class Chats:
    """Settings of chats, in memory. Changes by chats are loaded at the start and kept up to date."""

    def __init__(self, settings: Settings, texts: Texts) -> None:
        self._settings = settings
        self._texts = texts
        self._stored: dict[str, dict[str, str]] = {}
        self._active: dict[str, tuple[str, ...]] = {}
        self._notes: dict[str, tuple[ChatNote, ...]] = {}
        self._resolved = Recent[ChatRef, ServedChat](_MOST_CHATS)
        self._latest = Recent[ChatRef, int](_MOST_CHATS)
        self._supported = frozenset(texts.languages)
        self._languages = Recent[ChatRef, str](_MOST_CHATS)
        """Languages of the members' clients, by private chat."""

    @property
    def bots(self) -> Sequence[str]:
        """The keys of the bots that chats may belong to."""
        return tuple(self._settings.bots)

    async def load(self, store: Store) -> None:
        """Load the settings, active functions and notes of all chats, which replace those in memory. Raises
        StoreError."""
        stored: dict[str, dict[str, str]] = {}
        active: dict[str, list[str]] = {}
        for row in await store.read(rows.EVERYTHING):
            stored.setdefault(row["chat"], {})[row["name"]] = row["value"]
        for row in await store.read(activations.ALL_ACTIVATIONS):
            active.setdefault(row["chat"], []).append(row["name"])
        notes: dict[str, list[ChatNote]] = {}
        for row in await store.read(chat_notes.EVERYTHING):
            note = ChatNote(
                row["name"],
                row["words"],
                bool(row["is_instruction"]),
                row["bot"],
                row["script"],
                from_outside=bool(row["from_outside"]),
                of_member=row["set_by"] if row["from_member"] else "",
            )
            notes.setdefault(row["chat"], []).append(note)
        self._stored = stored
        self._notes = {chat: tuple(notes_) for chat, notes_ in notes.items()}
        self._active = {chat: tuple(names) for chat, names in active.items()}
        self._resolved.clear()

    def use(self, settings: Settings) -> None:
        """Apply new settings; the cached settings of chats are dropped."""
        self._settings = settings
        self._resolved.clear()

    @property
    def schedules(self) -> SchedulesSettings:
        """The schedules of the settings."""
        return self._settings.schedules

    def of(self, chat: ChatRef) -> ServedChat:
        """The current settings of `chat`, resolved from the settings file and its own settings; cached."""
        known = self._resolved.get(chat)
        if known is None:
            known = self._resolved[chat] = self._resolve(chat)
        return known

    def profile(self, chat: ChatRef) -> ChatProfile:
        """The settings of `chat` that functions see."""
        return self.of(chat).profile

    @property
    def has_digests(self) -> bool:
        """Whether the setting `memory_digest` may be on in a chat."""
        of_file = (entry.memory_digest for entry in self._settings.chats.settings.values())
        return any(of_file) or any("memory_digest" in own for own in self._stored.values())

    @property
    def changeable(self) -> Collection[str]:
        """The settings that chats may change for themselves."""
        return self._settings.chats.changeable

    def why_ignored(self, chat: ChatRef, name: str, value: str) -> IgnoredReason | None:
        """Why `chat` cannot set `name` to `value` for itself; None if it can."""
        return why_ignored(self._settings, name, value, self.of(chat).settings.selectable_models)

    def own(self, chat: ChatRef) -> Mapping[str, str]:
        """The settings that `chat` has set for itself, by name, valid or not; empty if it has set none."""
        return self._stored.get(chat.key, {})

    def set_own(self, chat: ChatRef, name: str, value: str | None) -> None:
        """Update the memory after `chat` has stored a setting; None: removed it."""
        own = {key: text for key, text in self.own(chat).items() if key != name}
        self._stored[chat.key] = own if value is None else {**own, name: value}
        self._resolved.pop(chat, None)

    def muted_until(self, chat: ChatRef, now: datetime) -> datetime | None:
        """The time until which `chat` has muted the bot; None if it has not, or if that time is over."""
        stored = self.own(chat).get(MUTED_UNTIL)
        until = None if stored is None else datetime.fromisoformat(stored)
        return until if until is not None and until > now else None

    def quiet_until(self, chat: ChatRef, now: datetime) -> datetime | None:
        """The time, in UTC, until which the bot does not speak unasked in `chat`: the end of its quiet hours or of a
        mute, whichever is later; None if it may speak now."""
        settings = self.of(chat).settings
        hours = end_of_period(settings.quiet_hours, ZoneInfo(settings.timezone), now)
        return max((at for at in (hours, self.muted_until(chat, now)) if at is not None), default=None)

    def active_functions(self, chat: ChatRef) -> Sequence[str]:
        """The names of functions and groups that are active in `chat`, oldest first."""
        return self._active.get(chat.key, ())

    def set_active_functions(self, chat: ChatRef, names: Sequence[str]) -> None:
        """Update the memory after `chat` has stored its active names, which replace the previous ones."""
        self._active[chat.key] = tuple(names)
        self._resolved.pop(chat, None)

    def notes(self, chat: ChatRef) -> Sequence[ChatNote]:
        """Notes for models in `chat` by scripts of all bots, oldest first."""
        return self._notes.get(chat.key, ())

    @property
    def all_notes(self) -> Mapping[str, Sequence[ChatNote]]:
        """Notes of all chats that have any, by chat key."""
        return self._notes

    def set_notes(self, chat: ChatRef, notes: Sequence[ChatNote]) -> None:
        """Update the memory after the notes of `chat` are stored."""
        self._notes[chat.key] = tuple(notes)
        self._resolved.pop(chat, None)

    def note_latest(self, chat: ChatRef, inbox_id: int) -> None:
        """Record the latest accepted message of `chat`."""
        self._latest[chat] = inbox_id

    def note_language(self, context: MessageContext) -> None:
        """Use the language of the sender's client in their private chat from now on, unless a language is configured
        there or the bot has no texts in it. Kept in memory."""
        if context.is_group or not context.sender.language:
            return
        chat, language = context.chat, re.split("[-_]", context.sender.language.lower(), maxsplit=1)[0]
        if language not in self._supported or self._languages.get(chat) == language:
            return
        self._languages[chat] = language
        self._resolved.pop(chat, None)

    def is_latest(self, chat: ChatRef, inbox_id: int) -> bool:
        """Whether that message is the latest one in `chat`."""
        return self._latest.get(chat) == inbox_id

    def role(self, member_key: str, platform_role: Role) -> Role:
        """The member's role: the higher of those in the settings and on the platform; the latter if the settings name
        none."""
        named = self._settings.members.get(member_key)
        if named is None:
            return platform_role
        return max(Role(named), platform_role, key=lambda role: role.rank)

    def _resolve(self, chat: ChatRef) -> ServedChat:
        stored = self._stored.get(chat.key, {})
        rules = {name: value for name, value in stored.items() if name.startswith((TRIGGER, FORWARD))}
        own = {name: value for name, value in stored.items() if name != MUTED_UNTIL and name not in rules}
        resolved = chat_settings(self._settings, chat.key, own)
        if chat in self._languages and resolved.layers["language"] == DEFAULT_LAYER:
            resolved = replace(resolved, language=self._languages[chat])
        profile = ChatProfile(
            bot=resolved.bot,
            bot_name=resolved.bot_name,
            persona=resolved.persona,
            texts=self._texts.of(resolved.language),
            timezone=ZoneInfo(resolved.timezone),
            functions_on=resolved.functions_on,
            functions=resolved.functions,
            layers=resolved.layers,
            active=frozenset(self._active.get(chat.key, ())),
            context_scope=resolved.context_scope,
            models=resolved.models,
            thinking_models=resolved.thinking_models,
            voice_answers=resolved.voice_answers,
            notes=tuple(note for note in self._notes.get(chat.key, ()) if note.bot == resolved.bot),
        )
        triggers = {**resolved.triggers, **_after(TRIGGER, rules)}
        return ServedChat(
            is_allowed(self._settings, chat.key),
            resolved,
            profile,
            triggers,
            word_finder(sorted(triggers, key=len, reverse=True)),
            [(rule, word_finder(rule.words)) for rule in self._forwards(chat.key, rules) if rule.accepted],
        )

    def forwards(self, chat: ChatRef) -> Sequence[ForwardRule]:
        """All rules that forward messages from `chat` or to it, also those that are not accepted."""
        every = (rule for key, stored in self._stored.items() for rule in self._forwards(key, stored))
        return [rule for rule in every if chat in (rule.source, rule.target)]

    def _forwards(self, source: str, stored: Mapping[str, str]) -> Iterator[ForwardRule]:
        for code, value in _after(FORWARD, stored).items():
            rule = orjson.loads(value)
            chats = ChatRef.parse(source), ChatRef.parse(rule["to"])
            yield ForwardRule(code, *chats, tuple(rule["words"]), rule["accepted"], rule["expires_ms"])


def _after(start: str, stored: Mapping[str, str]) -> dict[str, str]:
    """Values by the rest of their name, of those whose name begins with `start`."""
    return {name.removeprefix(start): value for name, value in stored.items() if name.startswith(start)}


def end_of_period(period: str, zone: ZoneInfo, now: datetime) -> datetime | None:
    """The end, in UTC, of the daily period `HH:MM-HH:MM` in `zone` that contains `now`; None outside of it, and for
    `off`. A wall time that the zone skips is as much later as the clock is moved; of one that it repeats, the first
    counts."""
    if period == "off":
        return None
    start, end = (time.fromisoformat(one) for one in period.split("-"))
    today = now.astimezone(zone).date()
    for day in (today - timedelta(days=1), today):
        begins = datetime.combine(day, start, zone).astimezone(UTC)
        ends = datetime.combine(day + timedelta(days=end <= start), end, zone).astimezone(UTC)
        if begins <= now < ends:
            return ends
    return None
