"""Scheduled backups of the SQLite database, and how the last one went."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import structlog

from bot.database import database_of
from config.diagnostics import Diagnostic
from config.settings import Settings
from services.clock import Clock
from services.store.backups import back_up, backups_in, taken_at
from services.store.port import StoreError
from services.threads import Threads

_log = structlog.get_logger("backups")


def backups_of(settings: Settings) -> Path:
    """The folder of backups."""
    return Path(settings.home) / "backups"


class Backups:
    """Makes a backup when the newest one is older than `store.backup_every_hours`."""

    def __init__(self, settings: Settings, clock: Clock, changed: Callable[[], None]) -> None:
        """`changed` is called when a backup failed, or was made after one that failed."""
        self._path, self._folder = database_of(settings), backups_of(settings)
        self._every_seconds = 0 if settings.store.is_on_a_server else settings.store.backup_every_hours * 3600
        self._keep = settings.store.backups_kept
        self._clock = clock
        self._changed = changed
        self._threads = Threads(most_at_once=1)
        self._problem = ""

    @property
    def are_scheduled(self) -> bool:
        """Whether the settings want any."""
        return self._every_seconds > 0

    @property
    def faults(self) -> Sequence[Diagnostic]:
        """Why the last backup could not be made; empty when it was."""
        return [Diagnostic(str(self._folder), 0, 0, "store.backup_failed", self._problem)] if self._problem else []

    @property
    def state(self) -> str:
        """`ok`, or what an operator has to know, without paths."""
        if self._problem:
            return "failed; the log says why"
        age = self.age_seconds()
        if age == float("inf"):
            return "none yet"
        return "ok" if age < 2 * self._every_seconds else "overdue"

    def age_seconds(self) -> float:
        """The time since the newest backup was begun; infinite where there is none."""
        times = [taken_at(one) for one in backups_in(self._path, self._folder)[:1]]
        return min((self._clock.now().timestamp() - at.timestamp() for at in times if at), default=float("inf"))

    async def keep_up(self) -> None:
        """Make a backup if one is due. A failure is logged, and tried again at the next call."""
        # A backup from the future was named by a clock that was wrong.
        if not self.are_scheduled or 0 <= self.age_seconds() < self._every_seconds:
            return
        had_failed = bool(self._problem)
        try:
            made = await self._threads.run(
                back_up, self._path, self._folder, label="scheduled", clock=self._clock, keep=self._keep
            )
        except StoreError as error:
            self._problem = str(error)
            _log.error("backup_failed", problem=self._problem)
        else:
            self._problem = ""
            _log.info("backup_made", file=str(made))
        if had_failed or self._problem:
            self._changed()
