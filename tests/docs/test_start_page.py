"""docs/start.md: its commands. tests/browser/test_start_page.py follows the page in a browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.loader import load_settings
from tests.docs.documents import Page
from tests.docs.terminal import COLD, Terminal

PAGE = Page("docs/start.md")


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path, COLD)


def test_the_first_start_prints_what_the_page_shows(terminal: Terminal) -> None:
    terminal.follow(PAGE.of("console", "An answering bot"))


def test_the_settings_and_the_function_of_the_page_are_good(terminal: Terminal) -> None:
    folder = terminal.home / "my-bot"
    (folder / "functions").mkdir(parents=True)
    [settings], [function], [sources, _] = PAGE.of("yaml"), PAGE.of("python"), PAGE.of("text", "Your function")
    (folder / "bot.yaml").write_text(settings.text + sources.text, encoding="utf-8")
    (folder / "functions" / "shares.py").write_text(function.text, encoding="utf-8")
    terminal.follow(PAGE.of("console", "Your function"))
    assert load_settings(folder / "bot.yaml", {}).bots["default"].name == "Ada"
