"""Conversion of OneBot events to MessageContext. Messages are lists of segments, or strings with CQ codes."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import urlencode

import orjson

from bot.platforms.mentions import ParseText
from function_calls.context import Attachment, Kind, MessageContext, MessageKey, Quoted, Sender
from services.refs import ChatRef, JsonObject, MemberRef, Role

NAME = "onebot"
GROUP, PRIVATE = "group", "private"
"""First part of the native id of a chat, because a group and a member may have the same number: `group-123`."""
FILE = "network:"
_CQ_CODE = re.compile(r"\[CQ:([^,\[\]]+)(?:,([^\[\]]*))?\]")
_CQ_ESCAPES = (("&#91;", "["), ("&#93;", "]"), ("&#44;", ","), ("&amp;", "&"))
_BOT = "\0"
_BOT_AND_SPACES = re.compile(rf"[ \t]*{_BOT}[ \t]*")
_BRIEF = re.compile(r'\bbrief="([^"]*)"')
_MOST_BRIEF = 200
_QUOTED_CHARS = 500
ROLES = {"owner": Role.OWNER, "admin": Role.ADMIN, "member": Role.MEMBER}
_ANONYMOUS = "80000000"
"""User id of all anonymous members."""
_MEDIA_TYPES = {"image": "image/jpeg", "record": "audio/amr", "video": "video/mp4", "file": "application/octet-stream"}
_IN_MILLISECONDS = 100_000_000_000
_FACES = {"66": "❤️", "76": "👍", "77": "👎", "79": "✌️", "124": "👌"}
"""Reactions with faces of QQ; others are shown as `[face 14]`. Ids of Unicode emoji are their code points."""
_FIRST_EMOJI = 1000


class Content(NamedTuple):
    """The content of a message."""

    text: str
    mentions_bot: bool
    mentions: tuple[str, ...]
    """Ids of other members."""
    attachments: tuple[Attachment, ...]


def seconds_of(event: JsonObject) -> int | None:
    """Unix time of an event; None if it is missing. Some implementations have milliseconds."""
    time = event.get("time")
    if not isinstance(time, int):
        return None
    return time // 1000 if time > _IN_MILLISECONDS else time


def replied_id(event: JsonObject) -> str:
    """Id of the message that a message event replies to; empty if there is none."""
    if event.get("post_type") != "message":
        return ""
    found = (str(data.get("id") or "") for kind, data in _segments(event.get("message")) if kind == "reply")
    return next(found, "")


class Reader:
    """Converts the events of one account."""

    def __init__(self, account: str, hear: ParseText) -> None:
        self._account = account
        self._hear = hear

    def contexts(self, event: JsonObject, self_id: str, quoted: Quoted | None = None) -> Iterator[MessageContext]:
        """The events in `event`, usually none or one. `quoted`: the message that it replies to. Raises ValueError,
        TypeError or KeyError if the event is malformed."""
        match event["post_type"], event.get("notice_type"):
            case "message", _ if str(event["user_id"]) != self_id:
                yield self._message(event, self_id, quoted)
            case "notice", "group_increase" | "group_decrease" as change:
                who, at = str(event["user_id"]), str(seconds_of(event))
                if change == "group_increase" and who == self_id:
                    yield self._notice(Kind.ADDED, event, who, str(event.get("operator_id") or 0), at)
                elif who != self_id:
                    yield self._notice(Kind.JOIN if change == "group_increase" else Kind.LEAVE, event, who, who, at)
            case "notice", "group_recall" | "friend_recall":
                who = str(event.get("operator_id") or event["user_id"])
                yield self._notice(Kind.DELETE, event, str(event["message_id"]), who)
            case "notice", "group_msg_emoji_like" if event.get("user_id") and event.get("is_add", True):
                for like in event["likes"]:
                    who, emoji = str(event["user_id"]), _emoji(str(like["emoji_id"]))
                    revision = f"{who} {emoji} {seconds_of(event)}"
                    yield self._notice(Kind.REACTION, event, str(event["message_id"]), who, revision, emoji)

    def content(self, message: Any, self_id: str) -> Content:
        """The content of a message in either format. Raises TypeError."""
        pieces: list[str] = []
        mentions: list[str] = []
        attachments: list[Attachment] = []
        for kind, data in _segments(message):
            who = str(data.get("qq"))
            match kind:
                case "text":
                    pieces.append(str(data.get("text", "")))
                case "at" if who == self_id:
                    pieces.append(_BOT)
                case "at" if who == "all":
                    pieces.append("@all")
                case "at":
                    mentions.append(who)
                    pieces.append("@" + (str(data.get("name") or "").lstrip("@") or who))
                case "reply":
                    pass
                case _ if kind in _MEDIA_TYPES:
                    attachments.append(_attachment(kind, data))
                case _:
                    pieces.append(_short(kind, data))
        joined = "".join(pieces)
        parsed = self._hear(_BOT_AND_SPACES.sub(" ", joined))
        mentions_bot = parsed.mentions_bot or _BOT in joined
        return Content(parsed.text, mentions_bot, tuple(dict.fromkeys(mentions)), tuple(attachments))

    def quoted(self, native_id: str, found: JsonObject, self_id: str) -> Quoted:
        """The message that `get_msg` has found. Raises TypeError."""
        sender = found.get("sender") or {}
        text = self.content(found.get("message") or "", self_id).text
        from_bot = str(sender.get("user_id")) == self_id
        return Quoted(native_id, str(sender.get("nickname") or ""), text[:_QUOTED_CHARS], from_bot)

    def member(self, native: Any) -> MemberRef:
        """The member with that id."""
        return MemberRef(NAME, self._account, str(native))

    def _message(self, event: JsonObject, self_id: str, quoted: Quoted | None) -> MessageContext:
        chat = self._chat(event)
        content = self.content(event["message"], self_id)
        who, sender = str(event["user_id"]), event.get("sender") or {}
        name = str(sender.get("card") or sender.get("nickname") or who)
        is_group = event["message_type"] == GROUP
        # System notices and anonymous members have no identity, so they are treated as bots.
        is_nobody = is_group and (event.get("sub_type") in ("anonymous", "notice") or who == _ANONYMOUS)
        role = ROLES.get(str(sender.get("role")), Role.MEMBER) if is_group and not is_nobody else Role.MEMBER
        key, sender = (
            MessageKey(chat, str(event["message_id"])),
            Sender(self.member(who), name, role, is_bot=is_nobody),
        )
        mentions, title = tuple(map(self.member, content.mentions)), str(event.get("group_name") or "")
        facts: Any = {"reply_to": quoted, "attachments": content.attachments, "chat_title": title, "mentions": mentions}
        facts["mentions_bot"] = content.mentions_bot
        return MessageContext(key, key.kind, chat, is_group, sender, content.text, _sent_at(event), **facts)

    def _notice(
        self, kind: Kind, event: JsonObject, native_id: str, who: str, revision: str = "", text: str = ""
    ) -> MessageContext:
        key, sender = MessageKey(self._chat(event), native_id, kind, revision), Sender(self.member(who), who)
        return MessageContext(key, kind, key.chat, "group_id" in event, sender, text, _sent_at(event))

    def _chat(self, event: JsonObject) -> ChatRef:
        is_group = event.get("message_type", GROUP if "group_id" in event else PRIVATE) == GROUP
        native = f"{GROUP}-{event['group_id']}" if is_group else f"{PRIVATE}-{event['user_id']}"
        return ChatRef(NAME, self._account, native)


def _sent_at(event: JsonObject) -> datetime:
    at = seconds_of(event)
    return datetime.now(UTC) if at is None else datetime.fromtimestamp(at, UTC)


def _segments(message: Any) -> Iterator[tuple[str, JsonObject]]:
    """Types and data of the segments of `message`. Raises TypeError."""
    if isinstance(message, str):
        yield from _decoded(message)
        return
    for segment in [message] if isinstance(message, dict) else message:
        if not isinstance(segment, dict) or not isinstance(segment.get("data") or {}, dict):
            raise TypeError("a segment is malformed")
        yield str(segment.get("type")), segment.get("data") or {}


def _decoded(text: str) -> Iterator[tuple[str, JsonObject]]:
    end = 0
    for found in _CQ_CODE.finditer(text):
        if found.start() > end:
            yield "text", {"text": _unescaped(text[end : found.start()])}
        pairs = (pair.partition("=") for pair in (found[2] or "").split(","))
        yield found[1], {key: _unescaped(value) for key, _, value in pairs}
        end = found.end()
    if end < len(text):
        yield "text", {"text": _unescaped(text[end:])}


def _unescaped(text: str) -> str:
    for escape, char in _CQ_ESCAPES:
        text = text.replace(escape, char)
    return text


def _short(kind: str, data: JsonObject) -> str:
    """A segment that is neither text nor a file, in brackets."""
    raw, card = data.get("raw"), data.get("data")
    brief = data.get("summary") or data.get("title") or (raw.get("faceText") if isinstance(raw, dict) else "")
    if kind == "face":
        brief = brief or f"face {data.get('id')}"
    elif kind == "xml" and (found := _BRIEF.search(str(card))):
        brief = found[1]
    elif kind == "json":
        try:
            loaded = orjson.loads(card) if isinstance(card, str) else card
        except ValueError:
            loaded = None
        brief = loaded.get("prompt") if isinstance(loaded, dict) else ""
    text = str(brief or kind)[:_MOST_BRIEF]
    return text if text.startswith("[") else f"[{text}]"


def _attachment(kind: str, data: JsonObject) -> Attachment:
    file = str(data.get("file_id") or data.get("file") or "")
    name = re.split(r"[/\\]", str(data.get("name") or data.get("file") or kind))[-1][-100:]
    size = str(data.get("file_size") or "")
    return Attachment(
        name=name,
        media_type=mimetypes.guess_type(name)[0] or _MEDIA_TYPES[kind],
        url=FILE + urlencode({"kind": kind, "file": file, "url": str(data.get("url") or "")}),
        size_bytes=int(size) if size.isascii() and size.isdecimal() else None,
    )


def _emoji(native: str) -> str:
    if native in _FACES:
        return _FACES[native]
    is_emoji = native.isascii() and native.isdecimal() and _FIRST_EMOJI <= int(native) <= 0x10FFFF
    return chr(int(native)) if is_emoji else f"[face {native}]"
