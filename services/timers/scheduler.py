"""Repeated errands within this process, on APScheduler. Nothing is stored: rows in the store say what is due."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import structlog

from services.clock import SystemClock

_log = structlog.get_logger("scheduler")
_WATCH_SECONDS = 0.5
_STEP_SECONDS = 0.25
"""A smaller difference between the two clocks is drift."""


class Ticker:
    """Calls errands at intervals of monotonic time; one that fails is logged and called again next time.

    APScheduler waits until an instant of the wall clock. When that clock is set back, the wait would grow by the size
    of the step; when it is set ahead, jobs would run early. So each job runs once, at the instant that its monotonic
    due time has now, and a watchdog on the event loop's clock moves all jobs when the wall clock was set.
    """

    def __init__(self) -> None:
        # Imported here: it costs a tenth of a second, which commands that schedule nothing need not pay.
        from apscheduler.schedulers.asyncio import AsyncIOScheduler

        self._scheduler = AsyncIOScheduler(timezone="UTC", job_defaults={"misfire_grace_time": None})
        self._clock = SystemClock()
        self._due: dict[str, float] = {}
        self._ahead = 0.0
        self._watching: asyncio.TimerHandle | None = None

    def every(
        self, seconds: float, name: str, errand: Callable[[], Awaitable[None]], *, first_seconds: float | None = None
    ) -> None:
        """Call `errand` every `seconds`, counted from the end of the previous call; the first time after
        `first_seconds`."""

        async def run() -> None:
            if self._clock.monotonic() >= self._due[name]:
                try:
                    await errand()
                except asyncio.CancelledError:
                    # Only the end of the ticker cancels an errand, and the scheduler would log that as a failure.
                    return
                except Exception as error:  # noqa: BLE001 - an errand that fails must not end the ones to come
                    _log.error("errand_failed", errand=name, exc_info=error)
                self._due[name] = self._clock.monotonic() + seconds
            plan()

        def plan() -> None:
            # By its name: a job of the same id would be refused while this one has not quite ended.
            self._scheduler.add_job(run, "date", run_date=self._instant_of(name), name=name)

        self._due[name] = self._clock.monotonic() + (seconds if first_seconds is None else first_seconds)
        plan()

    def start(self) -> None:
        """Begin to tick, in the running loop."""
        self._scheduler.start()
        self._ahead = self._seconds_ahead()
        self._watch()

    def stop(self) -> None:
        """Call nothing more."""
        if self._watching is not None:
            self._watching.cancel()
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)

    def _watch(self) -> None:
        """Move all jobs if the wall clock was set since the last look."""
        ahead = self._seconds_ahead()
        step, self._ahead = ahead - self._ahead, ahead
        if abs(step) > _STEP_SECONDS:
            _log.warning("wall_clock_was_set", seconds=round(step, 1))
            for job in self._scheduler.get_jobs():
                job.modify(next_run_time=self._instant_of(job.name))
        self._watching = asyncio.get_running_loop().call_later(_WATCH_SECONDS, self._watch)

    def _instant_of(self, name: str) -> datetime:
        return self._clock.now() + timedelta(seconds=self._due[name] - self._clock.monotonic())

    def _seconds_ahead(self) -> float:
        return self._clock.now().timestamp() - self._clock.monotonic()
