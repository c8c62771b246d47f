"""Discord on 127.0.0.1: the simulated servers, channels and REST API of simcord, served over TLS, HTTP and a gateway
for an unmodified discord.py."""

from __future__ import annotations

import asyncio
import io
import json
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from socket import AF_INET
from types import SimpleNamespace
from typing import Any

import aiohttp
import discord
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from simcord import intents as simulated_intents
from simcord import interactions
from simcord._clock import Clock
from simcord.backend import Backend, serializers
from simcord.backend.errors import BackendError
from simcord.http import router

from bot.platforms.contract import Failure, Shown
from services.refs import Role
from tests.harness.irc_servers import a_certificate

TOKEN = "MTIzNDU2Nzg5MDEyMzQ1Njc4.GabcDe.a-token-of-nobody-for-tests-0123456789"
_CDN, _SIMULATED_CDN = "https://cdn.discordapp.com", "https://cdn.simcord.invalid"
Waiting = asyncio.Queue[int]
"""Numbers of the events for a connection."""
_PERMISSIONS = {
    Role.ADMIN: discord.Permissions(manage_guild=True),
    Role.MODERATOR: discord.Permissions(moderate_members=True),
}


class _RealTime(Clock):
    def now(self) -> datetime:
        return datetime.now(UTC)


class _ToThisMachine(AbstractResolver):
    def __init__(self, port: int) -> None:
        self._port = port

    async def resolve(self, host: str, port: int = 0, family: Any = AF_INET) -> list[ResolveResult]:
        return [ResolveResult(hostname=host, host="127.0.0.1", port=self._port, family=AF_INET, proto=0, flags=0)]

    async def close(self) -> None:
        pass


@cache
def _certificate() -> Path:
    return a_certificate(Path(tempfile.mkdtemp(prefix="discord-")), "server")


class DiscordServer:
    """`OtherSide` of Discord, with the server `family` and its channel `#general`."""

    def __init__(self) -> None:
        self.world = Backend(clock=_RealTime())
        self.me = self.world.bot_user
        self.approved = discord.Intents.all()
        self.can_resume = True
        self.accepts_sessions = True
        self.requests: list[tuple[str, str, Any]] = []
        """Method, path and body of each request."""
        self.sessions = 0
        self.port = 0
        self._sockets: dict[web.WebSocketResponse, Waiting] = {}
        self._intents = discord.Intents.none()
        self.events: list[tuple[str, dict[str, Any]]] = []
        """Name and data of all events so far, in order."""
        self.faults: list[Callable[[dict[str, Any]], web.Response | None]] = []
        """Answers to the next sends, one each; None for the normal one."""
        self._drops = 0
        self._sent: dict[str, Any] = {}
        self.world.subscribers.append(self._emit)
        self.guild = self.world.create_guild("family")
        self.own_role = max(self.guild.roles)
        """The role that Discord gives to the bot."""
        self.general = self.world.create_channel(self.guild.id, "general")
        self.people: dict[str, int] = {}
        for name in ("ann", "ben"):
            self.world.add_member(self.guild.id, self.user(name))
        robot = self.world.make_user("robot", bot=True)
        self.people["robot"] = robot.id
        self.world.add_member(self.guild.id, robot.id)
        self.private = self.world.get_dm_channel(self.user("ann"))

    def user(self, who: str) -> int:
        """The id of a person by name or id; created if unknown."""
        if who.isdecimal():
            return int(who)
        if who not in self.people:
            self.people[who] = self.world.make_user(who).id
        return self.people[who]

    def connector(self) -> aiohttp.BaseConnector:
        """Connections of a client to this server, whatever the host."""
        context = ssl.create_default_context(cafile=str(_certificate()))
        context.check_hostname = False
        return aiohttp.TCPConnector(resolver=_ToThisMachine(self.port), ssl=context, force_close=True)

    # HTTP

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        host = request.host.partition(":")[0]
        if host == "gateway.discord.gg":
            return await self._gateway(request) if self.accepts_sessions else web.Response(status=503)
        if host == "cdn.discordapp.com":
            if request.path.endswith(".moved"):
                return web.Response(status=302, headers={"Location": "https://evil.example/dot.png"})
            blob = self.world.cdn.get(f"{_SIMULATED_CDN}{request.path}")
            return web.Response(status=404) if blob is None else web.Response(body=blob)
        if request.headers.get("Authorization") != f"Bot {TOKEN}" and "/interactions/" not in request.path:
            return _json({"code": 0, "message": "401: Unauthorized"}, 401)
        body, files = await _body(request)
        path = request.path.removeprefix("/api/v10")
        self.requests.append((request.method, path, body))
        if request.method == "POST" and path.endswith("/messages"):
            return await self._send(request, path, body, files)
        return self._simulated(request.method, path, body, files, dict(request.query))

    async def _send(self, request: web.Request, path: str, body: Any, files: list[Any]) -> web.Response:
        if self.faults and (failed := self.faults.pop(0)(body)) is not None:
            return failed
        nonce = body.get("nonce") if body.get("enforce_nonce") else None
        answer = self._sent.get(nonce) if nonce else None
        if answer is None:
            answer = self._simulated("POST", path, body, files, {})
            if answer.status == 200 and nonce:
                self._sent[nonce] = answer
        else:
            answer = web.Response(body=answer.body, headers={"Content-Type": "application/json"})
        if self._drops:
            self._drops -= 1
            assert request.transport is not None
            request.transport.abort()
        return answer

    def _simulated(self, method: str, path: str, body: Any, files: list[Any], query: dict[str, Any]) -> web.Response:
        try:
            result = router.dispatch(self.world, method, path, json=body, params=query, files=files)
        except router.RouteNotImplemented:
            raise
        except BackendError as error:
            return _json(error.to_json(), error.status)
        if path == "/oauth2/applications/@me":
            flags = discord.ApplicationFlags()
            flags.gateway_message_content_limited = self.approved.message_content
            flags.gateway_guild_members_limited = self.approved.members
            result["flags"] = flags.value
        return web.Response(status=204) if result is None else _json(result)

    # Gateway

    async def _gateway(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"op": 10, "d": {"heartbeat_interval": 41_250}})
        writing = asyncio.create_task(self._write(socket, waiting := asyncio.Queue()))
        async for message in socket:
            data = json.loads(message.data)
            if data["op"] == 1:
                await socket.send_json({"op": 11})
            elif data["op"] == 2:
                await self._identify(socket, waiting, data["d"])
            elif data["op"] == 6 and self.can_resume:
                for number in range(data["d"]["seq"], len(self.events)):
                    waiting.put_nowait(number)
                self._sockets[socket] = waiting
                self.event("RESUMED", {})
            elif data["op"] == 6:
                await socket.send_json({"op": 9, "d": False})
        self._sockets.pop(socket, None)
        writing.cancel()
        return socket

    async def _identify(self, socket: web.WebSocketResponse, waiting: Waiting, data: dict[str, Any]) -> None:
        self._intents = discord.Intents._from_value(data["intents"])
        if data["token"] != TOKEN:
            await socket.close(code=4004)
            return
        if simulated_intents.missing_privileged_intents(self._intents, self.approved):
            await socket.close(code=4014)
            return
        self.sessions += 1
        self._sockets[socket] = waiting
        ready = {
            "v": 10,
            "user": dict(serializers.user_payload(self.me)),
            "guilds": [{"id": str(one), "unavailable": True} for one in self.world.guilds],
            "session_id": f"session-{self.sessions}",
            "resume_gateway_url": "wss://gateway.discord.gg",
            "application": {"id": str(self.world.application_id), "flags": 0},
        }
        self.event("READY", ready)
        for guild in self.world.guilds.values():
            self.event("GUILD_CREATE", dict(serializers.guild_create_payload(self.world, guild)))

    def _emit(self, event: str, payload: Any) -> None:
        data = json.loads(json.dumps(payload))
        if event == "GUILD_CREATE":
            # Only servers that were unavailable before have this key.
            data.pop("unavailable")
        if "webhook_id" in data:
            data["author"].pop("bot")
        user = data.get("author", {}).get("id") or data.get("user_id")
        if event.startswith("MESSAGE_") and "guild_id" in data and user and "webhook_id" not in data:
            guild = self.world.guilds[int(data["guild_id"])]
            if int(user) in guild.members:
                data["member"] = dict(serializers.member_payload(self.world, guild, guild.members[int(user)]))
                if "author" in data:
                    del data["member"]["user"]
        self.event(event, data)

    def event(self, name: str, data: dict[str, Any]) -> None:
        """Send an event to the connected clients."""
        self.events.append((name, data))
        for waiting in self._sockets.values():
            waiting.put_nowait(len(self.events) - 1)

    async def _write(self, socket: web.WebSocketResponse, waiting: Waiting) -> None:
        while True:
            number = await waiting.get()
            name, data = self.events[number]
            needed = simulated_intents.required_intent(name, data)
            if (needed is None or getattr(self._intents, needed)) and not socket.closed:
                data = json.loads(json.dumps(data).replace(_SIMULATED_CDN, _CDN))
                if name == "GUILD_CREATE":
                    simulated_intents.prune_guild_create(data, self._intents, self.me.id)
                    for role in data["roles"]:
                        if role["managed"]:
                            role["tags"] = {"bot_id": str(self.me.id)}
                await socket.send_json({"op": 0, "t": name, "s": number + 1, "d": data})
            waiting.task_done()

    # OtherSide

    def channel_of(self, chat: str) -> int:
        """The id of the channel or thread of a chat; of `#general` without one."""
        return int(chat.rpartition(",")[2]) if chat else self.general.id

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
        channel = self.channel_of(chat)
        message = self.world.create_message(
            channel,
            self.user(who),
            f"<@{self.me.id}> {text}" if mention else text,
            reference={"channel_id": str(channel), "message_id": reply_to} if reply_to else None,
            attachments=self.world.store_attachments(channel, [file]) if file else None,
        )
        return str(message.id)

    async def edit(self, who: str, native_id: str, text: str) -> None:
        self.world.edit_message(self.general.id, int(native_id), {"content": text})

    async def delete(self, who: str, native_id: str) -> None:
        self.world.delete_message(self.general.id, int(native_id))

    async def react(self, who: str, native_id: str, emoji: str) -> None:
        self.world.add_reaction(self.general.id, int(native_id), emoji, self.user(who))

    async def press(self, who: str, native_id: str, label: str, *, chat: str = "") -> None:
        channel = self.channel_of(chat)
        message = self.world.get_message(channel, int(native_id))
        button = next(one for row in message.components for one in row["components"] if one["label"] == label)
        data = {"custom_id": button["custom_id"], "component_type": 2}
        record = self._interact(who, 3, channel, data, message=dict(serializers.message_payload(self.world, message)))
        record.source_message_id = message.id

    async def command(self, who: str, name: str, text: str) -> None:
        """Call a command of the menu."""
        command = self.world.find_command(name, None)
        assert command is not None, "the menu has no such command"
        options = [{"name": "text", "type": 3, "value": text}] if text else []
        self._interact(who, 2, self.general.id, {"id": command["id"], "name": name, "type": 1, "options": options})

    def _interact(self, who: str, kind: int, channel: int, data: dict[str, Any], **more: Any) -> Any:
        guild = self.world.get_channel(channel).guild_id
        facts = {"channel_id": channel, "guild_id": guild, "user_id": self.user(who)}
        record, payload = interactions.base_payload(self.world, type=kind, data=data, **facts)
        self.world.emit("INTERACTION_CREATE", payload | more)
        return record

    async def enter(self, who: str) -> None:
        self.world.add_member(self.guild.id, self.user(who), announce=True)

    async def leave(self, who: str) -> None:
        self.world.remove_member(self.guild.id, self.user(who))

    async def add_bot(self, who: str, *, may_read_audit_log: bool = True) -> str:
        self.world.subscribers.clear()
        guild = self.world.create_guild("work")
        channel = self.world.create_channel(guild.id, "talk")
        self.world.add_member(guild.id, self.user(who))
        if not may_read_audit_log:
            guild.members[self.me.id].role_ids.clear()
        self.world.record_audit_log(
            guild.id, discord.AuditLogAction.bot_add.value, target_id=self.me.id, user_id=self.user(who)
        )
        self.world.subscribers.append(self._emit)
        self.world.emit("GUILD_CREATE", serializers.guild_create_payload(self.world, guild))
        return str(channel.id)

    async def empower(self) -> None:
        """See OtherSide: the bot has the rights from the start."""

    async def promote(self, who: str, role: Role) -> None:
        user = self.user(who)
        for held in list(self.guild.members[user].role_ids):
            self.world.remove_member_role(self.guild.id, user, held)
        if role is Role.OWNER:
            self.world.edit_guild(self.guild.id, {"owner_id": user})
        elif role is not Role.MEMBER:
            made = self.world.create_role(self.guild.id, role.value, permissions=_PERMISSIONS[role].value)
            self.world.add_member_role(self.guild.id, user, made.id)

    async def repeat(self) -> None:
        name, data = next(one for one in reversed(self.events) if one[0] == "MESSAGE_CREATE")
        self.event(name, data)

    async def send_garbage(self) -> None:
        self.event("MESSAGE_CREATE", {"id": None, "channel_id": str(self.general.id)})

    async def disconnect(self) -> None:
        for socket, waiting in list(self._sockets.items()):
            await waiting.join()
            del self._sockets[socket]
            await socket.close(code=4000)

    async def fail_next(self, failure: Failure) -> None:
        if failure is Failure.DELIVERED_WITHOUT_ANSWER:
            self._drops += 1
            return
        self.faults.append(lambda body: _failed(failure, body))

    async def open_thread(self, who: str, text: str) -> str:
        thread = self.world.create_thread(self.general.id, text, self.user(who))
        self.world.create_message(thread.id, self.user(who), text)
        return f"{self.general.id},{thread.id}"

    async def shown(self, chat: str = "") -> list[Shown]:
        return [
            Shown(
                text=_rendered(one.content),
                native_id=str(one.id),
                buttons=tuple(button["label"] for row in one.components for button in row["components"]),
                reply_to=str(one.reference["message_id"]) if one.reference else "",
                files=tuple(self.world.cdn.get(file["url"]) or b"" for file in one.attachments),
            )
            for one in sorted(self.world.messages[self.channel_of(chat)].values(), key=lambda one: one.id)
            if one.author_id == self.me.id
        ]

    async def reactions(self, native_id: str) -> list[str]:
        message = self.world.get_message(self.general.id, int(native_id))
        return [one.emoji for one in message.reactions if self.me.id in one.user_ids]


def _failed(failure: Failure, body: dict[str, Any]) -> web.Response | None:
    """The answer to a send that fails."""
    match failure:
        case Failure.RATE_LIMITED:
            return rate_limited("user")
        case Failure.SERVER_ERROR:
            return web.Response(status=500, text="upstream connect error")
        case Failure.REMOVED:
            return _json({"code": 50001, "message": "Missing Access"}, 403)
        case Failure.NO_SUCH_CHAT:
            return _json({"code": 10003, "message": "Unknown Channel"}, 404)
        case Failure.REPLY_IS_GONE if "message_reference" in body:
            return _json({"code": 50035, "message": "Invalid Form Body"}, 400)
    # Discord shows markup that it cannot read as text.
    return None


def rate_limited(scope: str) -> web.Response:
    """The answer to one request too many: of the bot (`user`), of all in the channel (`shared`), or `global`."""
    answer = {"message": "You are being rate limited.", "retry_after": 7.0, "global": scope == "global"}
    return _json(answer, 429, {"Retry-After": "7", "Via": "1.1 google", "X-RateLimit-Scope": scope})


def _json(data: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    text = json.dumps(data).replace(_SIMULATED_CDN, _CDN)
    # discord.py reads JSON only without a charset.
    return web.Response(
        body=text.encode(), status=status, headers={"Content-Type": "application/json", **(headers or {})}
    )


async def _body(request: web.Request) -> tuple[Any, list[Any]]:
    """The JSON of a request, and its files as simcord expects them."""
    if not request.content_type.startswith("multipart/"):
        text = await request.text()
        return (json.loads(text) if text else None), []
    body, files = None, []
    async for part in await request.multipart():
        content = await part.read(decode=True)  # type: ignore[union-attr]
        if part.name == "payload_json":  # type: ignore[union-attr]
            body = json.loads(content)
        else:
            name = part.filename  # type: ignore[union-attr]
            files.append(SimpleNamespace(fp=io.BytesIO(content), filename=name, description=None))
    return body, files


def _rendered(text: str) -> str:
    """`text` as a client shows it, as far as tests need that: without escapes."""
    shown, index = "", 0
    while index < len(text):
        index += text[index] == "\\" and index + 1 < len(text) and not text[index + 1].isalnum()
        shown += text[index]
        index += 1
    return shown


@asynccontextmanager
async def a_discord_server(certificate: Path | None = None, port: int = 0) -> AsyncIterator[DiscordServer]:
    """A running server, until the end of the block. `certificate`: with its key next to it; None for one of its own."""
    server = DiscordServer()
    certificate = certificate or _certificate()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=context)
    await site.start()
    server.port = runner.addresses[0][1]
    try:
        yield server
    finally:
        for socket in list(server._sockets):
            await socket.close()
        await runner.cleanup()


@dataclass(frozen=True, slots=True)
class Redirection:
    """How an unmodified program reaches a server on this machine as Discord."""

    prefix: tuple[str, ...]
    """Command before the program's: it changes /etc/hosts in a mount namespace, which needs root."""
    environment: dict[str, str]


@asynccontextmanager
async def a_redirected_discord_server(folder: Path) -> AsyncIterator[tuple[DiscordServer, Redirection]]:
    """A server on port 443, and how programs reach it. Its files are in `folder`."""
    names = ("discord.com", "gateway.discord.gg", "cdn.discordapp.com")
    certificate, hosts = a_certificate(folder, "discord", *names), folder / "hosts"
    hosts.write_text(f"127.0.0.1 localhost {' '.join(names)}\n", encoding="utf-8")
    mount = ("unshare", "--mount", "sh", "-c", f'mount --bind {hosts} /etc/hosts && exec "$@"', "sh")
    async with a_discord_server(certificate, 443) as server:
        yield server, Redirection(mount, {"SSL_CERT_FILE": str(certificate)})
