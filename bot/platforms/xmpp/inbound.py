"""Rooms and their occupants, and the conversion of received stanzas to MessageContext."""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from mimetypes import guess_type
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit
from xml.etree.ElementTree import Element

from bot.platforms.mentions import mention_parser
from bot.platforms.xmpp.stream import CLIENT
from function_calls.context import Attachment, Kind, MessageContext, MessageKey, Quoted, Sender
from services.clock import Clock
from services.recent import Recent
from services.refs import ChatRef, MemberRef, Role

MUC = "{http://jabber.org/protocol/muc}"
MUC_USER = "{http://jabber.org/protocol/muc#user}"
REPLY, CORRECT, RETRACT = "{urn:xmpp:reply:0}", "{urn:xmpp:message-correct:0}", "{urn:xmpp:message-retract:1}"
REACTIONS, REFERENCE = "{urn:xmpp:reactions:0}", "{urn:xmpp:reference:0}"
INVITE, CONFERENCE = f"{MUC_USER}x/{MUC_USER}invite", "{jabber:x:conference}x"
OOB, DELAY = "{jabber:x:oob}", "{urn:xmpp:delay}"
OCCUPANT_ID, STANZA_ID = "{urn:xmpp:occupant-id:0}occupant-id", "{urn:xmpp:sid:0}stanza-id"
MODERATED, FALLBACK = "{urn:xmpp:message-moderate:1}moderated", "{urn:xmpp:fallback:0}"
_QUOTED_CHARS = 500
_UNIQUE_CHARS = 16
"""Shorter ids of messages are assumed to be counters of a client, which are repeated."""
_MARKS = " \t,:;，：；"


class Occupant(NamedTuple):
    """A member of a room as its presence shows it."""

    nick: str
    member: str
    """The id of the member: the JID, or the occupant id or nick after the room's JID."""
    occupant_id: str = ""
    jid: str = ""
    role: Role = Role.MEMBER


class Arrival(NamedTuple):
    """A received stanza that waits to be accepted, with the room's occupant at that time."""

    xml: Element
    occupant: Occupant | None
    kind: Kind = Kind.MESSAGE


@dataclass(slots=True, eq=False)
class Archive:
    """A room, or the private chats of the account: a queue of stanzas, and an archive on the server."""

    jid: str
    waiting: deque[Arrival] = field(default_factory=deque)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    is_archived: bool = True
    """The server keeps an archive, so its ids of messages can be trusted."""
    is_caught_up: bool = False
    seen: deque[str] = field(default_factory=lambda: deque(maxlen=1000))
    """The last archive ids of the current catch-up, of messages that may also wait in the queue."""

    def put(self, arrival: Arrival) -> None:
        """Add a stanza to the queue."""
        self.waiting.append(arrival)
        self.changed.set()

    def reset(self) -> None:
        """Prepare for a new session."""
        self.is_archived, self.is_caught_up = True, False
        self.changed.set()

    def stanza_id(self, xml: Element) -> str:
        """The id that the archive has given to a message; empty without one."""
        found = (one.get("id", "") for one in xml.findall(STANZA_ID) if one.get("by") == self.jid)
        return next(found, "") if self.is_archived else ""


@dataclass(slots=True, eq=False)
class Room(Archive):
    """A room, with its occupants since the bot has joined."""

    nick: str = ""
    """The bot's nick."""
    password: str = ""
    is_trusted: bool = False
    """A room of the settings or of the account's own server: the JIDs that it names are believed."""
    invitation: str = ""
    """Id of the invitation because of which the bot has joined; empty for a room of the settings."""
    title: str = ""
    has_occupant_ids: bool = False
    own_id: str = ""
    occupants: dict[str, Occupant] = field(default_factory=dict)
    is_joined: bool = False
    problem: str = ""
    """Reason why the bot is not in the room; empty while it is, or tries to be."""
    is_final: bool = False
    """The problem does not go away by itself."""
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """The bot is in the room, or there is a problem."""
    joining: asyncio.Future[str] | None = None

    def reset(self) -> None:
        """Prepare for joining (again)."""
        Archive.reset(self)
        self.is_joined = False
        self.problem = self.own_id = ""
        self.occupants.clear()
        self.settled.clear()

    def fail(self, problem: str, *, is_final: bool) -> None:
        """Note that the bot is not in the room."""
        self.is_joined, self.problem, self.is_final = False, problem, is_final
        self.settled.set()

    def answer(self, problem: str) -> None:
        """Note the room's answer to joining: the condition of an error, or nothing."""
        if self.joining is not None and not self.joining.done():
            self.joining.set_result(problem)

    def occupant(self, nick: str, xml: Element, *, is_believed: bool = True) -> Occupant:
        """The sender of a presence, or of an archived message. `is_believed`: the room has added the JID."""
        items = xml.findall(f"{MUC_USER}x/{MUC_USER}item")
        # A member can add such an item to a message. The archive's own item follows it.
        item = items[-1] if items and is_believed else Element("none")
        occupant_id = _attribute(xml, OCCUPANT_ID, "id") if self.has_occupant_ids else ""
        jid = item.get("jid", "").partition("/")[0] if self.is_trusted else ""
        if not jid and occupant_id:
            jid = next((one.jid for one in self.occupants.values() if one.occupant_id == occupant_id), "")
        role = {"owner": Role.OWNER, "admin": Role.ADMIN}.get(item.get("affiliation", ""), Role.MEMBER)
        if role is Role.MEMBER and item.get("role") == "moderator":
            role = Role.MODERATOR
        if jid or occupant_id:
            return Occupant(nick, jid or f"{self.jid}/{occupant_id}", occupant_id, jid, role)
        return Occupant(nick, f"{self.jid}/~{nick}")

    def is_own(self, occupant: Occupant, own_jid: str) -> bool:
        """Whether the sender of an archived message is the bot."""
        if occupant.jid:
            return occupant.jid == own_jid
        return occupant.occupant_id == self.own_id if occupant.occupant_id else occupant.nick == self.nick

    def named(self, member: str) -> Occupant | None:
        """The occupant with that member id."""
        return next((one for one in self.occupants.values() if one.member == member), None)


class Known(NamedTuple):
    """A recent message that others may refer to."""

    native_id: str
    """Native id; that of the original message if this one is a correction."""
    ident: str
    """The sender's id of the message."""
    member: str
    name: str
    text: str
    from_bot: bool


_Reactions = tuple[str, tuple[str, ...], tuple[str, ...]]
"""Id of the latest stanza with the reactions of a member to a message, its emoji, and those before it."""


class Inbound:
    """Converts the stanzas of one account, and remembers recent messages for replies, corrections and the like."""

    def __init__(self, account: str, own_jid: str, names: Sequence[str], clock: Clock) -> None:
        """`names`: the bot's names in addition to its nick."""
        self._account = account
        self._own_jid = own_jid
        self._names = tuple(names)
        self._clock = clock
        self._known = Recent[tuple[str, str], Known]()
        self._natives = Recent[tuple[str, str, str], str]()
        self._reactions = Recent[tuple[str, str, str], _Reactions]()

    def known(self, chat: str, native_id: str) -> Known | None:
        """The message with that id if it is a recent one."""
        return self._known.get((chat, native_id))

    def remember(self, chat: str, native_id: str, known: Known) -> None:
        """Remember a message under its id, which is not its `native_id` for a correction."""
        self._known[chat, native_id] = known
        self._natives[chat, known.member, known.ident] = known.native_id

    def contexts(
        self, arrival: Arrival, room: Room | None, stanza_id: str, at: datetime | None = None
    ) -> list[MessageContext]:
        """The events in a stanza. `room`: None for a private chat. `stanza_id`: the archive's id, or empty. `at`: time
        in the archive. Raises ValueError for invalid times."""
        xml, occupant, kind = arrival
        bare, _, nick = xml.get("from", "").partition("/")
        retract, reactions = xml.find(f"{RETRACT}retract"), xml.find(f"{REACTIONS}reactions")
        if room is not None and occupant is None:
            # The bot's own message, or the room's; the latter may announce that a moderator has deleted a message.
            if nick or retract is None or retract.find(MODERATED) is None:
                return []
            occupant = Occupant("", room.jid)
        sender = occupant or Occupant(bare.partition("@")[0], bare)
        if not bare or sender.member == self._own_jid:
            return []
        event = self._event(xml, room, sender, stanza_id, at)
        if kind is not Kind.MESSAGE:
            return [_changed(event, kind, uuid.uuid4().hex, "")]
        if reactions is not None:
            return self._reacted(event, reactions)
        if retract is not None:
            return self._retracted(event, retract.get("id", ""))
        return self._written(event, xml, room, sender)

    def _event(
        self, xml: Element, room: Room | None, sender: Occupant, stanza_id: str, at: datetime | None
    ) -> MessageContext:
        """A message without its content."""
        ident, is_private = xml.get("id", ""), room is None or xml.get("type") == "chat"
        chat = ChatRef("xmpp", self._account, room.jid if room is not None else sender.member)
        has_own_id = is_private and len(ident) >= _UNIQUE_CHARS
        native_id = (ident if has_own_id else stanza_id or ident) or uuid.uuid4().hex
        stamp = _attribute(xml, f"{DELAY}delay", "stamp")
        at = at or (datetime.fromisoformat(stamp).astimezone(UTC) if stamp else self._clock.now())
        who = Sender(self._member(sender.member), sender.nick, sender.role)
        facts: Any = {"private": room is not None and is_private, "chat_title": room.title if room else sender.nick}
        return MessageContext(MessageKey(chat, native_id), Kind.MESSAGE, chat, room is not None, who, "", at, **facts)

    def _written(
        self, event: MessageContext, xml: Element, room: Room | None, sender: Occupant
    ) -> list[MessageContext]:
        """The message, or the correction of one; none without content, or if the corrected one is unknown."""
        text, mentions_bot, mentions = self._text(xml, room, sender)
        urls = [url.text for url in xml.findall(f"{OOB}x/{OOB}url") if url.text]
        chat, original = event.chat.native, event.key.native_id
        context = replace(
            event,
            text="" if text in urls else text,
            mentions_bot=mentions_bot,
            mentions=mentions,
            reply_to=self._quoted(xml, chat, room),
            attachments=tuple(Attachment(_name(url), _media_type(url), f"network:{url}") for url in urls),
        )
        if not (context.text or urls or mentions_bot):
            return []
        if (correct := xml.find(f"{CORRECT}replace")) is not None:
            # Found by the sender, so that only own messages can be changed.
            original = self._natives.get((chat, sender.member, correct.get("id", "")), "")
            if not original:
                return []
            context = _changed(context, Kind.EDIT, original, event.key.native_id)
        known = Known(original, xml.get("id", ""), sender.member, sender.nick, text[:_QUOTED_CHARS], from_bot=False)
        self.remember(chat, event.key.native_id, known)
        return [context]

    def _reacted(self, context: MessageContext, reactions: Element) -> list[MessageContext]:
        """An event for each emoji that is new: a stanza has all reactions of its sender to a message."""
        chat, target = context.chat.native, reactions.get("id", "")
        if known := self.known(chat, target):
            target = known.native_id
        emojis = dict.fromkeys((one.text or "").strip() for one in reactions)
        key = (chat, context.sender.ref.native, target)
        # A stanza that could not be stored is read again.
        last_id, last, before = self._reactions.get(key, ("", (), ()))
        earlier = before if last_id == context.key.native_id else last
        self._reactions[key] = context.key.native_id, tuple(emojis), earlier
        revision = f"{context.key.native_id} "
        return [
            replace(_changed(context, Kind.REACTION, target, revision + emoji), text=emoji)
            for emoji in emojis
            if emoji and emoji not in earlier
        ]

    def _retracted(self, context: MessageContext, target: str) -> list[MessageContext]:
        """The deletion, if it is by the author of the message, or by the room for a moderator."""
        known = self.known(context.chat.native, target)
        author = known.member if known else "" if context.is_group else context.chat.native
        if context.sender.ref.native not in (author, context.chat.native):
            return []
        return [_changed(context, Kind.DELETE, known.native_id if known else target, context.key.native_id)]

    def _text(self, xml: Element, room: Room | None, sender: Occupant) -> tuple[str, bool, tuple[MemberRef, ...]]:
        """The text without the bot's name and a quotation of the message that it replies to; whether it is for the bot;
        and the members that it mentions."""
        body = xml.findtext(f"{CLIENT}body") or ""
        nick = room.nick if room is not None else ""
        own = {self._own_jid, f"{room.jid}/{nick}"} if room is not None else {self._own_jid}
        cuts: set[tuple[int, int]] = set()
        members: list[str] = []
        mentions_bot = False
        for fallback in xml.findall(f"{FALLBACK}fallback"):
            if fallback.get("for") == REPLY.strip("{}"):
                cuts.update(_range(part) for part in fallback.findall(f"{FALLBACK}body"))
        for reference in xml.findall(f"{REFERENCE}reference"):
            address = unquote(reference.get("uri", "").removeprefix("xmpp:"))
            if reference.get("type") != "mention":
                continue
            if address in own:
                mentions_bot = True
                cuts.add(_range(reference))
            else:
                occupant = room.occupants.get(address.removeprefix(f"{room.jid}/")) if room is not None else None
                members.append(occupant.member if occupant else address)
        for begin, end in sorted(cuts, reverse=True):
            before, after = body[:begin], body[max(begin, end) :]
            body = before + after if before.strip() else after.lstrip(_MARKS)
        if room is not None:
            # Without references, clients write the nick before a colon.
            addressed = (one for one in room.occupants.values() if body.startswith((f"{one.nick}:", f"{one.nick},")))
            members += [one.member for one in addressed if one.nick != nick]
        if body.startswith("/me "):
            body = f"* {sender.nick} {body[4:]}"
        parsed = _parser((nick or self._names[0], *self._names))(body)
        refs = tuple(self._member(one) for one in dict.fromkeys(members))
        return parsed.text, mentions_bot or parsed.mentions_bot, refs

    def _quoted(self, xml: Element, chat: str, room: Room | None) -> Quoted | None:
        reply = xml.find(f"{REPLY}reply")
        if reply is None or not reply.get("id"):
            return None
        known = self.known(chat, reply.get("id", ""))
        if known is not None:
            return Quoted(known.native_id, known.name, known.text, known.from_bot)
        own = f"{room.jid}/{room.nick}" if room is not None else self._own_jid
        return Quoted(reply.get("id", ""), from_bot=reply.get("to", "") == own)

    def _member(self, native: str) -> MemberRef:
        return MemberRef("xmpp", self._account, native)


_parser = lru_cache(64)(mention_parser)


def _changed(context: MessageContext, kind: Kind, native_id: str, revision: str) -> MessageContext:
    """`context` as an event of another kind."""
    return replace(context, kind=kind, key=MessageKey(context.chat, native_id, kind, revision))


def _attribute(xml: Element, tag: str, name: str) -> str:
    found = xml.find(tag)
    return "" if found is None else found.get(name, "")


def _range(xml: Element) -> tuple[int, int]:
    """The characters of the text that an element is about; none if it does not say."""
    return int(xml.get("begin", xml.get("start", "0"))), int(xml.get("end", "0"))


def _name(url: str) -> str:
    """The file name in a URL."""
    return unquote(urlsplit(url).path.rpartition("/")[2]) or "file"


def _media_type(url: str) -> str:
    return guess_type(urlsplit(url).path)[0] or "application/octet-stream"
