"""The XMPP platform: rooms and private chats of one account."""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import quote
from xml.etree.ElementTree import Element, tostring

import structlog

from bot.platforms.adapter import Host
from bot.platforms.base import Deliver, FileUnavailable, Limits, LinkState, Outgoing, Receipt, SendFailed
from bot.platforms.connection import CannotConnect, ConnectedPlatform, probing
from bot.platforms.xmpp.adapter import JID, XmppSettings
from bot.platforms.xmpp.inbound import (
    CONFERENCE,
    CORRECT,
    DELAY,
    INVITE,
    MUC,
    MUC_USER,
    OOB,
    REACTIONS,
    REFERENCE,
    REPLY,
    RETRACT,
    Archive,
    Arrival,
    Inbound,
    Known,
    Room,
)
from bot.platforms.xmpp.stream import CLIENT, MAM, NO_ANSWER, PING, Refused, Stream, an_element, condition_of
from function_calls.context import Attachment, Kind, MessageContext, MessageKey, Sender
from function_calls.ports import Measure, ModerationRequest
from services.clock import Clock
from services.recent import Recent
from services.refs import ChatRef, MemberRef, Role
from services.store.port import Write
from services.web.http import WebClient, WebError, WebLimits

_log = structlog.get_logger("platforms")
_ADMIN = "{http://jabber.org/protocol/muc#admin}"
_OWNER = "{http://jabber.org/protocol/muc#owner}"
_FORWARDED = "{urn:xmpp:forward:0}forwarded"
_STATES = "{http://jabber.org/protocol/chatstates}"
_HINTS = "{urn:xmpp:hints}"
_RETRY_SECONDS = 60.0
_MOST_ROOMS = 500
_LONGEST_NICK = 70
_MOST_DELETED = 5000
_FILE_SECONDS = 60.0
_OUTSIDE = frozenset(
    {"forbidden", "gone", "item-not-found", "jid-malformed", "not-allowed", "not-authorized", "registration-required"}
)
"""Conditions of a room that the bot cannot join until somebody changes something."""


class XmppPlatform(ConnectedPlatform):
    """One account."""

    name = "xmpp"
    limits = Limits(
        text_chars=20_000,
        sends_per_minute=60,
        attachments=True,
        bots_are_marked=False,
        clients_keep_slashes=True,
        catches_up=True,
        file_bytes=10_000_000,
    )

    def __init__(self, settings: XmppSettings, host: Host) -> None:
        super().__init__(settings, host, silence_seconds=3 * settings.ping_seconds)
        self._settings = settings.model_copy(update={"jid": settings.jid.lower()})
        self._own = self._settings.jid
        self._inbound = Inbound(settings.account, self._own, host.names, host.clock)
        self._stream = Stream(self._settings, self._received, self._renewed)
        self.close = self._stream.close
        self._private = Archive(self._own)
        self._rooms: dict[str, Room] = {}
        for one in settings.rooms:
            nick, password = one.nick or settings.nick, one.password.get_secret_value()
            self._rooms[one.jid.lower()] = Room(one.jid.lower(), nick=nick, password=password, is_trusted=True)
        self._deleted = Recent[tuple[str, str], None](_MOST_DELETED)
        self._typing: dict[str, str] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._deliver: Deliver | None = None

    # Connection

    async def run(self, deliver: Deliver) -> None:
        for jid, password in json.loads(await self._stored("rooms").read() or "{}").items():
            self._rooms.setdefault(jid, self._invited_room(jid, password, "before"))
        await super().run(deliver)

    def link(self) -> LinkState:
        state = super().link()
        problems = (f"; not in {room.jid}: {room.problem}" for room in self._rooms.values() if room.problem)
        return replace(state, words=state.words + "".join(problems))

    async def until_reachable(self, outgoing: Outgoing, created_ms: int) -> None:
        await super().until_reachable(outgoing, created_ms)
        await self._stream.until_up()
        if room := self._rooms.get(outgoing.chat.native):
            await room.settled.wait()

    async def _connected(self, deliver: Deliver) -> None:
        self._deliver = deliver
        await self._stream.open()
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                tasks.create_task(self._stream.until_lost())
                tasks.create_task(self._ping())
                for archive in (self._private, *self._rooms.values()):
                    tasks.create_task(self._serve(archive))
                for room in list(self._rooms.values()):
                    await room.settled.wait()
                self._connection.up()
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        finally:
            self._tasks = None

    def _renewed(self) -> None:
        self._typing.clear()
        for archive in (self._private, *self._rooms.values()):
            archive.reset()

    async def _ping(self) -> None:
        """Check regularly that the server answers, and that the rooms know the bot: a restarted room forgets it."""
        while True:
            await self._clock.sleep(self._settings.ping_seconds)
            if not await self._stream.is_alive():
                raise CannotConnect("the server did not answer a ping")
            self._connection.heard()
            for room in [room for room in self._rooms.values() if room.is_joined]:
                await self._is_in(room)

    async def _is_in(self, room: Room) -> bool:
        """Whether the room answers and knows the bot. Otherwise the bot joins again."""
        try:
            await self._stream.ask(f"{room.jid}/{room.nick}", Element(PING))
        except Refused as refused:
            if refused.condition == "not-acceptable" and not room.problem:
                room.reset()
            # Other errors are of the bot's own client, so it was reached through the room.
            return refused.condition not in {"not-acceptable", *NO_ANSWER}
        return True

    # Rooms

    async def _join(self, room: Room) -> None:
        """Join a room, or note why that is impossible. Retries later after a temporary failure."""
        with suppress(Refused):
            features, name = await self._stream.features(room.jid)
            room.has_occupant_ids = "urn:xmpp:occupant-id:0" in features
            room.is_archived = MAM.strip("{}") in features
            room.title = name or room.jid.partition("@")[0]
        muc = an_element(f"{MUC}x", an_element(f"{MUC}history", maxstanzas="0"))
        if room.password:
            muc.append(an_element(f"{MUC}password", text=room.password))
        room.joining = asyncio.get_running_loop().create_future()
        self._stream.write(an_element(f"{CLIENT}presence", muc, to=f"{room.jid}/{room.nick}"))
        try:
            async with asyncio.timeout(self._settings.answer_seconds):
                problem = await room.joining
        except TimeoutError:
            problem = "no answer"
        if not problem:
            room.is_joined = True
            room.settled.set()
        elif problem == "conflict" and len(room.nick) < _LONGEST_NICK:
            room.nick += "_"
        else:
            room.fail(f"cannot join: {problem}", is_final=problem in _OUTSIDE)
            _log.warning("xmpp_not_in_room", network=self._own, room=room.jid, because=problem)
            if not room.is_final:
                await self._clock.sleep(_RETRY_SECONDS)
                room.reset()

    def _invited_room(self, jid: str, password: str, invitation: str) -> Room:
        # Rooms of the own server are at a subdomain; at the domain itself are accounts, which can pretend to be rooms.
        is_trusted = jid.endswith(f".{self._stream.domain}")
        return Room(jid, nick=self._settings.nick, password=password, is_trusted=is_trusted, invitation=invitation)

    def _invited_rooms(self) -> Write:
        """The write that stores the rooms to which the bot was invited."""
        rooms = {room.jid: room.password for room in self._rooms.values() if room.invitation}
        return self._stored("rooms").at(json.dumps(rooms))

    def _leave(self, room: Room, problem: str) -> None:
        """Note that the bot is no longer in a room; it does not return to one to which it was invited."""
        room.fail(problem, is_final=True)
        if room.invitation and self._rooms.pop(room.jid, None) is room:
            self._host.store.post([self._invited_rooms()])

    def _presence(self, room: Room, nick: str, xml: Element) -> None:
        codes = {one.get("code", "") for one in xml.iter(f"{MUC_USER}status")}
        kind = xml.get("type")
        if kind == "error":
            room.answer(condition_of(xml))
        elif kind == "unavailable":
            self._gone(room, nick, xml, codes)
        elif kind is None and nick:
            is_new = nick not in room.occupants
            occupant = room.occupants[nick] = room.occupant(nick, xml)
            if "201" in codes and self._tasks is not None:
                # The room is new and locked: accept its default configuration.
                form = an_element(f"{_OWNER}query", an_element("{jabber:x:data}x", type="submit"))
                self._tasks.create_task(self._stream.ask(room.jid, form, "set"))
            if "110" in codes:
                room.nick, room.own_id = nick, occupant.occupant_id
                room.answer("")
            elif is_new and room.is_joined:
                room.put(Arrival(xml, occupant, Kind.JOIN))

    def _gone(self, room: Room, nick: str, xml: Element, codes: set[str]) -> None:
        """An occupant has left, or changed the nick."""
        left = room.occupants.pop(nick, None)
        item = xml.find(f"{MUC_USER}x/{MUC_USER}item")
        if "303" in codes and item is not None and left is not None:
            new_nick = item.get("nick", "")
            room.occupants[new_nick] = left
            room.nick = new_nick if nick == room.nick else room.nick
        elif nick != room.nick:
            if left is not None and room.is_joined:
                room.put(Arrival(xml, left, Kind.LEAVE))
        elif xml.find(f"{MUC_USER}x/{MUC_USER}destroy") is not None:
            self._leave(room, "the room was destroyed")
        elif "333" not in codes and codes & {"301", "307", "321", "322"}:
            self._leave(room, "the bot was removed")
        elif room.is_joined:
            room.reset()

    # Receiving

    def _received(self, xml: Element) -> None:
        """Queue a stanza. Occupants are those of this moment, because nicks change."""
        self._connection.heard()
        bare, _, nick = xml.get("from", "").partition("/")
        room = self._rooms.get(bare)
        kind = xml.get("type", "normal")
        if xml.tag == f"{CLIENT}presence":
            if room is not None:
                self._presence(room, nick, xml)
        elif kind == "error":
            self._stream.confirm(xml)
        elif kind == "groupchat":
            if room is not None:
                if nick == room.nick:
                    self._stream.confirm(xml)
                room.put(Arrival(xml, room.occupants.get(nick) if nick != room.nick else None))
        elif kind in ("chat", "normal"):
            self._private.put(Arrival(xml, room.occupants.get(nick) if room is not None else None))

    async def _serve(self, archive: Archive) -> None:
        """Join a room, catch up, and accept what arrives, in order."""
        while True:
            archive.changed.clear()
            if isinstance(archive, Room) and archive.problem:
                await archive.changed.wait()
            elif isinstance(archive, Room) and not archive.is_joined:
                await self._join(archive)
            elif not archive.is_caught_up:
                await self._catch_up(archive)
            elif archive.waiting:
                # Removed after its acceptance, so that it is not lost if that fails.
                arrival = archive.waiting[0]
                if (stanza_id := archive.stanza_id(arrival.xml)) not in archive.seen:
                    await self._accept(archive, arrival, stanza_id)
                archive.waiting.popleft()
            else:
                await archive.changed.wait()

    async def _catch_up(self, archive: Archive) -> None:
        """Accept the messages since the cursor. Without a cursor, set it to the end of the archive. Returns later
        without an answer, to be called again."""
        cursor = self._stored(archive.jid)
        archive.seen.clear()
        try:
            if archive.is_archived and (position := await cursor.read()) is not None:
                await self._read_archive(archive, *position.split(" ", 1))
            elif archive.is_archived:
                last, _ = await self._stream.archive(archive.jid, {"before": "", "max": "1"})
                last_id = last[0].get("id", "") if last else ""
                await self._host.store.commit([cursor.at(f"{last_id} {self._clock.now().isoformat()}")])
        except Refused as refused:
            if refused.condition in NO_ANSWER:
                await self._clock.sleep(_RETRY_SECONDS)
                return
            archive.is_archived = False
            _log.warning("xmpp_no_archive", network=self._own, archive=archive.jid, because=refused.condition)
        archive.is_caught_up = True

    async def _read_archive(self, archive: Archive, after: str, since: str) -> None:
        """Accept the messages after the id `after`, or since a time if the archive has no such message any more."""
        is_last = False
        while not is_last:
            where = ({"after": after}, {}) if after else ({}, {"start": since})
            try:
                results, is_last = await self._stream.archive(archive.jid, *where)
            except Refused as refused:
                if refused.condition != "item-not-found" or not after:
                    raise
                after = ""
                continue
            for result in results:
                after = result.get("id", "")
                archive.seen.append(after)
                stamp, xml = result.find(f"{_FORWARDED}/{DELAY}delay"), result.find(f"{_FORWARDED}/{CLIENT}message")
                if stamp is not None and xml is not None:
                    await self._accept(archive, self._archived(archive, xml, after), after, stamp.get("stamp", ""))

    def _archived(self, archive: Archive, xml: Element, stanza_id: str) -> Arrival:
        bare, _, nick = xml.get("from", "").partition("/")
        room = archive if isinstance(archive, Room) else self._rooms.get(bare)
        if room is None or not nick:
            return Arrival(xml, None)
        occupant = room.occupant(nick, xml, is_believed=room is archive)
        if not room.is_own(occupant, self._own):
            return Arrival(xml, occupant)
        self._remember_own(room.jid, stanza_id, xml)
        return Arrival(xml, None)

    async def _accept(self, archive: Archive, arrival: Arrival, stanza_id: str, stamp: str = "") -> None:
        """Deliver the events of a stanza, and move the cursor. Raises StoreError."""
        assert self._deliver is not None
        xml = arrival.xml
        room = archive if isinstance(archive, Room) else self._rooms.get(xml.get("from", "").partition("/")[0])
        if isinstance(archive, Room) and (retract := xml.find(f"{RETRACT}retract")) is not None:
            await self._recall(archive, retract.get("id", ""))

        def read() -> list[MessageContext]:
            at = datetime.fromisoformat(stamp).astimezone(UTC) if stamp else None
            return self._inbound.contexts(arrival, room, stanza_id, at)

        time = stamp or self._clock.now().isoformat()
        cursor = self._stored(archive.jid).at(f"{stanza_id} {time}") if stanza_id else None
        if archive is self._private and (xml.find(INVITE) is not None or xml.find(CONFERENCE) is not None):
            if (added := self._invited(xml, stanza_id or xml.get("id", ""))) is not None:
                await self._deliver(added, [self._invited_rooms(), *([cursor] if cursor else [])])
        else:
            await self._acceptance.take(self._deliver, read, tostring(xml, encoding="unicode"), cursor)

    def _invited(self, xml: Element, ident: str) -> MessageContext | None:
        """Enter the room of an invitation, by the room or directly by a member; returns the event of it, again if it
        was not accepted. None if the bot is in the room, or enters none."""
        sender = xml.get("from", "").partition("/")[0]
        invite, direct = xml.find(INVITE), xml.find(CONFERENCE)
        if invite is not None or direct is None:
            jid, inviter = sender, invite.get("from", "") if invite is not None else ""
            password = xml.findtext(f"{MUC_USER}x/{MUC_USER}password") or ""
        else:
            jid, inviter, password = direct.get("jid", "").lower(), sender, direct.get("password", "")
        room = self._rooms.get(jid)
        if room is None:
            is_open = self._settings.accept_invitations and len(self._rooms) < _MOST_ROOMS
            if not is_open or re.fullmatch(JID, jid) is None:
                return None
            room = self._rooms[jid] = self._invited_room(jid, password, ident or uuid.uuid4().hex)
            if self._tasks is not None:
                self._tasks.create_task(self._serve(room))
        elif not ident or room.invitation != ident:
            return None
        bare, _, nick = inviter.partition("/")
        name = nick if bare == jid else bare.partition("@")[0]
        # The room only claims who invited the bot.
        is_believed = invite is None or (room.is_trusted and bare != jid)
        chat = ChatRef("xmpp", self.account, jid)
        who = Sender(self._member(bare if is_believed else f"{jid}/~{name}"), name)
        key, title, now = MessageKey(chat, room.invitation, Kind.ADDED), jid.partition("@")[0], self._clock.now()
        return MessageContext(key, key.kind, chat, True, who, "", now, chat_title=title)

    # Sending

    async def send(self, outgoing: Outgoing) -> Receipt:
        room, to = await self._recipient(outgoing)
        files = [await self._stream.upload(one) for one in outgoing.uploads]
        messages = [self._message(outgoing, room, to)] if outgoing.text or not files else []
        for url in files:
            oob = an_element(f"{OOB}x", an_element(f"{OOB}url", text=url))
            messages.append(self._stanza(room, to, an_element(f"{CLIENT}body", text=url), oob))
        sent = [await self._post(room, to, message) for message in messages]
        return Receipt(sent[0])

    async def edit(self, native_id: str, outgoing: Outgoing) -> None:
        room, to = await self._recipient(outgoing)
        if room is not None:
            await self._recall(room, native_id)
        known = self._inbound.known(to, native_id)
        if (to, native_id) in self._deleted or (known is None and room is not None) or (known and not known.from_bot):
            raise SendFailed("the message is gone, or not the bot's", retryable=False)
        message = self._message(outgoing, room, to)
        message.append(an_element(f"{CORRECT}replace", id=known.ident if known else native_id))
        await self._post(room, to, message, native_id)

    async def delete(self, chat: ChatRef, native_id: str) -> None:
        if (chat.native, native_id) not in self._deleted:
            room, to = await self._recipient(Outgoing(chat, "", ""))
            await self._post(room, to, self._stanza(room, to, an_element(f"{RETRACT}retract", id=native_id)))
            self._deleted[to, native_id] = None

    async def react(self, chat: ChatRef, native_id: str, emoji: str) -> None:
        room, to = await self._recipient(Outgoing(chat, "", ""))
        reactions = [an_element(f"{REACTIONS}reaction", text=emoji)] if emoji else []
        target = self._reference(room, to, native_id)
        await self._post(room, to, self._stanza(room, to, an_element(f"{REACTIONS}reactions", *reactions, id=target)))

    async def typing(self, chat: ChatRef, status: str) -> None:
        state = "composing" if status else "active"
        room = self._rooms.get(chat.native)
        is_known = room.is_joined if room is not None else "@" in chat.native
        if is_known and self._typing.get(chat.native, "active") != state:
            self._typing[chat.native] = state
            self._stream.write(self._stanza(room, chat.native, Element(f"{_STATES}{state}"), hint="no-store"))

    async def _recipient(self, outgoing: Outgoing) -> tuple[Room | None, str]:
        """The room of a public message, and the address. Raises SendFailed."""
        room = self._rooms.get(outgoing.chat.native)
        try:
            async with asyncio.timeout(self._settings.answer_seconds):
                await self.until_reachable(outgoing, 0)
        except TimeoutError:
            raise SendFailed("not connected", retryable=True) from None
        if room is not None and room.problem:
            raise SendFailed(room.problem, retryable=not room.is_final)
        if outgoing.private_to is None:
            return room, outgoing.chat.native
        member = outgoing.private_to.native
        occupant = room.named(member) if room is not None else None
        if occupant is None and "/" in member:
            raise SendFailed("the member has left the room", retryable=False)
        return None, f"{outgoing.chat.native}/{occupant.nick}" if occupant else member

    def _stanza(self, room: Room | None, to: str, *children: Element, hint: str = "store") -> Element:
        """A message that rooms and archives store even without a text."""
        if room is None and to.partition("/")[0] in self._rooms:
            children += (Element(f"{MUC_USER}x"),)  # a private message through a room
        kind = "groupchat" if room is not None else "chat"
        return an_element(
            f"{CLIENT}message", *children, Element(f"{_HINTS}{hint}"), to=to, type=kind, id=uuid.uuid4().hex
        )

    def _message(self, outgoing: Outgoing, room: Room | None, to: str) -> Element:
        chat = outgoing.chat.native
        text = outgoing.plain + outgoing.links
        named = (room.named(one.native) for one in outgoing.mentions) if room is not None else ()
        nicks = [one.nick for one in named if one is not None and one.nick.casefold() not in text.casefold()]
        head = ""
        details = [Element(f"{_STATES}active")]
        for nick in nicks:
            where = {"begin": str(len(head)), "end": str(len(head + nick)), "uri": f"xmpp:{chat}/{quote(nick)}"}
            details.append(an_element(f"{REFERENCE}reference", type="mention", **where))
            head += f"{nick}, "
        head = f"{head[:-2]}: " if head else ""
        if outgoing.reply_to:
            known = self._inbound.known(chat, outgoing.reply_to)
            author = {"to": f"{chat}/{known.name}" if room is not None else known.member} if known else {}
            target = self._reference(room, chat, outgoing.reply_to)
            details.append(an_element(f"{REPLY}reply", id=target, **author))
        return self._stanza(room, to, an_element(f"{CLIENT}body", text=head + text), *details)

    async def _post(self, room: Room | None, to: str, message: Element, original: str = "") -> str:
        """Send a message and remember it under its native id, which is returned. `original`: the native id of the
        message that it corrects. Raises SendFailed."""
        self._typing.pop(to, None)
        try:
            echo = await self._stream.send(message, is_echoed=room is not None)
        except SendFailed as failed:
            if str(failed) == "not-acceptable" and room is not None and not room.problem:
                room.reset()
                raise SendFailed("the room has forgotten the bot", retryable=True) from None
            raise
        return self._remember_own(
            to, (room.stanza_id(echo) if room is not None else "") or echo.get("id", ""), message, original
        )

    def _remember_own(self, chat: str, native_id: str, message: Element, original: str = "") -> str:
        text = message.findtext(f"{CLIENT}body") or ""
        known = Known(original or native_id, message.get("id", ""), self._own, self._settings.nick, text, from_bot=True)
        self._inbound.remember(chat, native_id, known)
        return native_id

    def _reference(self, room: Room | None, chat: str, native_id: str) -> str:
        """The id by which others know a message: in private chats that of its sender."""
        known = self._inbound.known(chat, native_id) if room is None else None
        return known.ident if known else native_id

    async def _recall(self, room: Room, stanza_id: str) -> None:
        """Look an older message up in the archive, and remember it."""
        if room.is_archived and self._inbound.known(room.jid, stanza_id) is None:
            with suppress(Refused):
                results, _ = await self._stream.archive(room.jid, {}, {"ids": stanza_id})
                for xml in (one for result in results for one in result.iter(f"{CLIENT}message")):
                    author = self._archived(room, xml, stanza_id).occupant
                    if author is not None:
                        known = Known(stanza_id, xml.get("id", ""), author.member, author.nick, "", from_bot=False)
                        self._inbound.remember(room.jid, stanza_id, known)

    async def read_file(self, attachment: Attachment, max_bytes: int) -> bytes:
        url = attachment.url.removeprefix("network:")
        # The server's own files may be in a private network; all others are on public servers.
        origin = await self._stream.file_origin()
        if not url.startswith(("https://", f"{origin or 'https:/'}/")):
            raise FileUnavailable("the address of the file is not https")
        web = WebClient(WebLimits(timeout_seconds=_FILE_SECONDS, body_bytes=max_bytes), private_origin=origin)
        try:
            return (await web.get(url)).body
        except WebError as error:
            raise FileUnavailable(str(error)) from error
        finally:
            await web.close()

    # Members

    async def role(self, chat: ChatRef, member: MemberRef) -> Role | None:
        room = self._rooms.get(chat.native)
        # The answer comes after all changes that the room has made before.
        if room is None or not room.is_joined or not await self._is_in(room):
            return None
        occupant = room.named(member.native)
        return occupant.role if occupant is not None else None

    async def members(self, chat: ChatRef) -> Sequence[MemberRef]:
        room = self._rooms.get(chat.native)
        occupants = room.occupants.values() if room is not None else ()
        others = dict.fromkeys(one.member for one in occupants if room is not None and one.nick != room.nick)
        return [self._member(one) for one in others]

    measures = frozenset({Measure.KICK, Measure.BAN, Measure.INVITE})

    async def moderate(self, request: ModerationRequest) -> str:
        """A ban needs the address of the member, which the room shows to its moderators."""
        room = self._rooms.get(request.chat.native)
        if room is None or not room.is_joined:
            raise SendFailed("the bot is not in the room", retryable=True)
        if request.measure is Measure.INVITE:
            if re.fullmatch(JID, request.who) is None:
                raise SendFailed("this is no address", retryable=False)
            invite = an_element(f"{MUC_USER}x", an_element(f"{MUC_USER}invite", to=request.who))
            message = an_element(f"{CLIENT}message", invite, to=room.jid, id=uuid.uuid4().hex)
            await self._stream.send(message, is_echoed=False)
            return ""
        occupant = room.named(request.who)
        who = {"nick": occupant.nick, "role": "none"} if occupant is not None else {}
        if request.measure is Measure.BAN:
            jid = occupant.jid if occupant is not None else request.who
            who = {"jid": jid, "affiliation": "outcast"} if re.fullmatch(JID, jid) else {}
        if not who:
            raise SendFailed("the member is not in the room, or the room hides the address", retryable=False)
        try:
            await self._stream.ask(room.jid, an_element(f"{_ADMIN}query", an_element(f"{_ADMIN}item", **who)), "set")
        except Refused as refused:
            is_unknown = refused.condition in NO_ANSWER
            raise SendFailed(refused.condition, retryable=is_unknown, unknown_outcome=is_unknown) from None
        return ""

    async def leave(self, chat: ChatRef) -> None:
        if room := self._rooms.get(chat.native):
            self._stream.write(an_element(f"{CLIENT}presence", to=f"{room.jid}/{room.nick}", type="unavailable"))
            self._leave(room, "the bot has left")


async def probe(settings: XmppSettings, _clock: Clock) -> str:
    """See `Adapter.probe`."""
    stream = Stream(settings, lambda _: None, lambda: None)
    found = [f"connected as {settings.jid}"]
    async with probing(stream.close, "Check jid, password, host, port and tls"):
        await stream.open()
        for jid in (settings.jid, *(room.jid for room in settings.rooms)):
            try:
                if MAM.strip("{}") not in (await stream.features(jid))[0]:
                    found.append(f"{jid} has no archive, so messages of the time away are lost")
            except Refused as refused:
                found.append(f"{jid}: {refused.condition}")
        if not await stream.file_origin():
            found.append("the server takes no files")
    return "; ".join(found)
