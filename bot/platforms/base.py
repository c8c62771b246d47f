"""The port that each chat network implements: `ChatPlatform`, and a protocol for each capability that only some
networks have. `contract` tests all of it against every adapter."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from bot.platforms.markdown import plain_lines
from config.chat_settings import THREAD
from function_calls.context import Attachment, MessageContext
from function_calls.ports import Measure, ModerationRequest
from function_calls.spec import Choice
from services.refs import ChatRef, MemberRef, Role
from services.store.port import Write

if TYPE_CHECKING:
    from starlette.routing import BaseRoute


def thread_of(native: str) -> tuple[str, str]:
    """The native ids of the chat and of the thread or topic in it; the latter is empty for the chat itself. A thread is
    a chat of its own, with its own history and the settings of the chat: `-1001,45` is the thread 45 of `-1001`."""
    chat, _, thread = native.partition(THREAD)
    return chat, thread


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
    sends_per_minute: int
    """Per chat; the delivery waits instead of dropping messages."""
    sends_are_idempotent: bool = False
    """The network deduplicates sends by key, so after an unknown outcome the send may be repeated."""
    choices: bool = False
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
    catches_up: bool = False
    """Messages sent while the bot is disconnected are delivered afterwards. Otherwise they are lost."""
    edit_seconds: float | None = None
    """Age, in seconds, up to which the network lets the bot edit its messages. None: any age."""
    file_bytes: int = 0
    """Maximum size of a file that the bot can send. 0: none."""
    shows_status: bool = False
    """The network shows the text of `typing`, so long turns post no status message."""

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
    replaces: str | None = None
    """Native id of an earlier message of the bot that this one replaces, where the network can edit."""

    @property
    def plain(self) -> str:
        """The text without formatting."""
        return "\n".join(plain_lines(self.text)) if self.markdown else self.text

    @property
    def uploads(self) -> list[Attachment]:
        """Files to upload, whose content is in their `data:` URLs."""
        return [one for one in self.attachments if one.url.startswith("data:")]

    @property
    def links(self) -> str:
        """The other files as lines of text, each after a line end; empty if there are none."""
        return "".join(f"\n{one.name}: {one.url}" for one in self.attachments if one.url.startswith("https:"))


@dataclass(frozen=True, slots=True)
class Receipt:
    """The network has accepted the message."""

    native_id: str


class SendFailed(Exception):
    """One send failed. `retryable`: another attempt may succeed; `unknown_outcome`: it may have arrived. With
    `retry_after_seconds` the network rejected it because of its rate limit, and it does not count as an attempt;
    `for_account`: the limit applies to all chats of the account."""

    status = 0
    """Status of HTTP with which the network rejected it; 0 otherwise."""

    def __init__(
        self,
        message: str,
        *,
        retryable: bool,
        retry_after_seconds: float | None = None,
        unknown_outcome: bool = False,
        for_account: bool = False,
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.retry_after_seconds = retry_after_seconds
        self.unknown_outcome = unknown_outcome
        self.for_account = for_account


class FileUnavailable(Exception):
    """A file of a message cannot be read. The message says why, in words for operators."""


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


def is_here(platform: object) -> bool:
    """Whether this process receives and sends for the platform: in a cluster, one process at a time does."""
    return getattr(platform, "is_here", True)


@dataclass(frozen=True, slots=True)
class CommandHint:
    """A command for the menu of a network."""

    word: str
    """With its slash; in the language of the menu if the command has a word in it."""
    about: str
    """Description of its effect, on one line."""
    usage: str = ""
    """The command with its parameters."""


@runtime_checkable
class Editing(Protocol):
    """Capability of a network on which the bot can change and delete its messages."""

    async def edit(self, native_id: str, outgoing: Outgoing) -> None:
        """Replace text and choices of the bot's message `native_id` by those of `outgoing`. An edit without changes
        succeeds. Raises SendFailed, not retryable if the message is gone or too old."""

    async def delete(self, chat: ChatRef, native_id: str) -> None:
        """Delete the bot's message `native_id`; succeeds if it is gone already. Raises SendFailed."""


@runtime_checkable
class Elsewhere(Protocol):
    """An account of a cluster, which another process may hold."""

    is_here: bool

    def show_status(self, turn_id: int, outgoing: Outgoing) -> None:
        """Let the holder post or change the status message of a turn; best effort."""


@runtime_checkable
class Reacting(Protocol):
    """Capability of a network on which the bot can react to messages."""

    async def react(self, chat: ChatRef, native_id: str, emoji: str) -> None:
        """Add the bot's reaction `emoji` to a message; empty removes it. Raises SendFailed."""


@runtime_checkable
class Files(Protocol):
    """Capability of a network with files in inbound messages."""

    async def read_file(self, attachment: Attachment, max_bytes: int) -> bytes:
        """The content of a file of an inbound message. Raises FileUnavailable if it is larger than `max_bytes`: before
        the download if the network names a larger size, else as soon as more has arrived."""


@runtime_checkable
class Membership(Protocol):
    """Capability of a network that lists members, and lets the bot leave."""

    async def members(self, chat: ChatRef) -> Sequence[MemberRef]:
        """Members of `chat` without the bot, as many as the network lists; empty if it does not. Raises SendFailed."""

    async def leave(self, chat: ChatRef) -> None:
        """Leave `chat`; succeeds if the bot is not in it. Raises SendFailed."""


@runtime_checkable
class Moderating(Protocol):
    """Capability of a network on which the bot can moderate."""

    measures: frozenset[Measure]
    """Measures that the network has, for a bot with the rights."""

    async def moderate(self, request: ModerationRequest) -> str:
        """Take one of `measures`; returns when the network has confirmed it, with the link for Measure.LINK, else an
        empty string. Raises SendFailed, not retryable if the network rejected the measure."""


@runtime_checkable
class CommandMenus(Protocol):
    """Capability of a network that shows the bot's commands in a menu."""

    async def show_commands(self, menus: Mapping[str, Sequence[CommandHint]]) -> None:
        """Show these commands, by language (`en`, `zh`; the first is the default), until the next call. Commands that
        the network does not permit in a menu are left out. Raises SendFailed."""


@runtime_checkable
class Webhooks(Protocol):
    """Capability of a network that sends events to the bot's web server."""

    def routes(self) -> Sequence[BaseRoute]:
        """Routes to serve, below `/platforms/<name>/<account>`. They authenticate their requests themselves."""


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
