"""The engines that the contract of engines tests: one process on SQLite or PostgreSQL, and a cluster with one gateway
and two workers, all in the test's process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.cluster.opening import open_cluster
from bot.daemon import Daemon, build_daemon
from bot.database.opening import open_store
from bot.overrides import Overrides
from bot.platforms.base import Accepted, Deliver, Outgoing
from bot.platforms.mentions import mention_parser
from bot.testing import ACCOUNT, FAMILY, PLATFORM, ScriptedModel, SpecSource, TestPlatform
from config.settings import Settings
from config.texts import Texts
from function_calls.context import Attachment, Kind, MessageContext, MessageKey, Sender
from services.clock import SystemClock
from services.llm.model import ChatModel
from services.refs import ChatRef, MemberRef, Role
from services.store.ids import Ids
from services.store.port import Store
from services.store.turns.cluster import ProcessRole

ENGINES = ("sqlite", "postgresql", "cluster")
_SECONDS = 30.0


class Network(TestPlatform):
    """A network that receives until the end, with messages that the bot can edit, and files."""

    def __init__(self) -> None:
        super().__init__()
        self.delivers: asyncio.Future[Deliver] = asyncio.get_running_loop().create_future()
        self.edited: list[tuple[str, Outgoing]] = []
        self.deleted: list[str] = []
        self.changed = asyncio.Condition()

    async def run(self, deliver: Deliver) -> None:
        self.delivers.set_result(deliver)
        await asyncio.Event().wait()

    async def edit(self, native_id: str, outgoing: Outgoing) -> None:
        self.edited.append((native_id, outgoing))

    async def delete(self, chat: ChatRef, native_id: str) -> None:
        self.deleted.append(native_id)

    async def read_file(self, attachment: Attachment, max_bytes: int) -> bytes:
        return attachment.name.encode()


@dataclass(eq=False)
class Conversation:
    """A group chat with a bot on one of the engines."""

    network: Network
    model: ScriptedModel
    gateway: Daemon
    clock: SystemClock
    daemons: list[Daemon] = field(default_factory=list)
    parse: Any = field(default_factory=lambda: mention_parser(["Rollcall"]))

    @property
    def texts(self) -> list[str]:
        """All texts that the bot has sent, in order."""
        return [outgoing.text for outgoing in self.network.sent]

    async def hear(
        self,
        who: str,
        text: str,
        *,
        native_id: str = "",
        kind: Kind = Kind.MESSAGE,
        chat: ChatRef = FAMILY,
        **facts: Any,
    ) -> Accepted:
        """Deliver one event; returns when it is accepted."""
        parsed, member = self.parse(text), MemberRef(PLATFORM, ACCOUNT, who.lower())
        native_id = native_id or f"m{self.gateway.ids.next()}"
        key_kind = kind if kind in (Kind.EDIT, Kind.DELETE) else Kind.MESSAGE
        role = facts.pop("role", Role.MEMBER)
        self.network.roles.setdefault(member, role)
        context = MessageContext(
            key=MessageKey(chat, native_id, key_kind, "" if key_kind is Kind.MESSAGE else "1"),
            kind=kind,
            chat=chat,
            is_group=True,
            sender=Sender(member, who, role),
            text=parsed.text,
            sent_at=self.clock.now(),
            mentions_bot=parsed.mentions_bot,
            **facts,
        )
        deliver = await self.network.delivers
        return await deliver(context, ())

    async def say(self, who: str, text: str, *, answers: int = 1, **facts: Any) -> list[str]:
        """Deliver a message; returns the texts of its `answers`, which are awaited."""
        before = len(self.network.sent)
        await self.hear(who, text, **facts)
        await self.sends(before + answers)
        return self.texts[before:]

    async def sends(self, count: int) -> None:
        """Wait until the bot has sent `count` messages in all."""
        await until(lambda: len(self.network.sent) >= count)


async def until(condition: Any) -> None:
    """Return when `condition` is true; at most 30 seconds, in which processes and the server need real time."""
    async with asyncio.timeout(_SECONDS):
        while not condition():  # noqa: ASYNC110 - other sessions of the database have no event here
            await asyncio.sleep(0.005)


@asynccontextmanager
async def a_conversation(
    engine: str,
    home: Path,
    url: str,
    functions: Sequence[Any] = (),
    settings: dict[str, Any] | None = None,
    of_first_worker: ChatModel | None = None,
) -> AsyncIterator[Conversation]:
    """A conversation on `engine`; `url` is that of an empty PostgreSQL database, which SQLite does not use. The first
    worker of a cluster may have another model than the other processes."""
    network, model = Network(), ScriptedModel()
    processes = (ProcessRole.GATEWAY, ProcessRole.WORKER, ProcessRole.WORKER) if engine == "cluster" else (None,)
    async with AsyncExitStack() as stack:
        daemons = [
            await stack.enter_async_context(
                _a_process(
                    _settings(engine, home, url, number, settings),
                    role,
                    network,
                    of_first_worker if number == 1 and of_first_worker is not None else model,
                    functions,
                )
            )
            for number, role in enumerate(processes)
        ]
        yield Conversation(network, model, daemons[0], SystemClock(), daemons)


def _settings(engine: str, home: Path, url: str, number: int, more: dict[str, Any] | None) -> Settings:
    # The name distinguishes the sessions of the processes, which are one here.
    store = {} if engine == "sqlite" else {"url": f"{url}&application_name=process{number}"}
    return Settings.model_validate(
        {
            "home": str(home),
            "logging": {"folder": str(home / "logs" / str(number)), "console": "off"},
            "chats": {"allow": ["*"]},
            "timezone": "UTC",
            "store": store,
            "engine": "cluster" if engine == "cluster" else "embedded",
            **(more or {}),
        }
    )


@asynccontextmanager
async def _a_process(
    settings: Settings, role: ProcessRole | None, network: Network, model: ChatModel, functions: Sequence[Any]
) -> AsyncIterator[Daemon]:
    clock = SystemClock()
    cluster = None if role is None else await open_cluster(settings, clock, None, role)
    store: Store = await open_store(settings, clock) if cluster is None else cluster.store
    overrides = Overrides(
        clock=clock,
        model=model,
        sources=lambda services: [SpecSource(functions, services)],
        cluster=cluster,
    )
    platform = network if cluster is None else cluster.account_of(network)
    ids = Ids(clock) if cluster is None else cluster.ids
    daemon = build_daemon(settings, store, [platform], ids, Texts(), overrides)
    await daemon.start()
    ticker = daemon.ticker()
    ticker.start()
    running = asyncio.create_task(daemon.run())
    try:
        yield daemon
    finally:
        ticker.stop()
        if cluster is not None:
            cluster.worker.abort()
        running.cancel()
        await asyncio.wait([running])
        await daemon.stop(at_once=True)
