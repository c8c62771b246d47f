"""Events of Feishu as MessageContexts, and contents of messages: posts and cards."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from bot.platforms.base import Outgoing, thread_of
from bot.platforms.emoji import EmojiNames
from bot.platforms.markdown import plain_lines
from bot.platforms.mentions import ParseText
from config.chat_settings import THREAD
from function_calls.context import Attachment, Kind, MessageContext, MessageKey, Quoted, Sender
from services.recent import Recent
from services.refs import ChatRef, JsonObject, MemberRef, Role

MESSAGE, ADDED, PRESS = "im.message.receive_v1", "im.chat.member.bot.added_v1", "card.action.trigger"
_MEMBERS = {"im.chat.member.user.added_v1": Kind.JOIN, "im.chat.member.user.deleted_v1": Kind.LEAVE}
_FILES = {"image": "image/png", "file": "application/octet-stream", "audio": "audio/ogg", "media": "video/mp4"}
_MOST_REMEMBERED, _LABEL_CHARS = 10_000, 100
_FENCED = re.compile(r"^(```.*?(?:^```[ \t]*$|\Z))", re.DOTALL | re.MULTILINE)
_AUTO_LINK, _IMAGE = re.compile(r"<(https?://[^\s<>|]+)>"), re.compile(r"!(?=\[)")
_TABLE_RULE = re.compile(r"^[ \t]*\|?(?:[ \t]*:?-+:?[ \t]*\|)+(?:[ \t]*:?-+:?)?[ \t]*\n", re.MULTILINE)
_TAG, _IN_CODE = re.compile(r"<(?=/?[a-z])", re.IGNORECASE), re.compile(r"<(?=/?(?:at|person)\b)", re.IGNORECASE)
_INVISIBLE = "<\u200b"
"""Replaces the beginning of a tag: posts show character references as they are."""
EMOJI = EmojiNames(
    "THUMBSUP 👍 ThumbsDown 👎 DONE ✅ CheckMark ✔️ CrossMark ❌ No 🚫 OK 👌 Yes 🆗 HEART ❤️ HEARTBROKEN 💔 LOVE 😍 "
    "THINKING 🤔 PARTY 🎉 APPLAUSE 👏 THANKS 🙏 PRAISE 🙌 WAVE 👋 MUSCLE 💪 Fire 🔥 Hundred 💯 WHAT ❓ SMILE 🙂 "
    "LAUGH 😄 LOL 😂 CRY 😢 SOB 😭 WINK 😉 ANGRY 😠 WOW 😮 GLANCE 👀 OneSecond ⏳ Alarm ⏰ Pin 📌 ROSE 🌹 "
    "CAKE 🎂 BEER 🍺 Coffee ☕ GIFT 🎁 Trophy 🏆 SALUTE 🫡 SLEEP 😴 FACEPALM 🤦 HUG 🤗"
)


def as_event(message: JsonObject, partner: str) -> JsonObject:
    """The event of a message from the history of a chat. `partner`: see `Reader.chats`."""
    mentions = [{**one, "id": {"open_id": one.get("id")}} for one in message.get("mentions") or ()]
    more = {"message_type": message.get("msg_type"), "content": (message.get("body") or {}).get("content")}
    facts = {**message, **more, "mentions": mentions, "chat_type": "p2p" if partner else "group"}
    sender = message.get("sender") or {}
    who = {"sender_id": {"open_id": sender.get("id")}, "sender_type": sender.get("sender_type")}
    return {"header": {"event_type": MESSAGE}, "event": {"sender": who, "message": facts}}


class Reader:
    """Parses events of one app. The caller first fills the caches with what an event names, as far as Feishu provides
    it. Raises LookupError, TypeError, ValueError or AttributeError on an event of unknown form."""

    def __init__(self, account: str, app_id: str, hear: ParseText, bot_name: str) -> None:
        """`hear`: finds `bot_name`, and other names of the bot, in a text."""
        self._account, self._app_id, self._hear, self._bot_name = account, app_id, hear, bot_name
        self.me = ""
        """Open id of the bot."""
        self.chats: dict[str, str] = {}
        """Known chats by id: open id of the member of a private chat, empty for a group."""
        self.titles: dict[str, str] = {}
        self.names = Recent[str, str](_MOST_REMEMBERED)
        """Display names by open id."""
        self.roles: dict[str, dict[str, Role]] = {}
        """Owner and administrators of groups by open id."""
        self.places = Recent[str, tuple[str, str]](_MOST_REMEMBERED)
        """Native id of the chat, and open id of the author, by message id."""

    def remember(self, message: JsonObject) -> None:
        """Note place and author of a message from the API."""
        who = message["sender"]["id"]
        self.places[message["message_id"]] = _native(message), self.me if who == self._app_id else who

    def contexts(self, event: JsonObject) -> Iterator[MessageContext]:
        """The events of an event, none if it concerns nobody."""
        header, facts = event["header"], event["event"]
        kind, at, id_ = header["event_type"], header.get("create_time") or "", header.get("event_id") or ""
        if kind == MESSAGE:
            yield from self._message(facts["message"], facts["sender"])
        elif kind == "im.message.recalled_v1":
            native, author = self.places.get(facts["message_id"], (facts["chat_id"], "unknown"))
            if author != self.me:
                yield self._event(native, facts["message_id"], Kind.DELETE, "", author, at)
        elif kind == "im.message.reaction.created_v1" and facts["operator_type"] == "user":
            who, name, message = facts["user_id"]["open_id"], facts["reaction_type"]["emoji_type"], facts["message_id"]
            revision, native = f"{who} {name} {facts.get('action_time') or at}", self.places[message][0]
            yield self._event(native, message, Kind.REACTION, revision, who, at, text=EMOJI.emoji(name))
        elif kind == ADDED:
            who = (facts.get("operator_id") or {}).get("open_id") or "unknown"
            yield self._event(facts["chat_id"], id_, Kind.ADDED, "", who, at)
        elif kind in _MEMBERS:
            for who, name in [(one["user_id"]["open_id"], one.get("name")) for one in facts["users"]]:
                self.names[who] = name or who
                yield self._event(facts["chat_id"], who, _MEMBERS[kind], id_, who, at)
        elif kind == PRESS:
            message, value = facts["context"]["open_message_id"], facts["action"]["value"]["choice"]
            native = self.places.get(message, (facts["context"]["open_chat_id"], ""))[0]
            about: JsonObject = {"text": value, "mentions_bot": True, "reply_to": Quoted(message, from_bot=True)}
            yield self._event(native, id_, Kind.CHOICE, "", facts["operator"]["open_id"], at, **about)

    def _event(
        self, native: str, id_: str, kind: Kind, revision: str, who: str, at: str, is_bot: bool = False, **facts: Any
    ) -> MessageContext:
        """`at`: milliseconds, and microseconds for presses."""
        chat, chat_id = ChatRef("feishu", self._account, native), thread_of(native)[0]
        role = self.roles.get(chat_id, {}).get(who, Role.MEMBER)
        sender = Sender(MemberRef("feishu", self._account, who), self.names.get(who, who), role, is_bot)
        facts = {"text": "", "chat_title": self.titles.get(chat_id, ""), **facts}
        sent_at, is_group = datetime.fromtimestamp(float(f"{at[:10]}.{at[10:]}"), UTC), not self.chats.get(chat_id)
        key = MessageKey(chat, id_, kind, revision)
        return MessageContext(key, kind, chat, is_group, sender, sent_at=sent_at, **facts)

    def _message(self, message: JsonObject, sender: JsonObject) -> Iterator[MessageContext]:
        who, id_ = (sender.get("sender_id") or {}).get("open_id") or "unknown", message["message_id"]
        if who in (self.me, self._app_id):
            return
        native, parent, mentioned = _native(message), message.get("parent_id"), dict[str, None]()
        self.places[id_] = native, who
        text, files = _content(message["message_type"], orjson.loads(message["content"]), id_)
        if not (text or files):
            return
        for one in message.get("mentions") or ():
            user = (one.get("id") or {}).get("open_id") or ""
            self.names[user] = one.get("name") or user
            mentioned |= {user: None} if user else {}
            # The bot's name, in place of its key, is removed with the spaces and commas around it.
            name = f"@{self._bot_name if user == self.me else self.names[user]}"
            text = name.join(re.split(rf"{re.escape(one['key'])}(?!\d)", text))
        parsed = self._hear(re.sub(r"@_all(?!\w)", "@all", text))
        facts: JsonObject = {"text": parsed.text, "mentions_bot": parsed.mentions_bot or self.me in mentioned}
        facts["mentions"] = tuple(MemberRef("feishu", self._account, one) for one in mentioned if one != self.me)
        if parent:
            facts["reply_to"] = Quoted(parent, from_bot=self.places.get(parent, ("", ""))[1] == self.me)
        is_bot, at = sender.get("sender_type") != "user", str(message["create_time"])
        yield self._event(native, id_, Kind.MESSAGE, "", who, at, is_bot, attachments=tuple(files), **facts)


def _native(message: JsonObject) -> str:
    """Native id of the chat or thread of a message."""
    thread = message.get("thread_id")
    return f"{message['chat_id']}{THREAD}{thread}" if thread else str(message["chat_id"])


def _content(kind: str, content: JsonObject, message: str) -> tuple[str, list[Attachment]]:
    """Text and files of a message; both are empty for kinds that have neither, such as cards and stickers."""
    if kind != "post":
        return content["text"] if kind == "text" else "", _files(kind, content, message)
    files, lines = list[Attachment](), [content.get("title") or ""]
    for paragraph in content.get("content") or ():
        lines.append("".join(_words(one) for one in paragraph))
        for one in paragraph:
            files += _files("image" if one["tag"] == "img" else one["tag"], one, message)
    return "\n".join(lines).strip(), files


def _words(part: JsonObject) -> str:
    """A part of a post as text."""
    words, url = part.get("text") or "", part.get("href") or ""
    if part["tag"] == "at":
        return str(part["user_id"])
    if part["tag"] == "emotion":
        return EMOJI.emoji(part["emoji_type"])
    return f"{words} ({url})" if url and words not in ("", url) else words or url


def _files(kind: str, content: JsonObject, message: str) -> list[Attachment]:
    """The file of a message or of a part of a post, if it is of a kind with a file."""
    if kind not in _FILES:
        return []
    key, place = ("image_key", "image") if kind == "image" else ("file_key", "file")
    name = content.get("file_name") or f"{kind}.{_FILES[kind].partition('/')[2]}"
    return [Attachment(name, _FILES[kind], f"network:{message}/{content[key]}/{place}")]


def body_of(outgoing: Outgoing, mentions: Sequence[str], *, is_card: bool, is_plain: bool = False) -> JsonObject:
    """The content of a post, or of a card with the choices as buttons, beginning with `mentions`. `is_plain`: Markdown
    becomes plain text."""
    tag, parts = _parts(outgoing, is_plain=is_plain)
    if not is_card:
        rows = [[{"tag": tag, "text": one}] for one in parts]
        named = [part for one in mentions for part in ({"tag": "at", "user_id": one}, {"tag": "text", "text": " "})]
        # Markdown is alone in its row.
        return {"zh_cn": {"content": [named + rows[0]] if tag == "text" else [named, *rows] if named else rows}}
    elements: list[JsonObject] = [{"tag": "markdown", "content": f"<at id={one}></at>"} for one in mentions]
    for one in parts:
        plain = {"tag": "div", "text": {"tag": "plain_text", "content": one}}
        elements.append({"tag": "markdown", "content": one} if tag == "md" else plain)
    columns = []
    for choice in outgoing.choices:
        button: JsonObject = {"tag": "button", "text": {"tag": "plain_text", "content": choice.label[:_LABEL_CHARS]}}
        button["behaviors"] = [{"type": "callback", "value": {"choice": choice.value}}]
        columns.append({"tag": "column", "width": "auto", "elements": [button]})
    elements += [{"tag": "column_set", "flex_mode": "flow", "columns": columns}] if columns else []
    config = {"update_multi": True, "enable_forward": False}
    return {"schema": "2.0", "config": config, "body": {"elements": elements}}


def without_buttons(card: JsonObject) -> JsonObject:
    """A card of `body_of` without its buttons."""
    return {**card, "body": {"elements": [one for one in card["body"]["elements"] if one["tag"] != "column_set"]}}


def _parts(outgoing: Outgoing, *, is_plain: bool) -> tuple[str, list[str]]:
    """`md` or `text`, and the text, which mentions nobody and shows no images. Clients drop Markdown behind a block of
    code, so a block is a part of its own."""
    text = outgoing.text + outgoing.links if outgoing.text else outgoing.links.strip()
    if not outgoing.markdown or is_plain:
        return "text", ["\n".join(plain_lines(text)) if outgoing.markdown else text]
    parts = [_IN_CODE.sub(_INVISIBLE, one) if at % 2 else _safe(one) for at, one in enumerate(_FENCED.split(text))]
    return "md", [one.strip("\n") for one in parts if one.strip()] or [" "]


def _safe(markdown: str) -> str:
    """Markdown outside of blocks of code, with tags shown as they are, and tables as lines."""
    return _TAG.sub(_INVISIBLE, _TABLE_RULE.sub("", _IMAGE.sub("", _AUTO_LINK.sub(r"\1", markdown))))
