"""What handlers may ask of the daemon. Each answers with a value, in time; no answer means no privilege."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from config.chat_settings import Unheeded
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.profile import ChatNote, ChatProfile
from function_calls.spec import FunctionResult
from function_calls.turn import Turn
from services.llm.model import ModelMessage, Unwritten, WordsWanted, Written
from services.refs import ChatRef, MemberRef, ReasonCode, Role


class Speaker(NamedTuple):
    """Somebody who spoke lately."""

    name: str
    """The display name."""
    role: Role | None
    """At this moment; None when the platform cannot tell."""


class Members(Protocol):
    """Who is in a chat now, asked of the platform."""

    async def role(self, chat: ChatRef, member: MemberRef) -> Role | None:
        """The member's role at this moment; None when the platform cannot tell, which grants nothing."""

    async def names(self, chat: ChatRef) -> Sequence[str]:
        """Display names of members who spoke lately, latest first; at most 50."""

    async def speakers(self, chat: ChatRef) -> Sequence[Speaker]:
        """Members who spoke lately, latest first, with their roles; at most 20."""


class ChatActions(Protocol):
    """Acts on a chat as a whole. Each returns whether it truly happened."""

    async def stop(self, chat: ChatRef, by: MemberRef, role: Role) -> bool:
        """End the turn that runs in `chat`: the asker's own, or anyone's for moderators and above."""

    async def ask_no_more(self, chat: ChatRef, member: MemberRef) -> bool:
        """Let what `member` was asked in `chat` wait for no answer. What a function asked for ends unanswered. Raises
        StoreError."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one message ended as it did."""

    text: str
    """The beginning of the message."""
    sender_name: str
    at: datetime
    reason: ReasonCode
    detail: str
    """The settings key, function or id that the reason speaks of; may be empty."""
    short_id: str


@dataclass(frozen=True, slots=True)
class OwnSetting:
    """One of the settings that chats may change for themselves."""

    name: str
    value: str
    layer: str
    """Where the value comes from: `default`, a key of the settings, or `chat`."""
    changeable: bool
    """False: the operator's settings keep it for themselves."""


class OwnSettings(Protocol):
    """What chats set for themselves. Changes are in force when they return."""

    def of(self, chat: ChatRef) -> Sequence[OwnSetting]:
        """All of them, as they are in `chat` now."""

    async def put(self, chat: ChatRef, name: str, value: str, by: MemberRef) -> Unheeded | None:
        """Set `name` to `value` in `chat`; why not, when it cannot be."""

    async def clear(self, chat: ChatRef, name: str, by: MemberRef) -> Unheeded | None:
        """Let what the settings say hold again; why not, when the chat may not change it."""


class AtHand(Protocol):
    """What chats have taken to hand. Changes are in force when they return."""

    def of(self, chat: ChatRef) -> Sequence[str]:
        """The names of functions and groups that `chat` has at hand, the oldest first; some may be gone."""

    async def take(self, chat: ChatRef, names: Sequence[str], by: MemberRef) -> None:
        """Have these at hand in `chat`."""

    async def put_away(self, chat: ChatRef, names: Sequence[str], by: MemberRef) -> None:
        """Have these at hand in `chat` no more."""


class NotesFull(Exception):
    """It is more than models may be told in a chat: `most_notes` of `most_chars` characters together."""

    def __init__(self, most_notes: int, most_chars: int) -> None:
        super().__init__(most_notes, most_chars)
        self.most_notes = most_notes
        self.most_chars = most_chars


class ChatNotes(Protocol):
    """What models are told in chats. Changes are in force when they return."""

    def of(self, chat: ChatRef, bot: str) -> Sequence[ChatNote]:
        """What the models of `bot` are told in `chat`, the oldest first."""

    async def put(self, chat: ChatRef, note: ChatNote, by: MemberRef) -> None:
        """Tell it, in the place of what was told under its name. Raises NotesFull where it is more than a chat may
        have."""

    async def clear(self, chat: ChatRef, bot: str, names: Collection[str]) -> None:
        """Tell the models of `bot` no more what stands under these names."""


class ChatBeginnings(Protocol):
    """What begins chats."""

    async def again(self, chat: ChatRef, bot: str) -> bool:
        """Let the next message that `bot` answers in `chat` begin it anew; False where the bot has nothing for that.
        Raises StoreError."""


class ChatWriter(Protocol):
    """The language model for functions whose result is words, such as a summary. The chat's share of the day pays, and
    that of a member where it is asked for one."""

    async def write(
        self, chat: ChatRef, profile: ChatProfile, messages: Sequence[ModelMessage], timeout_seconds: float
    ) -> str | Unwritten:
        """The model's words to `messages`, asked without functions; why there are none, in time."""

    async def write_for(
        self, context: MessageContext, profile: ChatProfile, messages: Sequence[ModelMessage], timeout_seconds: float
    ) -> str | Unwritten:
        """The same for the sender of `context`, whose share of the day pays beside the chat's."""


class Words(Protocol):
    """A language model for functions whose result is words: that of whoever called, where it may be asked, else the
    bot's own."""

    async def ask(self, context: MessageContext, call: Call, wanted: WordsWanted) -> Written | Unwritten:
        """What a model writes to `wanted`, asked without functions; why there are none, in time. The model of a program
        that called is asked where the settings let it be, and where this turn has begun no function that reads words of
        others. The bot's own is asked at the expense of the sender and the chat."""


class TimerEnds(Protocol):
    """How a run by the clock ends for the chat."""

    async def ended(self, context: MessageContext, result: FunctionResult, turn: Turn) -> FunctionResult | None:
        """`result` as the chat is to have it, an error without a text in silence; None where it is to have it as it
        is."""


class Explanations(Protocol):
    """What became of messages."""

    async def last(self, chat: ChatRef, before_native_id: str, count: int) -> Sequence[Explanation]:
        """The outcomes of the last `count` messages of `chat`, newest first, without the one asking."""

    async def back(self, chat: ChatRef, before_native_id: str, number: int) -> Explanation | None:
        """The outcome of the message that is `number` back, counted without the one asking; 1 is the last."""

    async def of(self, chat: ChatRef, native_id: str, alone: MemberRef | None = None) -> Sequence[Explanation]:
        """The outcome of one message of `chat` and of its changes, oldest first; of the bot's own messages, of those
        that they answered. What is private to one member is told only to them, as `alone`: who reads it unseen by
        others."""
