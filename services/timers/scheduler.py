"""Periodic jobs within this process, on APScheduler. Nothing is stored: rows in the store have the due times."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import structlog

from services.clock import SystemClock

_log = structlog.get_logger("scheduler")
_WATCH_SECONDS = 0.5
_STEP_SECONDS = 0.25
"""Smaller differences between the two clocks are drift."""
_LAG_SECONDS = 60.0


class LongestDelay:
    """The longest of the delays of the last minute."""

    def __init__(self) -> None:
        self._recent: deque[tuple[float, float]] = deque()
        """Times and delays; each delay is longer than those after it."""

    def add(self, now: float, seconds: float) -> None:
        """Note a delay of `seconds` that ended at the monotonic time `now`."""
        while self._recent and self._recent[-1][1] <= seconds:
            self._recent.pop()
        self._recent.append((now, seconds))

    def seconds(self, now: float) -> float:
        """The longest delay of the minute before `now`; 0 if there was none."""
        while self._recent and self._recent[0][0] < now - _LAG_SECONDS:
            self._recent.popleft()
        return self._recent[0][1] if self._recent else 0.0


class Ticker:
    """Calls functions at intervals of monotonic time; a failing one is logged and called again next time.

    APScheduler waits for a time of the wall clock. If that clock is set back, the wait would grow by the size of the
    step; if it is set ahead, jobs would run early. So each job runs once, at the wall time that corresponds to its
    monotonic due time, and a watchdog on the event loop's clock reschedules all jobs when the wall clock was set.
    """

    def __init__(self) -> None:
        # Imported here because it takes a tenth of a second, and most commands need no scheduler.
        from apscheduler.schedulers.asyncio import AsyncIOScheduler

        self._scheduler = AsyncIOScheduler(timezone="UTC", job_defaults={"misfire_grace_time": None})
        self._clock = SystemClock()
        self._due: dict[str, float] = {}
        self._ahead = 0.0
        self._watching: asyncio.TimerHandle | None = None
        self._jobs_late = LongestDelay()
        self._loop_late = LongestDelay()

    @property
    def lag_seconds(self) -> float:
        """How late the latest job of the last minute began."""
        return self._jobs_late.seconds(self._clock.monotonic())

    @property
    def loop_lag_seconds(self) -> float:
        """The longest time of the last minute for which the event loop did not run what was due."""
        return self._loop_late.seconds(self._clock.monotonic())

    def every(
        self, seconds: float, name: str, errand: Callable[[], Awaitable[None]], *, first_seconds: float | None = None
    ) -> None:
        """Call `errand` every `seconds`, counted from the end of the previous call, and first after `first_seconds`
        (default: `seconds`). Calls do not overlap."""

        async def run() -> None:
            late = self._clock.monotonic() - self._due[name]
            if late >= 0:
                self._jobs_late.add(self._clock.monotonic(), late)
                try:
                    await errand()
                except asyncio.CancelledError:
                    # Cancelled by `stop` only; the scheduler would log it as a failure.
                    return
                except Exception as error:  # noqa: BLE001 - a failing job must be called again
                    _log.error("errand_failed", errand=name, exc_info=error)
                self._due[name] = self._clock.monotonic() + seconds
            plan()

        def plan() -> None:
            # Identified by name: a new job with the same id is rejected while this one has not quite ended.
            self._scheduler.add_job(run, "date", run_date=self._instant_of(name), name=name)

        self._due[name] = self._clock.monotonic() + (seconds if first_seconds is None else first_seconds)
        plan()

    def start(self) -> None:
        """Start the jobs, in the running loop."""
        self._scheduler.start()
        self._ahead = self._seconds_ahead()
        self._watch(self._clock.monotonic())

    def stop(self) -> None:
        """Stop all jobs without waiting for a running one."""
        if self._watching is not None:
            self._watching.cancel()
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)

    def _watch(self, due: float) -> None:
        """Reschedule all jobs if the wall clock was set since the last check. `due`: monotonic time of this call."""
        now = self._clock.monotonic()
        self._loop_late.add(now, max(0.0, now - due))
        ahead = self._seconds_ahead()
        step, self._ahead = ahead - self._ahead, ahead
        if abs(step) > _STEP_SECONDS:
            _log.warning("wall_clock_was_set", seconds=round(step, 1))
            for job in self._scheduler.get_jobs():
                job.modify(next_run_time=self._instant_of(job.name))
        self._watching = asyncio.get_running_loop().call_later(_WATCH_SECONDS, self._watch, now + _WATCH_SECONDS)

    def _instant_of(self, name: str) -> datetime:
        return self._clock.now() + timedelta(seconds=self._due[name] - self._clock.monotonic())

    def _seconds_ahead(self) -> float:
        return self._clock.now().timestamp() - self._clock.monotonic()
