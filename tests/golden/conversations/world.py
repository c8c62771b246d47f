"""Runs a daemon on a virtual clock and serves its HTTP platform. Only this module of the package imports the product.

As a program with the arguments HOME SETTINGS START FAULTS, it is a separate daemon process that is killed.
"""

from __future__ import annotations

import asyncio
import functools
import sys
import tempfile
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import structlog

from bot.daemon import Daemon, build_daemon
from bot.database.opening import DATABASE, open_store
from bot.overrides import Overrides
from bot.web.wiring import ACCOUNT, Web
from config.loader import load_settings
from config.texts import Texts
from function_calls.context import Kind, MessageContext, MessageKey, Sender
from services.clock import Deadlines, VirtualClock
from services.fault_points import FaultPoints
from services.refs import ChatRef, MemberRef
from services.store.all_tables import all_tables
from services.store.ids import Ids
from services.store.port import Query, Row, Store, Write
from services.store.sqlite.upgrade import upgrade
from services.store.sqlite.writer import connect_writer

_TEXTS = Texts()
_DIES_SECONDS = 10.0


class MortalStore:
    """A store that stops at `die`: later commits and reads never return, later posts are lost."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._is_dead = False

    def die(self) -> None:
        """Stop writing."""
        self._is_dead = True

    def commit(self, writes: Sequence[Write]) -> Awaitable[list[int]]:
        return self._never() if self._is_dead else self._store.commit(writes)

    def post(self, writes: Sequence[Write]) -> None:
        if not self._is_dead:
            self._store.post(writes)

    async def read(self, query: Query) -> list[Row]:
        if self._is_dead:
            await self._never()
        return await self._store.read(query)

    @property
    def broken(self) -> Any:
        return self._store.broken

    async def close(self) -> None:
        await self._store.close()

    async def _never(self) -> list[int]:
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")


class World:
    """A daemon with everything real except the clock; `start` and `die` may alternate on the same `home`."""

    def __init__(self, home: Path, settings: Path, start: datetime, faults: str = "") -> None:
        self.home = home
        self.url = ""
        """URL of the HTTP platform while the daemon runs."""
        self._settings = settings
        self._clock = VirtualClock(start)
        self._faults = FaultPoints.parse(faults)
        self._daemon: Daemon | None = None
        self._web: Web | None = None
        self._store: MortalStore | None = None
        self._deadlines = Deadlines(self._clock)
        self._serving: asyncio.Task[None] | None = None

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.home / DATABASE

    def now(self) -> datetime:
        """The virtual time."""
        return self._clock.now()

    async def start(self) -> None:
        """Start a daemon as `rollcall run` does, and wait until it has recovered and settled."""
        settings = load_settings(self._settings, {})
        self._deadlines = Deadlines(self._clock)
        if not self.database.exists():
            self.home.mkdir(parents=True, exist_ok=True)
            self.database.write_bytes(_new_database())
        self._store = MortalStore(await open_store(settings, self._clock))
        ids = Ids(self._clock)
        self._web = await Web.build(settings, self._store, ids, self._clock)
        given = Overrides(
            clock=self._clock,
            rng=Random(1),
            faults=self._faults,
            deadlines=self._deadlines,
            read_settings=lambda: load_settings(self._settings, {}),
            settings_file=self._settings,
        )
        self._daemon = build_daemon(settings, self._store, list(self._web.platforms), ids, _TEXTS, given)
        self._web.live(self._daemon.live)
        await self._daemon.start()
        self.url = await self._web.start(self._daemon)
        self._serving = asyncio.create_task(self._daemon.run())
        await asyncio.sleep(0)

    async def settle(self) -> None:
        """Wait until each accepted message is answered and each answer is sent."""
        assert self._daemon is not None
        await self._daemon.settle()
        await self._daemon.summaries.idle()
        await self.flush()

    async def flush(self) -> None:
        """Wait until all posts are in the file, which would otherwise take some virtual time."""
        assert self._store is not None
        await self._store.commit([])

    def knows(self, function: str) -> bool:
        """Whether the function exists; those of MCP servers are added shortly after the start."""
        assert self._daemon is not None
        return any(spec.name == function for spec in self._daemon.registry.of("default").specs)

    async def pass_time(self, seconds: float) -> None:
        """Advance the clock, then run the daemon's periodic tasks."""
        assert self._daemon is not None
        await self._clock.advance(seconds)
        self._deadlines.expire()
        await self._daemon.timers.tick()
        await self._daemon.housekeeping.expire_questions()
        await self._daemon.housekeeping.notice_changes()
        await self._daemon.settings_schedules.sync()
        await self._daemon.script_schedules.sync()
        await self._daemon.script_notes.sync()

    async def reload(self) -> None:
        """Reload settings and functions."""
        assert self._daemon is not None
        await self._daemon.reload.now()

    async def change(self, kind: str, chat: str, native_id: str, sender: str, text: str, revision: str) -> None:
        """Deliver an edit, deletion or reaction; the HTTP platform has no route for these."""
        assert self._daemon is not None
        ref, member = ChatRef("http", ACCOUNT, chat), MemberRef("http", ACCOUNT, sender.lower())
        mention = "@Rollcall"
        context = MessageContext(
            key=MessageKey(ref, native_id, Kind(kind), revision),
            kind=Kind(kind),
            chat=ref,
            is_group=not chat.startswith("dm-"),
            sender=Sender(member, sender),
            text=text.removeprefix(mention).strip(),
            sent_at=self._clock.now(),
            mentions_bot=text.startswith(mention),
        )
        await self._daemon.intake.accept(context)

    async def die(self) -> None:
        """End the daemon as a crash does: nothing more is written."""
        assert self._store is not None
        assert self._daemon is not None
        self._store.die()
        await self._end(at_once=True)

    async def stop(self) -> None:
        """Shut down the daemon."""
        if self._daemon is not None:
            await self._end(at_once=False)

    async def _end(self, *, at_once: bool) -> None:
        daemon, web, serving, store = self._daemon, self._web, self._serving, self._store
        assert daemon is not None
        assert web is not None
        assert serving is not None
        assert store is not None
        self._daemon = None
        await web.stop()
        serving.cancel()
        with suppress(asyncio.CancelledError, BaseExceptionGroup):
            await serving
        with suppress(TimeoutError):
            async with asyncio.timeout(_DIES_SECONDS if at_once else None):
                await daemon.stop(at_once=at_once)
                return
        await store.close()


@functools.cache
def _new_database() -> bytes:
    """The database of a first start, created once because migrations take longer than a conversation."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new.sqlite"
        upgrade(path, backups=Path(folder), clock=VirtualClock(), tables=all_tables())
        connect_writer(path).close()
        return path.read_bytes()


async def _serve(home: Path, settings: Path, start: datetime, faults: str) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("critical"))
    world = World(home, settings, start, faults)
    await world.start()
    sys.stdout.write(f"{world.url}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(
        _serve(Path(sys.argv[1]), Path(sys.argv[2]), datetime.fromisoformat(sys.argv[3]).astimezone(UTC), sys.argv[4])
    )
