"""Ports of the daemon for handlers. Calls return values within a bounded time; no answer grants no right."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol, runtime_checkable

from config.chat_settings import IgnoredReason
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.profile import ChatNote, ChatProfile
from function_calls.spec import FunctionResult
from function_calls.turn import Turn
from services.llm.model import ModelMessage, NoTextReason, TextRequest, WrittenText
from services.refs import ChatRef, MemberRef, ReasonCode, Role


class Speaker(NamedTuple):
    """A member who spoke recently."""

    name: str
    """Display name."""
    role: Role | None
    """Current role; None if the platform does not report it."""


class Members(Protocol):
    """Current members of a chat, according to the platform."""

    async def role(self, chat: ChatRef, member: MemberRef) -> Role | None:
        """The member's current role; None, which grants nothing, if the platform does not report it."""

    async def names(self, chat: ChatRef) -> Sequence[str]:
        """Display names of recent speakers, latest first; at most 50."""

    async def speakers(self, chat: ChatRef) -> Sequence[Speaker]:
        """Recent speakers with their roles, latest first; at most 20."""


class ChatActions(Protocol):
    """Actions on a chat as a whole. Each returns whether it happened."""

    async def stop(self, chat: ChatRef, by: MemberRef, role: Role) -> bool:
        """End the active turn of `chat`: the member's own turn, or any turn for moderators and above. Returns whether a
        turn was ended."""

    async def withdraw_question(self, chat: ChatRef, member: MemberRef) -> bool:
        """Withdraw the open question to `member` in `chat`; returns False without one. A run that asked it is ended
        without an answer. Raises StoreError."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Reason why a message ended as it did."""

    text: str
    """The beginning of the message's text."""
    sender_name: str
    at: datetime
    reason: ReasonCode
    detail: str
    """Settings key, function or id that the reason refers to; may be empty."""
    short_id: str


@dataclass(frozen=True, slots=True)
class OwnSetting:
    """A setting that chats may change for themselves."""

    name: str
    value: str
    layer: str
    """Source of the value: `default`, a settings key, or `chat`."""
    changeable: bool
    """False: the operator's settings do not allow a change."""
    choices: Sequence[str] = ()
    """The permitted values, if the operator lists them."""


class OwnSettings(Protocol):
    """Settings of chats. Changes take effect before the method returns."""

    def of(self, chat: ChatRef) -> Sequence[OwnSetting]:
        """All changeable settings with their current values in `chat`."""

    async def put(self, chat: ChatRef, name: str, value: str, by: MemberRef) -> IgnoredReason | None:
        """Set `name` to `value` in `chat`. Returns None, or the reason if that is not possible."""

    async def clear(self, chat: ChatRef, name: str, by: MemberRef) -> IgnoredReason | None:
        """Reset `name` to the value of the operator's settings. Returns None, or the reason if the chat may not change
        it."""


class Measure(StrEnum):
    """Measure of moderation on a network."""

    KICK = "kick"  # remove a member, who may come back
    BAN = "ban"  # remove a member, who may not come back
    SILENCE = "silence"  # forbid a member to write for a time
    PIN = "pin"  # pin a message
    INVITE = "invite"  # invite a member by native id
    LINK = "link"  # create a link by which one person can join


@dataclass(frozen=True, slots=True)
class ModerationRequest:
    """One measure in a chat. The caller has checked who may take it on whom."""

    chat: ChatRef
    measure: Measure
    member: MemberRef | None = None
    """None for a message or a link."""
    seconds: int = 0
    """Duration of a silence."""
    message_id: str = ""
    """Native id of the message to pin."""

    @property
    def who(self) -> str:
        """Native id of the member; empty without one."""
        return self.member.native if self.member is not None else ""


class ModerationOutcome(StrEnum):
    """Outcome of a measure."""

    DONE = "done"  # confirmed by the network
    NOT_PERMITTED = "not_permitted"  # the network rejected it
    UNSUPPORTED = "unsupported"  # the network, or Rollcall on it, does not have this measure
    NOT_REACHED = "not_reached"  # the network cannot be reached, and nothing was done
    UNKNOWN = "unknown"  # the network did not confirm it


class Moderated(NamedTuple):
    """Result of a measure."""

    outcome: ModerationOutcome
    link: str = ""
    """For Measure.LINK."""


class Moderation(Protocol):
    """Moderation of chats on their networks."""

    async def moderate(self, request: ModerationRequest) -> Moderated:
        """Take the measure, once, and return its outcome within 20 seconds."""


@dataclass(frozen=True, slots=True)
class ForwardRule:
    """A rule that forwards messages with one of `words` from a chat to another."""

    code: str
    """Id of the rule, and the code by which the admins of the other chat accept it."""
    source: ChatRef
    target: ChatRef
    words: tuple[str, ...]
    accepted: bool
    expires_ms: int
    """Until when it can be accepted, in milliseconds since 1970."""


class ChatRules(Protocol):
    """Triggers of chats, and rules that forward messages. Changes take effect before the method returns."""

    def triggers(self, chat: ChatRef) -> Mapping[str, str]:
        """Texts by the word to which they reply in `chat`; its own and those of the settings file."""

    async def set_trigger(self, chat: ChatRef, word: str, text: str | None, by: MemberRef) -> None:
        """Set the chat's own text for `word`; None removes it."""

    def forwards(self, chat: ChatRef) -> Sequence[ForwardRule]:
        """Accepted and open rules from `chat` and to it."""

    async def put_forward(self, rule: ForwardRule, by: MemberRef) -> None:
        """Add or replace a rule. Open rules that have expired are removed."""

    async def remove_forward(self, rule: ForwardRule, by: MemberRef) -> None:
        """Remove a rule."""


class Mutes(Protocol):
    """Mutes of the bot. Changes take effect before the method returns."""

    async def mute(self, chat: ChatRef, until: datetime, by: MemberRef) -> None:
        """Mute the bot in `chat` until that time, instead of a mute before."""

    async def unmute(self, chat: ChatRef, by: MemberRef) -> bool:
        """End the mute of `chat`; returns False if the bot was not muted."""


class ActiveFunctions(Protocol):
    """Functions and groups that chats have activated. Changes take effect before the method returns."""

    def of(self, chat: ChatRef) -> Sequence[str]:
        """Names of the active functions and groups of `chat`, oldest first; some may no longer exist."""

    async def activate(self, chat: ChatRef, names: Sequence[str], by: MemberRef) -> None:
        """Activate `names` in `chat`."""

    async def deactivate(self, chat: ChatRef, names: Sequence[str], by: MemberRef) -> None:
        """Deactivate `names` in `chat`."""


class NotesFull(Exception):
    """The notes of one bot in a chat would exceed `most_notes` notes or `most_chars` characters in total."""

    def __init__(self, most_notes: int, most_chars: int) -> None:
        super().__init__(most_notes, most_chars)
        self.most_notes = most_notes
        self.most_chars = most_chars


class ChatNotes(Protocol):
    """Notes of chats for language models. Changes take effect before the method returns."""

    def of(self, chat: ChatRef, bot: str) -> Sequence[ChatNote]:
        """Notes for the models of `bot` in `chat`, oldest first."""

    async def put(self, chat: ChatRef, note: ChatNote, by: MemberRef) -> None:
        """Add `note`, or replace its bot's note of that name. Raises NotesFull if the bot's limit in the chat would be
        exceeded."""

    async def clear(self, chat: ChatRef, bot: str, names: Collection[str]) -> None:
        """Delete the notes of these names."""


@runtime_checkable
class Configurable(Protocol):
    """A service that works only after the operator has configured it."""

    def is_configured(self, bot: str) -> bool:
        """Whether it works for `bot`."""


class StartFunctions(Configurable, Protocol):
    """Start functions of chats."""

    async def rerun(self, chat: ChatRef, bot: str) -> bool:
        """Run the start function again with the next message that `bot` answers in `chat`. False if the bot has no
        start function. Raises StoreError."""


class ChatWriter(Protocol):
    """The bot's language model, for functions that produce text such as a summary. Charged to the chat's daily budget;
    in `write_for` also to the member's."""

    async def write(
        self, chat: ChatRef, profile: ChatProfile, messages: Sequence[ModelMessage], timeout_seconds: float
    ) -> str | NoTextReason:
        """The model's reply to `messages`, without functions, or the reason why there is no reply in time."""

    async def write_for(
        self, context: MessageContext, profile: ChatProfile, messages: Sequence[ModelMessage], timeout_seconds: float
    ) -> str | NoTextReason:
        """Like `write`, also charged to the daily budget of the sender of `context`."""


class TextModel(Protocol):
    """A language model for functions that produce text: the caller's model if permitted, otherwise the bot's."""

    async def ask(self, context: MessageContext, call: Call, request: TextRequest) -> WrittenText | NoTextReason:
        """The model's reply to `request`, without functions, or the reason why there is no reply in time. The caller's
        model is used if the settings permit it and no function of this turn has started to read outside text; the bot's
        is charged to the sender and the chat."""


class TimerEnds(Protocol):
    """Messages to the chat about the end of scheduled runs."""

    async def ended(self, context: MessageContext, result: FunctionResult, turn: Turn) -> FunctionResult | None:
        """`result` as the chat should get it, or None to send it unchanged. An error without a text is not sent."""


class Explanations(Protocol):
    """Outcomes of messages."""

    async def last(self, chat: ChatRef, before_native_id: str, count: int) -> Sequence[Explanation]:
        """Outcomes of the last `count` messages and failed timer runs visible to everybody in `chat`, without the
        requesting message; newest first."""

    async def back(self, chat: ChatRef, before_native_id: str, number: int) -> Explanation | None:
        """Outcome of the message `number` positions before the requesting message; 1 is the last. None if it is
        unknown."""

    async def of(self, chat: ChatRef, native_id: str, private_to: MemberRef | None = None) -> Sequence[Explanation]:
        """Outcomes of a message of `chat` and of its edits, oldest first; for a message of the bot, of the messages
        that it answered. Private outcomes are included only for the member `private_to`, who reads the reply unseen by
        others."""
