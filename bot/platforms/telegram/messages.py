"""Conversion of updates of the Bot API to MessageContext."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from bot.platforms.mentions import mention_parser
from config.chat_settings import THREAD
from function_calls.context import Attachment, Kind, MessageContext, MessageKey, Quoted, Sender
from services.clock import Clock
from services.recent import Recent
from services.refs import ChatRef, MemberRef, Role

Json = dict[str, Any]
FILE_URL = "network:"
_MOST_REMEMBERED = 10_000
_QUOTED_CHARS = 500
_FILES = {
    "document": "application/octet-stream",
    "animation": "video/mp4",
    "video": "video/mp4",
    "video_note": "video/mp4",
    "audio": "audio/mpeg",
    "voice": "audio/ogg",
}
"""Fields of messages with a file, and its type if the message does not name one."""
_ROLES = {"creator": Role.OWNER, "administrator": Role.ADMIN, "member": Role.MEMBER}


def role_of(member: Json) -> Role | None:
    """Role of a `ChatMember`; None if the user is not in the chat."""
    status = member["status"]
    return Role.MEMBER if status == "restricted" and member["is_member"] else _ROLES.get(status)


def migration(update: Json) -> tuple[str, str] | None:
    """Old and new id of the chat if the update is Telegram's notice that a group has become a supergroup, else None.
    Members cannot write these fields."""
    with suppress(LookupError, TypeError, ValueError):
        message = update["message"]
        here, kind = str(message["chat"]["id"]), message["chat"]["type"]
        if kind == "group" and "migrate_to_chat_id" in message:
            return here, str(int(message["migrate_to_chat_id"]))
        if kind == "supergroup" and "migrate_from_chat_id" in message:
            return str(int(message["migrate_from_chat_id"])), here
    return None


def name_of(user: Json) -> str:
    """Display name of a user or chat."""
    full = f"{user.get('first_name', '')} {user.get('last_name', '')}".strip()
    return full or str(user.get("title") or user.get("username") or user["id"])


class Updates:
    """Converts the updates of one account."""

    def __init__(self, account: str, names: Sequence[str], clock: Clock) -> None:
        self._account = account
        self._names = names
        self._clock = clock
        self._handle = ""
        self._hear = mention_parser(names)
        self.bot = ""
        """Id of the bot's own user, as soon as it is known."""
        self.admins: dict[str, dict[str, Role | None]] = {}
        """Roles of administrators by chat and user."""
        self.old_ids: dict[str, str] = {}
        """Ids that chats had as groups, by their ids as supergroups. Such a chat keeps the old id everywhere in the
        bot; its messages have new numbers, so their ids get the suffix `s`."""
        self.names = Recent[str, str](_MOST_REMEMBERED)
        """Display names of users by id."""
        self.threads = Recent[str, str](_MOST_REMEMBERED)
        """Topics by Telegram's chat id and native message id, for messages of the bot: reactions do not name them."""
        self._users = Recent[str, str](_MOST_REMEMBERED)
        """User ids by username, in lower case."""

    def connected(self, bot: Json) -> None:
        """Set the bot's own user, from `getMe`."""
        self.bot = str(bot["id"])
        self._handle = f"@{bot['username']}".lower()
        self._hear = mention_parser([str(bot["username"]), *self._names])

    def message_id(self, message: Json) -> str:
        """Native id of a message."""
        return f"{int(message['message_id'])}{'s' if str(message['chat']['id']) in self.old_ids else ''}"

    def contexts(self, update: Json) -> list[MessageContext]:
        """The events of an update, usually one; none for updates that concern nobody. Raises LookupError, TypeError,
        ValueError or AttributeError for updates of an unknown form."""
        revision = str(update["update_id"])
        if message := update.get("message"):
            gone = [message["left_chat_member"]] if "left_chat_member" in message else []
            changes = self._came_or_went(message, message.get("new_chat_members", []), gone)
            return changes or self._message(message, Kind.MESSAGE, "")
        if message := update.get("edited_message"):
            return self._message(message, Kind.EDIT, revision)
        if query := update.get("callback_query"):
            return self._press(query)
        if reaction := update.get("message_reaction"):
            return self._reactions(reaction, revision)
        if changed := update.get("my_chat_member") or update.get("chat_member"):
            return self._membership(changed)
        return []

    def _member(self, user: Json) -> MemberRef:
        """The member; remembers their names."""
        native = str(user["id"])
        self.names[native] = name_of(user)
        if username := user.get("username"):
            self._users[username.lower()] = native
        return MemberRef("telegram", self._account, native)

    def _event(
        self, source: Json, kind: Kind, key: tuple[str, str], user: Json | None = None, text: str = "", **facts: Any
    ) -> MessageContext:
        """An event in the chat of `source`, sent by `user`. `key`: native id and revision. Anonymous administrators and
        channels, whose user is a placeholder, are unknown bots."""
        where, as_chat = source["chat"], source.get("sender_chat")
        user = user or as_chat or source["from"]
        native = self.old_ids.get(str(where["id"]), str(where["id"]))
        role = self.admins.get(native, {}).get(str(user["id"])) or Role.MEMBER
        is_bot, language = bool(user is as_chat or user.get("is_bot")), user.get("language_code") or ""
        if source.get("is_topic_message"):
            native = f"{native}{THREAD}{int(source['message_thread_id'])}"
        chat, is_group = ChatRef("telegram", self._account, native), where["type"] != "private"
        sender = Sender(self._member(user), name_of(user), role, is_bot, language=language)
        at = datetime.fromtimestamp(source.get("date") or self._clock.now().timestamp(), UTC)
        full_key, title = MessageKey(chat, key[0], kind, key[1]), name_of(where)
        return MessageContext(full_key, kind, chat, is_group, sender, text, at, chat_title=title, **facts)

    def _came_or_went(self, source: Json, came: Sequence[Json], gone: Sequence[Json]) -> list[MessageContext]:
        """Joins and leaves of others. A service message, which each member gets, and an update, which is only for
        administrators, have the same key."""
        changes = [(Kind.JOIN, user) for user in came] + [(Kind.LEAVE, user) for user in gone]
        by = source.get("from") or {}
        return [
            self._event(
                source,
                kind,
                (f"member-{user['id']}", str(source["date"])),
                user,
                inviter=name_of(by) if by and kind is Kind.JOIN and by["id"] != user["id"] else "",
            )
            for kind, user in changes
            if str(user["id"]) != self.bot
        ]

    def _membership(self, changed: Json) -> list[MessageContext]:
        user = changed["new_chat_member"]["user"]
        was, is_now = (role_of(changed[key]) is not None for key in ("old_chat_member", "new_chat_member"))
        if was == is_now or changed["chat"]["type"] not in ("group", "supergroup"):
            return []
        if is_now and str(user["id"]) == self.bot:
            return [self._event(changed, Kind.ADDED, (f"member-{self.bot}", str(changed["date"])))]
        return self._came_or_went(changed, [user] if is_now else [], [user] if was else [])

    def _message(self, message: Json, kind: Kind, revision: str) -> list[MessageContext]:
        written = str(message.get("text") or message.get("caption") or "")
        files = tuple(_files(message))
        if not (written or files) or str(message["from"]["id"]) == self.bot:
            return []
        facts = {**self._parsed(message, written), "reply_to": self._quoted(message), "attachments": files}
        facts["is_forwarded"] = "forward_origin" in message
        return [self._event(message, kind, (self.message_id(message), revision), **facts)]

    def _parsed(self, message: Json, written: str) -> Json:
        """The text without mentions of the bot, and who is mentioned. A command for another bot (`/roll@other_bot`) is
        not changed."""
        units = written.encode("utf-16-le")
        members: dict[MemberRef, None] = {}
        mentions_bot = False
        for entity in message.get("entities") or message.get("caption_entities") or []:
            start, length, kind = entity["offset"] * 2, entity["length"] * 2, entity["type"]
            named = units[start : start + length].decode("utf-16-le", "replace").lower()
            if kind == "bot_command" and "@" in named and not named.endswith(self._handle):
                return {"text": written}
            if kind == "mention" and named == self._handle:
                mentions_bot = True
            elif kind == "mention" and (native := self._users.get(named[1:])):
                members[MemberRef("telegram", self._account, native)] = None
            elif kind == "text_mention" and str(entity["user"]["id"]) != self.bot:
                members[self._member(entity["user"])] = None
        parsed = self._hear(written)
        return {"text": parsed.text, "mentions": (*members,), "mentions_bot": mentions_bot or parsed.mentions_bot}

    def _quoted(self, message: Json) -> Quoted | None:
        """The message replied to. In a topic, messages without a reply refer to its first message."""
        quoted = message.get("reply_to_message")
        if not quoted or (message.get("is_topic_message") and quoted["message_id"] == message["message_thread_id"]):
            return None
        sender = quoted.get("sender_chat") or quoted.get("from") or {"id": "?"}
        text = message.get("quote", {}).get("text") or quoted.get("text") or quoted.get("caption") or ""
        native_id = self.message_id({**quoted, "chat": message["chat"]})
        is_own, files = str(sender["id"]) == self.bot, tuple(_files(quoted))
        return Quoted(native_id, name_of(sender), text[:_QUOTED_CHARS], from_bot=is_own, attachments=files)

    def _press(self, query: Json) -> list[MessageContext]:
        message = query.get("message")
        if message is None or "data" not in query:
            return []
        own = {**message, "from": {**message.get("from", {}), "id": self.bot}}
        quoted = self._quoted({"chat": message["chat"], "reply_to_message": own})
        source = {**message, "date": None, "sender_chat": None, "from": query["from"]}
        facts = {"text": query["data"], "mentions_bot": True, "reply_to": quoted}
        return [self._event(source, Kind.CHOICE, (str(query["id"]), ""), **facts)]

    def _reactions(self, reaction: Json, revision: str) -> list[MessageContext]:
        """The emoji that were added; custom emoji have none."""
        if "user" not in reaction:
            return []
        native_id = self.message_id(reaction)
        if thread := self.threads.get(f"{reaction['chat']['id']} {native_id}"):
            reaction = {**reaction, "is_topic_message": True, "message_thread_id": thread}
        added = [one for one in reaction["new_reaction"] if one not in reaction["old_reaction"]]
        return [
            self._event(reaction, Kind.REACTION, (native_id, f"{revision}.{number}"), reaction["user"], one["emoji"])
            for number, one in enumerate(added)
            if one["type"] == "emoji"
        ]


def _files(message: Json) -> Iterator[Attachment]:
    if photos := message.get("photo"):
        photo = photos[-1]
        yield Attachment("photo.jpg", "image/jpeg", f"{FILE_URL}{photo['file_id']}", photo.get("file_size"))
    for field, media_type in _FILES.items():
        # An animation is also a document.
        if (file := message.get(field)) and not (field == "document" and "animation" in message):
            kind = str(file.get("mime_type") or media_type)
            name = str(file.get("file_name") or f"{field}.{kind.rpartition('/')[2]}")
            yield Attachment(name, kind, f"{FILE_URL}{file['file_id']}", file.get("file_size"))
