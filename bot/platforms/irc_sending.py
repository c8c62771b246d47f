"""How one message of the daemon's goes over a session: to whom, in which lines, from where an interruption left it."""

from __future__ import annotations

from collections import OrderedDict

from bot.platforms.base import Outgoing, Receipt, SendFailed
from bot.platforms.irc_channels import WantedChannels
from bot.platforms.irc_inbound import OWN_IDS, REPLY_TAG, Inbound
from bot.platforms.irc_outbound import Interrupted, Progress, lines_of, without_spaces
from bot.platforms.irc_session import Session
from bot.platforms.irc_wire import one_word
from config.irc import BY_NICK

_NICKS_KEPT = 2000


class Sending:
    """Outlives sessions: it knows how far messages came, and who wrote in private."""

    def __init__(self, inbound: Inbound, channels: WantedChannels) -> None:
        self._inbound = inbound
        self._channels = channels
        self._interrupted = Interrupted()
        self._private_nicks: OrderedDict[str, str] = OrderedDict()

    def wrote_in_private(self, identity: str, nick: str) -> None:
        """Somebody wrote to us alone."""
        self._private_nicks[identity] = nick
        self._private_nicks.move_to_end(identity)
        if len(self._private_nicks) > _NICKS_KEPT:
            self._private_nicks.popitem(last=False)

    async def send(self, session: Session, outgoing: Outgoing) -> Receipt:
        """Send all lines of `outgoing` that have not arrived yet. Raises SendFailed."""
        target = await self._target(session, outgoing)
        progress = self._interrupted.of(outgoing.key)
        addressees = self._addressees(session, outgoing, target)
        tags = self._reply_tags(session, outgoing)
        for line, piece in lines_of(outgoing, progress.said, addressees, lambda: session.room_bytes(target)):
            native_id = await session.say(target, line, tags) or self._inbound.own_id()
            self._inbound.said(native_id, session.state.nick, line)
            progress = Progress(progress.said + without_spaces(piece), progress.first_id or native_id)
            self._interrupted.keep(outgoing.key, progress)
            tags = {}
        self._interrupted.forget(outgoing.key)
        return Receipt(progress.first_id or self._inbound.own_id())

    def is_reachable(self, session: Session, chat: str) -> bool:
        """Whether something can be sent to `chat`, or it is plain that nothing can."""
        channel = channel_of(session, chat)
        if not channel or session.is_in(channel):
            return True
        return self._channels.problem(channel, session.state) != ""

    def waits_for_people_until(self, session: Session, chat: str) -> float:
        """The instant until which what is for `chat` waits for somebody who would hear it."""
        channel = channel_of(session, chat)
        if not channel or not session.is_in(channel):
            return float("-inf")
        return self._channels.waits_for_people_until(channel, session.state)

    async def nick(self, session: Session, identity: str) -> str:
        """The nick of `identity` now; empty when they are not there. Raises TimeoutError when the server is silent."""
        nick = session.state.nick_of(identity)
        if nick:
            return nick
        if identity.startswith(BY_NICK):
            nick = self._private_nicks.get(identity, identity.removeprefix(BY_NICK))
            if not one_word(nick) or session.state.features.is_channel(nick):
                return ""
            # Whoever holds it now may have proved to be somebody else.
            return nick if session.state.identity_of(nick) == identity else ""
        # A nick that was theirs may be somebody else's by now.
        nick = self._private_nicks.get(identity, identity)
        account = await session.account_of(nick)
        return nick if account and session.state.features.fold(account) == identity else ""

    async def is_there(self, session: Session, identity: str) -> bool:
        """Whether something in private would reach `identity` now. Raises TimeoutError when the server is silent."""
        nick = await self.nick(session, identity)
        if not nick or not identity.startswith(BY_NICK) or session.state.nick_of(identity):
            return nick != ""
        return await session.who_has(nick) == ""

    async def _target(self, session: Session, outgoing: Outgoing) -> str:
        """Whom the lines go to. Raises SendFailed."""
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
        """The nicks that stand before the text: of those whom it answers and names."""
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
    """`native` where it is a channel, else an empty text."""
    return native if session.state.features.is_channel(native) and one_word(native) else ""
