"""The environment of a daemon process: chat network, language model and effects of functions. It is in the test process
and survives crashes and restarts of the daemon."""

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
    """A message of a member."""

    id: str
    chat: str
    who: str
    text: str


class Sent(NamedTuple):
    """A message of the bot that arrived at the network."""

    key: str
    chat: str
    text: str


class Done(NamedTuple):
    """An effect of a function."""

    function: str
    item: str
    key: str


@dataclass(slots=True)
class Outside:
    """Record of all events in the environment."""

    home: Path
    nursery: Nursery
    sends_are_idempotent: bool = True
    store_url: str = ""
    """URL of the daemon's database; empty: a file in `home`."""
    can_edit: bool = False
    """The bot can edit and delete its messages, and turns show their status at once."""
    said: list[Said] = field(default_factory=list)
    acknowledged: set[str] = field(default_factory=set)
    arrived: list[Sent] = field(default_factory=list)
    """Every send, including repeated ones."""
    effects: list[Done] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    """Requests to the model, each with the number of results in it."""
    shown: dict[str, str] = field(default_factory=dict)
    """Texts that members see after all edits and deletions, by native id."""
    acting: asyncio.Event = field(default_factory=asyncio.Event)
    """While cleared, functions wait."""
    answering: asyncio.Event = field(default_factory=asyncio.Event)
    """While cleared, the model waits."""
    port: int = 0
    peer: Peer | None = None
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    acknowledging: asyncio.Condition = field(default_factory=asyncio.Condition)
    thinking: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the model has received a request."""

    @property
    def visible(self) -> list[Sent]:
        """Messages that members see: an idempotent network drops repeated sends."""
        return list(dict.fromkeys(self.arrived)) if self.sends_are_idempotent else self.arrived

    async def start(self, faults: str = "") -> int:
        """Start the daemon with fault points enabled. Returns its process id after it listens or has died."""
        self.ready.clear()
        self.ended.clear()
        plan = Plan(str(self.home), self.port, self.sends_are_idempotent, faults, self.store_url, self.can_edit)
        pid = self.nursery.start(plan)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await _first(self.ready, self.ended)
        return pid

    async def died(self, pid: int) -> int:
        """Wait for the end of the process; returns its exit status."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.ended.wait()
        return self.nursery.status(pid)

    async def stop(self, pid: int) -> int:
        """Stop the daemon as an operator does; returns its exit status."""
        os.kill(pid, signal.SIGTERM)
        return await self.died(pid)

    def deliver(self, *said: Said) -> None:
        """Deliver messages over the network; new ones are recorded."""
        for one in said:
            if one not in self.said:
                self.said.append(one)
            if self.peer is not None:
                self.peer.tell("deliver", **one._asdict())

    def reload(self) -> None:
        """Make the daemon reload its changed settings file."""
        assert self.peer is not None
        self.peer.tell("reload")

    def redeliver(self) -> None:
        """Deliver all unacknowledged messages and an acknowledged one again, as networks do after a lost connection."""
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
        """Wait for a request to the model."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.thinking.wait()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve the connection of a daemon process until it ends."""
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
                native_id = f"sent-{fields['key'] if self.sends_are_idempotent else len(self.arrived)}"
                self.shown.setdefault(native_id, fields["text"])
                return {"id": native_id}
            case "edit":
                self.shown[fields["id"]] = fields["text"]
            case "delete":
                self.shown.pop(fields["id"], None)
            case "effect":
                self.effects.append(Done(fields["function"], fields["item"], fields["key"]))
                await self.acting.wait()
            case "complete":
                self.thinking.set()
                await self.answering.wait()
                return answer_to_json(self._thought(fields["messages"]))
        return {}

    def _thought(self, messages: list[JsonObject]) -> ModelAnswer:
        """Answer of the model: it calls pay, keep and the missing exile if requested, and replies to everything."""
        last = max(place for place, message in enumerate(messages) if message["role"] == "user")
        text = messages[last]["content"].rpartition(SEPARATOR)[2]
        results = sum(message["role"] == "tool" for message in messages[last:])
        self.asked.append(f"{text} ({results})")
        function, _, item = text.partition(" ")
        if function in ("pay", "keep", "exile") and not results:
            return ModelAnswer(calls=(ToolCall("c1", function, {"item": item}),), finish="tool_calls")
        return ModelAnswer(text=f"You said {text}.", finish="stop")


@asynccontextmanager
async def an_outside(
    home: Path,
    nursery: Nursery,
    *,
    sends_are_idempotent: bool = True,
    store_url: str = "",
    can_edit: bool = False,
) -> AsyncIterator[Outside]:
    """An environment that listens for a daemon with its data in `home` and, if given, its database at `store_url`."""
    outside = Outside(home, nursery, sends_are_idempotent, store_url, can_edit)
    outside.acting.set()
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
