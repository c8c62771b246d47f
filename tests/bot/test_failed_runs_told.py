"""Each failed run writes a log line with an id, and `/why` shows the id."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.testing import Group, a_group, call
from config.texts import Texts
from function_calls.profile import reason_text
from services.refs import ReasonCode
from tests.fakes.command_tools import a_group_with
from tests.fakes.functions import Recorder
from tests.fakes.kept import last_reason
from tests.harness.mcp_servers import Script, a_tool, function, servers, until

TOOLS = """
tools:
  - name: mkdir
    description: Make a folder.
    commands: [mkdir]
    opts: {sandbox: "off"}
    cmds:
      - [python3, -c, "import sys; sys.stderr.write('x' * 9000 + 'no room left'); sys.exit(3)"]
"""


def in_the_log(logs: list[Any]) -> dict[str, Any]:
    [line] = [one for one in logs if one["event"] == "function_did_not_work"]
    return line


async def why(group: Group) -> str:
    [said] = await group.say("Bob", "/why")
    return said


@pytest.mark.parametrize("text", ["/mkdir", "@Rollcall make one"])
async def test_a_command_that_fails_is_in_the_log_with_its_code_and_the_end_of_its_words(
    tmp_path: Path, text: str
) -> None:
    async with a_group_with(tmp_path, TOOLS) as group:
        group.model.says(call("mkdir"), "It did not work, sorry.")
        with capture_logs() as logs:
            assert await group.say("Ann", text)
            if text.startswith("@"):
                await group.say("Ann", "yes")
        line = in_the_log(logs)
        assert (line["function"], line["exit_code"]) == ("mkdir", 3)
        assert line["stderr"].endswith("no room left")
        assert len(line["stderr"]) <= 2000
        said = await why(group)
        assert f"the log (id {line['id']})" in said
        assert "settings" not in said


async def test_a_failure_that_the_model_puts_in_words_is_explained_by_its_id() -> None:
    broken = Recorder("broken", gives=ZeroDivisionError("oh")).spec
    note = Recorder("note", gives="noted").spec
    async with a_group([broken, note]) as group:
        group.model.says(call("broken"), "That did not work.")
        with capture_logs() as logs:
            await group.say("Ann", "@Rollcall do it")
        [short_id] = [one["id"] for one in logs if one["event"] == "function_failed"]
        assert await last_reason(group) == ("function_failed", short_id)
        group.model.says([call("note"), call("broken")], "Noted, but the other did not work.")
        await group.say("Ann", "@Rollcall do both")
        reason, detail = await last_reason(group)
        assert reason == "function"
        assert re.fullmatch(r"note, broken \(✗ [0-9a-f]{8}\)", detail)


async def test_a_tool_of_a_server_that_fails_is_explained_by_its_id(tmp_path: Path) -> None:
    script = Script(tmp_path, a_tool("pay", "fail", "the account is closed"))
    async with a_group(settings=servers(script.settings(effect="read")), home=tmp_path / "var") as group:
        await until(group, lambda: function(group, "mcp__one__pay"))
        group.model.says(call("mcp__one__pay"), "It did not work.")
        with capture_logs() as logs:
            await group.say("Ann", "@Rollcall pay")
        line = in_the_log(logs)
        assert "the account is closed" in line["answer"]
        assert await last_reason(group) == ("function_failed", line["id"])


@pytest.mark.parametrize(
    ("reason", "detail", "says"),
    [
        ("refused", "functions.ban.roles", "(settings: functions.ban.roles)"),
        ("refused", "approvals", "(settings: approvals)"),
        ("refused", "filters[0].blacklist", "(settings: filters[0].blacklist)"),
        ("refused", "mkdir", "“mkdir” was not allowed."),
        ("refused", "search", "“search” was not allowed."),
        ("refused", "/use deepsum", "(/use deepsum changes it)"),
        ("refused", "@command_tools.rejected_changed mkdir", "“mkdir” has changed since I asked"),
        ("function_failed", "1a2b3c4d", "the log (id 1a2b3c4d)"),
        ("function_failed", "functions.hold.timeout_seconds", "(settings: functions.hold.timeout_seconds)"),
        ("function_failed", "mkdir", "something failed in “mkdir”."),
    ],
)
def test_only_what_is_a_setting_is_called_one(reason: str, detail: str, says: str) -> None:
    told = reason_text(Texts().of("en"), ReasonCode(reason), detail)
    assert says in told
    assert ("settings" in told) == ("settings" in says)
