"""docs/irc.md: its settings are valid, its command prints what is shown, and its tables are correct."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import pytest

from bot.platforms.irc.state import _ROLES
from config.loader import check_settings
from tests.docs.documents import ROOT, Block, Page
from tests.docs.terminal import Terminal
from tests.harness.irc_servers import an_irc_server

PAGE = Page("docs/irc.md")
SECRETS = {"IRC_SASL_PASSWORD": "a-password", "IRC_OPS_KEY": "a-key"}


@pytest.mark.parametrize("block", PAGE.of("yaml"), ids=lambda block: f"line {block.line}")
def test_settings_of_the_page_are_good(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "bot.yaml"
    file.write_text(block.text, encoding="utf-8")
    settings, found = check_settings(file, {**os.environ, **SECRETS})
    assert list(found) == []
    assert settings is not None


@pytest.mark.parametrize("kind", ["inspircd", "ngircd"])
async def test_doctor_shows_what_the_page_shows(kind: str, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    [_, home] = PAGE.of("yaml", "Configuration")
    async with an_irc_server(kind, tmp_path) as server:
        settings = home.text.replace("port: 6667", f"port: {server.port}")
        (terminal.house / "irc.yaml").write_text(settings, encoding="utf-8")
        await asyncio.to_thread(terminal.follow, PAGE.of("console"))


def test_doctor_says_what_is_wrong(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    [_, home] = PAGE.of("yaml", "Configuration")
    (terminal.house / "irc.yaml").write_text(home.text.replace("port: 6667", "port: 1"), encoding="utf-8")
    with pytest.raises(AssertionError, match=r"ERROR\s+irc .*irc\.unreachable 127\.0\.0\.1 port 1: "):
        terminal.follow(PAGE.of("console"))


def test_the_roles_of_the_page_are_those_of_the_code() -> None:
    [table] = re.findall(r"^\| in the channel .*?(?=\n\n)", PAGE.text, re.DOTALL | re.MULTILINE)
    rows = [row.split("|")[1:4] for row in table.splitlines()[2:]]
    signs = {sign: role.strip(" `") for held, role, _ in rows for sign in re.findall(r"`(.)`", held)}
    modes = {"~": "q", "&": "a", "@": "o", "%": "h", "+": "v"}
    assert signs == {sign: (_ROLES[mode].value if mode in _ROLES else "member") for sign, mode in modes.items()}
    assert {without.strip(" `") for _, _, without in rows} == {"member"}


def test_every_event_of_the_log_is_on_the_page() -> None:
    code = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "bot/platforms/irc").glob("*.py"))
    events = set(re.findall(r'_log\.\w+\(\s*"(irc_\w+)"', code))
    assert events
    assert {event for event in events - {"irc_nick"} if f"`{event}`" not in PAGE.text} == set()
