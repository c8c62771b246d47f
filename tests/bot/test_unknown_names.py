"""Misspelt names in the settings are reported by the running daemon as well as by `rollcall check`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.live.settings import Reload
from bot.testing import Group, a_group
from bot.web.wiring import probes_of
from config.settings import Settings
from config.texts import Texts
from tests.fakes.functions import Recorder
from tests.fakes.held import until
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.sources import Written
from tests.harness.real_daemon import a_real_daemon

OPS = "test:bot:ops"
EN = Texts().of("en")
WETHER = {"wether": {"enabled": False}}
OTHERS: list[dict[str, Any]] = [
    {"router": {"pinned": ["wether", "help"]}},
    {"budgets": {"functions": {"wether": 1}}},
    {"bots": {"default": {"functions": WETHER}}},
    {"chats": {"allow": ["*"], "settings": {"test:*": {"functions": WETHER}}}},
    {"approvals": {"required": [{"functions": ["wether"]}]}},
    {"mcp": {"serve": {"clients": [{"name": "c", "token": "0123456789abcdef0123", "functions": ["wether", "todo"]}]}}},
]


async def reload(group: Group, **sections: Any) -> None:
    fresh = Settings.model_validate({**group.daemon.live.now.model_dump(), **sections})
    assert await Reload(group.daemon.live, lambda: fresh).now()
    await group.daemon.functions.wait_published()
    await group.clock.settle()


def warned(logs: list[Any]) -> list[str]:
    return [one["problem"] for one in logs if one["event"] == "unknown_name" and one["log_level"] == "warning"]


@pytest.mark.parametrize("settings", [{"functions": WETHER}, *OTHERS], ids=lambda one: next(iter(one)))
async def test_a_name_that_no_function_has_is_told_at_the_start(settings: dict[str, Any]) -> None:
    with capture_logs() as logs:
        async with a_group(settings=settings) as group:
            [told] = warned(logs)
            assert "there is no function 'wether'; did you mean 'weather'?" in told
            ready = probes_of(group.daemon).ready()
            assert ready.ok
            assert ready.details["settings"].startswith("1 of names that no function has")


async def test_it_is_told_once_after_a_reload_in_the_operators_chat_too_and_that_all_is_well_again() -> None:
    async with a_group(settings={"operators": {"chat": OPS}}) as group:
        with capture_logs() as logs:
            await reload(group, functions=WETHER)
            await reload(group, functions=WETHER, language="zh")
            await reload(group, functions=WETHER, language="en")
        assert len(warned(logs)) == 1
        await group.clock.advance(2)
        await group.settle()
        assert "functions.wether: there is no function 'wether'" in group.platform.sent[-1].text
        await reload(group, functions={"weather": {"enabled": False}})
        assert probes_of(group.daemon).ready().details["settings"] == "ok"
        await group.clock.advance(120)
        await group.settle()
        assert group.platform.sent[-1].text == EN.say("operators.well")


async def test_a_function_that_goes_leaves_its_name_unknown_and_one_that_comes_makes_it_known() -> None:
    act, other = Recorder("act").spec, Recorder("other").spec
    source = Written("files", act)
    async with a_group(sources=[source], settings={"functions": {"act": {"enabled": False}}}) as group:
        names = group.daemon.unknown_names
        assert names.faults == ()
        source.write(other)
        await source.read()
        assert [one.message for one in names.faults] == [
            "functions.act: there is no function 'act'; `rollcall functions` lists them"
        ]
        source.write(act)
        await source.read()
        assert names.faults == ()


async def test_names_of_a_server_whose_tools_nobody_knows_yet_are_no_mistake() -> None:
    servers = {"servers": [{"name": "far", "command": ["no-such-program"]}]}
    named = {"mcp__far__add": {"enabled": False}, "mcp__fra__add": {"enabled": False}}
    async with a_group(settings={"mcp": servers, "functions": named}) as group:
        [fault] = group.daemon.unknown_names.faults
        assert "'mcp__fra__add'" in fault.message


async def test_the_daemon_says_the_line_of_the_settings_file(tmp_path: Path) -> None:
    async with OpenAIServer([]) as server, a_real_daemon(tmp_path, server.base_url) as daemon:
        file = tmp_path / "bot.yaml"
        line = len(file.read_text().splitlines()) + 2
        file.write_text(file.read_text() + "\nfunctions: {wether: {enabled: false}}\n")
        await until(lambda: daemon.log.exists() and "unknown_name" in daemon.log.read_text())
        assert f"{file}:{line}:" in daemon.log.read_text()
        await daemon.told_to_stop()
        assert await daemon.ended() == 0
