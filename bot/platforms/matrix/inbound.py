"""Events of Matrix rooms as messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import unescape
from typing import Any, TypeVar
from urllib.parse import unquote

import orjson

from bot.platforms.mentions import ParseText
from config.chat_settings import THREAD
from function_calls.context import Attachment, Kind, MessageContext, MessageKey, Quoted, Sender
from services.refs import ChatRef, JsonObject, MemberRef, Role

NETWORK = "network:"
_Part = TypeVar("_Part")
_FILES = frozenset({"m.image", "m.file", "m.audio", "m.video"})
_TEXTS = frozenset({"m.text", "m.notice", "m.emote"})
_CHANGES = frozenset({"m.replace", "m.annotation", "m.redaction"})
_QUOTED_CHARS = 500
_REPLY_FALLBACK = re.compile(r"\A> (?:\* )?<@[^>\n]*>[^\n]*\n(?:>[^\n]*\n)*\n?")
_PILL = re.compile(r'<a href="https://matrix\.to/#/((?:@|%40)[^"/?]+)[^"]*">(.{0,300}?)</a>', re.DOTALL)


@dataclass(frozen=True, slots=True)
class RoomView:
    """A room as far as its events are read: identity, title, and names and roles of members."""

    id: str
    title: str
    is_group: bool
    name_of: Callable[[str], str]
    """Display name of a user id."""
    role_of: Callable[[str], Role]
    """Role of a user id according to the synchronized state."""


def relation_of(event: JsonObject) -> tuple[str, str]:
    """How the event relates to another one, and the id of that one: `m.replace`, `m.annotation`, `m.redaction`, or
    `reply`, but not for the reply in each message of a thread. Empty if it has no such relation."""
    content: JsonObject = event["content"] if isinstance(event.get("content"), dict) else {}
    found = content.get("m.relates_to")
    relation: JsonObject = found if isinstance(found, dict) else {}
    kind, target, reply = relation.get("rel_type"), relation.get("event_id"), relation.get("m.in_reply_to")
    if event.get("type") == "m.room.redaction":
        kind, target = "m.redaction", event.get("redacts") or content.get("redacts")
    elif kind not in _CHANGES:
        kind, target = "reply", reply.get("event_id") if isinstance(reply, dict) else None
        if relation.get("is_falling_back"):
            target = None
    return (str(kind), target) if isinstance(target, str) else ("", "")


def _thread_root(event: JsonObject) -> str:
    """Event id of the thread that the event is in; empty if it is in none."""
    relation = event["content"].get("m.relates_to")
    root = relation.get("event_id") if isinstance(relation, dict) and relation.get("rel_type") == "m.thread" else None
    return root if isinstance(root, str) else ""


def membership_change(event: JsonObject) -> tuple[str, str]:
    """The earlier and the new membership in a member event; `leave` if the earlier one is unknown."""
    unsigned = event.get("unsigned") or {}
    before = unsigned.get("prev_content") or event.get("prev_content") or {}
    return before.get("membership", "leave"), event["content"].get("membership", "leave")


class Inbound:
    """Reads the events of one account."""

    def __init__(self, account: str, user: str, hear: ParseText) -> None:
        """`user`: user id of the bot. `hear`: finds its names in a text."""
        self._account = account
        self._user = user
        self._hear = hear

    def contexts(
        self, event: JsonObject, room: RoomView, related: JsonObject | None, *, backfilled: bool
    ) -> list[MessageContext]:
        """The message or change in `event`, if it is one. `related`: the event of `relation_of` if it is known. Raises
        for content of an unexpected form."""
        if event["sender"] == self._user and event["type"] != "m.room.member":
            return []
        content: JsonObject = event["content"]
        relation, target = relation_of(event)
        # Changes do not name the thread of the message that they change.
        thread = _thread_root(related or {"content": {}}) if relation in _CHANGES else _thread_root(event)
        view = _View(event, content, room, thread, backfilled)
        match event["type"]:
            case "m.room.message" | "m.sticker":
                return self._edit(view, target, related) if relation == "m.replace" else self._message(view, related)
            case "m.reaction" if target:
                emoji = _part(content["m.relates_to"], "key", str)
                return [self._context(view, target, Kind.REACTION, event["sender"], emoji)]
            case "m.room.redaction" if target:
                return [self._context(view, target, Kind.DELETE, event["sender"])]
            case "m.room.member" if event["state_key"] != self._user:
                return self._member_event(view)
        return []

    def added(self, event: JsonObject, room: RoomView, inviter: str) -> MessageContext:
        """The event that `inviter` added the bot, from the bot's own `event` of joining."""
        view = _View(event, event["content"], room, "", backfilled=False)
        return self._context(view, event["event_id"], Kind.ADDED, inviter)

    def _message(self, view: _View, related: JsonObject | None) -> list[MessageContext]:
        kind = "m.image" if view.event["type"] == "m.sticker" else view.content.get("msgtype", "")
        if kind not in _TEXTS | _FILES:
            return []
        is_reply, target = relation_of(view.event)
        facts = self._words(view.content, view.room, is_reply=bool(is_reply), kind=kind)
        facts |= {
            "is_bot": kind == "m.notice",
            "reply_to": self._quoted(target, related, view.room) if is_reply else None,
            "attachments": (_attachment(view.content),) if kind in _FILES else (),
        }
        return [self._context(view, view.event["event_id"], Kind.MESSAGE, view.event["sender"], **facts)]

    def _edit(self, view: _View, target: str, related: JsonObject | None) -> list[MessageContext]:
        # Servers also deliver edits of messages of others, which clients have to ignore.
        if related is None or related.get("sender") != view.event["sender"]:
            return []
        content = _part(view.content, "m.new_content", dict)
        kind = content.get("msgtype", "")
        if kind not in _TEXTS | _FILES:
            return []
        facts = self._words(content, view.room, is_reply=True, kind=kind)
        return [self._context(view, target, Kind.EDIT, view.event["sender"], **facts)]

    def _member_event(self, view: _View) -> list[MessageContext]:
        before, now = membership_change(view.event)
        if (before == "join") == (now == "join"):
            return []
        kind, by = Kind.JOIN if now == "join" else Kind.LEAVE, ""
        if kind is Kind.JOIN and before == "invite":
            by = str(view.event.get("unsigned", {}).get("prev_sender", ""))
        inviter = view.room.name_of(by) if by else ""
        return [self._context(view, view.event["event_id"], kind, view.event["state_key"], inviter=inviter)]

    def _context(
        self,
        view: _View,
        native_id: str,
        kind: Kind,
        sender: str,
        text: str = "",
        *,
        is_bot: bool = False,
        **facts: Any,
    ) -> MessageContext:
        event, room = view.event, view.room
        chat = ChatRef("matrix", self._account, f"{room.id}{THREAD}{view.thread}" if view.thread else room.id)
        key = MessageKey(chat, native_id, kind, event["event_id"] if native_id != event["event_id"] else "")
        who = Sender(self._member(sender), room.name_of(sender), room.role_of(sender), is_bot)
        at = datetime.fromtimestamp(event["origin_server_ts"] / 1000, UTC)
        facts |= {"backfilled": view.backfilled, "chat_title": room.title}
        return MessageContext(key, kind, chat, room.is_group, who, text, at, **facts)

    def _words(self, content: JsonObject, room: RoomView, *, is_reply: bool, kind: str) -> JsonObject:
        """Text without the mention of the bot, the other members that it mentions, and whether it mentions the bot."""
        body = _part(content, "body", str)
        if kind in _FILES:
            name = content.get("filename")
            body = body if isinstance(name, str) and name != body else ""
        if is_reply:
            body = _REPLY_FALLBACK.sub("", body)
        markup = content.get("formatted_body")
        pills = {
            unquote(user): unescape(words) for user, words in _PILL.findall(markup if isinstance(markup, str) else "")
        }
        named = list(pills)
        if "m.mentions" in content:
            named = _part(content, "m.mentions", dict).get("user_ids", [])
        users = [user for user in dict.fromkeys(named) if isinstance(user, str)]
        is_named = self._user in users
        if is_named:
            labels = (pills.get(self._user, ""), room.name_of(self._user), self._user, self._user[1:].partition(":")[0])
            body = _without_first(body, labels)
        parsed = self._hear(body)
        others = tuple(self._member(user) for user in users if user != self._user)
        return {"text": parsed.text, "mentions": others, "mentions_bot": is_named or parsed.mentions_bot}

    def _quoted(self, native_id: str, related: JsonObject | None, room: RoomView) -> Quoted:
        if related is None:
            return Quoted(native_id)
        sender, body = related.get("sender"), related["content"].get("body")
        words = _REPLY_FALLBACK.sub("", body)[:_QUOTED_CHARS] if isinstance(body, str) else ""
        return Quoted(native_id, room.name_of(str(sender)), words, from_bot=sender == self._user)

    def _member(self, user: str) -> MemberRef:
        return MemberRef("matrix", self._account, user)


@dataclass(frozen=True, slots=True)
class _View:
    """An event in its room."""

    event: JsonObject
    content: JsonObject
    room: RoomView
    thread: str
    backfilled: bool


def _without_first(body: str, labels: Sequence[str]) -> str:
    """`body` without the first mention by one of `labels`, and the punctuation after it."""
    for label in filter(None, labels):
        found = re.search(rf"(?<!\w)@?{re.escape(label)}(?!\w)[ \t]*[,:，：]?[ \t]*", body)
        if found is not None:
            return (body[: found.start()] + body[found.end() :]).strip()
    return body


def _attachment(content: JsonObject) -> Attachment:
    """The file of a message. Its URL holds the keys of an encrypted file."""
    info = content.get("info")
    info = info if isinstance(info, dict) else {}
    name, media_type, size = content.get("filename", content.get("body")), info.get("mimetype"), info.get("size")
    encrypted = content.get("file")
    file: JsonObject = {"url": content.get("url")}
    if isinstance(encrypted, dict):
        file = {key: encrypted.get(key) for key in ("url", "key", "iv", "hashes")}
    return Attachment(
        name if isinstance(name, str) else "",
        media_type if isinstance(media_type, str) else "application/octet-stream",
        NETWORK + orjson.dumps(file).decode(),
        size if type(size) is int and size >= 0 else None,
    )


def _part(content: JsonObject, key: str, kind: type[_Part]) -> _Part:
    value = content[key]
    if not isinstance(value, kind):
        raise TypeError(f"{key} is no {kind.__name__}")
    return value
