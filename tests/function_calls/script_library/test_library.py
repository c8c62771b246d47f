"""The script library: scripts are found, compiled, cached and reused."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from config.sections.basic import BasicSource
from function_calls.basic.tool_definition import ToolDefinition
from function_calls.spec import OfferedTo, Touch
from services.refs import Effect
from services.storage import StorageError
from services.store.chats import basic_tools
from services.store.statements import compile_statement
from tests.fakes.builders import a_message
from tests.fakes.memory_storage import MemoryStorage
from tests.function_calls.script_library.libraries import (
    BROKEN,
    ORDER,
    REGISTRATION,
    Scripts,
    faults,
    names,
    says,
    scripts,
    spec,
)


def files(**contents: str) -> MemoryStorage:
    """Scripts in the root of a storage."""
    return MemoryStorage({f"{name}.bas": content for name, content in contents.items()})


async def digest_of(world: Scripts, name: str, snapshot: Any) -> str:
    """Digest of the program that a call of the function would run."""
    result = await spec(snapshot, name).handler(a_message(), {}, None)  # type: ignore[arg-type]  # needs no call
    return str(result.data["digest"])


# Messages to operators


async def test_each_look_is_one_line_of_the_log_with_what_became_of_scripts(tmp_path: Path) -> None:
    storage = files(a=says("A"), b=says("B"), c=BROKEN)
    async with scripts(tmp_path, storage=storage) as world:
        with capture_logs() as logs:
            async with world.running():
                storage.write("a.bas", says("A again"))
                storage.write("d.bas", says("D"))
                storage.delete("b.bas")
                await world.look()
                await world.look()
        assert [one for one in logs if one["event"] == "scripts_changed"] == [
            {
                "event": "scripts_changed", "log_level": "info", "where": "drive",
                "added": 2, "added_scripts": "a.bas, b.bas", "broken": 1, "broken_scripts": "c.bas",
            },
            {
                "event": "scripts_changed", "log_level": "info", "where": "drive",
                "deleted": 1, "deleted_scripts": "b.bas", "changed": 1, "changed_scripts": "a.bas",
                "added": 1, "added_scripts": "d.bas",
            },
        ]  # fmt: skip
        with capture_logs() as logs:
            await world.once()
        assert [one for one in logs if one["event"] == "scripts_changed"] == []


async def test_no_more_than_twenty_scripts_are_named_in_the_log(tmp_path: Path) -> None:
    storage = files(**{f"s{number:02}": says("A") for number in range(25)})
    async with scripts(tmp_path, storage=storage) as world:
        with capture_logs() as logs:
            await world.once()
    [line] = [one for one in logs if one["event"] == "scripts_changed"]
    assert line["added"] == 25
    assert line["added_scripts"].endswith("s19.bas and 5 more")


# Finding scripts


@pytest.mark.requirement("A2", "A8", "A12")
async def test_scripts_lie_in_the_folders_of_bots_or_at_the_top_and_other_files_are_none(tmp_path: Path) -> None:
    drive = tmp_path / "drive"
    for path in (
        "crm.gbai/crm.gbdialog/lead.bas",
        "crm.gbai/crm.gbkb/notes.bas",
        "crm.gbai/lost.bas",
        "crm.gbai/crm.gbdialog/deep/down.bas",
        "other/else.bas",
        "top.bas",
        "_draft.bas",
        "readme.txt",
    ):
        (drive / path).parent.mkdir(parents=True, exist_ok=True)
        (drive / path).write_text(says(path), encoding="utf-8")
    async with scripts(tmp_path / "var") as world:
        snapshot = await world.once(BasicSource(path=drive))
        assert [(one.access.bot, one.name) for one in snapshot.specs] == [("crm", "lead"), ("default", "top")]
        assert snapshot.faults == ()
        assert (world.folder("crm") / "lead.bas").read_text() == says("crm.gbai/crm.gbdialog/lead.bas")


@pytest.mark.requirement("A2")
@pytest.mark.parametrize("path", ["crm.gbai", "crm.gbai/crm.gbdialog", "crm.gbai/crm.gbdialog/lead.bas"])
async def test_a_path_may_lead_to_one_bot_one_folder_or_one_script(tmp_path: Path, path: str) -> None:
    file = tmp_path / "drive" / "crm.gbai" / "crm.gbdialog" / "lead.bas"
    file.parent.mkdir(parents=True)
    file.write_text(says("x"), encoding="utf-8")
    async with scripts(tmp_path / "var") as world:
        snapshot = await world.once(BasicSource(path=tmp_path / "drive" / path, bot="crm"))
        assert [(one.access.bot, one.name) for one in snapshot.specs] == [("crm", "lead")]


async def test_scripts_of_a_bot_that_is_not_in_the_settings_serve_nobody_and_that_is_said(tmp_path: Path) -> None:
    storage = MemoryStorage({"crn.gbai/crn.gbdialog/lead.bas": says("x"), "good.bas": says("y")})
    async with scripts(tmp_path, storage=storage) as world:
        snapshot = await world.once()
        assert names(snapshot) == ["good"]
        [fault] = snapshot.faults
        assert (fault.code, fault.severity) == ("basic.unknown_bot", "warning")
        assert "'crn'" in fault.message
        assert "did you mean 'crm'" in fault.message


async def test_a_folder_that_is_not_there_is_a_fault_and_serves_when_it_comes(tmp_path: Path) -> None:
    drive = tmp_path / "drive"
    async with scripts(tmp_path / "var") as world, world.running(BasicSource(path=drive)):
        assert "drive" in faults(world.snapshots[-1])[0]
        drive.mkdir()
        (drive / "hello.bas").write_text(says("x"), encoding="utf-8")
        snapshot = await world.look()
        assert (names(snapshot), snapshot.faults) == (["hello"], ())


# Functions


@pytest.mark.requirement("A1", "A3", "A4", "A6", "A19", "A20", "A21", "A22")
async def test_a_script_is_a_function_with_its_parameters_and_its_place(tmp_path: Path) -> None:
    async with scripts(tmp_path, storage=files(user_registration=REGISTRATION)) as world:
        one = spec(await world.once(), "user_registration")
        assert one.description == "Processes user registration"
        assert list(one.parameters["properties"]) == one.parameters["required"] == ["name", "age"]
        assert one.origin.source == "user_registration.bas:1"
        assert one.command.words == ("user_registration",)
        assert one.access.offered_to == frozenset(OfferedTo)
        assert one.arguments.parse({"name": "Ann", "age": "33"}) == {"name": "Ann", "age": 33}


@pytest.mark.requirement("A27", "A28", "B1", "B2", "B3", "B7", "B8", "A32", "A33", "A35")
async def test_the_work_folder_holds_the_script_and_what_models_are_told_of_it(tmp_path: Path) -> None:
    async with scripts(tmp_path, storage=files(process_order=ORDER)) as world:
        await world.once()
        folder = world.folder()
        schema = {
            "type": "object",
            "properties": {
                "customer_name": {"type": "string", "description": "Customer's full name", "example": "John Doe"},
                "order_amount": {"type": "number", "description": "Total order amount", "example": 99.99},
                "shipping_address": {"type": "string", "description": "Delivery address", "example": "123 Main St"},
            },
            "required": ["customer_name", "order_amount", "shipping_address"],
        }
        told = {"name": "process_order", "description": "Process a new customer order"}
        assert (folder / "process_order.bas").read_text() == ORDER
        assert json.loads((folder / "process_order.mcp.json").read_text()) == {**told, "input_schema": schema}
        assert json.loads((folder / "process_order.tool.json").read_text()) == {**told, "parameters": schema}


@pytest.mark.requirement("A11", "A35", "A50")
async def test_the_work_folder_has_the_very_bytes_of_the_script(tmp_path: Path) -> None:
    content = b'\xef\xbb\xbfDESCRIPTION "Gr\xc3\xbc\xc3\x9ft"\r\nTALK "Gr\xc3\xbc\xc3\x9f dich"\r\n\r\n'
    async with scripts(tmp_path, storage=MemoryStorage({"greet.bas": content})) as world:
        assert (await world.once()).faults == ()
        assert (world.folder() / "greet.bas").read_bytes() == content


async def test_what_a_script_does_to_the_world_is_what_its_keywords_do(tmp_path: Path) -> None:
    mail = 'DESCRIPTION "Writes to somebody"\nSEND MAIL "a@b.c", "Hi", GET "https://example.org"\n'
    async with scripts(tmp_path, storage=files(mail=mail, hello=says("x"))) as world:
        snapshot = await world.once()
        assert (spec(snapshot, "hello").execution.effect, spec(snapshot, "hello").execution.touches) == (
            Effect.READ,
            frozenset(),
        )
        assert spec(snapshot, "mail").execution.effect is Effect.ONCE
        assert spec(snapshot, "mail").execution.touches == {Touch.REACHES_OUT, Touch.SENDS_OUT, Touch.READS_OUTSIDE}


async def test_the_script_that_begins_conversations_is_offered_to_nobody_and_needs_no_description(
    tmp_path: Path,
) -> None:
    async with scripts(tmp_path, storage=files(start='TALK "Welcome"\n')) as world:
        snapshot = await world.once(BasicSource(path=Path("drive"), profile="strict"), storages={
            BasicSource(path=Path("drive"), profile="strict"): world.storage
        })  # fmt: skip
        one = spec(snapshot, "start")
        assert (one.access.offered_to, one.command.words, one.origin.metadata["session"]) == (frozenset(), (), True)
        assert snapshot.faults == ()


# Changes


@pytest.mark.requirement("A7", "A9", "A10", "A29", "A48", "A63")
async def test_only_what_was_written_or_edited_is_compiled(tmp_path: Path) -> None:
    storage = files(**{f"tool{number}": says(str(number)) for number in range(10)})
    async with scripts(tmp_path, storage=storage) as world, world.running():
        first = world.snapshots[-1]
        assert (len(first.specs), world.compiler.compilations) == (10, 10)
        storage.write("tool3.bas", says("another"))
        second = await world.look()
        assert world.compiler.compilations == 11
        changed = [name for name in names(first) if spec(first, name) is not spec(second, name)]
        assert changed == ["tool3"]
        storage.write("new.bas", says("new"))
        assert "new" in names(await world.look())
        assert world.compiler.compilations == 12
        before = len(world.snapshots)
        await world.look()
        assert (world.compiler.compilations, len(world.snapshots)) == (12, before)


@pytest.mark.requirement("A30")
async def test_another_etag_alone_compiles_anew_and_another_spelling_of_it_does_not(tmp_path: Path) -> None:
    storage = MemoryStorage()
    storage.write("a.bas", says("x"), etag='"one"')
    async with scripts(tmp_path, storage=storage) as world, world.running():
        for etag, compiled in (("one", 1), ('W/"one"', 1), ('"two"', 2), ("two", 2), ('W/"three"', 3)):
            storage.write("a.bas", says("x"), etag=etag)
            await world.look()
            assert world.compiler.compilations == compiled, etag


@pytest.mark.requirement("A9")
async def test_a_script_that_is_gone_serves_no_more_and_its_row_says_so(tmp_path: Path) -> None:
    storage = files(a=says("a"), b=says("b"))
    async with scripts(tmp_path, storage=storage) as world, world.running():
        storage.delete("a.bas")
        assert names(await world.look()) == ["b"]
        assert [(row["tool_name"], row["is_active"]) for row in await world.rows()] == [("a", 0), ("b", 1)]
        assert sorted(one.name for one in world.folder().iterdir()) == [
            "b.bas",
            "b.mcp.json",
            "b.program.json",
            "b.tool.json",
        ]
        storage.write("a.bas", says("again"))
        assert names(await world.look()) == ["a", "b"]
        assert [row["is_active"] for row in await world.rows()] == [1, 1]


# Broken scripts


@pytest.mark.requirement("A36", "A39", "A40")
async def test_a_broken_script_is_told_with_its_line_and_the_others_serve(tmp_path: Path) -> None:
    storage = files(a=says("a"), b=BROKEN, c=says("c"))
    async with scripts(tmp_path, storage=storage) as world:
        snapshot = await world.once()
        assert names(snapshot) == ["a", "c"]
        assert {one.file for one in snapshot.faults} == {"b.bas"}
        assert any(one.line == 2 for one in snapshot.faults)


@pytest.mark.requirement("A39")
async def test_a_script_that_an_edit_broke_serves_on_as_it_was_until_it_is_mended(tmp_path: Path) -> None:
    storage = files(a=says("first"))
    async with scripts(tmp_path, storage=storage) as world, world.running():
        before = spec(world.snapshots[-1], "a")
        storage.write("a.bas", BROKEN)
        snapshot = await world.look()
        assert spec(snapshot, "a") is before
        assert "the previous version stays active: a" in faults(snapshot)[0]
        # It is known after a restart as well.
        again = await world.once()
        assert await digest_of(world, "a", again) == before.origin.version
        assert "the previous version stays active: a" in faults(again)[0]
        storage.write("a.bas", says("second"))
        mended = await world.look()
        assert mended.faults == ()
        assert spec(mended, "a").origin.version != before.origin.version


@pytest.mark.requirement("B31")
async def test_two_files_cannot_be_the_same_tool_of_a_bot_and_both_are_named(tmp_path: Path) -> None:
    storage = MemoryStorage({"crm.gbai/a.gbdialog/x.bas": says("1"), "crm.gbai/b.gbdialog/x.bas": says("2")})
    storage.write("x.bas", says("3"))  # of another bot
    async with scripts(tmp_path, storage=storage) as world, world.running():
        snapshot = world.snapshots[-1]
        assert [(one.access.bot, one.name) for one in snapshot.specs] == [("crm", "x"), ("default", "x")]
        [fault] = snapshot.faults
        assert fault.code == "basic.duplicate_tool"
        assert "crm.gbai/a.gbdialog/x.bas" in fault.message
        assert "crm.gbai/b.gbdialog/x.bas" in fault.message
        storage.delete("crm.gbai/a.gbdialog/x.bas")
        after = await world.look()
        assert after.faults == ()
        assert spec(after, "x").origin.source.startswith("crm.gbai/b.gbdialog/x.bas")


@pytest.mark.requirement("B31")
async def test_a_second_file_never_displaces_the_tool_that_serves(tmp_path: Path) -> None:
    storage = MemoryStorage({"crm.gbai/b.gbdialog/x.bas": says("1")})
    async with scripts(tmp_path, storage=storage) as world, world.running():
        before = spec(world.snapshots[-1], "x")
        storage.write("crm.gbai/a.gbdialog/x.bas", says("2"))
        assert spec(await world.look(), "x") is before
        # Nor after a restart.
        assert await digest_of(world, "x", await world.once()) == before.origin.version


# Stored results


@pytest.mark.requirement("A5", "A23", "A24", "A25", "A26", "A41", "B17", "B19")
async def test_a_row_holds_the_definition_the_script_the_bot_and_when_it_was_compiled(tmp_path: Path) -> None:
    storage = MemoryStorage({"crm.gbai/crm.gbdialog/reg.bas": REGISTRATION, "reg.bas": REGISTRATION})
    async with scripts(tmp_path, storage=storage) as world, world.running():
        rows = await world.rows()
        assert [(row["bot"], row["tool_name"], row["is_active"]) for row in rows] == [
            ("crm", "reg", 1),
            ("default", "reg", 1),
        ]
        row = rows[1]
        assert row["script"] == REGISTRATION
        definition = ToolDefinition.of_json(json.loads(row["definition"]))
        assert [one.name for one in definition.parameters] == ["name", "age"]
        assert ToolDefinition.of_json(definition.to_json()) == definition
        await world.clock.advance(5)
        storage.write("reg.bas", REGISTRATION + 'TALK "Bye"\n')
        await world.look()
        assert (await world.rows())[1]["compiled_ms"] == row["compiled_ms"] + 5000


@pytest.mark.requirement("B18")
async def test_a_tool_is_found_by_its_bot_and_name_without_looking_through_all(tmp_path: Path) -> None:
    async with scripts(tmp_path, storage=files(reg=REGISTRATION)) as world:
        await world.once()
    query = basic_tools.script_of("default", "reg")
    compiled = compile_statement(query.statement, "sqlite")
    with closing(sqlite3.connect(tmp_path / "rollcall.db")) as database:
        [(*_, plan)] = database.execute(f"EXPLAIN QUERY PLAN {compiled.sql}", compiled.bind(query.values)).fetchall()
    assert plan.startswith("SEARCH")
    assert "bot=? AND tool_name=?" in plan


@pytest.mark.requirement("A33", "A47", "B20")
async def test_a_second_start_compiles_nothing_and_runs_the_same_programs(tmp_path: Path) -> None:
    contents = {f"tool{number}": says(str(number)) for number in range(5)}
    async with scripts(tmp_path, storage=files(**contents, broken=BROKEN)) as world:
        first = await world.once()
        digests = [await digest_of(world, name, first) for name in contents]
        compiled = world.compiler.compilations
        second = await world.once()
        assert [await digest_of(world, name, second) for name in contents] == digests
        assert faults(second) == faults(first)
        assert world.compiler.compilations == compiled


@pytest.mark.requirement("A33")
async def test_a_file_that_was_only_copied_is_not_compiled_again_at_the_next_start(tmp_path: Path) -> None:
    storage = files(a=says("x"))
    async with scripts(tmp_path, storage=storage) as world:
        await world.once()
        storage.write("a.bas", says("x"))
        await world.once()
        assert world.compiler.compilations == 1
        storage.write("a.bas", says("y"))
        await world.once()
        assert world.compiler.compilations == 2


async def test_another_compiler_trusts_nothing_that_was_compiled_before(tmp_path: Path) -> None:
    async with scripts(tmp_path, storage=files(a=says("x"))) as world:
        await world.once()
        world.compiler.source_bytes += 1
        await world.once()
        assert world.compiler.compilations == 2


async def test_what_served_before_a_new_compiler_serves_on_though_its_file_is_broken_by_now(tmp_path: Path) -> None:
    storage = files(a=says("x"))
    async with scripts(tmp_path, storage=storage) as world:
        digest = await digest_of(world, "a", await world.once())
        storage.write("a.bas", BROKEN)
        world.compiler.source_bytes += 1
        snapshot = await world.once()
        assert await digest_of(world, "a", snapshot) == digest
        assert "until it is fixed" in faults(snapshot)[0]


@pytest.mark.requirement("A34")
@pytest.mark.parametrize("damage", ["truncated", "foreign", "gone", "of another tool"])
async def test_a_program_that_is_not_whole_is_compiled_anew(tmp_path: Path, damage: str) -> None:
    async with scripts(tmp_path, storage=files(a=says("x"), b=says("other"))) as world:
        digest = await digest_of(world, "a", await world.once())
        file = world.folder() / "a.program.json"
        whole = file.read_bytes()
        if damage == "gone":
            file.unlink()
        else:
            other = (world.folder() / "b.program.json").read_bytes()
            file.write_bytes({"truncated": whole[:-10], "foreign": b'{"code": 1}', "of another tool": other}[damage])
        snapshot = await world.once()
        compiled = world.compiler.compilations
        assert await digest_of(world, "a", snapshot) == digest
        assert world.compiler.compilations == compiled + 1
        assert file.read_bytes() == whole


@pytest.mark.requirement("A34")
async def test_nothing_half_written_is_left_beside_the_files(tmp_path: Path) -> None:
    async with scripts(tmp_path, storage=files(a=says("x"))) as world:
        world.folder().mkdir(parents=True)
        (world.folder() / ".a.program.json.new").write_text("half", encoding="utf-8")
        digest = await digest_of(world, "a", await world.once())
        assert digest
        assert [one.name for one in world.folder().iterdir() if one.name.endswith(".new")] == []


async def test_scripts_serve_where_the_work_folder_cannot_be_written(tmp_path: Path) -> None:
    async with scripts(tmp_path, storage=files(a=says("x"))) as world:
        world.work.write_text("a file in its place", encoding="utf-8")
        snapshot = await world.once()
        assert names(snapshot) == ["a"]
        assert "cannot be written" in faults(snapshot)[0]
        assert await digest_of(world, "a", snapshot) == spec(snapshot, "a").origin.version


@pytest.mark.requirement("A31")
@pytest.mark.parametrize(
    ("bot", "tool", "compiled"), [(None, None, 3), ("crm", None, 1), ("default", "a", 1), ("default", "none", 0)]
)
async def test_somebody_may_want_scripts_to_be_compiled_anew(
    tmp_path: Path, bot: str | None, tool: str | None, compiled: int
) -> None:
    storage = MemoryStorage({"crm.gbai/crm.gbdialog/c.bas": says("c"), "a.bas": says("a"), "b.bas": says("b")})
    async with scripts(tmp_path, storage=storage) as world:
        kept = world.kept
        async with world.running(kept=kept):
            before = {row["tool_name"]: row["compiled_ms"] for row in await world.rows()}
            await world.clock.advance(1)
            await world.store.commit([basic_tools.outdate(bot, tool)])
            await kept.wake_watchers()
            await world.published(2 if compiled else 1)
            assert await kept.outdated() == set()
            after = {row["tool_name"]: row["compiled_ms"] for row in await world.rows()}
            assert sum(after[name] > before[name] for name in before) == compiled
            assert world.compiler.compilations == 3 + compiled


@pytest.mark.requirement("A31")
async def test_what_is_to_be_compiled_anew_is_so_at_the_next_start(tmp_path: Path) -> None:
    async with scripts(tmp_path, storage=files(a=says("a"), b=says("b"))) as world:
        await world.once()
        await world.store.commit([basic_tools.outdate("default", "a")])
        await world.once()
        assert world.compiler.compilations == 3


async def test_the_tools_of_an_entry_that_is_gone_serve_nobody(tmp_path: Path) -> None:
    async with scripts(tmp_path, storage=files(a=says("a"))) as world:
        await world.once()
        other = BasicSource(path=Path("elsewhere"))
        await world.once(other, storages={other: files(b=says("b"))})
        assert [(row["tool_name"], row["is_active"]) for row in await world.rows()] == [("a", 0), ("b", 1)]


# Slow work


class Meeting(MemoryStorage):
    """A storage that returns files only after all concurrent reads have started."""

    def __init__(self, count: int) -> None:
        super().__init__({f"tool{number}.bas": says(str(number)) for number in range(count)})
        self._all = threading.Barrier(count)

    def read(self, path: str) -> bytes:
        self._all.wait(10)
        return super().read(path)


@pytest.mark.requirement("A46")
async def test_scripts_are_read_beside_each_other(tmp_path: Path) -> None:
    async with scripts(tmp_path, storage=Meeting(4)) as world:
        assert len((await world.once()).specs) == 4


class Held(MemoryStorage):
    """A storage that delays files whose names start with `slow` until the test releases them."""

    def __init__(self, contents: dict[str, str]) -> None:
        super().__init__(contents)
        self.let_go = threading.Event()
        self.asked = threading.Semaphore(0)

    def read(self, path: str) -> bytes:
        if path.startswith("slow"):
            self.asked.release()
            if not self.let_go.wait(10):
                raise StorageError(f"{path}: too late")
        return super().read(path)


@pytest.mark.requirement("A45", "A46")
@pytest.mark.parametrize("count", [1, 6], ids=["one", "more than are read at once"])
async def test_slow_scripts_hold_up_neither_the_others_nor_the_daemon(tmp_path: Path, count: int) -> None:
    slow = [f"slow{number}" for number in range(count)]
    storage = Held({f"{name}.bas": says(name) for name in (*slow, "swift")})
    async with scripts(tmp_path, storage=storage) as world:
        running = world.source(changes=world.changes)
        task = asyncio.create_task(running.run(world.publish))
        try:
            # As many as are read concurrently.
            for _ in range(min(count, 4)):
                await asyncio.to_thread(storage.asked.acquire, timeout=10)
            await world.clock.advance(6)
            snapshot = await world.until("swift")
            assert "still being compiled" in faults(snapshot)[0]
            storage.let_go.set()
            assert (await world.until(*slow, "swift")).faults == ()
        finally:
            storage.let_go.set()
            task.cancel()
            await asyncio.wait([task])


async def test_a_file_that_cannot_be_read_is_told_and_read_again(tmp_path: Path) -> None:
    storage = files(a=says("a"), b=says("b"))
    refused = {"a.bas"}

    class Refusing(MemoryStorage):
        def list(self) -> Any:
            return storage.list()

        def read(self, path: str) -> bytes:
            if path in refused:
                raise StorageError(f"{path}: Permission denied")
            return storage.read(path)

    async with scripts(tmp_path, storage=Refusing()) as world, world.running():
        assert names(world.snapshots[-1]) == ["b"]
        assert "Permission denied" in faults(world.snapshots[-1])[0]
        refused.clear()
        assert names(await world.look()) == ["a", "b"]
