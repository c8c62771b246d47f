"""The world around a daemon process: its chat network, its language model, and what its functions do. All of it is
kept here, outside, through every crash and restart."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from function_calls.rounds.conversation import SEPARATOR
from services.llm.model import ModelAnswer, ToolCall, answer_to_json
from services.refs import JsonObject
from tests.harness.daemon_process import Plan
from tests.harness.nursery import Nursery
from tests.harness.wire import Peer

PATIENCE_SECONDS = 60.0


class Said(NamedTuple):
    """One message of a member."""

    id: str
    chat: str
    who: str
    text: str


class Sent(NamedTuple):
    """One message of the bot's that arrived at the network."""

    key: str
    chat: str
    text: str


class Done(NamedTuple):
    """One thing that a function did."""

    function: str
    item: str
    key: str


@dataclass(slots=True)
class Outside:
    """What happened, as the world saw it."""

    home: Path
    nursery: Nursery
    sends_are_idempotent: bool = True
    store_url: str = ""
    """Where the daemon's database is; empty: a file in `home`."""
    said: list[Said] = field(default_factory=list)
    acknowledged: set[str] = field(default_factory=set)
    arrived: list[Sent] = field(default_factory=list)
    """Every send, repeated ones too."""
    effects: list[Done] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    """What the model was asked, each with the number of results it was shown."""
    answering: asyncio.Event = field(default_factory=asyncio.Event)
    """Cleared: the model takes its time until it is set."""
    port: int = 0
    peer: Peer | None = None
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    acknowledging: asyncio.Condition = field(default_factory=asyncio.Condition)
    thinking: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the model was asked."""

    @property
    def visible(self) -> list[Sent]:
        """What members see: an idempotent network drops what it has."""
        return list(dict.fromkeys(self.arrived)) if self.sends_are_idempotent else self.arrived

    async def start(self, faults: str = "") -> int:
        """Start the daemon, with fault points armed; its process id, as soon as it listens or has died."""
        self.ready.clear()
        self.ended.clear()
        pid = self.nursery.start(Plan(str(self.home), self.port, self.sends_are_idempotent, faults, self.store_url))
        async with asyncio.timeout(PATIENCE_SECONDS):
            await _first(self.ready, self.ended)
        return pid

    async def died(self, pid: int) -> int:
        """Wait for the end of the process; its status."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.ended.wait()
        return self.nursery.status(pid)

    async def stop(self, pid: int) -> int:
        """End the daemon as an operator does; its status."""
        os.kill(pid, signal.SIGTERM)
        return await self.died(pid)

    def deliver(self, *said: Said) -> None:
        """The network hands over messages; those that are new here are remembered."""
        for one in said:
            if one not in self.said:
                self.said.append(one)
            if self.peer is not None:
                self.peer.tell("deliver", **one._asdict())

    def reload(self) -> None:
        """Other settings are in the file, and the daemon reads it."""
        assert self.peer is not None
        self.peer.tell("reload")

    def redeliver(self) -> None:
        """As networks do after a lost connection: all that was not acknowledged, and one that was."""
        missing = [one for one in self.said if one.id not in self.acknowledged]
        known = [one for one in self.said if one.id in self.acknowledged]
        self.deliver(*known[-1:], *missing)

    async def settled(self) -> None:
        """Wait until everything is acknowledged, answered and sent."""
        assert self.peer is not None
        async with asyncio.timeout(PATIENCE_SECONDS):
            async with self.acknowledging:
                await self.acknowledging.wait_for(lambda: self.acknowledged >= {one.id for one in self.said})
            await self.peer.begin("settle")

    async def is_asked(self) -> None:
        """Wait until the model is asked something."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.thinking.wait()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A daemon process is there, until it ends."""
        self.peer = Peer(reader, writer)
        try:
            await self.peer.run(self._handle)
        finally:
            self.peer.close()
            self.peer = None
            self.ended.set()

    async def _handle(self, name: str, fields: JsonObject) -> JsonObject:
        match name:
            case "ready":
                self.ready.set()
            case "acknowledged":
                async with self.acknowledging:
                    self.acknowledged.add(fields["id"])
                    self.acknowledging.notify_all()
            case "send":
                self.arrived.append(Sent(fields["key"], fields["chat"], fields["text"]))
                return {"id": f"sent-{fields['key']}"}
            case "effect":
                self.effects.append(Done(fields["function"], fields["item"], fields["key"]))
            case "complete":
                self.thinking.set()
                await self.answering.wait()
                return answer_to_json(self._thought(fields["messages"]))
        return {}

    def _thought(self, messages: list[JsonObject]) -> ModelAnswer:
        """The model: it pays and keeps when it is asked to, and has a word for everything."""
        last = max(place for place, message in enumerate(messages) if message["role"] == "user")
        text = messages[last]["content"].rpartition(SEPARATOR)[2]
        results = sum(message["role"] == "tool" for message in messages[last:])
        self.asked.append(f"{text} ({results})")
        function, _, item = text.partition(" ")
        if function in ("pay", "keep") and not results:
            return ModelAnswer(calls=(ToolCall("c1", function, {"item": item}),), finish="tool_calls")
        return ModelAnswer(text=f"You said {text}.", finish="stop")


@asynccontextmanager
async def an_outside(
    home: Path, nursery: Nursery, *, sends_are_idempotent: bool = True, store_url: str = ""
) -> AsyncIterator[Outside]:
    """The world, listening for a daemon whose data are in `home`, and its database at `store_url` where it is given."""
    outside = Outside(home, nursery, sends_are_idempotent, store_url)
    outside.answering.set()
    server = await asyncio.start_server(outside.connected, "127.0.0.1", 0)
    outside.port = server.sockets[0].getsockname()[1]
    try:
        yield outside
    finally:
        server.close()
        await server.wait_closed()


async def _first(*events: asyncio.Event) -> None:
    waiting = [asyncio.create_task(event.wait()) for event in events]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
