"""docs/media.md: its settings are valid, its defaults are those of the code, and its message is accepted."""

from __future__ import annotations

import re
from base64 import b64decode

from ruamel.yaml import YAML

from bot.platforms.http.wire import read_posted
from bot.testing import a_group
from config.settings import Settings
from services.media.pictures import picture_of
from tests.docs.documents import Page

PAGE = Page("docs/media.md")


def test_the_settings_of_the_page_are_valid() -> None:
    blocks = PAGE.of("yaml")
    assert len(blocks) == 3
    for block in blocks:
        Settings.model_validate(YAML(typ="safe").load(block.text))


def test_the_table_has_all_settings_with_their_defaults() -> None:
    shown: dict[str, str] = {}
    for names, values in re.findall(r"^\| (`[^|]+) \| ([^|]+) \|", PAGE.text, re.MULTILINE):
        shown |= dict(zip(re.findall(r"`(\w+)`", names), values.split(", "), strict=True))
    defaults = {name: value or ("none" if value == () else value) for name, value in Settings().media}
    assert shown == {name: str(value).lower() for name, value in defaults.items()}


def test_the_message_of_the_page_is_accepted() -> None:
    (block,) = PAGE.of("json")
    (file,) = read_posted(block.text.encode(), 1000).attachments
    found = picture_of(b64decode(file.data))
    assert found is not None
    assert found.media_type == file.type


async def test_the_commands_of_the_page_exist() -> None:
    commands = re.findall(r"`(/(?:draw|画|settings)[^`]*)`", PAGE.text)
    assert len(commands) >= 3
    async with a_group() as group:
        functions = group.daemon.registry.of("default")
        assert all(functions.command_line(line, bare=False) is not None for line in commands)
