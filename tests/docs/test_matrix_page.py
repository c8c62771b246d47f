"""docs/platforms/matrix.md: its settings are valid, and its limits are those of the platform."""

from __future__ import annotations

from pathlib import Path

from bot.platforms.matrix.adapter import MatrixSettings
from bot.platforms.matrix.platform import MatrixPlatform
from config.loader import check_settings
from tests.docs.documents import Page

PAGE = Page("docs/platforms/matrix.md")


def test_the_settings_of_the_page_are_good(tmp_path: Path) -> None:
    (tmp_path / "bot.yaml").write_text(PAGE.of("yaml")[0].text)
    settings, found = check_settings(tmp_path / "bot.yaml", {"MATRIX_PASSWORD": "secret"})
    assert settings is not None
    assert not found.errors
    ((name, account),) = settings.platforms.networks
    assert name == "matrix"
    assert isinstance(account, MatrixSettings)
    assert account.encryption


def test_the_limits_of_the_page_are_those_of_the_platform() -> None:
    limits = MatrixPlatform.limits
    assert f"at most {limits.text_chars:,} characters" in PAGE.text
    assert f"files up to {limits.file_bytes // 1_000_000} MB" in PAGE.text
