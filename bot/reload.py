"""The settings, read again while the daemon runs: what chats see changes at once, the rest with the next start."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from bot.chats import Chats
from config.settings import Settings

_log = structlog.get_logger("reload")

# What is resolved for each chat when a message comes, or kept in step. All else was built into the daemon's parts at
# the start.
LIVE = frozenset({"language", "timezone", "rollout", "bots", "functions", "chats", "members", "schedules"})


class Reload:
    """Puts new settings in the place of the old ones. Faulty ones change nothing."""

    def __init__(self, settings: Settings, chats: Chats, read: Callable[[], Settings | None]) -> None:
        """`read` gives the settings as they are in the file now; None when they have errors, which it has told."""
        self._settings = settings
        self._chats = chats
        self._read = read

    def now(self) -> bool:
        """Read and use the settings; whether they could be used. What needs a new start is named in the log."""
        fresh = self._read()
        if fresh is None:
            _log.error("settings_not_reloaded", kept="the settings that were in force")
            return False
        before, self._settings = self._settings, fresh
        changed = {name for name in Settings.model_fields if getattr(before, name) != getattr(fresh, name)}
        self._chats.use(fresh)
        _log.info("settings_reloaded", changed=sorted(changed), from_the_next_start=_later(changed, before, fresh))
        return True


def _later(changed: set[str], before: Settings, fresh: Settings) -> list[str]:
    """What of `changed` waits for the next start."""
    later = changed - LIVE
    if _same_but_switch(before, fresh):
        later -= {"router"}
    if _names(before) != _names(fresh):
        later |= {"bots.*.name", "bots.*.aliases"}
    return sorted(later)


def _names(settings: Settings) -> set[str]:
    """The words that address a bot, which the platforms know from the start on."""
    return {name for bot in settings.bots.values() for name in (bot.name, *bot.aliases)}


def _same_but_switch(before: Settings, fresh: Settings) -> bool:
    """Whether `router.enabled`, which holds at once, is all that has changed in its section."""
    return before.router.model_copy(update={"enabled": fresh.router.enabled}) == fresh.router
