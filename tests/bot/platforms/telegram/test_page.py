"""docs/platforms/telegram.md: its settings are valid, and all are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.platforms.telegram.platform import TelegramSettings
from config.loader import check_settings
from tests.docs.documents import Block, Page
from tests.fakes.telegram_server import TOKEN

PAGE = Page("docs/platforms/telegram.md")


@pytest.mark.parametrize("block", PAGE.of("yaml"), ids=lambda block: f"line {block.line}")
def test_settings_of_the_page_are_good(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "bot.yaml"
    file.write_text(block.text, encoding="utf-8")
    settings, found = check_settings(file, {"TELEGRAM_TOKEN": TOKEN})
    assert list(found) == []
    assert settings is not None
    [(name, account)] = settings.platforms.networks
    assert name == "telegram"
    assert isinstance(account, TelegramSettings)
    assert account.secrets == (TOKEN,)


def test_the_page_names_every_setting() -> None:
    assert {name for name in TelegramSettings.model_fields if name not in PAGE.text} == set()


def test_the_page_is_short() -> None:
    assert len(PAGE.text.split()) <= 500
