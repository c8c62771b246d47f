"""Many scripts that compute at the same time do not delay others."""

from __future__ import annotations

from pathlib import Path

from services.refs import ChatRef
from tests.bot.basic_group import a_group_with
from tests.fakes.held import until

ENDLESS = "x = 0\nWHILE TRUE\nx = x + 1\nWEND"
ROOMS = 100


async def test_a_hundred_endless_scripts_in_as_many_rooms_keep_nobody_waiting(tmp_path: Path) -> None:
    basic = {"steps": 100_000_000, "cpu_seconds": 0.02}
    short = 'x = 0\nFOR i = 1 TO 3000\nx = x + i\nNEXT\nTALK "short " + x'
    async with a_group_with(tmp_path, settings={"basic": basic}, endless=ENDLESS, short=short) as group:
        for number in range(ROOMS):
            await group.hear("Mallory", "/endless", chat=ChatRef("test", "bot", f"room{number}"))
        await group.hear("Ann", "/calc 1+1")
        await until(lambda: any("1+1" in one.text for one in group.platform.sent))
        await group.hear("Ann", "/short")
        await until(lambda: any(one.text.startswith("short") for one in group.platform.sent))
        stopped = sum("took too long" in one.text for one in group.platform.sent)
        await group.settle()
        assert sum("took too long" in one.text for one in group.platform.sent) == ROOMS
    # They are far from their limit by then.
    assert stopped < ROOMS / 2
