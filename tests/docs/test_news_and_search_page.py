"""docs/news-and-search.md: its settings are valid and work as described, and its example messages work."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bot.registration.services import searcher_of
from bot.testing import a_group
from config.loader import check_settings
from config.settings import Settings
from services.web.search import SearchingModel, SearXNG
from tests.docs.documents import Block, Page

PAGE = Page("docs/news-and-search.md")
KEYS = {"PERPLEXITY_API_KEY": "pplx-0123456789", "OPENROUTER_API_KEY": "sk-or-0123456789"}


def settings_of(block: Block, folder: Path) -> Settings:
    file = folder / "bot.yaml"
    file.write_text(block.text, encoding="utf-8")
    settings, found = check_settings(file, {**os.environ, **KEYS})
    assert list(found) == []
    assert settings is not None
    return settings


@pytest.mark.parametrize("block", PAGE.of("yaml"), ids=lambda block: f"line {block.line}")
def test_settings_of_the_page_are_good(block: Block, tmp_path: Path) -> None:
    settings_of(block, tmp_path)


def test_each_kind_of_search_on_the_page_is_built(tmp_path: Path) -> None:
    kinds = [type(searcher_of(settings_of(block, tmp_path).search)) for block in PAGE.of("yaml", "Search")]
    assert kinds == [SearXNG, SearchingModel, SearchingModel, SearchingModel]


async def test_every_command_of_the_page_is_one() -> None:
    commands = {"news", "search", "ask", "搜索", "summary", "总结", "clearmessages", "forget history", "清除历史"}
    assert [one for one in commands if f"`/{one}" not in PAGE.text] == []
    async with a_group() as group:
        known = {one for spec in group.daemon.registry.specs for one in spec.command.words}
    assert commands <= known


def test_every_setting_of_the_three_is_explained() -> None:
    shown = Settings()
    for name in ("news", "search", "summary"):
        for key in type(getattr(shown, name)).model_fields:
            assert key in PAGE.text, f"{name}.{key}"
