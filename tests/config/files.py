"""Files of settings, written for one test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

from config.diagnostics import Diagnostics
from config.loader import check_settings, load_settings
from config.settings import Settings


def written(folder: Path, text: str) -> Path:
    """A file that holds `text`, less its common indentation."""
    file = folder / "bot.yaml"
    file.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
    return file


def faults_of(folder: Path, text: str, environment: Mapping[str, str] | None = None) -> Diagnostics:
    """What is wrong with settings that read `text`."""
    return check_settings(written(folder, text), environment or {})[1]


def places_and_codes(diagnostics: Diagnostics) -> list[str]:
    """`line:column code` of each."""
    return [f"{found.line}:{found.column} {found.code}" for found in diagnostics]


def settings_of(folder: Path, text: str, environment: Mapping[str, str] | None = None) -> Settings:
    """The settings that read `text`, which has to be right."""
    return load_settings(written(folder, text), environment or {})
