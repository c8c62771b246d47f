"""One connection to a server: opened, read, kept alive, written to at the server's pace."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress

from bot.platforms.irc_wire import Line, LineSplitter, encode, parse
from config.irc import IrcFloodSettings, IrcSettings
from services.clock import Clock
from services.deadlines import Deadlines

CONNECT_SECONDS = 30.0
_GOODBYE_SECONDS = 2.0
_CHUNK_BYTES = 65_536


class ConnectionLost(Exception):
    """There is no connection, or no more; says why."""


class Pace:
    """Lets a burst of lines through after a silence, then one in so many seconds; first come, first served."""

    def __init__(self, flood: IrcFloodSettings, clock: Clock) -> None:
        self._burst = flood.burst_lines
        self._seconds_per_line = flood.seconds_per_line
        self._clock = clock
        self._line = asyncio.Lock()
        self._free_at = float("-inf")
        """When as many lines as there may be at once could be written again, counted back by one burst."""

    async def turn(self) -> None:
        """Return when the next line may be written."""
        async with self._line:
            wait = self._wait()
            if wait > 0:
                await self._clock.sleep(wait)
            self._free_at = max(self._free_at, self._clock.monotonic()) + self._seconds_per_line

    def has_room(self) -> bool:
        """Whether a line may be written now, and another one right after it."""
        return not self._line.locked() and self._wait() <= -self._seconds_per_line

    def _wait(self) -> float:
        return self._free_at - self._clock.monotonic() - (self._burst - 1) * self._seconds_per_line


class Connection:
    """An open connection."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, settings: IrcSettings, clock: Clock
    ) -> None:
        self.pace = Pace(settings.flood, clock)
        self._reader = reader
        self._writer = writer
        self._settings = settings
        self._clock = clock
        self._splitter = LineSplitter()
        self._chunks = 0
        self._broken = ""
        self._last_error = ""

    @classmethod
    async def open(cls, settings: IrcSettings, clock: Clock, deadlines: Deadlines) -> Connection:
        """A connection to the server of `settings`. Raises ConnectionLost."""
        deadline = clock.monotonic() + CONNECT_SECONDS
        try:
            context = _tls(settings) if settings.tls else None
            name = settings.host if settings.tls else None
            opening = asyncio.open_connection(settings.host, settings.port, ssl=context, server_hostname=name)
            reader, writer = await deadlines.run(opening, deadline)
        except TimeoutError as error:
            raise ConnectionLost("the server did not answer in time") from error
        except ssl.SSLCertVerificationError as error:
            raise ConnectionLost(f"the server's certificate is not accepted: {error.verify_message}") from error
        except (OSError, ValueError) as error:
            raise ConnectionLost(f"{settings.host} port {settings.port}: {error}") from error
        return cls(reader, writer, settings, clock)

    async def lines(self) -> AsyncIterator[Line]:
        """What the server says. PINGs are answered on the way, before all that waits to be written. Raises
        ConnectionLost at the end."""
        while True:
            try:
                data = await self._reader.read(_CHUNK_BYTES)
            except OSError as error:
                raise ConnectionLost(self._broken or self._last_error or str(error)) from error
            if not data:
                raise ConnectionLost(self._broken or self._last_error or "the server closed the connection")
            self._chunks += 1
            for raw in self._splitter.feed(data):
                line = parse(raw)
                if line is None:
                    continue
                if line.command == "PING":
                    self.write(encode("PONG", line.last))
                elif line.command == "ERROR":
                    self._last_error = f"the server says: {line.params[-1] if line.params else ''}"
                yield line

    def write(self, *lines: bytes) -> None:
        """Write at once, whatever the pace. What is written to a lost connection is gone."""
        if not self._writer.is_closing():
            self._writer.write(b"".join(lines))

    async def keep_alive(self) -> None:
        """Ask a silent server whether it is still there; end the connection when it does not answer."""
        while True:
            heard = self._chunks
            await self._clock.sleep(self._settings.ping_seconds)
            if self._chunks != heard:
                continue
            self.write(encode("PING", "still-there"))
            await self._clock.sleep(self._settings.answer_seconds)
            if self._chunks == heard:
                self.abort(
                    f"the server was silent for {self._settings.ping_seconds + self._settings.answer_seconds:g} s"
                )
                return

    def abort(self, why: str) -> None:
        """End it without a word."""
        self._broken = self._broken or why
        self._writer.transport.abort()

    async def close(self, goodbye: str, deadlines: Deadlines) -> None:
        """Say goodbye and end it, within two seconds."""
        self.write(encode("QUIT", goodbye))
        with suppress(OSError, TimeoutError):
            self._writer.close()
            await deadlines.run(self._writer.wait_closed(), self._clock.monotonic() + _GOODBYE_SECONDS)
        self._writer.transport.abort()


def _tls(settings: IrcSettings) -> ssl.SSLContext:
    """Raises OSError for files that cannot be used."""
    context = ssl.create_default_context(cafile=str(settings.ca_file) if settings.ca_file else None)
    if not settings.tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if settings.client_certificate is not None:
        context.load_cert_chain(str(settings.client_certificate))
    return context
