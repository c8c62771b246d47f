"""A mail server on 127.0.0.1 that accepts messages or fails as configured."""

from __future__ import annotations

import asyncio
import base64
import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from types import TracebackType
from typing import Self, cast

from tests.fakes.listener import Listener
from tests.harness.irc_servers import a_certificate

HANG = "hang"
"""In `answers`: send no answer."""
DROP = "drop"
"""In `answers`: close the connection."""
BODY = "body"
"""Key of `answers`: during the message data; only with DROP and HANG."""
DOT = "dot"
"""Key of `answers`: after the message data."""


@dataclass(frozen=True)
class Delivered:
    """An accepted message."""

    sender: str
    to: tuple[str, ...]
    raw: bytes
    """After removal of doubled dots."""
    was_encrypted: bool
    user: str
    """The authenticated user, or empty."""

    @property
    def message(self) -> EmailMessage:
        """The parsed message."""
        return cast(EmailMessage, message_from_bytes(self.raw, policy=default))

    @property
    def text(self) -> str:
        """Its text."""
        body = self.message.get_body(("plain",))
        assert body is not None
        return str(body.get_content()).replace("\r\n", "\n")


@dataclass
class _Client:
    """State of one connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    is_encrypted: bool
    user: str = ""
    sender: str = ""
    to: list[str] = field(default_factory=list)


class SmtpServer:
    """Accepts mail. `answers` maps a command, such as `RCPT`, to a replacement for its positive answer: a line such as
    `550 no`, HANG or DROP. With `certificate` (and its key in the same folder) it offers STARTTLS, or uses TLS from the
    first byte if `is_tls`. With `users` (passwords by name), clients have to log in."""

    def __init__(
        self,
        *,
        answers: dict[str, str] | None = None,
        certificate: Path | None = None,
        is_tls: bool = False,
        users: dict[str, str] | None = None,
        ways: str = "PLAIN LOGIN",
        most_bytes: int = 0,
    ) -> None:
        self.answers = dict(answers or {})
        self.delivered: list[Delivered] = []
        self.heard: list[str] = []
        """All commands of all connections."""
        self.reached: dict[str, asyncio.Event] = {HANG: asyncio.Event()}
        """Set while it hangs."""
        self._users = users
        self._ways = ways
        self._most_bytes = most_bytes
        self._is_tls = is_tls
        self._context: ssl.SSLContext | None = None
        if certificate is not None:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(certificate, certificate.with_suffix(".key"))
        self._listener = Listener(self._serve)

    async def __aenter__(self) -> Self:
        await self._listener.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._listener.stop()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._listener.port

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = _Client(reader, writer, is_encrypted=False)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
                if self._is_tls:
                    await self._encrypt(client)
                await self._converse(client)
        finally:
            writer.close()

    async def _converse(self, client: _Client) -> None:
        if not await self._say(client, "CONNECT", "220 mail.test ready"):
            return
        while line := (await client.reader.readline()).decode().strip():
            self.heard.append(line)
            verb, _, rest = line.partition(" ")
            if not await self._answered(client, verb.upper(), rest):
                return

    async def _answered(self, client: _Client, verb: str, rest: str) -> bool:
        """Answer a command; returns whether the connection continues."""
        match verb:
            case "EHLO" | "HELO":
                return await self._say(client, verb, self._greeting(client))
            case "STARTTLS" if self._context is not None:
                goes_on = await self._say(client, verb, "220 go ahead")
                if goes_on and self.answers.get(verb) is None:
                    await self._encrypt(client)
                return goes_on
            case "AUTH" if self._users is not None:
                return await self._log_in(client, rest)
            case "MAIL" | "RCPT":
                return await self._say(client, verb, self._addressed(client, verb, _within(rest)))
            case "DATA":
                return await self._take(client)
            case "QUIT":
                await self._say(client, verb, "221 bye")
                return False
        return await self._say(client, verb, "502 not known here")

    def _addressed(self, client: _Client, verb: str, address: str) -> str:
        """Answer to an address of the envelope."""
        if self._users is not None and not client.user:
            return "530 log in first"
        if verb == "MAIL":
            client.sender, client.to = address, []
            return "250 ok"
        answer = self.answers.get(f"RCPT {address}", "250 ok")
        if answer.startswith("25"):
            client.to.append(address)
        return answer

    def _greeting(self, client: _Client) -> str:
        can = ["mail.test", "PIPELINING", "8BITMIME"]
        if self._most_bytes:
            can.append(f"SIZE {self._most_bytes}")
        if self._context is not None and not client.is_encrypted:
            can.append("STARTTLS")
        if self._users is not None and (client.is_encrypted or self._context is None):
            can.append(f"AUTH {self._ways}")
        return "\r\n".join([*(f"250-{one}" for one in can[:-1]), f"250 {can[-1]}"])

    async def _log_in(self, client: _Client, rest: str) -> bool:
        way, _, first = rest.partition(" ")
        if way == "PLAIN":
            _, user, password = _decoded(first).split("\0")
        else:
            user = _decoded(first)
            client.writer.write(b"334 UGFzc3dvcmQ6\r\n")
            password = _decoded((await client.reader.readline()).decode().strip())
        assert self._users is not None
        if self._users.get(user) != password:
            return await self._say(client, "AUTH", "535 wrong")
        client.user = user
        return await self._say(client, "AUTH", "235 welcome")

    async def _take(self, client: _Client) -> bool:
        if not client.to:
            return await self._say(client, "DATA", "503 nobody to send it to")
        if not await self._say(client, "DATA", "354 end with a dot") or "DATA" in self.answers:
            return True
        lines: list[bytes] = []
        while (line := await client.reader.readline()) != b".\r\n":
            if not line:
                return False
            lines.append(line.removeprefix(b"."))
            if self.answers.get(BODY) and not await self._say(client, BODY, ""):
                return False
        raw = b"".join(lines)
        answer = self.answers.get(DOT, "250 taken")
        if answer.startswith("250") or answer in (HANG, DROP):
            self.delivered.append(Delivered(client.sender, tuple(client.to), raw, client.is_encrypted, client.user))
        return await self._say(client, DOT, "250 taken")

    async def _say(self, client: _Client, verb: str, usual: str) -> bool:
        """Send the usual answer or its replacement; returns whether the connection continues."""
        answer = self.answers.get(verb, usual)
        if usual in (HANG, DROP):
            answer = usual
        if answer == HANG:
            self.reached[HANG].set()
            await client.reader.read()
            return False
        if answer == DROP:
            client.writer.transport.abort()
            return False
        client.writer.write(f"{answer}\r\n".encode())
        await client.writer.drain()
        return True

    async def _encrypt(self, client: _Client) -> None:
        assert self._context is not None
        await client.writer.start_tls(self._context)
        client.is_encrypted = True


def _within(rest: str) -> str:
    return rest.partition("<")[2].partition(">")[0]


def _decoded(text: str) -> str:
    return base64.b64decode(text).decode()


__all__ = ["BODY", "DOT", "DROP", "HANG", "Delivered", "SmtpServer", "a_certificate"]
