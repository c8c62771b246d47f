"""Messages to the operators' chat: one for each broken edit, one for the recovery, and limited in number."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from bot.live.settings import Reload
from bot.testing import Group, a_group
from bot.web.wiring import probes_of
from config.diagnostics import Code, Diagnostic, Diagnostics
from config.loader import SettingsInvalid
from config.settings import Settings
from config.texts import Texts
from function_calls.schema.definition import problem_at
from function_calls.spec import Origin
from tests.fakes.functions import Recorder
from tests.fakes.sources import Written

OPS = "test:bot:ops"
EN = Texts().of("en")
WELL = EN.say("operators.well")


def broken(file: str = "tools.yaml", line: int = 3, message: str = "it is broken") -> Diagnostic:
    return Diagnostic(file, line, 1, "functions.unusable", message)


class World:
    """A group whose operators have a chat."""

    def __init__(self, group: Group, source: Written) -> None:
        self.group = group
        self.source = source

    async def is_broken(self, *faults: Diagnostic) -> None:
        """Let the source report exactly these problems."""
        self.source.write(Recorder("act", commands=["act"]).spec, faults=faults)
        await self.source.read()

    async def told_after(self, seconds: float) -> Sequence[str]:
        """Messages to the operators during this time."""
        before = len(self.group.platform.sent)
        await self.group.clock.settle()
        await self.group.clock.advance(seconds)
        await self.group.settle()
        sent = self.group.platform.sent[before:]
        assert {one.chat.key for one in sent} <= {OPS}
        return [one.text for one in sent]


@asynccontextmanager
async def a_world(**settings: Any) -> AsyncIterator[World]:
    source = Written("files", Recorder("act", commands=["act"]).spec)
    async with a_group(sources=[source], settings={"operators": {"chat": OPS}, **settings}) as group:
        yield World(group, source)


async def test_what_broke_is_told_once_with_its_place_and_so_is_that_all_is_well_again() -> None:
    async with a_world() as world:
        await world.is_broken(broken())
        [told] = await world.told_after(2)
        assert told == EN.say("operators.functions_broke", lines="tools.yaml:3: it is broken")
        await world.is_broken(broken())
        assert await world.told_after(120) == []
        await world.is_broken()
        assert await world.told_after(2) == [WELL]
        assert await world.told_after(120) == []


async def test_what_was_broken_for_a_moment_alone_is_not_told() -> None:
    async with a_world() as world:
        await world.is_broken(broken())
        await world.is_broken()
        assert await world.told_after(120) == []


async def test_who_breaks_many_things_is_told_of_them_together_and_at_most_once_a_minute() -> None:
    async with a_world() as world:
        await world.is_broken(broken("a.yaml"))
        await world.is_broken(broken("a.yaml"), broken("b.yaml"))
        [told] = await world.told_after(2)
        assert "a.yaml:3" in told
        assert "b.yaml:3" in told
        for line in range(50):
            await world.is_broken(broken("c.yaml", line))
            assert await world.told_after(1) == []
        [told] = await world.told_after(30)
        assert told.count("c.yaml") == 1
        assert "c.yaml:49" in told


async def test_a_long_list_is_cut_and_says_so() -> None:
    async with a_world() as world:
        await world.is_broken(*(broken(line=line, message="x" * 900) for line in range(1, 20)))
        [told] = await world.told_after(2)
        assert told.count("tools.yaml") == 5
        assert EN.say("operators.more", count=14) in told
        assert len(told) < 1900


async def test_what_is_still_broken_is_not_well() -> None:
    async with a_world() as world:
        await world.is_broken(broken("a.yaml"), broken("b.yaml"))
        await world.told_after(2)
        await world.is_broken(broken("b.yaml"))
        assert await world.told_after(120) == []
        await world.is_broken()
        assert await world.told_after(2) == [WELL]


async def test_a_source_that_breaks_down_is_told_of_too() -> None:
    async with a_world() as world:
        world.source.break_down()
        [told] = await world.told_after(2)
        assert "'files' broke down" in told


async def test_faulty_settings_are_told_in_the_language_of_the_chat_and_secrets_are_not() -> None:
    chats = {"allow": ["*"], "settings": {OPS: {"language": "zh"}}}
    models = [{"name": "main", "model": "m", "api_key": "a-very-secret-key"}]
    async with a_world(chats=chats, models=models) as world:

        def read() -> Settings:
            raise SettingsInvalid(
                Diagnostics([Diagnostic("bot.yaml", 7, 3, Code.BAD_VALUE, "a-very-secret-key\u202e is no number")])
            )

        reload = world.group.daemon.reload
        faulty = Reload(world.group.daemon.live, read)
        faulty.on_change(lambda: world.group.daemon.operator_notices.changed())
        world.group.daemon.operator_notices.watch("settings", lambda: faulty.faults)
        await faulty.now()
        [told] = await world.told_after(2)
        lines = "bot.yaml:7: ***<U+202E> is no number"
        assert told == Texts().of("zh").say("operators.settings_broke", lines=lines)
        assert reload.faults == ()


async def test_another_chat_is_told_what_is_broken_already_and_none_is_told_nothing() -> None:
    source = Written("files", Recorder("act").spec)
    async with a_group(sources=[source]) as group:
        world = World(group, source)
        await world.is_broken(broken())
        assert await world.told_after(120) == []
        fresh = Settings.model_validate({**group.daemon.live.now.model_dump(), "operators": {"chat": OPS}})
        await Reload(group.daemon.live, lambda: fresh).now()
        [told] = await world.told_after(2)
        assert "tools.yaml:3" in told


async def test_readiness_names_the_places_and_metrics_count_them_and_it_stays_ready() -> None:
    async with a_world() as world:
        probes = probes_of(world.group.daemon)
        assert (probes.ready().details["functions"], probes.ready().details["settings"]) == ("ok", "ok")
        await world.is_broken(*(broken(line=line) for line in range(1, 8)))
        ready = probes.ready()
        assert ready.ok
        assert ready.details["functions"].startswith("7 cannot be used: tools.yaml:1, tools.yaml:2")
        assert ready.details["functions"].endswith("2 more")
        assert b"rollcall_functions_unusable 7.0" in probes.metrics()
        assert b"rollcall_settings_faulty 0.0" in probes.metrics()


async def flaps(world: World, hours: int, faults: Callable[[int], Sequence[Diagnostic]]) -> Sequence[str]:
    """Messages while a problem appears and disappears every ten minutes."""
    told: list[str] = []
    for number in range(hours * 6):
        await world.is_broken(*faults(number))
        told += await world.told_after(300)
        await world.is_broken()
        told += await world.told_after(300)
    return told


async def test_what_breaks_again_and_again_is_told_once_an_hour() -> None:
    async with a_world() as world:
        told = await flaps(world, 5, lambda number: [broken()])
    assert 4 <= len([one for one in told if one != WELL]) <= 5
    assert len([one for one in told if one == WELL]) <= 5


async def test_one_place_with_ever_new_words_does_not_flood_either() -> None:
    async with a_world() as world:
        told = await flaps(world, 4, lambda number: [broken(message=f"number {number}")])
    assert 4 <= len([one for one in told if one != WELL]) <= 12


async def test_suppressed_problems_are_reported_later_if_they_persist_and_not_if_they_are_repaired() -> None:
    async with a_world() as world:
        await world.is_broken(broken())
        assert len(await world.told_after(2)) == 1
        await world.is_broken()
        assert await world.told_after(100) == [WELL]
        await world.is_broken(broken())
        assert await world.told_after(3000) == []
        [again] = await world.told_after(700)
        assert "tools.yaml:3" in again
        await world.is_broken()
        assert await world.told_after(100) == [WELL]
        await world.is_broken(broken())
        await world.told_after(100)
        await world.is_broken()
        assert await world.told_after(7200) == []


async def test_another_place_waits_for_no_hour() -> None:
    async with a_world() as world:
        await world.is_broken(broken())
        await world.told_after(2)
        await world.is_broken()
        await world.told_after(100)
        await world.is_broken(broken(), broken(line=9))
        [told] = await world.told_after(100)
        assert "tools.yaml:9" in told
        assert "tools.yaml:3" not in told


async def test_a_server_that_cannot_be_reached_for_ever_new_reasons_is_one_fault() -> None:
    async with a_world() as world:
        told: list[str] = []
        for number in range(100):
            await world.is_broken(Diagnostic("mcp.servers.one", 1, 1, "functions.unreachable", f"reason {number % 3}"))
            told += await world.told_after(300)
    assert len(told) == 1


async def test_that_a_version_from_before_serves_on_is_said_only_where_one_does() -> None:
    async with a_world() as world:
        await world.is_broken(broken())
        [told] = await world.told_after(2)
        assert EN.say("operators.serves_on") not in told
    there = replace(Recorder("act", commands=["act"]).spec, origin=Origin(source="tools.yaml:1"))
    async with a_world() as world:
        world.source.write(there, faults=[broken()])
        await world.source.read()
        [told] = await world.told_after(2)
        assert told.endswith(EN.say("operators.serves_on"))


async def test_a_server_of_tools_has_its_key_as_its_place_and_no_line() -> None:
    async with a_world() as world:
        await world.is_broken(problem_at("mcp.servers.tiny", "the tool is withdrawn"))
        [told] = await world.told_after(2)
        assert "\nmcp.servers.tiny: the tool is withdrawn" in told
        assert probes_of(world.group.daemon).ready().details["functions"] == "1 cannot be used: mcp.servers.tiny"
