"""A real Matrix server (Synapse) in a separate process on 127.0.0.1, its members, and a proxy that injects failures."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import itertools
import json
import os
import signal
import subprocess
import time
import urllib.request
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
from aiohttp import web

from tests.harness.foreign import python_of
from tests.harness.irc_servers import free_ports

PATIENCE_SECONDS = 60.0
PASSWORD = "password"
_SHARED_SECRET = "shared"
_CONFIG = """\
server_name: localhost
report_stats: false
pid_file: {folder}/pid
listeners:
- {{port: {port}, bind_addresses: [127.0.0.1], type: http, tls: false, resources: [{{names: [client, media]}}]}}
database: {{name: sqlite3, args: {{database: {folder}/synapse.db}}}}
media_store_path: {folder}/media
signing_key_path: {folder}/signing.key
log_config: {folder}/log.yaml
macaroon_secret_key: secret
form_secret: secret
registration_shared_secret: shared
trusted_key_servers: []
bcrypt_rounds: 4
presence: {{enabled: false}}
push: {{enabled: false}}
rc_message: &many {{per_second: 10000, burst_count: 10000}}
rc_registration: *many
rc_joins: {{local: *many, remote: *many}}
rc_joins_per_room: *many
rc_room_creation: *many
rc_invites: {{per_room: *many, per_user: *many, per_issuer: *many}}
rc_login: {{address: *many, account: *many, failed_attempts: *many}}
rc_key_requests: *many
"""
_LOG = """\
version: 1
handlers: {file: {class: logging.FileHandler, filename: FOLDER/synapse.log}}
root: {level: WARNING, handlers: [file]}
disable_existing_loggers: false
"""


@dataclass(frozen=True, slots=True)
class Account:
    """A user with a device."""

    user: str
    token: str
    device: str


@dataclass(slots=True)
class MatrixServer:
    """The server. Its calls block: it is started and stopped outside of an event loop, or in a thread."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    @property
    def url(self) -> str:
        """Base URL of the API."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and return when it answers. Skips the test if it is not installed."""
        python = python_of("synapse")
        if not (self.folder / "homeserver.yaml").exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / "homeserver.yaml").write_text(_CONFIG.format(folder=self.folder, port=self.port))
            (self.folder / "log.yaml").write_text(_LOG.replace("FOLDER", str(self.folder)))
            seed = b64encode(hashlib.sha256(b"test").digest()).decode().rstrip("=")
            (self.folder / "signing.key").write_text(f"ed25519 a_test {seed}\n")
        config = str(self.folder / "homeserver.yaml")
        with (self.folder / "output.log").open("ab") as log:
            self.process = subprocess.Popen(
                [str(python), "-m", "synapse.app.homeserver", "--config-path", config],
                cwd=self.folder,
                stdout=log,
                stderr=log,
                env=os.environ | {"SYNAPSE_CACHE_FACTOR": "1"},
            )
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/_matrix/client/versions", timeout=5):
                    return
            except OSError as problem:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise AssertionError((self.folder / "output.log").read_text()[-3000:]) from problem
                time.sleep(0.05)

    def stop(self) -> None:
        """Stop it, as an operator does."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(PATIENCE_SECONDS)
            self.process = None

    def register(self, name: str, *, display_name: str = "", admin: bool = False) -> Account:
        """A new user `@name:localhost` with a device and PASSWORD."""
        url = f"{self.url}/_synapse/admin/v1/register"
        with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:
            nonce = json.load(answer)["nonce"]
        text = f"{nonce}\0{name}\0{PASSWORD}\0{'admin' if admin else 'notadmin'}".encode()
        body = {
            "nonce": nonce,
            "username": name,
            "password": PASSWORD,
            "displayname": display_name or name,
            "admin": admin,
            "mac": hmac.new(_SHARED_SECRET.encode(), text, hashlib.sha1).hexdigest(),
        }
        with urllib.request.urlopen(url, json.dumps(body).encode(), timeout=PATIENCE_SECONDS) as answer:
            made = json.load(answer)
        return Account(made["user_id"], made["access_token"], made["device_id"])

    def register_bot(self) -> Account:
        """A new user for a bot, with the display name Robbie."""
        return self.register(f"bot{next(self._numbers)}", display_name="Robbie")


def a_matrix_server(folder: Path) -> MatrixServer:
    """A server with files in `folder`, not started yet."""
    return MatrixServer(folder, free_ports(1)[0])


class Api:
    """The client API, as one user."""

    def __init__(self, session: aiohttp.ClientSession, url: str, account: Account) -> None:
        self._session = session
        self._url = url
        self.account = account
        self._numbers = itertools.count(time.time_ns())

    async def __call__(self, method: str, path: str, body: object = None, **query: str) -> Any:
        """The answer to a request; `path` is below `/_matrix/client/v3/`. Raises AssertionError for an error."""
        headers = {"Authorization": f"Bearer {self.account.token}"}
        url = f"{self._url}/_matrix/client/v3/{path}"
        async with self._session.request(method, url, json=body, params=query, headers=headers) as answer:
            content = await answer.json()
            assert answer.status == 200, (answer.status, content)
            return content

    async def send(self, room: str, content: Mapping[str, object], kind: str = "m.room.message") -> str:
        """Send an event; returns its id."""
        path = f"rooms/{quote(room)}/send/{kind}/{next(self._numbers)}"
        return str((await self("PUT", path, content))["event_id"])

    async def text(self, room: str, text: str, **more: object) -> str:
        """Send a text message; returns its id."""
        return await self.send(room, {"msgtype": "m.text", "body": text, **more})

    async def create_room(self, *invited: str, **more: object) -> str:
        """Create a room; returns its id."""
        return str((await self("POST", "createRoom", {"invite": invited, **more}))["room_id"])

    async def upload(self, content: bytes, media_type: str) -> str:
        """Upload a file; returns its `mxc` URI."""
        headers = {"Authorization": f"Bearer {self.account.token}", "Content-Type": media_type}
        url = f"{self._url}/_matrix/media/v3/upload"
        async with self._session.post(url, data=content, headers=headers) as answer:
            return str((await answer.json())["content_uri"])

    async def download(self, mxc: str) -> bytes:
        """The content of a file."""
        headers = {"Authorization": f"Bearer {self.account.token}"}
        url = f"{self._url}/_matrix/client/v1/media/download/{mxc.removeprefix('mxc://')}"
        async with self._session.get(url, headers=headers) as answer:
            assert answer.status == 200
            return await answer.read()

    async def events(self, room: str) -> list[dict[str, Any]]:
        """The last 100 events of a room, oldest first."""
        page = await self("GET", f"rooms/{quote(room)}/messages", dir="b", limit="100")
        return list(reversed(page["chunk"]))


class Proxy:
    """Forwards requests to the server, except as told."""

    def __init__(self, target: str) -> None:
        self._target = target
        self.url = ""
        self.refusals: list[tuple[int, dict[str, object]]] = []
        """Status and answer for the next sends, which are not forwarded."""
        self.loses_next_answer = False
        """Break the connection after the next send has been forwarded, and when the client repeats it by itself."""
        self.is_away = False
        """Answer every request with status 502."""
        self.hides_sizes = False
        """Leave the size out of the answers."""
        self.rejects_token = ""
        """Access token that counts as invalid."""
        self.hides_keys = False
        """Leave messages to devices, such as keys, out of the answers to syncs, until `give_keys`."""
        self._hidden: list[object] = []
        self._position = ""
        self._lost_path = ""
        self._broken = asyncio.Event()
        self._breaks = 0
        self._replays: asyncio.Queue[bytes] = asyncio.Queue()
        self._last_events = b""
        self._session: aiohttp.ClientSession | None = None

    def break_sync(self) -> None:
        """Break the running sync, and the one with which the client repeats it by itself."""
        self._breaks = 1
        self._broken.set()

    def repeat_last_events(self) -> None:
        """Answer the running or next sync with the last answer that had events."""
        self._replays.put_nowait(self._last_events)

    def give_keys(self) -> None:
        """Answer the running or next sync with what was hidden."""
        answer = {"next_batch": self._position, "to_device": {"events": self._hidden}}
        self._replays.put_nowait(json.dumps(answer).encode())

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        if self.is_away:
            return web.Response(status=502)
        if self.rejects_token and self.rejects_token in request.headers.get("Authorization", ""):
            return web.json_response({"errcode": "M_UNKNOWN_TOKEN", "error": "logged out"}, status=401)
        if request.method == "PUT" and "/send/" in path:
            if self.refusals:
                status, answer = self.refusals.pop(0)
                return web.json_response(answer, status=status)
            if path == self._lost_path:
                self._lost_path = ""
                return self._cut(request)
        forwarded = asyncio.create_task(self._forward(request))
        if path.endswith("/sync"):
            return await self._sync(request, forwarded)
        answer = await forwarded
        if self.loses_next_answer and request.method == "PUT" and "/send/" in path:
            self.loses_next_answer, self._lost_path = False, path
            return self._cut(request)
        return answer

    async def _sync(self, request: web.Request, forwarded: asyncio.Task[web.Response]) -> web.StreamResponse:
        if self._breaks and not self._broken.is_set():
            self._breaks -= 1
            forwarded.cancel()
            return self._cut(request)
        broken, replay = asyncio.create_task(self._broken.wait()), asyncio.create_task(self._replays.get())
        try:
            await asyncio.wait([forwarded, broken, replay], return_when=asyncio.FIRST_COMPLETED)
        finally:
            broken.cancel()
            replay.cancel()
        if self._broken.is_set():
            self._broken.clear()
            forwarded.cancel()
            return self._cut(request)
        if replay.done() and not replay.cancelled():
            forwarded.cancel()
            return web.Response(body=replay.result(), content_type="application/json")
        answer = forwarded.result()
        if answer.status != 200 or not isinstance(answer.body, bytes):
            return answer
        content = json.loads(answer.body)
        self._position = content["next_batch"]
        if self.hides_keys and "to_device" in content:
            self._hidden += content.pop("to_device")["events"]
            return web.json_response(content)
        if "rooms" in content:
            self._last_events = answer.body
        return answer

    def _cut(self, request: web.Request) -> web.Response:
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    async def _forward(self, request: web.Request) -> web.Response:
        assert self._session is not None
        headers = {name: request.headers[name] for name in ("Authorization", "Content-Type") if name in request.headers}
        url = f"{self._target}{request.path_qs}"
        try:
            async with self._session.request(
                request.method, url, data=await request.read(), headers=headers, allow_redirects=False
            ) as answer:
                forwarded = web.Response(
                    body=await answer.read(), status=answer.status, content_type=answer.content_type
                )
                if self.hides_sizes:
                    forwarded.enable_chunked_encoding()
                return forwarded
        except aiohttp.ClientError:
            return web.Response(status=502)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Proxy]:
        """Serve on 127.0.0.1."""
        app = web.Application(client_max_size=100_000_000)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with aiohttp.ClientSession() as self._session:
            try:
                yield self
            finally:
                with suppress(TimeoutError):
                    await asyncio.wait_for(runner.cleanup(), 5)
