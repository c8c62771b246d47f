"""The chats that the bot serves, and what holds in each: settings, the chat's own row, and texts, resolved once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from config.chat_settings import ResolvedChat, Unheeded, chat_settings, is_allowed, why_unheeded
from config.sections.timers import SchedulesSettings
from config.settings import Settings
from config.texts import Texts
from function_calls.profile import ChatNote, ChatProfile
from services.refs import ChatRef, Role
from services.store.chats import chat_notes
from services.store.chats import chat_settings as activations
from services.store.chats import chat_settings as rows
from services.store.port import Store

_CHATS_KEPT = 10_000


@dataclass(frozen=True, slots=True)
class ServedChat:
    """One chat as it is set up now."""

    allowed_by: str | None
    """The pattern of `chats.allow` that fits; None: the chat is not served."""
    settings: ResolvedChat
    profile: ChatProfile


class Chats:
    """Answers from memory; what chats have set for themselves is read at start and when it changes."""

    def __init__(self, settings: Settings, texts: Texts) -> None:
        self._settings = settings
        self._texts = texts
        self._stored: dict[str, dict[str, str]] = {}
        self._at_hand: dict[str, tuple[str, ...]] = {}
        self._notes: dict[str, tuple[ChatNote, ...]] = {}
        self._resolved: dict[ChatRef, ServedChat] = {}
        self._latest: dict[ChatRef, int] = {}

    @property
    def bots(self) -> Sequence[str]:
        """The keys of the bots that chats may belong to."""
        return tuple(self._settings.bots)

    async def load(self, store: Store) -> None:
        """Read what chats have set for themselves, what they have at hand, and what models are told there."""
        stored: dict[str, dict[str, str]] = {}
        at_hand: dict[str, list[str]] = {}
        for row in await store.read(rows.everything()):
            stored.setdefault(row["chat"], {})[row["name"]] = row["value"]
        for row in await store.read(activations.all_activations()):
            at_hand.setdefault(row["chat"], []).append(row["name"])
        notes: dict[str, list[ChatNote]] = {}
        for row in await store.read(chat_notes.everything()):
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
        self._notes = {chat: tuple(told) for chat, told in notes.items()}
        self._at_hand = {chat: tuple(names) for chat, names in at_hand.items()}
        self._resolved.clear()

    def use(self, settings: Settings) -> None:
        """From now on these settings hold."""
        self._settings = settings
        self._resolved.clear()

    @property
    def schedules(self) -> SchedulesSettings:
        """What the settings let run by the clock."""
        return self._settings.schedules

    def of(self, chat: ChatRef) -> ServedChat:
        """What holds in `chat` now."""
        known = self._resolved.get(chat)
        if known is None:
            if len(self._resolved) >= _CHATS_KEPT:
                self._resolved.clear()
            known = self._resolved[chat] = self._resolve(chat)
        return known

    def profile(self, chat: ChatRef) -> ChatProfile:
        """The part of it that functions see."""
        return self.of(chat).profile

    @property
    def changeable(self) -> Collection[str]:
        """The settings that chats may change for themselves."""
        return self._settings.chats.changeable

    def why_unheeded(self, name: str, value: str) -> Unheeded | None:
        """Why a chat cannot set `name` to `value` for itself; None: it can."""
        return why_unheeded(self._settings, name, value)

    def own(self, chat: ChatRef) -> Mapping[str, str]:
        """What `chat` has set for itself, heeded or not."""
        return self._stored.get(chat.key, {})

    def has_set(self, chat: ChatRef, name: str, value: str | None) -> None:
        """`chat` has set `name` for itself, or (None) taken that back; it is kept already."""
        own = {key: text for key, text in self.own(chat).items() if key != name}
        self._stored[chat.key] = own if value is None else {**own, name: value}
        self._resolved.pop(chat, None)

    def at_hand(self, chat: ChatRef) -> Sequence[str]:
        """The names of functions and groups that `chat` has taken to hand, the oldest first."""
        return self._at_hand.get(chat.key, ())

    def has_at_hand(self, chat: ChatRef, names: Sequence[str]) -> None:
        """`chat` has these at hand and nothing else; it is kept already."""
        self._at_hand[chat.key] = tuple(names)
        self._resolved.pop(chat, None)

    def notes(self, chat: ChatRef) -> Sequence[ChatNote]:
        """What scripts of all bots want models to know in `chat`, the oldest first."""
        return self._notes.get(chat.key, ())

    @property
    def all_notes(self) -> Mapping[str, Sequence[ChatNote]]:
        """The same of every chat that has some, by the chats' keys."""
        return self._notes

    def has_notes(self, chat: ChatRef, notes: Sequence[ChatNote]) -> None:
        """Models are told this in `chat` and nothing else; it is kept already."""
        self._notes[chat.key] = tuple(notes)
        self._resolved.pop(chat, None)

    def heard(self, chat: ChatRef, inbox_id: int) -> None:
        """A message of `chat` was accepted: the latest one."""
        if len(self._latest) >= _CHATS_KEPT:
            self._latest.clear()
        self._latest[chat] = inbox_id

    def is_latest(self, chat: ChatRef, inbox_id: int) -> bool:
        """Whether nobody has said anything in `chat` since that message."""
        return self._latest.get(chat) == inbox_id

    def role(self, member_key: str, said_by_platform: Role) -> Role:
        """The member's role: the stronger of what the settings and the platform say."""
        named = self._settings.members.get(member_key)
        if named is None:
            return said_by_platform
        return max(Role(named), said_by_platform, key=lambda role: role.rank)

    def _resolve(self, chat: ChatRef) -> ServedChat:
        own: Mapping[str, str] = self._stored.get(chat.key, {})
        resolved = chat_settings(self._settings, chat.key, own)
        profile = ChatProfile(
            bot=resolved.bot,
            bot_name=resolved.bot_name,
            persona=resolved.persona,
            texts=self._texts.of(resolved.language),
            timezone=ZoneInfo(resolved.timezone),
            functions_on=resolved.functions_on,
            functions=resolved.functions,
            layers=resolved.layers,
            at_hand=frozenset(self._at_hand.get(chat.key, ())),
            context_scope=resolved.context_scope,
            notes=tuple(note for note in self._notes.get(chat.key, ()) if note.bot == resolved.bot),
        )
        return ServedChat(is_allowed(self._settings, chat.key), resolved, profile)
