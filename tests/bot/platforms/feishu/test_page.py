"""docs/platforms/feishu.md: its settings are valid, and all are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.platforms.feishu.adapter import FeishuSettings
from bot.platforms.feishu.platform import SCOPES
from config.loader import check_settings
from tests.docs.documents import Block, Page

PAGE = Page("docs/platforms/feishu.md")
ENVIRONMENT = {"FEISHU_APP_SECRET": "secret", "FEISHU_ENCRYPT_KEY": "key", "FEISHU_VERIFICATION_TOKEN": "token"}


@pytest.mark.parametrize("block", PAGE.of("yaml"), ids=lambda block: f"line {block.line}")
def test_settings_of_the_page_are_good(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "bot.yaml"
    file.write_text(block.text, encoding="utf-8")
    settings, found = check_settings(file, ENVIRONMENT)
    assert list(found) == []
    assert settings is not None
    [(name, account)] = settings.platforms.networks
    assert name == "feishu"
    assert isinstance(account, FeishuSettings)
    assert account.app_secret.get_secret_value() == "secret"


def test_the_page_names_every_setting_and_scope_and_is_short() -> None:
    assert {name for name in (*FeishuSettings.model_fields, *SCOPES) if name not in PAGE.text} == set()
    assert len(PAGE.text.split()) <= 500
