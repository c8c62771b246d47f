"""Black-box audit of a daemon that is stopped at random under load, with default settings on SQLite.

    python -m tests.harness.random_ends [--ends 500] [--seed 1]

A client posts commands, sentences for a model, answers to questions and reminders over the HTTP platform while the
daemon is killed, terminated, suspended and restarted, also while it starts. A server counts the effects of a `once`
function. Prints one line of JSON with the counts. Exit status 1 if a message was lost, duplicated, or given up without
a report.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import json
import os
import random
import re
import signal
import socket
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.conftest import REPOSITORY

TOKEN = "a-token-for-the-tests"
GROUPS = tuple(f"group{number}" for number in range(12))
START_SECONDS = 30.0
SETTLE_SECONDS = 120.0
SETTINGS = """\
home: {home}
logging: {{folder: {home}/logs, console: "off"}}
models: [{{name: main, model: m, base_url: "http://127.0.0.1:{model}/v1", api_key: k}}]
chats: {{allow: ["http:*"]}}
reminders: {{most_per_member: 1000}}
platforms:
  console: {{enabled: "off"}}
  web: {{port: {port}}}
  http: {{enabled: true, token: {token}}}
sources:
  python: [{home}/functions]
"""
FUNCTIONS = '''\
import asyncio
from pydantic import BaseModel, Field
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function


class Item(BaseModel):
    item: str = Field(description="The thing")


async def spied(function: str, item: str, key: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", {spy})
    writer.write(f"{{function}} {{item}} {{key}}\\n".encode())
    await reader.readline()
    writer.close()


@tool_function(commands=["pay"], effect="once")
async def pay(context: MessageContext, args: Item, *, call: Call) -> str:
    """Pay for something."""
    await spied("pay", args.item, call.key)
    return f"Paid for {{args.item}}."


@tool_function(commands=["keep"], effect="idempotent")
async def keep(context: MessageContext, args: Item, *, call: Call) -> str:
    """Keep something."""
    await spied("keep", args.item, call.key)
    return f"Kept {{args.item}}."
'''
ITEM = re.compile(r"\bi\d+\b")
PAYING = ("pay", "model", "answer")
Findings = dict[str, list[str]]
UNKNOWN = re.compile(r"don't know|can't tell|cannot tell|not known|unknown", re.IGNORECASE)


@dataclass(slots=True)
class Message:
    """A message of the client, and all its answers."""

    id: str
    chat: str
    kind: str
    item: str
    text: str
    accepted: bool = False


class Audit:
    """The client's record of messages, events and effects."""

    def __init__(self) -> None:
        self.messages: dict[str, Message] = {}
        self.events: dict[str, set[str]] = collections.defaultdict(set)
        self.texts: dict[str, list[str]] = collections.defaultdict(list)
        self.effects: list[tuple[str, str, str]] = []

    def saw(self, chat: str, event: dict[str, Any]) -> None:
        """Record an event of the stream, once per cursor."""
        if event["cursor"] not in self.events[chat]:
            self.events[chat].add(event["cursor"])
            if event["type"] == "message":
                self.texts[chat].append(event["text"])

    def findings(self) -> Findings:
        """All violations, by kind."""
        found: Findings = {"lost": [], "doubled": [], "silent": [], "wrong": []}
        paid = Counter(item for function, item, _ in self.effects if function == "pay")
        found["doubled"] += [f"{item} was paid {count} times" for item, count in paid.items() if count > 1]
        keys = collections.defaultdict(set)
        for function, item, key in self.effects:
            keys[function, item].add(key)
        found["wrong"] += [
            f"{name} ran under {len(several)} keys" for name, several in keys.items() if len(several) > 1
        ]
        chats = collections.defaultdict(list)
        for message in self.messages.values():
            if message.accepted:
                chats[message.chat].append(message)
        for chat, messages in chats.items():
            self._judge(chat, messages, paid, found)
        return found

    def _judge(self, chat: str, messages: list[Message], paid: Counter[str], found: Findings) -> None:
        texts = self.texts[chat]
        repeated = [text for text, count in Counter(texts).items() if count > 1 and ITEM.search(text)]
        found["doubled"] += [f"{chat}: {text!r} was said more than once" for text in repeated]
        if not texts:
            found["lost"] += [f"{message.text!r} in {chat} was not answered" for message in messages]
        elif messages[0].kind == "remind":
            _judge_reminder(messages[0], texts, found)
        else:
            _judge_answers(chat, messages, texts, found)
            _judge_payments(chat, [one for one in messages if one.kind in PAYING], texts, paid, found)


def _judge_reminder(message: Message, texts: list[str], found: Findings) -> None:
    named = [text for text in texts if message.item in ITEM.findall(text)]
    said = [text for text in named if "reminder" not in text]
    if len(named) > len(said) and not said:
        found["lost"].append(f"{message.text!r} was confirmed and not said: {texts}")
    if len(said) > 1:
        found["doubled"].append(f"{message.text!r} was said {len(said)} times: {said}")


def _judge_answers(chat: str, messages: list[Message], texts: list[str], found: Findings) -> None:
    """Answers without an item, such as "outcome unknown", count for any message of the chat."""
    named = {item for text in texts for item in ITEM.findall(text)}
    unnamed = sum(not ITEM.search(text) for text in texts)
    missing = [message.text for message in messages if message.item not in named and message.kind != "question"]
    if len(missing) > unnamed:
        found["lost"].append(f"{chat} has {unnamed} answers for {missing}")


def _judge_payments(chat: str, messages: list[Message], texts: list[str], paid: Counter[str], found: Findings) -> None:
    told = {message.item for message in messages if any(f"Paid for {message.item}." in text for text in texts)}
    found["wrong"] += [f"{item} was said to be paid in {chat}" for item in sorted(told) if not paid[item]]
    untold = [message.item for message in messages if paid[message.item] and message.item not in told]
    if len(untold) > sum(bool(UNKNOWN.search(text)) for text in texts):
        found["silent"].append(f"{untold} were paid in {chat}, and the chat was told {texts[-20:]}")


class World:
    """The daemon and the servers around it."""

    def __init__(self, home: Path, seed: int) -> None:
        self.home = home
        self.random = random.Random(seed)
        self.audit = Audit()
        self.process: asyncio.subprocess.Process | None = None
        self.ready = asyncio.Event()
        self.stopping = False
        self.port = 0
        self.number = 0

    async def serve(self) -> None:
        """Start the model and the effect counter, and write the settings."""
        model = await asyncio.start_server(self._model, "127.0.0.1", 0)
        spy = await asyncio.start_server(self._spy, "127.0.0.1", 0)
        self.port = _free_port()
        (self.home / "functions").mkdir()
        (self.home / "functions" / "things.py").write_text(FUNCTIONS.format(spy=spy.sockets[0].getsockname()[1]))
        settings = SETTINGS.format(home=self.home, model=model.sockets[0].getsockname()[1], port=self.port, token=TOKEN)
        (self.home / "bot.yaml").write_text(settings)

    async def start(self) -> None:
        """Start the daemon; `ready` is set when it is ready."""
        with (self.home / "stderr").open("ab") as errors:
            self.process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "bot", "run", "--config", str(self.home / "bot.yaml"), "--no-console"),
                cwd=REPOSITORY,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=errors,
            )
        self.watching = asyncio.create_task(self._watch(self.process))

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        async with asyncio.timeout(START_SECONDS):
            while not await self._is_ready():
                if process.returncode is not None:
                    said = (self.home / "stderr").read_text()[-2000:]
                    raise RuntimeError(f"the daemon ended with {process.returncode}: {said}")
                await asyncio.sleep(0.05)
        self.ready.set()

    async def end(self) -> str:
        """Stop the daemon in a random way; returns the way."""
        assert self.process is not None
        process, chance = self.process, self.random.random()
        if self.watching.done():
            self.watching.result()
        self.watching.cancel()
        phase = "ready: " if self.ready.is_set() else "starting: "
        self.ready.clear()
        if chance < 0.55:
            how = "SIGKILL"
            process.kill()
        elif chance < 0.75:
            how = "SIGTERM"
            process.terminate()
        elif chance < 0.85:
            how = "SIGTERM, SIGKILL"
            process.terminate()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), self.random.uniform(0, 0.6))
            if process.returncode is None:
                process.kill()
        elif chance < 0.95:
            how = "SIGSTOP, SIGKILL"
            process.send_signal(signal.SIGSTOP)
            await asyncio.sleep(self.random.uniform(0.2, 2))
            process.kill()
        else:
            how = "SIGSTOP, SIGCONT, SIGTERM"
            process.send_signal(signal.SIGSTOP)
            await asyncio.sleep(self.random.uniform(0.2, 4))
            process.send_signal(signal.SIGCONT)
            await asyncio.sleep(self.random.uniform(0, 0.5))
            process.terminate()
        async with asyncio.timeout(40):
            await process.wait()
        return phase + how

    def place(self, item: str) -> str:
        """A busy group, or a separate chat for the message."""
        return self.random.choice(GROUPS) if self.random.random() < 0.5 else f"c-{item}"

    async def _is_ready(self) -> bool:
        try:
            async with self.client(1) as client:
                return (await client.get("/readyz")).status_code == 200
        except httpx2.HTTPError:
            return False

    def client(self, seconds: float = 10) -> httpx2.AsyncClient:
        """A client of the HTTP platform."""
        headers = {"authorization": f"Bearer {TOKEN}"}
        return httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{self.port}", headers=headers, timeout=seconds, trust_env=False
        )

    async def post(self, message: Message, sender: str = "ann") -> None:
        """Post until it is accepted. A repeated post counts as the same message."""
        self.audit.messages[message.id] = message
        body = {
            "id": message.id,
            "sender": {"id": sender, "name": sender.title()},
            "text": message.text,
            "mentions_bot": True,
        }
        while not message.accepted:
            await self.ready.wait()
            try:
                async with self.client() as client:
                    answer = await client.post(f"/api/v1/chats/{message.chat}/messages", json=body)
            except httpx2.HTTPError:
                await asyncio.sleep(0.05)
                continue
            if answer.status_code == 202:
                message.accepted = True
            elif answer.status_code not in (429, 503):
                raise AssertionError(f"{answer.status_code} {answer.text}")
            else:
                await asyncio.sleep(0.2)

    async def read(self, chat: str, cursors: dict[str, str]) -> int:
        """Read the new events of `chat`; returns their number."""
        async with self.client() as client:
            answer = await client.get(
                f"/api/v1/chats/{chat}/events", params={"after": cursors.get(chat, "0"), "wait": "0"}
            )
        if answer.status_code != 200:
            return 0
        body = answer.json()
        for event in body["events"]:
            self.audit.saw(chat, event)
        cursors[chat] = body["cursor"]
        return len(body["events"])

    async def _spy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readline()).decode().split()
        if len(line) == 3:
            self.audit.effects.append((line[0], line[1], line[2]))
            await asyncio.sleep(self.random.uniform(0, 0.2))
            with contextlib.suppress(ConnectionError):
                writer.write(b"\n")
                await writer.drain()
        writer.close()

    async def _model(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                length = re.search(r"content-length: (\d+)", head)
                request = json.loads(await reader.readexactly(int(length[1])) if length else b"{}")
                await asyncio.sleep(self.random.uniform(0.02, 0.5))
                data = json.dumps(_answer(request)).encode()
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(data)
                    + data
                )
                await writer.drain()
        writer.close()


def _free_port() -> int:
    """A port below the range for outgoing connections, so that it stays free between two starts."""
    for port in range(20_000 + os.getpid() % 5_000, 30_000):
        with contextlib.suppress(OSError), contextlib.closing(socket.create_server(("127.0.0.1", port))):
            return port
    raise RuntimeError("there is no free port")


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    messages = request.get("messages")
    if messages is None:
        return {"data": []}
    last = max(place for place, message in enumerate(messages) if message["role"] == "user")
    items = re.findall(r"please pay (i\d+)", str(messages[last]["content"]))
    done = any(message["role"] == "tool" for message in messages[last:])
    message: dict[str, Any] = {"role": "assistant", "content": f"That is all about {items[-1] if items else 'it'}."}
    finish = "stop"
    if items and not done:
        call = {
            "id": "c1",
            "type": "function",
            "function": {"name": "pay", "arguments": json.dumps({"item": items[-1]})},
        }
        message, finish = {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
    return {"id": "r", "choices": [{"index": 0, "message": message, "finish_reason": finish}]}


async def talk(world: World, cursors: dict[str, str]) -> None:
    """Post messages of all kinds until cancelled."""
    tasks: set[asyncio.Task[None]] = set()

    def begin(work: Any) -> None:
        task = asyncio.create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    while not world.stopping:
        await world.ready.wait()
        world.number += 1
        item, chance = f"i{world.number}", world.random.random()
        if chance < 0.45:
            begin(world.post(Message(f"m{item}", world.place(item), "pay", item, f"/pay {item}")))
        elif chance < 0.6:
            begin(world.post(Message(f"m{item}", world.place(item), "keep", item, f"/keep {item}")))
        elif chance < 0.8:
            begin(world.post(Message(f"m{item}", world.place(item), "model", item, f"please pay {item}")))
        elif chance < 0.9:
            begin(ask(world, f"q-{item}", item, cursors))
        else:
            seconds = world.random.randint(2, 12)
            text = f"/remind me in {seconds} seconds to water {item}"
            begin(world.post(Message(f"m{item}", f"r-{item}", "remind", item, text), f"member{item}"))
        while len(tasks) > 60:
            await asyncio.sleep(0.05)
        await asyncio.sleep(world.random.expovariate(15))
    async with asyncio.timeout(SETTLE_SECONDS):
        while tasks:
            await asyncio.sleep(0.1)


async def ask(world: World, chat: str, item: str, cursors: dict[str, str]) -> None:
    """Post a command without its argument, and answer the question for it."""
    await world.post(Message(f"m{item}", chat, "question", item, "/pay"))
    for _ in range(600):
        with contextlib.suppress(httpx2.HTTPError):
            await world.read(chat, cursors)
        if world.audit.texts[chat]:
            break
        await asyncio.sleep(0.1)
    await asyncio.sleep(world.random.uniform(0, 3))
    if len(world.audit.texts[chat]) == 1 and "pay" in world.audit.texts[chat][0].lower():
        await world.post(Message(f"a{item}", chat, "answer", item, item))


async def settle(world: World, cursors: dict[str, str]) -> None:
    """Read all chats until there are no new events."""
    chats = sorted({message.chat for message in world.audit.messages.values()})
    quiet = 0
    deadline = time.monotonic() + SETTLE_SECONDS
    while quiet < 15 and time.monotonic() < deadline:
        new = 0
        for chat in chats:
            while count := await world.read(chat, cursors):
                new += count
        quiet = 0 if new else quiet + 1
        await asyncio.sleep(1)


async def campaign(ends: int, seed: int, home: Path) -> int:
    """Run the audit; returns the exit status."""
    world, cursors, ways = World(home, seed), dict[str, str](), Counter[str]()
    await world.serve()
    await world.start()
    talking = asyncio.create_task(talk(world, cursors))
    for number in range(1, ends + 1):
        if world.random.random() > 0.25:
            await world.watching
        await asyncio.sleep(world.random.uniform(0, 2.5))
        ways[await world.end()] += 1
        await world.start()
        if number % 25 == 0:
            print(
                f"{number} ends, {world.number} messages, {len(world.audit.effects)} effects",
                file=sys.stderr,
                flush=True,
            )
    await world.watching
    world.stopping = True
    await talking
    await settle(world, cursors)
    await world.end()
    return report(world.audit, {"ends": ends, "seed": seed, "ways": ways})


def report(audit: Audit, facts: dict[str, Any]) -> int:
    """Print the counts and the findings; returns the exit status."""
    found = audit.findings()
    counts = {kind: len(rows) for kind, rows in found.items()}
    texts = [text for chat in audit.texts.values() for text in chat]
    facts["messages"] = Counter(message.kind for message in audit.messages.values() if message.accepted)
    facts["effects"] = len(audit.effects)
    facts["given_up"] = sum("several tries" in text for text in texts)
    facts["unknown_outcomes_told"] = sum(bool(UNKNOWN.search(text)) for text in texts)
    print(json.dumps({**facts, **counts}))
    for kind, rows in found.items():
        print(*(f"{kind}: {row}" for row in rows[:20]), sep="\n", file=sys.stderr)
    return 1 if any(counts.values()) else 0


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ends", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rollcall-ends-", ignore_cleanup_errors=True) as home:
        return asyncio.run(campaign(options.ends, options.seed, Path(home)))


if __name__ == "__main__":
    sys.exit(main())
