"""A Bot API server on 127.0.0.1 with users, groups and one bot. Clients of others run against it in
tests/bot/platforms/telegram/test_fake_server.py."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from html.parser import HTMLParser
from typing import Any, Self

import aiohttp
from aiohttp import web

Json = dict[str, Any]
TOKEN = "4242:AAF-fake_token_of_the_bot"
BOT = {"id": 4242, "is_bot": True, "first_name": "Rollcall", "username": "rollcall_bot"}
GROUP = -1001000000001
MIGRATED = -1009000000009
USERS: dict[str, Json] = {
    "ann": {"id": 1001, "is_bot": False, "first_name": "Ann", "last_name": "Lee", "username": "ann_lee"},
    "ben": {"id": 1002, "is_bot": False, "first_name": "Ben"},
    "carl": {"id": 1003, "is_bot": False, "first_name": "Carl"},
    "robot": {"id": 1004, "is_bot": True, "first_name": "Robot", "username": "robot_bot"},
    "anonymous": {"id": 1087968824, "is_bot": True, "first_name": "Group", "username": "GroupAnonymousBot"},
    "telegram": {"id": 777000, "is_bot": False, "first_name": "Telegram"},
}
EMOJI = frozenset("👍👎❤🔥🎉🤔👀")
_TAGS = {"b": "bold", "i": "italic", "s": "strikethrough", "u": "underline", "code": "code", "pre": "pre", "a": ""}
_COMMAND_CHARS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_")


class Rejected(Exception):
    """The answer to a call that fails."""

    def __init__(self, code: int, description: str, **parameters: int) -> None:
        super().__init__(description)
        self.code = code
        self.parameters = parameters


class FakeTelegram:
    """The server. Attributes can be changed at any time."""

    def __init__(self) -> None:
        self.url = ""
        self.chats: dict[int, Json] = {}
        self.members: dict[int, dict[int, str]] = {}
        """Status by chat and user."""
        self.messages: dict[int, dict[int, Json]] = {}
        self.reactions: dict[tuple[int, int], list[str]] = {}
        self.files: dict[str, bytes] = {}
        self.calls: list[tuple[str, Json]] = []
        self.failures: deque[Rejected | str] = deque()
        """Answers to the next sends; `lost`: the message is shown and the connection breaks."""
        self.fails_texts: dict[str, list[Rejected]] = {}
        """Answers to sends of these texts."""
        self.moved: dict[int, int] = {}
        """Supergroups by the groups that they were."""
        self.webhook: Json = {}
        self.answered: set[str] = set()
        self.downloads = 0
        self.declared_sizes: dict[str, int] = {}
        """Wrong sizes of files, by id."""
        self.can_read_all = False
        self.on_sent: Callable[[Json], None] = lambda message: None
        self._updates: list[Json] = []
        self._update_ids = itertools.count(700)
        self._message_ids = itertools.count(11)
        self._changed = asyncio.Event()
        self.polling = asyncio.Event()
        """Set while a poll waits for updates."""
        self._poll: web.Request | None = None
        self._runner: web.AppRunner | None = None
        self.add_chat(GROUP, "supergroup", "Family", is_forum=True)
        self.members[GROUP] = {
            USERS["ann"]["id"]: "member",
            USERS["ben"]["id"]: "member",
            USERS["robot"]["id"]: "member",
            BOT["id"]: "administrator",
        }
        ann = USERS["ann"]
        self.add_chat(ann["id"], "private", "", first_name=ann["first_name"], username=ann["username"])

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=60_000_000)
        app.router.add_route("*", "/bot{token}/{method}", self._call)
        app.router.add_get("/file/bot{token}/{path:.*}", self._download)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.disconnect()
        assert self._runner is not None
        await self._runner.cleanup()

    # The side of the members

    def add_chat(self, id_: int, kind: str, title: str, **more: Any) -> None:
        """Add a chat without members."""
        self.chats[id_] = {"id": id_, "type": kind, **({"title": title} if title else {}), **more}
        self.members.setdefault(id_, {})
        self.messages.setdefault(id_, {})

    def message(self, chat: int, sender: Json, **content: Any) -> Json:
        """A new message."""
        message = {
            "message_id": next(self._message_ids),
            "from": sender,
            "chat": self.chats[chat],
            "date": int(time.time()),
            **content,
        }
        self.messages[chat][message["message_id"]] = message
        return message

    def update(self, **content: Any) -> Json:
        """Queue an update."""
        update = {"update_id": next(self._update_ids), **content}
        self._updates.append(update)
        self._changed.set()
        return update

    def repeat(self) -> None:
        """Queue the content of the last update again."""
        self.update(**{key: value for key, value in self._updates[-1].items() if key != "update_id"})

    def say(self, who: str, text: str, chat: int = GROUP, *, thread: int = 0, **content: Any) -> Json:
        """A user sends a text with the entities that the real server finds."""
        entities = content.pop("entities", None) or found_entities(text)
        if thread:
            content |= {"message_thread_id": thread, "is_topic_message": True}
            content.setdefault("reply_to_message", self.messages[chat][thread])
        words = {"text": text, "entities": entities} if "document" not in content else {"caption": text}
        words = {key: value for key, value in words.items() if value}
        message = self.message(chat, USERS[who], **words, **content)
        self.update(message=message)
        return message

    def say_file(self, who: str, text: str, name: str, content: bytes) -> Json:
        """A user sends a file."""
        file_id = self.keep(content)
        document = {"file_id": file_id, "file_unique_id": file_id, "file_name": name, "mime_type": "image/png"}
        return self.say(who, text, document=document | {"file_size": len(content)})

    def keep(self, content: bytes) -> str:
        """Store a file; returns its id."""
        file_id = f"file{len(self.files)}"
        self.files[file_id] = content
        return file_id

    def edit(self, chat: int, number: int, text: str) -> None:
        """A user edits their message."""
        message = self.messages[chat][number]
        message |= {"text": text, "edit_date": int(time.time()), "entities": found_entities(text)}
        self.update(edited_message=message)

    def change_member(self, who: Json, status: str, chat: int = GROUP, by: str = "ann") -> None:
        """A membership changes; administrators, such as the bot, get an update."""
        kind = "my_chat_member" if who["id"] == BOT["id"] else "chat_member"
        was = self.members[chat].get(who["id"], "left")
        self.members[chat][who["id"]] = status
        facts = {"chat": self.chats[chat], "from": USERS[by], "date": int(time.time())}
        states = {"old_chat_member": chat_member(who, was), "new_chat_member": chat_member(who, status)}
        self.update(**{kind: {**facts, **states}})

    def press(self, who: str, chat: int, number: int, label: str) -> None:
        """A user presses a button."""
        message = self.messages[chat][number]
        buttons = {one["text"]: one["callback_data"] for row in keyboard(message) for one in row}
        query = {"id": str(next(self._update_ids) * 10**12), "from": USERS[who], "chat_instance": "7"}
        self.update(callback_query={**query, "message": message, "data": buttons[label]})

    def react(self, who: str, chat: int, number: int, emoji: str) -> None:
        """A user reacts."""
        facts = {"chat": self.chats[chat], "message_id": number, "user": USERS[who], "date": int(time.time())}
        self.update(message_reaction={**facts, "old_reaction": [], "new_reaction": [{"type": "emoji", "emoji": emoji}]})

    def migrate(self, old: int, new: int = MIGRATED) -> None:
        """A group becomes a supergroup, with new message numbers."""
        self.add_chat(new, "supergroup", self.chats[old]["title"])
        self.members[new] = dict(self.members[old])
        self.moved[old] = new
        self._message_ids = itertools.count(11)

    def disconnect(self) -> None:
        """Break the connection of the poll."""
        if self._poll is not None and self._poll.transport is not None:
            self._poll.transport.abort()

    def sent(self, chat: int = GROUP, thread: int = 0) -> list[Json]:
        """The bot's messages in a chat or topic."""
        found = [one for one in self.messages[chat].values() if one["from"]["id"] == BOT["id"]]
        return [one for one in found if one.get("message_thread_id", 0) == thread]

    def called(self, method: str) -> list[Json]:
        """Parameters of the calls of `method`."""
        return [parameters for name, parameters in self.calls if name == method]

    async def push(self, update: Json, secret: str = "") -> int:
        """Send an update to the webhook as the server does; returns the status."""
        headers = {"X-Telegram-Bot-Api-Secret-Token": secret or self.webhook["secret_token"]}
        posting = aiohttp.request("POST", self.webhook["url"], json=update, headers=headers)
        async with posting as response:
            return response.status

    # The side of the bot

    async def _call(self, request: web.Request) -> web.Response:
        try:
            if request.match_info["token"] != TOKEN:
                raise Rejected(401, "Unauthorized")
            method = request.match_info["method"]
            parameters = await _parameters(request)
            self.calls.append((method, parameters))
            if method == "getUpdates":
                return _answer(await self._get_updates(request, **parameters))
            handle = getattr(self, f"_on_{method.lower()}", None)
            if handle is None:
                raise Rejected(404, "Not Found")
            failure = self.failures.popleft() if self.failures and method.startswith("send") else None
            if (wanted := self.fails_texts.get(str(parameters.get("text")))) and failure is None:
                failure = wanted.pop(0)
            if isinstance(failure, Rejected):
                raise failure
            result = handle(**parameters)
            if failure == "lost" and request.transport is not None:
                request.transport.abort()
            return _answer(result)
        except Rejected as problem:
            body = {"ok": False, "error_code": problem.code, "description": str(problem)}
            if problem.parameters:
                body["parameters"] = problem.parameters
            return web.json_response(body, status=problem.code)

    async def _download(self, request: web.Request) -> web.Response:
        self.downloads += 1
        if request.match_info["token"] != TOKEN or request.match_info["path"].rpartition("/")[2] not in self.files:
            return web.json_response({"ok": False, "error_code": 404, "description": "Not Found"}, status=404)
        return web.Response(body=self.files[request.match_info["path"].rpartition("/")[2]])

    async def _get_updates(
        self, request: web.Request, offset: int = 0, timeout: float = 0, limit: int = 100, **_: Any
    ) -> list[Json]:
        if self.webhook:
            raise Rejected(409, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook")
        self._updates = [one for one in self._updates if one["update_id"] >= int(offset)]
        self._poll = request
        self._changed.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(float(timeout)):
                while not self._updates and self._poll is request:
                    self._changed.clear()
                    self.polling.set()
                    await self._changed.wait()
        self.polling.clear()
        if self._poll is not request:
            raise Rejected(409, "Conflict: terminated by other getUpdates request")
        return self._updates[: int(limit)]

    def _on_getme(self) -> Json:
        return {**BOT, "can_join_groups": True, "can_read_all_group_messages": self.can_read_all}

    def _on_deletewebhook(self, drop_pending_updates: bool = False) -> bool:
        self.webhook = {}
        self._updates = [] if drop_pending_updates in (True, "true") else self._updates
        return True

    def _on_setwebhook(self, url: str, **more: Any) -> bool:
        self._on_deletewebhook(more.get("drop_pending_updates", False))
        self.webhook = {"url": url, **more}
        return True

    def _on_getwebhookinfo(self) -> Json:
        facts = {"has_custom_certificate": False, "pending_update_count": len(self._updates)}
        return {"url": self.webhook.get("url", ""), **facts}

    def _chat_of(self, chat_id: Any) -> int:
        number = int(chat_id) if str(chat_id).removeprefix("-").isdigit() else 0
        if number in self.moved:
            description = "Bad Request: group chat was upgraded to a supergroup chat"
            raise Rejected(400, description, migrate_to_chat_id=self.moved[number])
        if number not in self.chats:
            raise Rejected(400, "Bad Request: chat not found")
        if number < 0 and self.members[number].get(BOT["id"], "left") in ("left", "kicked"):
            raise Rejected(403, "Forbidden: bot is not a member of the supergroup chat")
        return number

    def _find(self, chat_id: Any, message_id: Any, verb: str) -> Json:
        message = self.messages[self._chat_of(chat_id)].get(int(message_id))
        if message is None:
            raise Rejected(400, f"Bad Request: message to {verb} not found")
        return message

    def _send(self, chat_id: Any, content: Json, **more: Any) -> Json:
        chat = self._chat_of(chat_id)
        thread = int(more.get("message_thread_id") or 0)
        if thread and "forum_topic_created" not in self.messages[chat].get(thread, {}):
            raise Rejected(400, "Bad Request: message thread not found")
        if thread:
            content |= {"message_thread_id": thread, "is_topic_message": True}
        if reply := more.get("reply_parameters"):
            quoted = self.messages[chat].get(int(reply["message_id"]))
            if quoted is None and not reply.get("allow_sending_without_reply"):
                raise Rejected(400, "Bad Request: message to be replied not found")
            content |= {"reply_to_message": quoted} if quoted else {}
        if markup := more.get("reply_markup"):
            content["reply_markup"] = checked_keyboard(markup)
        message = self.message(chat, BOT, **content)
        self.on_sent(message)
        return message

    def _user_in(self, chat_id: Any, user_id: Any) -> int:
        chat = self._chat_of(chat_id)
        if self.members[chat].get(int(user_id), "left") in ("left", "kicked"):
            raise Rejected(400, "Bad Request: PARTICIPANT_ID_INVALID")
        if self.members[chat][int(user_id)] in ("creator", "administrator"):
            raise Rejected(400, "Bad Request: user is an administrator of the chat")
        return chat

    def _on_banchatmember(self, chat_id: Any, user_id: int) -> bool:
        self.members[self._user_in(chat_id, user_id)][int(user_id)] = "kicked"
        return True

    def _on_unbanchatmember(self, chat_id: Any, user_id: int) -> bool:
        """Without `only_if_banned`, removes a member."""
        self.members[self._user_in(chat_id, user_id)][int(user_id)] = "left"
        return True

    def _on_restrictchatmember(self, chat_id: Any, user_id: int, permissions: Json, until_date: int) -> bool:
        self._user_in(chat_id, user_id)
        assert permissions == {"can_send_messages": False}
        assert until_date > time.time()
        return True

    def _on_pinchatmessage(self, chat_id: Any, message_id: int, disable_notification: bool = False) -> bool:
        self._find(chat_id, message_id, "pin")
        return True

    def _on_createchatinvitelink(self, chat_id: Any, member_limit: int) -> Json:
        return {"invite_link": f"https://t.me/+{-self._chat_of(chat_id)}", "member_limit": member_limit}

    def _on_sendmessage(self, chat_id: Any, text: str, parse_mode: str | None = None, **more: Any) -> Json:
        return self._send(chat_id, parsed("text", text, parse_mode, 4096), **more)

    def _on_sendphoto(self, chat_id: Any, photo: bytes, **more: Any) -> Json:
        file_id = self.keep(photo)
        sizes = [{"file_id": file_id, "file_unique_id": file_id, "width": 1, "height": 1, "file_size": len(photo)}]
        return self._send_file(chat_id, {"photo": sizes}, **more)

    def _on_senddocument(self, chat_id: Any, document: bytes, **more: Any) -> Json:
        file_id = self.keep(document)
        return self._send_file(chat_id, {"document": {"file_id": file_id, "file_unique_id": file_id}}, **more)

    def _send_file(
        self, chat_id: Any, file: Json, caption: str = "", parse_mode: str | None = None, **more: Any
    ) -> Json:
        words = parsed("caption", caption, parse_mode, 1024) if caption else {}
        return self._send(chat_id, {**file, **words}, **more)

    def _on_editmessagetext(
        self, chat_id: Any, message_id: Any, text: str, parse_mode: str | None = None, **more: Any
    ) -> Json:
        if "text" not in self._find(chat_id, message_id, "edit"):
            raise Rejected(400, "Bad Request: there is no text in the message to edit")
        return self._edit(chat_id, message_id, parsed("text", text, parse_mode, 4096), more.get("reply_markup"))

    def _on_editmessagecaption(
        self, chat_id: Any, message_id: Any, caption: str, parse_mode: str | None = None, **more: Any
    ) -> Json:
        return self._edit(chat_id, message_id, parsed("caption", caption, parse_mode, 1024), more.get("reply_markup"))

    def _on_editmessagereplymarkup(self, chat_id: Any, message_id: Any, reply_markup: Any = None, **_: Any) -> Json:
        return self._edit(chat_id, message_id, {}, reply_markup)

    def _edit(self, chat_id: Any, message_id: Any, content: Json, markup: Any) -> Json:
        message = self._find(chat_id, message_id, "edit")
        if message["from"]["id"] != BOT["id"]:
            raise Rejected(400, "Bad Request: message can't be edited")
        changed = {key: value for key, value in message.items() if key not in ("reply_markup", "entities", "edit_date")}
        changed |= content | ({"reply_markup": checked_keyboard(markup)} if markup else {})
        if changed == {key: value for key, value in message.items() if key != "edit_date"}:
            raise Rejected(
                400, "Bad Request: message is not modified: specified new message content and reply markup are the same"
            )
        message.clear()
        message.update(changed, edit_date=int(time.time()))
        return message

    def _on_deletemessage(self, chat_id: Any, message_id: Any, **_: Any) -> bool:
        self._find(chat_id, message_id, "delete")
        del self.messages[self._chat_of(chat_id)][int(message_id)]
        return True

    def _on_setmessagereaction(self, chat_id: Any, message_id: Any, reaction: Any = (), **_: Any) -> bool:
        self._find(chat_id, message_id, "react")
        emoji = [one["emoji"] for one in reaction]
        if not EMOJI.issuperset(emoji):
            raise Rejected(400, "Bad Request: REACTION_INVALID")
        self.reactions[self._chat_of(chat_id), int(message_id)] = emoji
        return True

    def _on_sendchataction(self, chat_id: Any, action: str, **_: Any) -> bool:
        assert action == "typing"
        return bool(self._chat_of(chat_id))

    def _on_answercallbackquery(self, callback_query_id: str, **_: Any) -> bool:
        self.answered.add(str(callback_query_id))
        return True

    def _on_getchatmember(self, chat_id: Any, user_id: Any, **_: Any) -> Json:
        status = self.members[self._chat_of(chat_id)].get(int(user_id))
        user = next((one for one in (*USERS.values(), BOT) if one["id"] == int(user_id)), None)
        if user is None or status is None:
            raise Rejected(400, "Bad Request: user not found")
        return chat_member(user, status)

    def _on_getchatadministrators(self, chat_id: Any, **_: Any) -> list[Json]:
        chat = self._chat_of(chat_id)
        if chat > 0:
            raise Rejected(400, "Bad Request: there are no administrators in the private chat")
        statuses = {one["id"]: one for one in (*USERS.values(), BOT)}
        admins = [(id_, status) for id_, status in self.members[chat].items() if status in ("creator", "administrator")]
        return [chat_member(statuses[id_], status) for id_, status in admins]

    def _on_leavechat(self, chat_id: Any, **_: Any) -> bool:
        self.members[self._chat_of(chat_id)][BOT["id"]] = "left"
        return True

    def _on_setmycommands(self, commands: list[Json], language_code: str = "", **_: Any) -> bool:
        for one in commands:
            if not 1 <= len(one["command"]) <= 32 or not _COMMAND_CHARS.issuperset(one["command"]):
                raise Rejected(400, "Bad Request: BOT_COMMAND_INVALID")
            if not 1 <= len(one["description"]) <= 256:
                raise Rejected(400, "Bad Request: BOT_COMMAND_DESCRIPTION_INVALID")
        return True

    def _on_getfile(self, file_id: str) -> Json:
        if file_id not in self.files:
            raise Rejected(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
        size = self.declared_sizes.get(file_id, len(self.files[file_id]))
        if size > 20_000_000:
            raise Rejected(400, "Bad Request: file is too big")
        return {"file_id": file_id, "file_unique_id": file_id, "file_size": size, "file_path": f"documents/{file_id}"}


def chat_member(user: Json, status: str) -> Json:
    """A `ChatMember`."""
    rights = (
        "can_be_edited can_manage_chat can_delete_messages can_manage_video_chats can_restrict_members"
        " can_promote_members can_change_info can_invite_users can_post_stories can_edit_stories can_delete_stories"
        " can_send_welcome_messages"
    )
    member: Json = {"user": user, "status": status}
    if status == "creator":
        member["is_anonymous"] = False
    if status == "administrator":
        member |= {"is_anonymous": False, **dict.fromkeys(rights.split(), True)}
    if status == "kicked":
        member["until_date"] = 0
    return member


def keyboard(message: Json) -> list[list[Json]]:
    """Rows of buttons."""
    rows: list[list[Json]] = message.get("reply_markup", {}).get("inline_keyboard", [])
    return rows


def checked_keyboard(markup: Json) -> Json:
    """The markup, if its buttons are valid."""
    for row in markup["inline_keyboard"]:
        for one in row:
            if not 1 <= len(one["callback_data"].encode()) <= 64:
                raise Rejected(400, "Bad Request: BUTTON_DATA_INVALID")
    return markup


def found_entities(text: str) -> list[Json]:
    """Mentions and commands in a plain text."""
    entities: list[Json] = []
    at = 0
    for word in text.split(" "):
        command, _, handle = word.partition("@")
        if command.startswith("/") and command[1:].isalnum():
            entities.append({"type": "bot_command", "offset": units(text[:at]), "length": units(word)})
        elif not command and handle.replace("_", "").isalnum() and handle.isascii():
            entities.append({"type": "mention", "offset": units(text[:at]), "length": units(word)})
        at += len(word) + 1
    return entities


def units(text: str) -> int:
    """Length in UTF-16 units."""
    return len(text.encode("utf-16-le")) // 2


def parsed(field: str, text: str, parse_mode: str | None, most: int) -> Json:
    """Text and entities as fields of a message."""
    entities: list[Json] = []
    if parse_mode == "HTML":
        parser = _Html()
        parser.feed(text)
        parser.close()
        if parser.open:
            raise Rejected(400, f"Bad Request: can't parse entities: can't find end tag of {parser.open[-1][0]}")
        text, entities = parser.text, parser.entities
    if not text.strip():
        raise Rejected(400, "Bad Request: message text is empty")
    if units(text) > most:
        raise Rejected(400, "Bad Request: message is too long")
    text = text.strip()
    return {field: text, **({("entities" if field == "text" else "caption_entities"): entities} if entities else {})}


class _Html(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self.entities: list[Json] = []
        self.open: list[tuple[str, int, Json]] = []

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _TAGS:
            raise Rejected(400, f'Bad Request: can\'t parse entities: Unsupported start tag "{tag}"')
        href = dict(attrs).get("href") or ""
        details: Json = {"type": _TAGS[tag]}
        if href.startswith("tg://user?id="):
            user = next(one for one in USERS.values() if one["id"] == int(href.removeprefix("tg://user?id=")))
            details = {"type": "text_mention", "user": user}
        elif tag == "a":
            details = {"type": "text_link", "url": href}
        self.open.append((tag, units(self.text), details))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1][0] != tag:
            raise Rejected(400, f'Bad Request: can\'t parse entities: Unexpected end tag "{tag}"')
        _, start, details = self.open.pop()
        self.entities.append({**details, "offset": start, "length": units(self.text) - start})


async def _parameters(request: web.Request) -> Json:
    if request.content_type == "application/json":
        found: Json = await request.json()
        return found
    parameters: Json = dict(request.query)
    for name, value in (await request.post()).items():
        if isinstance(value, web.FileField):
            parameters[name] = value.file.read()
        elif value[:1] in "{[" and name not in ("text", "caption"):
            parameters[name] = json.loads(value)
        else:
            parameters[name] = value
    # A file may be a part of its own, named by attach://.
    for name, value in list(parameters.items()):
        if isinstance(value, str) and value.startswith("attach://"):
            parameters[name] = parameters.pop(value.removeprefix("attach://"))
    return parameters


def _answer(result: Any) -> web.Response:
    return web.json_response({"ok": True, "result": result})
