"""The conversation with a server over one connection: getting in, keeping up what is known, asking for channels and for
the nick, and saying things with a receipt."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping

import structlog

from bot.platforms.base import SendFailed
from bot.platforms.irc_channels import WantedChannels
from bot.platforms.irc_connection import Connection
from bot.platforms.irc_receipts import LABEL, Receipts
from bot.platforms.irc_registration import Registration, joins
from bot.platforms.irc_state import WHOX_FIELDS, State
from bot.platforms.irc_wire import Line, encode, one_word
from config.irc import IrcSettings
from services.clock import Clock
from services.deadlines import Deadlines

_log = structlog.get_logger("irc")
_GREETING_SECONDS = 60.0
_UPKEEP_SECONDS = 2.0
_NICK_SECONDS = 60.0
_MOST_QUESTIONS = 100
_DEPARTURES = frozenset({"KICK", "PART", "QUIT"})


class Session:
    """Lives as long as its connection."""

    def __init__(
        self,
        connection: Connection,
        settings: IrcSettings,
        channels: WantedChannels,
        clock: Clock,
        deadlines: Deadlines,
    ) -> None:
        self.state = State()
        self.channels = channels
        self.is_ready = False
        """The greeting is over."""
        self.since = clock.monotonic()
        self._connection = connection
        self._settings = settings
        self._clock = clock
        self._deadlines = deadlines
        self._registration = Registration(settings)
        self._receipts = Receipts(self.state)
        self._soon: deque[bytes] = deque()
        self._is_something_there = asyncio.Event()
        self._asked: dict[str, tuple[asyncio.Future[str | None], list[str]]] = {}
        """By folded nick: what waits for the end of WHOIS, and the accounts that it has told, empty for none."""
        self._nick_at = 0.0

    async def lines(self, on_ready: Callable[[], None]) -> AsyncGenerator[Line, None]:
        """Get in and keep things up; what the server says, each line once its changes are noted, but for departures:
        who goes is known until the next line. `on_ready` is called when the server has let us in. Raises ConnectionLost
        and Refused."""
        tasks = [
            asyncio.create_task(one) for one in (self._connection.keep_alive(), self._write_soon(), self._upkeep())
        ]
        try:
            self._connection.write(*self._registration.begin())
            async for line in self._connection.lines():
                if line.command in _DEPARTURES:
                    yield line
                    self._follow(line)
                    continue
                self._follow(line)
                if self._registration.is_done and not self.is_ready:
                    self._let_in()
                    on_ready()
                yield line
        finally:
            self.is_ready = False
            for task in tasks:
                task.cancel()
            self._receipts.lost()
            for question, _ in self._asked.values():
                question.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def is_in(self, channel: str) -> bool:
        """Whether we are in `channel`."""
        return self.state.features.fold(channel) in self.state.channels

    def room_bytes(self, target: str) -> int:
        """Of a text to `target`, so that the whole line is passed on uncut."""
        around = len(f"PRIVMSG {target} :".encode()) + 2
        return self.state.features.line_bytes - self.state.own_source_bytes() - around

    async def say(self, target: str, text: str, tags: Mapping[str, str]) -> str:
        """Say one line. Returns when the server has taken it: the id that it gave it, empty where it gives none. Raises
        SendFailed."""
        await self._connection.pace.turn()
        if not self.is_ready:
            raise SendFailed("the connection was lost before it was sent", retryable=True)
        labels = self._receipts.uses_labels
        sent = self._receipts.expect(target, text)
        if labels:
            self._connection.write(encode("PRIVMSG", target, text, tags={**tags, LABEL: sent.token}))
        else:
            self._connection.write(encode("PRIVMSG", target, text, tags=tags), encode("PING", sent.token))
        try:
            return await self._deadlines.run(sent.done, self._clock.monotonic() + self._settings.answer_seconds)
        except TimeoutError:
            why = "the server did not say whether it took the line"
            raise SendFailed(why, retryable=True, unknown_outcome=True) from None
        finally:
            self._receipts.forget(sent)

    def soon(self, line: bytes) -> None:
        """Write `line` when its turn comes; nobody waits for what becomes of it."""
        if len(self._soon) < _MOST_QUESTIONS:
            self._soon.append(line)
            self._is_something_there.set()

    def if_there_is_room(self, line: bytes) -> None:
        """Write `line` now where that delays nothing of importance; else never."""
        if self._connection.pace.has_room():
            self.soon(line)

    async def account_of(self, nick: str) -> str:
        """The account of whoever has `nick` now, as the server says; empty when there is nobody, or they have none.
        Raises TimeoutError when it does not say."""
        return await self.who_has(nick) or ""

    async def who_has(self, nick: str) -> str | None:
        """As `account_of`, but None when there is nobody."""
        folded = self.state.features.fold(nick)
        if not self.is_ready or not one_word(nick):
            return None
        if folded not in self._asked:
            if len(self._asked) >= _MOST_QUESTIONS:
                raise TimeoutError
            self._asked[folded] = asyncio.get_running_loop().create_future(), []
            self.soon(encode("WHOIS", nick))
        question = self._asked[folded][0]
        try:
            deadline = self._clock.monotonic() + self._settings.answer_seconds
            return await self._deadlines.run(asyncio.shield(question), deadline)
        except asyncio.CancelledError:
            if question.cancelled():
                raise TimeoutError from None
            raise

    def _follow(self, line: Line) -> None:
        for answer in self._registration.take(line):
            self._connection.write(answer)
        self.state.caps = self._registration.caps
        self.state.follow(line)
        self.channels.follow(line, self.state)
        self._receipts.follow(line)
        match line.command:
            case "001":
                # The nick that the server says is ours, whatever was asked for.
                self._nick_at = self._clock.monotonic()
            case "JOIN" if self.state.is_me(line.nick) and self.state.features.has_whox:
                self.soon(encode("WHO", line.param(0), WHOX_FIELDS))
            case "NICK" | "QUIT":
                self._regain(line)
            case "311" | "330" | "318":
                self._whois(line)

    def _let_in(self) -> None:
        self.is_ready = True
        mode = self.state.features.bot_mode
        if mode:
            # Others see then that a bot is speaking, and bots do not answer each other.
            self.soon(encode("MODE", self.state.nick, f"+{mode}"))
        self.channels.connected()
        self._ask_for_channels()

    def _regain(self, line: Line) -> None:
        """The one who has our nick gives it up."""
        fold, wanted = self.state.features.fold, self._settings.nick
        if fold(line.nick) == fold(wanted) and not self.state.is_me(line.nick) and not self.state.is_me(wanted):
            self.soon(encode("NICK", wanted))
        if line.command == "NICK" and self.state.is_me(wanted):
            _log.info("irc_nick", network=self._settings.account, nick=self.state.nick)

    def _whois(self, line: Line) -> None:
        asked = self._asked.get(self.state.features.fold(line.param(1)))
        if asked is None:
            return
        question, accounts = asked
        if line.command != "318":
            # They are there, with an account or without.
            accounts.append(line.param(2) if line.command == "330" else "")
            return
        del self._asked[self.state.features.fold(line.param(1))]
        if not question.done():
            question.set_result(max(accounts, default=None))

    async def _write_soon(self) -> None:
        while True:
            await self._is_something_there.wait()
            while self._soon:
                await self._connection.pace.turn()
                self._connection.write(self._soon.popleft())
            self._is_something_there.clear()

    async def _upkeep(self) -> None:
        """Ask for what is missing, again and again."""
        while True:
            await self._clock.sleep(_UPKEEP_SECONDS)
            now = self._clock.monotonic()
            if not self.is_ready:
                if now - self.since >= _GREETING_SECONDS:
                    self._connection.abort("the server did not let the bot in in time")
                    return
                continue
            self._ask_for_channels()
            wanted = self._settings.nick
            if not self.state.is_me(wanted) and now - self._nick_at >= _NICK_SECONDS:
                self._nick_at = now
                self.soon(encode("NICK", wanted))

    def _ask_for_channels(self) -> None:
        for line in joins(self.channels.due(self.state), self.state.features):
            self.soon(line)
