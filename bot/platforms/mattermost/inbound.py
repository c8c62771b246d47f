"""Events of Mattermost as MessageContexts."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

from bot.platforms.emoji import COMMON
from bot.platforms.mentions import ParseText
from config.chat_settings import THREAD
from function_calls.context import Attachment, Kind, MessageContext, MessageKey, Quoted, Sender
from services.recent import Recent
from services.refs import ChatRef, JsonObject, MemberRef, Role

PLATFORM = "mattermost"
MOST_CACHED = 2000
_WRITTEN = ("", "me", "slack_attachment")
"""Types of posts that somebody wrote. The others are notices, such as `system_join_channel`, or of plugins."""
_MENTION = re.compile(r"(?<![A-Za-z0-9@/])@([a-z0-9][a-z0-9._-]*)", re.IGNORECASE | re.ASCII)
_PROGRAMS = ("from_bot", "from_webhook", "from_plugin")


def record_of(event: JsonObject) -> JsonObject:
    """The post or reaction in an event; empty if it has none. Raises on an unknown form."""
    data = event.get("data") or {}
    record = json.loads(data.get("post") or data.get("reaction") or "{}")
    if not isinstance(record, dict):
        raise TypeError("a record is no object")
    return record


def usernames(text: str) -> list[str]:
    """Names after `@` in a text, in lower case, without those of all members."""
    names = (found[1].rstrip("._-").lower() for found in _MENTION.finditer(text))
    return [one for one in names if one not in ("all", "channel", "here")]


def adds(post: JsonObject, user: str) -> bool:
    """Whether `post` is the notice that `user` was added to its channel, or has joined."""
    kind, props = post.get("type") or "", post.get("props") or {}
    is_join = kind in ("system_join_channel", "system_join_team") and post.get("user_id") == user
    return is_join or (kind.startswith("system_add_to_") and props.get("addedUserId") == user)


class Reader:
    """Parses events of one account. The caller first fills the caches with what an event names, as far as the server
    provides it. Raises on an event of unknown form."""

    def __init__(self, account: str, hear: ParseText, bot_name: str) -> None:
        """`hear`: finds `bot_name`, and other names of the bot, in a text."""
        self._account, self._hear, self._bot_name = account, hear, bot_name
        self.me: JsonObject = {}
        """The bot's user."""
        self.channels = Recent[str, JsonObject](MOST_CACHED)
        self.users = Recent[str, JsonObject](MOST_CACHED)
        self.ids = Recent[str, str](MOST_CACHED)
        """Ids of users by their usernames."""
        self.roles = Recent[tuple[str, str], Role | None](MOST_CACHED)
        """Roles by channel and user."""
        self.posts = Recent[str, JsonObject](MOST_CACHED)
        """Posts with `root_id`, `user_id` and `channel_id`."""

    def read(self, event: JsonObject, now_ms: int) -> MessageContext | None:
        """The context of an event that was received at `now_ms`; None if it is not for the daemon."""
        record = record_of(event)
        match event["event"]:
            case "posted" if (record.get("type") or "") in _WRITTEN:
                return self._message(record, Kind.MESSAGE, record["create_at"])
            case "posted" if adds(record, self.me["id"]):
                return self._context(record, Kind.ADDED, record["create_at"])
            case "post_edited" if (record.get("type") or "") in _WRITTEN and record.get("edit_at"):
                return self._message(record, Kind.EDIT, record["edit_at"])
            case "post_deleted" if (record.get("type") or "") in _WRITTEN:
                return self._context(record, Kind.DELETE, record.get("delete_at") or now_ms)
            case "reaction_added":
                post = {**self.posts.get(record["post_id"], {}), "id": record["post_id"], "user_id": record["user_id"]}
                post.setdefault("channel_id", (event.get("broadcast") or {}).get("channel_id"))
                at, name = record["create_at"], record["emoji_name"]
                revision = f"{record['user_id']} {name} {at}"
                return self._context(post, Kind.REACTION, at, revision, text=COMMON.emoji(name))
            case "user_added" | "user_removed":
                return self._membership(event, now_ms)
        return None

    def _context(
        self, post: JsonObject, kind: Kind, at_ms: int, revision: str = "", text: str = "", **facts: Any
    ) -> MessageContext | None:
        """A context about `post`, by its user; None for one of the bot itself."""
        user, props = post["user_id"], post.get("props") or {}
        if user == self.me["id"]:
            return None
        native = post["channel_id"] + (THREAD + post["root_id"] if post.get("root_id") else "")
        chat, known = ChatRef(PLATFORM, self._account, native), self.users.get(user, {})
        names = (known.get("nickname"), f"{known.get('first_name', '')} {known.get('last_name', '')}".strip())
        name = next(filter(None, names), known.get("username") or user)
        if props.get("from_webhook") == "true":
            # Its user is the member who made the webhook, and has not written this.
            user, name, known = "webhook", str(props.get("override_username") or "webhook"), {}
        is_bot = bool(known.get("is_bot")) or any(props.get(one) == "true" for one in _PROGRAMS)
        zones = known.get("timezone") or {}
        is_automatic = zones.get("useAutomaticTimezone") != "false"
        zone = (zones.get("automaticTimezone" if is_automatic else "manualTimezone")) or ""
        role = (None if is_bot else self.roles.get((post["channel_id"], user))) or Role.MEMBER
        channel = self.channels.get(post["channel_id"], {})
        is_group, at = channel.get("type") != "D", datetime.fromtimestamp(at_ms / 1000, UTC)
        title = channel.get("display_name") or "" if is_group else ""
        language = known.get("locale") or ""
        sender = Sender(MemberRef(PLATFORM, self._account, user), name, role, is_bot, zone, language)
        key = MessageKey(chat, post["id"], kind, revision)
        return MessageContext(key, kind, chat, is_group, sender, text, at, chat_title=title, **facts)

    def _message(self, post: JsonObject, kind: Kind, at_ms: int) -> MessageContext | None:
        text, mine = post["message"], self.me["username"]
        mentioned = dict.fromkeys(usernames(text))
        if mine in mentioned:
            # The bot's name, in place of its username, is removed with the spaces and commas around it.
            text = re.sub(
                rf"(?<![A-Za-z0-9@/])@{re.escape(mine)}(?![A-Za-z0-9_])",
                f"@{self._bot_name}",
                text,
                flags=re.IGNORECASE,
            )
        parsed, root = self._hear(text), post.get("root_id") or ""
        members = [
            MemberRef(PLATFORM, self._account, self.ids[one]) for one in mentioned if one in self.ids and one != mine
        ]
        is_answer = self.posts.get(root, {}).get("user_id") == self.me["id"]
        files = ((post.get("metadata") or {}).get("files")) or [{"id": one} for one in post.get("file_ids") or ()]
        attachments = (
            Attachment(
                one.get("name") or one["id"], one.get("mime_type") or "", f"{PLATFORM}:{one['id']}", one.get("size")
            )
            for one in files
        )
        return self._context(
            post,
            kind,
            at_ms,
            str(at_ms) if kind is Kind.EDIT else "",
            text=parsed.text,
            mentions=tuple(members),
            mentions_bot=mine in mentioned or parsed.mentions_bot,
            reply_to=Quoted(root, from_bot=is_answer) if root else None,
            attachments=tuple(attachments),
        )

    def _membership(self, event: JsonObject, now_ms: int) -> MessageContext | None:
        data, kind = event["data"], Kind.JOIN if event["event"] == "user_added" else Kind.LEAVE
        channel = (event.get("broadcast") or {}).get("channel_id") or data.get("channel_id")
        user = data.get("user_id") or self.me["id"]
        return self._context({"id": f"{user} {now_ms}", "user_id": user, "channel_id": channel}, kind, now_ms)
