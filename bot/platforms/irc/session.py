"""A session with an IRC server: registration, state, joins, and receipts of sent lines."""

from __future__ import annotations

import asyncio
import itertools
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import structlog

from bot.platforms.base import SendFailed
from bot.platforms.irc.registration import Registration, joins
from bot.platforms.irc.state import WHOX_FIELDS, ConfiguredChannels, State
from bot.platforms.irc.wire import Connection, Line, encode, one_word
from config.sections.irc import BY_NICK, IrcSettings
from services.clock import Clock, Deadlines

LABEL = "label"
_REFUSALS = {
    "401": "no user has that name",
    "402": "there is no such server",
    "403": "there is no such channel",
    "404": "the channel takes no messages from the bot",
    "407": "there are too many of that name",
    "411": "the server knows no recipient",
    "412": "the server takes no empty text",
    "415": "the channel takes no messages from the bot",
    "417": "the line is too long for the server",
    "442": "the bot is not in the channel",
    "477": "the channel is for registered accounts only",
    "486": "they take private messages of registered accounts only",
    "489": "the channel takes no messages from the bot",
    "531": "they take no private messages from the bot",
    "716": "they take no private messages from the bot",
}
_ASKS_FOR_TIME = frozenset({"263", "439", "707"})
"""Rate limits for lines or target changes: the same line may be sent later."""
_LATER_SECONDS = 30.0
_CONCLUSIVE = frozenset({"PRIVMSG", "FAIL", *_ASKS_FOR_TIME})
"""Lines of a batched response that are conclusive; "user is away", for example, is not."""


@dataclass(eq=False, slots=True)
class Sent:
    """A sent line without an answer yet."""

    token: str
    """Its label, or the token of the PING that follows it."""
    target: str
    text: str
    done: asyncio.Future[str] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """The message id from the server (empty if it has none), or SendFailed."""


class Receipts:
    """Sent lines of a connection that wait for an answer. With labels the server identifies the line. Without labels
    answers come in order, and a PING after each line shows when the server has read it."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._waiting: dict[str, Sent] = {}
        self._batches: dict[str, str] = {}
        self._numbers = itertools.count(1)

    @property
    def uses_labels(self) -> bool:
        """Whether lines are labelled and need no PING."""
        return {"labeled-response", "batch"} <= self._state.caps

    def expect(self, target: str, text: str) -> Sent:
        """Register a line that is being sent."""
        sent = Sent(f"rc{next(self._numbers)}", target, text)
        self._waiting[sent.token] = sent
        return sent

    def forget(self, sent: Sent) -> None:
        """Remove a line that nobody waits for."""
        self._waiting.pop(sent.token, None)

    def follow(self, line: Line) -> None:
        """Complete the waiting message that `line` answers: by its label if the server supports labels, else the oldest
        that fits. Ignores other lines."""
        if self.uses_labels:
            self._labelled(line)
        elif line.command == "PONG":
            self._read(line.last)
        elif self._is_echo(line):
            self._answer(self._oldest(line.param(0), line.param(1)), line)
        elif line.command in _REFUSALS or line.command in _ASKS_FOR_TIME:
            self._answer(self._oldest(line.param(1)), line)

    def lost(self) -> None:
        """Fail all waiting lines with an unknown outcome, since the connection is lost."""
        for sent in self._waiting.values():
            _fail(sent, "the connection was lost before the server answered", retryable=True, unknown_outcome=True)
        self._waiting.clear()

    def _labelled(self, line: Line) -> None:
        label = line.tags.get(LABEL, "")
        if line.command == "BATCH":
            reference = line.param(0)
            if reference.startswith("+") and label:
                self._batches[reference[1:]] = label
            elif reference.startswith("-"):
                # A batched response without a conclusive line.
                self._answer(self._waiting.get(self._batches.pop(reference[1:], "")), None)
            return
        if label:
            self._answer(self._waiting.get(label), line)
            return
        label = self._batches.get(line.tags.get("batch", ""), "")
        if label and (line.command in _CONCLUSIVE or line.command in _REFUSALS):
            self._answer(self._waiting.get(label), line)

    def _read(self, token: str) -> None:
        """The server has read everything before this PING."""
        sent = self._waiting.get(token)
        if sent is not None and "echo-message" in self._state.caps:
            self.forget(sent)
            _fail(sent, "the server accepted the line but delivered it to nobody", retryable=False)
        else:
            self._answer(sent, None)

    def _answer(self, sent: Sent | None, line: Line | None) -> None:
        if sent is None:
            return
        self.forget(sent)
        if line is not None and line.command in _REFUSALS:
            _fail(sent, f"{sent.target}: {_REFUSALS[line.command]} ({line.command})", retryable=False)
        elif line is not None and line.command in _ASKS_FOR_TIME:
            _fail(sent, f"the server asks for time ({line.command})", retryable=True, after_seconds=_LATER_SECONDS)
        elif line is not None and line.command == "FAIL":
            _fail(sent, f"{sent.target}: the server refuses it ({line.param(1)})", retryable=False)
        elif not sent.done.done():
            sent.done.set_result(line.tags.get("msgid", "") if line is not None else "")

    def _is_echo(self, line: Line) -> bool:
        return "echo-message" in self._state.caps and line.command == "PRIVMSG" and self._state.is_me(line.nick)

    def _oldest(self, target: str, text: str = "") -> Sent | None:
        fold = self._state.features.fold
        fitting = [one for one in self._waiting.values() if fold(one.target) == fold(target)]
        # A server may change the text, so the first candidate is used.
        return next((one for one in fitting if one.text == text), fitting[0] if fitting else None)


def _fail(
    sent: Sent, problem: str, *, retryable: bool, unknown_outcome: bool = False, after_seconds: float | None = None
) -> None:
    if not sent.done.done():
        failure = SendFailed(
            problem, retryable=retryable, unknown_outcome=unknown_outcome, retry_after_seconds=after_seconds
        )
        sent.done.set_exception(failure)
        # Marks it as retrieved, since the waiting task may have been cancelled.
        sent.done.exception()


_log = structlog.get_logger("irc")
_GREETING_SECONDS = 60.0
_UPKEEP_SECONDS = 2.0
_NICK_SECONDS = 60.0
_MOST_QUESTIONS = 100
_DEPARTURES = frozenset({"KICK", "PART", "QUIT"})


class Session:
    """Session of one connection."""

    def __init__(
        self,
        connection: Connection,
        settings: IrcSettings,
        channels: ConfiguredChannels,
        clock: Clock,
        deadlines: Deadlines,
    ) -> None:
        self.state = State()
        self.channels = channels
        self.is_ready = False
        """Registration is complete."""
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
        """Future for the end of WHOIS, and the accounts that it has reported (empty: none), by folded nick."""
        self._nick_at = 0.0

    async def lines(self, on_ready: Callable[[], None]) -> AsyncGenerator[Line, None]:
        """Register and keep the session up. Yields each line after the state has processed it; departures before, so
        that the user is still known. `on_ready` is called after registration. Raises ConnectionLost at the end, and
        RegistrationError if the server rejects the bot."""
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
        """Whether the bot is in `channel`."""
        return self.state.features.fold(channel) in self.state.channels

    def room_bytes(self, target: str) -> int:
        """Bytes of text to `target` that the server relays in one line."""
        around = len(f"PRIVMSG {target} :".encode()) + 2
        return self.state.features.line_bytes - self.state.own_source_bytes() - around

    async def say(self, target: str, text: str, tags: Mapping[str, str]) -> str:
        """Send one line and wait for the server's answer. Returns its message id, empty if the server has none. Raises
        SendFailed if the connection is lost or there is no answer in time."""
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
        """Queue `line` without waiting for an answer."""
        if len(self._soon) < _MOST_QUESTIONS:
            self._soon.append(line)
            self._is_something_there.set()

    def if_there_is_room(self, line: bytes) -> None:
        """Send `line` if the rate limit has room for it; else drop it."""
        if self._connection.pace.has_room():
            self.soon(line)

    async def account_of(self, nick: str) -> str:
        """The account of the user with `nick`, from the server; empty if there is no user or account. Raises
        TimeoutError if the server does not answer."""
        return await self.who_has(nick) or ""

    async def who_has(self, nick: str) -> str | None:
        """As `account_of`, but None if there is no user, if the session is not ready, or for an invalid nick. Raises
        TimeoutError also if too many requests are pending."""
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
                # The nick in the server's welcome counts, whatever was requested.
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
            # The mode marks the bot as a bot, and bots do not answer each other.
            self.soon(encode("MODE", self.state.nick, f"+{mode}"))
        self.channels.connected()
        self._ask_for_channels()

    def _regain(self, line: Line) -> None:
        """Reclaim the configured nick when its holder gives it up."""
        fold, nick = self.state.features.fold, self._settings.nick
        if fold(line.nick) == fold(nick) and not self.state.is_me(line.nick) and not self.state.is_me(nick):
            self.soon(encode("NICK", nick))
        if line.command == "NICK" and self.state.is_me(nick):
            _log.info("irc_nick", network=self._settings.account, nick=self.state.nick)

    def _whois(self, line: Line) -> None:
        asked = self._asked.get(self.state.features.fold(line.param(1)))
        if asked is None:
            return
        question, accounts = asked
        if line.command != "318":
            # The user is online, with or without an account.
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
        """Periodically request missing channels and the configured nick. Aborts the connection, and returns, if the
        registration takes too long."""
        while True:
            await self._clock.sleep(_UPKEEP_SECONDS)
            now = self._clock.monotonic()
            if not self.is_ready:
                if now - self.since >= _GREETING_SECONDS:
                    self._connection.abort("the server did not let the bot in in time")
                    return
                continue
            self._ask_for_channels()
            nick = self._settings.nick
            if not self.state.is_me(nick) and now - self._nick_at >= _NICK_SECONDS:
                self._nick_at = now
                self.soon(encode("NICK", nick))

    def _ask_for_channels(self) -> None:
        for line in joins(self.channels.due(self.state), self.state.features):
            self.soon(line)


QUEUE_SECONDS = 7 * 86_400.0
"""How long messages for an account are kept, in seconds from their time."""
NICK_QUEUE_SECONDS = 3600.0
"""The same for a bare nick: a disconnected user is back by then; later the nick may be another user's."""
_ASK_AGAIN_SECONDS = 600.0
"""Interval of checks: a user without a common channel comes back unnoticed."""
_HERE_SECONDS = 60.0
"""A user who wrote this recently is online."""
_MOST_MEMBERS = 2000


class Absent:
    """Recently seen users, and users that messages wait for. Outlives connections."""

    def __init__(self, network: str, clock: Clock) -> None:
        self._network = network
        self._clock = clock
        self._seen_at: OrderedDict[str, float] = OrderedDict()
        self._awaited: dict[str, asyncio.Event] = {}

    def seen(self, identity: str) -> None:
        """Record that the user is online."""
        _keep(self._seen_at, identity, self._clock.monotonic())
        self._wake(identity)

    def reset(self) -> None:
        """Forget who was seen lately, and check all awaited users again."""
        self._seen_at.clear()
        for identity in list(self._awaited):
            self._wake(identity)

    async def until_there(
        self, identity: str, is_there: Callable[[], Awaitable[bool]], age_seconds: float = 0.0
    ) -> None:
        """Wait until `identity` is online, or the message, already `age_seconds` old, has been kept for its maximum
        time. Raises the exceptions of `is_there`."""
        limit_seconds = NICK_QUEUE_SECONDS if identity.startswith(BY_NICK) else QUEUE_SECONDS
        last_at = self._clock.monotonic() + limit_seconds - age_seconds
        is_logged = False
        while not (self._was_seen_lately(identity) or await is_there()):
            remaining = last_at - self._clock.monotonic()
            if remaining <= 0:
                return
            if not is_logged:
                _log.info(
                    "irc_member_away", network=self._network, member=identity, kept_hours=round(remaining / 3600, 1)
                )
                is_logged = True
            await self._wait_for_change(identity, min(remaining, _ASK_AGAIN_SECONDS))

    def _was_seen_lately(self, identity: str) -> bool:
        at = self._seen_at.get(identity)
        return at is not None and self._clock.monotonic() - at < _HERE_SECONDS

    async def _wait_for_change(self, identity: str, seconds: float) -> None:
        event = self._awaited.setdefault(identity, asyncio.Event())
        tasks = asyncio.create_task(event.wait()), asyncio.create_task(self._clock.sleep(seconds))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _wake(self, identity: str) -> None:
        event = self._awaited.pop(identity, None)
        if event is not None:
            event.set()


def _keep(times: OrderedDict[str, float], identity: str, at: float) -> None:
    times[identity] = at
    times.move_to_end(identity)
    if len(times) > _MOST_MEMBERS:
        times.popitem(last=False)
