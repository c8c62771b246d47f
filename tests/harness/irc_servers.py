"""Real IRC servers, each in a separate process on 127.0.0.1."""

from __future__ import annotations

import asyncio
import getpass
import grp
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from config.sections.irc import IrcSettings
from tests.harness.real_daemon import FAKETIME

PATIENCE_SECONDS = 60.0
# InspIRCd completes registrations once per second of its clock, which runs ten times as fast here.
_FAST_CLOCK = {"LD_PRELOAD": str(FAKETIME), "FAKETIME": "+0 x10"} if FAKETIME else {}
_INSPIRCD = """\
<config format="xml">
<server name="irc.test" description="test" network="TestNet" id="00A">
<admin name="a" nick="a" email="a@irc.test">
<bind address="127.0.0.1" port="{port}" type="clients">
{tls}
<connect name="main" allow="*" maxchans="100" timeout="600" pingfreq="3600" hardsendq="8388608" softsendq="8388608"
 recvq="1048576" localmax="500" globalmax="500" threshold="100000" commandrate="1000000" fakelag="no"
 resolvehostnames="no" {password}>
<performance softlimit="1000" somaxconn="128" quietbursts="yes">
<security hidesplits="no" hidebans="no" maxtargets="20">
<options prefixquit="" cyclehostsfromuser="no" syntaxhints="no" defaultmodes="not">
<path configdir="{folder}" datadir="{folder}" logdir="{folder}" runtimedir="{folder}">
<pid file="{folder}/pid">
<log method="file" level="default" type="*" target="{folder}/server.log">
<cidr ipv4clone="32" ipv6clone="128">
<module name="cap"><module name="ircv3"><module name="ircv3_accounttag"><module name="ircv3_batch">
<module name="ircv3_ctctags"><module name="ircv3_echomessage"><module name="ircv3_labeledresponse">
<module name="ircv3_msgid"><module name="ircv3_servertime"><module name="botmode"><module name="namesx">
<module name="customprefix"><module name="services_account"><module name="chanhistory"><module name="sha256">
<module name="chghost"><module name="banredirect">
<customprefix name="founder" letter="q" prefix="~" rank="50000" ranktoset="50000">
<chanhistory bots="yes" maxduration="4w" maxlines="500" prefixmsg="no">
<module name="spanningtree">
<bind address="127.0.0.1" port="{link_port}" type="servers">
<link name="services.test" ipaddr="127.0.0.1" port="{link_port}" allowmask="127.0.0.1" sendpass="link" recvpass="link">
<uline server="services.test" silent="yes">
<sasl target="services.test">
<module name="sasl">
"""
_INSPIRCD_TLS = """\
<module name="ssl_gnutls">
<sslprofile name="tls" provider="gnutls" certfile="{folder}/server.pem" keyfile="{folder}/server.key">
<bind address="127.0.0.1" port="{tls_port}" type="clients" sslprofile="tls">
"""
_NGIRCD = """\
[Global]
Name = irc.test
Info = test
Listen = 127.0.0.1
Ports = {port}
ServerUID = {user}
ServerGID = {group}
MotdPhrase = "hello"
{password}
[Limits]
MaxConnections = 500
MaxConnectionsIP = 0
MaxJoins = 0
MaxNickLength = 20
MaxPenaltyTime = 0
PingTimeout = 120
PongTimeout = 20
[Options]
DNS = no
Ident = no
PAM = no
SyslogFacility = local1
"""


_SECONDS_BETWEEN_STARTS = 1.5


@dataclass(slots=True)
class IrcServer:
    """A server that can be stopped and started again on the same port."""

    kind: str
    folder: Path
    port: int
    tls_port: int = 0
    link_port: int = 0
    password: str = ""
    process: asyncio.subprocess.Process | None = field(default=None)
    started_at: float = -_SECONDS_BETWEEN_STARTS
    """On `time.monotonic()`."""

    @property
    def keeps_ids(self) -> bool:
        """Whether it assigns ids to messages and echoes them."""
        return self.kind == "inspircd"

    async def start(self) -> None:
        """Start it and wait until it accepts connections."""
        # InspIRCd's ids of messages contain the second of its start, so two starts in one second repeat them.
        await asyncio.sleep(max(0.0, self.started_at + _SECONDS_BETWEEN_STARTS - time.monotonic()))
        self.started_at = time.monotonic()
        self.process = await asyncio.create_subprocess_exec(
            *self._command(),
            cwd=self.folder,
            env={**os.environ, **(_FAST_CLOCK if self.kind == "inspircd" else {})},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                with suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                    writer.close()
                    return
                assert self.process.returncode is None, (
                    f"{self.kind} ended with {self.process.returncode}: {self._log()}"
                )
                await asyncio.sleep(0.02)

    async def kill(self) -> None:
        """Kill it, as a power cut would."""
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(signal.SIGKILL)
            await self.process.wait()
        self.process = None

    def _command(self) -> list[str]:
        if self.kind == "inspircd":
            config = self.folder / "inspircd.conf"
            password = f'password="{self.password}"' if self.password else ""
            tls = _INSPIRCD_TLS.format(folder=self.folder, tls_port=self.tls_port) if self.tls_port else ""
            config.write_text(
                _INSPIRCD.format(
                    port=self.port, link_port=self.link_port, folder=self.folder, password=password, tls=tls
                )
            )
            return [_program(self.kind) or self.kind, "--runasroot", "--nofork", f"--config={config}"]
        config = self.folder / "ngircd.conf"
        password = f"Password = {self.password}" if self.password else ""
        group = grp.getgrgid(os.getgid()).gr_name
        config.write_text(_NGIRCD.format(port=self.port, user=getpass.getuser(), group=group, password=password))
        return [_program(self.kind) or self.kind, "-n", "-f", str(config)]

    def _log(self) -> str:
        log = self.folder / "server.log"
        return log.read_text(errors="replace")[-2000:] if log.exists() else ""


@asynccontextmanager
async def an_irc_server(kind: str, folder: Path, *, tls: bool = False, password: str = "") -> AsyncIterator[IrcServer]:
    """A server of `kind`, `inspircd` or `ngircd`. Skips the test if it is not installed."""
    if _program(kind) is None:
        pytest.skip(f"there is no {kind}")
    folder = folder / kind
    folder.mkdir(parents=True)
    ports = free_ports(3)
    server = IrcServer(kind, folder, ports[0], ports[1] if tls else 0, ports[2], password)
    if tls:
        a_certificate(folder, "server")
    await server.start()
    try:
        yield server
    finally:
        await server.kill()


def irc_settings(server: IrcServer, **more: object) -> IrcSettings:
    """The bot's settings for `server`: in #family, without rate limits."""
    given = {
        "account": "test",
        "host": "127.0.0.1",
        "port": server.port,
        "tls": False,
        "channels": [{"name": "#family"}],
        "flood": {"seconds_per_line": 0},
        "reconnect": {"first_delay_seconds": 0.1, "longest_delay_seconds": 0.5},
    }
    return IrcSettings.model_validate({**given, **more})


def _program(kind: str) -> str | None:
    """Path of the program; servers may be in /usr/sbin, which is not in every PATH."""
    return shutil.which(kind, path=f"{os.environ.get('PATH', '')}:/usr/sbin")


def a_certificate(folder: Path, name: str, *hosts: str) -> Path:
    """Create a self-signed certificate for 127.0.0.1, localhost and `hosts`, as NAME.pem and NAME.key. Returns the path
    of the former."""
    names = ",".join(["subjectAltName=IP:127.0.0.1", *(f"DNS:{host}" for host in ("localhost", *hosts))])
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-keyout", f"{folder}/{name}.key", "-out", f"{folder}/{name}.pem", "-days", "2"),
            *("-subj", "/CN=127.0.0.1", "-addext", names),
        ],
        check=True,
        capture_output=True,
        timeout=60,
    )
    return folder / f"{name}.pem"


def free_ports(count: int) -> list[int]:
    """Free ports of 127.0.0.1."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
