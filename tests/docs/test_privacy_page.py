"""docs/privacy.md: its conversation is as shown, its commands exist, and so do its settings."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from bot.testing import a_group
from config.settings import Settings
from services.clock import VirtualClock
from tests.docs.documents import Page

PAGE = Page("docs/privacy.md")


async def test_the_conversation_goes_as_the_page_shows_it() -> None:
    [block] = PAGE.of("text")
    lines = [line.partition(": ")[::2] for line in block.text.splitlines()]
    said: list[tuple[str, str]] = []
    async with a_group(clock=VirtualClock(datetime(2026, 11, 20, 15, 0, tzinfo=UTC))) as group:
        for who, text in lines:
            if who != "Rollcall":
                said.append((who, text))
                said += [("Rollcall", line) for answer in await group.say(who, text) for line in answer.splitlines()]
    assert said == lines, block.where


async def test_every_command_of_the_page_exists() -> None:
    commands = re.findall(r"`(/[^`]+)`", PAGE.text)
    assert len(set(commands)) >= 8
    async with a_group() as group:
        functions = group.daemon.registry.of("default")
        for command in commands:
            assert functions.command_line(command, bare=False) is not None, command


def test_every_setting_of_the_page_exists() -> None:
    settings = Settings()
    named = re.findall(r"`(store|logging)\.(\w+)`", PAGE.text)
    assert len(set(named)) >= 6
    for section, name in named:
        assert hasattr(getattr(settings, section), name), name
