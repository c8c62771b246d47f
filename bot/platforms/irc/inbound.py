"""Conversion of received IRC lines to MessageContext."""

from __future__ import annotations

import itertools
import re
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from bot.platforms.irc.state import State
from bot.platforms.irc.text import ctcp, without_codes
from bot.platforms.irc.wire import Line
from bot.platforms.mentions import mention_parser
from function_calls.context import Kind, MessageContext, MessageKey, Quoted, Sender
from services.clock import Clock
from services.recent import Recent
from services.refs import ChatRef, MemberRef, Role

REPLY_TAG = "+draft/reply"
OWN_IDS = "local-"
"""Prefix of ids assigned by the bot where the network has none; never sent to the network."""
_REPLY_TAGS = ("+reply", REPLY_TAG)
_QUOTED_CHARS = 500
_ADDRESSEE = re.compile(r"\s*@?([^\s:,@]+)[:,](?=\s|$)")
_AT = re.compile(r"(?<![\w@])@([^\s:,.;!?@()]+)")
_BEFORE_WE_CAME_SECONDS = 5.0
_parser = lru_cache(16)(mention_parser)


class Known(NamedTuple):
    """A recent message that replies may refer to."""

    identity: str
    quoted: Quoted


class Inbound:
    """Converts the lines of one network. Outlives connections, since replies may refer to earlier messages."""

    def __init__(self, account: str, names: Sequence[str], clock: Clock) -> None:
        """`names`: the bot's names in addition to its nick."""
        self._account = account
        self._names = tuple(names)
        self._clock = clock
        self._known: Recent[str, Known] = Recent()
        self._batches: dict[str, str] = {}
        self._connected_at = clock.now()
        self._ahead = timedelta()
        self._numbers = itertools.count(1)
        self._session = ""

    def connected(self, welcome: Line) -> None:
        """Reset for a new connection that begins with the line `welcome`."""
        self._session = f"{OWN_IDS}{uuid.uuid4().hex[:12]}"
        self._batches.clear()
        self._connected_at = self._clock.now()
        server_time = _time(welcome)
        self._ahead = server_time - self._connected_at if server_time else timedelta()

    def known(self, native_id: str) -> Known | None:
        """The message with that id if it is a recent one, else None."""
        return self._known.get(native_id)

    def remember_own(self, native_id: str, nick: str, text: str) -> None:
        """Remember a message that the bot sent."""
        self._known[native_id] = Known("", Quoted(native_id, nick, text[:_QUOTED_CHARS], from_bot=True))

    def own_id(self) -> str:
        """An id for a message without one from the network."""
        return f"{self._session}-{next(self._numbers)}"

    def contexts(self, line: Line, state: State) -> list[MessageContext]:
        """The events in `line`, usually none or one. Call it for QUIT before `state` removes the user."""
        if line.command == "BATCH":
            self._batch(line)
            return []
        if "!" not in line.source or state.is_me(line.nick):
            return []
        match line.command:
            case "PRIVMSG" | "NOTICE":
                context = self._message(line, state)
                return [context] if context is not None else []
            case "JOIN":
                return self._came_or_went(Kind.JOIN, line, line.nick, [line.param(0)], state)
            case "PART":
                return self._came_or_went(Kind.LEAVE, line, line.nick, line.param(0).split(","), state)
            case "KICK" if not state.is_me(line.param(1)):
                return self._came_or_went(Kind.LEAVE, line, line.param(1), [line.param(0)], state)
            case "QUIT":
                names = [channel.name for channel in state.channels_of(line.nick)]
                return self._came_or_went(Kind.LEAVE, line, line.nick, names, state)
        return []

    def _message(self, line: Line, state: State) -> MessageContext | None:
        target, is_for_some = state.features.channel_of(line.param(0))
        is_group = state.features.is_channel(target)
        is_notice = line.command == "NOTICE"
        if not is_group and (is_notice or not state.is_me(target)):
            # Private notices come from services and servers.
            return None
        request = ctcp(line.param(1))
        if request is not None and request.command != "ACTION":
            return None
        body = without_codes(request.text if request else line.param(1))
        mentions_bot, text = _parser((state.nick, *self._names))(body)
        if request is not None:
            text = f"* {line.nick} {body}"
        identity = state.identity(line.nick, state.account(line))
        chat = ChatRef("irc", self._account, state.features.fold(target) if is_group else identity)
        native_id = line.tags.get("msgid") or self.own_id()
        self._known[native_id] = Known(identity, Quoted(native_id, line.nick, text[:_QUOTED_CHARS]))
        role = (state.role(target, identity) if is_group else None) or Role.MEMBER
        return self._event(
            MessageKey(chat, native_id),
            line,
            Sender(self._member(identity), line.nick, role, is_bot=is_notice or "bot" in line.tags),
            text,
            is_group=is_group,
            mentions=self._mentions(body, target, state),
            mentions_bot=mentions_bot,
            reply_to=self._quoted(line),
            private=is_for_some,
            chat_title=target if is_group else line.nick,
        )

    def _event(
        self, key: MessageKey, line: Line, sender: Sender, text: str = "", *, is_group: bool = True, **facts: Any
    ) -> MessageContext:
        sent_at, is_old = self._sent_at(line), self._is_old(line)
        return MessageContext(key, key.kind, key.chat, is_group, sender, text, sent_at, backfilled=is_old, **facts)

    def _came_or_went(
        self, kind: Kind, line: Line, nick: str, names: Sequence[str], state: State
    ) -> list[MessageContext]:
        """One event of `kind` for each of the channels in `names`."""
        native_id, sender = line.tags.get("msgid") or self.own_id(), Sender(self._member(state.identity_of(nick)), nick)
        chats = (ChatRef("irc", self._account, state.features.fold(name)) for name in names)
        return [
            self._event(MessageKey(one, native_id, kind), line, sender, chat_title=state.channels[one.native].name)
            for one in chats
            if one.native in state.channels
        ]

    def _mentions(self, text: str, channel: str, state: State) -> tuple[MemberRef, ...]:
        """The members of `channel` that the text addresses: at its start, or with an @."""
        first = _ADDRESSEE.match(text)
        nicks = [*([first[1]] if first else []), *(found[1] for found in _AT.finditer(text))]
        named = (state.named(nick, channel) for nick in dict.fromkeys(nicks) if not state.is_me(nick))
        return tuple(self._member(identity) for identity in dict.fromkeys(named) if identity)

    def _quoted(self, line: Line) -> Quoted | None:
        native_id = next((line.tags[tag] for tag in _REPLY_TAGS if line.tags.get(tag)), "")
        if not native_id:
            return None
        known = self._known.get(native_id)
        return known.quoted if known is not None else Quoted(native_id)

    def _batch(self, line: Line) -> None:
        reference = line.param(0)
        if reference.startswith("+"):
            self._batches[reference[1:]] = line.param(1).lower()
        else:
            self._batches.pop(reference[1:], None)

    def _is_old(self, line: Line) -> bool:
        """Whether the message is older than the connection: marked as history by the server, or by its time."""
        if self._batches.get(line.tags.get("batch", ""), "").endswith(("chathistory", "playback")):
            return True
        at = _time(line)
        if at is None:
            return False
        return at - self._ahead < self._connected_at - timedelta(seconds=_BEFORE_WE_CAME_SECONDS)

    def _sent_at(self, line: Line) -> datetime:
        """Server time of the line, at most the current time."""
        now = self._clock.now()
        return min(_time(line) or now, now)

    def _member(self, identity: str) -> MemberRef:
        return MemberRef("irc", self._account, identity)


def _time(line: Line) -> datetime | None:
    """The time in the tag `time`; None if it is missing or invalid."""
    try:
        at = datetime.fromisoformat(line.tags.get("time", ""))
    except ValueError:
        return None
    return at.astimezone(UTC) if at.tzinfo else None
