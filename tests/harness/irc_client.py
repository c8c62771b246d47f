"""An IRC user: a minimal client that shares no code with the bot's."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

PATIENCE_SECONDS = 60.0
_LINE = re.compile(rb"(?:@(\S*) +)?(?::(\S*) +)?(\S+)(.*)", re.DOTALL)


class Seen(NamedTuple):
    """A line from the server."""

    tags: dict[str, str]
    nick: str
    command: str
    params: list[str]

    @property
    def text(self) -> str:
        """The last parameter."""
        return self.params[-1] if self.params else ""


class Person:
    """A connected user, with all lines received so far."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, nick: str) -> None:
        self.nick = nick
        self.seen: list[Seen] = []
        self._reader = reader
        self._writer = writer
        self._more = asyncio.Condition()
        self._reading = asyncio.create_task(self._read())

    def send(self, line: str) -> None:
        """Send a raw line."""
        self._writer.write(line.encode() + b"\r\n")

    def say(self, target: str, text: str, tags: str = "") -> None:
        """Send the message `text` to `target`."""
        self.send(f"{f'@{tags} ' if tags else ''}PRIVMSG {target} :{text}")

    async def until(self, wanted: Callable[[Seen], bool], count: int = 1, after: int = 0) -> list[Seen]:
        """Wait until `count` lines after the first `after` ones match `wanted`, and return them."""
        async with asyncio.timeout(PATIENCE_SECONDS), self._more:
            while True:
                found = [one for one in self.seen[after:] if wanted(one)]
                if len(found) >= count:
                    return found
                if self._reading.done():
                    raise AssertionError(f"{self.nick} was cut off: {self.seen[-3:]}")
                await self._more.wait()

    async def hears(self, nick: str, count: int = 1, target: str = "", after: int = 0) -> list[str]:
        """Texts from `nick`, after there are `count`."""
        found = await self.until(lambda one: is_said(one, nick, target), count, after)
        return [one.text for one in found]

    def heard(self, nick: str, target: str = "", after: int = 0) -> list[str]:
        """Texts from `nick` so far."""
        return [one.text for one in self.seen[after:] if is_said(one, nick, target)]

    async def join(self, channel: str, key: str = "") -> None:
        """Join a channel and wait until it is confirmed."""
        after = len(self.seen)
        self.send(f"JOIN {channel} {key}".rstrip())
        await self.until(lambda one: one.command == "366" and one.params[1].lower() == channel.lower(), after=after)

    async def sees(self, channel: str, nick: str) -> None:
        """Wait until `nick` is in `channel`."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                after = len(self.seen)
                self.send(f"NAMES {channel}")
                await self.until(lambda one: one.command == "366", after=after)
                names = [one.text for one in self.seen[after:] if one.command == "353"]
                if nick in {word.lstrip("~&@%+") for line in names for word in line.split()}:
                    return
                await asyncio.sleep(0.05)

    async def settled(self) -> None:
        """Wait until the server has processed all lines and its answers have arrived."""
        token = f"t{len(self.seen)}"
        self.send(f"PING {token}")
        await self.until(lambda one: one.command == "PONG" and one.text == token)

    async def is_cut_off(self) -> None:
        """Wait until the server has closed the connection and all its lines have been processed."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.wait([self._reading])

    async def leave(self) -> None:
        """Quit."""
        self._reading.cancel()
        self._writer.close()
        with suppress(OSError, asyncio.CancelledError):
            await self._reading

    async def _read(self) -> None:
        with suppress(OSError):
            while raw := await self._reader.readline():
                seen = _seen(raw)
                if seen.command == "PING":
                    self.send(f"PONG :{seen.text}")
                async with self._more:
                    self.seen.append(seen)
                    self._more.notify_all()
        async with self._more:
            self._more.notify_all()


def is_said(one: Seen, nick: str, target: str = "") -> bool:
    """Whether the line is a message from `nick` to `target`."""
    return (
        one.command == "PRIVMSG"
        and one.nick.lower() == nick.lower()
        and (not target or one.params[0].lower() == target.lower())
    )


@asynccontextmanager
async def a_person(port: int, nick: str, *channels: str, caps: str = "") -> AsyncIterator[Person]:
    """A user with `nick` in `channels`, with the capabilities `caps` if any."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    person = Person(reader, writer, nick)
    try:
        if caps:
            person.send("CAP LS 302")
            person.send(f"CAP REQ :{caps}")
        person.send(f"NICK {nick}")
        person.send(f"USER {nick[:8].lower()} 0 * :{nick}")
        if caps:
            person.send("CAP END")
        await person.until(lambda one: one.command in ("376", "422"))
        for channel in channels:
            await person.join(channel)
        yield person
    finally:
        await person.leave()


def _seen(raw: bytes) -> Seen:
    found = _LINE.match(raw.rstrip(b"\r\n"))
    assert found is not None
    tags = dict(tag.partition("=")[::2] for tag in (found[1] or b"").decode().split(";") if tag)
    head, colon, trailing = found[4].decode("utf-8", "replace").partition(" :")
    params = head.split() + ([trailing] if colon else [])
    return Seen(tags, (found[2] or b"").decode().partition("!")[0], found[3].decode().upper(), params)
