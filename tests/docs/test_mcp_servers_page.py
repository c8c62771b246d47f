"""docs/mcp-servers.md: its settings are valid, its commands work as described, and it explains all keys."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from bot.testing import a_group
from config.loader import check_settings
from config.sections.mcp import McpServerSettings, McpToolSettings
from tests.bot.cli.running import a_settings_file, command
from tests.docs.documents import Block, Page
from tests.harness.mcp_servers import Script, a_tool, faults, function, servers, until

PAGE = Page("docs/mcp-servers.md")


@pytest.mark.parametrize("block", PAGE.of("yaml"), ids=lambda block: f"line {block.line}")
def test_settings_of_the_page_are_good(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "bot.yaml"
    file.write_text(block.text, encoding="utf-8")
    settings, found = check_settings(file, {**os.environ, "ISSUES_TOKEN": "t0ken-0123456789"})
    assert list(found) == []
    assert settings is not None
    assert settings.mcp.servers


def test_every_key_of_a_server_is_explained() -> None:
    known = {*McpServerSettings.model_fields, *McpToolSettings.model_fields} - {"name"}
    assert sorted(key for key in known if f"`{key}`" not in PAGE.text) == []


async def test_the_commands_of_the_page_do_what_it_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [block] = PAGE.of("console")
    script = Script(tmp_path, a_tool("add", description="Adds a note."), name="notes")
    async with a_group(settings=servers(script.settings()), home=tmp_path / "var") as group:
        await until(group, lambda: function(group, "mcp__notes__add"))
        script.write(a_tool("add", description="Adds a note, and more."), name="notes")
        await group.clock.advance(601)
        await until(group, lambda: "rollcall mcp accept notes add" in faults(group))
    file = a_settings_file(tmp_path, "mcp: {servers: [{name: notes, command: [notes]}]}\n")
    for step in re.split(r"^\$ \./run ", block.text, flags=re.MULTILINE)[1:]:
        line, _, said = step.partition("\n")
        printed = command(capsys, *line.split(), "--config", file)
        wanted = ".*".join(re.escape(part) for part in said.strip().split("…"))
        assert printed.status == 0
        assert re.fullmatch(wanted, printed.out.strip(), re.DOTALL), printed.out
