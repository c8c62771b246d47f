"""Word tables are YAML, and are read as a YAML parser reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

import config
from config.word_tables import phrases, word_tables

FOLDER = Path(config.__file__).resolve().parent
TABLES = sorted(file.stem for file in (FOLDER / "words").glob("*.yaml"))


def parsed(file: Path) -> dict[str, str]:
    """Each block of a file as one text without indents."""
    blocks = YAML(typ="safe", pure=True).load(file.read_text(encoding="utf-8"))
    return {str(name): " ".join(text.split()) for name, text in blocks.items()}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_what_yaml_says(name: str) -> None:
    read = {table: " ".join(" ".join(lines).split()) for table, lines in word_tables(name).items()}
    assert read == parsed(FOLDER / "words" / f"{name}.yaml")


def test_phrases_of_all_languages_are_joined() -> None:
    english, chinese = (parsed(FOLDER / "phrases" / f"{language}.yaml") for language in ("en", "zh"))
    for name, lines in phrases().items():
        assert " ".join(" ".join(lines).split()) == f"{english.get(name, '')} {chinese.get(name, '')}".strip()
    assert phrases().keys() == english.keys() | chinese.keys()
