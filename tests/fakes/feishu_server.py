"""Feishu on 127.0.0.1: the HTTP API, and the long connection over WebSocket.

`tests/foreign/lark_oapi_app.py`, an app on Feishu's own SDK, works against it. Events that are not acknowledged are not
sent again, which is the worst case: Feishu repeats them for about seven hours.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import itertools
import json
import os
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from aiohttp import WSMsgType, web
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from bot.platforms.contract import Failure, Shown
from bot.platforms.feishu.api import parse_fields, written_fields
from services.refs import Role

APP_ID, APP_SECRET = "cli_a1b2c3", "app-secret"
ENCRYPT_KEY, VERIFICATION_TOKEN = "encrypt-key", "verification-token"
BOT, ANN, BEN, ROBOT = "ou_bot", "ou_ann", "ou_ben", "ou_robot"
GROUP, PRIVATE = "oc_family", "oc_private_ann"
SCOPES = (
    "im:chat",
    "im:message",
    "im:message.group_msg",
    "im:message.p2p_msg:readonly",
    "im:resource",
    "contact:user.base:readonly",
)
_REFUSALS = {Failure.REMOVED: 230002, Failure.NO_SUCH_CHAT: 232009, Failure.REPLY_IS_GONE: 230011}
_EMOJI = {"👍": "THUMBSUP", "✅": "DONE"}
_MARKS = re.compile(r"(?<!\w)(\*\*|[*_~`])(?=\S)([^\n]+?)(?<=\S)\1(?!\w)")
Data = dict[str, Any]


class Refused(Exception):
    """An answer with an error. `code`: its number."""

    def __init__(self, code: int, status: int = 400, **headers: str) -> None:
        super().__init__(code)
        self.code, self.status, self.headers = code, status, {key.replace("_", "-"): headers[key] for key in headers}


class FakeFeishu:
    """The tenant. Implements `OtherSide`; the attributes can be changed at any time."""

    def __init__(self) -> None:
        self.names = {BOT: "Rollcall", ANN: "Ann", BEN: "Ben", ROBOT: "Robot"}
        self.chats: dict[str, Data] = {}
        self._chat(GROUP, "group", [ANN, BEN])
        self._chat(PRIVATE, "p2p", [ANN])
        self.messages: list[Data] = []
        self.marks: dict[str, list[Data]] = {}
        """Reactions by message."""
        self.files: dict[str, bytes] = {}
        self.calls: list[tuple[str, str, Data]] = []
        """Method, path below `open-apis`, and arguments of each call."""
        self.refusals: dict[tuple[str, str], list[Refused]] = {}
        """Answers for the next calls, by method and path, instead of their own."""
        self.scopes = list(SCOPES)
        self.token, self.token_seconds, self.tokens = "", 7200, 0
        self.page_size = 7
        self.fragment_bytes = 0
        """Size of the fragments into which events are split; 0: whole events."""
        self.rejects_links = self.hides_sizes = False
        self.sockets: list[web.WebSocketResponse] = []
        self.connections = self.pings = 0
        self.answers: list[tuple[str, Data]] = []
        """Acknowledged events with the answer."""
        self.url = ""
        self._failure: Failure | None = None
        self._last: Data = {}
        self._uuids: dict[str, Data] = {}
        self._numbers = itertools.count(1)
        self._latest = 0
        self._changed = asyncio.Condition()

    def _chat(self, chat: str, mode: str, members: list[str]) -> None:
        facts = {"chat_id": chat, "name": chat.removeprefix("oc_").title(), "chat_mode": mode, "members": members}
        self.chats[chat] = {**facts, "owner_id": "ou_olga", "user_manager_id_list": [], "has_bot": True}

    # Server

    @asynccontextmanager
    async def running(self) -> AsyncIterator[FakeFeishu]:
        """Serve until the end of the block."""
        app = web.Application(client_max_size=100_000_000)
        app.router.add_post("/callback/ws/endpoint", self._endpoint)
        app.router.add_get("/ws", self._socket)
        app.router.add_route("*", "/open-apis/{path:.*}", self._api)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            await self.disconnect()
            await runner.cleanup()

    async def _endpoint(self, request: web.Request) -> web.Response:
        if await request.json() != {"AppID": APP_ID, "AppSecret": APP_SECRET}:
            return web.json_response({"code": 1000040344, "msg": "app_id or app_secret is wrong"})
        url = f"{self.url.replace('http', 'ws', 1)}/ws?device_id=7&service_id=33554678&ticket=secret-ticket"
        return web.json_response({"code": 0, "msg": "ok", "data": {"URL": url, "ClientConfig": _CLIENT}})

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        if self.rejects_links:
            refusal = {"handshake-status": "514", "handshake-msg": "limit", "handshake-autherrcode": "1000040350"}
            return web.Response(status=400, headers=refusal)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async with self._changed:
            self.connections += 1
            self.sockets.append(socket)
            self._changed.notify_all()
        async for message in socket:
            if message.type is WSMsgType.BINARY:
                await self._heard(socket, dict(parse_fields(message.data)), message.data)
        if socket in self.sockets:
            self.sockets.remove(socket)
        return socket

    async def _heard(self, socket: web.WebSocketResponse, known: Data, data: bytes) -> None:
        headers = _headers(data)
        async with self._changed:
            if known[4] == 0:
                self.pings += headers["type"] == "ping" and known[3] == 33554678
                pong = written_fields([(1, b"type"), (2, b"pong")])
                payload = (8, json.dumps(_CLIENT).encode())
                await socket.send_bytes(written_fields([(1, 0), (2, 0), (3, known[3]), (4, 0), (5, pong), payload]))
            else:
                self.answers.append((headers["message_id"], json.loads(known[8])))
            self._changed.notify_all()

    async def _api(self, request: web.Request) -> web.Response:
        method, path = request.method, request.match_info["path"]
        failure = None
        try:
            given = dict[str, Any](request.query) | await _body(request)
            self.calls.append((method, path, given))
            if self.refusals.get((method, path)):
                raise self.refusals[method, path].pop(0)
            if path == "auth/v3/tenant_access_token/internal":
                return web.json_response(self._new_token(given))
            if request.headers.get("Authorization") != f"Bearer {self.token}" or not self.token:
                raise Refused(99991663)
            if method == "POST" and (path == "im/v1/messages" or path.endswith("/reply")):
                failure = self._failing(path, given)
            answer = self._outcome(method, path, given)
            async with self._changed:
                self._changed.notify_all()
        except Refused as refused:
            body = {"code": refused.code, "msg": "No, <b>never</b>.", "error": {"log_id": "1"}}
            return web.json_response(body, status=refused.status, headers=refused.headers)
        if failure is Failure.DELIVERED_WITHOUT_ANSWER and request.transport is not None:
            request.transport.abort()
        if isinstance(answer, bytes):
            response = web.Response(body=answer)
            if self.hides_sizes:
                response.enable_chunked_encoding()
            return response
        return web.json_response(answer if "code" in answer else {"code": 0, "msg": "success", "data": answer})

    def _new_token(self, given: Data) -> Data:
        if given != {"app_id": APP_ID, "app_secret": APP_SECRET}:
            raise Refused(10014)
        self.tokens += 1
        self.token = f"t-{self.tokens}"
        return {"code": 0, "msg": "ok", "tenant_access_token": self.token, "expire": self.token_seconds}

    def _failing(self, path: str, given: Data) -> Failure | None:
        """The failure of this send, unless it does not concern it."""
        failure = self._failure
        if failure is Failure.BAD_MARKUP and not re.search(r'"tag":"(md|markdown)"', given["content"]):
            return None
        if failure is Failure.REPLY_IS_GONE and not path.endswith("/reply"):
            return None
        self._failure = None
        if failure is Failure.RATE_LIMITED:
            raise Refused(99991400, 429, x_ogw_ratelimit_reset="7")
        if failure is Failure.SERVER_ERROR:
            raise Refused(0, 500)
        if failure is Failure.BAD_MARKUP:
            raise Refused(230099 if given["msg_type"] == "interactive" else 230001)
        if failure in _REFUSALS:
            raise Refused(_REFUSALS[failure])
        return failure

    def _outcome(self, method: str, path: str, given: Data) -> Any:
        parts = path.split("/")
        match method, parts:
            case "GET", ["bot", "v3", "info"]:
                return {"code": 0, "msg": "ok", "bot": {"open_id": BOT, "app_name": "Rollcall", "activate_status": 2}}
            case "GET", ["application", "v6", "scopes"]:
                return {
                    "scopes": [{"scope_name": one, "grant_status": 1, "scope_type": "tenant"} for one in self.scopes]
                }
            case "GET", ["contact", "v3", "users", user]:
                return {"user": {"open_id": user, "name": self.names[user]}}
            case "POST", ["im", "v1", "images"]:
                return {"image_key": self._upload("img_v3_", given["image"])}
            case "POST", ["im", "v1", "files"]:
                return {"file_key": self._upload("file_v3_", given["file"])}
            case _, ["im", "v1", "messages", *rest]:
                return self._about_messages(method, rest, given)
            case _, ["im", "v1", "chats", *rest]:
                return self._about_chats(method, rest, given)
        raise Refused(404, 404)

    def _upload(self, prefix: str, content: str | bytes) -> str:
        if not content:
            raise Refused(234010)
        key = f"{prefix}{next(self._numbers)}-x"
        # A part without a file name is read as text.
        self.files[key] = content.encode() if isinstance(content, str) else content
        return key

    def _about_messages(self, method: str, parts: list[str], given: Data) -> Any:
        match method, parts:
            case "POST", []:
                return self._send(given, self._receiver(given), {})
            case "POST", [id_, "reply"]:
                assert "receive_id" not in given
                parent = self._message(id_)
                thread = parent["thread_id"] or (f"omt_{id_}" if given.get("reply_in_thread") else "")
                place = {"parent_id": id_, "root_id": parent["root_id"] or id_, "thread_id": thread}
                return self._send(given, parent["chat_id"], place)
            case "GET", []:
                return self._page(self._history(given), given)
            case "GET", [id_]:
                return {"items": [_public(self._message(id_, is_gone_fine=True))]}
            case "PUT" | "PATCH", [id_]:
                return self._change(self._message(id_), method, given)
            case "DELETE", [id_]:
                self._message(id_)["deleted"] = True
                return {}
            case "GET", [id_, "resources", key]:
                kind = "image" if key.startswith("img") else "file"
                if key not in self.files or given["type"] != kind or key not in self._message(id_)["body"]["content"]:
                    raise Refused(234003)
                return self.files[key]
            case _, [id_, "reactions", *rest]:
                return self._about_reactions(method, id_, rest, given)
        raise Refused(404, 404)

    def _change(self, message: Data, method: str, given: Data) -> Data:
        if (message["msg_type"] == "interactive") != (method == "PATCH") or message["sender"]["id"] != APP_ID:
            raise Refused(230054)
        _check(message["msg_type"] if method == "PATCH" else given["msg_type"], given["content"])
        message |= {"body": {"content": given["content"]}, "updated": True}
        return _public(message) if method == "PUT" else {}

    def _about_reactions(self, method: str, id_: str, rest: list[str], given: Data) -> Data:
        found = self.marks.setdefault(self._message(id_)["message_id"], [])
        if method == "GET":
            return self._page(found, given)
        if method == "DELETE":
            self.marks[id_] = [one for one in found if one["reaction_id"] != rest[0]]
            return {}
        if given["reaction_type"]["emoji_type"] not in ("THUMBSUP", "DONE", "party_parrot"):
            raise Refused(231001)
        return self._mark(id_, APP_ID, "app", given["reaction_type"]["emoji_type"])

    def _mark(self, id_: str, who: str, kind: str, name: str) -> Data:
        facts = {"operator": {"operator_id": who, "operator_type": kind}, "action_time": str(self._now())}
        mark = {"reaction_id": f"r{next(self._numbers)}", "reaction_type": {"emoji_type": name}, **facts}
        self.marks.setdefault(id_, []).append(mark)
        return mark

    def _about_chats(self, method: str, parts: list[str], given: Data) -> Data:
        if not parts:
            groups = [one for one in self.chats.values() if one["chat_mode"] != "p2p" and one["has_bot"]]
            return self._page([{"chat_id": one["chat_id"], "name": one["name"]} for one in groups], given)
        chat = self.chats.get(parts[0])
        if chat is None:
            raise Refused(232006)
        if not chat["has_bot"]:
            raise Refused(232011)
        if parts[1:] == ["members"] and method == "GET":
            listed = [
                {"member_id_type": "open_id", "member_id": one, "name": self.names[one]} for one in chat["members"]
            ]
            return self._page(listed, given)
        if parts[1:] == ["members"] and (given["member_id_type"], given["id_list"]) == ("app_id", [APP_ID]):
            chat["has_bot"] = False
            return {"invalid_id_list": []}
        return {key: chat[key] for key in ("name", "chat_mode", "owner_id", "user_manager_id_list")}

    def _page(self, items: list[Data], given: Data) -> Data:
        assert int(given.get("page_size", 20)) <= 100
        first = int(given.get("page_token") or 0)
        until = first + min(self.page_size, int(given.get("page_size", 20)))
        return {"items": items[first:until], "has_more": until < len(items), "page_token": str(until)}

    def _history(self, given: Data) -> list[Data]:
        """Messages of a chat, of threads only the first, or of a thread, without a time."""
        kind, container = given["container_id_type"], given["container_id"]
        if kind == "thread":
            roots = {one["root_id"] for one in self.messages if one["thread_id"] == container}
            found = [one for one in self.messages if one["thread_id"] == container or one["message_id"] in roots]
        else:
            self.chats.get(container) or _refuse(230002)
            threads = {one["root_id"]: one["thread_id"] for one in self.messages if one["thread_id"]}
            found = [
                {**one, "thread_id": threads.get(one["message_id"], "")}
                for one in self.messages
                if one["chat_id"] == container and not one["thread_id"]
            ]
            found = [one for one in found if int(one["create_time"]) // 1000 >= int(given.get("start_time", 0))]
        newest_first = given.get("sort_type") == "ByCreateTimeDesc"
        return [_public(one) for one in (reversed(found) if newest_first else found)]

    def _receiver(self, given: Data) -> str:
        native = given["receive_id"]
        if given["receive_id_type"] == "open_id":
            if native not in self.names:
                raise Refused(230013)
            found = [one for one in self.chats.values() if (one["chat_mode"], one["members"]) == ("p2p", [native])]
            if not found:
                self._chat(f"oc_private_{native}", "p2p", [native])
            return str(found[0]["chat_id"]) if found else f"oc_private_{native}"
        if native not in self.chats:
            raise Refused(230001)
        return str(native)

    def _send(self, given: Data, chat: str, place: Data) -> Data:
        uuid = given.get("uuid") or f"none-{next(self._numbers)}"
        assert len(uuid) <= 50
        if not self.chats[chat]["has_bot"]:
            raise Refused(230002)
        _check(given["msg_type"], given["content"])
        if uuid not in self._uuids:
            sender = {"id": APP_ID, "id_type": "app_id", "sender_type": "app", "tenant_key": "t1"}
            self._uuids[uuid] = self._store(chat, sender, given["msg_type"], given["content"], **place)
        return _public(self._uuids[uuid])

    def _store(self, chat: str, sender: Data, kind: str, content: str, **place: Any) -> Data:
        at = str(self._now())
        message = {"message_id": f"om_{next(self._numbers)}", "root_id": "", "parent_id": "", "thread_id": "", **place}
        message |= {"msg_type": kind, "create_time": at, "update_time": at, "deleted": False, "updated": False}
        message |= {
            "chat_id": chat,
            "sender": sender,
            "body": {"content": content},
            "mentions": place.get("mentions", []),
        }
        self.messages.append(message)
        return message

    def _message(self, id_: str, *, is_gone_fine: bool = False) -> Data:
        found = [one for one in self.messages if one["message_id"] == id_]
        if not found or (found[0]["deleted"] and not is_gone_fine):
            raise Refused(230011 if found else 230001)
        return found[0]

    def _now(self) -> int:
        self._latest = max(self._latest + 1, time.time_ns() // 1_000_000)
        return self._latest

    # Events

    async def emit(self, kind: str, event: Data, **header: str) -> str:
        """Send an event; returns its id."""
        self._last = self.event(kind, event, **header)
        await self._push(json.dumps(self._last, ensure_ascii=False).encode(), self._last["header"]["event_id"])
        return str(self._last["header"]["event_id"])

    def event(self, kind: str, event: Data, **header: str) -> Data:
        """An event as Feishu sends it."""
        facts = {"event_id": f"event-{next(self._numbers)}", "event_type": kind, "create_time": str(self._now())}
        facts |= {"token": VERIFICATION_TOKEN, "app_id": APP_ID, "tenant_key": "t1", **header}
        return {"schema": "2.0", "header": facts, "event": event}

    async def _push(self, payload: bytes, id_: str) -> None:
        """Send an event to one of the connections."""
        size = self.fragment_bytes or len(payload)
        parts = [payload[at : at + size] for at in range(0, len(payload), size)]
        for number, part in enumerate(parts):
            facts = {"type": "event", "message_id": id_, "trace_id": "1", "sum": str(len(parts)), "seq": str(number)}
            await self.push_frame(facts, part)

    async def push_frame(self, headers: dict[str, str], payload: bytes) -> None:
        """Send a data frame."""
        written = [(5, written_fields([(1, key.encode()), (2, one.encode())])) for key, one in headers.items()]
        start = [(1, next(self._numbers)), (2, 2**63 + 5), (3, 33554678), (4, 1)]
        frame = written_fields([*start, *written, (6, b"json"), (8, payload), (9, b"log")])  # type: ignore[list-item]
        for socket in self.sockets[-1:]:
            with suppress(ConnectionError):
                await socket.send_bytes(frame)

    def signed(self, event: Data, *, key: str = ENCRYPT_KEY, age: float = 0) -> tuple[bytes, dict[str, str]]:
        """Body and headers of the request that delivers an event."""
        padder, start = PKCS7(128).padder(), os.urandom(16)
        plain = padder.update(json.dumps(event).encode()) + padder.finalize()
        cipher = Cipher(algorithms.AES(hashlib.sha256(key.encode()).digest()), modes.CBC(start)).encryptor()
        encrypted = base64.b64encode(start + cipher.update(plain) + cipher.finalize()).decode()
        body, at = json.dumps({"encrypt": encrypted}).encode(), str(int(time.time() - age))
        signature = hashlib.sha256(f"{at}nonce{key}".encode() + body).hexdigest()
        names = ("X-Lark-Request-Timestamp", "X-Lark-Request-Nonce", "X-Lark-Signature")
        return body, dict(zip(names, (at, "nonce", signature), strict=True))

    def message_event(self, message: Data) -> Data:
        """The content of the event of a message."""
        sender = message["sender"]
        who = {"sender_id": _ids(sender["id"]), "sender_type": sender["sender_type"], "tenant_key": "t1"}
        kept = ("message_id", "root_id", "parent_id", "thread_id", "create_time", "update_time", "chat_id", "mentions")
        facts = {key: message[key] for key in kept if message[key]}
        facts |= {"message_type": message["msg_type"], "content": message["body"]["content"]}
        facts["chat_type"] = "p2p" if self.chats[message["chat_id"]]["chat_mode"] == "p2p" else "group"
        return {"sender": who, "message": facts}

    async def write(self, who: str, kind: str, content: Data, chat: str = GROUP, **place: Any) -> str:
        """Send a message of a member, of any kind; returns its id. `mentions`: open ids."""
        listed = [
            {"key": f"@_user_{number}", "id": _ids(one), "name": self.names[one], "tenant_key": "t1"}
            for number, one in enumerate(place.pop("mentions", ()), start=1)
        ]
        sender = {"id": who, "id_type": "open_id", "sender_type": "app" if who == ROBOT else "user", "tenant_key": "t1"}
        message = self._store(chat, sender, kind, json.dumps(content, ensure_ascii=False), **place, mentions=listed)
        await self.emit("im.message.receive_v1", self.message_event(message))
        return str(message["message_id"])

    async def until(self, condition: Any) -> None:
        """Return when `condition` holds."""
        async with asyncio.timeout(20), self._changed:
            await self._changed.wait_for(condition)

    async def acknowledged(self, id_: str) -> Data:
        """The answer to an event, as soon as there is one."""
        await self.until(lambda: any(one == id_ for one, _ in self.answers))
        return next(answer for one, answer in self.answers if one == id_)

    # OtherSide

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
        """See OtherSide. A text with a picture is a post."""
        native, _, thread = (chat or GROUP).partition(",")
        place: Data = {"mentions": [BOT] if mention else []}
        if thread:
            root = next(one["root_id"] for one in self.messages if one["thread_id"] == thread)
            place |= {"thread_id": thread, "root_id": root, "parent_id": root}
        if reply_to:
            place |= {"parent_id": reply_to, "root_id": reply_to}
        if file is not None:
            picture = {"tag": "img", "image_key": self._upload("img_v3_", file[1])}
            content: Data = {"title": "", "content": [[{"tag": "text", "text": text}], [picture]]}
            return await self.write(who, "post", content, native, **place)
        return await self.write(who, "text", {"text": f"@_user_1 {text}" if mention else text}, native, **place)

    async def edit(self, who: str, native_id: str, text: str) -> None:
        """See OtherSide."""
        raise NotImplementedError("Feishu has no event for edits")

    async def delete(self, who: str, native_id: str) -> None:
        """See OtherSide."""
        message = self._message(native_id)
        message["deleted"] = True
        facts = {"message_id": native_id, "chat_id": message["chat_id"], "recall_time": str(self._now())}
        await self.emit("im.message.recalled_v1", {**facts, "recall_type": "message_owner"})

    async def react(self, who: str, native_id: str, emoji: str, *, is_removed: bool = False) -> None:
        """See OtherSide."""
        mark = self._mark(native_id, who, "user", _EMOJI.get(emoji, emoji))
        facts = {"message_id": native_id, "operator_type": "user", "user_id": _ids(who)}
        facts |= {"reaction_type": mark["reaction_type"], "action_time": mark["action_time"]}
        await self.emit(f"im.message.reaction.{'deleted' if is_removed else 'created'}_v1", facts)

    async def press(self, who: str, native_id: str, label: str) -> str:
        """See OtherSide; returns the id of the event."""
        message = self._message(native_id)
        (button,) = [one for one in _buttons(message) if one["text"]["content"] == label]
        place = {"open_message_id": native_id, "open_chat_id": message["chat_id"]}
        action = {"value": button["behaviors"][0]["value"], "tag": "button", "timezone": "Asia/Shanghai"}
        facts = {"operator": {"tenant_key": "t1", **_ids(who)}, "token": "c-secret", "action": action}
        at = str(self._now() * 1000)
        event = {**facts, "host": "im_message", "context": place}
        return await self.emit("card.action.trigger", event, create_time=at)

    async def enter(self, who: str) -> None:
        """See OtherSide."""
        await self._moved("added", who)

    async def leave(self, who: str) -> None:
        """See OtherSide."""
        await self._moved("deleted", who)

    async def _moved(self, change: str, who: str) -> None:
        members = self.chats[GROUP]["members"]
        self.names[f"ou_{who}"] = who.title()
        members.append(f"ou_{who}") if change == "added" else members.remove(f"ou_{who}")
        user = {"name": who.title(), "tenant_key": "t1", "user_id": _ids(f"ou_{who}")}
        facts = {"chat_id": GROUP, "operator_id": _ids(ANN), "external": False, "users": [user], "name": "Family"}
        await self.emit(f"im.chat.member.user.{change}_v1", facts)

    async def add_bot(self, who: str) -> str:
        """See OtherSide."""
        chat = f"oc_{next(self._numbers)}"
        self._chat(chat, "group", [who])
        facts = {"chat_id": chat, "operator_id": _ids(who), "external": False, "name": "Work"}
        await self.emit("im.chat.member.bot.added_v1", facts)
        return chat

    async def promote(self, who: str, role: Role) -> None:
        """See OtherSide."""
        chat = self.chats[GROUP]
        chat["owner_id"] = who if role is Role.OWNER else "ou_olga"
        chat["user_manager_id_list"] = [who] if role is Role.ADMIN else []

    async def repeat(self) -> None:
        """See OtherSide."""
        await self._push(json.dumps(self._last, ensure_ascii=False).encode(), self._last["header"]["event_id"])

    async def send_garbage(self) -> None:
        """See OtherSide."""
        broken = {"header": {"event_type": "im.message.receive_v1"}, "event": {"message": 5}}
        for number, payload in enumerate((b"no JSON", b"[1]", b'{"header": 1}', json.dumps(broken).encode(), b"\xff")):
            await self._push(payload, f"garbage-{number}")
        await self.push_frame({"type": "event", "message_id": "1", "sum": "many", "seq": "0"}, b"{}")
        for frame in (b"\xff\xff", b"\x0d", b"", b"\x2a\x02\x08"):
            await self.sockets[-1].send_bytes(frame)
        await self.sockets[-1].send_str("no frame")

    async def disconnect(self) -> None:
        """See OtherSide."""
        for socket in self.sockets:
            if socket._req is not None and socket._req.transport is not None:
                socket._req.transport.abort()
        self.sockets.clear()

    async def fail_next(self, failure: Failure) -> None:
        """See OtherSide."""
        self._failure = failure

    async def open_thread(self, who: str, text: str) -> str:
        """See OtherSide."""
        root = await self.say(BEN, "Drinks")
        thread = f"omt_{root}"
        place = {"thread_id": thread, "root_id": root, "parent_id": root}
        await self.write(who, "text", {"text": text}, **place)
        return f"{GROUP},{thread}"

    async def shown(self, chat: str = "") -> list[Shown]:
        """See OtherSide."""
        return self.visible(chat)

    async def says(self, words: str, chat: str = "") -> Shown:
        """The bot's message with `words`, as soon as there is one."""
        await self.until(lambda: any(words in one.text for one in self.visible(chat)))
        return next(one for one in self.visible(chat) if words in one.text)

    def visible(self, chat: str) -> list[Shown]:
        """See `shown`."""
        native, _, thread = (chat or GROUP).partition(",")
        return [
            Shown(
                _rendered(one),
                one["message_id"],
                tuple(button["text"]["content"] for button in _buttons(one)),
                one["parent_id"],
                files=tuple(self.files[key] for key in _keys(one)),
            )
            for one in self.messages
            if (one["chat_id"], one["thread_id"], one["sender"]["id"]) == (native, thread, APP_ID)
            and not one["deleted"]
        ]

    async def reactions(self, native_id: str) -> list[str]:
        """See OtherSide."""
        signs = {name: sign for sign, name in _EMOJI.items()}
        return [signs[one["reaction_type"]["emoji_type"]] for one in self.marks.get(native_id, ())]


_CLIENT = {"ReconnectCount": -1, "ReconnectInterval": 1, "ReconnectNonce": 1, "PingInterval": 120}


def _refuse(code: int) -> None:
    raise Refused(code)


async def _body(request: web.Request) -> Data:
    if request.content_type == "multipart/form-data":
        form = await request.post()
        return {key: one.file.read() if isinstance(one, web.FileField) else one for key, one in form.items()}
    return await request.json() if request.can_read_body else {}


def _headers(data: bytes) -> dict[str, str]:
    written = [dict(parse_fields(one)) for number, one in parse_fields(data) if number == 5 and isinstance(one, bytes)]
    return {bytes(one[1]).decode(): bytes(one[2]).decode() for one in written}  # type: ignore[arg-type]


def _ids(open_id: str) -> Data:
    return {"open_id": open_id, "union_id": open_id.replace("ou_", "on_"), "user_id": None}


def _public(message: Data) -> Data:
    """A message as the API shows it."""
    mentions = [{**one, "id": one["id"]["open_id"], "id_type": "open_id"} for one in message["mentions"]]
    return {**{key: one for key, one in message.items() if one != ""}, "mentions": mentions}


def _check(kind: str, content: str) -> None:
    """Raise Refused for content that Feishu rejects."""
    given = json.loads(content)
    if len(content.encode()) > (150_000 if kind == "text" else 30_000):
        raise Refused(230025)
    if kind == "post":
        rows = given["zh_cn"]["content"]
        for row in rows:
            # Markdown has a paragraph of its own.
            if not row or (any(one["tag"] == "md" for one in row) and len(row) > 1):
                raise Refused(230001)
    elif kind == "interactive":
        buttons = _buttons({"msg_type": kind, "body": {"content": content}})
        is_good = given["schema"] == "2.0" and given["config"]["update_multi"] is True and given["body"]["elements"]
        if not is_good or any(not 0 < len(one["text"]["content"]) <= 100 for one in buttons):
            raise Refused(230099)
        assert all(isinstance(one["behaviors"][0]["value"], dict) for one in buttons)
    elif kind not in ("text", "image", "file"):
        raise Refused(230001)


def _buttons(message: Data) -> list[Data]:
    if message["msg_type"] != "interactive":
        return []
    sets = [one for one in json.loads(message["body"]["content"])["body"]["elements"] if one["tag"] == "column_set"]
    return [button for one in sets for column in one["columns"] for button in column["elements"]]


def _keys(message: Data) -> list[str]:
    content = json.loads(message["body"]["content"])
    return [content[key] for key in ("image_key", "file_key") if key in content]


def _rendered(message: Data) -> str:
    """The text as members see it. Mentions stay, in braces."""
    content = json.loads(message["body"]["content"])
    if message["msg_type"] == "interactive":
        lines = []
        for one in content["body"]["elements"]:
            if one["tag"] == "markdown":
                lines.append(_formatted(one["content"]))
            elif one["tag"] == "div":
                lines.append(one["text"]["content"])
        return "\n".join(lines)
    if message["msg_type"] == "post":
        return "\n".join("".join(_part(one) for one in row) for row in content["zh_cn"]["content"])
    return str(content.get("text", ""))


def _part(one: Data) -> str:
    if one["tag"] == "at":
        return f"{{@{one['user_id']}}}"
    return _formatted(one["text"]) if one["tag"] == "md" else str(one["text"])


def _formatted(text: str) -> str:
    """Markdown as Feishu shows it; a mention stays, in braces."""
    for _ in range(3):
        text = _MARKS.sub(r"\2", text)
    return re.sub(r'<at (?:id|user_id)="?([^">]*)"?>[^<]*</at>', r"{@\1}", text).replace("\u200b", "")
