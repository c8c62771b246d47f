"""MessageContext: the frozen facts about one inbound message. No platform object, no services, no logger."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from services.json_values import JsonObject
from services.refs import ChatRef, MemberRef, Role


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


_MESSAGE = Kind.MESSAGE
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
        if kind is _MESSAGE:
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
