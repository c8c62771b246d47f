"""Schedules that scripts have set: they go when the script is gone, or sets none any more."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import structlog

from function_calls.registry import BotFunctions
from function_calls.script_keywords.schedules import KEYWORD
from function_calls.script_library.specs import KEYWORDS
from function_calls.spec import FunctionSpec
from services.basic_tools import BasicTools
from services.clock import Clock
from services.schedules import SCRIPTS, Schedules, script_of

GRACE_SECONDS = 120
"""How long a script may be gone before what it has set goes too."""
_log = structlog.get_logger("schedules")


class ScriptSchedules:
    """Takes away what no script stands behind any more."""

    def __init__(
        self, schedules: Schedules, functions: Callable[[str], BotFunctions], kept: BasicTools, clock: Clock
    ) -> None:
        self._schedules = schedules
        self._absences = Absences(clock)
        self._functions = functions
        self._kept = kept
        self._seen: tuple[frozenset[str], dict[str, BotFunctions]] = frozenset(), {}

    async def keep_in_step(self) -> None:
        """Look through them where they, or the functions of their bots, have changed since the last time."""
        names = await self._schedules.declared(SCRIPTS)
        bots = {script_of(name)[0] for name in names}
        now = {bot: self._functions(bot) for bot in bots}
        # A run that began with the script may have set one after that was gone.
        is_known = self._seen[0].issuperset(names)
        if is_known and all(self._seen[1].get(bot) is functions for bot, functions in now.items()):
            return
        active = {(row.bot, row.tool_name) for row in await self._kept.everything() if row.is_active}
        for name in names:
            bot, script = script_of(name)
            spec = now[bot].find(script)
            stands = stands_behind({KEYWORD}, spec, is_kept=(bot, script) in active)
            if not stands and not self._absences.is_short((bot, script), spec):
                await self._schedules.declare(SCRIPTS, name, None)
                _log.info("schedule_of_a_script_removed", script=script, bot=bot)
        self._absences.there(script_of(name) for name in names if now[script_of(name)[0]].find(script_of(name)[1]))
        # Whoever is missing for a short while is looked for again.
        self._seen = (frozenset(), {}) if self._absences.any else (frozenset(names), now)


class Absences:
    """How long scripts have been gone. A folder that is written anew, by a copy or from a repository, is empty for a
    moment, and what its scripts have set is to outlast that."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: dict[tuple[str, str], float] = {}

    @property
    def any(self) -> bool:
        """Whether anything is gone that was not gone for long when it was asked for."""
        return bool(self._since)

    def is_short(self, script: tuple[str, str], spec: FunctionSpec | None) -> bool:
        """Whether the script (bot and name) is gone, and since so lately that it may come back."""
        if spec is not None:
            return False
        now = self._clock.monotonic()
        if now - self._since.setdefault(script, now) < GRACE_SECONDS:
            return True
        del self._since[script]
        return False

    def there(self, scripts: Iterable[tuple[str, str]]) -> None:
        """These are there."""
        for one in scripts:
            self._since.pop(one, None)


def stands_behind(keywords: Collection[str], spec: FunctionSpec | None, *, is_kept: bool) -> bool:
    """Whether a script still bears what set something: one of `keywords`. One that cannot be read for the moment, and
    is kept, may be mended: what it set waits for it."""
    if spec is None:
        return is_kept
    return any(keyword in keywords for keyword in spec.metadata.get(KEYWORDS, ()))
