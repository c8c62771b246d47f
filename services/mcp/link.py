"""The single connection to an MCP server, opened on demand and reopened after a loss."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import structlog

from config.sections.mcp import McpServerSettings
from services.clock import Clock, Deadlines
from services.mcp.problems import LoginRequired, ServerError, Superseded, Unreachable
from services.mcp.tools import Pins

if TYPE_CHECKING:
    from services.mcp.connection import Connection


class RateLimiter:
    """Rate limiter: at most `most` events in each fixed window of `seconds`."""

    def __init__(self, most: int, seconds: float, clock: Clock) -> None:
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._began = clock.monotonic()
        self._count = 0

    def allow(self) -> bool:
        """Whether the event is within the limit; counts it."""
        now = self._clock.monotonic()
        if now - self._began >= self._seconds:
            self._began, self._count = now, 0
        self._count += 1
        return self._count <= self._most


_LINES_PER_MINUTE = 20
_log = structlog.get_logger("mcp")


class SharedConnection:
    """The only connection to one server, shared by all callers: opened on demand unless refused, and its tools compared
    with the pins."""

    def __init__(
        self, settings: McpServerSettings, pins: Pins, clock: Clock, opening: Callable[[], Awaitable[Connection]]
    ) -> None:
        """`opening` opens a connection or raises Unreachable; it is called again after each loss."""
        self._settings = settings
        self._pins = pins
        self._clock = clock
        self._connect = opening
        self._deadlines = Deadlines(clock)
        self._link: Connection | None = None
        self._opening: asyncio.Task[Connection] | None = None
        self._comparing = asyncio.Lock()
        self.compared_at = clock.monotonic()
        """Time of the clock's `monotonic()` at which the tools were last compared with the pins."""
        self._is_refused = False
        self.problem = ""
        """Why the last connection attempt failed, without server text; empty after a success."""
        self.problems: tuple[str, ...] = ()
        """Problems in the server's tool list, without server text."""
        self._rate_limiter = RateLimiter(_LINES_PER_MINUTE, 60.0, clock)
        self._on_change: list[Callable[[], None]] = []

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call `callback` when a problem appears or disappears."""
        self._on_change.append(callback)

    def allow(self) -> None:
        """Permit opening the connection (again)."""
        self._is_refused = False

    def refuse(self) -> None:
        """Refuse to open the connection or to hand it out: callers get Superseded. Does not close it."""
        self._is_refused = True

    async def close(self) -> None:
        """Close the connection and cancel an attempt to open it. Waiting callers get Superseded; unless it is refused,
        the next caller opens a new connection."""
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.cancel()
            await asyncio.wait([opening])
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    async def fresh(self) -> Connection:
        """An open connection whose tools were compared since the last reported change. Raises ServerError: Superseded
        after `refuse`, Unreachable if it cannot be opened."""
        link = await self.opened()
        if link.changed.is_set() or self._comparing.locked():
            await self.compare_tools(link, even_if_unchanged=False)
        if self._is_refused:
            raise Superseded
        return link

    async def opened(self) -> Connection:
        """Return the open connection or open one, in a separate task that outlives a cancelled caller and serves all
        others. Raises Unreachable, also after `connect_seconds`, and Superseded after `refuse` or `close`."""
        if self._is_refused:
            raise Superseded
        if self._link is not None and self._link.is_open:
            return self._link
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(_retrieve_exception)
        opening = self._opening
        await asyncio.wait([opening])
        if opening.cancelled():
            # Cancelled by `close`, not by the caller.
            raise Superseded
        return opening.result()

    async def _open(self) -> Connection:
        before, self._link = self._link, None
        link: Connection | None = None
        try:
            if before is not None:
                await before.close()
            by = self._clock.monotonic() + self._settings.connect_seconds
            link = await self._deadlines.run(self._connect(), by)
            await self._deadlines.run(self.compare_tools(link, even_if_unchanged=True), by)
        except (ServerError, TimeoutError) as error:
            if link is not None:
                await link.close()
            late = Unreachable(member_text=f"it has not answered within {self._settings.connect_seconds:g} seconds")
            problem = error if isinstance(error, ServerError) else late
            self.set_problem(problem)
            if isinstance(problem, Unreachable):
                raise problem from None
            raise Unreachable(str(problem), member_text=problem.member_text) from None
        except BaseException:
            if link is not None:
                await link.close()
            raise
        finally:
            self._opening = None
        self._link = link
        self.set_problem(None)
        return link

    async def compare_tools(self, link: Connection, *, even_if_unchanged: bool) -> None:
        """List the tools of `link` and store changes in the pins; without `even_if_unchanged` only after a change.
        Raises ServerError if the listing fails."""
        async with self._comparing:
            if not even_if_unchanged and not link.changed.is_set():
                return
            # Clear the flag first: a change during the listing sets it again.
            link.changed.clear()
            try:
                listing = await link.list_tools()
            except BaseException:
                link.changed.set()
                raise
            await self._pins.note(self._settings.name, listing, self._settings.pin)
            self.compared_at = self._clock.monotonic()
        if listing.details:
            self._note("mcp_tools_left_out", details=list(listing.details))
        if listing.problems != self.problems:
            self.problems = listing.problems
            self._notify()

    def set_problem(self, problem: ServerError | None) -> None:
        """Set the current problem; None clears it. The log gets the details; listeners are called if the text without
        server words has changed."""
        member_text = "" if problem is None else problem.member_text
        is_known = isinstance(problem, LoginRequired) and member_text == self.problem
        if (problem is not None or self.problem) and not is_known:
            self._note("mcp_server", problem="none" if problem is None else str(problem))
        if member_text != self.problem:
            self.problem = member_text
            self._notify()

    def _note(self, event: str, **facts: object) -> None:
        """Log at a limited rate, because the server causes the entries."""
        if self._rate_limiter.allow():
            _log.info(event, server=self._settings.name, **facts)

    def _notify(self) -> None:
        for callback in self._on_change:
            callback()


def _retrieve_exception(task: asyncio.Task[Connection]) -> None:
    """Retrieve the exception of a task that no caller awaits any more."""
    if not task.cancelled():
        task.exception()
