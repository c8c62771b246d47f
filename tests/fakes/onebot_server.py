"""An implementation of OneBot v11, like a QQ client with NapCat or LLOneBot: both directions of WebSocket, one account,
groups, private chats, files and history. Certified by aiocqhttp and nonebot (tests/bot/platforms/onebot)."""

from __future__ import annotations

import asyncio
import hashlib
import time
from base64 import b64decode
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson
from aiohttp import web

from bot.platforms.contract import Failure, Shown
from services.refs import Role

TOKEN = "a-token-of-the-tests"
SELF_ID = "20001"
ANN, BEN, ROBOT = "10001", "10002", "2854196310"
GROUP = "70001"
_NAMES = {ANN: "Ann", BEN: "Ben", ROBOT: "beep", SELF_ID: "Rollcall"}
_THUMB = "128077"
Json = dict[str, Any]
Socket = web.WebSocketResponse | aiohttp.ClientWebSocketResponse


def user_id(who: str) -> str:
    """The number of a member, also of one that is named in words."""
    return who if who.isdecimal() else str(30_000 + sum(who.encode()))


@dataclass
class Message:
    """A message of anybody."""

    id: int
    time: int
    user: str
    segments: list[Json]
    group: str = ""
    peer: str = ""
    """The member of a private chat."""
    temporary: bool = False
    """A private message through a group."""
    likes: set[tuple[str, str]] = field(default_factory=set)
    """Member and emoji of each reaction."""
    facts: Json = field(default_factory=dict)
    """Replacements in its event."""


class Rejected(Exception):
    """An action fails."""

    def __init__(self, retcode: int, words: str) -> None:
        super().__init__(words)
        self.retcode = retcode


class OneBotServer:
    """The implementation, and the people in its chats."""

    def __init__(self, *, strings: bool = False, token: str = TOKEN, history: bool = True) -> None:
        """`strings`: messages of events are CQ codes instead of lists. `history`: has `get_group_msg_history`."""
        self.strings = strings
        self.token = token
        self.history = history
        self.groups: dict[str, dict[str, str]] = {
            GROUP: {ANN: "owner", BEN: "member", ROBOT: "member", SELF_ID: "member"}
        }
        self.friends = {ANN}
        self.messages: list[Message] = []
        self.calls: list[tuple[str, Json]] = []
        self.silenced: dict[str, int] = {}
        self.muted_until = 0
        self.online = True
        self.answers_status = True
        self.url = ""
        self.dials = 0
        self._files: dict[str, bytes] = {}
        self._sockets: list[Socket] = []
        self.now = int(time.time()) - 120
        self._failure: Failure | None = None
        self._last: Json = {}
        self._connected = asyncio.Event()

    # Connections

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[OneBotServer]:
        """Serve WebSockets and files at `url`."""
        app = web.Application()
        app.router.add_get("/files/{name}", self._file)
        app.router.add_get("/{path:.*}", self._accept)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"ws://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            await self.disconnect()
            await runner.cleanup()

    @asynccontextmanager
    async def dialling(self, url: str, **headers: str) -> AsyncIterator[None]:
        """Connect to `url`, again and again."""
        task = asyncio.create_task(self._dial(url, headers))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def connected(self) -> None:
        """Return when there is a connection."""
        await self._connected.wait()

    async def disconnect(self) -> None:
        """Break all connections; new ones are accepted."""
        for socket in list(self._sockets):
            with suppress(ConnectionError):
                await socket.close()

    async def _accept(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(timeout=1.0)
        await socket.prepare(request)
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            # NapCat does it after the handshake.
            await socket.send_json(
                {"status": "failed", "retcode": 1403, "data": None, "message": "token", "echo": None}
            )
            await socket.close()
            return socket
        await self._talk(socket)
        return socket

    async def _dial(self, url: str, headers: dict[str, str]) -> None:
        timeout = aiohttp.ClientWSTimeout(ws_close=1.0)
        async with aiohttp.ClientSession() as http:
            while True:
                usual = {"Authorization": f"Bearer {self.token}", "X-Self-ID": SELF_ID, "X-Client-Role": "Universal"}
                with suppress(aiohttp.ClientError, OSError):
                    async with http.ws_connect(url, headers=usual | headers, timeout=timeout) as socket:
                        self.dials += 1
                        await self._talk(socket)
                await asyncio.sleep(0.02)

    async def _talk(self, socket: Socket) -> None:
        self._sockets.append(socket)
        self._connected.set()
        try:
            await socket.send_json(self._event("meta_event", meta_event_type="lifecycle", sub_type="connect"))
            async for frame in socket:
                if frame.type is aiohttp.WSMsgType.TEXT:
                    await self._answer(socket, orjson.loads(frame.data))
        except ConnectionError:
            pass
        finally:
            self._sockets.remove(socket)
            if not self._sockets:
                self._connected.clear()

    async def _answer(self, socket: Socket, request: Json) -> None:
        action, params = str(request["action"]), request.get("params") or {}
        self.calls.append((action, params))
        if action == "get_status" and not self.answers_status:
            return
        handler: Callable[[Json], Any] | None = getattr(self, f"_do_{action}", None)
        answer: Json = {"status": "ok", "retcode": 0, "data": None, "message": "", "wording": ""}
        try:
            if handler is None or (action == "get_group_msg_history" and not self.history):
                raise Rejected(1404, f"不支持的Api {action}")
            answer["data"] = handler(params)
        except Rejected as rejected:
            answer |= {"status": "failed", "retcode": rejected.retcode, "message": str(rejected)}
        if action.startswith("send_") and self._failure is Failure.DELIVERED_WITHOUT_ANSWER:
            self._failure = None
            await socket.close()
            return
        await socket.send_json(answer | {"echo": request.get("echo")})

    async def _file(self, request: web.Request) -> web.Response:
        content = self._files.get(request.match_info["name"])
        return web.Response(status=404) if content is None else web.Response(body=content)

    # Events

    async def emit(self, post_type: str, **facts: Any) -> None:
        """Send an event to all connections."""
        self._last = self._event(post_type, **facts)
        await self.repeat()

    async def raw(self, text: str) -> None:
        """Send any text."""
        for socket in list(self._sockets):
            await socket.send_str(text)

    async def repeat(self) -> None:
        """Send the last event again."""
        await self.raw(orjson.dumps(self._last).decode())

    def _event(self, post_type: str, **facts: Any) -> Json:
        # Each event has a second of its own.
        self.now += 1
        return {"time": self.now, "self_id": int(SELF_ID), "post_type": post_type} | facts

    def message_event(self, message: Message) -> Json:
        """`message` as an event."""
        facts: Json = {
            "time": message.time,
            "self_id": int(SELF_ID),
            "post_type": "message_sent" if message.user == SELF_ID else "message",
            "message_type": "group" if message.group else "private",
            "sub_type": "normal" if message.group else "group" if message.temporary else "friend",
            "message_id": message.id,
            "message_seq": message.id,
            "real_id": message.id,
            "user_id": int(message.user),
            "message": _cq(message.segments) if self.strings else message.segments,
            "message_format": "string" if self.strings else "array",
            "raw_message": _cq(message.segments),
            "font": 14,
            "sender": {"user_id": int(message.user), "nickname": _NAMES.get(message.user, message.user), "card": ""},
        }
        if message.group:
            facts |= {"group_id": int(message.group), "group_name": "Family"}
            facts["sender"]["role"] = self.groups[message.group].get(message.user, "member")
        elif message.temporary:
            facts["sender"]["group_id"] = int(GROUP)
        return facts | message.facts

    def add(self, user: str, segments: Sequence[Json], *, group: str = "", peer: str = "", **facts: Any) -> Message:
        """Store a message, with an id that depends on its place only, as those of NapCat."""
        digest = hashlib.md5(f"{group}|{peer}|{len(self.messages)}".encode(), usedforsecurity=False).digest()
        self.now += 1
        number = int.from_bytes(digest[:4]) & 0x7FFFFFFF
        message = Message(number, self.now, user, list(segments), group, peer, **facts)
        self.messages.append(message)
        return message

    async def post(self, message: Message) -> str:
        """Send a stored message to all connections; returns its id."""
        self._last = self.message_event(message)
        await self.repeat()
        return str(message.id)

    def find(self, native_id: Any) -> Message:
        """The message with that id. Raises Rejected."""
        for message in self.messages:
            if message.id == int(native_id):
                return message
        raise Rejected(1200, "消息不存在")

    # Actions

    def _do_get_login_info(self, params: Json) -> Json:
        return {"user_id": int(SELF_ID), "nickname": "Rollcall"}

    def _do_get_status(self, params: Json) -> Json:
        return {"online": self.online, "good": True}

    def _do_get_version_info(self, params: Json) -> Json:
        return {"app_name": "NapCat.Onebot", "app_version": "4.17.0", "protocol_version": "v11"}

    def _do_get_group_list(self, params: Json) -> list[Json]:
        return [
            {"group_id": int(group), "group_name": "Family"}
            for group, members in self.groups.items()
            if SELF_ID in members
        ]

    def _do_get_friend_list(self, params: Json) -> list[Json]:
        return [{"user_id": int(one), "nickname": _NAMES[one]} for one in sorted(self.friends)]

    def _do_get_group_member_list(self, params: Json) -> list[Json]:
        group = str(params["group_id"])
        return [self._do_get_group_member_info({"group_id": group, "user_id": one}) for one in self._members(group)]

    def _do_get_group_member_info(self, params: Json) -> Json:
        group, user = str(params["group_id"]), str(params["user_id"])
        if user not in self._members(group):
            raise Rejected(1200, f"群({group})成员{user}不存在")
        return {
            "group_id": int(group),
            "user_id": int(user),
            "nickname": _NAMES.get(user, user),
            "role": self.groups[group][user],
            "shut_up_timestamp": self.muted_until if user == SELF_ID else 0,
        }

    def _do_send_group_msg(self, params: Json) -> Json:
        group = str(params["group_id"])
        if self._failure is Failure.REMOVED:
            self.groups[group].pop(SELF_ID)
        elif self._failure is Failure.NO_SUCH_CHAT:
            self.groups.pop(group)
        if SELF_ID not in self.groups.get(group, {}) or self.muted_until > time.time():
            self._failure = None
            raise Rejected(1200, "发送失败")
        return self._send(params, group=group)

    def _do_send_private_msg(self, params: Json) -> Json:
        peer, group = str(params["user_id"]), str(params.get("group_id") or "")
        if peer not in self.friends and peer not in self.groups.get(group, {}):
            raise Rejected(1200, "请先添加对方为好友")
        return self._send(params, peer=peer)

    def _do_send_msg(self, params: Json) -> Json:
        return self._do_send_group_msg(params) if params.get("group_id") else self._do_send_private_msg(params)

    def _send(self, params: Json, **where: str) -> Json:
        found = params["message"]
        # An implementation reads CQ codes only in a string.
        segments = _segments(found) if isinstance(found, str) else [found] if isinstance(found, dict) else found
        has_reply = any(one["type"] == "reply" for one in segments)
        if self._failure is Failure.SERVER_ERROR or (self._failure is Failure.REPLY_IS_GONE and has_reply):
            self._failure = None
            raise Rejected(1200, "发送失败")
        return {"message_id": self.add(SELF_ID, segments, **where).id}

    def _do_delete_msg(self, params: Json) -> None:
        self.messages.remove(self.find(params["message_id"]))

    def _do_get_msg(self, params: Json) -> Json:
        return self.message_event(self.find(params["message_id"]))

    def _do_get_group_msg_history(self, params: Json) -> Json:
        group = str(params["group_id"])
        found = [one for one in self.messages if one.group == group][-int(params.get("count", 20)) :]
        return {"messages": [self.message_event(one) for one in found]}

    def _do_set_msg_emoji_like(self, params: Json) -> Json:
        like = (SELF_ID, str(params["emoji_id"]))
        likes = self.find(params["message_id"]).likes
        if params.get("set", True):
            likes.add(like)
        else:
            likes.discard(like)
        return {"result": 0}

    def _do_set_group_kick(self, params: Json) -> None:
        self._do_get_group_member_info(params)
        assert params["reject_add_request"] in (True, False)
        self.groups[str(params["group_id"])].pop(str(params["user_id"]))

    def _do_set_group_ban(self, params: Json) -> None:
        self._do_get_group_member_info(params)
        self.silenced[str(params["user_id"])] = params["duration"]

    def _do_set_group_leave(self, params: Json) -> None:
        self.groups[str(params["group_id"])].pop(SELF_ID)

    def _do_set_group_add_request(self, params: Json) -> None:
        self.groups[str(params["flag"])][SELF_ID] = "member"

    def _do_set_input_status(self, params: Json) -> None:
        if str(params["user_id"]) not in _NAMES:
            raise Rejected(1200, "uid is empty")

    def _do_get_image(self, params: Json) -> Json:
        name = str(params["file"])
        if name not in self._files:
            raise Rejected(1200, "file not found")
        return {"file": f"/root/{name}", "url": self._address(name), "file_size": str(len(self._files[name]))}

    _do_get_file = _do_get_image

    def _members(self, group: str) -> dict[str, str]:
        if SELF_ID not in self.groups.get(group, {}):
            raise Rejected(1200, f"群{group}不存在")
        return self.groups[group]

    # People

    def file(self, name: str, content: bytes, *, declared: int | None = None, expired: bool = False) -> Json:
        """Data of a segment for a file. `declared`: its size according to the segment. `expired`: its URL is gone."""
        self._files[name] = content
        url = self._address("expired" if expired else name)
        return {"file": name, "url": url, "file_size": str(len(content) if declared is None else declared)}

    def _address(self, name: str) -> str:
        return self.url.replace("ws://", "http://") + f"/files/{name}"

    async def say(
        self,
        who: str,
        text: str,
        *,
        chat: str = "",
        mention: bool = False,
        reply_to: str = "",
        file: tuple[str, bytes] | None = None,
    ) -> str:
        segments: list[Json] = []
        if reply_to:
            segments.append({"type": "reply", "data": {"id": reply_to}})
        if mention:
            segments.append({"type": "at", "data": {"qq": SELF_ID}})
        segments.append({"type": "text", "data": {"text": f" {text}" if mention else text}})
        if file is not None:
            segments.append({"type": "image", "data": self.file(*file)})
        kind, _, native = (chat or f"group-{GROUP}").partition("-")
        if kind == "group":
            return await self.post(self.add(who, segments, group=native))
        return await self.post(self.add(who, segments, peer=native, temporary=native not in self.friends))

    async def edit(self, who: str, native_id: str, text: str) -> None:
        raise NotImplementedError

    async def delete(self, who: str, native_id: str) -> None:
        message = self.find(native_id)
        self.messages.remove(message)
        facts: Json = {"user_id": int(message.user), "message_id": message.id}
        if message.group:
            facts |= {"group_id": int(message.group), "operator_id": int(who)}
        await self.emit("notice", notice_type="group_recall" if message.group else "friend_recall", **facts)

    async def react(self, who: str, native_id: str, emoji: str) -> None:
        message = self.find(native_id)
        likes = [{"emoji_id": str(ord(emoji)), "count": 1}]
        facts = {"group_id": int(message.group), "user_id": int(who), "message_id": message.id, "is_add": True}
        await self.emit("notice", notice_type="group_msg_emoji_like", likes=likes, **facts)

    async def press(self, who: str, native_id: str, label: str) -> None:
        raise NotImplementedError

    async def enter(self, who: str) -> None:
        self.groups[GROUP][user_id(who)] = "member"
        await self._came_or_went("group_increase", "approve", user_id(who), ANN)

    async def leave(self, who: str) -> None:
        self.groups[GROUP].pop(user_id(who))
        await self._came_or_went("group_decrease", "leave", user_id(who), user_id(who))

    async def add_bot(self, who: str) -> str:
        self.groups["70002"] = {who: "owner", SELF_ID: "member"}
        await self._came_or_went("group_increase", "invite", SELF_ID, who, "70002")
        return "group-70002"

    async def invite_bot(self, who: str) -> str:
        """`who` invites the bot to another group; returns the native id of that group."""
        self.groups["70003"] = {who: "owner"}
        facts: Json = {"group_id": 70003, "user_id": int(who), "comment": "", "flag": "70003"}
        await self.emit("request", request_type="group", sub_type="invite", **facts)
        return "70003"

    async def _came_or_went(self, kind: str, how: str, who: str, operator: str, group: str = GROUP) -> None:
        facts = {"group_id": int(group), "user_id": int(who), "operator_id": int(operator)}
        await self.emit("notice", notice_type=kind, sub_type=how, **facts)

    async def empower(self) -> None:
        """See OtherSide: the bot has the rights from the start."""

    async def promote(self, who: str, role: Role) -> None:
        self.groups[GROUP][who] = role.value

    async def send_garbage(self) -> None:
        await self.raw("no JSON")
        await self.raw('[1, {"a": null}]')
        await self.emit("message", message_type="group", message=17)

    async def heartbeat(self) -> None:
        """Send a heartbeat."""
        status = {"online": self.online, "good": True}
        await self.emit("meta_event", meta_event_type="heartbeat", status=status, interval=30000)

    async def fail_next(self, failure: Failure) -> None:
        if failure is Failure.RATE_LIMITED:
            raise NotImplementedError
        self._failure = failure

    async def open_thread(self, who: str, text: str) -> str:
        raise NotImplementedError

    async def shown(self, chat: str = "") -> list[Shown]:
        kind, _, native = (chat or f"group-{GROUP}").partition("-")
        own = [one for one in self.messages if one.user == SELF_ID]
        return [_shown(one) for one in own if native == (one.group if kind == "group" else one.peer)]

    async def reactions(self, native_id: str) -> list[str]:
        return [chr(int(emoji)) for who, emoji in self.find(native_id).likes if who == SELF_ID]


def _shown(message: Message) -> Shown:
    text, reply_to, files = "", "", []
    for segment in message.segments:
        data = segment["data"]
        match segment["type"]:
            case "text":
                text += data["text"]
            case "at":
                text += f"@{data['qq']}"
            case "reply":
                reply_to = str(data["id"])
            case _:
                files.append(b64decode(data["file"].removeprefix("base64://")))
    return Shown(text, str(message.id), reply_to=reply_to, files=tuple(files))


def _cq(segments: Sequence[Json]) -> str:
    return "".join(
        _escaped(one["data"]["text"])
        if one["type"] == "text"
        else "[CQ:"
        + ",".join([one["type"], *(f"{key}={_escaped(value, ',')}" for key, value in one["data"].items())])
        + "]"
        for one in segments
    )


def _escaped(text: Any, more: str = "") -> str:
    escaped = str(text).replace("&", "&amp;").replace("[", "&#91;").replace("]", "&#93;")
    return escaped.replace(",", "&#44;") if more else escaped


def _segments(text: str) -> list[Json]:
    """The segments of a string. Only what a test of CQ codes needs: texts and `at`."""
    before, code, rest = text.partition("[CQ:at,qq=")
    segments = [{"type": "text", "data": {"text": before}}] if before else []
    if code:
        who, _, rest = rest.partition("]")
        segments += [{"type": "at", "data": {"qq": who}}, *_segments(rest)]
    return segments
