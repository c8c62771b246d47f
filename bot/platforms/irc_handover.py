"""Between the network and the daemon: what was said waits here, in its order, until it is durable."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import structlog

from bot.platforms.base import Deliver
from function_calls.context import MessageContext
from services.clock import Clock
from services.store.port import BadUnit, StoreError, StoreFull

_log = structlog.get_logger("irc")
_WAITING = 2000
"""Beyond so many nothing is read any more, and the server has to wait."""
_FULL_DISK_SECONDS = 5.0
_LAST_SECONDS = 5.0


class Handover:
    """A queue from one network to the daemon."""

    def __init__(self, network: str, clock: Clock) -> None:
        self._network = network
        self._clock = clock
        self._waiting: asyncio.Queue[MessageContext] = asyncio.Queue(_WAITING)
        self._takers = 0
        self._refused = 0

    async def put(self, context: MessageContext) -> None:
        """Hand over `context` after all others. While nobody takes anything, because the daemon is ending, it is only
        counted: the network would not send it again."""
        if self._takers:
            await self._waiting.put(context)
        else:
            self._refused += 1

    async def run(self, deliver: Deliver, beside: asyncio.Task[None]) -> None:
        """Hand over until cancelled; then what waits already. Raises what ends `beside`, which nothing may."""
        self._takers += 1
        taking = asyncio.create_task(self._take(deliver))
        try:
            await asyncio.wait([taking, beside], return_when=asyncio.FIRST_COMPLETED)
            for ended in (taking, beside):
                if ended.done() and not ended.cancelled():
                    ended.result()
        finally:
            self._takers -= 1
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_SECONDS):
                    await self._waiting.join()
            taking.cancel()
            await asyncio.gather(taking, return_exceptions=True)

    def report(self) -> None:
        """Say what was not handed over."""
        lost = self._refused + self._waiting.qsize()
        if lost:
            _log.warning("irc_not_taken", network=self._network, messages=lost, because="the daemon was ending")

    async def _take(self, deliver: Deliver) -> None:
        while True:
            context = await self._waiting.get()
            try:
                await self._deliver(deliver, context)
            finally:
                self._waiting.task_done()

    async def _deliver(self, deliver: Deliver, context: MessageContext) -> None:
        while True:
            try:
                await deliver(context, ())
            except StoreFull as problem:
                _log.error("irc_waits_for_room", network=self._network, problem=str(problem))
                await self._clock.sleep(_FULL_DISK_SECONDS)
            except BadUnit as problem:
                _log.error("irc_message_cannot_be_stored", network=self._network, problem=str(problem))
                return
            except StoreError as problem:
                # The process is about to end.
                _log.error("irc_message_not_taken", network=self._network, problem=str(problem))
                return
            else:
                return
