"""docs/mcp-server.md: its settings are valid, its client finds the command, and its requests have the shown
responses."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from bot.cli.commands import parser
from config.loader import check_settings
from tests.docs.documents import Page
from tests.docs.terminal import COLD, Terminal
from tests.harness.forked_processes import forked_command
from tests.harness.mcp_programs import texts

PAGE = Page("docs/mcp-server.md")
TOKEN = "a-token-of-some-length"


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


@pytest.fixture
def server(terminal: Terminal) -> Iterator[str]:
    """URL of a daemon with the page's settings."""
    file = terminal.home / "mcp.yaml"
    [serving] = PAGE.of("yaml", "Over HTTP")
    file.write_text(f"logging: {{console: 'off'}}\n{serving.text}", encoding="utf-8")
    with subprocess.Popen(
        (*forked_command("bot"), "run", "--port", "0", "--no-console", "--config", str(file)),
        cwd=terminal.house,
        env=terminal.environment(ROLLCALL_MCP_TOKEN=TOKEN),
        stdout=subprocess.PIPE,
        text=True,
    ) as daemon:
        try:
            assert daemon.stdout is not None
            yield re.findall(r"http://\S+", daemon.stdout.readline())[0]
        finally:
            daemon.send_signal(signal.SIGTERM)
            status = daemon.wait(30)
    assert status == 0


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_requests_are_answered_as_the_page_shows(terminal: Terminal, server: str) -> None:
    terminal.follow(PAGE.of("console"), {"http://127.0.0.1:8080": server}, ROLLCALL_MCP_TOKEN=TOKEN)


@pytest.mark.parametrize("block", PAGE.of("yaml"), ids=lambda block: f"line {block.line}")
def test_settings_of_the_page_are_good(block: object, tmp_path: Path) -> None:
    file = tmp_path / "bot.yaml"
    file.write_text(block.text, encoding="utf-8")
    settings, found = check_settings(file, {**os.environ, "ROLLCALL_MCP_TOKEN": TOKEN})
    assert list(found) == []
    assert settings is not None


async def test_a_client_with_the_pages_entry_finds_the_functions(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, COLD)  # a new process, because a fork has already imported `mcp`
    [block] = PAGE.of("json", "Over a pipe")
    entry = json.loads(block.text)["mcpServers"]["rollcall"]
    home = {name: value.replace("/var/lib", str(terminal.home)) for name, value in entry["env"].items()}
    parameters = StdioServerParameters(
        command=entry["command"].replace("/opt/rollcall", str(terminal.house)),
        args=entry["args"],
        env=terminal.environment(ROLLCALL_LOGS=str(terminal.home / "logs"), **home),
        cwd=str(terminal.house),
    )
    async with asyncio.timeout(30), Client(parameters) as client:
        result = await client.call_tool("calculate", {"expression": "6*7"})
    assert texts(result)[0] == "6*7 = 42"
    assert (terminal.home / "rollcall-desktop" / "rollcall.sqlite").exists()


def test_every_option_of_the_command_is_on_the_page() -> None:
    options = vars(parser().parse_args(["mcp"])).keys() - {"run"}
    named = {"member": "as"}
    assert {name for name in options if f"`--{named.get(name, name)}`" not in PAGE.text} == set()
