"""MessageContext: immutable facts about one inbound message, and their stored form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple

from services.refs import ChatRef, JsonObject, MemberRef, Role


class Kind(StrEnum):
    """What happened in the chat."""

    MESSAGE = "message"
    EDIT = "edit"
    DELETE = "delete"
    REACTION = "reaction"
    CHOICE = "choice"  # a button of the bot's was pressed; `text` holds its value
    JOIN = "join"
    LEAVE = "leave"
    TIMER = "timer"
    EXPIRY = "expiry"  # nobody answered what a function asked, which is told so


_FOR_THE_BOT = frozenset({Kind.CHOICE, Kind.TIMER, Kind.EXPIRY})


class MessageKey(NamedTuple):
    """What makes two deliveries the same event. Edits and reactions add their kind and a revision."""

    chat: ChatRef
    native_id: str
    kind: Kind = Kind.MESSAGE
    revision: str = ""

    @property
    def text(self) -> str:
        """The key as one string, unique over all platforms. The native id stands first: most networks count upwards, so
        the keys of one moment lie together in an index, whatever their chats."""
        chat, native_id, kind, revision = self
        if kind is Kind.MESSAGE:
            return f"{native_id}\n{chat.platform}:{chat.account}:{chat.native}"
        return f"{native_id}\n{chat.platform}:{chat.account}:{chat.native}\n{kind}\n{revision}"


@dataclass(frozen=True, slots=True)
class Sender:
    """Who sent it: a stable id from the platform, a display name that proves nothing, and the role as the platform
    and the settings say it."""

    ref: MemberRef
    name: str
    role: Role = Role.MEMBER
    is_bot: bool = False


@dataclass(frozen=True, slots=True)
class Quoted:
    """The message that this one replies to, as far as the platform tells."""

    native_id: str
    sender_name: str = ""
    text: str = ""
    from_bot: bool = False
    """The quoted message was the bot's own."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that came with a message or goes out with one."""

    name: str
    media_type: str
    url: str = ""
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class TimerCall:
    """What is to run because its time has come."""

    function: str
    arguments: JsonObject
    """Raw: checked when it runs."""
    timer_id: int
    occurrence_id: int
    due_at: datetime
    """UTC: when it was to be."""
    title: str
    number: int = 0
    """What people call the timer by."""
    was_away: bool = False
    """The bot was not there when it was due."""


@dataclass(frozen=True, slots=True)
class MessageContext:
    """One inbound message."""

    key: MessageKey
    kind: Kind
    chat: ChatRef
    is_group: bool
    sender: Sender
    text: str
    """NFC, without control characters, the bot's mention stripped. Handlers never read it: they have arguments."""
    sent_at: datetime
    """UTC, as the platform says."""
    mentions: tuple[MemberRef, ...] = ()
    mentions_bot: bool = False
    reply_to: Quoted | None = None
    attachments: tuple[Attachment, ...] = ()
    backfilled: bool = False
    """Delivered after the fact (history of a room that was joined): recorded, never answered."""
    private: bool = False
    """Said to the bot alone although the chat is a group: nobody else is shown it, nor what answers it."""
    chat_title: str = ""
    bot: str = "default"
    """The profile that serves this chat."""
    takes: tuple[str, ...] = ()
    """The functions and groups that it takes to hand: `@name`, stripped from the text as the bot's mention is."""
    timer: TimerCall | None = None
    """Set where nobody wrote: the time of something has come, and `sender` is the member whose it is."""

    @property
    def calls_bot(self) -> bool:
        """Whether it is plainly said to the bot: alone with it, by its name, or in reply to it."""
        return (
            not self.is_group
            or self.mentions_bot
            or self.kind in _FOR_THE_BOT
            or (self.reply_to is not None and self.reply_to.from_bot)
        )


def without_words(context: MessageContext) -> MessageContext:
    """Who said `context`, and where; without what was said."""
    return replace(context, text="", mentions=(), reply_to=None, attachments=(), takes=(), timer=None)


def context_to_json(context: MessageContext) -> JsonObject:
    """`context` as plain data; what is usual is left out."""
    sender, quoted = context.sender, context.reply_to
    data: JsonObject = {
        "chat": context.chat[:3],
        "id": context.key.native_id,
        "sender": [*sender.ref[:3], sender.name, str(sender.role)],
        "text": context.text,
        "at": context.sent_at.timestamp(),
        "group": context.is_group,
        "bot": context.bot,
    }
    if context.kind is not Kind.MESSAGE:
        data["kind"] = context.kind.value
    if context.key.kind is not Kind.MESSAGE:
        data["key"] = [context.key.kind.value, context.key.revision]
    if context.mentions_bot:
        data["mentions_bot"] = True
    if context.mentions:
        data["mentions"] = [one[:3] for one in context.mentions]
    if quoted is not None:
        data["reply_to"] = [quoted.native_id, quoted.sender_name, quoted.text, quoted.from_bot]
    if context.attachments:
        data["attachments"] = [[one.name, one.media_type, one.url, one.size_bytes] for one in context.attachments]
    return data | _rare(context) if _has_rare(context) else data


def context_from_json(data: JsonObject) -> MessageContext:
    """The context that `context_to_json` wrote."""
    chat = ChatRef(*data["chat"])
    platform, account, native, name, role = data["sender"]
    key_kind, revision = data.get("key", (Kind.MESSAGE, ""))
    quoted: list[Any] | None = data.get("reply_to")
    return MessageContext(
        key=MessageKey(chat, data["id"], Kind(key_kind), revision),
        kind=Kind(data.get("kind", Kind.MESSAGE)),
        chat=chat,
        is_group=data["group"],
        sender=Sender(MemberRef(platform, account, native), name, Role(role)),
        text=data["text"],
        sent_at=datetime.fromtimestamp(data["at"], UTC),
        mentions=tuple(MemberRef(*one) for one in data.get("mentions", ())),
        mentions_bot=data.get("mentions_bot", False),
        reply_to=Quoted(*quoted) if quoted else None,
        attachments=tuple(Attachment(*one) for one in data.get("attachments", ())),
        private=data.get("private", False),
        chat_title=data.get("title", ""),
        bot=data["bot"],
        takes=tuple(data.get("takes", ())),
        timer=_timer_from_json(data["timer"]) if "timer" in data else None,
    )


def _has_rare(context: MessageContext) -> bool:
    return context.private or bool(context.chat_title or context.takes) or context.timer is not None


def _rare(context: MessageContext) -> JsonObject:
    timer = None if context.timer is None else _timer_to_json(context.timer)
    rare = {"private": context.private, "title": context.chat_title, "takes": list(context.takes), "timer": timer}
    return {key: value for key, value in rare.items() if value}


def _timer_to_json(timer: TimerCall) -> list[Any]:
    due = timer.due_at.timestamp()
    ids = (timer.timer_id, timer.occurrence_id)
    return [timer.function, timer.arguments, *ids, due, timer.title, timer.number, timer.was_away]


def _timer_from_json(data: list[Any]) -> TimerCall:
    function, arguments, timer_id, occurrence_id, due, title, number, was_away = data
    due_at = datetime.fromtimestamp(due, UTC)
    return TimerCall(function, arguments, timer_id, occurrence_id, due_at, title, number, was_away)
