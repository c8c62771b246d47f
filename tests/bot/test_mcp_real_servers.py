"""Published MCP servers of other authors."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bot.testing import Group, a_group, call
from tests.harness.mcp_servers import faults, function, servers, until

EVERYTHING = Path(__file__).parents[1] / "node/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
GIVEN: dict[str, dict[str, Any]] = {
    "trigger-long-running-operation": {"duration": 1, "steps": 2},
    "gzip-file-as-resource": {"name": "a.gz", "data": "data:text/plain,hello", "outputType": "resource"},
}
"""Arguments for tools that would otherwise use the network or take long."""


def by_python(module: str, *arguments: str) -> dict[str, Any]:
    """Settings of a server that is a Python package. Skips the test if it is not installed."""
    found = importlib.util.find_spec(module)
    if found is None or found.origin is None:
        pytest.skip(f"the package {module.replace('_', '-')} is not installed")
    command = [sys.executable, "-m", module, *arguments]
    where = {"PYTHONPATH": str(Path(found.origin).parents[1])}
    return {"name": "real", "command": command, "env": where, "roles": "member", "effect": "read"}


async def result(group: Group, name: str, /, **arguments: Any) -> dict[str, Any]:
    """Result of a call in the model's request."""
    group.model.says(call(name, **arguments), "There.")
    if any("#" in one for one in await group.say("Ann", "@Rollcall please")):
        await group.say("Ann", "yes")
    told = group.model.requests[-1].messages[-1].content
    assert told.startswith(f"<data from={name} ")
    found: dict[str, Any] = json.loads(told.splitlines()[1])
    return found


async def test_the_time_server_tells_and_converts_times() -> None:
    async with a_group(settings=servers(by_python("mcp_server_time", "--local-timezone", "UTC"))) as group:
        await until(group, lambda: function(group, "mcp__real__convert_time"))
        now = await result(group, "mcp__real__get_current_time", timezone="Europe/Oslo")
        later = await result(
            group, "mcp__real__convert_time", source_timezone="Asia/Tokyo", time="12:00", target_timezone="UTC"
        )
        wrong = await result(group, "mcp__real__get_current_time", timezone="Nowhere/Else")
    assert "Europe/Oslo" in now["text"][0]
    assert "T03:00:00" in later["text"][0]
    assert wrong["error"] == "failed"
    assert "Nowhere/Else" in str(wrong["result"])


async def test_the_git_server_reads_a_repository(tmp_path: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    commit_into(tmp_path, "The first one")
    async with a_group(settings=servers(by_python("mcp_server_git", "--repository", str(tmp_path)))) as group:
        await until(group, lambda: function(group, "mcp__real__git_log"))
        log = await result(group, "mcp__real__git_log", repo_path=str(tmp_path))
        elsewhere = await result(group, "mcp__real__git_log", repo_path="/")
    assert "The first one" in log["text"][0]
    assert elsewhere["error"] == "failed"


async def test_every_tool_of_the_server_with_everything_can_be_called() -> None:
    if shutil.which("node") is None or not EVERYTHING.exists():
        pytest.skip("node, or the package @modelcontextprotocol/server-everything in tests/node, is not installed")
    node = shutil.which("node")
    entry = {"name": "real", "command": [node, str(EVERYTHING)], "roles": "member", "effect": "read"}
    async with a_group(settings=servers(entry)) as group:
        await until(group, lambda: function(group, "mcp__real__echo"))
        specs = [spec for spec in group.daemon.registry.specs if spec.name.startswith("mcp__real__")]
        [fault] = faults(group).splitlines()
        assert "'simulate-research-query' can only run as a task" in fault
        assert len(specs) >= 12
        told = {}
        for spec in specs:
            if spec.name.endswith(("trigger-elicitation-request", "trigger-url-elicitation")):
                continue  # they ask questions, as in tests/browser/test_server_questions.py
            tool = spec.name.removeprefix("mcp__real__")
            required = {name: a_value(spec.parameters["properties"][name]) for name in spec.parameters["required"]}
            arguments = GIVEN.get(tool, required)
            told[tool] = await result(group, spec.name, **arguments)
    assert {tool: one for tool, one in told.items() if "error" in one} == {}
    assert told["echo"]["text"] == ["Echo: word"]
    assert "a picture, image/png" in told["get-tiny-image"]["text"][0]
    assert "PATH" in told["get-env"]["text"][0]
    assert "real: trigger-long-running-operation: 50%" in [text for _, text in group.platform.statuses]
    assert "ROLLCALL" not in told["get-env"]["text"][0]


def commit_into(folder: Path, message: str) -> None:
    """Create a repository with one commit."""
    git = ["git", "-C", str(folder), "-c", "user.name=Ann", "-c", "user.email=ann@test.invalid"]
    for arguments in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", message]):
        subprocess.run([*git, *arguments], check=True, timeout=30)


def a_value(schema: dict[str, Any]) -> Any:
    """A value that is valid for `schema`."""
    if "enum" in schema:
        return schema["enum"][0]
    return {"string": "word", "number": 2, "integer": 2, "boolean": True, "array": [], "object": {}}[schema["type"]]
