"""Events of Slack as MessageContexts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from bot.platforms.emoji import COMMON
from bot.platforms.mentions import ParseText
from bot.platforms.slack.text import plain
from config.chat_settings import THREAD
from function_calls.context import Attachment, Kind, MessageContext, MessageKey, Quoted, Sender
from services.refs import ChatRef, JsonObject, MemberRef, Role

PLATFORM = "slack"
_WRITTEN = (None, "file_share", "thread_broadcast", "me_message", "bot_message")
"""Subtypes of messages that somebody wrote; the others are notices of Slack."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A user, as `users.info` describes it."""

    name: str
    zone: str
    is_bot: bool
    role: Role | None
    """None for a deactivated user."""
    language: str = ""


def profile_of(user: JsonObject, team: str) -> Profile:
    """The profile in a `user` object. Bots, guests and users of other workspaces than `team` are members at most."""
    details = user.get("profile") or {}
    name = details.get("display_name") or details.get("real_name") or user["name"]
    is_bot = bool(user.get("is_bot")) or user["id"] == "USLACKBOT"
    is_outside = user.get("is_stranger") or user.get("is_restricted") or user.get("is_ultra_restricted")
    teams = [user.get("team_id"), *(user.get("enterprise_user") or {}).get("teams", ())]
    role = Role.OWNER if user.get("is_owner") or user.get("is_primary_owner") else Role.ADMIN
    if is_bot or is_outside or team not in teams or not (role is Role.OWNER or user.get("is_admin")):
        role = Role.MEMBER
    current = None if user.get("deleted") else role
    return Profile(name, user.get("tz") or "", is_bot, current, user.get("locale") or "")


class Reader:
    """Parses events of one account, each with the `users` it names, as far as they are known. Raises on an event of
    unknown form."""

    def __init__(self, account: str, hear: ParseText, bot_name: str) -> None:
        """`hear`: finds `bot_name`, and other names of the bot, in a text."""
        self._account, self._hear, self._bot_name = account, hear, bot_name
        self.me: JsonObject = {}
        """The bot's ids: the answer of `auth.test`, with `user_id`, `bot_id` and `team_id`."""

    def read(self, event: JsonObject, users: Mapping[str, Profile]) -> MessageContext | None:
        """The context of an event; None if it is not for the daemon. The caller adds `thread_ts` to the `item` of a
        reaction."""
        match event["type"], event.get("subtype"):
            case "block_actions", _:
                return self._press(event, users)
            case (("message" | "app_mention"), subtype) if subtype in _WRITTEN:
                return self._message(event, users)
            case "message", "message_changed":
                return self._change(event, users)
            case "message", "message_deleted":
                return self._deletion(event, event["deleted_ts"], users)
            case "reaction_added", _:
                item = event["item"]
                key = self._key(item, item["ts"], Kind.REACTION, f"{event['user']} {event['event_ts']}")
                return self._context(event, users, key, event["event_ts"], text=COMMON.emoji(event["reaction"]))
            case (("member_joined_channel" | "member_left_channel"), _):
                return self._membership(event, users)
        return None

    def _key(self, place: JsonObject, ts: str, kind: Kind = Kind.MESSAGE, revision: str = "") -> MessageKey:
        """The key of a message `ts` in the channel and thread that `place` names."""
        channel, thread = place["channel"], place.get("thread_ts") or ts
        native = channel if thread == ts else channel + THREAD + thread
        return MessageKey(ChatRef(PLATFORM, self._account, native), ts, kind, revision)

    def _context(
        self, event: JsonObject, users: Mapping[str, Profile], key: MessageKey, at: str, **facts: Any
    ) -> MessageContext | None:
        """A context with the sender of `event`, at the time `at`; None for an event of the bot itself."""
        user, bot = event.get("user") or "", event.get("bot_id") or ""
        if user == self.me["user_id"] or (bot and bot == self.me["bot_id"]):
            return None
        profile = users.get(user) or Profile(
            event.get("username") or user or bot, "", event.get("subtype") == "bot_message", None
        )
        is_bot = profile.is_bot or bool(bot)
        role = Role.MEMBER if is_bot else profile.role or Role.MEMBER
        member = MemberRef(PLATFORM, self._account, user or bot or "unknown")
        sender = Sender(member, profile.name, role, is_bot, profile.zone, profile.language)
        is_group, sent_at = not key.chat.native.startswith("D"), datetime.fromtimestamp(float(at), UTC)
        return MessageContext(key, key.kind, key.chat, is_group, sender, sent_at=sent_at, **facts)

    def _message(self, event: JsonObject, users: Mapping[str, Profile]) -> MessageContext | None:
        ts, mentioned = event["ts"], dict[str, MemberRef]()
        key = self._key(event, ts)

        def name_of(user: str) -> str:
            mentioned[user] = MemberRef(PLATFORM, self._account, user)
            return self._bot_name if user == self.me["user_id"] else users[user].name if user in users else user

        # The bot's name, in place of its id, is removed with the spaces and commas around it.
        parsed = self._hear(plain(event.get("text") or "", name_of))
        is_mentioned = mentioned.pop(self.me["user_id"], None) is not None
        is_answer = event.get("parent_user_id") == self.me["user_id"]
        files = (
            (one.get("name") or one["id"], one.get("mimetype") or "", f"{PLATFORM}:{one['id']}", one.get("size"))
            for one in event.get("files") or ()
        )
        return self._context(
            event,
            users,
            key,
            ts,
            text=parsed.text,
            mentions=tuple(mentioned.values()),
            mentions_bot=is_mentioned or parsed.mentions_bot,
            reply_to=Quoted(event["thread_ts"], from_bot=is_answer) if THREAD in key.chat.native else None,
            attachments=tuple(Attachment(*one) for one in files),
        )

    def _change(self, event: JsonObject, users: Mapping[str, Profile]) -> MessageContext | None:
        message, before = event["message"], event.get("previous_message") or {}
        if message.get("subtype") == "tombstone":
            return self._deletion(event, message["ts"], users)
        if message.get("text") == before.get("text"):
            return None  # the preview of a link, or the number of replies
        context = self._message({**message, "channel": event["channel"]}, users)
        key = self._key({**message, "channel": event["channel"]}, message["ts"], Kind.EDIT, event["ts"])
        sent_at = datetime.fromtimestamp(float(event["ts"]), UTC)
        return context and replace(context, key=key, kind=Kind.EDIT, sent_at=sent_at)

    def _deletion(self, event: JsonObject, ts: str, users: Mapping[str, Profile]) -> MessageContext | None:
        before = event.get("previous_message") or {}
        key = self._key({**before, "channel": event["channel"]}, ts, Kind.DELETE)
        return self._context(before, users, key, event["ts"], text="")

    def _membership(self, event: JsonObject, users: Mapping[str, Profile]) -> MessageContext | None:
        kind = Kind.JOIN if event["type"] == "member_joined_channel" else Kind.LEAVE
        if event["user"] == self.me["user_id"]:
            if kind is Kind.LEAVE or not event.get("inviter"):
                return None
            event, kind = {**event, "user": event["inviter"]}, Kind.ADDED
        key = self._key(event, f"{event['user']} {event['event_ts']}", kind)
        by = users.get(event.get("inviter") or "") if kind is Kind.JOIN else None
        return self._context(event, users, key, event["event_ts"], text="", inviter=by.name if by else "")

    def _press(self, event: JsonObject, users: Mapping[str, Profile]) -> MessageContext | None:
        action, place = event["actions"][0], event["container"]
        thread = place.get("thread_ts") or (event.get("message") or {}).get("thread_ts") or place["message_ts"]
        chat = self._key({"channel": place["channel_id"], "thread_ts": thread}, place["message_ts"]).chat
        user, at = event["user"]["id"], action["action_ts"]
        key = MessageKey(chat, at, Kind.CHOICE, f"{user} {place['message_ts']}")
        quoted = Quoted(place["message_ts"], from_bot=True)
        return self._context({"user": user}, users, key, at, text=action["value"], mentions_bot=True, reply_to=quoted)
