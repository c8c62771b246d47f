"""docs/several-daemons.md: its settings are valid, and daemon and doctor print what is shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bot.cli.commands import parser
from bot.cli.serving import _stands_by
from config.loader import check_settings
from config.settings import StoreSettings
from services.store.turns.leases import Held
from tests.docs.documents import Page

PAGE = Page("docs/several-daemons.md")
LEADER = "process 2817 on alpha (0f3d5a1c)"


def test_settings_of_the_page_are_good(tmp_path: Path) -> None:
    (block,) = PAGE.of("yaml")
    file = tmp_path / "bot.yaml"
    file.write_text(block.text, encoding="utf-8")
    settings, found = check_settings(
        file, {"ROLLCALL_STORE_URL": "postgresql://bot@db.example.org/rollcall?sslmode=verify-full"}
    )
    assert list(found) == []
    assert settings is not None
    assert settings.store.is_on_a_server


def test_a_daemon_that_stands_by_says_it_as_the_page_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    _stands_by(Held(LEADER, 1000))
    assert capsys.readouterr().out.splitlines()[-1] in PAGE.text


def test_the_default_is_the_one_that_the_page_names() -> None:
    (named,) = re.findall(r"`store.lease_seconds` .*\((\d+), at least 1\)", PAGE.text)
    assert StoreSettings.model_fields["lease_seconds"].default == int(named)


def test_every_command_that_the_page_names_is_one() -> None:
    known = parser().format_help()
    for name in ("why", "stats", "mcp", "basic", "doctor", "call", "chat"):
        assert f"`{name}" in PAGE.text
        assert name in known
