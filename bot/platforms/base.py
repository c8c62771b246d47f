"""The port that each chat network implements. tests/contracts runs against all adapters."""

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
    """Outcome of a delivered event. Both values mean that it is durable, so the platform may acknowledge it."""

    NEW = "new"
    DUPLICATE = "duplicate"


class QueueFull(Exception):
    """A queue limit is reached, and nothing was accepted. Raised only for platforms with `senders_retry`."""

    def __init__(self, limit: str) -> None:
        """`limit`: the settings key of the limit."""
        super().__init__(f"{limit} is reached")
        self.limit = limit


Deliver = Callable[[MessageContext, Sequence[Write]], Awaitable[Accepted]]
"""Hand one event to the daemon. The writes (a cursor, an event row) are committed with it, for a duplicate too, so they
have to be idempotent. Raises StoreError or QueueFull if nothing was accepted; then the platform must not acknowledge
the event."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Capabilities of a network."""

    text_chars: int
    """Maximum length of a message."""
    sends_are_idempotent: bool
    """The network deduplicates sends by key, so after an unknown outcome the send may be repeated."""
    sends_per_minute: int
    """Per chat; the delivery waits instead of dropping messages."""
    choices: bool
    """The network has buttons. Otherwise choices become text."""
    attachments: bool = False
    bots_are_marked: bool = True
    """The network marks bots. Otherwise a member that replies as fast as a program may be an unmarked bot, and is not
    answered indefinitely."""
    senders_retry: bool = False
    """Senders notice a rejection and retry. Otherwise a message that fits in no queue is accepted and dropped with
    a notice."""
    clients_keep_slashes: bool = False
    """Clients do not send lines that begin with a slash, so commands follow the bot's name."""
    only_bot: bool = False
    """Chats have no other bots, so a mistyped command was meant for this one."""
    is_paced: bool = False
    """All chats share one slow rate: the delivery alternates between the members of a chat and limits their queues."""
    line_bytes: int = 0
    """Bytes of text per line, if lines count towards the rate. 0: a message counts as one line."""
    max_lines: int = 0
    """Maximum number of lines of a reply; the rest is cut, with a note, and a message's brief text is preferred. 0: no
    limit."""
    markdown: bool = False
    """The network shows Markdown."""

    @property
    def for_models(self) -> str:
        """Sentence about the texts that the network can show."""
        lines = f", at most {self.max_lines} lines of them" if self.max_lines else ""
        return f"Replies are shown {'with Markdown' if self.markdown else 'as plain text'}{lines}."


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One message for the network, already split and within its limits."""

    chat: ChatRef
    key: str
    """The idempotency key, the same for every attempt."""
    text: str
    reply_to: str | None = None
    mentions: tuple[MemberRef, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    choices: tuple[Choice, ...] = ()
    private_to: MemberRef | None = None
    """The only recipient; the platform finds the private chat. None for a public message."""
    closes: tuple[str, ...] = ()
    """Native ids of earlier messages whose choices become invalid."""
    markdown: bool = False
    """The text is Markdown. A network without formatting shows `plain_lines` of it."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """The network has accepted the message."""

    native_id: str


class SendFailed(Exception):
    """One send failed. `retryable`: another attempt may succeed; `unknown_outcome`: it may have arrived."""

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
        """Receive until cancelled, reconnecting as needed."""

    async def send(self, outgoing: Outgoing) -> Receipt:
        """Send one message. Raises only SendFailed for problems of the network."""

    async def typing(self, chat: ChatRef, status: str) -> None:
        """Show a typing indicator, with a few words if the network can; empty clears it. Best effort."""

    async def role(self, chat: ChatRef, member: MemberRef) -> Role | None:
        """The member's current role; None if the network does not provide it."""

    async def close(self) -> None:
        """Release what `run` did not."""


@dataclass(frozen=True, slots=True)
class LinkState:
    """State of a platform's connection."""

    is_up: bool
    words: str
    """Status for operators, on one line."""
    losses: int
    """Connections lost since the start."""


@runtime_checkable
class Linked(Protocol):
    """Additional port of a platform that keeps a connection to its network."""

    async def until_reachable(self, outgoing: Outgoing, created_ms: int) -> None:
        """Wait until the recipient of `outgoing` is reachable, or is known not to be; then `send` raises the reason. A
        message that waits here has not been sent, so its outcome is never unknown. `created_ms`: when it was put into
        the outbox; its expiry counts from there, across restarts."""

    def link(self) -> LinkState:
        """The current state of the connection."""
