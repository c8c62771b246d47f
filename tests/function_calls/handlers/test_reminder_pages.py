"""Pages of long reminder lists, and rules that start after some time."""

from __future__ import annotations

import pytest

from tests.function_calls.handlers.test_reminders import a_family


async def test_many_reminders_are_shown_a_page_at_a_time() -> None:
    async with a_family() as group:
        for number in range(30):
            await group.say("Ann", f"/remind in {number + 1} hours water the plants of room {number + 100}")
        shown: list[str] = []
        for command, more in [
            ("/reminders", "… and 18 more: /reminders 2"),
            ("/reminders 2", "… and 6 more: /reminders 3"),
            ("/reminders 3", ""),
        ]:
            [said] = await group.say("Ann", command)
            title, *lines = said.split("\n")
            assert title == "Your reminders in this chat (30):"
            if more:
                assert lines.pop() == more
            shown += [line.rpartition(" ")[2] for line in lines]
        assert shown == [str(number + 100) for number in range(30)]
        # An argument that is no page number is a search text.
        [found] = await group.say("Ann", "/reminders 117")
        assert found.startswith("Your reminders in this chat (1):")
        assert found.endswith("room 117")


@pytest.mark.parametrize(
    "line",
    [
        "in 2 hours every day tea",
        "every day in 2 hours tea",
        "every day starting in 2 hours: tea",
        "tea in 2 hours and every day",
        "2小时后每天 tea",
    ],
)
async def test_a_rule_may_begin_so_long_from_now(line: str) -> None:
    async with a_family() as group:
        [said] = await group.say("Ann", f"/remind {line}")
        assert said == (
            "⏰ OK, reminder 1 is set for every day at 18:00 (Europe/Oslo); "
            "next: today, Friday 20 November at 18:00, in 2 hours: tea"
        )


@pytest.mark.parametrize(
    "line",
    ["in 2 hours tell them that every day counts", "every day at 9 walk in 2 hours", "in 2 hours every week tea"],
)
async def test_what_does_not_begin_so_is_read_as_before(line: str) -> None:
    async with a_family() as group:
        [said] = await group.say("Ann", f"/remind {line}")
        assert "every day at 18:00" not in said
        assert "reminder 1" in said
