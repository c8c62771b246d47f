"""A real XMPP server, Prosody, in a separate process on 127.0.0.1, and a proxy that breaks connections to it."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.harness.irc_servers import free_ports

MUC = "muc.localhost"
PASSWORD = "a-password"
_CONFIG = """\
daemonize = false; run_as_root = true; pidfile = "{folder}/pid"; data_path = "{folder}/data"
plugin_paths = {{ "{folder}/plugins" }}
log = {{ info = "{folder}/log" }}
interfaces = {{ "127.0.0.1" }}; c2s_ports = {{ {port} }}; http_ports = {{ {http_port} }}; https_ports = {{ }}
modules_enabled = {{ "roster"; "saslauth"; "disco"; "ping"; "pep"; "mam"; "smacks"; "offline"; "http"; "tls"; }}
{tls}
authentication = "internal_plain"; storage = "internal"; archive_expires_after = "1d"
http_external_url = "http://127.0.0.1:{http_port}/"
VirtualHost "localhost"
Component "muc.localhost" "muc"
  modules_enabled = {{ "muc_mam"; "fail_next"; }}
  fail_next_folder = "{folder}"
  muc_log_by_default = true; muc_room_locking = false
  muc_room_default_persistent = true; muc_room_default_public_jids = true
Component "upload.localhost" "http_file_share"
  http_host = "127.0.0.1"
"""
_IN_CLEAR = """\
modules_disabled = { "s2s"; "tls"; }
c2s_require_encryption = false; allow_unencrypted_plain_auth = true
"""
_FAIL_NEXT = """\
local st = require "util.stanza";
local folder = module:get_option_string("fail_next_folder");
local split = require "util.jid".split;
module:hook("muc-occupant-groupchat", function (event)
  local name = folder.."/fail-"..split(event.room.jid);
  if event.stanza:get_child("body") and os.remove(name) then
    event.origin.send(st.error_reply(event.stanza, "wait", "internal-server-error"));
    return true;
  end
end, 100);
"""
_PATIENCE_SECONDS = 30.0


@dataclass(slots=True)
class XmppServer:
    """Prosody with rooms, archives and a file upload. It can be stopped and started again on the same ports."""

    folder: Path
    port: int
    http_port: int
    process: subprocess.Popen[bytes] | None = field(default=None)

    def start(self) -> None:
        """Start it and wait until it accepts connections."""
        self.process = subprocess.Popen(
            [_program(), "-F", "--config", str(self.folder / "prosody.cfg.lua")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < until:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            assert self.process.poll() is None, f"prosody ended: {self._log()}"
            time.sleep(0.02)
        raise TimeoutError(self._log())

    def stop(self) -> None:
        """Stop it with its usual shutdown."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()
            self.process = None

    def add_user(self, name: str) -> str:
        """Create an account with the password PASSWORD; returns its JID."""
        accounts = self.folder / "data" / "localhost" / "accounts"
        accounts.mkdir(parents=True, exist_ok=True)
        (accounts / f"{name}.dat").write_text(f'return {{ ["password"] = "{PASSWORD}"; }};\n', encoding="utf-8")
        return f"{name}@localhost"

    def fail_next(self, room: str) -> None:
        """Answer the next message to `room` with a temporary error."""
        (self.folder / f"fail-{room.partition('@')[0]}").touch()

    def _log(self) -> str:
        log = self.folder / "log"
        return log.read_text(errors="replace")[-2000:] if log.exists() else ""


def an_xmpp_server(folder: Path, certificate: Path | None = None) -> XmppServer:
    """A started server. `certificate`: it requires TLS, with this one and the key next to it. Skips the test if it is
    not installed."""
    if _program() == "":
        pytest.skip("there is no prosody")
    tls = _IN_CLEAR
    if certificate is not None:
        key = certificate.with_suffix(".key")
        tls = f'ssl = {{ certificate = "{certificate}"; key = "{key}"; }}; c2s_require_encryption = true'
    (folder / "plugins").mkdir()
    (folder / "plugins" / "mod_fail_next.lua").write_text(_FAIL_NEXT, encoding="utf-8")
    port, http_port = free_ports(2)
    config = _CONFIG.format(folder=folder, port=port, http_port=http_port, tls=tls)
    (folder / "prosody.cfg.lua").write_text(config, encoding="utf-8")
    server = XmppServer(folder, port, http_port)
    server.start()
    return server


def _program() -> str:
    return shutil.which("prosody", path=f"{os.environ.get('PATH', '')}:/usr/sbin") or ""


class Proxy:
    """Forwards connections to `server_port` of this machine, and breaks them."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._listening: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self.port = 0
        self.is_deaf = False
        """The client gets nothing more on the connections that are open."""
        self.cuts_at_echo = False
        """The connection breaks instead of delivering the next message, and its session cannot be resumed."""
        self.is_closed = False
        """New connections are broken."""
        self.connections = 0

    async def open(self) -> None:
        """Start listening on `port`."""
        self._listening = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._listening.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """End all connections."""
        assert self._listening is not None
        self._listening.close()
        self.cut()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def cut(self) -> None:
        """Break all connections."""
        for task in self._serving:
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        self.connections += 1
        other: asyncio.StreamWriter | None = None
        try:
            if self.is_closed:
                raise ConnectionAbortedError
            others, other = await asyncio.open_connection("127.0.0.1", self._server_port)
            both = (self._to_server(reader, other), self._to_client(others, writer))
            copying = [asyncio.create_task(one) for one in both]
            try:
                await asyncio.wait(copying, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in copying:
                    one.cancel()
                await asyncio.gather(*copying, return_exceptions=True)
        except (OSError, asyncio.CancelledError):
            """The connection is broken below."""
        finally:
            self.is_deaf = False
            self._serving.discard(task)
            writer.transport.abort()
            if other is not None:
                other.transport.abort()

    async def _to_server(self, client: asyncio.StreamReader, server: asyncio.StreamWriter) -> None:
        while data := await client.read(65_536):
            if self.cuts_at_echo and b"previd=" in data:
                self.cuts_at_echo = False
                data = re.sub(rb"(previd=.)[^\"']*", rb"\1gone", data)
            server.write(data)

    async def _to_client(self, server: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        while data := await server.read(65_536):
            if self.cuts_at_echo and b"<message" in data:
                return
            if not self.is_deaf:
                client.write(data)
