"""Approvals, including permanent ones, are valid for one version of a function: its commands, its code, its definition.
After an edit they are invalid."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from bot.testing import Group, a_group
from config.texts import Texts
from tests.bot.cli.running import a_settings_file, command
from tests.bot.test_approvals import ADMIN, asked, code_in, needing, post
from tests.fakes.command_tools import a_group_with, write
from tests.harness.mcp_servers import Script, a_tool, function, servers, until

EN = Texts().of("en")
CHANGED = EN.say("questions.changed", name="deploy")
TOOL = """
    tools:
      - name: deploy
        parameters: {word: {type: string, required: true}}
        commands: [deploy]
        effect: once
        ask: {word: "Which word?"}
        opts: {approval: once, approved_by: admin, sandbox: "off"}
        cmds: ["./own.py:act", [echo, OLD, "${word}"]]
"""
ACT = """
    def act(run, input):
        return "acted"
"""
EDITS = {"command": (TOOL.replace("OLD", "NEW"), ACT), "python": (TOOL, ACT.replace("acted", "did otherwise"))}


async def decided(group: Group, answer: str, line: str = "/deploy x") -> list[str]:
    code = code_in(await group.say("Ann", line))
    said = await group.say("Bob", f"{answer} {code}", **ADMIN)
    # The message about a permanent approval starts with how to revoke it.
    return said[-1:]


@pytest.mark.requirement("C25")
@pytest.mark.parametrize("edit", EDITS)
async def test_a_yes_to_a_command_tool_that_was_edited_since_runs_nothing(edit: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with a_group_with(tmp_path, TOOL, ACT, home=home) as group:
        code = code_in(await group.say("Ann", "/deploy x"))
    async with a_group_with(tmp_path, *EDITS[edit], home=home) as group:
        assert await group.say("Bob", f"approve {code}", **ADMIN) == [CHANGED]
        assert await decided(group, "approve") == ["NEW x" if edit == "command" else "OLD x"]


@pytest.mark.requirement("C25")
@pytest.mark.parametrize("edit", EDITS)
async def test_what_is_allowed_for_always_is_asked_for_again_after_an_edit_and_not_before(
    edit: str, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    async with a_group_with(tmp_path, TOOL, ACT, home=home) as group:
        assert await decided(group, "always") == ["OLD x"]
    async with a_group_with(tmp_path, TOOL, ACT, home=home) as group:
        assert await group.say("Ann", "/deploy x") == ["OLD x"]
    async with a_group_with(tmp_path, *EDITS[edit], home=home) as group:
        code_in(await group.say("Ann", "/deploy x"))


async def test_an_edit_of_one_tool_takes_no_yes_from_another_in_the_file(tmp_path: Path) -> None:
    home = tmp_path / "home"
    other = TOOL.split("\n", 2)[2].replace("deploy", "other")
    async with a_group_with(tmp_path, TOOL + other, ACT, home=home) as group:
        await decided(group, "always")
    async with a_group_with(tmp_path, TOOL + other.replace("OLD", "NEW"), ACT, home=home) as group:
        assert await group.say("Ann", "/deploy x") == ["OLD x"]


async def test_an_argument_that_was_asked_for_is_not_given_to_another_edition(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with a_group_with(tmp_path, TOOL, ACT, home=home) as group:
        assert await group.say("Ann", "/deploy") == ["Which word?"]
    async with a_group_with(tmp_path, TOOL.replace("OLD", "NEW"), ACT, home=home) as group:
        assert await group.say("Ann", "x") == [EN.say("questions.changed", name="/deploy")]


PYTHON = """
    from function_calls.context import MessageContext
    from function_calls.declaration import tool_function


    @tool_function(commands=("deploy",), effect="once", approval="admin")
    async def deploy(context: MessageContext) -> str:
        "Deploys."
        return SAID
"""
WAYS = ["file", "package", "tools"]


def edition(folder: Path, way: str, said: str) -> dict[str, Any]:
    """Settings of a group with such a function."""
    if way == "package":
        write(
            folder / "python" / "own",
            PYTHON.replace("SAID", "said()").replace("from", "from .words import said\n    from", 1),
            "__init__.py",
        )
        write(folder / "python" / "own", f"def said():\n    return {said!r}\n", "words.py")
    elif way == "tools":
        definition = '[{"name": "deploy", "commands": ["deploy"], "effect": "once", "approval": "admin", "handler": f}]'
        write(
            folder / "python", f"def f(args):\n    return {said!r}\n\ndef tools():\n    return {definition}\n", "own.py"
        )
    else:
        write(folder / "python", PYTHON.replace("SAID", repr(said)), "own.py")
    return {"sources": {"python": [str(folder / "python")]}}


@pytest.mark.requirement("C25")
@pytest.mark.parametrize("way", WAYS)
async def test_a_yes_to_python_that_was_edited_since_runs_nothing_and_always_is_over(way: str, tmp_path: Path) -> None:
    (tmp_path / "python").mkdir()
    home = tmp_path / "home"
    async with a_group(settings=edition(tmp_path, way, "one"), home=home) as group:
        assert await decided(group, "always", "/deploy") == ["one"]
    # Only the content of the files counts.
    for file in (tmp_path / "python").rglob("*.py"):
        os.utime(file, (1, 1))
    async with a_group(settings=edition(tmp_path, way, "one"), home=home) as group:
        assert await group.say("Ann", "/deploy") == ["one"]
    async with a_group(settings=edition(tmp_path, way, "two"), home=home) as group:
        code = code_in(await group.say("Ann", "/deploy"))
    async with a_group(settings=edition(tmp_path, way, "three"), home=home) as group:
        assert await group.say("Bob", f"approve {code}", **ADMIN) == [CHANGED]


@pytest.mark.requirement("C25")
async def test_always_for_a_foreign_tool_is_over_once_another_definition_of_it_is_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calc, home = a_tool("add", "say", "3", description="Adds."), tmp_path / "var"
    script = Script(tmp_path, calc)
    entry = script.settings(effect="idempotent", tools={"add": {"commands": ["add"]}}, approval="admin")
    text = f"mcp: {{servers: [{{name: {entry['name']}, command: [python]}}]}}\n"
    async with a_group(settings=servers(entry), home=home) as group:
        await until(group, lambda: function(group, "mcp__one__add"))
        assert await decided(group, "always", "/add") == ["3"]
        assert await group.say("Ann", "/add") == ["3"]
        script.write({**calc, "description": "Adds, and more."})
        await group.clock.advance(601)
        await until(group, lambda: function(group, "mcp__one__add") is None)
        file = a_settings_file(tmp_path, text)
        assert command(capsys, "mcp", "accept", "one", "add", "--yes", "--config", file).status == 0
        await group.daemon.housekeeping.notice_changes()
        await until(group, lambda: function(group, "mcp__one__add"))
        code_in(await group.say("Ann", "/add"))


async def test_a_yes_to_a_function_without_an_edition_holds_through_a_restart(tmp_path: Path) -> None:
    for answer in ("approve", "always"):
        function = post()
        async with a_group([function.spec], settings=needing(), home=tmp_path) as group:
            code = await asked(group)
        async with a_group([function.spec], settings=needing(), home=tmp_path) as group:
            assert (await group.say("Bob", f"{answer} {code}", **ADMIN))[-1] == "posted"
