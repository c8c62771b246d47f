"""Parts that every adapter of a network needs: a supervised connection, a durable cursor, and safe acceptance."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, TypeVar

import orjson
import structlog

from bot.platforms.adapter import CannotOpen, Host
from bot.platforms.base import Deliver, Limits, LinkState, Outgoing, SendFailed
from bot.platforms.mentions import mention_parser
from config.sections.networks import NetworkSettings
from function_calls.context import MessageContext
from services.background import Background
from services.clock import Clock
from services.refs import ChatRef, MemberRef
from services.retry import RetryPolicy
from services.store.ids import Ids
from services.store.port import BadUnit, Store, StoreError, StoreFull, Write
from services.store.turns import audit, outbox

_log = structlog.get_logger("platforms")
_STABLE_SECONDS = 60.0
"""After a connection of this length, the reconnect delay starts over."""
_FULL_DISK_SECONDS = 5.0
_STORE_SECONDS = 1.0
_EVENT_CHARS = 10_000
_ATTEMPTS = 32
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class CannotConnect(Exception):
    """The network rejects the bot, or does not answer. The message says why, in words for operators."""


class Rejected(CannotConnect):
    """The network rejects the settings of the account, so the next attempt follows after the longest delay."""


class Connection:
    """Keeps one account connected: reconnects with growing delays, and restarts a connection on which nothing was heard
    for too long."""

    def __init__(
        self,
        network: str,
        clock: Clock,
        *,
        silence_seconds: float,
        first_delay_seconds: float = 1.0,
        longest_delay_seconds: float = 60.0,
        jitter: Callable[[float, float], float] = random.uniform,
    ) -> None:
        """`network`: `name:account`, for logs. `silence_seconds`: call `heard` at least this often while connected.
        `jitter(low, high)` draws the part of each delay that is waited."""
        self._network = network
        self._clock = clock
        self._silence_seconds = silence_seconds
        self._delays = RetryPolicy(_ATTEMPTS, first_delay_seconds, longest_delay_seconds)
        self._jitter = jitter
        self._heard_at = 0.0
        self._is_up = asyncio.Event()
        self._words = "not connected yet"
        self._losses = 0
        self.unreadable = 0
        """Events since the start that could not be read."""

    async def keep(self, connect: Callable[[], Awaitable[None]]) -> None:
        """Run `connect` until cancelled, again whenever it ends or raises. It calls `up` when connected."""
        failures = 0
        while True:
            began = self._clock.monotonic()
            is_rejected = False
            try:
                await self._supervised(connect)
                problem = "the connection ended"
            except (CannotConnect, SendFailed) as error:
                problem, is_rejected = str(error), isinstance(error, Rejected)
            except Exception as error:  # noqa: BLE001 - errors of an SDK must not end the daemon
                _log.warning("connection_failed", network=self._network, exc_info=error)
                problem = f"{type(error).__name__} in the connection"
            was_up = self._is_up.is_set()
            self._is_up.clear()
            self._losses += 1
            is_stable = was_up and self._clock.monotonic() - began >= _STABLE_SECONDS
            failures = 1 if is_stable else min(failures + 1, _ATTEMPTS)
            delay = self._jitter(0.5, 1.0) * self._delays.wait_after(_ATTEMPTS if is_rejected else failures)
            self._words = f"disconnected: {problem}; connecting again in {delay:.0f} s"
            _log.warning("disconnected", network=self._network, because=problem, seconds=round(delay, 1))
            await self._clock.sleep(delay)

    async def _supervised(self, connect: Callable[[], Awaitable[None]]) -> None:
        """Run `connect`; raises what it raises, and CannotConnect after too much silence."""
        self.heard()
        async with alongside(connect(), self._silence()) as (running, watching):
            await asyncio.wait([running, watching], return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
                return
            raise CannotConnect(f"nothing was heard for {self._silence_seconds:.0f} s")

    async def _silence(self) -> None:
        """Return when nothing was heard for too long."""
        while (left := self._heard_at + self._silence_seconds - self._clock.monotonic()) > 0:
            await self._clock.sleep(left)

    def heard(self) -> None:
        """Note a sign of life of the network."""
        self._heard_at = self._clock.monotonic()

    def up(self) -> None:
        """Note that the connection works."""
        self.heard()
        if not self._is_up.is_set():
            self._is_up.set()
            _log.info("connected", network=self._network)

    def down(self, words: str) -> None:
        """Note that the SDK has lost the connection and is restoring it by itself."""
        if self._is_up.is_set():
            self._is_up.clear()
            self._losses += 1
            self._words = f"disconnected: {words}"
            _log.warning("disconnected", network=self._network, because=words)

    async def until_up(self) -> None:
        """Return when connected."""
        await self._is_up.wait()

    def link(self) -> LinkState:
        """The current state, with the number of unreadable events."""
        words = "connected" if self._is_up.is_set() else self._words
        if self.unreadable:
            words = f"{words}; {self.unreadable} events could not be read: see event_unreadable in the log"
        return LinkState(self._is_up.is_set(), words, self._losses)


class Cursor:
    """Position in a network's events that survives restarts."""

    def __init__(self, name: str, store: Store, clock: Clock) -> None:
        """`name`: `<network>:<account>`, with more after it if the account has several cursors."""
        self._name = f"platform:{name}"
        self._store = store
        self._clock = clock

    async def read(self) -> str | None:
        """The position; None at the first start. Raises StoreError."""
        rows = await self._store.read(audit.get(self._name))
        return str(rows[0]["value"]) if rows else None

    async def keep(self, value: str) -> None:
        """Store the position durably without an event: at the first start, before events are read, so that one that
        is not accepted is read again. Raises StoreError."""
        await self._store.commit([self.at(value)])

    def at(self, value: str) -> Write:
        """The write that stores `value`, to be committed with the event that it follows."""
        return audit.advance(self._name, value, self._clock.now_ms())


class Acceptance:
    """Hands the events of one account to the daemon, in order, each durable before the next."""

    def __init__(self, network: str, store: Store, ids: Ids, clock: Clock, connection: Connection) -> None:
        self._network = network
        self._store = store
        self._ids = ids
        self._clock = clock
        self._connection = connection

    async def take(
        self, deliver: Deliver, read: Callable[[], Iterable[MessageContext]], raw: str, cursor: Write | None = None
    ) -> None:
        """Accept the events that `read` returns, and `cursor` with the last one. An event that cannot be read or stored
        becomes an audit row with `raw`, its source, so that no later one waits for it. Waits while the disk is full.
        Raises StoreError if nothing was accepted; the same events must then be offered again."""
        self._connection.heard()
        try:
            contexts = list(read())
        except Exception as error:  # noqa: BLE001 - any event that the parser does not expect
            _log.error("event_unreadable", network=self._network, exc_info=error)
            await self._set_aside(raw, cursor)
            return
        if not contexts and cursor is not None:
            self._store.post([cursor])
        for number, context in enumerate(contexts, start=1):
            writes = [cursor] if cursor is not None and number == len(contexts) else []
            try:
                await self._deliver(deliver, context, writes)
            except Exception as problem:
                if isinstance(problem, StoreError) and not isinstance(problem, BadUnit):
                    raise
                _log.error("event_unreadable", network=self._network, exc_info=problem)
                await self._set_aside(raw, cursor if writes else None)

    async def until_stored(self, accept: Callable[[], Awaitable[None]]) -> None:
        """Run `accept`, which takes an event, again while the store fails: for networks that do not repeat events."""
        while True:
            try:
                return await accept()
            except StoreError as problem:
                _log.error("event_not_accepted", network=self._network, problem=str(problem))
                self._connection.heard()
                await self._clock.sleep(_STORE_SECONDS)

    async def _deliver(self, deliver: Deliver, context: MessageContext, writes: list[Write]) -> None:
        while True:
            try:
                await deliver(context, writes)
            except StoreFull as problem:
                _log.error("waits_for_disk_space", network=self._network, problem=str(problem))
                self._connection.heard()
                await self._clock.sleep(_FULL_DISK_SECONDS)
            else:
                return

    async def _set_aside(self, raw: str, cursor: Write | None) -> None:
        """Store `raw` for operators, with `cursor`. Raises StoreError."""
        self._connection.unreadable += 1
        note = audit.note(
            id=self._ids.next(),
            at_ms=self._clock.now_ms(),
            actor=self._network,
            chat="",
            action="event_unreadable",
            detail=raw.encode("utf-8", "replace").decode()[:_EVENT_CHARS].replace("\0", "\ufffd"),
        )
        with suppress(BadUnit):
            await self._store.commit([note, *([cursor] if cursor is not None else [])])


@asynccontextmanager
async def alongside(*work: Awaitable[Any]) -> AsyncIterator[Sequence[asyncio.Future[Any]]]:
    """Run `work` during the block, as the tasks that this yields. They are cancelled at its end."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def probing(close: Callable[[], Awaitable[None]], remedy: str = "") -> AsyncIterator[None]:
    """For requests of a probe, with `close` at the end. Raises CannotOpen if they fail, with `remedy` if the failure
    itself does not name one."""
    try:
        yield
    except (SendFailed, CannotConnect) as problem:
        raise CannotOpen(f"{problem}. {remedy}" if remedy else str(problem)) from None
    finally:
        await close()


class ConnectedPlatform:
    """Base class of platforms with a supervised connection, which implements `Linked`. A subclass sets `name` and
    `limits` and defines `_connected`, `send`, `role` and `close`."""

    name: str
    limits: Limits

    def __init__(self, settings: NetworkSettings, host: Host, *, silence_seconds: float, **delays: Any) -> None:
        """`silence_seconds`, `delays`: see `Connection`."""
        self.account, self._host, self._clock = settings.account, host, host.clock
        network = f"{self.name}:{self.account}"
        self._connection = Connection(network, host.clock, silence_seconds=silence_seconds, **delays)
        self._cursor = self._stored()
        self._acceptance = Acceptance(network, host.store, host.ids, host.clock, self._connection)
        self._hear = mention_parser(host.names)
        self._background = Background()

    def _stored(self, name: str = "") -> Cursor:
        """A position or other value of the account that survives restarts. `name`: empty for the main cursor."""
        suffix = f":{name}" if name else ""
        return Cursor(f"{self.name}:{self.account}{suffix}", self._host.store, self._clock)

    def _member(self, native: str) -> MemberRef:
        return MemberRef(self.name, self.account, native)

    def _button(self, outgoing: Outgoing, number: int, most_bytes: int) -> str:
        """Data for the button of a choice: its value, or a reference to the outbox if the value is too long."""
        value = outgoing.choices[number].value
        fits = len(value.encode()) <= most_bytes and not value.startswith("#")
        return value if fits else f"#{number} {outgoing.key}"

    async def _pressed(self, event: MessageContext) -> str:
        """The value of the button whose data is the text of `event`. Empty if it refers to a message that is no longer
        in the outbox, or was not sent to this chat or member: members can send any data. Raises StoreError."""
        number, _, key = event.text.removeprefix("#").partition(" ")
        if not (event.text.startswith("#") and number.isdecimal()):
            return event.text
        rows = await self._host.store.read(outbox.body(key))
        sent = orjson.loads(rows[0]["body"]) if rows else {}
        recipient, choices = sent.get("private_to", sent.get("chat")), sent.get("choices", ())
        is_here = recipient == (event.sender.ref if "private_to" in sent else event.chat).key
        return str(choices[int(number)][1]) if is_here and int(number) < len(choices) else ""

    async def _repeat(self, action: Callable[[], Awaitable[object]], seconds: float) -> None:
        """Call `action` every `seconds` until cancelled, whether it fails or not."""
        while True:
            with suppress(SendFailed, ConnectionError):
                await action()
            await self._clock.sleep(seconds)

    async def _patiently(self, request: Callable[[], Awaitable[_Value]], most_seconds: float) -> _Value:
        """The result of `request`, repeated while it exceeds a rate limit, at least every `most_seconds`; for requests
        before the connection is up. Raises SendFailed."""
        while True:
            self._connection.heard()
            try:
                return await request()
            except SendFailed as problem:
                if problem.retry_after_seconds is None:
                    raise
                await self._clock.sleep(min(problem.retry_after_seconds, most_seconds))

    @contextmanager
    def _leaving_gaps(self, chat: str) -> Iterator[None]:
        """Log that messages of `chat` cannot be read, instead of reconnecting forever."""
        try:
            yield
        except SendFailed as problem:
            if problem.retryable:
                raise
            _log.error("gap_not_filled", network=self.name, chat=chat, problem=str(problem))

    async def run(self, deliver: Deliver) -> None:
        """Receive until cancelled, reconnecting as needed."""
        await self._connection.keep(lambda: self._connected(deliver))

    async def _connected(self, deliver: Deliver) -> None:
        """Connect and receive; the caller reconnects when it ends or raises."""
        raise NotImplementedError

    async def typing(self, chat: ChatRef, status: str) -> None:
        """Networks without a typing indicator show nothing."""

    async def until_reachable(self, outgoing: Outgoing, created_ms: int) -> None:
        """Wait until connected."""
        await self._connection.until_up()

    def link(self) -> LinkState:
        """The state of the connection."""
        return self._connection.link()
