"""Schedules that scripts have set: they go when the script is gone, or sets none any more."""

from __future__ import annotations

from collections.abc import Callable, Collection

import structlog

from function_calls.registry import BotFunctions
from function_calls.script_keywords.schedules import KEYWORD
from function_calls.script_library.specs import KEYWORDS
from function_calls.spec import FunctionSpec
from services.basic_tools import BasicTools
from services.schedules import SCRIPTS, Schedules, script_of

_log = structlog.get_logger("schedules")


class ScriptSchedules:
    """Takes away what no script stands behind any more."""

    def __init__(self, schedules: Schedules, functions: Callable[[str], BotFunctions], kept: BasicTools) -> None:
        self._schedules = schedules
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
            if not stands_behind({KEYWORD}, spec, is_kept=(bot, script) in active):
                await self._schedules.declare(SCRIPTS, name, None)
                _log.info("schedule_of_a_script_removed", script=script, bot=bot)
        self._seen = frozenset(names), now


def stands_behind(keywords: Collection[str], spec: FunctionSpec | None, *, is_kept: bool) -> bool:
    """Whether a script still bears what set something: one of `keywords`. One that cannot be read for the moment, and
    is kept, may be mended: what it set waits for it."""
    if spec is None:
        return is_kept
    return any(keyword in keywords for keyword in spec.metadata.get(KEYWORDS, ()))
