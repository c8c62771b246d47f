"""External MCP clients with the bot's functions: the inspector, and the conformance suite. Both run with Node."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from mcp_types import Resource, ResourceTemplate

from bot.mcp.callers import McpCaller
from bot.mcp.documents import Content
from services.web.content import data_in
from tests.bot.cli.running import a_settings_file
from tests.bot.cli.running import without_a_model as without_a_model
from tests.conftest import REPOSITORY
from tests.harness.forked_processes import forked_command
from tests.harness.mcp_functions import PIXEL
from tests.harness.mcp_programs import programs
from tests.harness.node_programs import Ended, known, run
from tests.programs import not_offered

FUNCTIONS = REPOSITORY / "tests" / "harness" / "mcp_functions.py"
SOURCES = {"sources": {"python": [str(FUNCTIONS)]}}
INSPECTOR, SUITE = "mcp-inspector-cli", "conformance"
VERSIONS = ("2025-11-25", "2026-07-28")


class SuiteDocuments:
    """The documents that the suite reads."""

    async def listed(self, caller: McpCaller) -> Sequence[Resource]:
        return [
            Resource(uri="test://static-text", name="text", mime_type="text/plain"),
            Resource(uri="test://static-binary", name="picture", mime_type="image/png"),
        ]

    async def templates(self, caller: McpCaller) -> Sequence[ResourceTemplate]:
        return [
            ResourceTemplate(uri_template="test://template/{id}/data", name="template", mime_type="application/json")
        ]

    async def read(self, uri: str, caller: McpCaller) -> Content | None:
        template = re.fullmatch(r"test://template/(\w+)/data", uri)
        if template is not None:
            return Content(json.dumps({"id": template[1], "data": f"Data for ID: {template[1]}"}), "application/json")
        contents = {"test://static-text": Content("This is the content of the static text resource.")}
        contents["test://static-binary"] = Content(data_in(PIXEL) or b"", "image/png")
        return contents.get(uri)


@pytest.mark.requirement("B9", "B10", "B32")
async def test_all_that_the_suite_asks_of_a_server_holds_except_what_is_not_offered(tmp_path: Path) -> None:
    lending = ({"name": "editor", "sampling": True},)
    failed: set[str] = set()
    for version in VERSIONS:
        async with programs(clients=lending, settings=SOURCES) as served, known(served) as url:
            assert served.web.programs is not None
            served.web.programs.server.documents.append(SuiteDocuments())
            ended = await run(SUITE, "server", "--url", url, "--requirements", version, folder=tmp_path)
        failed |= _failed(ended, least=30)
    assert failed == set(not_offered.SERVER)


@pytest.mark.requirement("B9")
async def test_all_that_the_suite_asks_of_a_client_holds_except_what_is_not_offered(tmp_path: Path) -> None:
    command = shlex.join(forked_command("tests.harness.mcp_client"))
    failed: set[str] = set()
    for version in VERSIONS:
        how = ("--command", command, "--requirements", version, "--timeout", "90000")
        ended = await run(SUITE, "client", *how, folder=tmp_path, seconds=100, PYTHONPATH=str(REPOSITORY))
        failed |= _failed(ended, least=20)
    assert failed == set(not_offered.CLIENT)


def _failed(ended: Ended, least: int) -> set[str]:
    """Names of the scenarios that failed; at least `least` have to have run."""
    results = re.findall(r"^([✓✗]) ([\w/-]+): \d+ passed, (\d+) failed", ended.out, re.MULTILINE)
    assert len(results) >= least, ended.out + ended.err
    return {name for mark, name, failures in results if mark == "✗" or failures != "0"}


@pytest.mark.requirement("B9", "B10", "B32")
async def test_the_inspector_lists_and_calls_over_http(tmp_path: Path) -> None:
    async with programs(settings=SOURCES) as served, known(served) as url:
        asked = ("--cli", url, "--transport", "http", "--method")
        listed = await run(INSPECTOR, *asked, "tools/list", folder=tmp_path)
        call = ("tools/call", "--tool-name", "calculate", "--tool-arg", "expression=6*7")
        called = await run(INSPECTOR, *asked, *call, folder=tmp_path)
    assert (listed.status, called.status) == (0, 0), listed.err + called.err
    [tool] = [tool for tool in json.loads(listed.out)["tools"] if tool["name"] == "calculate"]
    assert tool["inputSchema"]["required"] == ["expression"]
    assert json.loads(called.out)["content"][0]["text"] == "6*7 = 42"


@pytest.mark.requirement("B9")
async def test_the_inspector_starts_the_command_and_calls(tmp_path: Path) -> None:
    file = a_settings_file(tmp_path)
    server = (sys.executable, "-m", "bot", "mcp")
    call = ("--method", "tools/call", "--tool-name", "calculate", "--tool-arg", "expression=6*7")
    environment = ("-e", f"PYTHONPATH={REPOSITORY}", "-e", f"ROLLCALL_CONFIG={file}")
    called = await run(INSPECTOR, *environment, "--cli", *server, *call, folder=tmp_path)
    assert called.status == 0, called.err
    assert json.loads(called.out)["content"][0]["text"] == "6*7 = 42"
