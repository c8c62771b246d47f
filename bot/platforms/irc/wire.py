"""IRC protocol lines and the connection that carries them."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType

from bot.platforms.connection import CannotConnect
from config.sections.irc import IrcFloodSettings, IrcSettings
from services.clock import Clock, Deadlines

LINE_BYTES = 512
"""Bytes of a line with its end, as every server accepts; tags do not count."""
CLIENT_TAG_BYTES = 4096
"""Bytes of the tags that a client may send, with the `@` and the space."""
MOST_BYTES = 8191 + 4 * LINE_BYTES
"""Bytes of a received line: the maximum of tags, and room for servers with longer lines."""

_NO_TAGS: Mapping[str, str] = MappingProxyType({})
_UNESCAPED = {":": ";", "s": " ", "\\": "\\", "r": "\r", "n": "\n"}
_ESCAPES = str.maketrans({";": "\\:", " ": "\\s", "\\": "\\\\", "\r": "\\r", "\n": "\\n"})
_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)
_TAG = re.compile(r"\+?(?:[A-Za-z0-9.-]+/)?[A-Za-z0-9-]+")
_COMMAND = re.compile(r"[A-Za-z]+|[0-9]{3}")
_BREAKS = re.compile(r"[\x00\r\n]")


@dataclass(frozen=True, slots=True)
class Line:
    """One protocol line."""

    command: str
    """In upper case, or a numeric."""
    params: tuple[str, ...] = ()
    source: str = ""
    """The sender: `nick!user@host`, a server, or empty."""
    tags: Mapping[str, str] = field(default_factory=lambda: _NO_TAGS)

    @property
    def nick(self) -> str:
        """The nick or server in `source`."""
        return self.source.partition("!")[0].partition("@")[0]

    @property
    def last(self) -> str:
        """The last parameter; empty if absent."""
        return self.params[-1] if self.params else ""

    def param(self, place: int) -> str:
        """The parameter at index `place`; empty if absent."""
        return self.params[place] if place < len(self.params) else ""


def parse(raw: bytes) -> Line | None:
    """The line in `raw`, without its line end; None if it has no command. Invalid UTF-8 is decoded as Latin-1. Never
    raises."""
    raw = raw.lstrip(b" ")
    tags: Mapping[str, str] = _NO_TAGS
    if raw.startswith(b"@"):
        written, _, raw = raw[1:].partition(b" ")
        tags = _tags(written.decode("utf-8", "replace"))
    text = _decoded(raw).lstrip(" ")
    source = ""
    if text.startswith(":"):
        source, _, text = text[1:].partition(" ")
    head, colon, trailing = f" {text}".partition(" :")
    words = [word for word in head.split(" ") if word]
    if not words:
        return None
    params = [*words[1:], trailing] if colon else words[1:]
    return Line(words[0].upper(), tuple(params), source, tags)


def encode(command: str, *params: str, tags: Mapping[str, str] = _NO_TAGS) -> bytes:
    """The encoded line with its end. Raises ValueError for a line end or NUL anywhere; for an empty parameter, a space,
    or a leading colon before the last parameter; and for tags over the limit. The length of the rest is not checked."""
    if _COMMAND.fullmatch(command) is None:
        raise ValueError(f"{command!r} is no command")
    *middle, last = params or ("",)
    for param in middle:
        if not param or " " in param or param.startswith(":"):
            raise ValueError(f"{command}: {param!r} can only be the last parameter")
    if any(_BREAKS.search(param) for param in params):
        raise ValueError(f"{command}: a parameter holds a line end or NUL")
    text = " ".join([command, *middle, f":{last}"] if params else [command])
    return f"{_written(tags)}{text}\r\n".encode("utf-8", "replace")


def one_word(text: str) -> bool:
    """Whether `text` can be a parameter before the last one."""
    return bool(text) and not text.startswith(":") and re.search(r"[\x00\r\n ]", text) is None


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _tags(written: str) -> Mapping[str, str]:
    tags: dict[str, str] = {}
    for tag in written.split(";"):
        key, _, value = tag.partition("=")
        if key:
            tags[key] = _ESCAPE.sub(lambda found: _UNESCAPED.get(found[1], found[1]), value)
    return tags


def _written(tags: Mapping[str, str]) -> str:
    if not tags:
        return ""
    if any(_TAG.fullmatch(key) is None or "\0" in value for key, value in tags.items()):
        raise ValueError(f"tags that cannot be sent: {sorted(tags)}")
    text = ";".join(f"{key}={value.translate(_ESCAPES)}" if value else key for key, value in tags.items())
    text = f"@{text} "
    if len(text.encode("utf-8", "replace")) > CLIENT_TAG_BYTES:
        raise ValueError("the tags are too long")
    return text


CONNECT_SECONDS = 30.0
_GOODBYE_SECONDS = 2.0


class Pace:
    """Rate limit of sent lines: a burst, then one per interval; first come, first served."""

    def __init__(self, flood: IrcFloodSettings, clock: Clock) -> None:
        self._burst = flood.burst_lines
        self._seconds_per_line = flood.seconds_per_line
        self._clock = clock
        self._line = asyncio.Lock()
        self._free_at = float("-inf")
        """Time when a full burst is available again."""

    async def turn(self) -> None:
        """Wait until the next line may be written."""
        async with self._line:
            wait = self._wait()
            if wait > 0:
                await self._clock.sleep(wait)
            self._free_at = max(self._free_at, self._clock.monotonic()) + self._seconds_per_line

    def has_room(self) -> bool:
        """Whether a line may be written now, and another right after it."""
        return not self._line.locked() and self._wait() <= -self._seconds_per_line

    def _wait(self) -> float:
        return self._free_at - self._clock.monotonic() - (self._burst - 1) * self._seconds_per_line


class Wire:
    """An open connection."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, settings: IrcSettings, clock: Clock
    ) -> None:
        self.pace = Pace(settings.flood, clock)
        self._reader = reader
        self._writer = writer
        self._clock = clock
        self._broken = ""

    @classmethod
    async def open(cls, settings: IrcSettings, clock: Clock, deadlines: Deadlines) -> Wire:
        """A connection to the server in `settings`. Raises CannotConnect if it cannot be opened within
        CONNECT_SECONDS, or the certificate is not accepted."""
        deadline = clock.monotonic() + CONNECT_SECONDS
        try:
            context = _tls(settings) if settings.tls else None
            name = settings.host if settings.tls else None
            opening = asyncio.open_connection(
                settings.host, settings.port, ssl=context, server_hostname=name, limit=MOST_BYTES
            )
            reader, writer = await deadlines.run(opening, deadline)
        except TimeoutError as error:
            raise CannotConnect("the server did not answer in time") from error
        except ssl.SSLCertVerificationError as error:
            raise CannotConnect(f"the server's certificate is not accepted: {error.verify_message}") from error
        except (OSError, ValueError) as error:
            raise CannotConnect(f"{settings.host} port {settings.port}: {error}") from error
        return cls(reader, writer, settings, clock)

    async def lines(self) -> AsyncIterator[Line]:
        """Received lines; those over MOST_BYTES are skipped. PINGs are answered at once, before queued lines. Raises
        CannotConnect at the end."""
        is_skipping, last_error = False, ""
        while True:
            try:
                raw = await self._reader.readuntil(b"\n")
            except asyncio.LimitOverrunError as error:
                await self._reader.readexactly(error.consumed)
                is_skipping = True
                continue
            except asyncio.IncompleteReadError as error:
                raise CannotConnect(self._broken or last_error or "the server closed the connection") from error
            except OSError as error:
                raise CannotConnect(self._broken or last_error or str(error)) from error
            line = None if is_skipping else parse(raw.rstrip(b"\r\n"))
            is_skipping = False
            if line is None:
                continue
            if line.command == "PING":
                self.write(encode("PONG", line.last))
            elif line.command == "ERROR":
                last_error = f"the server says: {line.last}"
            yield line

    def write(self, *lines: bytes) -> None:
        """Write without rate limit. Lines to a lost connection are discarded."""
        if not self._writer.is_closing():
            self._writer.write(b"".join(lines))

    def abort(self, why: str) -> None:
        """Abort the connection without QUIT; `why` is the text of the CannotConnect that readers get."""
        self._broken = self._broken or why
        self._writer.transport.abort()

    async def close(self, goodbye: str, deadlines: Deadlines) -> None:
        """Send QUIT and close, within two seconds. Errors of the connection are ignored."""
        self.write(encode("QUIT", goodbye))
        with suppress(OSError, TimeoutError):
            self._writer.close()
            await deadlines.run(self._writer.wait_closed(), self._clock.monotonic() + _GOODBYE_SECONDS)
        self._writer.transport.abort()


def _tls(settings: IrcSettings) -> ssl.SSLContext:
    """The TLS context with the configured CA file and client certificate; `tls_verify` off disables all checks. Raises
    OSError for files that cannot be used."""
    context = ssl.create_default_context(cafile=str(settings.ca_file) if settings.ca_file else None)
    if not settings.tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if settings.client_certificate is not None:
        context.load_cert_chain(str(settings.client_certificate))
    return context
