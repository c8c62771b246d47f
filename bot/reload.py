"""The settings, read again while the daemon runs: all of them are put in force at once, or none; faulty ones change
nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from pathlib import Path

import structlog

from bot.live_settings import LiveSettings, Replacement
from config.diagnostics import Diagnostic
from config.loader import SettingsInvalid
from config.settings import Settings
from function_calls.definition import DefinitionError
from function_calls.definition_faults import faults_of
from function_calls.source import Changes
from services.fault_points import FaultPoints

_log = structlog.get_logger("reload")


class Reload:
    """Puts new settings in the place of the old ones."""

    def __init__(
        self, live: LiveSettings, read: Callable[[], Settings] | None = None, faults: FaultPoints | None = None
    ) -> None:
        """`read` gives the settings as they are in the file now, and raises SettingsInvalid. None: they stay as they
        are."""
        self._live = live
        self._read = read or (lambda: live.now)
        self._reach = (faults or FaultPoints()).reach
        self._one_at_a_time = asyncio.Lock()
        self._waiting: Sequence[str] = []
        self._on_change: list[Callable[[], None]] = []
        self.faults: tuple[Diagnostic, ...] = ()
        """Why the file as it is now cannot be used; empty: it is in force."""

    def on_change(self, told: Callable[[], None]) -> None:
        """Call `told` after `faults` have changed."""
        self._on_change.append(told)

    async def follow(self, file: Path, changes: Changes) -> None:
        """Read the settings again whenever `file`, or a file that they name, has changed; until cancelled, or until
        nobody tells of changes any more."""
        while True:
            files = [file, *self._live.files()]
            async with aclosing(changes.of(*files)) as told:
                async for _ in told:
                    await self.now(is_asked_for=False)
                    if [file, *self._live.files()] != files:
                        break
                else:
                    return

    async def now(self, *, is_asked_for: bool = True) -> bool:
        """Read the settings and use them; whether they could be used. What needs a new start is named in the log.
        Where somebody asked for it the log has a line even if nothing is other than it was."""
        async with self._one_at_a_time:
            try:
                replacement = await asyncio.to_thread(self._prepared)
            except SettingsInvalid as error:
                return self._kept(error.diagnostics.errors, is_asked_for=is_asked_for)
            except DefinitionError as error:
                return self._kept(faults_of(error), is_asked_for=is_asked_for)
            is_news = bool(replacement.uses or self.faults or replacement.waiting != self._waiting)
            self._live.put(replacement, lambda: self._reach("reload.during_swap"))
            self._waiting = replacement.waiting
            if is_news or is_asked_for:
                _log.info(
                    "settings_reloaded",
                    changed=list(replacement.changed),
                    from_the_next_start=list(replacement.waiting),
                )
            self._tell(())
            return True

    def _prepared(self) -> Replacement:
        return self._live.replacement(self._read())

    def _kept(self, faults: Sequence[Diagnostic], *, is_asked_for: bool) -> bool:
        """What was in force stays so."""
        if is_asked_for or tuple(faults) != self.faults:
            _log.error("settings_invalid", faults=[str(one) for one in faults])
            _log.error("settings_not_reloaded", kept="the settings that were in force")
        self._tell(tuple(faults))
        return False

    def _tell(self, faults: tuple[Diagnostic, ...]) -> None:
        if faults == self.faults:
            return
        self.faults = faults
        for told in self._on_change:
            told()
