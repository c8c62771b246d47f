"""Changes that a chat makes to its settings and its active functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import get_args

import orjson

from bot.chats.chats import FORWARD, MUTED_UNTIL, TRIGGER, Chats
from config.chat_settings import IgnoredReason, ResolvedChat
from config.sections.bots import ChatSettingName
from function_calls.ports import ForwardRule, OwnSetting
from services.clock import Clock
from services.knowledge import ACTIVE_PREFIX
from services.refs import ChatRef, MemberRef
from services.store.chats import chat_settings
from services.store.ids import Ids
from services.store.port import Store, Write
from services.store.turns import audit


class _Audited:
    """Changes of chats with audit entries."""

    def __init__(self, chats: Chats, store: Store, ids: Ids, clock: Clock) -> None:
        self._chats = chats
        self._store = store
        self._ids = ids
        self._clock = clock

    async def _commit(
        self, writes: Sequence[Write], counter: str, chat: ChatRef, by: MemberRef, action: str, detail: str
    ) -> None:
        """Commit `writes` with an audit entry, and touch `counter`. Raises StoreError."""
        at_ms, id_ = self._clock.now_ms(), self._ids.next()
        note = audit.note(id=id_, at_ms=at_ms, actor=by.key, chat=chat.key, action=action, detail=detail)
        await self._store.commit([*writes, audit.touch(counter), note])


class StoredOwnSettings(_Audited):
    """Stores the settings that a chat sets for itself."""

    def of(self, chat: ChatRef) -> Sequence[OwnSetting]:
        """All settings that a chat may have for itself, with their values in `chat`."""
        resolved = self._chats.of(chat).settings
        choices = {"model": resolved.selectable_models}
        changeable = {name for name in self._chats.changeable if choices.get(name, True)}
        return [
            OwnSetting(name, _shown(resolved, name), resolved.layers[name], name in changeable, choices.get(name, ()))
            for name in get_args(ChatSettingName)
        ]

    async def put(self, chat: ChatRef, name: str, value: str, by: MemberRef) -> IgnoredReason | None:
        """Set `name` to `value` in `chat`. Returns the reason if that is not possible, else None."""
        why_not = self._chats.why_ignored(chat, name, value)
        if why_not is not None:
            return why_not
        await self._change(chat, name, value, by)
        return None

    async def clear(self, chat: ChatRef, name: str, by: MemberRef) -> IgnoredReason | None:
        """Reset `name` to the value of the settings file. Returns None, or the reason if the chat may not change it."""
        if name not in self._chats.changeable:
            return "not_changeable"
        await self._change(chat, name, None, by)
        return None

    async def mute(self, chat: ChatRef, until: datetime, by: MemberRef) -> None:
        """Mute the bot in `chat` until that time, instead of a mute before. Raises StoreError."""
        await self._change(chat, MUTED_UNTIL, until.isoformat(), by)

    async def unmute(self, chat: ChatRef, by: MemberRef) -> bool:
        """End the mute of `chat`; returns False if the bot was not muted. Raises StoreError."""
        was_muted = self._chats.muted_until(chat, self._clock.now()) is not None
        await self._change(chat, MUTED_UNTIL, None, by)
        return was_muted

    def triggers(self, chat: ChatRef) -> Mapping[str, str]:
        """Texts by the word to which they reply in `chat`."""
        return self._chats.of(chat).triggers

    async def set_trigger(self, chat: ChatRef, word: str, text: str | None, by: MemberRef) -> None:
        """Set the chat's own text for `word`; None removes it. Raises StoreError."""
        await self._change(chat, f"{TRIGGER}{word}", text, by)

    def forwards(self, chat: ChatRef) -> Sequence[ForwardRule]:
        """Accepted and open rules from `chat` and to it."""
        now_ms = self._clock.now_ms()
        return [one for one in self._chats.forwards(chat) if one.accepted or one.expires_ms > now_ms]

    async def put_forward(self, rule: ForwardRule, by: MemberRef) -> None:
        """Add or replace a rule. Open rules of its chat that have expired are removed. Raises StoreError."""
        for one in self._chats.forwards(rule.source):
            if one.source == rule.source and not one.accepted and one.expires_ms <= self._clock.now_ms():
                await self.remove_forward(one, by)
        value = {"to": rule.target.key, "words": rule.words, "accepted": rule.accepted, "expires_ms": rule.expires_ms}
        await self._change(rule.source, f"{FORWARD}{rule.code}", orjson.dumps(value).decode(), by)

    async def remove_forward(self, rule: ForwardRule, by: MemberRef) -> None:
        """Remove a rule. Raises StoreError."""
        await self._change(rule.source, f"{FORWARD}{rule.code}", None, by)

    async def _change(self, chat: ChatRef, name: str, value: str | None, by: MemberRef) -> None:
        """Set `name` in `chat`, or with None remove it. An unchanged value adds no audit entry, so that a run can be
        repeated. Raises StoreError."""
        before = self._chats.own(chat).get(name)
        if before == value:
            return
        write = chat_settings.clear(chat.key, name)
        if value is not None:
            write = chat_settings.put(chat.key, name, value, by.key, self._clock.now_ms())
        await self._commit([write], "chat_settings", chat, by, f"chat_settings.{name}", f"{before!r} -> {value!r}")
        self._chats.set_own(chat, name, value)


def _shown(resolved: ResolvedChat, name: str) -> str:
    """The value of a setting as chats set it."""
    if name == "model":
        return ", ".join(resolved.models)
    value: bool | str = getattr(resolved, name)
    return value if isinstance(value, str) else "on" if value else "off"


class StoredActivations(_Audited):
    """Stores which functions on request are active in chats."""

    def of(self, chat: ChatRef) -> Sequence[str]:
        """The names of functions and groups active in `chat`, oldest first."""
        return [one for one in self._chats.active_functions(chat) if not one.startswith(ACTIVE_PREFIX)]

    async def activate(self, chat: ChatRef, names: Sequence[str], by: MemberRef) -> None:
        """Activate `names` in `chat`. Active names add no audit entry, so that a run can be repeated."""
        before = self._chats.active_functions(chat)
        fresh = [name for name in dict.fromkeys(names) if name not in before]
        now_ms = self._clock.now_ms()
        writes = [chat_settings.activate(chat.key, name, by.key, now_ms) for name in fresh]
        await self._change(chat, writes, [*before, *fresh], by, f"use {' '.join(fresh)}")

    async def deactivate(self, chat: ChatRef, names: Sequence[str], by: MemberRef) -> None:
        """Deactivate `names` in `chat`. Does nothing for names that are not active."""
        before = self._chats.active_functions(chat)
        removed = [name for name in dict.fromkeys(names) if name in before]
        writes = [chat_settings.deactivate(chat.key, name) for name in removed]
        remaining = [name for name in before if name not in removed]
        await self._change(chat, writes, remaining, by, f"unuse {' '.join(removed)}")

    async def _change(
        self, chat: ChatRef, writes: Sequence[Write], names: Sequence[str], by: MemberRef, detail: str
    ) -> None:
        if writes:
            await self._commit(writes, "activations", chat, by, "at_hand", detail)
            self._chats.set_active_functions(chat, names)
