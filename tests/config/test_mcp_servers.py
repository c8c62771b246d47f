"""Settings of MCP servers: valid ones work, and mistakes are found at start."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.live.settings import secrets_of
from tests.config.files import faults_of, settings_of


def test_a_server_is_a_program_or_an_address(tmp_path: Path) -> None:
    text = """
        mcp:
          servers:
            - {name: time, command: [uvx, mcp-server-time], env: {TOKEN: "${TOKEN}"}}
            - {name: issues, url: "https://mcp.example.com/mcp", headers: {Authorization: "Bearer ${TOKEN}"}}
        """
    settings = settings_of(tmp_path, text, {"TOKEN": "t0ken-canary"})
    assert [one.name for one in settings.mcp.servers] == ["time", "issues"]
    assert {"t0ken-canary", "Bearer t0ken-canary"} <= set(secrets_of(settings))
    assert "canary" not in repr(settings)
    assert "canary" not in settings.model_dump_json()


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("{name: a}", "one of both"),
        ('{name: a, command: [x], url: "http://a.test/"}', "one of both"),
        ("{name: A, command: [x]}", "a-z, 0-9"),
        ("{name: a__b, command: [x]}", "a-z, 0-9"),
        ("{name: a_, command: [x]}", "a-z, 0-9"),
        ('{name: a, command: [""]}', "begin with a program"),
        ('{name: a, url: "http://a.test/", env: {A: b}}', "goes with command"),
        ("{name: a, command: [x], headers: {A: b}}", "goes with url"),
        ('{name: a, url: "http://a.test/", headers: {Host: b}}', "name of a header"),
        ('{name: a, url: "http://a.test/", headers: {A: "b\\r\\nC: d"}}', "line ends"),
        ("{name: a, command: [x], env: {A-B: c}}", "environment variable"),
        ('{name: a, url: "http://user:word@a.test/"}', "without user"),
        ("{name: a, command: [x], tools: {b: {effects: read}}}", "effect"),
        ("{name: a, command: [x], timeout_seconds: 0}", "greater"),
    ],
)
def test_what_cannot_be_meant_is_said(entry: str, words: str, tmp_path: Path) -> None:
    found = faults_of(tmp_path, f"mcp: {{servers: [{entry}]}}")
    assert words in "\n".join(one.message for one in found)


def test_a_name_is_given_once(tmp_path: Path) -> None:
    [found] = faults_of(tmp_path, "mcp: {servers: [{name: a, command: [x]}, {name: a, command: [y]}]}")
    assert "'a'" in found.message
