"""MessageContext: immutable facts about one inbound message, and their stored form."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple

from services.refs import ChatRef, JsonObject, MemberRef, Role


class Kind(StrEnum):
    """Kind of event in a chat."""

    MESSAGE = "message"
    EDIT = "edit"
    DELETE = "delete"
    REACTION = "reaction"
    CHOICE = "choice"  # press of one of the bot's buttons; `text` holds its value
    JOIN = "join"
    LEAVE = "leave"
    ADDED = "added"  # the bot was added to the chat; `sender` added it
    TIMER = "timer"
    EXPIRY = "expiry"  # a question expired without an answer; the function that asked is notified


_TO_SOMEBODY = re.compile(r"\s*<?[@＠](?!(?:all|everyone|here|channel|room)\b)[^\W\d]", re.IGNORECASE)
"""The beginning of a text that mentions a member."""
_FOR_THE_BOT = frozenset({Kind.CHOICE, Kind.TIMER, Kind.EXPIRY})


class MessageKey(NamedTuple):
    """Identity of an event, for detecting repeated deliveries. Edits and reactions add their kind and a revision."""

    chat: ChatRef
    native_id: str
    kind: Kind = Kind.MESSAGE
    revision: str = ""

    @property
    def text(self) -> str:
        """The key as one string, unique over all platforms; kind and revision are left out for plain messages. It
        starts with the native id: most networks count upwards, so keys of the same time are adjacent in an index,
        regardless of the chat."""
        chat, native_id, kind, revision = self
        if kind is Kind.MESSAGE:
            return f"{native_id}\n{chat.platform}:{chat.account}:{chat.native}"
        return f"{native_id}\n{chat.platform}:{chat.account}:{chat.native}\n{kind}\n{revision}"


@dataclass(frozen=True, slots=True)
class Sender:
    """Sender of a message: a stable platform id, an unverified display name, and the role according to the platform and
    the settings."""

    ref: MemberRef
    name: str
    role: Role = Role.MEMBER
    is_bot: bool = False
    zone: str = ""
    """IANA name of the member's time zone if the network knows it; not stored with the message."""
    language: str = ""
    """Language tag of the member's client, such as `zh-CN`, if the network knows it."""


_VOICE_KINDS = ("audio/", "video/ogg")
_NOT_IN_MARKS = re.compile(r"[\s\[\]<>]+")


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file in an inbound or outbound message."""

    name: str
    media_type: str
    url: str = ""
    """An https or data URL, or `network:<native file id>` for a file that only the platform of the chat can read."""
    size_bytes: int | None = None

    @property
    def is_picture(self) -> bool:
        """Whether its declared type is that of a picture."""
        return self.media_type.startswith("image/")

    @property
    def is_voice(self) -> bool:
        """Whether its declared type is that of a sound."""
        return self.media_type.startswith(_VOICE_KINDS)

    @property
    def mark(self) -> str:
        """Placeholder in texts: `[picture]`, `[voice message]` or `[file: …]` with its name."""
        if self.is_picture or self.is_voice:
            return "[picture]" if self.is_picture else "[voice message]"
        return f"[file: {_NOT_IN_MARKS.sub(' ', self.name).strip()[:60]}]"


@dataclass(frozen=True, slots=True)
class Quoted:
    """The message that this message replies to, with the details that the platform provides."""

    native_id: str
    sender_name: str = ""
    text: str = ""
    from_bot: bool = False
    """The bot sent the quoted message."""
    attachments: tuple[Attachment, ...] = ()
    """Its files, where the network names them."""


@dataclass(frozen=True, slots=True)
class TimerCall:
    """A scheduled call that is due."""

    function: str
    arguments: JsonObject
    """Unvalidated; parsed when the call runs."""
    timer_id: int
    occurrence_id: int
    due_at: datetime
    """Scheduled time, in UTC."""
    title: str
    number: int = 0
    """The timer's number, as shown to members."""
    was_away: bool = False
    """The bot was not running when the call was due."""


@dataclass(frozen=True, slots=True)
class MessageContext:
    """An inbound message or other chat event."""

    key: MessageKey
    kind: Kind
    chat: ChatRef
    is_group: bool
    sender: Sender
    text: str
    """Text in NFC, without control characters and the mention of the bot. Handlers use their arguments instead."""
    sent_at: datetime
    """Time of sending according to the platform, in UTC."""
    mentions: tuple[MemberRef, ...] = ()
    mentions_bot: bool = False
    reply_to: Quoted | None = None
    attachments: tuple[Attachment, ...] = ()
    backfilled: bool = False
    """Delivered late, as history of a room that the bot joined: recorded, never answered."""
    private: bool = False
    """Visible only to the bot although the chat is a group; the reply must be private too."""
    chat_title: str = ""
    bot: str = "default"
    """Name of the bot profile that serves this chat."""
    takes: tuple[str, ...] = ()
    """Functions and groups that the message activates with `@name`, which is stripped from the text."""
    timer: TimerCall | None = None
    """Set for a scheduled call, which has no message; `sender` is then the owner of the timer."""
    parts: tuple[tuple[str, str], ...] = ()
    """Native id and text of each message of the turn, in order, if `text` joins several messages of the sender."""
    unasked: str = ""
    """`chance` or `judge` if the bot answers although it was not addressed."""
    is_forwarded: bool = False
    """The network marks the message as forwarded from another chat. Not stored."""
    inviter: str = ""
    """For a join, the name of the member who invited the sender, if the network tells it. Not stored."""
    spoken: bool = False
    """The text is what was heard in a voice message."""

    @property
    def addresses_another(self) -> bool:
        """Whether a message of a group is for another member: it replies to a member or mentions one. A reply to the
        bot is for another member only if it begins with the mention."""
        if not self.is_group or self.mentions_bot or self.kind is not Kind.MESSAGE:
            return False
        if self.reply_to is not None and not self.reply_to.from_bot:
            return True
        return _TO_SOMEBODY.match(self.text) is not None or (self.reply_to is None and bool(self.mentions))

    @property
    def marked_text(self) -> str:
        """The text, and below it a placeholder for each file."""
        if not self.attachments:
            return self.text
        return "\n".join(filter(None, (self.text, *(one.mark for one in self.attachments))))

    @property
    def calls_bot(self) -> bool:
        """Whether the message is clearly for the bot: private, a mention, a reply to the bot, a button, or a timer."""
        return (
            not self.is_group
            or self.mentions_bot
            or self.kind in _FOR_THE_BOT
            or (self.reply_to is not None and self.reply_to.from_bot and not self.addresses_another)
        )


def with_part(context: MessageContext, native_id: str, text: str | None) -> MessageContext:
    """`context` in whose joined text the message `native_id` has the text `text`; added if it is new, removed if
    None."""
    parts = dict(context.parts or ((context.key.native_id, context.text),))
    if text is None:
        parts.pop(native_id, None)
    else:
        parts[native_id] = text
    joined = "\n".join(one for one in parts.values() if one)
    return replace(context, text=joined, parts=tuple(parts.items()) if len(parts) > 1 else ())


def without_words(context: MessageContext) -> MessageContext:
    """`context` without its content; sender and chat remain."""
    return replace(context, text="", mentions=(), reply_to=None, attachments=(), takes=(), timer=None, parts=())


def context_to_json(context: MessageContext) -> JsonObject:
    """`context` as plain data for `context_from_json`, without fields that have their usual value; `at` is a Unix
    timestamp."""
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
        if quoted.attachments:
            data["quoted_files"] = _files_to_json(quoted.attachments)
    if context.attachments:
        data["attachments"] = _files_to_json(context.attachments)
    return data | _rare(context) if _has_rare(context) else data


def context_from_json(data: JsonObject) -> MessageContext:
    """Restore the context that `context_to_json` serialized; missing fields get their usual value. Times are in UTC."""
    chat = ChatRef(*data["chat"])
    platform, account, native, name, role = data["sender"]
    key_kind, revision = data.get("key", (Kind.MESSAGE, ""))
    quoted: list[Any] | None = data.get("reply_to")
    quoted_files: list[Any] = [_files_from_json(data["quoted_files"])] if "quoted_files" in data else []
    return MessageContext(
        key=MessageKey(chat, data["id"], Kind(key_kind), revision),
        kind=Kind(data.get("kind", Kind.MESSAGE)),
        chat=chat,
        is_group=data["group"],
        sender=Sender(MemberRef(platform, account, native), name, Role(role), language=data.get("language", "")),
        text=data["text"],
        sent_at=datetime.fromtimestamp(data["at"], UTC),
        mentions=tuple(MemberRef(*one) for one in data.get("mentions", ())),
        mentions_bot=data.get("mentions_bot", False),
        reply_to=Quoted(*quoted, *quoted_files) if quoted else None,
        attachments=_files_from_json(data.get("attachments", ())),
        private=data.get("private", False),
        chat_title=data.get("title", ""),
        bot=data["bot"],
        takes=tuple(data.get("takes", ())),
        timer=_timer_from_json(data["timer"]) if "timer" in data else None,
        parts=tuple((native_id, text) for native_id, text in data.get("parts", ())),
        spoken=data.get("spoken", False),
        unasked=data.get("unasked", ""),
    )


def _files_to_json(files: Sequence[Attachment]) -> list[list[Any]]:
    return [[one.name, one.media_type, one.url, one.size_bytes] for one in files]


def _files_from_json(files: Sequence[list[Any]]) -> tuple[Attachment, ...]:
    return tuple(Attachment(*one) for one in files)


def _has_rare(context: MessageContext) -> bool:
    has_words = context.chat_title or context.takes or context.parts or context.unasked or context.sender.language
    return context.private or context.spoken or bool(has_words) or context.timer is not None


def _rare(context: MessageContext) -> JsonObject:
    timer = None if context.timer is None else _timer_to_json(context.timer)
    rare = {
        "private": context.private,
        "title": context.chat_title,
        "takes": list(context.takes),
        "timer": timer,
        "parts": context.parts,
        "spoken": context.spoken,
        "unasked": context.unasked,
        "language": context.sender.language,
    }
    return {key: value for key, value in rare.items() if value}


def _timer_to_json(timer: TimerCall) -> list[Any]:
    due = timer.due_at.timestamp()
    ids = (timer.timer_id, timer.occurrence_id)
    return [timer.function, timer.arguments, *ids, due, timer.title, timer.number, timer.was_away]


def _timer_from_json(data: list[Any]) -> TimerCall:
    function, arguments, timer_id, occurrence_id, due, title, number, was_away = data
    due_at = datetime.fromtimestamp(due, UTC)
    return TimerCall(function, arguments, timer_id, occurrence_id, due_at, title, number, was_away)
