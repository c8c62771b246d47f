"""docs/platforms/satori.md: its settings are valid, and all are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.platforms.satori.gateway import SatoriSettings
from config.loader import check_settings
from tests.docs.documents import Block, Page

PAGE = Page("docs/platforms/satori.md")


@pytest.mark.parametrize("block", PAGE.of("yaml"), ids=lambda block: f"line {block.line}")
def test_settings_of_the_page_are_good(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "bot.yaml"
    file.write_text(block.text, encoding="utf-8")
    settings, found = check_settings(file, {"SATORI_TOKEN": "secret"})
    assert list(found) == []
    assert settings is not None
    accounts = [account for name, account in settings.platforms.networks if name == "satori"]
    assert [account.secrets for account in accounts] == [("secret",), ("secret",)]


def test_the_page_names_every_setting_and_is_short() -> None:
    assert {name for name in SatoriSettings.model_fields if name not in PAGE.text} == set()
    assert len(PAGE.text.split()) <= 500
