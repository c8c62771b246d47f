"""Menus of commands on networks that have them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from bot.platforms.base import CommandHint, Deliver, SendFailed
from bot.testing import Group, TestPlatform, a_group
from tests.fakes.held import until


class WithMenus(TestPlatform):
    """A network with a menu, which stays connected."""

    def __init__(self) -> None:
        super().__init__()
        self.menus: list[Mapping[str, Sequence[CommandHint]]] = []
        self.rejections: list[SendFailed] = []

    async def run(self, deliver: Deliver) -> None:
        await asyncio.get_running_loop().create_future()

    async def show_commands(self, menus: Mapping[str, Sequence[CommandHint]]) -> None:
        if self.rejections:
            raise self.rejections.pop(0)
        self.menus.append(menus)


@asynccontextmanager
async def running(platform: WithMenus) -> AsyncIterator[Group]:
    async with a_group(platform=platform) as group:
        task = asyncio.create_task(group.daemon.run())
        try:
            yield group
        finally:
            task.cancel()
            await asyncio.wait([task])


async def test_a_menu_shows_the_commands_of_members_in_each_language() -> None:
    platform = WithMenus()
    async with running(platform):
        await until(lambda: bool(platform.menus))
        menus = platform.menus[0]
        assert list(menus) == ["en", "zh"]
        words = {language: [hint.word for hint in hints] for language, hints in menus.items()}
        assert {"/remind", "/help"} <= set(words["en"])
        assert "/提醒" in words["zh"]
        assert words["zh"].index("/提醒") < words["zh"].index("/remind")
        assert words["en"][-1] not in ("/remind", "/help")
        assert all(hint.about and "\n" not in hint.about for hints in menus.values() for hint in hints)


async def test_a_menu_that_the_network_rejects_for_now_is_shown_later() -> None:
    platform = WithMenus()
    platform.rejections = [
        SendFailed("busy", retryable=True, retry_after_seconds=7.0),
        SendFailed("not now", retryable=True),
    ]
    async with running(platform) as group:
        await until(lambda: len(platform.rejections) == 1)
        await advance(group, 7)
        await until(lambda: not platform.rejections)
        assert platform.menus == []
        await advance(group, 10)
        await until(lambda: bool(platform.menus))


async def test_functions_that_stay_the_same_do_not_show_the_menu_again() -> None:
    platform = WithMenus()
    async with running(platform) as group:
        await until(lambda: bool(platform.menus))
        group.daemon.menus.changed()
        await group.clock.settle()
        assert len(platform.menus) == 1


async def advance(group: Group, seconds: float) -> None:
    await group.clock.settle()
    await group.clock.advance(seconds)
