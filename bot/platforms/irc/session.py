"""A session with an IRC server: registration, state, joins, and receipts of sent lines."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from bot.platforms.base import SendFailed
from bot.platforms.connection import alongside
from bot.platforms.irc.registration import Registration, joins
from bot.platforms.irc.state import WHOX_FIELDS, ConfiguredChannels, State
from bot.platforms.irc.wire import Line, Wire, encode, one_word
from config.sections.irc import BY_NICK, IrcSettings
from services.clock import Clock, Deadlines
from services.recent import Recent

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
_CONCLUSIVE = frozenset({"PRIVMSG", "FAIL", *_ASKS_FOR_TIME, *_REFUSALS})
"""Lines of a batched response that are conclusive; "user is away", for example, is not."""
_NO_LINE = Line("")


@dataclass(eq=False, slots=True)
class Sent:
    """A sent line without an answer yet."""

    token: str
    """Its label, or the token of the PING that follows it."""
    target: str
    text: str
    done: asyncio.Future[str] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """The message id from the server (empty if it has none), or SendFailed."""

    def end(self, outcome: str | SendFailed) -> None:
        """Complete it with a message id or a failure, once."""
        if self.done.done():
            return
        if isinstance(outcome, str):
            self.done.set_result(outcome)
        else:
            self.done.set_exception(outcome)
            # Marks it as retrieved, since the waiting task may have been cancelled.
            self.done.exception()


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
            why = "the connection was lost before the server answered"
            sent.end(SendFailed(why, retryable=True, unknown_outcome=True))
        self._waiting.clear()

    def _labelled(self, line: Line) -> None:
        label = line.tags.get(LABEL, "")
        if line.command == "BATCH":
            reference = line.param(0)
            if reference.startswith("+") and label:
                self._batches[reference[1:]] = label
            elif reference.startswith("-"):
                # A batched response without a conclusive line.
                self._answer(self._waiting.get(self._batches.pop(reference[1:], "")))
            return
        if not label and line.command in _CONCLUSIVE:
            label = self._batches.get(line.tags.get("batch", ""), "")
        self._answer(self._waiting.get(label), line)

    def _read(self, token: str) -> None:
        """The server has read everything before this PING."""
        sent = self._waiting.get(token)
        if sent is not None and "echo-message" in self._state.caps:
            self.forget(sent)
            sent.end(SendFailed("the server accepted the line but delivered it to nobody", retryable=False))
        else:
            self._answer(sent)

    def _answer(self, sent: Sent | None, line: Line = _NO_LINE) -> None:
        if sent is None:
            return
        self.forget(sent)
        command = line.command
        if command in _ASKS_FOR_TIME:
            why = f"the server asks for time ({command})"
            sent.end(SendFailed(why, retryable=True, retry_after_seconds=_LATER_SECONDS))
        elif command in _REFUSALS:
            sent.end(SendFailed(f"{sent.target}: {_REFUSALS[command]} ({command})", retryable=False))
        elif command == "FAIL":
            sent.end(SendFailed(f"{sent.target}: the server refuses it ({line.param(1)})", retryable=False))
        else:
            sent.end(line.tags.get("msgid", ""))

    def _is_echo(self, line: Line) -> bool:
        return "echo-message" in self._state.caps and line.command == "PRIVMSG" and self._state.is_me(line.nick)

    def _oldest(self, target: str, text: str = "") -> Sent | None:
        fold = self._state.features.fold
        fitting = [one for one in self._waiting.values() if fold(one.target) == fold(target)]
        # A server may change the text, so the first candidate is used.
        return next((one for one in fitting if one.text == text), fitting[0] if fitting else None)


_log = structlog.get_logger("irc")
_GREETING_SECONDS = 60.0
_UPKEEP_SECONDS = 5.0
_NICK_SECONDS = 60.0
_MOST_QUESTIONS = 100
_DEPARTURES = frozenset({"KICK", "PART", "QUIT"})


class Session:
    """Session of one connection."""

    def __init__(
        self,
        wire: Wire,
        settings: IrcSettings,
        channels: ConfiguredChannels,
        clock: Clock,
        deadlines: Deadlines,
    ) -> None:
        self.state = State()
        self.channels = channels
        self.is_ready = False
        """Registration is complete."""
        self._since = clock.monotonic()
        self._wire = wire
        self._settings = settings
        self._clock = clock
        self._deadlines = deadlines
        self._registration = Registration(settings)
        self._receipts = Receipts(self.state)
        self._watched: list[tuple[Callable[[Line], bool], asyncio.Future[Line]]] = []
        self._soon: asyncio.Queue[bytes] = asyncio.Queue(_MOST_QUESTIONS)
        self._asked: dict[str, tuple[asyncio.Future[str | None], list[str]]] = {}
        """Future for the end of WHOIS, and the accounts that it has reported (empty: none), by folded nick."""
        self._nick_at = 0.0

    async def lines(self) -> AsyncGenerator[Line, None]:
        """Register and keep the session up. Yields each line after the state has processed it; departures before, so
        that the user is still known. Raises CannotConnect at the end, and Rejected if the server rejects the bot."""
        async with alongside(self._ping(), self._write_soon(), self._upkeep()):
            try:
                self._wire.write(*self._registration.begin())
                async for line in self._wire.lines():
                    is_departure = line.command in _DEPARTURES
                    if not is_departure:
                        self._follow(line)
                    yield line
                    if is_departure:
                        self._follow(line)
            finally:
                self.is_ready = False
                self._receipts.lost()
                for question, _ in self._asked.values():
                    question.cancel()

    def channel(self, native: str) -> str:
        """`native` if it is a channel, else an empty string."""
        return native if self.state.features.is_channel(native) and one_word(native) else ""

    def is_in(self, channel: str) -> bool:
        """Whether the bot is in `channel`."""
        return self.state.is_in(channel)

    def room_bytes(self, target: str) -> int:
        """Bytes of text to `target` that the server relays in one line."""
        around = len(f"PRIVMSG {target} :".encode()) + 2
        return self.state.features.line_bytes - self.state.own_source_bytes() - around

    async def say(self, target: str, text: str, tags: Mapping[str, str]) -> str:
        """Send one line and wait for the server's answer. Returns its message id, empty if the server has none. Raises
        SendFailed if the connection is lost or there is no answer in time."""
        await self._wire.pace.turn()
        if not self.is_ready:
            raise SendFailed("the connection was lost before it was sent", retryable=True)
        labels = self._receipts.uses_labels
        sent = self._receipts.expect(target, text)
        if labels:
            self._wire.write(encode("PRIVMSG", target, text, tags={**tags, LABEL: sent.token}))
        else:
            self._wire.write(encode("PRIVMSG", target, text, tags=tags), encode("PING", sent.token))
        try:
            return await self._deadlines.run(sent.done, self._clock.monotonic() + self._settings.answer_seconds)
        except TimeoutError:
            why = "the server did not say whether it took the line"
            raise SendFailed(why, retryable=True, unknown_outcome=True) from None
        finally:
            self._receipts.forget(sent)

    async def answered(self, line: bytes, is_answer: Callable[[Line], bool]) -> Line:
        """Send `line`, and return the first line of the server that `is_answer` accepts. Raises SendFailed; the outcome
        is unknown if there is no answer in time."""
        if not self.is_ready:
            raise SendFailed("the connection was lost before it was sent", retryable=True)
        waiting = is_answer, asyncio.get_running_loop().create_future()
        self._watched.append(waiting)
        self.soon(line)
        try:
            return await self._deadlines.run(waiting[1], self._clock.monotonic() + self._settings.answer_seconds)
        except TimeoutError:
            raise SendFailed("the server did not answer", retryable=True, unknown_outcome=True) from None
        finally:
            self._watched.remove(waiting)

    def soon(self, line: bytes) -> None:
        """Queue `line` without waiting for an answer; dropped if the queue is full."""
        with suppress(asyncio.QueueFull):
            self._soon.put_nowait(line)

    def if_there_is_room(self, line: bytes) -> None:
        """Send `line` if the rate limit has room for it; else drop it."""
        if self._wire.pace.has_room():
            self.soon(line)

    async def account_of(self, nick: str) -> str | None:
        """The account of the user with `nick`, from the server: empty without one; None if there is no user, if the
        session is not ready, or for an invalid nick. Raises TimeoutError if the server does not answer, or too many
        requests are pending."""
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
            self._wire.write(answer)
        self.state.caps = self._registration.caps
        self.state.follow(line)
        self.channels.follow(line, self.state)
        self._receipts.follow(line)
        for is_answer, waiting in self._watched:
            if not waiting.done() and is_answer(line):
                waiting.set_result(line)
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
        if self._registration.is_done and not self.is_ready:
            self._let_in()

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
            line = await self._soon.get()
            await self._wire.pace.turn()
            self._wire.write(line)

    async def _ping(self) -> None:
        """Ping regularly, so that a silent connection is noticed."""
        while True:
            await self._clock.sleep(self._settings.ping_seconds)
            self._wire.write(encode("PING", "still-there"))

    async def _upkeep(self) -> None:
        """Periodically request missing channels and the configured nick. Aborts the connection, and returns, if the
        registration takes too long."""
        while True:
            await self._clock.sleep(_UPKEEP_SECONDS)
            now = self._clock.monotonic()
            if not self.is_ready:
                if now - self._since >= _GREETING_SECONDS:
                    self._wire.abort("the server did not let the bot in in time")
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


class Absent:
    """Recently seen users, and users that messages wait for. Outlives connections."""

    def __init__(self, network: str, clock: Clock) -> None:
        self._network = network
        self._clock = clock
        self._seen_at: Recent[str, float] = Recent(2000)
        self._awaited: dict[str, asyncio.Event] = {}

    def seen(self, identity: str) -> None:
        """Record that the user is online."""
        self._seen_at[identity] = self._clock.monotonic()
        self._wake(identity)

    def reset(self) -> None:
        """Forget who was seen lately, and check all awaited users again."""
        self._seen_at.clear()
        for identity in list(self._awaited):
            self._wake(identity)

    async def until_there(self, identity: str, is_there: Callable[[], Awaitable[bool]], age_seconds: float) -> None:
        """Wait until `identity` is online, or the message, already `age_seconds` old, has been kept for its maximum
        time. Raises the exceptions of `is_there`."""
        limit_seconds = NICK_QUEUE_SECONDS if identity.startswith(BY_NICK) else QUEUE_SECONDS
        last_at = self._clock.monotonic() + limit_seconds - age_seconds
        is_logged = False
        while not (self._was_seen_lately(identity) or await is_there()):
            now = self._clock.monotonic()
            if now >= last_at:
                return
            if not is_logged:
                hours = round((last_at - now) / 3600, 1)
                _log.info("irc_member_away", network=self._network, member=identity, kept_hours=hours)
                is_logged = True
            event = self._awaited.setdefault(identity, asyncio.Event())
            await changed_within(event, min(last_at - now, _ASK_AGAIN_SECONDS), self._clock)

    def _was_seen_lately(self, identity: str) -> bool:
        at = self._seen_at.get(identity)
        return at is not None and self._clock.monotonic() - at < _HERE_SECONDS

    def _wake(self, identity: str) -> None:
        event = self._awaited.pop(identity, None)
        if event is not None:
            event.set()


async def changed_within(change: asyncio.Event, seconds: float, clock: Clock) -> None:
    """Wait for `change`, at most `seconds`."""
    async with alongside(change.wait(), clock.sleep(seconds)) as tasks:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
