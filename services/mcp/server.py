"""MCP server as the daemon uses it: one connection, opened on demand and reopened after a loss, tool calls, and the
comparison of its tools with the pins."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import structlog

from config.sections.mcp import McpServerSettings
from services.clock import Clock, Deadlines
from services.mcp.opening import RateLimiter
from services.mcp.problems import (
    ConnectionLost,
    LoginRequired,
    NotSent,
    ServerError,
    Superseded,
    Unreachable,
    Withdrawn,
)
from services.mcp.tools import LookUp, OnProgress, Pins, PinState, Questions, Replies, ToolAnswer
from services.refs import JsonObject
from services.retry import Retry, RetryDecision, RetryPolicy

if TYPE_CHECKING:
    from services.mcp.connection import Connection

_PATIENCE = RetryPolicy(attempts=13, first_wait_seconds=1.0, longest_wait_seconds=300.0)
_LATER_SECONDS = 300.0
_LOGIN_SECONDS = 30.0
"""Interval for checking whether somebody has logged in."""
_SHORT_LIFE_SECONDS = 60.0
"""A connection that ends within this time counts as a failure and delays the next attempt."""
_LOOK_SECONDS = 600.0
"""Interval for listing the tools again, since not every server reports changes."""
_MARGIN_SECONDS = 1.0
_LINES_PER_MINUTE = 20
_log = structlog.get_logger("mcp")
T = TypeVar("T")


class McpServer:
    """One server with fixed settings. `run` maintains the connection; calls work without it until `refuse`."""

    def __init__(
        self,
        settings: McpServerSettings,
        pins: Pins,
        clock: Clock,
        opening: Callable[[], Awaitable[Connection]],
        *,
        asks_first: bool = True,
    ) -> None:
        """`opening` opens a connection or raises Unreachable. `asks_first`: connect and list the tools of an unknown
        server without waiting for a call."""
        self._settings = settings
        self._pins = pins
        self._clock = clock
        self._connect = opening
        self._asks_first = asks_first
        self._deadlines = Deadlines(clock)
        self._retry = Retry(clock, _PATIENCE)
        self._rate_limiter = RateLimiter(_LINES_PER_MINUTE, 60.0, clock)
        self._pins_changed = asyncio.Event()
        self._wanted = asyncio.Event()
        self._used_at = self._compared_at = clock.monotonic()
        self._calls = 0
        self._link: Connection | None = None
        self._opening: asyncio.Task[Connection] | None = None
        self._comparing = asyncio.Lock()
        self._is_refused = False
        self.problem = ""
        """Why the last connection attempt failed, without server text; empty after a success."""
        self.problems: tuple[str, ...] = ()
        """Problems in the server's tool list, without server text."""
        self.news = asyncio.Event()
        """Set when a problem appears or disappears; the listener clears it."""

    async def run(self) -> None:
        """Maintain the connection until cancelled: open it to list unknown tools, reopen it after a loss, and close it
        when idle. Ends with `refuse` and a closed connection."""
        self._is_refused = False
        try:
            with self._pins.watched(self._settings.name, self._pins_changed), suppress(Superseded):
                while True:
                    self._pins_changed.clear()
                    if self._asks_first and self._has_no_pins:
                        self._wanted.set()
                    await _first_of(self._wanted.wait(), self._pins_changed.wait())
                    if self._wanted.is_set():
                        await self._keep_connected()
        finally:
            self.refuse()
            await self._close()

    async def call(
        self,
        tool: str,
        digest: str,
        arguments: JsonObject,
        *,
        deadline: float,
        may_repeat: bool,
        on_progress: OnProgress,
        replies: Replies | None = None,
    ) -> ToolAnswer | Questions:
        """Call `tool` if its accepted definition still has `digest`, or continue the call that `replies` answers.
        `may_repeat` permits a second attempt after a lost connection. `deadline` is a time of the clock's `monotonic()`
        before which the connection must be open. Raises ServerError: Withdrawn, Superseded after `refuse`, Unreachable
        if the server received nothing, ConnectionLost if the outcome is unknown."""

        async def call(link: Connection) -> ToolAnswer | Questions:
            pin = self._pins.of(self._settings.name).get(tool)
            if pin is None or pin.state is not PinState.ACCEPTED or pin.digest != digest:
                raise Withdrawn(f"the tool {tool!r} does not have the accepted definition")
            return await link.call(tool, arguments, on_progress, replies)

        return await self._request(call, deadline, may_repeat=may_repeat)

    async def look_up(self, request: LookUp, *, deadline: float) -> ToolAnswer:
        """Resources or prompts of the server. Raises ServerError as `call` does."""
        return await self._request(lambda link: link.look_up(request), deadline, may_repeat=True)

    async def _request(self, request: Callable[[Connection], Awaitable[T]], deadline: float, *, may_repeat: bool) -> T:
        """Result of `request` over an open connection, repeated once if it was not sent or may be repeated."""
        self._calls += 1
        try:
            try:
                return await request(await self._fresh(deadline))
            except NotSent:
                _log.info("mcp_request_not_sent", server=self._settings.name)
            except ConnectionLost:
                if not may_repeat:
                    raise
            try:
                return await request(await self._fresh(deadline))
            except NotSent as error:
                raise Unreachable(str(error), member_text=error.member_text) from error
        finally:
            self._calls -= 1
            self._used_at = self._clock.monotonic()

    def refuse(self) -> None:
        """Refuse further calls, which then raise Superseded, because the settings were replaced or removed."""
        self._is_refused = True

    @property
    def _has_no_pins(self) -> bool:
        return not self._pins.of(self._settings.name)

    async def _fresh(self, deadline: float) -> Connection:
        """An open connection whose tools were compared with the pins. Raises ServerError: Unreachable if connecting
        takes too long."""
        now = self._clock.monotonic()
        # Leave time for the answer: a timeout while connecting means that nothing was sent, and must not be confused
        # with a late answer.
        by = max(deadline - _MARGIN_SECONDS, now + (deadline - now) / 2)
        try:
            self._wanted.set()
            return await self._deadlines.run(self._compared(), by)
        except TimeoutError:
            raise Unreachable(member_text="it takes too long to connect") from None

    async def _compared(self) -> Connection:
        """An open connection whose tools were compared since the last reported change. Raises ServerError: Superseded
        after `refuse`, Unreachable if it cannot be opened."""
        link = await self._opened()
        if link.changed.is_set() or self._comparing.locked():
            await self._compare_tools(link, even_if_unchanged=False)
        if self._is_refused:
            raise Superseded
        return link

    async def _opened(self) -> Connection:
        """Return the open connection or open one, in a separate task that outlives a cancelled caller and serves all
        others. Raises Unreachable, also after `connect_seconds`, and Superseded after `refuse` or `_close`."""
        if self._is_refused:
            raise Superseded
        if self._link is not None and self._link.is_open:
            return self._link
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
            # Retrieves the exception if no caller awaits the task any more.
            self._opening.add_done_callback(lambda task: task.cancelled() or task.exception())
        opening = self._opening
        await asyncio.wait([opening])
        if opening.cancelled():
            # Cancelled by `_close`, not by the caller.
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
            await self._deadlines.run(self._compare_tools(link, even_if_unchanged=True), by)
        except BaseException as error:
            if link is not None:
                await link.close()
            if isinstance(error, TimeoutError):
                seconds = self._settings.connect_seconds
                error = Unreachable(member_text=f"it has not answered within {seconds:g} seconds")
            if not isinstance(error, ServerError):
                raise
            self._set_problem(error)
            if isinstance(error, Unreachable):
                raise error from None
            raise Unreachable(str(error), member_text=error.member_text) from None
        finally:
            self._opening = None
        self._link = link
        self._set_problem(None)
        return link

    async def _close(self) -> None:
        """Close the connection and cancel an attempt to open it. Waiting callers get Superseded; unless it is refused,
        the next caller opens a new connection."""
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.cancel()
            await asyncio.wait([opening])
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    async def _compare_tools(self, link: Connection, *, even_if_unchanged: bool) -> None:
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
            self._compared_at = self._clock.monotonic()
        if listing.details:
            self._note("mcp_tools_left_out", details=list(listing.details))
        if listing.problems != self.problems:
            self.problems = listing.problems
            self.news.set()

    def _set_problem(self, problem: ServerError | None) -> None:
        """Set the current problem; None clears it. The log gets the details."""
        member_text = "" if problem is None else problem.member_text
        is_known = isinstance(problem, LoginRequired) and member_text == self.problem
        if (problem is not None or self.problem) and not is_known:
            self._note("mcp_server", problem="none" if problem is None else str(problem))
        if member_text != self.problem:
            self.problem = member_text
            self.news.set()

    def _note(self, event: str, **facts: object) -> None:
        """Log at a limited rate, because the server causes the entries."""
        if self._rate_limiter.allow():
            _log.info(event, server=self._settings.name, **facts)

    async def _keep_connected(self) -> None:
        """Keep a connection open, with growing pauses after failures; returns after closing an idle connection."""
        while self._wanted.is_set():
            try:
                await self._retry.run(
                    self._maintain,
                    on=Unreachable,
                    judge=lambda error: RetryDecision(retry=not isinstance(error, LoginRequired)),
                    deadline=float("inf"),
                )
            except LoginRequired:
                await self._clock.sleep(_LOGIN_SECONDS)
            except Unreachable:
                await self._clock.sleep(_LATER_SECONDS)

    async def _maintain(self) -> None:
        """Open one connection and maintain it until it ends. Raises Unreachable if it did not open or ended too
        soon."""
        link = await self._opened()
        began = self._clock.monotonic()
        while link.is_open:
            await _first_of(
                link.ended(), link.changed.wait(), self._pins_changed.wait(), self._clock.sleep(self._wait_seconds())
            )
            self._pins_changed.clear()
            if self._is_idle() and not link.has_waiting_calls:
                self._wanted.clear()
                await self._close()
                return
            if link.is_open:
                await self._compare_if_due(link)
        if self._clock.monotonic() - began < _SHORT_LIFE_SECONDS:
            problem = Unreachable(member_text="the connection ended soon after it began")
            self._set_problem(problem)
            raise problem

    async def _compare_if_due(self, link: Connection) -> None:
        """Compare the tools with the pins if that is due; close the connection if it fails."""
        is_due = self._clock.monotonic() - self._compared_at >= _LOOK_SECONDS
        try:
            await self._compare_tools(link, even_if_unchanged=is_due or self._has_no_pins)
        except ServerError as error:
            self._set_problem(error)
            await link.close()

    def _wait_seconds(self) -> float:
        idle = self._settings.idle_seconds
        return min(_LOOK_SECONDS, idle) if idle else _LOOK_SECONDS

    def _is_idle(self) -> bool:
        idle = self._settings.idle_seconds
        return bool(idle) and not self._calls and self._clock.monotonic() - self._used_at >= idle


async def _first_of(*waits: Awaitable[object]) -> None:
    """Return when the first awaitable is done; cancel the others."""
    tasks = [asyncio.ensure_future(one) for one in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
