"""docs/memory.md: its conversation is as shown, its commands exist, and its settings are the defaults."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from ruamel.yaml import YAML

from bot.testing import a_group
from config.chat_settings import chat_settings
from config.sections.models import MemorySettings
from config.settings import RouterSettings, Settings
from services.clock import VirtualClock
from tests.docs.documents import Page

PAGE = Page("docs/memory.md")
START = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)


async def test_the_conversation_goes_as_the_page_shows_it() -> None:
    [block] = PAGE.of("text")
    lines = [line.partition(": ")[::2] for line in block.text.splitlines()]
    said: list[tuple[str, str]] = []
    async with a_group(clock=VirtualClock(START)) as group:
        for who, text in lines:
            if who != "Rollcall":
                said.append((who, text))
                said += [("Rollcall", line) for answer in await group.say(who, text) for line in answer.splitlines()]
    assert said == lines, block.where


async def test_the_commands_of_the_page_work_in_their_order() -> None:
    commands = [line for line in re.findall(r"`(/[^`]+)`", PAGE.text) if line.startswith(("/记", "/memory"))]
    assert len(commands) >= 5
    async with a_group() as group:
        functions = group.daemon.registry.of("default")
        for line in re.findall(r"`(/[^`]+)`", PAGE.text):
            assert functions.command_line(line, bare=False) is not None, line
        replies = [(await group.say("Ann", line))[0] for line in commands[:4]]
    assert [reply[:5] for reply in replies] == ["📝 Not", "📝 Not", "What ", "🗑 For"]


def test_the_settings_of_the_page_are_the_defaults_and_all_of_them_are_told() -> None:
    [block] = PAGE.of("yaml")
    loaded = Settings.model_validate(YAML(typ="safe", pure=True).load(block.text))
    assert (loaded.memory, loaded.router) == (MemorySettings(), RouterSettings())
    assert not chat_settings(loaded, "irc:libera:#a", {}).memory_digest
    told = set(re.findall(r"^\| `memory\.(\w+)` \|", PAGE.text, re.MULTILINE))
    assert told == {name for name in MemorySettings.model_fields if not name.startswith("summar")}
