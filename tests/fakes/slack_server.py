"""Slack on 127.0.0.1, with one workspace: the Web API over HTTP, and Socket Mode over WebSocket.

`tests/foreign/slack_bolt_app.py`, an app on slack_bolt, works against it. Events that no connection receives are lost,
which is the worst case of Slack's few retries.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from html import unescape
from typing import Any

from aiohttp import WSMsgType, web

from bot.platforms.contract import Failure, Shown
from services.refs import Role

BOT_TOKEN, APP_TOKEN = "xoxb-1-secret", "xapp-1-secret"
BOT, BOT_ID, TEAM = "UBOT", "BBOT", "T1"
ANN, BEN, ROBOT = "UANN", "UBEN", "UROBOT"
GROUP, PRIVATE = "CFAMILY", "DANN"
SCOPES = (
    "app_mentions:read,channels:history,channels:read,chat:write,files:read,files:write,groups:history,groups:read,"
    "im:history,im:read,im:write,mpim:history,mpim:read,reactions:read,reactions:write,users:read"
)
_REFUSALS = {
    Failure.REMOVED: "not_in_channel",
    Failure.NO_SUCH_CHAT: "channel_not_found",
    Failure.BAD_MARKUP: "invalid_blocks",
}
_EMOJI = {"👍": "+1", "✅": "white_check_mark", "❌": "x"}
_MRKDWN = re.compile(r"(?<!\w)([*_~`])(?=\S)([^\n]+?)(?<=\S)\1(?!\w)")
Data = dict[str, Any]


class Refused(Exception):
    """An answer with `ok: false`."""


class FakeSlack:
    """The workspace. Implements `OtherSide`; the attributes can be changed at any time."""

    def __init__(self) -> None:
        self.users: dict[str, Data] = {}
        for user in (BOT, ANN, BEN, ROBOT):
            self._user(user)
        self.users[BOT]["is_bot"] = self.users[ROBOT]["is_bot"] = True
        self.channels: dict[str, list[str]] = {GROUP: [BOT, ANN, BEN, ROBOT], PRIVATE: [BOT, ANN]}
        """Members of each channel."""
        self.messages: dict[str, list[Data]] = {GROUP: [], PRIVATE: []}
        self.files: dict[str, Data] = {}
        self.scopes = SCOPES
        self.calls: list[tuple[str, Data]] = []
        """Methods that were called, with their arguments."""
        self.refusals: dict[str, list[web.Response]] = {}
        """Answers for the next calls of a method instead of its own."""
        self.page_size = 7
        self.sends_app_mentions = True
        self.greets = True
        self.url = ""
        self.sockets: list[web.WebSocketResponse] = []
        self.unacknowledged: dict[str, Data] = {}
        self.acknowledged: list[str] = []
        self.connections = 0
        """Connections since the start."""
        self.received = asyncio.Condition()
        self._failure: Failure | None = None
        self._last: Data = {}
        self._numbers = itertools.count(1)
        self._latest = 0

    # Server

    @asynccontextmanager
    async def running(self) -> AsyncIterator[FakeSlack]:
        """Serve until the end of the block."""
        app = web.Application(client_max_size=100_000_000)
        app.router.add_route("*", "/api/{method}", self._answer)
        app.router.add_get("/link", self._socket)
        app.router.add_post("/upload/{file}", self._upload)
        app.router.add_get("/files/{file}", self._download)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            await self.disconnect()
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        method, arguments = request.match_info["method"], dict[str, Any](request.query)
        if request.content_type != "application/json":
            arguments |= dict(await request.post())
        elif method.startswith(("chat.", "reactions.add", "conversations.open")):
            # Slack reads JSON only for methods that write.
            arguments |= await request.json()
        token = arguments.pop("token", "") or request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.calls.append((method, arguments))
        if self.refusals.get(method):
            return self.refusals[method].pop(0)
        failure = None
        if method == "chat.postMessage":
            failure, self._failure = self._failure, None
        if failure is Failure.RATE_LIMITED:
            return limited(7)
        if failure is Failure.SERVER_ERROR:
            return web.Response(status=500, text="<html>oops</html>", content_type="text/html")
        answer = await self._outcome(method, arguments, token, failure)
        if failure is Failure.DELIVERED_WITHOUT_ANSWER and request.transport is not None:
            request.transport.abort()
        return web.json_response(answer, headers={"x-oauth-scopes": self.scopes})

    async def _outcome(self, method: str, arguments: Data, token: str, failure: Failure | None) -> Data:
        handler: Callable[[Data], Any] = getattr(self, "_" + method.replace(".", "_"), _unknown)
        try:
            if token != (APP_TOKEN if method == "apps.connections.open" else BOT_TOKEN):
                raise Refused("invalid_auth" if token else "not_authed")
            if failure in _REFUSALS and (failure is not Failure.BAD_MARKUP or arguments.get("mrkdwn", True)):
                raise Refused(_REFUSALS[failure])
            return {"ok": True, **(await handler(arguments))}
        except Refused as refused:
            return {"ok": False, "error": str(refused)}
        except KeyError as missing:
            return {"ok": False, "error": "invalid_arguments", "response_metadata": {"messages": [str(missing)]}}

    async def _socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        if not self.greets:
            await socket.send_json({"type": "disconnect", "reason": "too_many_websockets"})
            return socket
        await socket.send_json({"type": "hello", "num_connections": 1, "connection_info": {"app_id": "A1"}})
        async with self.received:
            self.connections += 1
            self.sockets.append(socket)
            self.received.notify_all()
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                envelope = json.loads(message.data)["envelope_id"]
                self.unacknowledged.pop(envelope, None)
                async with self.received:
                    self.acknowledged.append(envelope)
                    self.received.notify_all()
        if socket in self.sockets:
            self.sockets.remove(socket)
        return socket

    async def _upload(self, request: web.Request) -> web.Response:
        self.files[request.match_info["file"]]["content"] = await request.read()
        return web.Response(text="OK")

    async def _download(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {BOT_TOKEN}":
            return web.Response(status=302, headers={"Location": "/login"})
        return web.Response(body=self.files[request.match_info["file"]]["content"])

    async def _emit(self, payload: Data, kind: str = "events_api") -> str:
        """Send an event to one of the connections."""
        envelope_id = f"envelope-{next(self._numbers)}"
        self._last = {"envelope_id": envelope_id, "type": kind, "payload": payload, "accepts_response_payload": False}
        await self._send(self._last)
        return envelope_id

    async def _send(self, envelope: Data) -> None:
        if self.sockets:
            self.unacknowledged[envelope["envelope_id"]] = envelope
            await self.sockets[-1].send_json(envelope)

    async def _event(self, event: Data) -> str:
        event_id = f"Ev{next(self._numbers)}"
        outer = {"token": "legacy-secret", "team_id": TEAM, "api_app_id": "A1", "type": "event_callback"}
        return await self._emit({**outer, "event": event, "event_id": event_id, "event_time": int(time.time())})

    async def until_acknowledged(self, envelope_id: str) -> None:
        """Return when the app has acknowledged an envelope."""
        async with asyncio.timeout(20), self.received:
            await self.received.wait_for(lambda: envelope_id in self.acknowledged)

    async def connected(self, count: int) -> None:
        """Return when that many connections have been made since the start."""
        async with self.received:
            await self.received.wait_for(lambda: self.connections >= count)

    # Web API

    async def _auth_test(self, _: Data) -> Data:
        return {"url": self.url, "team": "Home", "user": "rollcall", "team_id": TEAM, "user_id": BOT, "bot_id": BOT_ID}

    async def _apps_connections_open(self, _: Data) -> Data:
        return {"url": f"{self.url.replace('http', 'ws')}/link?ticket=secret-ticket"}

    async def _users_info(self, arguments: Data) -> Data:
        if arguments["user"] not in self.users:
            raise Refused("user_not_found")
        locale = {"locale": "en-US"} if arguments.get("include_locale") in ("1", "true") else {}
        return {"user": {**locale, **self.users[arguments["user"]]}}

    async def _users_conversations(self, arguments: Data) -> Data:
        kinds = arguments.get("types", "public_channel").split(",")
        channels = [
            {"id": one}
            for one, members in self.channels.items()
            if BOT in members and ("im" if one.startswith("D") else "public_channel") in kinds
        ]
        return self._page("channels", channels, arguments)

    async def _conversations_members(self, arguments: Data) -> Data:
        if arguments["channel"] not in self.channels:
            raise Refused("channel_not_found")
        return self._page("members", self.channels[arguments["channel"]], arguments)

    async def _conversations_history(self, arguments: Data) -> Data:
        return self._history(
            arguments, [one for one in self._in(arguments) if one.get("thread_ts", one["ts"]) == one["ts"]]
        )

    async def _conversations_replies(self, arguments: Data) -> Data:
        known = {one["ts"]: one for one in self._in(arguments)}
        if arguments["ts"] not in known:
            raise Refused("thread_not_found")
        root = known[arguments["ts"]].get("thread_ts", arguments["ts"])
        replies = [one for one in known.values() if one.get("thread_ts") == root and one["ts"] != root]
        found = self._history(arguments, replies[::-1])
        return {**found, "messages": [known[root], *found["messages"][::-1]]}

    def _history(self, arguments: Data, messages: list[Data]) -> Data:
        oldest, latest = arguments.get("oldest", "0"), arguments.get("latest", "9")
        inclusive = arguments.get("inclusive") in ("1", "true", True)
        chosen = [
            one
            for one in messages[::-1]
            if oldest < one["ts"] < latest or (inclusive and one["ts"] in (oldest, latest))
        ]
        return self._page("messages", chosen, arguments)

    def _page(self, field: str, items: list[Any], arguments: Data) -> Data:
        first = int(arguments.get("cursor") or 0)
        after = first + min(int(arguments.get("limit", 100)), self.page_size)
        more = str(after) if after < len(items) else ""
        return {field: items[first:after], "has_more": bool(more), "response_metadata": {"next_cursor": more}}

    def _in(self, arguments: Data) -> list[Data]:
        channel = arguments["channel"]
        if channel not in self.messages:
            raise Refused("channel_not_found")
        if BOT not in self.channels[channel]:
            raise Refused("not_in_channel")
        return self.messages[channel]

    async def _conversations_open(self, arguments: Data) -> Data:
        if arguments["users"] not in self.users:
            raise Refused("user_not_found")
        channel = f"D{arguments['users'][1:]}"
        self.channels.setdefault(channel, [BOT, arguments["users"]])
        self.messages.setdefault(channel, [])
        return {"channel": {"id": channel}}

    async def _conversations_leave(self, arguments: Data) -> Data:
        members = self.channels.get(arguments["channel"])
        if members is None:
            raise Refused("channel_not_found")
        if BOT not in members:
            return {"not_in_channel": True}
        members.remove(BOT)
        return {}

    async def _conversations_kick(self, arguments: Data) -> Data:
        if arguments["user"] not in self.channels[arguments["channel"]]:
            raise Refused("not_in_channel")
        self.channels[arguments["channel"]].remove(arguments["user"])
        return {}

    async def _conversations_invite(self, arguments: Data) -> Data:
        if arguments["users"] in self.channels[arguments["channel"]]:
            raise Refused("already_in_channel")
        self.channels[arguments["channel"]].append(arguments["users"])
        return {}

    async def _pins_add(self, arguments: Data) -> Data:
        if all(one["ts"] != arguments["timestamp"] for one in self._in(arguments)):
            raise Refused("message_not_found")
        return {}

    async def _chat_postMessage(self, arguments: Data) -> Data:  # noqa: N802 - named after the method
        self._in(arguments)
        _check(arguments)
        message = {"user": BOT, "bot_id": BOT_ID, "app_id": "A1", "mrkdwn": arguments.get("mrkdwn", True)}
        message |= {key: arguments[key] for key in ("text", "blocks", "thread_ts") if arguments.get(key)}
        posted = await self._post(arguments["channel"], message)
        return {"channel": arguments["channel"], "ts": posted["ts"], "message": posted}

    async def _chat_update(self, arguments: Data) -> Data:
        message = self._own(arguments, "cant_update_message")
        _check(arguments)
        before = dict(message)
        message |= {"text": arguments.get("text", message["text"]), "mrkdwn": True}
        message["blocks"] = arguments.get("blocks", message.get("blocks", []))
        message["edited"] = {"user": BOT, "ts": self._now()}
        await self._changed(arguments["channel"], message, before)
        return {"channel": arguments["channel"], "ts": message["ts"], "text": message["text"]}

    async def _chat_delete(self, arguments: Data) -> Data:
        message = self._own(arguments, "cant_delete_message")
        await self._deleted(arguments["channel"], message)
        return {"channel": arguments["channel"], "ts": message["ts"]}

    def _own(self, arguments: Data, problem: str) -> Data:
        for message in self._in(arguments):
            if message["ts"] == arguments["ts"]:
                if message["user"] != BOT:
                    raise Refused(problem)
                return message
        raise Refused("message_not_found")

    def _message(self, channel: str, ts: str) -> Data:
        for message in self._in({"channel": channel}):
            if message["ts"] == ts:
                return message
        raise Refused("message_not_found")

    async def _reactions_add(self, arguments: Data) -> Data:
        reactions = self._message(arguments["channel"], arguments["timestamp"]).setdefault("reactions", [])
        if arguments["name"] not in _EMOJI.values():
            raise Refused("invalid_name")
        if any(one["name"] == arguments["name"] and BOT in one["users"] for one in reactions):
            raise Refused("already_reacted")
        reactions.append({"name": arguments["name"], "users": [BOT], "count": 1})
        await self._reacted(BOT, arguments["channel"], arguments["timestamp"], arguments["name"])
        return {}

    async def _reactions_remove(self, arguments: Data) -> Data:
        message = self._message(arguments["channel"], arguments["timestamp"])
        kept = [one for one in message.get("reactions", []) if one["name"] != arguments["name"]]
        if kept == message.get("reactions", []):
            raise Refused("no_reaction")
        message["reactions"] = kept
        return {}

    async def _reactions_get(self, arguments: Data) -> Data:
        return {"type": "message", "message": self._message(arguments["channel"], arguments["timestamp"])}

    async def _files_getUploadURLExternal(self, arguments: Data) -> Data:  # noqa: N802 - named after the method
        file = self._new_file(arguments["filename"], int(arguments["length"]))
        return {"upload_url": f"{self.url}/upload/{file}", "file_id": file}

    async def _files_completeUploadExternal(self, arguments: Data) -> Data:  # noqa: N802 - named after the method
        files = [self.files[one["id"]] for one in json.loads(arguments["files"])]
        if any(len(one.get("content", b"")) != one["size"] for one in files):
            raise Refused("file_update_failed")
        message = {"user": BOT, "bot_id": BOT_ID, "text": arguments.get("initial_comment", ""), "subtype": "file_share"}
        message |= {"thread_ts": arguments["thread_ts"]} if arguments.get("thread_ts") else {}
        await self._post(arguments["channel_id"], {**message, "files": [_described(one) for one in files]})
        return {"files": [{"id": one["id"], "title": one["name"]} for one in files]}

    async def _files_info(self, arguments: Data) -> Data:
        if arguments["file"] not in self.files:
            raise Refused("file_not_found")
        return {"file": _described(self.files[arguments["file"]])}

    # Events

    def _now(self) -> str:
        self._latest = max(self._latest + 1, time.time_ns() // 1000)
        return f"{self._latest // 1_000_000}.{self._latest % 1_000_000:06}"

    async def _post(self, channel: str, message: Data) -> Data:
        message |= {"type": "message", "ts": self._now(), "team": TEAM}
        by_ts = {one["ts"]: one for one in self.messages[channel]}
        if parent := by_ts.get(message.get("thread_ts", "")):
            message["parent_user_id"] = parent["user"]
            parent |= {"thread_ts": parent["ts"], "latest_reply": message["ts"]}
        self.messages[channel].append(message)
        place = {"channel": channel, "channel_type": "im" if channel.startswith("D") else "channel"}
        if f"<@{BOT}>" in message["text"] and self.sends_app_mentions:
            await self._event({**message, **place, "type": "app_mention", "event_ts": message["ts"]})
        await self._event({**message, **place, "event_ts": message["ts"]})
        return message

    async def _changed(self, channel: str, message: Data, before: Data) -> None:
        event = {"type": "message", "subtype": "message_changed", "hidden": True, "channel": channel}
        ts = self._now()
        await self._event({**event, "message": message, "previous_message": before, "ts": ts, "event_ts": ts})

    async def _deleted(self, channel: str, message: Data) -> None:
        self.messages[channel].remove(message)
        event = {"type": "message", "subtype": "message_deleted", "hidden": True, "channel": channel}
        ts = self._now()
        await self._event({**event, "deleted_ts": message["ts"], "previous_message": message, "ts": ts, "event_ts": ts})

    async def _reacted(self, who: str, channel: str, ts: str, name: str) -> None:
        item = {"type": "message", "channel": channel, "ts": ts}
        author = self._message(channel, ts)["user"]
        facts = {"user": who, "reaction": name, "item": item, "item_user": author, "event_ts": self._now()}
        await self._event({"type": "reaction_added", **facts})

    async def _came(self, kind: str, channel: str, user: str, **facts: str) -> None:
        place = {"channel": channel, "channel_type": "C", "team": TEAM, "event_ts": self._now()}
        await self._event({"type": kind, "user": user, **place, **facts})

    # OtherSide

    def _user(self, who: str) -> str:
        user = who if who.startswith("U") else f"U{who.upper()}"
        name = user[1:].title()
        details = {"display_name": name, "real_name": f"{name} Hill"}
        usual = {"id": user, "team_id": TEAM, "name": name.lower(), "tz": "Europe/Oslo", "profile": details}
        self.users.setdefault(user, usual)
        return user

    def _new_file(self, name: str, size: int) -> str:
        file = f"F{next(self._numbers)}"
        self.files[file] = {"id": file, "name": name, "size": size, "url": f"{self.url}/files/{file}"}
        return file

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
        text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        message: Data = {"user": who, "text": f"<@{BOT}> {text}" if mention else text}
        if who == ROBOT:
            message |= {"bot_id": "BROBOT", "bot_profile": {"name": "Robot"}}
        if thread or reply_to:
            message["thread_ts"] = thread or reply_to
        if file is not None:
            known = self.files[self._new_file(file[0], len(file[1]))]
            known["content"] = file[1]
            message |= {"subtype": "file_share", "files": [_described(known)]}
        return str((await self._post(channel, message))["ts"])

    async def event(self, event: Data) -> str:
        """Send an event of any form; returns the id of its envelope."""
        return await self._event(event)

    async def edit(self, who: str, native_id: str, text: str) -> None:
        """See OtherSide."""
        message = self._message(GROUP, native_id)
        before = dict(message)
        message |= {"text": text, "edited": {"user": who, "ts": self._now()}}
        await self._changed(GROUP, message, before)

    async def delete(self, who: str, native_id: str) -> None:
        """See OtherSide."""
        await self._deleted(GROUP, self._message(GROUP, native_id))

    async def react(self, who: str, native_id: str, emoji: str) -> None:
        """See OtherSide."""
        await self._reacted(who, GROUP, native_id, _EMOJI.get(emoji, emoji))

    async def press(self, who: str, native_id: str, label: str) -> None:
        """See OtherSide."""
        for channel, messages in self.messages.items():
            for message in messages:
                if message["ts"] == native_id:
                    await self._pressed(who, channel, message, label)

    async def _pressed(self, who: str, channel: str, message: Data, label: str) -> None:
        (button,) = [one for one in _buttons(message) if one["text"]["text"] == label]
        action = {**{key: button[key] for key in ("type", "action_id", "value", "text")}, "action_ts": self._now()}
        container = {"type": "message", "message_ts": message["ts"], "channel_id": channel, "is_ephemeral": False}
        place = {"container": container, "channel": {"id": channel, "name": "family"}, "team": {"id": TEAM}}
        facts = {"user": {"id": who, "name": who.lower()}, "message": message, "actions": [action], "api_app_id": "A1"}
        secrets = {"token": "legacy-secret", "trigger_id": "1.2.secret", "response_url": "http://secret.invalid/"}
        await self._emit({"type": "block_actions", **place, **facts, **secrets}, "interactive")

    async def enter(self, who: str) -> None:
        """See OtherSide."""
        self.channels[GROUP].append(self._user(who))
        await self._came("member_joined_channel", GROUP, self._user(who))

    async def leave(self, who: str) -> None:
        """See OtherSide."""
        self.channels[GROUP].remove(self._user(who))
        await self._came("member_left_channel", GROUP, self._user(who))

    async def add_bot(self, who: str) -> str:
        """See OtherSide."""
        channel = f"C{next(self._numbers)}"
        self.channels[channel], self.messages[channel] = [BOT, who], []
        await self._came("member_joined_channel", channel, BOT, inviter=who)
        return channel

    async def empower(self) -> None:
        """See OtherSide: the bot has the rights from the start."""

    async def promote(self, who: str, role: Role) -> None:
        """See OtherSide."""
        self.users[who] |= {"is_admin": role.rank >= Role.ADMIN.rank, "is_owner": role is Role.OWNER}

    async def repeat(self) -> None:
        """See OtherSide."""
        await self._send({**self._last, "retry_attempt": 1, "retry_reason": "timeout"})

    async def send_garbage(self) -> None:
        """See OtherSide."""
        for payload in ({"event": {"type": "message", "channel": 5, "ts": None, "user": []}}, {"event": 5}, [1]):
            await self._emit(payload)  # type: ignore[arg-type]
        await self.sockets[-1].send_str("no JSON")
        await self.sockets[-1].send_str("[1]")

    async def disconnect(self) -> None:
        """See OtherSide."""
        for socket in self.sockets:
            if socket._req is not None and socket._req.transport is not None:
                socket._req.transport.abort()
        self.sockets.clear()

    async def refresh(self, reason: str = "refresh_requested") -> None:
        """Ask the app to open a new connection."""
        await self.sockets[-1].send_json({"type": "disconnect", "reason": reason, "debug_info": {}})

    async def fail_next(self, failure: Failure) -> None:
        """See OtherSide. Slack has no replies, so a missing message to reply to is no failure."""
        self._failure = None if failure is Failure.REPLY_IS_GONE else failure

    async def open_thread(self, who: str, text: str) -> str:
        """See OtherSide."""
        parent = await self.say(BEN, "Drinks")
        thread = f"{GROUP},{parent}"
        await self.say(who, text, chat=thread)
        return thread

    async def shown(self, chat: str = "") -> list[Shown]:
        """See OtherSide."""
        channel, _, thread = (chat or GROUP).partition(",")
        return [
            Shown(
                _rendered(one),
                one["ts"],
                tuple(button["text"]["text"] for button in _buttons(one)),
                files=tuple(self.files[file["id"]]["content"] for file in one.get("files", ())),
            )
            for one in self.messages[channel]
            if one["user"] == BOT and ((one.get("thread_ts") == thread) if thread else "parent_user_id" not in one)
        ]

    async def reactions(self, native_id: str) -> list[str]:
        """See OtherSide."""
        emoji = {name: sign for sign, name in _EMOJI.items()}
        return [emoji[one["name"]] for one in self._message(GROUP, native_id).get("reactions", ())]


def limited(seconds: int) -> web.Response:
    """The answer to a call above the rate limit."""
    return web.json_response({"ok": False, "error": "ratelimited"}, status=429, headers={"Retry-After": str(seconds)})


async def _unknown(_: Data) -> Data:
    raise Refused("unknown_method")


def _described(file: Data) -> Data:
    facts = {"id": file["id"], "name": file["name"], "size": file.get("said", file["size"]), "mode": "hosted"}
    return {**facts, "mimetype": "image/png", "url_private": file["url"], "url_private_download": file["url"]}


def _check(arguments: Data) -> None:
    """Raise Refused for a message that Slack rejects."""
    if not arguments.get("text") and not arguments.get("blocks"):
        raise Refused("no_text")
    if len(arguments.get("text", "")) > 40_000:
        raise Refused("msg_too_long")
    buttons = _buttons(arguments)
    is_good = (
        len(arguments.get("blocks", ())) <= 50
        and all(len(block["elements"]) <= 25 for block in arguments.get("blocks", ()) if block["type"] == "actions")
        and all(
            1 <= len(block["text"]["text"]) <= 3000
            for block in arguments.get("blocks", ())
            if block["type"] == "section"
        )
        and all(len(one["text"]["text"]) <= 75 and len(one["value"]) <= 2000 for one in buttons)
        and len({one["action_id"] for one in buttons}) == len(buttons)
    )
    if not is_good:
        raise Refused("invalid_blocks")


def _buttons(message: Data) -> list[Data]:
    return [one for block in message.get("blocks", ()) if block["type"] == "actions" for one in block["elements"]]


def _rendered(message: Data) -> str:
    """The text as members see it. Control sequences stay, in braces."""
    parts = []
    for block in message.get("blocks", ()):
        if block["type"] == "section":
            parts.append(_formatted(block["text"]["text"]))
        elif block["type"] == "rich_text":
            runs = [run for section in block["elements"] for run in section["elements"]]
            parts += ["".join(run.get("text") or run.get("url") or f"{{@{run['user_id']}}}" for run in runs)]
    if parts:
        return "\n".join(parts)
    text = message["text"]
    return _formatted(text) if message.get("mrkdwn", True) else _unescaped(text)


def _formatted(text: str) -> str:
    for _ in range(3):
        text = _MRKDWN.sub(r"\2", text)
    return _unescaped(text)


def _unescaped(text: str) -> str:
    """`text` without links; other control sequences stay, in braces."""
    text = re.sub(r"<(https?:[^>|]+)(?:\|([^>]*))?>", lambda found: found[2] or found[1], text)
    return unescape(re.sub(r"<([^>|]+)(?:\|[^>]*)?>", r"{\1}", text))
