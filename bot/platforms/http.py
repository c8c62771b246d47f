"""The HTTP platform: messages come as POST requests, what the bot says goes out as events.

One class serves two kinds of callers: programs with a token (`http`) and people on the chat page (`web`).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from weakref import WeakValueDictionary

import orjson

from bot.platforms.base import Accepted, Deliver, Limits, Outgoing, QueueFull, Receipt, SendFailed
from bot.platforms.http_callers import PRIVATE_PREFIX, Caller, Callers, Speaker
from bot.platforms.http_feed import ChatFeed, is_bots
from bot.platforms.http_names import ChatNames
from bot.platforms.http_wire import MAX_TEXT_CHARS, Posted, Refusal, bot_id, message_body, said_body
from bot.platforms.mentions import Hear
from function_calls.context import Kind, MessageContext, MessageKey, Quoted, Sender
from services.clock import Clock
from services.json_values import JsonObject
from services.refs import ChatRef, MemberRef, Role
from services.store.http_events import Event, Viewer
from services.store.ids import Ids
from services.store.port import BadUnit, Store, StoreBroken, StoreClosed, StoreError

_QUOTED_CHARS = 500
_QUEUE_FULL_SECONDS = 5


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """How much the event streams may take."""

    streams: int = 200
    """Open at once. For the next one whoever has most loses the oldest; where nobody has two more than it, it is
    refused."""
    streams_per_member: int = 8
    """Open at once for one member of the page; the oldest ends for the next one. The programs of the HTTP API share one
    token and have all `streams`."""
    poll_seconds: float = 5.0
    """Look for events of another process this often; those of this one are told at once."""
    heartbeat_seconds: float = 15.0
    """A comment after this much silence, so that both ends notice a dead connection."""
    stalled_seconds: float = 30.0
    """A client that takes nothing for so long is cut off; it comes back with its cursor."""


class HttpPlatform:
    """A ChatPlatform over HTTP."""

    limits = Limits(
        text_chars=MAX_TEXT_CHARS, sends_are_idempotent=True, sends_per_minute=600, choices=True, senders_retry=True
    )

    def __init__(
        self,
        name: str,
        account: str,
        *,
        store: Store,
        ids: Ids,
        clock: Clock,
        hear: Hear,
        callers: Callers,
        shows_members: bool = False,
        keep_events: int = 1000,
        stream_limits: StreamLimits = StreamLimits(),
    ) -> None:
        """`shows_members`: the streams also have the members' messages, under names that differ within a chat."""
        self.name = name
        self.account = account
        self.callers = callers
        self.feed = ChatFeed(name, account, store, ids, keep=keep_events)
        self.stream_limits = stream_limits
        self._store = store
        self._clock = clock
        self._hear = hear
        self._shows_members = shows_members
        self._names = ChatNames(self.feed)
        self._deliver: Deliver | None = None
        self._receiving: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def run(self, deliver: Deliver) -> None:
        """Take messages until cancelled; before and after, posts are told to come back."""
        self._deliver = deliver
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._deliver = None

    async def receive(self, caller: Caller, chat: str, posted: Posted) -> Accepted:
        """Hand a posted message to the daemon, after those of its chat that came before; durable when it returns.
        Raises Refusal."""
        self.callers.enter(caller, chat)
        speaker = self.callers.speaker(caller, chat, posted.sender)
        lock = self._receiving.get(chat)
        if lock is None:
            lock = self._receiving[chat] = asyncio.Lock()
        try:
            # One at a time: a flood in one chat adds one message to each round of the event loop and each commit.
            async with lock:
                if self._shows_members:
                    speaker = replace(speaker, name=await self._names.shown(chat, speaker.id, speaker.name))
                quoted = await self._quoted(chat, speaker, posted)
                context = self._context(chat, speaker, posted, quoted)
                return await self._hand_over(context, _shown(posted, quoted), quoted.private_to if quoted else None)
        except QueueFull as error:
            status = 503 if error.limit == "limits.queue_total" else 429
            said = f"nothing was accepted, because {error}; send it again"
            raise Refusal(status, "queue_full", said, retry_after_seconds=_QUEUE_FULL_SECONDS) from error
        except BadUnit as error:
            raise Refusal(400, "bad_request", "the message cannot be stored") from error
        except StoreError as error:
            raise _unavailable() from error

    async def send(self, outgoing: Outgoing) -> Receipt:
        chat = outgoing.chat.native
        native_id = bot_id(outgoing.key)
        private_to = outgoing.private_to.native if outgoing.private_to else None
        try:
            body = message_body(outgoing, self._clock.now().isoformat(timespec="milliseconds"))
            with self.feed.taking(chat) as event_id:
                await self._store.commit(self.feed.writes(chat, native_id, Event(event_id, body), private_to))
        except (orjson.JSONEncodeError, BadUnit, StoreBroken, StoreClosed) as error:
            raise SendFailed(f"the event of {native_id!r} was not stored: {error}", retryable=False) from error
        except StoreError as error:
            raise SendFailed(f"the event of {native_id!r} was not stored: {error}", retryable=True) from error
        return Receipt(native_id)

    async def typing(self, chat: ChatRef, status: str) -> None:
        self.feed.set_status(chat.native, status)

    async def role(self, chat: ChatRef, member: MemberRef) -> Role | None:
        return self.callers.role(chat.native, member.native)

    async def close(self) -> None:
        self.feed.end()

    def viewer(self, caller: Caller) -> Viewer:
        """Whose events the caller may see."""
        return Viewer(caller.member or "", sees_all=caller.member is None)

    async def _hand_over(self, context: MessageContext, shown: str, private_to: str | None) -> Accepted:
        if self._deliver is None:
            raise _unavailable()
        chat = context.chat.native
        if not self._shows_members:
            return await self._deliver(context, ())
        with self.feed.taking(chat) as event_id:
            event = Event(event_id, said_body(context, shown))
            return await self._deliver(context, self.feed.writes(chat, context.key.native_id, event, private_to))

    def _context(self, chat: str, speaker: Speaker, posted: Posted, quoted: _Quotation | None) -> MessageContext:
        ref = ChatRef(self.name, self.account, chat)
        kind = Kind(posted.kind)
        heard = self._hear(posted.text)
        is_choice = kind is Kind.CHOICE
        return MessageContext(
            key=MessageKey(ref, posted.id, kind),
            kind=kind,
            chat=ref,
            is_group=not chat.startswith(PRIVATE_PREFIX),
            sender=Sender(MemberRef(self.name, self.account, speaker.id), speaker.name, speaker.role),
            text=posted.text if is_choice else heard.text,
            sent_at=self._clock.now(),
            mentions=tuple(MemberRef(self.name, self.account, member) for member in dict.fromkeys(posted.mentions)),
            mentions_bot=posted.mentions_bot or heard.mentions_bot or is_choice,
            reply_to=quoted.quoted if quoted else None,
            private=quoted is not None and quoted.private_to is not None,
            chat_title=chat,
        )

    async def _quoted(self, chat: str, speaker: Speaker, posted: Posted) -> _Quotation | None:
        if posted.reply_to is None:
            return None
        found = await self.feed.find(chat, posted.reply_to, Viewer(speaker.id))
        if found is None:
            if posted.kind == "choice":
                raise Refusal(400, "bad_request", "reply_to: no such message here", field="reply_to")
            return _Quotation(Quoted(posted.reply_to, from_bot=is_bots(posted.reply_to)), {}, None)
        event: JsonObject = orjson.loads(found.body)
        sender = event.get("sender", {})
        text = str(event["text"])[:_QUOTED_CHARS]
        quoted = Quoted(posted.reply_to, str(sender.get("name", "")), text, from_bot=is_bots(posted.reply_to))
        labels = {str(each["value"]): str(each["label"]) for each in event.get("choices", ())}
        return _Quotation(quoted, labels, event.get("private_to"))


@dataclass(frozen=True, slots=True)
class _Quotation:
    quoted: Quoted
    labels: dict[str, str]
    """The labels of its choices, by value."""
    private_to: str | None
    """Who alone could read it, and alone sees the answer to it."""


def _shown(posted: Posted, quoted: _Quotation | None) -> str:
    if posted.kind == "message":
        return posted.text
    label = quoted.labels.get(posted.text) if quoted else None
    if label is None:
        raise Refusal(400, "bad_request", "text: is not one of the choices of that message", field="text")
    return label


def _unavailable() -> Refusal:
    return Refusal(503, "unavailable", "nothing was accepted; send it again", retry_after_seconds=2)
