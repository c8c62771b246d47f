"""The IRC platform: one network per instance."""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import structlog

from bot.platforms.base import Deliver, Limits, LinkState, Outgoing, Receipt, SendFailed
from bot.platforms.irc.inbound import OWN_IDS, REPLY_TAG, Inbound
from bot.platforms.irc.registration import RegistrationError
from bot.platforms.irc.session import Absent, Session
from bot.platforms.irc.state import ConfiguredChannels
from bot.platforms.irc.text import Ctcp, Interrupted, Progress, ctcp, ctcp_answer, lines_of, without_spaces
from bot.platforms.irc.wire import Connection, ConnectionLost, Line, encode, one_word
from config.sections.irc import BY_NICK, IrcSettings
from function_calls.context import MessageContext
from services.clock import Clock, Deadlines
from services.refs import ChatRef, MemberRef, Role
from services.retry import RetryPolicy
from services.store.port import BadUnit, Store, StoreError, StoreFull
from services.store.turns import audit

_log = structlog.get_logger("irc")
_WAITING = 2000
"""Limit of queued messages; beyond it, reading stops, and the server has to wait."""
_FULL_DISK_SECONDS = 5.0
_LAST_SECONDS = 5.0


class InboundQueue:
    """The queue from one network to the daemon."""

    def __init__(self, network: str, clock: Clock) -> None:
        self._network = network
        self._clock = clock
        self._waiting: asyncio.Queue[MessageContext] = asyncio.Queue(_WAITING)
        self._takers = 0
        self._refused = 0

    async def put(self, context: MessageContext) -> None:
        """Queue `context`. If no consumer runs because the daemon is stopping, it is only counted as lost, since the
        network does not resend it."""
        if self._takers:
            await self._waiting.put(context)
        else:
            self._refused += 1

    async def run(self, deliver: Deliver, connection: asyncio.Task[None]) -> None:
        """Deliver until cancelled, then the rest of the queue. Raises the exception that ends the task `connection`."""
        self._takers += 1
        taking = asyncio.create_task(self._take(deliver))
        try:
            await asyncio.wait([taking, connection], return_when=asyncio.FIRST_COMPLETED)
            for ended in (taking, connection):
                if ended.done() and not ended.cancelled():
                    ended.result()
        finally:
            self._takers -= 1
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_SECONDS):
                    await self._waiting.join()
            taking.cancel()
            await asyncio.gather(taking, return_exceptions=True)

    def report(self) -> None:
        """Log the number of lost messages."""
        lost = self._refused + self._waiting.qsize()
        if lost:
            _log.warning("irc_not_taken", network=self._network, messages=lost, because="the daemon was ending")

    async def _take(self, deliver: Deliver) -> None:
        while True:
            context = await self._waiting.get()
            try:
                await self._deliver(deliver, context)
            finally:
                self._waiting.task_done()

    async def _deliver(self, deliver: Deliver, context: MessageContext) -> None:
        while True:
            try:
                await deliver(context, ())
            except StoreFull as problem:
                _log.error("irc_waits_for_room", network=self._network, problem=str(problem))
                await self._clock.sleep(_FULL_DISK_SECONDS)
            except BadUnit as problem:
                _log.error("irc_message_cannot_be_stored", network=self._network, problem=str(problem))
                return
            except StoreError as problem:
                # The process is about to end.
                _log.error("irc_message_not_taken", network=self._network, problem=str(problem))
                return
            else:
                return


_EVERY_SECONDS = 60.0
"""A minute of error in the length of a gap is harmless, and avoids a write per line."""


class Presence:
    """Stored time of the last connection to one network."""

    def __init__(self, network: str, store: Store, clock: Clock) -> None:
        self._name = f"irc.present:{network}"
        self._store = store
        self._clock = clock
        self._noted_at = float("-inf")

    async def seconds_away(self) -> float | None:
        """Seconds since an earlier process was connected; None if none ever was. Raises StoreError."""
        rows = await self._store.read(audit.get(self._name))
        return max(self._clock.now_ms() - int(rows[0]["value"]), 0) / 1000 if rows else None

    def note(self, *, at_once: bool = False) -> None:
        """Store the current time as connected, at most once a minute unless `at_once`."""
        now, now_ms = self._clock.monotonic(), self._clock.now_ms()
        if at_once or now - self._noted_at >= _EVERY_SECONDS:
            self._noted_at = now
            self._store.post([audit.advance(self._name, str(now_ms), now_ms)])


_MOST_NICKS = 2000


class Sending:
    """Sends messages. Outlives connections: keeps the progress of interrupted messages and nicks of private chats."""

    def __init__(self, inbound: Inbound, channels: ConfiguredChannels) -> None:
        self._inbound = inbound
        self._channels = channels
        self._interrupted = Interrupted()
        self._private_nicks: OrderedDict[str, str] = OrderedDict()

    def wrote_in_private(self, identity: str, nick: str) -> None:
        """Remember the nick of a member who wrote in private."""
        self._private_nicks[identity] = nick
        self._private_nicks.move_to_end(identity)
        if len(self._private_nicks) > _MOST_NICKS:
            self._private_nicks.popitem(last=False)

    async def send(self, session: Session, outgoing: Outgoing) -> Receipt:
        """Send the lines of `outgoing` that have not arrived yet. Raises SendFailed."""
        target = await self._target(session, outgoing)
        progress = self._interrupted.of(outgoing.key)
        addressees = self._addressees(session, outgoing, target)
        tags = self._reply_tags(session, outgoing)
        for line, piece in lines_of(outgoing, progress.sent_text, addressees, lambda: session.room_bytes(target)):
            native_id = await session.say(target, line, tags) or self._inbound.own_id()
            self._inbound.remember_own(native_id, session.state.nick, line)
            progress = Progress(progress.sent_text + without_spaces(piece), progress.first_id or native_id)
            self._interrupted.keep(outgoing.key, progress)
            tags = {}
        self._interrupted.forget(outgoing.key)
        return Receipt(progress.first_id or self._inbound.own_id())

    def is_reachable(self, session: Session, chat: str) -> bool:
        """Whether a message to `chat` can be sent, or is known to fail."""
        channel = channel_of(session, chat)
        if not channel or session.is_in(channel):
            return True
        return self._channels.problem(channel, session.state) != ""

    def waits_for_people_until(self, session: Session, chat: str) -> float:
        """Monotonic time until which messages to `chat` wait for other members; in the past if they need not."""
        channel = channel_of(session, chat)
        if not channel or not session.is_in(channel):
            return float("-inf")
        return self._channels.waits_for_people_until(channel, session.state)

    async def nick(self, session: Session, identity: str) -> str:
        """The current nick of `identity`; empty if offline. Raises TimeoutError if the server does not answer."""
        nick = session.state.nick_of(identity)
        if nick:
            return nick
        if identity.startswith(BY_NICK):
            nick = self._private_nicks.get(identity, identity.removeprefix(BY_NICK))
            if not one_word(nick) or session.state.features.is_channel(nick):
                return ""
            # The holder of the nick may have logged in to another account.
            return nick if session.state.identity_of(nick) == identity else ""
        # The nick may belong to another user by now.
        nick = self._private_nicks.get(identity, identity)
        account = await session.account_of(nick)
        return nick if account and session.state.features.fold(account) == identity else ""

    async def is_there(self, session: Session, identity: str) -> bool:
        """Whether a private message would reach `identity` now. Raises TimeoutError if the server does not answer."""
        nick = await self.nick(session, identity)
        if not nick or not identity.startswith(BY_NICK) or session.state.nick_of(identity):
            return nick != ""
        return await session.who_has(nick) == ""

    async def _target(self, session: Session, outgoing: Outgoing) -> str:
        """The target of the lines: the channel's name, or the current nick of the member. Raises SendFailed if the bot
        is not in the channel or the member is not there; retryable if that may change soon."""
        channel = channel_of(session, outgoing.chat.native)
        if channel and outgoing.private_to is None:
            if session.is_in(channel):
                return session.state.channels[session.state.features.fold(channel)].name
            problem = self._channels.problem(channel, session.state)
            why = "platforms.irc does not name it" if problem is None else problem or "it is being joined"
            raise SendFailed(f"the bot is not in {channel}: {why}", retryable=problem == "")
        identity = outgoing.chat.native if outgoing.private_to is None else outgoing.private_to.native
        try:
            nick = await self.nick(session, identity)
        except TimeoutError:
            raise SendFailed("the server did not say who has the account", retryable=True) from None
        if not nick:
            raise SendFailed(f"{identity!r} is not there", retryable=False)
        return nick

    def _addressees(self, session: Session, outgoing: Outgoing, target: str) -> list[str]:
        """The nicks in front of the text, in a channel: of the sender it answers and the members it mentions; unknown
        members are left out."""
        if not session.state.features.is_channel(target):
            return []
        answered = self._inbound.known(outgoing.reply_to) if outgoing.reply_to else None
        identities = [answered.identity] if answered and not answered.from_bot else []
        identities += [member.native for member in outgoing.mentions]
        return [nick for nick in map(session.state.nick_of, dict.fromkeys(identities)) if nick]

    def _reply_tags(self, session: Session, outgoing: Outgoing) -> dict[str, str]:
        answered = outgoing.reply_to or ""
        is_theirs = answered and not answered.startswith(OWN_IDS)
        return {REPLY_TAG: answered} if is_theirs and "message-tags" in session.state.caps else {}


def channel_of(session: Session, native: str) -> str:
    """`native` if it is a channel, else an empty string."""
    return native if session.state.features.is_channel(native) and one_word(native) else ""


_ANSWERS = 3
_WITHIN_SECONDS = 60.0
_TYPING_SECONDS = 3.0
"""Minimum interval of typing notifications; clients remove one after six seconds."""
_MOST_TARGETS = 1000
_LONGEST = 100


class Courtesies:
    """Answers CTCP requests, rate-limited, and sends typing notifications."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._answered: list[float] = []
        self._typing_at: dict[str, float] = {}

    def answer(self, line: Line, session: Session) -> None:
        """Answer the CTCP request in `line`, if it is known and private. At most three per minute are answered."""
        if line.command != "PRIVMSG" or "!" not in line.source or not one_word(line.nick):
            return
        request = ctcp(line.param(1))
        if request is None or session.state.is_me(line.nick) or not session.state.is_me(line.param(0)):
            return
        text = self._text(request)
        now = self._clock.monotonic()
        self._answered = [at for at in self._answered if now - at < _WITHIN_SECONDS]
        if text is None or len(self._answered) >= _ANSWERS:
            return
        self._answered.append(now)
        session.if_there_is_room(encode("NOTICE", line.nick, ctcp_answer(request.command, text)))

    def typing(self, session: Session, target: str, *, is_on: bool) -> None:
        """Send a typing notification for `target`, if the server relays it. At most one per _TYPING_SECONDS, and
        dropped if the rate limit has no room."""
        if "message-tags" not in session.state.caps:
            return
        now = self._clock.monotonic()
        if is_on and now - self._typing_at.get(target, float("-inf")) < _TYPING_SECONDS:
            return
        if not is_on and target not in self._typing_at:
            return
        if is_on:
            self._typing_at[target] = now
            if len(self._typing_at) > _MOST_TARGETS:
                self._typing_at.pop(next(iter(self._typing_at)))
        else:
            del self._typing_at[target]
        session.if_there_is_room(encode("TAGMSG", target, tags={"+typing": "active" if is_on else "done"}))

    def _text(self, request: Ctcp) -> str | None:
        match request.command:
            case "VERSION":
                return "Rollcall"
            case "PING":
                return request.text[:_LONGEST]
            case "TIME":
                return self._clock.now().strftime("%Y-%m-%d %H:%M:%S UTC")
        return None


_LINE_BYTES = 400
"""Approximate text per line: the server's limit of 512 without the prefix and target."""
_STABLE_SECONDS = 60.0
"""After a connection of this length, the reconnect delay starts over."""
_MAY_OPEN_A_CHANNEL = frozenset({"366", "JOIN", "KICK"})
_SHOWS_WHO_IS_THERE = frozenset({"354", "ACCOUNT", "JOIN", "PRIVMSG"})


class IrcPlatform:
    """A ChatPlatform on IRC."""

    name = "irc"
    limits = Limits(
        text_chars=2000,
        sends_are_idempotent=False,
        sends_per_minute=600,
        choices=False,
        bots_are_marked=False,
        clients_keep_slashes=True,
        is_paced=True,
        line_bytes=_LINE_BYTES,
        max_lines=12,
    )

    def __init__(
        self,
        settings: IrcSettings,
        names: Sequence[str],
        clock: Clock,
        jitter: Callable[[float, float], float] = random.uniform,
        presence: Presence | None = None,
    ) -> None:
        """`names`: the bot's names in addition to its nick. `jitter(low, high)` draws the reconnect delay. Without
        `presence`, gaps before this process are unknown."""
        self.account = settings.account
        is_paced = settings.flood.seconds_per_line > 0
        self.limits = replace(self.limits, is_paced=is_paced, max_lines=settings.max_lines)
        self._settings = settings
        self._clock = clock
        self._jitter = jitter
        self._presence = presence
        self._deadlines = Deadlines(clock)
        self._channels = ConfiguredChannels(settings.channels, settings.account, clock.monotonic)
        self._inbound = Inbound(settings.account, names, clock)
        self._inbound_queue = InboundQueue(settings.account, clock)
        self._courtesies = Courtesies(clock)
        self._sending = Sending(self._inbound, self._channels)
        self._absent = Absent(settings.account, clock)
        self._session: Session | None = None
        self._connection: Connection | None = None
        self._linking: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._words = "not connected yet"
        self._losses = 0
        self._lost_at: float | None = None
        self._next_try_at = 0.0

    async def run(self, deliver: Deliver) -> None:
        """Deliver messages until cancelled, and then those received before. The connection remains for replies until
        `close`."""
        if self._linking is None:
            self._linking = asyncio.create_task(self._stay_connected(), name=f"irc {self.account}")
        await self._inbound_queue.run(deliver, self._linking)

    async def send(self, outgoing: Outgoing) -> Receipt:
        return await self._sending.send(self._ready(), outgoing)

    async def typing(self, chat: ChatRef, status: str) -> None:
        session = self._session
        if session is None or not session.is_ready:
            return
        target = channel_of(session, chat.native) or session.state.nick_of(chat.native)
        if target:
            self._courtesies.typing(session, target, is_on=bool(status))

    async def role(self, chat: ChatRef, member: MemberRef) -> Role | None:
        """The member's role from the channel's current modes; without an account MEMBER at most. In a private chat
        the other side is MEMBER if their account is known in a common channel or confirmed by the server, or without an
        account if their nick is not known to be logged in. None if the role is unknown."""
        session = self._session
        if session is None or not session.is_ready:
            return None
        if channel_of(session, chat.native):
            return session.state.role(chat.native, member.native)
        if chat.native != member.native:
            return None
        try:
            return Role.MEMBER if await self._sending.nick(session, member.native) else None
        except TimeoutError:
            return None

    async def close(self) -> None:
        """Send QUIT, close the connection and stop reconnecting. Idempotent."""
        linking, self._linking = self._linking, None
        if linking is None:
            return
        connection, self._connection = self._connection, None
        linking.cancel()
        await asyncio.gather(linking, return_exceptions=True)
        if connection is not None:
            if self._presence is not None and self._lost_at is None and self._session is not None:
                self._presence.note(at_once=True)
            await connection.close("shutting down", self._deadlines)
        self._inbound_queue.report()

    async def until_reachable(self, outgoing: Outgoing, created_ms: int) -> None:
        """In a channel that the bot joined first: wait for another member, at most five minutes. In private: wait for
        the member until the message is a week old; one hour for a bare nick."""
        to = (outgoing.private_to or outgoing.chat).native
        await self._until_joined(to)
        session = self._session
        if session is not None and not channel_of(session, to):
            age_seconds = (self._clock.now_ms() - created_ms) / 1000
            await self._absent.until_there(to, lambda: self._is_there(to), age_seconds)
            await self._until_joined(to)

    async def _until_joined(self, to: str) -> None:
        while True:
            changed, session = self._changed, self._session
            if session is None or not session.is_ready or not self._sending.is_reachable(session, to):
                await changed.wait()
                continue
            seconds = self._sending.waits_for_people_until(session, to) - self._clock.monotonic()
            if seconds <= 0:
                return
            await self._changed_within(changed, seconds)

    async def _changed_within(self, changed: asyncio.Event, seconds: float) -> None:
        waiting = asyncio.create_task(changed.wait()), asyncio.create_task(self._clock.sleep(seconds))
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waiting:
                one.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    async def _is_there(self, identity: str) -> bool:
        """Whether `identity` is online; true if unknown, so that `send` finds out."""
        await self._until_joined(identity)
        session = self._session
        try:
            return session is None or await self._sending.is_there(session, identity)
        except TimeoutError:
            return True

    def link(self) -> LinkState:
        session = self._session
        if session is None or not session.is_ready:
            seconds = max(self._next_try_at - self._clock.monotonic(), 0)
            words = f"{self._words}; tried again in {seconds:.0f} s" if seconds else self._words
            return LinkState(is_up=False, words=words, losses=self._losses)
        known = [f"connected as {session.state.nick}, in {len(session.state.channels)} channels", self._words]
        return LinkState(
            is_up=True, words="; ".join(filter(None, [*known, *self._channels.problems()])), losses=self._losses
        )

    async def _stay_connected(self) -> None:
        """Reconnect forever. Raises StoreError if the time of the last connection cannot be read."""
        away = await self._presence.seconds_away() if self._presence is not None else None
        self._lost_at = None if away is None else self._clock.monotonic() - away
        failures = 0
        while True:
            began = self._clock.monotonic()
            pause = self._settings.reconnect
            try:
                await self._one_connection()
            except ConnectionLost as problem:
                held = self._session is not None and self._clock.monotonic() - began >= _STABLE_SECONDS
                failures = 1 if held else failures + 1
                policy = RetryPolicy(
                    first_wait_seconds=pause.first_delay_seconds, longest_wait_seconds=pause.longest_delay_seconds
                )
                longest = policy.wait_after(failures)
                self._lost(str(problem), self._jitter(longest / 2, longest))
            except RegistrationError as problem:
                failures += 1
                self._lost(str(problem), self._jitter(pause.longest_delay_seconds / 2, pause.longest_delay_seconds))
            self._session = None
            await self._clock.sleep(max(self._next_try_at - self._clock.monotonic(), 0))

    async def _one_connection(self) -> None:
        connection = await Connection.open(self._settings, self._clock, self._deadlines)
        self._connection = connection
        session = Session(connection, self._settings, self._channels, self._clock, self._deadlines)
        lines = session.lines(self._connected)
        try:
            self._session = session
            async for line in lines:
                await self._take(line, session)
        finally:
            await lines.aclose()
            connection.abort("")

    async def _take(self, line: Line, session: Session) -> None:
        """Queue the events in `line`, and record who is there; blocks while the queue is full."""
        if session.is_ready and self._presence is not None:
            self._presence.note()
        if line.command == "001":
            self._inbound.connected(line)
        for context in self._inbound.contexts(line, session.state):
            if not context.is_group:
                self._sending.wrote_in_private(context.chat.native, context.sender.name)
                self._absent.seen(context.chat.native)
            await self._inbound_queue.put(context)
        if line.command in _SHOWS_WHO_IS_THERE:
            nick = line.param(5) if line.command == "354" else line.nick
            self._absent.seen(session.state.identity_of(nick))
        self._courtesies.answer(line, session)
        if line.command in _MAY_OPEN_A_CHANNEL or line.command.startswith(("4", "5")):
            self._wake_waiting()

    def _wake_waiting(self) -> None:
        """Wake the messages that wait for a recipient."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _connected(self) -> None:
        session = self._session
        if session is None:
            return
        gap = None if self._lost_at is None else round(self._clock.monotonic() - self._lost_at)
        self._lost_at = None
        self._words = "" if gap is None else f"what was said within {gap} s without a connection is not known"
        state = session.state
        _log.info(
            "irc_connected",
            network=self.account,
            nick=state.nick,
            server_network=state.features.network,
            gap_seconds=gap,
            capabilities=sorted(state.caps),
        )
        if not state.is_me(self._settings.nick):
            _log.warning("irc_nick_taken", network=self.account, wanted=self._settings.nick, nick=state.nick)
        self._absent.reset()
        self._wake_waiting()

    def _lost(self, problem: str, pause_seconds: float) -> None:
        now = self._clock.monotonic()
        if self._session is not None and self._lost_at is None:
            self._lost_at = now
        self._losses += 1
        self._next_try_at = now + pause_seconds
        self._words = f"not connected: {problem}"
        _log.warning("irc_lost", network=self.account, problem=problem, next_try_seconds=round(pause_seconds, 1))

    def _ready(self) -> Session:
        """The active session. Raises SendFailed without one."""
        session = self._session
        if session is None or not session.is_ready:
            raise SendFailed(self._words, retryable=True)
        return session


PROBE_SECONDS = 30.0


class CannotUse(Exception):
    """The network rejects the bot; the message has the reason."""


async def probe(settings: IrcSettings, clock: Clock) -> str:
    """Connect, register and disconnect without joining channels. Returns a one-line description of the server. Raises
    CannotUse if the settings, the connection or the registration fails, or takes longer than PROBE_SECONDS."""
    deadlines = Deadlines(clock)
    try:
        connection = await Connection.open(settings, clock, deadlines)
    except ConnectionLost as problem:
        raise CannotUse(str(problem)) from problem
    session = Session(connection, settings, ConfiguredChannels((), settings.account, clock.monotonic), clock, deadlines)
    try:
        await deadlines.run(_let_in(session), clock.monotonic() + PROBE_SECONDS)
    except (ConnectionLost, RegistrationError) as problem:
        raise CannotUse(str(problem)) from problem
    except TimeoutError:
        raise CannotUse(f"it did not let the bot in within {PROBE_SECONDS:g} s") from None
    finally:
        with suppress(OSError):
            await connection.close("only looking", deadlines)
    state = session.state
    network = state.features.network or settings.host
    ids = "gives messages ids" if "message-tags" in state.caps else "gives messages no ids"
    accounts = "tells accounts" if "account-tag" in state.caps else "tells no accounts, so everybody is a member"
    return f"{network} lets the bot in as {state.nick}; it {ids} and {accounts}"


async def _let_in(session: Session) -> None:
    lines = session.lines(lambda: None)
    try:
        async for _ in lines:
            if session.is_ready:
                return
    finally:
        await lines.aclose()
