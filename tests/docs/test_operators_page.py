"""docs/operators.md: its commands work as shown, with a real server where needed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from bot.cli.commands import COMMANDS
from bot.testing import a_group
from config.loader import check_settings
from config.settings import Settings
from config.yaml_document import read_yaml_file
from tests.docs.documents import Block, Page
from tests.docs.terminal import Terminal
from tests.harness.forked_processes import forked_command

PAGE = Page("docs/operators.md")
TOKEN = "a-token-of-some-length"
AT_THE_SERVER = ("Health and metrics", "The HTTP API")


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


@pytest.fixture
def server(terminal: Terminal) -> Iterator[str]:
    """URL of a daemon with the page's settings for the HTTP API."""
    settings = terminal.home / "http.yaml"
    [api] = PAGE.of("yaml", "The HTTP API")
    settings.write_text(f"logging: {{console: 'off'}}\n{api.text}", encoding="utf-8")
    with subprocess.Popen(
        (*forked_command("bot"), "run", "--port", "0", "--no-console", "--config", str(settings)),
        cwd=terminal.house,
        env=terminal.environment(ROLLCALL_HTTP_TOKEN=TOKEN),
        stdout=subprocess.PIPE,
        text=True,
    ) as daemon:
        try:
            assert daemon.stdout is not None
            greeting = daemon.stdout.readline()
            yield re.findall(r"http://\S+", greeting)[0]
        finally:
            daemon.send_signal(signal.SIGTERM)
            status = daemon.wait(30)
    assert status == 0


def test_the_commands_of_the_page_show_what_it_shows(terminal: Terminal) -> None:
    terminal.follow([block for block in PAGE.of("console") if block.heading not in AT_THE_SERVER])


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_the_http_api_answers_as_the_page_shows(terminal: Terminal, server: str) -> None:
    blocks = [block for block in PAGE.of("console") if block.heading in AT_THE_SERVER]
    terminal.follow(blocks, {"http://127.0.0.1:8080": server}, ROLLCALL_HTTP_TOKEN=TOKEN)


def test_under_another_host_name_only_the_probes_answer(server: str) -> None:
    stranger = {"host": "bot.example"}
    with httpx2.Client(base_url=server, headers=stranger, trust_env=False, verify=False, timeout=10) as client:
        assert client.get("/healthz").status_code == client.get("/readyz").status_code == 200
        refused = client.get("/metrics")
    assert refused.status_code == 403
    assert "platforms.web.public_url names those that are" in refused.json()["error"]["message"]


@pytest.mark.parametrize("block", PAGE.of("yaml"), ids=lambda block: f"line {block.line}")
def test_settings_of_the_page_are_good(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "bot.yaml"
    file.write_text(block.text, encoding="utf-8")
    settings, found = check_settings(file, {**os.environ, "ROLLCALL_HTTP_TOKEN": TOKEN})
    # The example for a local network has no TLS, as its text says.
    expected = ["platforms.web.public_url is http"] if "public_url: http:" in block.text else []
    assert [one.message[:32] for one in found] == expected
    assert settings is not None


@pytest.mark.requirement("D40")
async def test_a_function_that_the_page_switches_off_cannot_be_called(tmp_path: Path) -> None:
    [block] = PAGE.of("yaml", "Adding functions, switching them off")
    file = tmp_path / "bot.yaml"
    file.write_text(block.text, encoding="utf-8")
    off = read_yaml_file(file).value
    assert isinstance(off, dict)
    async with a_group() as group:
        assert await group.say("Ann", "/calc 6*7") == ["6*7 = 42"]
    async with a_group(settings=off) as group:
        [refusal] = await group.say("Ann", "/calc 6*7")
        await group.say("Ann", "@Rollcall how much is 6*7?")
        [request] = group.model.requests
    assert "42" not in refusal
    assert request.offer is not None
    assert "calculate" not in [function.name for function in request.offer.functions]


def test_every_section_of_the_settings_is_on_the_page() -> None:
    [table] = re.findall(r"^\| section \|.*?(?=\n\n)", PAGE.text, re.DOTALL | re.MULTILINE)
    named = {name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert named == set(Settings.model_fields)


async def test_the_page_says_of_every_setting_whether_it_is_live() -> None:
    [table] = re.findall(r"^\| takes effect \|.*?(?=\n\n)", PAGE.text, re.DOTALL | re.MULTILINE)
    *live, waits = [set(re.findall(r"`([\w.]+)`", row.split("|", 2)[2])) for row in table.splitlines()[2:]]
    named = set().union(*live)
    async with a_group() as group:
        taken, left = set(group.daemon.live.paths), set(group.daemon.live.restart_only)
    at_the_web = {f"platforms.http.{name}" for name in ("enabled", "token", "max_role")}
    at_the_web.add("mcp.serve.clients")
    of_models = {"models", "failover"}  # the group uses a given model
    parts = {"filters.call", "filters.named", "filters.turn", "filters.round"}
    assert named - parts == (taken | at_the_web | of_models) - {"filters", "limits.attempts_per_turn"}
    assert waits == left | {"bots"}


@pytest.mark.requirement("D67")
def test_a_daemon_tells_what_an_edit_broke_where_the_page_says(server: str, terminal: Terminal) -> None:
    file = terminal.home / "http.yaml"
    usual = file.read_text(encoding="utf-8")
    [operators] = PAGE.of("yaml", "Error notifications")
    with httpx2.Client(base_url=server, trust_env=False, verify=False, timeout=10) as client:

        def shows(settings: str, metric: float) -> bool:
            details = client.get("/readyz").raise_for_status().json()["details"]
            is_counted = f"rollcall_settings_faulty {metric}" in client.get("/metrics").text
            return bool(settings in details["settings"] and is_counted)

        def until(settings: str, metric: float) -> None:
            began = time.monotonic()
            while not shows(settings, metric):
                assert time.monotonic() - began < 10
                time.sleep(0.02)

        until("ok", 0.0)
        api = usual.replace('chats:\n  allow: ["http:*"]\n', operators.text)
        assert api != usual
        file.write_text(f"{api}langage: en\n", encoding="utf-8")
        until("http.yaml:", 1.0)
        file.write_text(api, encoding="utf-8")
        until("ok", 0.0)


def test_every_command_is_on_the_page() -> None:
    assert {name for name in COMMANDS if f"`{name}`" not in PAGE.text} == set()
