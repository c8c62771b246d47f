"""docs/files-and-shell.md: its settings are valid and complete, and its conversations are as shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bot.testing import Group, a_group
from config.loader import check_settings
from config.sections.processes import ProgramSettings, shipped_programs
from config.settings import Settings
from function_calls.tool_modules import file, shell
from services.refs import ChatRef, Role
from tests.docs.documents import Block, Page
from tests.harness.sandboxes import needs_bubblewrap

PAGE = Page("docs/files-and-shell.md")
FUNCTIONS = (file.file_read, file.file_write, file.file_list, file.file_glob, shell.shell_exec)
WITH_A_YES = {"approvals": {"required": [{"tags": ["shell"], "by": "admin"}]}}
_CODE = re.compile(r"\b[0-9a-f]{5}\b")


@pytest.mark.parametrize("block", PAGE.of("yaml"), ids=lambda block: f"line {block.line}")
def test_settings_of_the_page_are_good(block: Block, tmp_path: Path) -> None:
    path = tmp_path / "bot.yaml"
    path.write_text(block.text, encoding="utf-8")
    _, found = check_settings(path, {})
    # The functions are in modules that these settings do not enable.
    assert [one for one in found if "file_" not in str(one)] == []


@pytest.mark.parametrize("section", ["sandbox", "files"])
def test_settings_of_the_page_are_those_that_are_shipped(section: str, tmp_path: Path) -> None:
    [block] = [one for one in PAGE.of("yaml") if one.text.startswith(f"{section}:")]
    path = tmp_path / "bot.yaml"
    path.write_text(block.text, encoding="utf-8")
    settings, _ = check_settings(path, {})
    assert settings is not None
    assert getattr(settings, section) == getattr(Settings(), section)


def test_every_setting_is_on_the_page() -> None:
    shown = Settings()
    for name in ("sandbox", "files", "shell"):
        for key in type(getattr(shown, name)).model_fields:
            assert key in PAGE.text, f"{name}.{key}"
    for key in ProgramSettings.model_fields:
        assert key in PAGE.text, key
    assert all(f"`{name}`" in PAGE.text for name in shipped_programs())


async def conversation(group: Group, block: Block) -> list[str]:
    """Actual lines of the conversation, with the codes of the page."""
    facts = {"chat": ChatRef("test", "bot", "ann"), "is_group": False, "role": Role.ADMIN}
    lines: list[str] = []
    codes: dict[str, str] = {}
    expected = iter(_CODE.findall(block.text))
    for line in block.text.splitlines():
        if not line.startswith("› "):
            continue
        lines.append(line)
        typed = line.removeprefix("› ")
        for on_page, real in codes.items():
            typed = typed.replace(on_page, real)
        for said in await group.say("Ann", typed, **facts):
            for real in re.findall(r"#([0-9a-f]{5})", said):
                on_page = next(one for one in expected if one not in codes)
                codes[on_page] = real
                said = said.replace(real, on_page)
            lines += said.splitlines()
    return lines


async def test_the_conversation_about_files_goes_as_shown() -> None:
    [block] = PAGE.of("text", "Files")
    async with a_group(FUNCTIONS) as group:
        assert await conversation(group, block) == block.text.splitlines()


@needs_bubblewrap
async def test_the_conversation_about_programs_goes_as_shown() -> None:
    [files], [programs] = PAGE.of("text", "Files"), PAGE.of("text", "Programs")
    async with a_group(FUNCTIONS, settings=WITH_A_YES) as group:
        await conversation(group, files)
        assert await conversation(group, programs) == programs.text.splitlines()


async def test_the_table_of_functions_is_whole_and_true() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", PAGE.text, re.MULTILINE)
    async with a_group(FUNCTIONS) as group:
        specs = {spec.name: spec for spec in group.daemon.registry.specs if spec.origin.tags & {"files", "shell"}}
    assert {name for name, _ in rows} == set(specs)
    for name, who in rows:
        assert (Role.MEMBER in specs[name].access.roles) is who.startswith("everybody")
        assert specs[name].access.scope == "private"
