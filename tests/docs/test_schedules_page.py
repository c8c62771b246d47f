"""docs/schedules.md: its commands work as described, its settings are valid, and its tables are complete."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.checks.functions_check import check_functions
from bot.testing import a_group
from config.loader import check_settings
from config.sections.timers import ScheduleSettings, WhenSettings
from config.yaml_document import read_yaml_file
from services.clock import VirtualClock
from services.refs import Role
from tests.docs.documents import Page

PAGE = Page("docs/schedules.md")
TYPED, SAID_BACK = PAGE.of("text", "In a chat")
FRIDAY = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)


def first_column(head: str) -> str:
    """The first column of the table with that header."""
    [table] = re.findall(rf"^\| {head} \|.*?(?=\n\n)", PAGE.text, re.DOTALL | re.MULTILINE)
    return "\n".join(row.split("|")[1] for row in table.splitlines()[2:])


async def made(lines: Sequence[str]) -> list[str]:
    """The bot's answers to these commands of an admin in Oslo."""
    async with a_group(settings={"timezone": "Europe/Oslo"}, clock=VirtualClock(FRIDAY)) as group:
        return [text for line in lines for text in await group.say("Ann", line, role=Role.ADMIN)]


@pytest.mark.parametrize("line", TYPED.text.splitlines())
async def test_a_command_of_the_page_makes_a_schedule(line: str) -> None:
    [said] = await made([line])
    assert "This is schedule 1; next: " in said


async def test_the_bot_says_back_what_the_page_shows() -> None:
    first = TYPED.text.splitlines()[0]
    assert (await made(["/schedule 0 6 * * * todo", first]))[1] + "\n" == SAID_BACK.text


async def test_the_settings_of_the_page_are_good(tmp_path: Path) -> None:
    [block] = PAGE.of("yaml")
    file = tmp_path / "bot.yaml"
    file.write_text(block.text, encoding="utf-8")
    settings, found = check_settings(file, {})
    assert list(found) == []
    assert settings is not None
    assert await check_functions(settings, read_yaml_file(file)) == []


def test_every_key_of_an_entry_is_on_the_page() -> None:
    assert set(re.findall(r"`(\w+)`", first_column("key"))) == set(ScheduleSettings.model_fields)


@pytest.mark.parametrize("form", re.findall(r"`\{(\w+): ", first_column("form")))
def test_a_form_of_the_page_is_one(form: str) -> None:
    assert form in WhenSettings.model_fields


def test_every_form_is_on_the_page() -> None:
    assert set(re.findall(r"(\w+): ", first_column("form"))) == set(WhenSettings.model_fields)
