"""APScheduler as a ticker within this process. It keeps nothing: what is due is decided by rows in the store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import structlog

_log = structlog.get_logger("scheduler")


class Ticker:
    """Calls errands every so many seconds; one that fails is logged and called again next time."""

    def __init__(self) -> None:
        # Imported here: it costs a tenth of a second, which commands that schedule nothing need not pay.
        from apscheduler.schedulers.asyncio import AsyncIOScheduler

        self._scheduler = AsyncIOScheduler(
            timezone="UTC", job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
        )

    def every(
        self, seconds: float, name: str, errand: Callable[[], Awaitable[None]], *, first_seconds: float | None = None
    ) -> None:
        """Call `errand` every `seconds`, never twice at once; the first time after `first_seconds`."""

        async def run() -> None:
            try:
                await errand()
            except asyncio.CancelledError:
                # Only the end of the ticker cancels an errand, and the scheduler would log that as a failure.
                return
            except Exception as error:  # noqa: BLE001 - an errand that fails must not end the ones to come
                _log.error("errand_failed", errand=name, exc_info=error)

        first = datetime.now(UTC) + timedelta(seconds=seconds if first_seconds is None else first_seconds)
        self._scheduler.add_job(run, "interval", seconds=seconds, id=name, next_run_time=first)

    def start(self) -> None:
        """Begin to tick, in the running loop."""
        self._scheduler.start()

    def stop(self) -> None:
        """Call nothing more."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)
