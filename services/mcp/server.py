"""A server of tools as the daemon knows it: its tools called, and the connection looked after meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from config.sections.mcp import McpServerSettings
from services.clock import Clock, Deadlines
from services.mcp.link import Link, OneLink, OnProgress
from services.mcp.problems import ConnectionLost, NotSent, ServerError, Superseded, Unreachable, Withdrawn
from services.mcp.tools import Pins, PinState, ToolAnswer
from services.refs import JsonObject
from services.retry import Retry, RetryDecision, RetryPolicy

_PATIENCE = RetryPolicy(attempts=13, first_wait_seconds=1.0, longest_wait_seconds=300.0)
_LATER_SECONDS = 300.0
_SHORT_LIFE_SECONDS = 60.0
"""A connection that lasted no longer has failed: the next one is not opened at once."""
_LOOK_SECONDS = 600.0
"""So often the tools are listed again, since not every server tells that they have changed."""
_MARGIN_SECONDS = 1.0
_log = structlog.get_logger("mcp")


class McpServer:
    """One server, by settings that stay the same. `run` has to be running for it to be looked after; calls find their
    way without, until they are refused."""

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
        self._one = OneLink(settings, pins, clock, opening)
        self._asks_first = asks_first
        self._deadlines = Deadlines(clock)
        self._retry = Retry(clock, _PATIENCE)
        self._pins_changed = asyncio.Event()
        self._wanted = asyncio.Event()
        self._used_at = clock.monotonic()
        self._calls = 0

    @property
    def problem(self) -> str:
        """Why there is no connection although one was wanted, in a sentence of ours; empty where there is none to
        complain of."""
        return self._one.problem

    @property
    def problems(self) -> tuple[str, ...]:
        """What of its list of tools cannot be used, in sentences of ours."""
        return self._one.problems

    def on_change(self, told: Callable[[], None]) -> None:
        """Call `told` when a problem has come or gone."""
        self._one.on_change(told)

    async def run(self) -> None:
        """Look after the connection until cancelled: open it where nothing is known of the tools, keep it open once it
        was, and close it where nobody calls."""
        self._one.allow()
        try:
            with self._pins.watched(self._settings.name, self._pins_changed), suppress(Superseded):
                while True:
                    self._pins_changed.clear()
                    if self._asks_first and self._is_unknown:
                        self._wanted.set()
                    await _first_of(self._wanted.wait(), self._pins_changed.wait())
                    if self._wanted.is_set():
                        await self._keep()
        finally:
            self.refuse()
            await self._one.close()

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
        has to be there. Raises ServerError: Withdrawn, Superseded once they are refused, Unreachable where the server
        has heard nothing, ConnectionLost where nobody knows what it did."""
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
                raise Unreachable(str(error), said=error.said) from error
        finally:
            self._calls -= 1
            self._used_at = self._clock.monotonic()

    def refuse(self) -> None:
        """From now on no call is made: other settings have taken the place of these, or none."""
        self._one.refuse()

    @property
    def _is_unknown(self) -> bool:
        return not self._pins.of(self._settings.name)

    async def _called(
        self, tool: str, digest: str, arguments: JsonObject, deadline: float, on_progress: OnProgress
    ) -> ToolAnswer:
        """What `tool` gives over an open connection whose tools were compared with the pins. Raises ServerError."""
        now = self._clock.monotonic()
        # What was not sent in time was not done either: that must not be confused with an answer that is too late.
        by = max(deadline - _MARGIN_SECONDS, now + (deadline - now) / 2)
        try:
            self._wanted.set()
            link = await self._deadlines.run(self._one.fresh(), by)
        except TimeoutError:
            raise Unreachable(said="it takes too long to connect") from None
        pin = self._pins.of(self._settings.name).get(tool)
        if pin is None or pin.state is not PinState.ACCEPTED or pin.digest != digest:
            raise Withdrawn(f"the tool {tool!r} is not, or not any more, what was accepted")
        return await link.call(tool, arguments, on_progress)

    async def _keep(self) -> None:
        """Keep a connection open, with more and more patience where it fails; return when it was closed because nobody
        called."""
        while self._wanted.is_set():
            with suppress(Unreachable):
                await self._retry.run(
                    self._live, on=Unreachable, judge=lambda error: RetryDecision(retry=True), deadline=float("inf")
                )
                continue
            await self._clock.sleep(_LATER_SECONDS)

    async def _live(self) -> None:
        """One connection from its beginning to its end. Raises Unreachable for one that was none or did not last."""
        link = await self._one.opened()
        began = self._clock.monotonic()
        while link.is_open:
            await _first_of(
                link.ended(), link.changed.wait(), self._pins_changed.wait(), self._clock.sleep(self._rest_seconds())
            )
            self._pins_changed.clear()
            if self._is_idle():
                self._wanted.clear()
                await self._one.close()
                return
            if link.is_open:
                await self._look_again(link)
        if self._clock.monotonic() - began < _SHORT_LIFE_SECONDS:
            problem = Unreachable(said="the connection ended soon after it began")
            self._one.complain(problem)
            raise problem

    async def _look_again(self, link: Link) -> None:
        """Compare the tools with the pins where it is time to. A connection over which that cannot be done is ended."""
        is_due = self._clock.monotonic() - self._one.looked_at >= _LOOK_SECONDS
        try:
            await self._one.look(link, anyway=is_due or self._is_unknown)
        except ServerError as error:
            self._one.complain(error)
            await link.close()

    def _rest_seconds(self) -> float:
        idle = self._settings.idle_seconds
        return min(_LOOK_SECONDS, idle) if idle else _LOOK_SECONDS

    def _is_idle(self) -> bool:
        idle = self._settings.idle_seconds
        return bool(idle) and not self._calls and self._clock.monotonic() - self._used_at >= idle


async def _first_of(*waits: Awaitable[object]) -> None:
    """Return when the first of them is done; the others are dropped."""
    tasks = [asyncio.ensure_future(one) for one in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
