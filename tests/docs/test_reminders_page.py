"""docs/reminders.md: its conversations are as shown, and its settings exist."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from ruamel.yaml import YAML

from bot.testing import a_group
from config.sections.timers import RemindersSettings
from config.settings import Settings
from services.clock import VirtualClock
from tests.docs.documents import Block, Page

PAGE = Page("docs/reminders.md")
START = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)
CONVERSATIONS = PAGE.of("text")
SETTINGS = {"timezone": "Europe/Oslo", "chats": {"allow": ["*"]}}


@pytest.mark.parametrize("block", CONVERSATIONS, ids=[one.heading for one in CONVERSATIONS])
async def test_a_conversation_goes_as_the_page_shows_it(block: Block) -> None:
    lines = [line.partition(": ")[::2] for line in block.text.splitlines()]
    said: list[tuple[str, str]] = []
    async with a_group(settings=SETTINGS, clock=VirtualClock(START)) as group:
        for who, text in lines:
            if who != "Rollcall":
                said.append((who, text))
                answers = await group.say(who, text)
                said += [("Rollcall", line) for answer in answers for line in answer.splitlines()]
    assert said == lines, block.where


def test_the_settings_of_the_page_are_good_and_all_of_them_are_told() -> None:
    [block] = PAGE.of("yaml")
    loaded = Settings.model_validate(YAML(typ="safe", pure=True).load(block.text))
    assert loaded.reminders == RemindersSettings()
    told = set(re.findall(r"^\| `reminders\.(\w+)` \|", PAGE.text, re.MULTILINE))
    assert told == set(RemindersSettings.model_fields)


async def test_every_command_of_the_page_is_one() -> None:
    async with a_group() as group:
        functions = group.daemon.registry.of("default")
        named = re.findall(r"`/([^`]+)`", PAGE.text)
        assert named
        unknown = [line for line in named if functions.command_line(f"/{line}", bare=False) is None]
        assert unknown == []
