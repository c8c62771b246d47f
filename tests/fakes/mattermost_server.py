"""Mattermost on 127.0.0.1, with one team: the REST API and the WebSocket, as the server's source describes them.

`tests/foreign/mattermost_driver.py`, a program on mattermostautodriver, works against it. Events of the time without a
connection are lost, as on a server whose connection cannot be resumed.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import unescape
from typing import Any

from aiohttp import WSMsgType, web

from bot.platforms.contract import Failure, Shown
from services.refs import Role

Data = dict[str, Any]


def id_of(name: str) -> str:
    """The id of a user or another thing with that name."""
    return name if len(name) == 26 else name.lower().ljust(26, "0")


BOT, ANN, BEN, ROBOT = id_of("rollcall"), id_of("ann"), id_of("ben"), id_of("robot")
GROUP, PRIVATE, TEAM = id_of("family"), id_of("direct"), id_of("team")
TOKEN = id_of("secret")
_EMOJI = {"👍": "+1", "✅": "white_check_mark"}
_ALL = ("@all", "@channel", "@here")


class Refused(Exception):
    """An answer with an error: its status and its id."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status = status


class FakeMattermost:
    """The server. Implements `OtherSide`; the attributes can be changed at any time."""

    def __init__(self) -> None:
        self.users: dict[str, Data] = {}
        for name in ("rollcall", "ann", "ben", "robot"):
            self.new_user(name)
        self.users[BOT]["is_bot"] = self.users[ROBOT]["is_bot"] = True
        self.channels: dict[str, Data] = {}
        self.members: dict[str, dict[str, Data]] = {}
        """Members of each channel, and of the team."""
        self.new_channel(GROUP, "O", [BOT, ANN, BEN, ROBOT])
        self.new_channel(PRIVATE, "D", [BOT, ANN])
        self.members[TEAM] = {user: _member(user) for user in self.users}
        self.posts: dict[str, Data] = {}
        self.posted: list[Data] = []
        self.files: dict[str, Data] = {}
        self.notified: list[str] = []
        """Posts that notify whole channels."""
        self.calls: list[tuple[str, str, Data]] = []
        """Requests: method, path and query or body."""
        self.refusals: dict[str, list[web.Response]] = {}
        """Answers for the next requests of a path instead of their own."""
        self.remembers_sends = False
        """Whether a repeated `pending_post_id` is recognized, as in the first 30 seconds."""
        self.accepts_tokens = self.accepts_sockets = True
        """Whether requests, and new connections, are accepted with the token."""
        self.url = ""
        self.actions: list[Data] = []
        """Requests over the WebSocket after the first."""
        self.connections = 0
        self.changed = asyncio.Condition()
        self._sockets: dict[web.WebSocketResponse, itertools.count[int]] = {}
        self._failure: Failure | None = None
        self._last: Data = {}
        self._numbers = itertools.count(1)
        self._latest = 0

    def new_user(self, name: str) -> str:
        """Create a user; returns the id."""
        facts = {"id": id_of(name), "username": name, "first_name": name.title(), "last_name": "Hill", "nickname": ""}
        zone = {"useAutomaticTimezone": "true", "automaticTimezone": "Europe/Oslo", "manualTimezone": ""}
        self.users[id_of(name)] = {**facts, "roles": "system_user", "delete_at": 0, "timezone": zone}
        return id_of(name)

    def new_channel(self, channel: str, kind: str, members: list[str]) -> None:
        """Create a channel."""
        facts = {
            "id": channel,
            "type": kind,
            "team_id": "" if kind == "D" else TEAM,
            "display_name": channel.rstrip("0"),
        }
        self.channels[channel] = {**facts, "last_post_at": 0, "delete_at": 0}
        self.members[channel] = {user: _member(user) for user in members}

    # Server

    @asynccontextmanager
    async def running(self) -> AsyncIterator[FakeMattermost]:
        """Serve until the end of the block."""
        app = web.Application(client_max_size=100_000_000)
        app.router.add_get("/api/v4/websocket", self._socket)
        app.router.add_route("*", "/api/v4/{path:.*}", self._answer)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            await self.disconnect()
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:  # noqa: C901 - one branch for each failure
        path = request.match_info["path"]
        body: Any = dict(request.query)
        if request.content_type == "application/json" and request.can_read_body:
            body = await request.json()
        elif request.content_type == "multipart/form-data":
            body = dict(await request.post())
        self.calls.append((request.method, path, body))
        if self.refusals.get(path):
            return self.refusals[path].pop(0)
        failure = None
        if (request.method, path) == ("POST", "posts"):
            failure, self._failure = self._failure, None
        try:
            if request.headers.get("Authorization") != f"Bearer {TOKEN}" or not self.accepts_tokens:
                raise Refused(401, "api.context.session_expired.app_error")
            if failure is Failure.RATE_LIMITED:
                return limited(7)
            if failure is Failure.SERVER_ERROR:
                return web.Response(status=500, text="<html>oops</html>", content_type="text/html")
            if failure in (Failure.REMOVED, Failure.NO_SUCH_CHAT):
                raise Refused(403, "api.context.permissions.app_error")
            answer = await self._outcome(request.method, path, body)
        except Refused as refused:
            return _refusal(refused.status, str(refused))
        except KeyError as missing:
            return _refusal(404, f"no.{missing.args[0]}.app_error".replace(" ", ""))
        if failure is Failure.DELIVERED_WITHOUT_ANSWER and request.transport is not None:
            request.transport.abort()
        if isinstance(answer, bytes):
            return web.Response(body=answer, content_type="application/octet-stream")
        response = _json(answer, 201 if request.method == "POST" else 200)
        response.set_cookie("MMAUTHTOKEN", "a session that is over")
        return response

    async def _outcome(self, method: str, path: str, body: Any) -> Any:  # noqa: C901 - one case for each request
        parts = path.replace("users/me", f"users/{BOT}").split("/")
        for part in parts[1:2] + parts[3:4]:
            if parts[0] != "emoji" and len(part) != 26 and part not in ("direct", "usernames"):
                raise Refused(400, "api.context.invalid_url_param.app_error")
        match method, *parts:
            case "GET", "users", user:
                return self.users[user]
            case "POST", "users", "usernames":
                return [one for one in self.users.values() if one["username"] in body]
            case "GET", "users", user, "channels":
                return [one for one in self.channels.values() if user in self.members[one["id"]]]
            case "GET", "users", _, "teams":
                return [{"id": TEAM, "display_name": "Home"}]
            case "GET", ("channels" | "teams"), place, "members", user:
                return self.members[place][user]
            case "GET", "channels", channel, "members":
                listed, size = list(self.members[channel].values()), int(body.get("per_page", 60))
                first = int(body.get("page", 0)) * size
                return listed[first : first + size]
            case "DELETE", "channels", channel, "members", user:
                del self.members[channel][user]
                return {"status": "OK"}
            case "POST", "channels", channel, "members":
                self.members[channel][body["user_id"]] = _member(body["user_id"])
                return {}
            case "POST", "posts", post, "pin":
                self.posts[post]["is_pinned"] = True
                return {"status": "OK"}
            case "POST", "channels", "direct":
                return self._direct(body)
            case "GET", "channels", channel:
                return self.channels[channel]
            case "GET", "channels", channel, "posts":
                return self._list(channel, body)
            case "POST", "posts":
                return await self._create(body)
            case "GET", "posts", post:
                return self._visible(post, 404)
            case "PUT", "posts", post, "patch":
                self._visible(post, 403)
                return await self._change(post, body["message"])
            case "DELETE", "posts", post:
                self._visible(post, 403)
                return await self._remove(post)
            case "POST", "reactions":
                await self._reacted(body["user_id"], body["post_id"], body["emoji_name"])
                return body
            case "GET", "posts", post, "reactions":
                return self.posts[post]["reactions"] or None
            case "DELETE", "users", user, "posts", post, "reactions", name:
                kept = [
                    one for one in self.posts[post]["reactions"] if (one["user_id"], one["emoji_name"]) != (user, name)
                ]
                self.posts[post]["reactions"] = kept
                return {"status": "OK"}
            case "POST", "files":
                content = body["files"].file.read()
                return {"file_infos": [self._new_file(body["files"].filename, content)], "client_ids": []}
            case "GET", "files", file, "info":
                return {key: value for key, value in self.files[file].items() if key != "content"}
            case "GET", "files", file:
                return self.files[file]["content"]
        raise Refused(404, "api.context.404.app_error")

    async def _socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        challenge = json.loads(await socket.receive_str())
        if challenge["data"]["token"] != TOKEN or not self.accepts_sockets:
            await socket.send_json(
                {"status": "FAIL", "error": {"id": "api.web_socket_router.not_authenticated.app_error"}}
            )
            return socket
        await socket.send_json({"status": "OK", "seq_reply": challenge["seq"]})
        self._sockets[socket] = itertools.count()
        await self._send(socket, {"event": "hello", "data": {"server_version": "11.0.0", "connection_id": "c"}})
        async with self.changed:
            self.connections += 1
            self.changed.notify_all()
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                action = json.loads(message.data)
                async with self.changed:
                    self.actions.append(action)
                    self.changed.notify_all()
                await socket.send_json({"status": "OK", "seq_reply": action["seq"]})
        self._sockets.pop(socket, None)
        return socket

    async def _send(self, socket: web.WebSocketResponse, event: Data) -> None:
        await socket.send_json({**event, "seq": next(self._sockets[socket])})

    async def emit(self, name: str, data: Data, channel: str = "", user: str = "") -> None:
        """Send an event to all connections."""
        self._last = {"event": name, "data": data, "broadcast": {"channel_id": channel, "user_id": user, "team_id": ""}}
        for socket in list(self._sockets):
            await self._send(socket, self._last)

    async def connected(self, count: int) -> None:
        """Return when that many connections have been made since the start."""
        async with asyncio.timeout(20), self.changed:
            await self.changed.wait_for(lambda: self.connections >= count)

    def skip_event(self) -> None:
        """Lose the next event, as when the queue of a connection overflows."""
        for numbers in self._sockets.values():
            next(numbers)

    # Posts

    def _now(self) -> int:
        self._latest = max(self._latest + 1, time.time_ns() // 1_000_000)
        return self._latest

    def _visible(self, post: str, status: int) -> Data:
        if post not in self.posts or self.posts[post]["delete_at"]:
            raise Refused(status, "api.context.permissions.app_error" if status == 403 else "app.post.get.app_error")
        return self.posts[post]

    async def _create(self, body: Data) -> Data:
        channel, pending = body["channel_id"], body.get("pending_post_id", "")
        if BOT not in self.members.get(channel, {}):
            raise Refused(403, "api.context.permissions.app_error")
        if len(body["message"]) > 16_383:
            raise Refused(400, "model.post.is_valid.message_length.app_error")
        if body.get("root_id") and self.posts.get(body["root_id"], {}).get("channel_id") != channel:
            raise Refused(400, "api.post.create_post.root_id.app_error")
        for one in self.posted if self.remembers_sends and pending else ():
            if one["pending_post_id"] == pending:
                return one
        return await self.post(
            channel,
            BOT,
            body["message"],
            root_id=body.get("root_id", ""),
            file_ids=body.get("file_ids") or [],
            pending_post_id=pending,
        )

    async def post(self, channel: str, user: str, message: str, **facts: Any) -> Data:
        """Add a post, with an event."""
        now, number = self._now(), id_of(f"post{next(self._numbers)}x")
        infos = [
            {key: value for key, value in self.files[one].items() if key != "content"}
            for one in facts.get("file_ids", ())
        ]
        post = {"id": number, "channel_id": channel, "user_id": user, "message": message, "type": "", "props": {}}
        times = {"create_at": now, "update_at": now, "edit_at": 0, "delete_at": 0, "root_id": "", "pending_post_id": ""}
        post |= {**times, "reactions": [], "metadata": {"files": infos} if infos else {}, **facts}
        if self.users[user].get("is_bot"):
            post["props"] = {**post["props"], "from_bot": "true"}
        self.posts[number] = post
        self.posted.append(post)
        self.channels[channel]["last_post_at"] = now
        if mentions_all(message):
            self.notified.append(message)
        named = [one["id"] for one in self.users.values() if f"@{one['username']}" in message]
        data: Data = {
            "post": json.dumps(post),
            "channel_type": self.channels[channel]["type"],
            "sender_name": f"@{user}",
        }
        await self.emit("posted", {**data, **({"mentions": json.dumps(named)} if named else {})}, channel)
        return post

    async def _change(self, post_id: str, message: str) -> Data:
        post, now = self.posts[post_id], self._now()
        if message != post["message"]:
            post |= {"message": message, "edit_at": now}
        post |= {"update_at": now}
        await self.emit("post_edited", {"post": json.dumps(post)}, post["channel_id"])
        return post

    async def _remove(self, post_id: str) -> Data:
        post, now = self.posts[post_id], self._now()
        await self.emit("post_deleted", {"post": json.dumps(post), "delete_by": post["user_id"]}, post["channel_id"])
        post |= {"delete_at": now, "update_at": now}
        return {"status": "OK"}

    async def _reacted(self, user: str, post_id: str, name: str) -> None:
        if not re.fullmatch(r"[a-z0-9_+-]+", name):
            raise Refused(400, "model.reaction.is_valid.emoji_name.app_error")
        post, now = self._visible(post_id, 404), self._now()
        reaction = {"user_id": user, "post_id": post_id, "emoji_name": name, "create_at": now}
        if not any((one["user_id"], one["emoji_name"]) == (user, name) for one in post["reactions"]):
            post["reactions"].append(reaction)
        post["update_at"] = now
        await self.emit("reaction_added", {"reaction": json.dumps(reaction)}, post["channel_id"])

    def _list(self, channel: str, query: Data) -> Data:
        if BOT not in self.members[channel]:
            raise Refused(403, "api.context.permissions.app_error")
        posts = [one for one in self.posted if one["channel_id"] == channel][::-1]
        if "since" in query:
            found = [one for one in posts if one["update_at"] > int(query["since"])][:1000]
        else:
            size = int(query.get("per_page", 60))
            found = [one for one in posts if not one["delete_at"]][int(query.get("page", 0)) * size :][:size]
        return {
            "order": [one["id"] for one in found],
            "posts": {one["id"]: one for one in found},
            "next_post_id": "",
            "prev_post_id": "",
        }

    def _direct(self, users: list[str]) -> Data:
        if any(one not in self.users for one in users):
            raise Refused(400, "api.channel.create_direct_channel.invalid_user.app_error")
        for channel, members in self.members.items():
            if channel != TEAM and self.channels[channel]["type"] == "D" and set(members) == set(users):
                return self.channels[channel]
        channel = id_of(f"direct{next(self._numbers)}x")
        self.new_channel(channel, "D", users)
        return self.channels[channel]

    def _new_file(self, name: str, content: bytes) -> Data:
        file = id_of(f"file{next(self._numbers)}x")
        facts = {"id": file, "name": name, "size": len(content), "mime_type": "image/png", "extension": "png"}
        self.files[file] = {**facts, "content": content}
        return facts

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
        """See OtherSide."""
        channel, _, thread = (chat or GROUP).partition(",")
        facts: Data = {"file_ids": [self._new_file(*file)["id"]]} if file else {}
        text = f"@rollcall {text}" if mention else text
        return str((await self.post(channel, who, text, root_id=thread or reply_to, **facts))["id"])

    async def edit(self, who: str, native_id: str, text: str) -> None:
        """See OtherSide."""
        await self._change(native_id, text)

    async def delete(self, who: str, native_id: str) -> None:
        """See OtherSide."""
        await self._remove(native_id)

    async def react(self, who: str, native_id: str, emoji: str) -> None:
        """See OtherSide."""
        await self._reacted(who, native_id, _EMOJI.get(emoji, emoji))

    async def press(self, who: str, native_id: str, label: str) -> None:
        """See OtherSide."""
        raise NotImplementedError

    async def enter(self, who: str) -> None:
        """See OtherSide."""
        user = self.new_user(who)
        self.members[GROUP][user] = _member(user)
        await self.emit("user_added", {"user_id": user, "team_id": TEAM}, GROUP)
        await self.post(GROUP, user, f"{who} joined the channel.", type="system_join_channel", props={"username": who})

    async def leave(self, who: str) -> None:
        """See OtherSide."""
        del self.members[GROUP][id_of(who)]
        await self.post(
            GROUP, id_of(who), f"{who} left the channel.", type="system_leave_channel", props={"username": who}
        )
        await self.emit("user_removed", {"user_id": id_of(who), "remover_id": id_of(who)}, GROUP)

    async def add_bot(self, who: str) -> str:
        """See OtherSide."""
        channel = id_of(f"other{next(self._numbers)}x")
        self.new_channel(channel, "P", [who])
        await self.post(channel, who, "before the bot came here")
        self.members[channel][BOT] = _member(BOT)
        props = {
            "userId": who,
            "username": self.users[who]["username"],
            "addedUserId": BOT,
            "addedUsername": "rollcall",
        }
        await self.emit("user_added", {"user_id": BOT, "team_id": TEAM}, channel)
        await self.post(channel, who, "rollcall added to the channel.", type="system_add_to_channel", props=props)
        return channel

    async def empower(self) -> None:
        """See OtherSide: the bot has the rights from the start."""

    async def promote(self, who: str, role: Role) -> None:
        """See OtherSide."""
        self.members[GROUP][who]["scheme_admin"] = role is Role.ADMIN

    async def repeat(self) -> None:
        """See OtherSide."""
        for socket in list(self._sockets):
            await self._send(socket, self._last)

    async def send_garbage(self) -> None:
        """See OtherSide."""
        for data in (
            {"post": "no JSON"},
            {"post": "[]"},
            {"post": "{}"},
            {"post": json.dumps({"message": 5, "create_at": "x"})},
        ):
            await self.emit("posted", data, GROUP)
        await self.emit("posted", [], GROUP)  # type: ignore[arg-type]
        for socket in list(self._sockets):
            await socket.send_str("no JSON")
            await socket.send_str("[1]")

    async def disconnect(self) -> None:
        """See OtherSide."""
        for socket in list(self._sockets):
            if socket._req is not None and socket._req.transport is not None:
                socket._req.transport.abort()
        self._sockets.clear()

    async def fail_next(self, failure: Failure) -> None:
        """See OtherSide. Mattermost has no replies and rejects no formatting, so these failures do not exist."""
        self._failure = None if failure in (Failure.REPLY_IS_GONE, Failure.BAD_MARKUP) else failure

    async def open_thread(self, who: str, text: str) -> str:
        """See OtherSide."""
        thread = f"{GROUP},{await self.say(BEN, 'Drinks')}"
        await self.say(who, text, chat=thread)
        return thread

    async def shown(self, chat: str = "") -> list[Shown]:
        """See OtherSide."""
        channel, _, thread = (chat or GROUP).partition(",")
        return [
            Shown(
                rendered(one["message"]),
                one["id"],
                files=tuple(self.files[file]["content"] for file in one.get("file_ids", ())),
            )
            for one in self.posted
            if (one["channel_id"], one["user_id"], one["root_id"]) == (channel, BOT, thread) and not one["delete_at"]
        ]

    async def reactions(self, native_id: str) -> list[str]:
        """See OtherSide."""
        emoji = {name: sign for sign, name in _EMOJI.items()}
        return [emoji[one["emoji_name"]] for one in self.posts[native_id]["reactions"] if one["user_id"] == BOT]


def limited(seconds: int) -> web.Response:
    """The answer to a request above the rate limit."""
    headers = {"Retry-After": str(seconds), "X-RateLimit-Reset": str(seconds), "X-RateLimit-Remaining": "0"}
    return web.Response(status=429, text="limit exceeded\n", headers=headers)


def mentions_all(message: str) -> bool:
    """Whether the server notifies all members: it decodes the text, and looks at each word without punctuation."""
    text = _decoded(re.sub(r"```.*?```|`[^`\n]*`", " ", message, flags=re.DOTALL))
    words = [word.strip(":.-_").lower() for word in re.findall(r"[\w:.@-]+", text)]
    return any(word in _ALL or part in _ALL for word in words for part in re.split(r"[.:-]", word))


def rendered(message: str) -> str:
    """The text as members see it: formatting applied, without invisible characters."""
    pieces, kept = [], list[str]()
    for line in message.split("\n"):
        if found := re.match(r"(?: {4}|\t|#{1,6} |[>+-] ?|\d+[.)] |=+$)(.*)", line):
            line = found[1]
        pieces.append(line)
    text = re.sub(
        r"\\([!-/:-@\[-`{-~])", lambda found: kept.append(found[1]) or f"\x00{len(kept) - 1}\x00", "\n".join(pieces)
    )  # type: ignore[func-returns-value]
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"(?<!`)`([^`\n]+)`", r"\1", text))
    text = re.sub(r"(?<!\w)(\*\*|\*|_|~~)(?=\S)(.+?)(?<=\S)\1(?!\w)", r"\2", text)
    text = re.sub(r"</?[A-Za-z][^>]*>|:\w+:|~[\w-]+", "", unescape(text))
    return re.sub("\x00(\\d+)\x00", lambda found: kept[int(found[1])], text).replace("\u200b", "")


def _decoded(text: str) -> str:
    return unescape(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", text))


def _member(user: str) -> Data:
    return {"user_id": user, "roles": "channel_user", "scheme_user": True, "scheme_admin": False, "scheme_guest": False}


def _refusal(status: int, code: str) -> web.Response:
    facts = {
        "id": code,
        "message": "In words.",
        "detailed_error": "",
        "request_id": id_of("request"),
        "status_code": status,
    }
    return _json(facts, status)


def _json(answer: Any, status: int) -> web.Response:
    # Without a charset, as the server says it, and mattermostautodriver expects it.
    return web.Response(body=json.dumps(answer).encode(), status=status, headers={"Content-Type": "application/json"})
