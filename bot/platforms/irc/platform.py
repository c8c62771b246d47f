"""The IRC platform: one network per instance."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial

import structlog

from bot.platforms.adapter import CannotOpen, Host
from bot.platforms.base import Deliver, Limits, LinkState, Outgoing, Receipt, SendFailed
from bot.platforms.connection import CannotConnect, ConnectedPlatform, alongside
from bot.platforms.irc.inbound import OWN_IDS, REPLY_TAG, Inbound
from bot.platforms.irc.session import Absent, Session, changed_within
from bot.platforms.irc.state import ConfiguredChannels
from bot.platforms.irc.text import NOTHING, Progress, ctcp, ctcp_answer, lines_of, without_spaces
from bot.platforms.irc.wire import Line, Wire, encode, one_word
from config.sections.irc import BY_NICK, IrcSettings
from function_calls.context import MessageContext
from function_calls.ports import Measure, ModerationRequest
from services.clock import Clock, Deadlines
from services.recent import Recent
from services.refs import ChatRef, MemberRef, Role

_log = structlog.get_logger("irc")
_WAITING = 2000
"""Limit of queued messages; beyond it, reading stops, and the server has to wait."""
_LAST_SECONDS = 5.0
_PRESENT_SECONDS = 60.0
"""Interval of storing the time of the connection: such an error in the length of a gap is harmless."""
_CTCP_ANSWERS, _CTCP_SECONDS, _CTCP_CHARS = 3, 60.0, 100
_TYPING_SECONDS = 3.0
"""Minimum interval of typing notifications; clients remove one after six seconds."""
_LINE_BYTES = 400
"""Approximate text per line: the server's limit of 512 without the prefix and target."""
_MAY_OPEN_A_CHANNEL = frozenset({"366", "JOIN", "KICK"})
_SHOWS_WHO_IS_THERE = frozenset({"354", "ACCOUNT", "JOIN", "PRIVMSG"})
_OF_MESSAGES = frozenset({"404", "407", "411", "412"})
"""Errors of messages, which may be about the same channel."""
_IS_IN_CHANNEL = "443"
_PROBE_SECONDS = 30.0


class IrcPlatform(ConnectedPlatform):
    """A ChatPlatform on IRC. Its connection outlives `run`, for replies until `close`."""

    name = "irc"
    limits = Limits(
        text_chars=2000,
        sends_per_minute=600,
        bots_are_marked=False,
        clients_keep_slashes=True,
        is_paced=True,
        line_bytes=_LINE_BYTES,
        max_lines=12,
    )

    def __init__(
        self, settings: IrcSettings, host: Host, jitter: Callable[[float, float], float] = random.uniform
    ) -> None:
        """`jitter`: see `Connection`."""
        silence_seconds = settings.ping_seconds + settings.answer_seconds
        delays = settings.reconnect.model_dump()
        super().__init__(settings, host, silence_seconds=silence_seconds, jitter=jitter, **delays)
        is_paced = settings.flood.seconds_per_line > 0
        self.limits = replace(self.limits, is_paced=is_paced, max_lines=settings.max_lines)
        self._settings = settings
        self._deadlines = Deadlines(host.clock)
        self._channels = ConfiguredChannels(settings.channels, settings.account, host.clock.monotonic)
        self._inbound = Inbound(settings.account, host.names, host.clock)
        self._absent = Absent(settings.account, host.clock)
        self._interrupted = Recent[str, Progress](500)
        """Messages interrupted between two lines, by idempotency key: a retry continues there."""
        self._private_nicks: Recent[str, str] = Recent(2000)
        self._typing_at: Recent[str, float] = Recent(1000)
        self._answered_at: deque[float] = deque(maxlen=_CTCP_ANSWERS)
        self._waiting: asyncio.Queue[MessageContext] = asyncio.Queue(_WAITING)
        self._is_accepting = False
        self._not_accepted = 0
        """Received messages that are not durable yet."""
        self._keeping: asyncio.Task[None] | None = None
        self._opened: Session | None = None
        self._changed = asyncio.Event()
        self._gap = ""
        self._present_ms: int | None = None
        """Time of the last sign of life of a session, perhaps of an earlier process."""
        self._noted_at = float("-inf")

    # Connection

    async def run(self, deliver: Deliver) -> None:
        """Messages received before the cancellation are delivered after it."""
        if self._keeping is None:
            position = await self._cursor.read()
            self._present_ms = int(position) if position is not None else None
            self._keeping = asyncio.create_task(super().run(deliver), name=f"irc {self.account}")
        self._is_accepting = True
        async with alongside(self._accept(deliver)) as (accepting,):
            try:
                await asyncio.shield(accepting)
            finally:
                self._is_accepting = False
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LAST_SECONDS):
                        await self._waiting.join()

    @property
    def _session(self) -> Session | None:
        """The session while the bot is registered."""
        return self._opened if self._opened is not None and self._opened.is_ready else None

    async def _accept(self, deliver: Deliver) -> None:
        """Accept queued messages, in order."""
        while True:
            context = await self._waiting.get()
            take = partial(self._acceptance.take, deliver, [context].copy, context.text)
            await self._acceptance.until_stored(take)
            self._not_accepted -= 1
            self._waiting.task_done()

    async def close(self) -> None:
        keeping, self._keeping = self._keeping, None
        if keeping is None:
            return
        if self._session is not None:
            self._note_presence(at_once=True)
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        if self._not_accepted:
            because = "the daemon was ending"
            _log.warning("irc_not_taken", network=self.account, messages=self._not_accepted, because=because)

    def link(self) -> LinkState:
        state, session = super().link(), self._session
        if session is None:
            return replace(state, is_up=False)
        nick, channels = session.state.nick, len(session.state.channels)
        words = state.words.replace("connected", f"connected as {nick}, in {channels} channels", 1)
        return replace(state, words="; ".join(filter(None, [words, self._gap, *self._channels.problems()])))

    async def until_reachable(self, outgoing: Outgoing, created_ms: int) -> None:
        """In a channel that the bot joined first: wait for another member, at most five minutes. In private: wait for
        the member until the message is a week old; one hour for a bare nick."""
        to = (outgoing.private_to or outgoing.chat).native
        if not (await self._until_joined(to)).channel(to):
            age_seconds = (self._clock.now_ms() - created_ms) / 1000
            await self._absent.until_there(to, lambda: self._is_there(to), age_seconds)
            await self._until_joined(to)

    async def _until_joined(self, to: str) -> Session:
        """Wait until a message to `to` can be sent, or is known to fail; returns the session."""
        while True:
            changed, session = self._changed, self._session
            if session is None or not self._is_reachable(session, to):
                await changed.wait()
                continue
            channel = session.channel(to)
            is_in = channel and session.is_in(channel)
            until = self._channels.waits_for_people_until(channel, session.state) if is_in else float("-inf")
            if (seconds := until - self._clock.monotonic()) <= 0:
                return session
            await changed_within(changed, seconds, self._clock)

    def _is_reachable(self, session: Session, to: str) -> bool:
        channel = session.channel(to)
        return not channel or session.is_in(channel) or self._channels.problem(channel, session.state) != ""

    async def _is_there(self, identity: str) -> bool:
        """Whether a private message would reach `identity` now; true if unknown, so that `send` finds out."""
        session = await self._until_joined(identity)
        try:
            nick = await self._nick(session, identity)
            if not nick or not identity.startswith(BY_NICK) or session.state.nick_of(identity):
                return nick != ""
            return await session.account_of(nick) == ""
        except TimeoutError:
            return True

    async def _connected(self, deliver: Deliver) -> None:
        wire = await Wire.open(self._settings, self._clock, self._deadlines)
        session = Session(wire, self._settings, self._channels, self._clock, self._deadlines)
        try:
            async with aclosing(session.lines()) as lines:
                async for line in lines:
                    await self._take(line, session)
        finally:
            await wire.close("shutting down", self._deadlines)

    async def _take(self, line: Line, session: Session) -> None:
        """Queue the events in `line`, and record who is there; blocks while the queue is full."""
        self._connection.heard()
        if line.command == "001":
            self._inbound.connected(line)
        if session.is_ready and session is not self._opened:
            self._entered(session)
        if self._session is not None:
            self._note_presence()
        for context in self._inbound.contexts(line, session.state):
            if not context.is_group:
                self._private_nicks[context.chat.native] = context.sender.name
                self._absent.seen(context.chat.native)
            self._not_accepted += 1
            if self._is_accepting:
                await self._waiting.put(context)
        if line.command in _SHOWS_WHO_IS_THERE:
            nick = line.param(5) if line.command == "354" else line.nick
            self._absent.seen(session.state.identity_of(nick))
        self._answer_ctcp(line, session)
        if line.command in _MAY_OPEN_A_CHANNEL or line.command.startswith(("4", "5")):
            self._wake_waiting()

    def _wake_waiting(self) -> None:
        """Wake the messages that wait for a recipient."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _entered(self, session: Session) -> None:
        self._opened = session
        self._connection.up()
        gap = None if self._present_ms is None else max(self._clock.now_ms() - self._present_ms, 0) // 1000
        self._gap = "" if gap is None else f"what was said within {gap} s without a connection is not known"
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

    def _note_presence(self, *, at_once: bool = False) -> None:
        now, self._present_ms = self._clock.monotonic(), self._clock.now_ms()
        if at_once or now - self._noted_at >= _PRESENT_SECONDS:
            self._noted_at = now
            self._host.store.post([self._cursor.at(str(self._present_ms))])

    # Sending

    async def send(self, outgoing: Outgoing) -> Receipt:
        """Lines that have arrived in an earlier attempt are not repeated."""
        session = self._session
        if session is None:
            raise SendFailed(self.link().words, retryable=True)
        target = await self._target(session, outgoing)
        progress = self._interrupted.get(outgoing.key, NOTHING)
        addressees = self._addressees(session, outgoing, target)
        answered = outgoing.reply_to or ""
        is_theirs = answered and not answered.startswith(OWN_IDS)
        tags = {REPLY_TAG: answered} if is_theirs and "message-tags" in session.state.caps else {}
        for line, piece in lines_of(outgoing, progress.sent_text, addressees, lambda: session.room_bytes(target)):
            native_id = await session.say(target, line, tags) or self._inbound.own_id()
            self._inbound.remember_own(native_id, session.state.nick, line)
            progress = Progress(progress.sent_text + without_spaces(piece), progress.first_id or native_id)
            self._interrupted[outgoing.key] = progress
            tags = {}
        self._interrupted.pop(outgoing.key, None)
        return Receipt(progress.first_id or self._inbound.own_id())

    async def _target(self, session: Session, outgoing: Outgoing) -> str:
        """The target of the lines: the channel's name, or the current nick of the member. Raises SendFailed if the bot
        is not in the channel or the member is not there; retryable if that may change soon."""
        channel = session.channel(outgoing.chat.native)
        if channel and outgoing.private_to is None:
            if session.is_in(channel):
                return session.state.channels[session.state.features.fold(channel)].name
            problem = self._channels.problem(channel, session.state)
            why = "platforms.irc does not name it" if problem is None else problem or "it is being joined"
            raise SendFailed(f"the bot is not in {channel}: {why}", retryable=problem == "")
        identity = (outgoing.private_to or outgoing.chat).native
        try:
            nick = await self._nick(session, identity)
        except TimeoutError:
            raise SendFailed("the server did not say who has the account", retryable=True) from None
        if not nick:
            raise SendFailed(f"{identity!r} is not there", retryable=False)
        return nick

    async def _nick(self, session: Session, identity: str) -> str:
        """The current nick of `identity`; empty if offline. Raises TimeoutError if the server does not answer."""
        state = session.state
        if nick := state.nick_of(identity):
            return nick
        nick = self._private_nicks.get(identity, identity.removeprefix(BY_NICK))
        if not one_word(nick) or state.features.is_channel(nick):
            return ""
        if identity.startswith(BY_NICK):
            # The holder of the nick may have logged in to another account.
            return nick if state.identity_of(nick) == identity else ""
        # The nick may belong to another user by now.
        account = await session.account_of(nick)
        return nick if account and state.features.fold(account) == identity else ""

    def _addressees(self, session: Session, outgoing: Outgoing, target: str) -> list[str]:
        """The nicks in front of the text, in a channel: of the sender it answers and the members it mentions; unknown
        members are left out."""
        if not session.state.features.is_channel(target):
            return []
        answered = self._inbound.known(outgoing.reply_to) if outgoing.reply_to else None
        identities = [answered.identity] if answered and not answered.quoted.from_bot else []
        identities += [member.native for member in outgoing.mentions]
        return [nick for nick in map(session.state.nick_of, dict.fromkeys(identities)) if nick]

    async def typing(self, chat: ChatRef, status: str) -> None:
        """Send a typing notification if the server relays it and the rate limit has room."""
        session = self._session
        if session is None or "message-tags" not in session.state.caps:
            return
        target = session.channel(chat.native) or session.state.nick_of(chat.native)
        now, shown_at = self._clock.monotonic(), self._typing_at.get(target)
        if not target or (
            shown_at is None if not status else shown_at is not None and now - shown_at < _TYPING_SECONDS
        ):
            return
        if status:
            self._typing_at[target] = now
        else:
            del self._typing_at[target]
        session.if_there_is_room(encode("TAGMSG", target, tags={"+typing": "active" if status else "done"}))

    def _answer_ctcp(self, line: Line, session: Session) -> None:
        """Answer the CTCP request in `line`, if it is known and private. At most three per minute are answered."""
        request, is_me = ctcp(line.param(1)), session.state.is_me
        if request is None or line.command != "PRIVMSG" or "!" not in line.source or not one_word(line.nick):
            return
        answers = {
            "VERSION": "Rollcall",
            "PING": request.text[:_CTCP_CHARS],
            "TIME": f"{self._clock.now():%Y-%m-%d %H:%M:%S UTC}",
        }
        now, earlier = self._clock.monotonic(), self._answered_at
        is_often = len(earlier) == _CTCP_ANSWERS and now - earlier[0] < _CTCP_SECONDS
        if request.command in answers and is_me(line.param(0)) and not is_me(line.nick) and not is_often:
            earlier.append(now)
            session.if_there_is_room(
                encode("NOTICE", line.nick, ctcp_answer(request.command, answers[request.command]))
            )

    async def role(self, chat: ChatRef, member: MemberRef) -> Role | None:
        """The member's role from the channel's current modes; without an account MEMBER at most. In a private chat
        the other side is MEMBER if their account is known in a common channel or confirmed by the server, or without an
        account if their nick is not known to be logged in. None if the role is unknown."""
        session = self._session
        if session is None:
            return None
        if session.channel(chat.native):
            return session.state.role(chat.native, member.native)
        if chat.native != member.native:
            return None
        try:
            return Role.MEMBER if await self._nick(session, member.native) else None
        except TimeoutError:
            return None

    measures = frozenset({Measure.KICK, Measure.BAN, Measure.INVITE})

    async def moderate(self, request: ModerationRequest) -> str:
        """A ban is one of the member's host."""
        session = self._session
        channel = session.channel(request.chat.native) if session is not None else ""
        if session is None or not channel or not session.is_in(channel):
            raise SendFailed("the bot is not in the channel", retryable=True)
        is_invite = request.measure is Measure.INVITE
        nick = request.who if is_invite else session.state.nick_of(request.who)
        if not nick or not one_word(nick):
            raise SendFailed("there is no such member", retryable=False)
        if is_invite:
            await self._confirmed(session, ("INVITE", nick, channel), channel, nick)
            return ""
        if request.measure is Measure.BAN:
            found = await self._confirmed(session, ("WHOIS", nick), channel, nick)
            await self._confirmed(session, ("MODE", channel, "+b", f"*!*@{found.param(3)}"), channel, nick)
        try:
            await self._confirmed(session, ("KICK", channel, nick), channel, nick)
        except SendFailed:
            if request.measure is not Measure.BAN:
                raise
        return ""

    async def _confirmed(self, session: Session, command: tuple[str, ...], channel: str, nick: str) -> Line:
        """Send a command on a member of a channel, and return the line that confirms it. Raises SendFailed."""
        fold, verb = session.state.features.fold, command[0]
        confirms = {"INVITE": "341", "WHOIS": "311"}.get(verb, verb)
        about, last = {fold(channel), fold(nick)}, fold(command[-1])

        def is_error(line: Line) -> bool:
            is_refusal = line.command.isdigit() and line.command >= "400" and line.command not in _OF_MESSAGES
            return is_refusal and any(fold(one) in about for one in line.params[1:])

        def is_answer(line: Line) -> bool:
            is_own = line.command.isdigit() or session.state.is_me(line.nick)
            named = {fold(one) for one in line.params}
            return is_error(line) or (line.command == confirms and is_own and (last in named or fold(nick) in named))

        line = await session.answered(encode(*command), is_answer)
        if is_error(line) and line.command != _IS_IN_CHANNEL:
            raise SendFailed(f"the server answers {line.command}", retryable=False)
        return line


async def probe(settings: IrcSettings, clock: Clock) -> str:
    """Connect, register and disconnect without joining channels. Returns a one-line description of the server. Raises
    CannotOpen if the settings, the connection or the registration fails, or takes longer than 30 s."""
    deadlines = Deadlines(clock)
    channels = ConfiguredChannels((), settings.account, clock.monotonic)
    try:
        wire = await Wire.open(settings, clock, deadlines)
        session = Session(wire, settings, channels, clock, deadlines)
        try:
            await deadlines.run(_until_ready(session), clock.monotonic() + _PROBE_SECONDS)
        finally:
            await wire.close("only looking", deadlines)
    except (CannotConnect, TimeoutError) as problem:
        why = str(problem) or f"it did not let the bot in within {_PROBE_SECONDS:g} s"
        raise CannotOpen(f"{why}. Check host, port, tls, password and sasl") from problem
    state = session.state
    network = state.features.network or settings.host
    ids = "gives messages ids" if "message-tags" in state.caps else "gives messages no ids"
    accounts = "tells accounts" if "account-tag" in state.caps else "tells no accounts, so everybody is a member"
    return f"{network} lets the bot in as {state.nick}; it {ids} and {accounts}"


async def _until_ready(session: Session) -> None:
    async with aclosing(session.lines()) as lines:
        async for _ in lines:
            if session.is_ready:
                return
