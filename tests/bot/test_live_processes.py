"""Changed settings for functions on this machine apply from the next call, without a restart."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from bot.live.settings import Reload
from bot.testing import Group, a_group
from config.sections.mcp import McpServerSettings
from config.sections.processes import SandboxSettings
from config.settings import Settings
from config.texts import Texts
from services.clock import SystemClock
from services.mcp.opening import SandboxedStart
from services.mcp.problems import Unreachable
from services.refs import ChatRef, Role
from services.sandbox.processes import CannotStart, Command, Limits
from services.sandbox.sandbox import Isolation, NotIsolated, Sandbox
from tests.fakes.command_tools import write
from tests.harness.sandboxes import LIVING, a_line, needs_bubblewrap, python

TEXTS = Texts().of("en")
ADMIN = {"role": Role.ADMIN, "chat": ChatRef("test", "bot", "ann"), "is_group": False}
SHELL = {"plugins": ["shell"], "functions": {"shell_exec": {"approval": "none"}}}
LS, CAT = {"path": "/usr/bin/ls"}, {"path": "/usr/bin/cat"}


async def say(group: Group, text: str) -> str:
    """The answer to an admin in a private chat."""
    return "\n".join(await group.say("Ann", text, **ADMIN))


async def reload(group: Group, **sections: Any) -> bool:
    """Reload the settings with these sections; returns whether they were valid."""
    fresh = Settings.model_validate({**group.daemon.live.now.model_dump(), **sections})
    return await Reload(group.daemon.live, lambda: fresh).now()


@needs_bubblewrap
async def test_a_program_may_be_run_for_as_long_as_the_list_has_it() -> None:
    async with a_group(settings={**SHELL, "shell": {"programs": {"ls": LS, "cat": CAT}}}) as group:
        before = await say(group, "/shell ls")
        assert await reload(group, shell={"programs": {"cat": CAT}})
        without = await say(group, "/shell ls")
        assert await reload(group, shell={"programs": {"ls": LS}, "timeout_seconds": 5})
        after = await say(group, "/shell ls")
    assert before == after == TEXTS.say("shell.silent")
    assert without != before


@needs_bubblewrap
async def test_a_program_that_was_allowed_does_not_stay_so_when_the_settings_change_while_it_waits_for_a_yes() -> None:
    settings = {"plugins": ["shell"], "shell": {"programs": {"ls": LS}}}
    async with a_group(settings=settings) as group:
        asked = await say(group, "/shell ls")
        assert await reload(group, shell={"programs": {"cat": CAT}})
        said = await say(group, f"approve {asked.rpartition('#')[2]}")
    assert "needs approval" in asked
    assert TEXTS.say("shell.silent") not in said
    assert "ls" in said


async def test_what_a_chat_may_keep_is_what_the_settings_say_now() -> None:
    text = "x" * 1500
    async with a_group(settings={"plugins": ["file"]}) as group:
        before = await say(group, f"/file write one.txt {text}")
        assert await reload(group, files={"file_kilobytes": 1})
        too_long = await say(group, f"/file write two.txt {text}")
        assert await reload(group, files={"most_files": 1})
        too_many = await say(group, "/file write two.txt x")
        assert await reload(group, files={})
        after = await say(group, f"/file write two.txt {text}")
    assert after == before.replace("one.txt", "two.txt")
    assert (too_long, too_many) == (
        TEXTS.say("files.problem.too_big", path="two.txt", kilobytes=1),
        TEXTS.say("files.problem.too_many", path="two.txt", most=1),
    )


@needs_bubblewrap
async def test_nothing_runs_outside_a_sandbox_once_the_settings_require_one(tmp_path: Path) -> None:
    tool = """
    tools:
      - name: where
        commands: [where]
        cmds: [[readlink, /proc/self/ns/mnt]]
        opts: {sandbox: "off"}
    """
    write(tmp_path / "commands", tool)
    own = os.readlink("/proc/self/ns/mnt")
    async with a_group(settings={"sources": {"commands": [str(tmp_path / "commands")]}, **SHELL}) as group:
        assert own in await say(group, "/where")
        assert await reload(group, sandbox={"isolation": "required"})
        apart = await say(group, "/where")
        assert await reload(group, sandbox={"isolation": "off"})
        assert own in await say(group, "/where")
        assert await say(group, "/shell ls") == TEXTS.say("shell.not_isolated")
    assert "mnt:[" in apart
    assert own not in apart


async def test_a_server_of_tools_starts_as_the_settings_of_its_next_start_say(tmp_path: Path) -> None:
    sandbox = Sandbox(SystemClock(), SandboxSettings())
    start = SandboxedStart(sandbox, tmp_path)
    entry = McpServerSettings.model_validate({"name": "one", "command": ["/bin/true"], "sandbox": "off"})
    plain = await start(entry)
    sandbox.use(SandboxSettings(isolation="required"))
    try:
        held = (await start(entry)).argv
    except Unreachable:
        held = ()
    assert plain.argv[0] == "/bin/true"
    assert held == () or "/usr/bin/bwrap" in held


async def test_more_places_let_in_who_waits_and_fewer_end_nobody(tmp_path: Path) -> None:
    def settings(at_once: int) -> SandboxSettings:
        return SandboxSettings(at_once=at_once, isolation="off")

    sandbox = Sandbox(SystemClock(), settings(1))
    async with a_line(tmp_path) as line:
        first = asyncio.create_task(sandbox.run(python(f"{LIVING}live()", folder=tmp_path)))
        assert await line.is_taken()
        second = asyncio.create_task(sandbox.run(Command(("true",))))
        await asyncio.sleep(0)
        sandbox.use(settings(2))
        assert (await second).exit_code == 0
        sandbox.use(settings(1))
        third = asyncio.create_task(sandbox.run(Command(("true",))))
        await asyncio.sleep(0)
        assert not first.done()
        assert not third.done()
        first.cancel()
        await asyncio.wait([first])
        assert (await third).exit_code == 0


async def test_who_waits_for_a_place_starts_by_the_settings_of_then(tmp_path: Path) -> None:
    sandbox = Sandbox(SystemClock(), SandboxSettings(at_once=1))
    async with a_line(tmp_path) as line:
        first = asyncio.create_task(sandbox.run(python(f"{LIVING}live()", folder=tmp_path), Limits(), Isolation.OFF))
        assert await line.is_taken()
        second = asyncio.create_task(sandbox.run(Command(("true",)), Limits(), Isolation.REQUIRED))
        await asyncio.sleep(0)
        sandbox.use(SandboxSettings(at_once=1, isolation="off"))
        first.cancel()
        await asyncio.wait([first])
        [ended] = await asyncio.gather(second, return_exceptions=True)
    assert isinstance(ended, NotIsolated)


async def test_a_place_is_free_again_whatever_became_of_who_waited_for_it() -> None:
    sandbox = Sandbox(SystemClock(), SandboxSettings(at_once=1, isolation="off"))
    for _ in range(3):
        waiting = [asyncio.create_task(sandbox.run(Command((name,)))) for name in ("true", "nobody-has-this", "true")]
        await asyncio.sleep(0)
        waiting[2].cancel()
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert isinstance(ended[1], CannotStart)
        assert isinstance(ended[2], asyncio.CancelledError)
    assert (await sandbox.run(Command(("true",)))).exit_code == 0
