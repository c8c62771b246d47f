"""Python files that change at run time, and files that are slow to import."""

from __future__ import annotations

import asyncio
import gc
import os
import py_compile
import sys
import weakref
from pathlib import Path

import pytest

from bot.testing import a_group, call
from services.clock import VirtualClock
from tests.fakes.sources import ToldChanges
from tests.function_calls.sources.watching import (
    HEAD,
    marked,
    modules_of,
    names,
    places,
    said_by,
    waiting_for,
    watched,
    write,
)

# -- changes


async def test_only_what_has_changed_is_run_again(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(
            tmp_path, f"{name}.py", marked(name) + f"with open({str(tmp_path / name)!r}, 'a') as log: log.write('x')\n"
        )
    async with watched(tmp_path) as files:
        before = await files.next()
        write(tmp_path, "one.py", marked("one", "Ho"))
        after = await files.change()
    assert [(tmp_path / name).read_text() for name in ("one", "two")] == ["x", "x"]
    assert [await said_by(spec) for spec in after.specs] == ["Ho", "Hi"]
    assert after.specs[1] is before.specs[1]


async def test_a_change_within_the_same_second_and_of_the_same_length_counts(tmp_path: Path) -> None:
    file = write(tmp_path, "one.py", marked("one", "aaa"))
    state = file.stat()
    # The cached bytecode that Python would use for the changed file.
    py_compile.compile(str(file))
    async with watched(tmp_path) as files:
        await files.next()
        write(tmp_path, "one.py", marked("one", "bbb"))
        os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
        [spec] = (await files.change()).specs
    assert await said_by(spec) == "bbb"


async def test_a_file_that_comes_serves_and_one_that_goes_is_forgotten(tmp_path: Path) -> None:
    write(tmp_path, "one.py", marked("one"))
    async with watched(tmp_path) as files:
        assert names(await files.next()) == ["one"]
        write(tmp_path, "two.py", marked("two"))
        assert names(await files.change()) == ["one", "two"]
        write(tmp_path, "a.py", marked("first"))
        assert names(await files.change()) == ["first", "one", "two"]
        (tmp_path / "a.py").unlink()
        assert names(await files.change()) == ["one", "two"]
        (tmp_path / "one.py").unlink()
        assert names(await files.change()) == ["two"]
        assert modules_of(tmp_path / "one.py") == []
    assert modules_of(tmp_path / "two.py") == []


async def test_nothing_is_published_when_nothing_has_changed(tmp_path: Path) -> None:
    write(tmp_path, "one.py", marked("one"))
    async with watched(tmp_path) as files:
        await files.next()
        files.changes.tell()
        write(tmp_path, "two.py", marked("two"))
        assert names(await files.change()) == ["one", "two"]
        assert files.published.empty()


@pytest.mark.parametrize(
    "broken", ["def (", "raise RuntimeError", "raise SystemExit", "", "import no_such_module", "def tools(): return 5"]
)
async def test_a_broken_change_leaves_what_was_good_until_it_is_mended(tmp_path: Path, broken: str) -> None:
    write(tmp_path, "one.py", marked("one"))
    async with watched(tmp_path) as files:
        before = await files.next()
        write(tmp_path, "one.py", broken)
        after = await files.change()
        assert after.specs == before.specs
        [fault] = after.faults
        assert "until it is fixed, as before: one" in fault.message
        assert await said_by(after.specs[0]) == "Hi"
        write(tmp_path, "one.py", marked("one", "Mended"))
        mended = await files.change()
        assert mended.faults == ()
        assert await said_by(mended.specs[0]) == "Mended"
        assert len(modules_of(tmp_path / "one.py")) == 1


async def test_of_a_change_with_one_wrong_function_the_others_are_new_and_that_one_is_as_it_was(tmp_path: Path) -> None:
    good = (
        "def tools():\n"
        "    return [{'name': 'a', 'handler': lambda args: 'a1'}, {'name': 'b', 'handler': lambda args: 'b1'}]\n"
    )
    write(tmp_path, "own.py", good)
    async with watched(tmp_path) as files:
        await files.next()
        write(tmp_path, "own.py", good.replace("1", "2").replace("'b', ", "'b', 'timeout': 'soon', "))
        after = await files.change()
        assert [await said_by(spec) for spec in after.specs] == ["a2", "b1"]
        write(tmp_path, "own.py", "def tools():\n    return [{'name': 'a', 'handler': lambda args: 'a3'}]\n")
        assert names(await files.change()) == ["a"]


async def test_a_change_anywhere_in_a_package_counts(tmp_path: Path) -> None:
    write(tmp_path, "shop/__init__.py", "")
    write(tmp_path, "shop/_prices.py", "PRICE = '7'\n")
    write(tmp_path, "shop/ask.py", "from ._prices import PRICE\n" + marked("ask").replace("'Hi'", "PRICE"))
    async with watched(tmp_path) as files:
        await files.next()
        write(tmp_path, "shop/_prices.py", "PRICE = '8'\n")
        [spec] = (await files.change()).specs
        assert await said_by(spec) == "8"
        write(tmp_path, "shop/_prices.py", "PRICE = \n")
        after = await files.change()
        assert places(after) == ["_prices.py:1"]
        assert await said_by(after.specs[0]) == "8"
        assert {name.count(".") for name in modules_of(tmp_path)} == {1, 2}
        assert len(modules_of(tmp_path)) == 3


async def test_a_change_of_a_module_beside_a_file_imports_those_again_that_use_it(tmp_path: Path) -> None:
    write(tmp_path, "_words.py", "WORD = 'old'\n")
    write(tmp_path, "config.py", "from _words import WORD\n")
    write(tmp_path, "one.py", "import config\n" + marked("one").replace("'Hi'", "config.WORD"))
    write(tmp_path, "two.py", marked("two"))
    async with watched(tmp_path) as files:
        before = await files.next()
        write(tmp_path, "_words.py", "WORD = 'new'\n")
        after = await files.change()
        assert [await said_by(spec) for spec in after.specs] == ["new", "Hi"]
        assert after.specs[1] is before.specs[1]
        assert after.specs[0].origin.version != before.specs[0].origin.version
        write(tmp_path, "config.py", "WORD = \n")
        broken = await files.change_to(["config.py:1", "config.py:1"])
        assert [await said_by(spec) for spec in broken.specs] == ["new", "Hi"]
        write(tmp_path, "config.py", "WORD = 'mended'\n")
        assert [await said_by(spec) for spec in (await files.change_to([])).specs] == ["mended", "Hi"]
    assert modules_of(tmp_path) == []


async def test_a_module_beside_a_single_file_is_watched_too(tmp_path: Path) -> None:
    write(tmp_path, "_words.py", "WORD = 'old'\n")
    file = write(tmp_path, "one.py", "import _words\n" + marked("one").replace("'Hi'", "_words.WORD"))
    async with watched(file) as files:
        assert await said_by((await files.next()).specs[0]) == "old"
        write(tmp_path, "_words.py", "WORD = 'new'\n")
        assert await said_by((await files.change()).specs[0]) == "new"
        assert files.changes.paths == [tmp_path / "_words.py", file]


async def test_a_module_that_comes_beside_a_file_is_found(tmp_path: Path) -> None:
    write(tmp_path, "one.py", "import helpers\n" + marked("one"))
    async with watched(tmp_path) as files:
        assert places(await files.next()) == ["one.py:1"]
        write(tmp_path, "helpers.py", "")
        assert names(await files.change_to([])) == ["one"]
        (tmp_path / "helpers.py").unlink()
        assert names(await files.change_to(["one.py:1"])) == ["one"]


async def test_what_a_package_keeps_beside_its_files_does_not_import_it_again(tmp_path: Path) -> None:
    write(tmp_path, "shop/__init__.py", marked("ask"))
    async with watched(tmp_path) as files:
        before = await files.next()
        write(tmp_path, "shop/data.json", "{}")
        files.changes.tell()
        write(tmp_path, "new.py", marked("new"))
        after = await files.change()
        assert names(after) == ["new", "ask"]
        assert after.specs[1] is before.specs[0]


async def test_what_was_replaced_can_be_collected(tmp_path: Path) -> None:
    text = (
        "class Who(BaseModel):\n    name: str = ''\n"
        "@tool_function()\nasync def own(context: MessageContext, args: Who) -> Who:\n    return args\n"
    )
    write(tmp_path, "own.py", HEAD + text)
    async with watched(tmp_path) as files:
        await files.next()
        [name] = modules_of(tmp_path)
        module, kind = weakref.ref(sys.modules[name]), weakref.ref(sys.modules[name].Who)
        write(tmp_path, "own.py", HEAD + text + "\n")
        await files.change()
        gc.collect()
        assert name not in sys.modules
        assert (module(), kind()) == (None, None)


# -- slow files


async def test_a_file_that_hangs_holds_nothing_up_and_serves_when_it_has_ended(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    write(tmp_path, "hangs.py", waiting_for(tmp_path / "pipe") + marked("late"))
    write(tmp_path, "quick.py", marked("quick"))
    clock = VirtualClock()
    async with watched(tmp_path, clock=clock) as files:
        pipe = await asyncio.to_thread(open, tmp_path / "pipe", "w")
        await clock.advance(5)
        first = await files.next()
        assert names(first) == ["quick"]
        assert places(first) == ["hangs.py:1"]
        assert "import has not finished after some seconds" in first.faults[0].message
        assert "a thread cannot be stopped" in first.faults[0].message
        pipe.close()
        second = await files.next()
    assert (names(second), second.faults) == (["late", "quick"], ())


async def test_many_that_hang_are_not_all_waited_for_as_long(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        os.mkfifo(tmp_path / f"pipe-{name}")
        write(tmp_path, f"{name}.py", waiting_for(tmp_path / f"pipe-{name}") + marked(name))
    write(tmp_path, "quick.py", marked("quick"))
    clock = VirtualClock()
    async with watched(tmp_path, clock=clock) as files:
        pipes = []
        for name, patience in (("a", 5), ("b", 0.5), ("c", 0.5)):
            # It opens only after the file with that name has opened it.
            pipes.append(await asyncio.to_thread(open, tmp_path / f"pipe-{name}", "w"))
            await clock.advance(patience)
        first = await files.next()
        assert names(first) == ["quick"]
        assert places(first) == ["a.py:1", "b.py:1", "c.py:1"]
        for pipe in pipes:
            pipe.close()
        async with asyncio.timeout(20):
            while names(await files.next()) != ["a", "b", "c", "quick"]:
                pass


async def test_a_file_that_hangs_is_left_to_itself_when_it_is_mended(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    write(tmp_path, "own.py", waiting_for(tmp_path / "pipe") + marked("own", "Old"))
    clock = VirtualClock()
    async with watched(tmp_path, clock=clock) as files:
        pipe = await asyncio.to_thread(open, tmp_path / "pipe", "w")
        await clock.advance(5)
        await files.next()
        write(tmp_path, "own.py", marked("own", "New"))
        mended = await files.change()
        assert (len(modules_of(tmp_path)), mended.faults) == (1, ())
        assert await said_by(mended.specs[0]) == "New"
        pipe.close()


# -- in a chat


@pytest.mark.requirement("E46", "D8")
async def test_a_changed_file_counts_in_the_chat_at_once(tmp_path: Path) -> None:
    write(tmp_path, "own.py", marked("own", "Old", commands="own"))
    changes = ToldChanges()
    async with a_group(changes=changes, settings={"sources": {"python": [str(tmp_path)]}}) as group:
        assert await group.say("Ann", "/own") == ["Old"]
        for text, said, faults in ((marked("own", "New", commands="own"), "New", 0), ("def (", "New", 1)):
            told = asyncio.Event()
            group.daemon.functions.on_change(told.set)
            write(tmp_path, "own.py", text)
            changes.tell()
            async with asyncio.timeout(20):
                await told.wait()
            assert await group.say("Ann", "/own") == [said]
            assert len(group.daemon.functions.faults) == faults


async def test_modules_beside_functions_may_have_the_names_of_the_daemons_packages(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        for name in ("config", "bot", "services", "helpers"):
            write(tmp_path, f"{folder}/{name}.py", f"WORD = '{folder}'\n")
        head = "import config, bot\nfrom services import WORD\nimport helpers\n"
        text = head + marked(folder, commands=folder).replace("'Hi'", "config.WORD + bot.WORD + WORD + helpers.WORD")
        write(tmp_path, f"{folder}/{folder}.py", text)
    sources = {"python": [str(tmp_path / "one"), str(tmp_path / "two")]}
    async with a_group(settings={"sources": sources}) as group:
        assert group.daemon.functions.faults == ()
        assert await group.say("Ann", "/one") == ["one" * 4]
        assert await group.say("Ann", "/two") == ["two" * 4]
        assert await group.say("Ann", "/calc 1+1") == ["1+1 = 2"]


@pytest.mark.requirement("E46")
async def test_a_daemon_starts_without_a_file_that_is_broken_and_says_so(tmp_path: Path) -> None:
    write(tmp_path, "own.py", "raise SystemExit(1)\n")
    async with a_group(settings={"sources": {"python": [str(tmp_path)]}}) as group:
        [fault] = group.daemon.functions.faults
        assert fault.file == str(tmp_path / "own.py")
        assert await group.say("Ann", "/calc 1+1") == ["1+1 = 2"]


async def test_nothing_of_a_daemon_holds_on_to_what_was_replaced(tmp_path: Path) -> None:
    text = (
        "class Who(BaseModel):\n    name: str = 'x'\n"
        "@tool_function(commands=['own'])\n"
        "async def own(context: MessageContext, args: Who) -> str:\n    return args.name\n"
    )
    write(tmp_path, "own.py", HEAD + text)
    changes = ToldChanges()
    async with a_group(changes=changes, settings={"sources": {"python": [str(tmp_path)]}}) as group:
        assert await group.say("Ann", "/own Old") == ["Old"]
        group.model.says(call("own", name="Model"), "Done.")
        await group.say("Ann", "@Rollcall own")
        [name] = modules_of(tmp_path)
        module, kind = weakref.ref(sys.modules[name]), weakref.ref(sys.modules[name].Who)
        told = asyncio.Event()
        group.daemon.functions.on_change(told.set)
        write(tmp_path, "own.py", HEAD + text + "\n")
        changes.tell()
        async with asyncio.timeout(20):
            await told.wait()
        assert await group.say("Ann", "/own New") == ["New"]
        group.model.requests.clear()
        gc.collect()
        assert (module(), kind()) == (None, None)
