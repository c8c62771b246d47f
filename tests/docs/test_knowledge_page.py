"""docs/knowledge.md: its conversation is as shown, its settings are good, and its console shows what doctor prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from bot.testing import a_group, call
from config.sections.knowledge import KnowledgeSettings
from config.settings import Settings
from tests.bot.cli.running import a_settings_file, command
from tests.docs.documents import Block, Page

PAGE = Page("docs/knowledge.md")


def documents(folder: Path) -> Path:
    [block] = PAGE.of("console", "Five minutes")
    (folder / "rules.md").write_text(block.text.partition("\n")[2], encoding="utf-8")
    return folder


async def test_the_conversation_goes_as_the_page_shows_it(tmp_path: Path) -> None:
    [block] = PAGE.of("text")
    lines = [line.partition(": ")[::2] for line in block.text.splitlines()]
    said: list[tuple[str, str]] = []
    async with a_group(settings={"knowledge": {"bases": {"house": str(documents(tmp_path))}}}) as group:
        group.model.says(call("knowledge_search", query="kayak key"), "Until nine in the evening.")
        for who, text in lines:
            if who != "Rollcall":
                said.append((who, text))
                said += [("Rollcall", line) for answer in await group.say(who, text) for line in answer.splitlines()]
    assert said == lines, block.where


def test_doctor_prints_what_the_page_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "house").mkdir()
    file = a_settings_file(tmp_path, f"knowledge: {{bases: {{house: {documents(tmp_path / 'house')}}}}}\n")
    [block] = PAGE.of("console", "Safety and limits")
    [shown] = [line for line in block.text.splitlines() if "knowledge" in line]
    assert shown in command(capsys, "doctor", "--no-model", "--config", file).out.splitlines()
    (tmp_path / "house" / "b.pdf").write_bytes(b"%PDF-broken")
    warned = command(capsys, "doctor", "--no-model", "--config", file)
    assert warned.status == 0
    assert "house: 1 files, 2 passages; left out: house/b.pdf: damaged" in warned.out


@pytest.mark.parametrize("block", PAGE.of("yaml"), ids=lambda block: f"line {block.line}")
def test_the_settings_of_the_page_are_good(block: Block) -> None:
    assert Settings.model_validate(YAML(typ="safe", pure=True).load(block.text)).knowledge.bases


def test_all_settings_are_on_the_page_with_their_defaults() -> None:
    rows = dict(re.findall(r"^\| `knowledge\.(\w+)` \| (.*) \|$", PAGE.text, re.MULTILINE))
    assert rows.keys() == KnowledgeSettings.model_fields.keys()
    for name in ("files", "file_kilobytes", "entries"):
        default = KnowledgeSettings.model_fields[name].default
        assert re.search(rf"default ({default}|{default:,})\b", rows[name]), name
