"""Scripts as functions of a bot: called by models, commands and other programs, and edited while the bot runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any

import pytest

from bot.testing import Group, a_group, call
from services.clock import VirtualClock
from services.scripts.basic_tools import BasicTools
from services.store.chats import basic_tools
from services.store.port import Query, Row, Store, StoreHealth, Write
from tests.bot.basic_group import a_group_with
from tests.bot.cli.running import Printed, a_settings_file, command
from tests.fakes.sources import ToldChanges
from tests.function_calls.script_library.libraries import ORDER, says


def put(folder: Path, name: str, text: str) -> Path:
    file = folder / f"{name}.bas"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def settings(drive: Path, **entry: Any) -> dict[str, Any]:
    return {"sources": {"basic": [{"path": str(drive), **entry}]}}


def faults(group: Group) -> list[str]:
    return [str(one) for one in group.daemon.functions.faults]


async def compilations(group: Group) -> dict[str, int]:
    """Compilation time of each tool, in milliseconds."""
    rows = await group.daemon.store.read(basic_tools.EVERYTHING)
    return {row["tool_name"]: row["compiled_ms"] for row in rows}


@pytest.mark.requirement("A1", "A6", "A43", "A44", "B5", "B11", "B12", "B14", "B15", "B24")
async def test_a_model_calls_a_script_and_the_chat_hears_what_it_says(tmp_path: Path) -> None:
    put(tmp_path / "drive", "process_order", ORDER)
    async with a_group(settings=settings(tmp_path / "drive")) as group:
        order = {"customer_name": "Ann", "order_amount": 12.5, "shipping_address": "1 Elm St"}
        group.model.says(call("process_order", **order), "Done.")
        said = await group.say("Ann", "@Rollcall process an order for Ann: 12.50, to 1 Elm St")
        assert "Processing order for Ann" in "\n".join(said)
        offer = group.model.requests[0].offer
        assert offer is not None
        [offered] = [one for one in offer.functions if one.name == "process_order"]
        assert offered.description == "Process a new customer order"
        assert offered.parameters["properties"]["order_amount"]["example"] == 99.99


@pytest.mark.requirement("B13")
async def test_arguments_that_do_not_fit_never_reach_the_script(tmp_path: Path) -> None:
    put(tmp_path / "drive", "process_order", ORDER)
    async with a_group(settings=settings(tmp_path / "drive")) as group:
        wrong = {"customer_name": "Ann", "order_amount": "plenty", "shipping_address": "1 Elm St"}
        group.model.says(call("process_order", **wrong), "Sorry.")
        said = await group.say("Ann", "@Rollcall I want to order")
        assert "Processing order" not in "\n".join(said)
        assert "order_amount" in group.model.requests[-1].messages[-1].content


@pytest.mark.requirement("A1", "B14")
async def test_a_script_is_a_command_by_its_name_and_asks_for_what_is_missing(tmp_path: Path) -> None:
    text = 'PARAM who AS string LIKE "Ann" DESCRIPTION "Who is greeted"\nDESCRIPTION "Greets"\nTALK "Hello, " + WHO\n'
    put(tmp_path / "drive", "salute", text)
    async with a_group(settings=settings(tmp_path / "drive")) as group:
        assert await group.say("Ann", "/salute Ben") == ["Hello, Ben"]
        [question] = await group.say("Ann", "/salute")
        assert "who" in question.lower()
        assert await group.say("Ann", "Cid") == ["Hello, Cid"]


@pytest.mark.requirement("A7", "A9", "A10", "A29", "A63")
async def test_a_script_that_is_written_edited_broken_mended_or_deleted_is_so_at_the_next_message(
    tmp_path: Path,
) -> None:
    drive, changes = tmp_path / "drive", ToldChanges()
    drive.mkdir()
    async with a_group(settings=settings(drive), changes=changes) as group:

        async def asked() -> list[str]:
            await changes.told_and_heard()
            return await group.say("Ann", "@Rollcall /edited")

        assert "I don't know" in (await asked())[0]
        file = put(drive, "edited", says("first"))
        assert await asked() == ["first"]
        put(drive, "edited", says("second"))
        assert await asked() == ["second"]
        put(drive, "edited", "TALK )\n")
        assert await asked() == ["second"]
        assert f"{file}:1" in faults(group)[0]
        put(drive, "edited", says("third"))
        assert await asked() == ["third"]
        assert faults(group) == []
        file.unlink()
        assert "I don't know" in (await asked())[0]


@pytest.mark.requirement("A25")
async def test_a_bot_has_the_scripts_of_its_own_folder(tmp_path: Path) -> None:
    drive = tmp_path / "drive"
    put(drive / "shop.gbai" / "shop.gbdialog", "stock", says("in the shop"))
    put(drive, "stock", says("elsewhere"))
    given = {**settings(drive), "bots": {"shop": {"name": "Shop"}}}
    async with a_group(settings=given) as group:
        of = group.daemon.registry.of
        shop, default = of("shop").find("stock"), of("default").find("stock")
        assert shop is not None
        assert default is not None
        assert (shop.access.bot, default.access.bot) == ("shop", "default")
        assert faults(group) == []


async def test_the_script_that_begins_conversations_is_no_command_and_not_offered(tmp_path: Path) -> None:
    put(tmp_path / "drive", "start", 'TALK "Welcome"\n')
    async with a_group(settings=settings(tmp_path / "drive")) as group:
        said = await group.say("Ann", "@Rollcall /start")
        assert said[0] == "Welcome"
        assert "I don't know" in said[1]
        group.model.says("Hello.")
        await group.say("Ann", "@Rollcall hello")
        offer = group.model.requests[0].offer
        assert offer is not None
        assert "start" not in [one.original for one in offer.functions]
        assert group.daemon.registry.of("default").find("start") is not None


async def test_a_script_cannot_take_the_name_of_a_function_that_is_there(tmp_path: Path) -> None:
    put(tmp_path / "drive", "help", says("no help"))
    async with a_group(settings=settings(tmp_path / "drive")) as group:
        assert "'help' is taken twice" in faults(group)[0]
        assert "help.bas" in faults(group)[0]
        assert await group.say("Ann", "/help") != ["no help"]


@pytest.mark.requirement("A5", "A33", "A47")
async def test_a_restart_compiles_nothing_that_has_not_changed(tmp_path: Path) -> None:
    drive, home = tmp_path / "drive", tmp_path / "var"
    put(drive, "one", says("one"))
    put(drive, "two", says("two"))
    async with a_group(settings=settings(drive), home=home) as group:
        first = await compilations(group)
    put(drive, "two", says("zwei"))
    clock = VirtualClock()
    await clock.advance(60)
    async with a_group(settings=settings(drive), home=home, clock=clock) as group:
        second = await compilations(group)
        assert await group.say("Ann", "/one") == ["one"]
        assert await group.say("Ann", "/two") == ["zwei"]
    assert second["one"] == first["one"]
    assert second["two"] > first["two"]


class _NotedReads:
    """Passes on everything and records the names of queries."""

    def __init__(self) -> None:
        self.read_names: list[str] = []
        self._inner: Store | None = None

    def under(self, store: Store) -> Store:
        self._inner = store
        return self

    @property
    def _store(self) -> Store:
        assert self._inner is not None
        return self._inner

    def commit(self, writes: Sequence[Write]) -> Awaitable[list[int]]:
        return self._store.commit(writes)

    def post(self, writes: Sequence[Write]) -> None:
        self._store.post(writes)

    async def read(self, query: Query) -> list[Row]:
        self.read_names.append(query.statement.name)
        return await self._store.read(query)

    def health(self) -> StoreHealth:
        return self._store.health()

    async def check(self) -> None:
        await self._store.check()

    async def close(self) -> None:
        await self._store.close()


@pytest.mark.requirement("B20")
async def test_neither_a_call_nor_an_offer_looks_a_script_up_in_the_database(tmp_path: Path) -> None:
    put(tmp_path / "drive", "salute", says("Hello"))
    noted = _NotedReads()
    async with a_group(settings=settings(tmp_path / "drive"), around_store=noted.under) as group:
        noted.read_names.clear()
        assert await group.say("Ann", "/salute") == ["Hello"]
        group.model.says(call("salute"), "Done.")
        await group.say("Ann", "@Rollcall greet us")
    assert noted.read_names
    assert [name for name in noted.read_names if name.startswith("basic_tools")] == []


@pytest.mark.requirement("A26", "A31")
async def test_an_operator_has_scripts_compiled_anew_beside_the_daemon(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drive, home = tmp_path / "drive", tmp_path / "var"
    put(drive, "one", says("one"))
    put(drive, "two", says("two"))
    file = a_settings_file(tmp_path, f"sources: {{basic: [{drive}]}}\n")
    async with a_group(settings=settings(drive), home=home, changes=ToldChanges()) as group:
        before = await compilations(group)
        await group.clock.advance(1)
        printed = command(capsys, "basic", "recompile", "default", "two", "--config", file)
        assert printed == Printed(0, printed.out, "")
        assert "1 tool" in printed.out
        told = Told(group)
        await group.daemon.housekeeping.notice_changes()
        await told.changed()
        after = await compilations(group)
        assert (after["one"], after["two"]) == (before["one"], before["two"] + 1000)
        assert await group.say("Ann", "/two") == ["two"]


class Told:
    """Waits for a change of the functions."""

    def __init__(self, group: Group) -> None:
        self._event = asyncio.Event()
        group.daemon.functions.on_change(self._event.set)

    async def changed(self) -> None:
        async with asyncio.timeout(10):
            await self._event.wait()


async def test_scripts_come_and_go_with_the_settings(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    put(one, "first", says("first"))
    put(two, "second", says("second"))
    async with a_group(settings=settings(one), home=tmp_path / "var") as group:
        kept = BasicTools(group.daemon.store)
        fresh = group.daemon.live.now.model_validate({**group.daemon.live.now.model_dump(), **settings(two)})
        group.daemon.live.put(group.daemon.live.replacement(fresh), lambda: None)
        await group.daemon.functions.wait_published()
        assert await group.say("Ann", "/second") == ["second"]
        assert "I don't know" in (await group.say("Ann", "@Rollcall /first"))[0]
        assert {one.tool_name: one.is_active for one in await kept.everything()} == {"first": 0, "second": 1}


async def test_a_script_whose_command_is_taken_is_a_function_all_the_same(tmp_path: Path) -> None:
    async with a_group_with(tmp_path, ask='TALK "halt"', outer='CALL "ask"') as group:
        assert group.daemon.registry.of("default").find("ask") is not None
        assert await group.say("Ann", "/outer") == ["halt"]
        assert await group.say("Ann", "/ask") != ["halt"]
        [warned] = [one for one in group.daemon.functions.faults if "'ask'" in str(one)]
        assert (warned.severity, "'ask' is taken twice" in warned.message) == ("warning", True)
