"""A day of group chat on Matrix, XMPP and IRC at once: real servers and clients, one daemon, a scripted model.

    python -m benchmarks.three_networks FILE.jsonl.gz [--lines 20000]

FILE has one message per line (`text`). Each network has a chat that gets every message. Every fiftieth message
addresses the bot, alternately with a command and with a question for the model. Each connection of the daemon breaks
after half of the messages. Prints lost, repeated and misplaced messages and answers per network, and the memory of the
daemon after each half. Exit status 1 if anything was lost, repeated or misplaced, or memory grew by more than 10 MB.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import aiohttp

from benchmarks.measuring import REPOSITORY, resident_megabytes
from benchmarks.stub import a_stub
from config.sections.irc import IrcFloodSettings
from tests.harness import irc_client, xmpp_client
from tests.harness.irc_daemon import rows
from tests.harness.irc_servers import IrcServer, an_irc_server
from tests.harness.matrix_servers import Account, Api, MatrixServer, a_matrix_server
from tests.harness.xmpp_servers import MUC, PASSWORD, Proxy, XmppServer, an_xmpp_server

_ADDRESSED_EVERY = 50
_LONGEST = 350
_MOST_GROWTH_MEGABYTES = 10.0
_PATIENCE_SECONDS = 600.0
_TALKERS = 3
_AT_ONCE = 20
_XMPP_ROOM = f"day@{MUC}"
_ASKED = re.compile(r"Rollcall: (?:calc (\d+)\*1|what is the weather in Place(\d+)\?)$")
_ANSWERED = re.compile(r"(\d+)\*1 = \1$|weather in Place(\d+): sunny$")
_KEPT = re.compile(r"(?:~(\d+)~|calc (\d+)\*1|Place(\d+)\?)$")
_ADDRESS = re.compile(rb"http://127\.0\.0\.1:(\d+)")
_FUNCTIONS = """\
from rollcall import MessageContext, tool_function


@tool_function(effect="read")
async def get_weather(context: MessageContext, city: str) -> str:
    \"\"\"Tell the weather of a place.\"\"\"
    return f"{city} has sun"
"""
_HISTORY = "SELECT text FROM history WHERE from_bot = 0 AND chat = '{chat}'"
_SETTINGS = """\
config_version: 1
home: {home}
logging: {{folder: {home}/logs, console: "off"}}
store: {{history_per_chat: 100000}}
limits: {{queue_per_chat: 100000}}
sources: {{python: [{home}/weather.py]}}
models: [{{name: main, model: m, base_url: "{model}", api_key: k}}]
chats: {{allow: ["*:*"]}}
platforms:
  console: {{enabled: "off"}}
  web: {{port: 0, page: false}}
"""


class Network(Protocol):
    """A chat of one network, with members and the bot."""

    name: str
    relay: Proxy
    """Between the daemon and the server."""
    catches_up: bool
    """Whether messages sent while the bot is disconnected arrive later."""

    def settings(self) -> str:
        """The network in the daemon's settings, as YAML."""

    async def sees_bot(self) -> None:
        """Return when the bot is in the chat."""

    async def say(self, texts: Sequence[str]) -> None:
        """Send messages of several members at once; returns when the server has them."""

    async def transcript(self) -> list[tuple[bool, str]]:
        """All messages of the chat in the order of the server, each with whether the bot sent it."""


@dataclass(slots=True)
class Irc:
    """A channel of InspIRCd."""

    relay: Proxy
    observer: irc_client.Person
    talkers: Sequence[irc_client.Person]
    name: str = "irc:main:#day"
    catches_up: bool = False

    @classmethod
    @asynccontextmanager
    async def open(cls, server: IrcServer) -> AsyncIterator[Irc]:
        """The channel with its members."""
        async with AsyncExitStack() as stack:
            relay = await stack.enter_async_context(_a_relay(server.port))
            names = ("observer", *(f"talker{number}" for number in range(_TALKERS)))
            entering = [irc_client.a_person(server.port, name, "#day") for name in names]
            observer, *talkers = [await stack.enter_async_context(one) for one in entering]
            yield cls(relay, observer, talkers)

    def settings(self) -> str:
        return (
            f"  irc:\n    - {{account: main, host: 127.0.0.1, port: {self.relay.port}, tls: false,\n"
            "       channels: [{name: '#day'}], flood: {seconds_per_line: 0}, reconnect: {first_delay_seconds: 0.2}}\n"
        )

    async def sees_bot(self) -> None:
        await self.observer.sees("#day", "Rollcall")

    async def say(self, texts: Sequence[str]) -> None:
        await asyncio.gather(*(self._say(one, texts[at::_TALKERS]) for at, one in enumerate(self.talkers)))
        await self.observer.settled()

    async def _say(self, talker: irc_client.Person, texts: Sequence[str]) -> None:
        for at in range(0, len(texts), _AT_ONCE):
            for text in texts[at : at + _AT_ONCE]:
                talker.say("#day", text)
            await talker.settled()

    async def transcript(self) -> list[tuple[bool, str]]:
        await self.observer.settled()
        return [(one.nick == "Rollcall", one.text) for one in self.observer.seen if one.command == "PRIVMSG"]


@dataclass(slots=True)
class Matrix:
    """A room of Synapse."""

    relay: Proxy
    bot: Account
    talkers: Sequence[Api]
    room: str
    catches_up: bool = True

    @classmethod
    @asynccontextmanager
    async def open(cls, server: MatrixServer) -> AsyncIterator[Matrix]:
        """A new room with its members; the bot is invited."""
        bot = await asyncio.to_thread(server.register_bot)
        name = bot.user[1:].partition(":")[0]
        accounts = [await asyncio.to_thread(server.register, f"{name}-talker{n}") for n in range(_TALKERS)]
        async with aiohttp.ClientSession() as session, _a_relay(server.port) as relay:
            talkers = [Api(session, server.url, account) for account in accounts]
            room = await talkers[0].create_room(bot.user, preset="public_chat")
            for talker in talkers[1:]:
                await talker("POST", f"join/{quote(room)}", {})
            yield cls(relay, bot, talkers, room)

    @property
    def name(self) -> str:
        return f"matrix:main:{self.room}"

    def settings(self) -> str:
        url = f"http://127.0.0.1:{self.relay.port}"
        return f"  matrix:\n    - {{homeserver: '{url}', user: '{self.bot.user}', access_token: {self.bot.token}}}\n"

    async def sees_bot(self) -> None:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while self.bot.user not in (await self._get("joined_members"))["joined"]:  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    async def say(self, texts: Sequence[str]) -> None:
        await asyncio.gather(*(self._say(one, texts[at::_TALKERS]) for at, one in enumerate(self.talkers)))

    async def _say(self, talker: Api, texts: Sequence[str]) -> None:
        for text in texts:
            await talker.text(self.room, text)

    async def transcript(self) -> list[tuple[bool, str]]:
        said: list[tuple[bool, str]] = []
        after: dict[str, str] = {}
        while (page := await self._get("messages", dir="f", limit="1000", **after))["chunk"]:
            said += [
                (event["sender"] == self.bot.user, event["content"]["body"])
                for event in page["chunk"]
                if event["type"] == "m.room.message"
            ]
            if "end" not in page:
                break
            after = {"from": page["end"]}
        return said

    async def _get(self, path: str, **query: str) -> Any:
        return await self.talkers[0]("GET", f"rooms/{quote(self.room)}/{path}", **query)


@dataclass(slots=True)
class Xmpp:
    """A room of Prosody."""

    relay: Proxy
    bot: str
    talkers: Sequence[xmpp_client.Person]
    room: str = _XMPP_ROOM
    catches_up: bool = True

    @classmethod
    @asynccontextmanager
    async def open(cls, server: XmppServer) -> AsyncIterator[Xmpp]:
        """The room with its members."""
        async with AsyncExitStack() as stack:
            relay = await stack.enter_async_context(_a_relay(server.port))
            # Each occupant of the room receives each message, which takes most of the time of this program.
            names = ("ann", "ben")
            entering = [xmpp_client.a_person(server, name, _XMPP_ROOM) for name in names]
            yield cls(relay, server.add_user("day"), [await stack.enter_async_context(one) for one in entering])

    @property
    def name(self) -> str:
        return f"xmpp:main:{self.room}"

    def settings(self) -> str:
        return (
            f"  xmpp:\n    - {{jid: {self.bot}, password: {PASSWORD}, host: 127.0.0.1, port: {self.relay.port},\n"
            f"       tls: none, rooms: [{{jid: '{self.room}'}}]}}\n"
        )

    async def sees_bot(self) -> None:
        """Does nothing: the daemon is ready when it is in its rooms."""

    async def say(self, texts: Sequence[str]) -> None:
        count = len(self.talkers)
        await asyncio.gather(*(self._say(one, texts[at::count]) for at, one in enumerate(self.talkers)))

    async def _say(self, talker: xmpp_client.Person, texts: Sequence[str]) -> None:
        for number, text in enumerate(texts, start=1):
            talker.message(self.room, text).send()
            if number % _AT_ONCE == 0 or number == len(texts):
                await talker.settled(self.room, _PATIENCE_SECONDS)

    async def transcript(self) -> list[tuple[bool, str]]:
        await self.talkers[0].settled(self.room, _PATIENCE_SECONDS)
        said = [one for one in self.talkers[0].seen if one["type"] == "groupchat" and one["body"]]
        return [(one["from"].resource == "Rollcall", one["body"]) for one in said]


@asynccontextmanager
async def _a_relay(port: int) -> AsyncIterator[Proxy]:
    relay = Proxy(port)
    await relay.open()
    try:
        yield relay
    finally:
        await relay.close()


@dataclass(frozen=True, slots=True)
class Faults:
    """Losses, duplicates and order violations of one chat; all empty and zero without errors."""

    lost: list[int] = field(default_factory=list)
    """Numbers of messages that are not in the history."""
    repeated: list[int] = field(default_factory=list)
    """Numbers of messages that are in the history more than once."""
    unanswered: list[int] = field(default_factory=list)
    """Numbers of addressed messages without an answer."""
    answered_again: list[int] = field(default_factory=list)
    """Numbers of addressed messages with several answers."""
    misplaced: int = 0
    """Answers that are not in the order of the questions."""


@dataclass(slots=True)
class Day:
    """The result."""

    faults: dict[str, Faults]
    """By network."""
    answers: dict[str, int]
    """Number of answers by network."""
    megabytes: list[float]
    """Resident memory of the daemon after each half."""


async def replayed(home: Path, networks: Sequence[Network], texts: Sequence[str]) -> Day:
    """Send `texts` to the chat of each network, with a daemon whose data is in `home`. Its connections break in the
    middle, while answers are being sent. Networks that catch up get some messages while it is disconnected."""
    half = len(texts) // 2
    back = half + len(texts) // 20
    with a_stub() as model:
        async with _a_daemon(home, model, networks) as daemon:
            await asyncio.gather(*(one.sees_bot() for one in networks))
            await asyncio.gather(*(one.say(texts[:half]) for one in networks))
            await daemon.has_stored(half)
            await asyncio.gather(*(daemon.is_cut_off(one, texts[half:back]) for one in networks))
            await daemon.has_stored(back)
            await daemon.settled()
            megabytes = [resident_megabytes(daemon.pid)]
            await asyncio.gather(*(one.say(texts[back:]) for one in networks))
            await daemon.has_stored(len(texts))
            await daemon.settled()
            megabytes.append(resident_megabytes(daemon.pid))
            said = {one.name: await one.transcript() for one in networks}
    kept = {name: [text for (text,) in rows(home, _HISTORY.format(chat=name))] for name in said}
    answers = {name: _numbers(_ANSWERED, (text for by_bot, text in said[name] if by_bot)) for name in said}
    return Day(
        {name: _faults(texts, _numbers(_KEPT, kept[name]), said[name], answers[name]) for name in said},
        {name: len(numbers) for name, numbers in answers.items()},
        megabytes,
    )


def _faults(texts: Sequence[str], kept: list[int], said: list[tuple[bool, str]], answers: list[int]) -> Faults:
    asked = _numbers(_ASKED, (text for by_bot, text in said if not by_bot))
    copies, replies = Counter(kept), Counter(answers)
    return Faults(
        [number for number in range(len(texts)) if not copies[number]],
        [number for number in range(len(texts)) if copies[number] > 1],
        [number for number in _numbers(_ASKED, texts) if not replies[number]],
        [number for number in replies if replies[number] > 1],
        sum(question != answer for question, answer in zip(asked, dict.fromkeys(answers), strict=False)),
    )


def _numbers(pattern: re.Pattern[str], texts: Iterable[str]) -> list[int]:
    found = (pattern.search(text) for text in texts)
    return [int(next(filter(None, one.groups()))) for one in found if one is not None]


@dataclass(frozen=True, slots=True)
class _Daemon:
    home: Path
    pid: int
    address: str
    networks: Sequence[Network]

    async def details(self) -> dict[str, str]:
        """Details of its readiness."""

        def ask() -> dict[str, str]:
            try:
                with urllib.request.urlopen(f"{self.address}/readyz", timeout=10) as response:
                    content = response.read()
            except urllib.error.HTTPError as not_ready:
                content = not_ready.read()
            details: dict[str, str] = json.loads(content)["details"]
            return details

        return await asyncio.to_thread(ask)

    async def is_connected(self, network: Network) -> None:
        """Wait until it is connected."""
        link = ".".join(network.name.split(":")[:2])
        while not (await self.details())[link].startswith("connected"):  # noqa: ASYNC110
            await asyncio.sleep(0.05)

    async def is_cut_off(self, network: Network, texts: Sequence[str]) -> None:
        """Break its connection; `texts` are sent meanwhile if the network can deliver them later, else afterwards."""
        connections = network.relay.connections
        network.relay.is_closed = network.catches_up
        network.relay.cut()
        if network.catches_up:
            await network.say(texts)
            network.relay.is_closed = False
        while network.relay.connections == connections:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        await self.is_connected(network)
        if not network.catches_up:
            await network.say(texts)

    async def has_stored(self, count: int) -> None:
        """Wait until it has stored `count` messages of each network."""
        for network in self.networks:
            query = _HISTORY.format(chat=network.name).replace("text", "count(*)", 1)
            while rows(self.home, query)[0][0] < count:  # noqa: ASYNC110
                await asyncio.sleep(0.1)

    async def settled(self) -> None:
        """Wait until no turn is waiting or running and all messages are sent."""
        while True:
            details = await self.details()
            quiet = details["turns_waiting"] == "0" and details["turns_running"] == "0"
            if quiet and not rows(self.home, "SELECT id FROM outbox WHERE state IN ('pending', 'sending')"):
                return
            await asyncio.sleep(0.1)


@asynccontextmanager
async def _a_daemon(home: Path, model: str, networks: Sequence[Network]) -> AsyncIterator[_Daemon]:
    """A new process, connected to all networks; no fork, because a fork shares memory."""
    settings = home / "bot.yaml"
    (home / "weather.py").write_text(_FUNCTIONS, encoding="utf-8")
    settings.write_text(_SETTINGS.format(home=home, model=model) + "".join(one.settings() for one in networks))
    command = [sys.executable, "-m", "bot", "run", "--config", str(settings), "--no-console"]
    process = await asyncio.create_subprocess_exec(*command, cwd=REPOSITORY, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        async with asyncio.timeout(_PATIENCE_SECONDS):
            address = _ADDRESS.search(await process.stdout.readline())
            if address is None:
                raise RuntimeError("the daemon did not start")
            daemon = _Daemon(home, process.pid, address[0].decode(), networks)
            for network in networks:
                await daemon.is_connected(network)
        yield daemon
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def numbered(lines: Iterable[str], addressed_every: int) -> list[str]:
    """The lines with their numbers. Some are replaced by a command or a question for the model, alternately."""
    texts = [f"{line} ~{number}~" for number, line in enumerate(lines)]
    for number in range(0, len(texts), addressed_every):
        asks_model = number // addressed_every % 2
        texts[number] = (
            f"Rollcall: what is the weather in Place{number}?" if asks_model else f"Rollcall: calc {number}*1"
        )
    return texts


def recorded(file: Path, count: int) -> Iterator[str]:
    """The first `count` lines of a recorded chat."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in islice(lines, count):
            yield re.sub(r"[\x00-\x1f]", " ", json.loads(line)["text"])[:_LONGEST].strip() or "…"


async def _measured(file: Path, count: int) -> int:
    texts = numbered(recorded(file, count), _ADDRESSED_EVERY)
    with tempfile.TemporaryDirectory(prefix="rollcall-benchmark-") as folder:
        home = Path(folder)
        for name in ("synapse", "prosody", "daemon"):
            (home / name).mkdir()
        synapse = a_matrix_server(home / "synapse")
        await asyncio.to_thread(synapse.start)
        prosody = an_xmpp_server(home / "prosody")
        began = time.monotonic()
        try:
            async with (
                an_irc_server("inspircd", home) as inspircd,
                Irc.open(inspircd) as irc,
                Matrix.open(synapse) as matrix,
                Xmpp.open(prosody) as xmpp,
            ):
                day = await replayed(home / "daemon", [irc, matrix, xmpp], texts)
        finally:
            synapse.stop()
            prosody.stop()
    seconds = round(time.monotonic() - began, 1)
    for name, wrong in day.faults.items():
        print(json.dumps({"chat": name, "messages": len(texts), "answers": day.answers[name], **asdict(wrong)}))
    first, second = day.megabytes
    flood = IrcFloodSettings()
    paced = max(0, day.answers[irc.name] - flood.burst_lines) * flood.seconds_per_line
    facts = {"megabytes": [round(first, 1), round(second, 1)], "growth_limit": _MOST_GROWTH_MEGABYTES}
    print(json.dumps({**facts, "seconds": seconds, "seconds_for_irc_answers_at_its_default_rate": paced}))
    holds = second - first <= _MOST_GROWTH_MEGABYTES and all(one == Faults() for one in day.faults.values())
    return 0 if holds else 1


def main() -> int:
    """Measure with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="messages as JSON lines, compressed with gzip")
    parser.add_argument("--lines", type=int, default=20_000, help="use at most so many")
    options = parser.parse_args()
    return asyncio.run(_measured(options.file, options.lines))


if __name__ == "__main__":
    raise SystemExit(main())
