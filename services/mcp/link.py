"""The single connection to an MCP server, opened on demand and reopened after a loss."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog

from config.sections.mcp import McpServerSettings
from services.clock import Clock, Deadlines
from services.mcp.problems import ServerError, Superseded, Unreachable
from services.mcp.tools import Listing, Pins, Progress, ToolAnswer
from services.refs import JsonObject

OnProgress = Callable[[Progress], Awaitable[None]]
"""Is told how far a call has come."""


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
        """All tools. Raises ServerError."""

    async def call(self, tool: str, arguments: JsonObject, on_progress: OnProgress) -> ToolAnswer:
        """What a tool gives. Raises ServerError."""


class Pace:
    """Counts within spans that follow one another."""

    def __init__(self, most: int, seconds: float, clock: Clock) -> None:
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._began = clock.monotonic()
        self._count = 0

    def may_go_on(self) -> bool:
        """Whether it may happen once more now; counted where it may."""
        now = self._clock.monotonic()
        if now - self._began >= self._seconds:
            self._began, self._count = now, 0
        self._count += 1
        return self._count <= self._most


_LINES_PER_MINUTE = 20
_log = structlog.get_logger("mcp")


class OneLink:
    """Opened by whoever needs it, for all who do, until it is refused."""

    def __init__(
        self, settings: McpServerSettings, pins: Pins, clock: Clock, opening: Callable[[], Awaitable[Link]]
    ) -> None:
        """`opening` opens a connection or raises Unreachable."""
        self._settings = settings
        self._pins = pins
        self._clock = clock
        self._open_one = opening
        self._deadlines = Deadlines(clock)
        self._link: Link | None = None
        self._opening: asyncio.Task[Link] | None = None
        self._looking = asyncio.Lock()
        self._looked_at = clock.monotonic()
        self._is_refused = False
        self._problem = ""
        self._problems: tuple[str, ...] = ()
        self._pace = Pace(_LINES_PER_MINUTE, 60.0, clock)
        self._on_change: list[Callable[[], None]] = []

    @property
    def problem(self) -> str:
        """Why there is no connection although one was wanted, in a sentence of ours; empty where there is none to
        complain of."""
        return self._problem

    @property
    def problems(self) -> tuple[str, ...]:
        """What of its list of tools cannot be used, in sentences of ours."""
        return self._problems

    @property
    def looked_at(self) -> float:
        """When the tools were compared last, on the clock's `monotonic()`."""
        return self._looked_at

    def on_change(self, told: Callable[[], None]) -> None:
        """Call `told` when a problem has come or gone."""
        self._on_change.append(told)

    def allow(self) -> None:
        """It may be opened (again)."""
        self._is_refused = False

    def refuse(self) -> None:
        """From now on it is not opened, and not handed to anybody."""
        self._is_refused = True

    async def close(self) -> None:
        """End it. Who waits for it is told that it is refused; where it is not, the next who needs it opens it."""
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.cancel()
            await asyncio.wait([opening])
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    async def fresh(self) -> Link:
        """It, open, with tools that were compared since they were last said to have changed. Raises ServerError."""
        link = await self.opened()
        if link.changed.is_set() or self._looking.locked():
            await self.look(link, anyway=False)
        if self._is_refused:
            raise Superseded
        return link

    async def opened(self) -> Link:
        """It, open; opened where it is not: by a task of its own, which goes on for the others when whoever wanted it
        first is gone. Raises Unreachable, and Superseded."""
        if self._is_refused:
            raise Superseded
        if self._link is not None and self._link.is_open:
            return self._link
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(_take_note)
        opening = self._opening
        await asyncio.wait([opening])
        if opening.cancelled():
            # By `close`; whoever waits here was not stopped.
            raise Superseded
        return opening.result()

    async def _open(self) -> Link:
        before, self._link = self._link, None
        link: Link | None = None
        try:
            if before is not None:
                await before.close()
            by = self._clock.monotonic() + self._settings.connect_seconds
            link = await self._deadlines.run(self._open_one(), by)
            await self._deadlines.run(self.look(link, anyway=True), by)
        except (ServerError, TimeoutError) as error:
            if link is not None:
                await link.close()
            late = Unreachable(said=f"it has not answered within {self._settings.connect_seconds:g} seconds")
            problem = error if isinstance(error, ServerError) else late
            self.complain(problem)
            raise Unreachable(str(problem), said=problem.said) from None
        except BaseException:
            if link is not None:
                await link.close()
            raise
        finally:
            self._opening = None
        self._link = link
        self.complain(None)
        return link

    async def look(self, link: Link, *, anyway: bool) -> None:
        """Compare the tools with the pins; unless `anyway`, only where they are said to have changed. Raises
        ServerError."""
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
        if listing.details:
            self._note("mcp_tools_left_out", details=list(listing.details))
        if listing.problems != self._problems:
            self._problems = listing.problems
            self._tell()

    def complain(self, problem: ServerError | None) -> None:
        """There is this problem, or (None) none any more. The log has all of it; others are told in sentences of ours,
        and only where it is another one."""
        said = "" if problem is None else problem.said
        if problem is not None or self._problem:
            self._note("mcp_server", problem="none" if problem is None else str(problem))
        if said != self._problem:
            self._problem = said
            self._tell()

    def _note(self, event: str, **facts: object) -> None:
        """Into the log, at a bounded pace: it is the server that brings it about."""
        if self._pace.may_go_on():
            _log.info(event, server=self._settings.name, **facts)

    def _tell(self) -> None:
        for told in self._on_change:
            told()


def _take_note(task: asyncio.Task[Link]) -> None:
    """Nobody may be waiting any more for what came of it."""
    if not task.cancelled():
        task.exception()
