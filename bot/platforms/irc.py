"""IRC: one network with one account of the bot, over a connection that is made anew for as long as the daemon runs.

IRC keeps nothing for those who are away. What is said while the bot is not connected never reaches it; how long that
was, from one process to the next as well, stands in the log and in `link`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import structlog

from bot.platforms.base import Deliver, Limits, LinkState, Outgoing, Receipt, SendFailed
from bot.platforms.irc_absent import Absent
from bot.platforms.irc_channels import WantedChannels
from bot.platforms.irc_connection import Connection, ConnectionLost
from bot.platforms.irc_courtesies import Courtesies
from bot.platforms.irc_handover import Handover
from bot.platforms.irc_inbound import Inbound
from bot.platforms.irc_presence import Presence
from bot.platforms.irc_registration import Refused
from bot.platforms.irc_sending import Sending, channel_of
from bot.platforms.irc_session import Session
from bot.platforms.irc_wire import Line
from config.irc import IrcSettings
from services.clock import Clock
from services.deadlines import Deadlines
from services.refs import ChatRef, MemberRef, Role

_log = structlog.get_logger("irc")
_LINE_BYTES = 400
"""Text on one line, about: the server's limit of 512 without the names around it."""
_STABLE_SECONDS = 60.0
"""A connection that held for so long was a good one: the next pause is short again."""
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
        """`names` are what the bot is called, beside its nick. `jitter(low, high)` draws the pause before a lost
        connection is tried again. Without `presence` nothing is known of the time before this process."""
        self.account = settings.account
        is_paced = settings.flood.seconds_per_line > 0
        self.limits = replace(self.limits, is_paced=is_paced, max_lines=settings.max_lines)
        self._settings = settings
        self._clock = clock
        self._jitter = jitter
        self._presence = presence
        self._deadlines = Deadlines(clock)
        self._channels = WantedChannels(settings.channels, settings.account, clock.monotonic)
        self._inbound = Inbound(settings.account, names, clock)
        self._handover = Handover(settings.account, clock)
        self._courtesies = Courtesies(clock)
        self._sending = Sending(self._inbound, self._channels)
        self._absent = Absent(settings.account, clock)
        self._session: Session | None = None
        self._connection: Connection | None = None
        self._linking: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._words = "not connected yet"
        self._losses = 0
        self._lost_at: float | None = None
        self._next_try_at = 0.0

    async def run(self, deliver: Deliver) -> None:
        """Hand over what is said until cancelled, and then what was said before that. The connection stays: what is
        still being answered needs it. `close` ends it."""
        if self._linking is None:
            self._linking = asyncio.create_task(self._stay_connected(), name=f"irc {self.account}")
        await self._handover.run(deliver, self._linking)

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
        """The member's role by the modes of the channel now. In a private chat whoever it is with is a member, as long
        as the server vouches for their account."""
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
        """Say goodbye. Harmless when it is called again."""
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
        self._handover.report()

    async def until_reachable(self, outgoing: Outgoing, said_at_ms: int) -> None:
        """In a channel that the bot came to first: when somebody else is there, or five minutes are over. In private:
        when the member is there, or it was said a week ago; an hour ago for a bare nick."""
        to = (outgoing.private_to or outgoing.chat).native
        await self._until_let_in(to)
        session = self._session
        if session is not None and not channel_of(session, to):
            said_seconds_ago = (self._clock.now_ms() - said_at_ms) / 1000
            await self._absent.until_there(to, lambda: self._is_there(to), said_seconds_ago)
            await self._until_let_in(to)

    async def _until_let_in(self, to: str) -> None:
        while True:
            news, session = self._news, self._session
            if session is None or not session.is_ready or not self._sending.is_reachable(session, to):
                await news.wait()
                continue
            seconds = self._sending.waits_for_people_until(session, to) - self._clock.monotonic()
            if seconds <= 0:
                return
            await self._news_within(news, seconds)

    async def _news_within(self, news: asyncio.Event, seconds: float) -> None:
        waiting = asyncio.create_task(news.wait()), asyncio.create_task(self._clock.sleep(seconds))
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waiting:
                one.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    async def _is_there(self, identity: str) -> bool:
        """Whether `identity` is there, or nobody says: then it is left to `send`."""
        await self._until_let_in(identity)
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
        """Never ends by itself. Raises StoreError when it cannot be read how long the bot was away."""
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
                # Far more doublings than there can be, and far fewer than a float can bear.
                longest = min(pause.first_delay_seconds * 2.0 ** min(failures - 1, 60), pause.longest_delay_seconds)
                self._lost(str(problem), self._jitter(longest / 2, longest))
            except Refused as problem:
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
        """Hand over what `line` says; waits while too much waits to be handed over."""
        if session.is_ready and self._presence is not None:
            self._presence.note()
        if line.command == "001":
            self._inbound.connected(line)
        for context in self._inbound.contexts(line, session.state):
            if not context.is_group:
                self._sending.wrote_in_private(context.chat.native, context.sender.name)
                self._absent.seen(context.chat.native)
            await self._handover.put(context)
        if line.command in _SHOWS_WHO_IS_THERE:
            nick = line.param(5) if line.command == "354" else line.nick
            self._absent.seen(session.state.identity_of(nick))
        self._courtesies.answer(line, session)
        if line.command in _MAY_OPEN_A_CHANNEL or line.command.startswith(("4", "5")):
            self._tell_waiting()

    def _tell_waiting(self) -> None:
        """Something may be reachable now that was not before."""
        news, self._news = self._news, asyncio.Event()
        news.set()

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
        self._absent.ask_again()
        self._tell_waiting()

    def _lost(self, problem: str, pause_seconds: float) -> None:
        now = self._clock.monotonic()
        if self._session is not None and self._lost_at is None:
            self._lost_at = now
        self._losses += 1
        self._next_try_at = now + pause_seconds
        self._words = f"not connected: {problem}"
        _log.warning("irc_lost", network=self.account, problem=problem, next_try_seconds=round(pause_seconds, 1))

    def _ready(self) -> Session:
        """Raises SendFailed while there is no connection."""
        session = self._session
        if session is None or not session.is_ready:
            raise SendFailed(self._words, retryable=True)
        return session
