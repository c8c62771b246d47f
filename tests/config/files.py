"""Settings files for tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

from config.diagnostics import Diagnostics
from config.loader import check_settings, load_settings
from config.settings import Settings


def written(folder: Path, text: str) -> Path:
    """A file with the dedented `text`."""
    file = folder / "bot.yaml"
    file.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
    return file


def faults_of(folder: Path, text: str, environment: Mapping[str, str] | None = None) -> Diagnostics:
    """Problems of settings with this text."""
    return check_settings(written(folder, text), environment or {})[1]


def places_and_codes(diagnostics: Diagnostics) -> list[str]:
    """`line:column code` of each diagnostic."""
    return [f"{found.line}:{found.column} {found.code}" for found in diagnostics]


def settings_of(folder: Path, text: str, environment: Mapping[str, str] | None = None) -> Settings:
    """Valid settings with this text."""
    return load_settings(written(folder, text), environment or {})
