"""Commands in menus: of networks, and of the page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

import structlog

from bot.platforms.base import ChatPlatform, CommandHint, CommandMenus, SendFailed, is_here
from config.settings import DEFAULT_BOT
from config.texts import FALLBACK, Phrases
from function_calls.checks.permissions import roles_here
from function_calls.profile import ChatProfile
from function_calls.registry import BotFunctions
from function_calls.schema.commands import by_heading, short_about, spoken_name, usage_line
from services.clock import Clock
from services.refs import Role
from services.retry import RetryPolicy

_log = structlog.get_logger("menus")
_DELAYS = RetryPolicy(first_wait_seconds=5.0, longest_wait_seconds=600.0)
Menus = Callable[[], Mapping[str, Sequence[CommandHint]]]
"""Returns the commands that members may type, by language."""


def command_hints(functions: BotFunctions, profile: ChatProfile, role: Role, texts: Phrases) -> list[CommandHint]:
    """The commands of a role in a chat that are set up, described in the language of `texts`: in the order of the help,
    restricted ones last. Words in that language come first, then the English ones."""
    usable = [spec for spec in functions.specs if spec.command.words and role in roles_here(spec, profile)]
    specs = [spec for listed in by_heading(usable, texts).values() for spec in listed if spec.is_set_up(DEFAULT_BOT)]
    specs.sort(key=lambda spec: Role.MEMBER not in spec.access.roles)
    hints: dict[str, CommandHint] = {}
    for language in (texts.language, FALLBACK):
        for spec in specs:
            word = spoken_name(spec, language)
            usage = word if texts.has(f"help.typed.{spec.name}") else usage_line(spec, language)
            hints.setdefault(word, CommandHint(word, short_about(spec, texts), usage))
    return [*hints.values()]


class ShownMenus:
    """Keeps the menus of networks up to date."""

    def __init__(self, platforms: Sequence[ChatPlatform], menus: Menus, clock: Clock) -> None:
        self._platforms = [one for one in platforms if isinstance(one, CommandMenus)]
        self._menus = menus
        self._clock = clock
        self._changed = asyncio.Event()

    def changed(self) -> None:
        """Show the menus again if the functions differ, and on networks that this process has taken over."""
        self._changed.set()

    async def run(self) -> None:
        """Show the menus until cancelled, again after changes."""
        shown: dict[int, Mapping[str, Sequence[CommandHint]]] = {}
        while self._platforms:
            self._changed.clear()
            menus = self._menus()
            due = [
                number
                for number, platform in enumerate(self._platforms)
                if is_here(platform) and shown.get(number) != menus
            ]
            shown |= dict.fromkeys(due, menus)
            await asyncio.gather(*(self._show(self._platforms[number], menus) for number in due))
            await self._changed.wait()

    async def _show(self, platform: CommandMenus, menus: Mapping[str, Sequence[CommandHint]]) -> None:
        """Show `menus` on one network, with retries until the functions change."""
        failures = 0
        while not self._changed.is_set():
            try:
                await platform.show_commands(menus)
            except SendFailed as problem:
                failures += 1
                _log.warning("menu_not_shown", problem=str(problem))
                if not problem.retryable:
                    return
                await self._clock.sleep(problem.retry_after_seconds or _DELAYS.wait_after(failures))
            else:
                return
