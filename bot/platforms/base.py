"""What a chat network is to the daemon. One file each beside this one; tests/contracts runs all of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

from function_calls.context import Attachment, MessageContext
from function_calls.spec import Choice
from services.refs import ChatRef, MemberRef, Role
from services.store.port import Write


class Accepted(StrEnum):
    """What became of a delivered event. Every value means: durable, so the platform may be told it has arrived."""

    NEW = "new"
    DUPLICATE = "duplicate"


class QueueFull(Exception):
    """A limit of what may wait is reached, and nothing was accepted. Raised only for platforms with `senders_retry`."""

    def __init__(self, limit: str) -> None:
        """`limit`: its settings key."""
        super().__init__(f"{limit} is reached")
        self.limit = limit


Deliver = Callable[[MessageContext, Sequence[Write]], Awaitable[Accepted]]
"""Hand one event to the daemon. The writes (a cursor, an event row) are in the same transaction as the accept, and
are executed for a duplicate too, so they have to be idempotent. Raises StoreError or QueueFull when nothing was
accepted: then the platform must not be told that it arrived."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one network can do."""

    text_chars: int
    """Longest text of one message."""
    sends_are_idempotent: bool
    """The network drops a second send with the same key, so an unknown outcome may be sent again."""
    sends_per_minute: int
    """For one chat; delivery waits, it never drops."""
    choices: bool
    """Has buttons. Elsewhere choices are words in the text."""
    attachments: bool = False
    bots_are_marked: bool = True
    """Whoever answers as fast as a program is a person all the same, or a script that may. Elsewhere it may be a bot
    that nothing marks as one, and is not answered for ever."""
    senders_retry: bool = False
    """Senders hear that a message was not accepted and send it again. Elsewhere one that no queue takes is accepted,
    ends at once, and the chat is told."""
    clients_keep_slashes: bool = False
    """A line that begins with a slash never leaves a member's client: a command stands behind the bot's name."""
    is_paced: bool = False
    """Sends to all chats share one slow rate: delivery takes turns between the members of a chat, and limits what waits
    for each of them."""
    line_bytes: int = 0
    """Where lines count towards the rate: bytes of text that fit on one. 0: a message counts as one line."""
    max_lines: int = 0
    """The longest reply in lines; the rest is cut, with a note, and a brief text is preferred where a message has one.
    0: no limit."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One message on the wire: already split and within the limits."""

    chat: ChatRef
    key: str
    """The idempotency key: the same for every attempt."""
    text: str
    reply_to: str | None = None
    mentions: tuple[MemberRef, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    choices: tuple[Choice, ...] = ()
    private_to: MemberRef | None = None
    """Set when it is for one member alone; the platform finds the private chat."""
    closes: tuple[str, ...] = ()
    """The native ids of earlier messages whose choices lead nowhere any more."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """The network has it."""

    native_id: str


class SendFailed(Exception):
    """One attempt failed. `retryable` says whether another may help; `unknown_outcome` that it may have arrived."""

    def __init__(
        self,
        message: str,
        *,
        retryable: bool,
        retry_after_seconds: float | None = None,
        unknown_outcome: bool = False,
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.retry_after_seconds = retry_after_seconds
        self.unknown_outcome = unknown_outcome


class ChatPlatform(Protocol):
    """One network, with one account of the bot."""

    name: str
    account: str
    limits: Limits

    async def run(self, deliver: Deliver) -> None:
        """Receive until cancelled, reconnecting by itself."""

    async def send(self, outgoing: Outgoing) -> Receipt:
        """Send one message. Raises SendFailed, and nothing else that the network can cause."""

    async def typing(self, chat: ChatRef, status: str) -> None:
        """Show that an answer is on its way, with a few words where the network can; empty ends it. Best effort."""

    async def role(self, chat: ChatRef, member: MemberRef) -> Role | None:
        """The member's role now; None when the network cannot tell."""

    async def close(self) -> None:
        """Free what `run` did not."""


@dataclass(frozen=True, slots=True)
class LinkState:
    """The connection of a platform that holds one."""

    is_up: bool
    words: str
    """What an operator has to know, on one line."""
    losses: int
    """Connections lost since the start."""


@runtime_checkable
class Linked(Protocol):
    """What a platform has beside ChatPlatform that reaches its network over a connection it has to keep up."""

    async def until_reachable(self, outgoing: Outgoing, said_at_ms: int) -> None:
        """Return when whoever `outgoing` is for can be written to, or it is plain that they cannot: `send` then says
        why. A message that waits here has not been sent, so nobody has to ask later whether it arrived. `said_at_ms`
        is when it was put into the outbox: how long it is kept counts from there, across starts."""

    def link(self) -> LinkState:
        """How the connection is now."""
