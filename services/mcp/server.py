"""A server of tools as the daemon knows it: connected when it is needed, and again when the connection was lost; its
tools compared with the pins before any of them is called."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

import structlog

from config.mcp_servers import McpServerSettings
from services.clock import Clock
from services.deadlines import Deadlines
from services.json_values import JsonObject
from services.mcp.pins import Pins, PinState
from services.mcp.tools import (
    ConnectionLost,
    Listing,
    NotSent,
    Progress,
    ServerProblem,
    ToolAnswer,
    Unreachable,
)
from services.retry import Retry, RetryPolicy, Verdict

_PATIENCE = RetryPolicy(attempts=12, first_wait_seconds=2.0, longest_wait_seconds=300.0)
_LATER_SECONDS = 300.0
_SHORT_LIFE_SECONDS = 60.0
"""A connection that lasted no longer has failed: the next one is not opened at once."""
_LOOK_SECONDS = 600.0
"""So often the tools are listed again, since not every server tells that they have changed."""
_MARGIN_SECONDS = 1.0
OnProgress = Callable[[Progress], Awaitable[None]]
_log = structlog.get_logger("mcp")


class Withdrawn(ServerProblem):
    """The tool is not, or not any more, what was accepted."""


class Link(Protocol):
    """An open connection."""

    @property
    def is_open(self) -> bool:
        """Whether a call may be tried."""

    @property
    def changed(self) -> asyncio.Event:
        """Set when the tools have changed."""

    async def ended(self) -> None:
        """Return when it has ended."""

    async def close(self) -> None:
        """End it."""

    async def list_tools(self) -> Listing:
        """All tools. Raises ServerProblem."""

    async def call(self, tool: str, arguments: JsonObject, on_progress: OnProgress) -> ToolAnswer:
        """What a tool gives. Raises ServerProblem."""


class McpServer:
    """One server. `run` has to be running for it to be looked after; calls find their way without."""

    def __init__(
        self,
        settings: McpServerSettings,
        pins: Pins,
        clock: Clock,
        opening: Callable[[], Awaitable[Link]],
        *,
        asks_first: bool = True,
    ) -> None:
        """`opening` opens a connection or raises Unreachable. `asks_first`: where nothing is known of the server's
        tools, it is asked for them though nobody calls any."""
        self._settings = settings
        self._pins = pins
        self._clock = clock
        self._open_one = opening
        self._asks_first = asks_first
        self._deadlines = Deadlines(clock)
        self._retry = Retry(clock, _PATIENCE)
        self._link: Link | None = None
        self._opening: asyncio.Task[Link] | None = None
        self._looking = asyncio.Lock()
        self._looked_at = clock.monotonic()
        self._pins_changed = pins.watch(settings.name)
        self._wanted = asyncio.Event()
        self._used_at = clock.monotonic()
        self._calls = 0
        self._problem = ""
        self._problems: tuple[str, ...] = ()
        self._on_change: list[Callable[[], None]] = []

    @property
    def problem(self) -> str:
        """Why there is no connection although one was wanted; empty where there is none to complain of."""
        return self._problem

    @property
    def problems(self) -> tuple[str, ...]:
        """What of its list of tools cannot be used."""
        return self._problems

    def on_change(self, told: Callable[[], None]) -> None:
        """Call `told` when a problem has come or gone."""
        self._on_change.append(told)

    async def run(self) -> None:
        """Look after the connection until cancelled: open it where nothing is known of the tools, keep it open once it
        was, and close it where nobody calls."""
        try:
            while True:
                self._pins_changed.clear()
                if self._asks_first and self._is_unknown:
                    self._wanted.set()
                await _first_of(self._wanted.wait(), self._pins_changed.wait())
                if self._wanted.is_set():
                    await self._keep()
        finally:
            await self.close()

    async def call(
        self,
        tool: str,
        digest: str,
        arguments: JsonObject,
        *,
        deadline: float,
        may_repeat: bool,
        on_progress: OnProgress,
    ) -> ToolAnswer:
        """What `tool` gives, as long as its accepted definition has that digest. With `may_repeat` it is asked once
        more over a new connection when one is lost. `deadline` is on the clock's `monotonic()`: before it a connection
        has to be there. Raises ServerProblem: Withdrawn, Unreachable where the server has heard nothing,
        ConnectionLost where nobody knows what it did."""
        self._calls += 1
        try:
            try:
                return await self._called(tool, digest, arguments, deadline, on_progress)
            except NotSent:
                _log.info("mcp_call_not_sent", server=self._settings.name, tool=tool)
            except ConnectionLost:
                if not may_repeat:
                    raise
            try:
                return await self._called(tool, digest, arguments, deadline, on_progress)
            except NotSent as error:
                raise Unreachable(str(error)) from error
        finally:
            self._calls -= 1
            self._used_at = self._clock.monotonic()

    async def close(self) -> None:
        """End the connection."""
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.cancel()
            await asyncio.wait([opening])
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    @property
    def _is_unknown(self) -> bool:
        return not self._pins.of(self._settings.name)

    async def _called(
        self, tool: str, digest: str, arguments: JsonObject, deadline: float, on_progress: OnProgress
    ) -> ToolAnswer:
        """What `tool` gives over an open connection whose tools were compared with the pins. Raises ServerProblem."""
        now = self._clock.monotonic()
        # What was not sent in time was not done either: that must not be confused with an answer that is too late.
        by = max(deadline - _MARGIN_SECONDS, now + (deadline - now) / 2)
        try:
            link = await self._deadlines.run(self._fresh(), by)
        except TimeoutError:
            raise Unreachable("it takes too long to connect") from None
        pin = self._pins.of(self._settings.name).get(tool)
        if pin is None or pin.state is not PinState.ACCEPTED or pin.digest != digest:
            raise Withdrawn(f"the tool {tool!r} is not, or not any more, what was accepted")
        return await link.call(tool, arguments, on_progress)

    async def _fresh(self) -> Link:
        link = await self._opened()
        if link.changed.is_set() or self._looking.locked():
            await self._look(link, anyway=False)
        return link

    async def _opened(self) -> Link:
        """The open connection. One is opened where there is none: by a task of its own, which goes on for the others
        when whoever wanted it first is gone. Raises Unreachable."""
        self._wanted.set()
        if self._link is not None and self._link.is_open:
            return self._link
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(_take_note)
        return await asyncio.shield(self._opening)

    async def _open(self) -> Link:
        before, self._link = self._link, None
        link: Link | None = None
        try:
            if before is not None:
                await before.close()
            by = self._clock.monotonic() + self._settings.connect_seconds
            link = await self._deadlines.run(self._open_one(), by)
            await self._deadlines.run(self._look(link, anyway=True), by)
        except (ServerProblem, TimeoutError) as error:
            if link is not None:
                await link.close()
            text = str(error) or f"it has not answered within {self._settings.connect_seconds:g} seconds"
            self._complain(text)
            raise Unreachable(text) from None
        except BaseException:
            if link is not None:
                await link.close()
            raise
        finally:
            self._opening = None
        self._link = link
        self._complain("")
        return link

    async def _look(self, link: Link, *, anyway: bool) -> None:
        """Compare the tools with the pins; unless `anyway`, only where they are said to have changed. Raises
        ServerProblem."""
        async with self._looking:
            if not anyway and not link.changed.is_set():
                return
            # What changes while they are listed is looked at once more.
            link.changed.clear()
            try:
                listing = await link.list_tools()
            except BaseException:
                link.changed.set()
                raise
            await self._pins.note(self._settings.name, listing, self._settings.pin)
            self._looked_at = self._clock.monotonic()
        if listing.problems != self._problems:
            self._problems = listing.problems
            self._tell()

    async def _keep(self) -> None:
        """Keep a connection open, with more and more patience where it fails; return when it was closed because nobody
        called."""
        while self._wanted.is_set():
            with suppress(Unreachable):
                await self._retry.run(
                    self._live, on=Unreachable, judge=lambda error: Verdict(retry=True), deadline=float("inf")
                )
                continue
            await self._clock.sleep(_LATER_SECONDS)

    async def _live(self) -> None:
        """One connection from its beginning to its end. Raises Unreachable for one that was none or did not last."""
        link = await self._opened()
        began = self._clock.monotonic()
        while link.is_open:
            await _first_of(
                link.ended(), link.changed.wait(), self._pins_changed.wait(), self._clock.sleep(self._rest_seconds())
            )
            self._pins_changed.clear()
            if self._is_idle():
                self._wanted.clear()
                self._link = None
                await link.close()
                return
            if link.is_open:
                await self._look_again(link)
        if self._clock.monotonic() - began < _SHORT_LIFE_SECONDS:
            self._complain("the connection ended soon after it began")
            raise Unreachable(self._problem)

    async def _look_again(self, link: Link) -> None:
        """Compare the tools with the pins where it is time to. A connection over which that cannot be done is ended."""
        is_due = self._clock.monotonic() - self._looked_at >= _LOOK_SECONDS
        try:
            await self._look(link, anyway=is_due or self._is_unknown)
        except ServerProblem as error:
            self._complain(str(error))
            await link.close()

    def _rest_seconds(self) -> float:
        idle = self._settings.idle_seconds
        return min(_LOOK_SECONDS, idle) if idle else _LOOK_SECONDS

    def _is_idle(self) -> bool:
        idle = self._settings.idle_seconds
        return bool(idle) and not self._calls and self._clock.monotonic() - self._used_at >= idle

    def _complain(self, problem: str) -> None:
        if problem == self._problem:
            return
        self._problem = problem
        _log.info("mcp_server", server=self._settings.name, problem=problem or "none")
        self._tell()

    def _tell(self) -> None:
        for told in self._on_change:
            told()


def _take_note(task: asyncio.Task[Link]) -> None:
    """Nobody may be waiting any more for what came of it."""
    if not task.cancelled():
        task.exception()


async def _first_of(*waits: Awaitable[object]) -> None:
    """Return when the first of them is done; the others are dropped."""
    tasks = [asyncio.ensure_future(one) for one in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
