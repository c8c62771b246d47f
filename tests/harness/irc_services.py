"""IRC services for accounts: a server linked to a real InspIRCd."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tests.harness.irc_servers import PATIENCE_SECONDS, IrcServer

_ID = "00S"


class Services:
    """The services' end of the server link."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.people: dict[str, str] = {}
        """User ids of the network, by nick."""
        self.proofs: list[str] = []
        """Accounts and passwords that users have sent."""
        self.linked = asyncio.Event()
        self.log: list[str] = []
        self._reader = reader
        self._writer = writer

    def send(self, line: str) -> None:
        """Send a raw line."""
        self._writer.write(f"{line}\r\n".encode())

    def gives_account(self, nick: str, account: str) -> None:
        """Report that `nick` is logged in to `account`."""
        self.send(f":{_ID} METADATA {self.people[nick]} accountname :{account}")

    async def run(self) -> None:
        """Introduce the server and process the lines of the other one."""
        self.send("CAPAB START 1205")
        self.send("CAPAB END")
        with suppress(OSError):
            while raw := await self._reader.readline():
                line = raw.decode("utf-8", "replace").rstrip("\r\n")
                self.log.append(line)
                self._follow(line)

    def _follow(self, line: str) -> None:
        words = line.split(" ")
        if line == "CAPAB END":
            self.send(f"SERVER services.test link 0 {_ID} :Services")
        elif words[0] == "SERVER":
            self.send(f":{_ID} BURST {int(time.time())}")
            self.send(f":{_ID} ENDBURST")
        elif len(words) > 1 and words[1] == "ENDBURST":
            self.linked.set()
        elif len(words) > 4 and words[1] == "UID":
            self.people[words[4]] = words[2]
        elif len(words) > 1 and words[1] == "PING":
            self.send(f":{_ID} PONG {_ID} {words[2]}")
        elif "SASL" in words:
            self._sasl(words)

    def _sasl(self, words: list[str]) -> None:
        """`:SID ENCAP * SASL user * KIND data…`"""
        at = words.index("SASL")
        user, _, kind, *data = words[at + 1 :]
        if kind == "S":
            self.send(f":{_ID} ENCAP {user[:3]} SASL {_ID}AAAAAA {user} C +")
        elif kind == "C":
            _, account, password = base64.b64decode(data[0].lstrip(":")).decode().split("\0")
            self.proofs.append(f"{account} {password}")
            self.send(f":{_ID} METADATA {user} accountname :{account}")
            self.send(f":{_ID} ENCAP {user[:3]} SASL {_ID}AAAAAA {user} D S")


@asynccontextmanager
async def services(server: IrcServer) -> AsyncIterator[Services]:
    """Services linked to `server`, which is an InspIRCd."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.link_port)
    found = Services(reader, writer)
    running = asyncio.create_task(found.run())
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await found.linked.wait()
        yield found
    finally:
        running.cancel()
        writer.close()
        await asyncio.gather(running, return_exceptions=True)
