"""Installed modules: named in the settings, or registered by packages as entry points."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from bot.testing import a_group
from function_calls.loading.module_functions import ModuleReader
from function_calls.loading.source import Snapshot
from function_calls.sources.python_modules import GROUP, Named, PythonModules
from services.clock import VirtualClock
from tests.fakes.sources import published_by
from tests.function_calls.routing import Routing
from tests.function_calls.sample_functions import Conversions
from tests.function_calls.sources.watching import marked, names, waiting_for, write

PLAIN = "tests.function_calls.plain_tools"
SAMPLES = "tests.function_calls.sample_functions"


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[Path]:
    """A folder for installed packages."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    known = set(sys.modules)
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))
    for name in set(sys.modules) - known:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
            del sys.modules[name]


def announced_by(folder: Path, package: str, entries: Mapping[str, str], group: str = GROUP) -> None:
    """Create the metadata of a package with the entry points `entries`."""
    lines = "".join(f"{name} = {value}\n" for name, value in entries.items())
    write(folder, f"{package}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    write(folder, f"{package}-1.0.dist-info/entry_points.txt", f"[{group}]\n{lines}")


async def given_by(
    *modules: str,
    announced: Callable[[], Iterable[EntryPoint]] = tuple,
    services: Mapping[type, object] | None = None,
) -> Snapshot:
    """Functions of these modules and entry points."""
    named = [Named(f"sources.modules[{place}]", name) for place, name in enumerate(modules)]
    reader = ModuleReader(services if services is not None else {Conversions: Conversions([])})
    return await published_by(PythonModules("modules", named, reader, VirtualClock(), announced))


def point(value: str, name: str = "own") -> EntryPoint:
    return EntryPoint(name, value, GROUP)


@pytest.mark.requirement("E28", "E31")
async def test_modules_are_named_by_their_dotted_names() -> None:
    snapshot = await given_by(PLAIN, SAMPLES)
    assert names(snapshot) == ["add", "whoami", "convert", "book", "travel", "hello", "keep"]
    assert snapshot.faults == ()
    assert snapshot.specs[0].origin.source == "tests/function_calls/plain_tools.py:8"


async def test_a_package_gives_what_its_modules_give_but_for_private_ones_and_tests(installed: Path) -> None:
    write(installed, "acme/__init__.py", "")
    write(installed, "acme/one.py", marked("one"))
    write(installed, "acme/deep/__init__.py", marked("deep"))
    write(installed, "acme/deep/two.py", marked("two"))
    for private in ("acme/_private.py", "acme/__main__.py", "acme/test_one.py", "acme/tests/__init__.py"):
        write(installed, private, "raise RuntimeError\n")
    snapshot = await given_by("acme")
    assert (names(snapshot), snapshot.faults) == (["deep", "two", "one"], ())


@pytest.mark.requirement("E12")
async def test_a_handler_is_found_by_its_path_within_its_package(installed: Path) -> None:
    write(installed, "acme/__init__.py", "")
    write(installed, "acme/_impl.py", "def f(args):\n    return 'found'\n")
    write(installed, "acme/one.py", "def tools():\n    return [{'name': 'f', 'handler': '._impl:f'}]\n")
    for way in (await given_by("acme"), await given_by(announced=lambda: [point("acme.one")])):
        [spec] = way.specs
        assert (await Routing(spec).invoke("f")).reply == "found"


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("acme.none", "", "'acme.none' cannot be imported: ModuleNotFoundError: No module named 'acme.none'"),
        ("acme.syntax", "x = 1\ndef (", "SyntaxError: invalid syntax ("),
        ("acme.ends", "\nraise SystemExit(2)", "'acme.ends' cannot be imported: SystemExit: 2 ("),
        ("acme.needs", "import no_such_module", "No module named 'no_such_module' ("),
    ],
)
async def test_a_module_that_cannot_be_imported_is_told_with_its_setting_and_hides_no_other(
    installed: Path, name: str, text: str, problem: str
) -> None:
    write(installed, "acme/__init__.py", "")
    if text:
        write(installed, f"{name.replace('.', '/')}.py", text)
    snapshot = await given_by(name, PLAIN)
    assert names(snapshot) == ["add", "whoami"]
    [fault] = snapshot.faults
    assert fault.message.startswith("sources.modules[0]: ")
    assert problem in fault.message
    assert f"{name.replace('.', '/')}.py:" in fault.message or not text


async def test_of_a_package_the_modules_serve_that_can_be_imported(installed: Path) -> None:
    write(installed, "acme/__init__.py", "")
    write(installed, "acme/one.py", marked("one"))
    write(installed, "acme/two.py", "raise RuntimeError('two')")
    snapshot = await given_by("acme")
    assert names(snapshot) == ["one"]
    assert "RuntimeError: two" in snapshot.faults[0].message


@pytest.mark.requirement("E28")
async def test_a_module_that_gives_nothing_is_told_what_is_expected() -> None:
    [fault] = (await given_by("tests.fakes.builders")).faults
    assert fault.file == "tests/fakes/builders.py"
    assert "mark one with @tool_function, or write a function tools()" in fault.message


async def test_a_function_whose_service_nobody_has_is_a_fault_and_its_siblings_serve() -> None:
    snapshot = await given_by(SAMPLES, services={})
    assert names(snapshot) == ["book", "travel", "hello", "keep"]
    assert "there is no service of type Conversions" in snapshot.faults[0].message
    assert snapshot.faults[0].file == "tests/function_calls/sample_functions.py"


async def test_a_module_that_hangs_holds_no_other_up(installed: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    write(installed, "acme_hangs.py", waiting_for(tmp_path / "pipe") + marked("late"))
    clock = VirtualClock()
    named = [Named("sources.modules[0]", "acme_hangs"), Named("sources.modules[1]", PLAIN)]
    published: asyncio.Queue[Snapshot] = asyncio.Queue()
    source = PythonModules("modules", named, ModuleReader({}), clock)
    running = asyncio.create_task(source.run(published.put_nowait))
    pipe = await asyncio.to_thread(open, tmp_path / "pipe", "w")
    await clock.advance(5)
    async with asyncio.timeout(20):
        first = await published.get()
        pipe.close()
        second = await published.get()
        await running
    assert (names(first), first.faults[0].file) == (["add", "whoami"], "sources.modules[0]")
    assert (names(second), second.faults) == (["late", "add", "whoami"], ())


# -- entry points


@pytest.mark.parametrize(
    ("value", "given"),
    [
        (PLAIN, ["add", "whoami"]),
        (f"{PLAIN}:tools", ["add", "whoami"]),
        (f"{SAMPLES}:hello", ["hello"]),
    ],
)
async def test_an_entry_point_names_a_module_a_function_that_returns_definitions_or_a_marked_one(
    value: str, given: list[str]
) -> None:
    snapshot = await given_by(announced=lambda: [point(value)])
    assert (names(snapshot), snapshot.faults) == (given, ())


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("no_such_module", "entry point 'own' of an installed package: 'no_such_module' cannot be imported"),
        (f"{PLAIN}:nothing", "has no attribute 'nothing'"),
        (f"{PLAIN}:NUMBERS", "it has to be a module or a function, not dict"),
        (f"{PLAIN}:add", "it must not need parameters (args)"),
        ("tests.function_calls.sources.ends_the_process", "SystemExit: 1"),
    ],
)
async def test_an_entry_point_of_another_kind_is_a_fault_and_hides_no_other(value: str, problem: str) -> None:
    snapshot = await given_by(announced=lambda: [point(value), point(PLAIN)])
    assert names(snapshot) == ["add", "whoami"]
    [fault] = snapshot.faults
    assert problem in fault.message


async def test_what_installed_packages_announce_is_there_when_the_operator_wants_it(installed: Path) -> None:
    write(installed, "acme_tools.py", marked("acme", commands="acme"))
    announced_by(installed, "acme-rollcall", {"tools": "acme_tools", "broken": "acme_nothing"})
    announced_by(installed, "other", {"tools": "no_such_module"}, group="other.group")
    async with a_group(settings={"sources": {"entry_points": True}}) as group:
        assert await group.say("Ann", "/acme") == ["Hi"]
        [fault] = group.daemon.functions.faults
        assert fault.message.startswith("entry point 'broken' of acme-rollcall: 'acme_nothing' cannot be imported")
    async with a_group() as group:
        assert group.daemon.registry.of("default").find("acme") is None


@pytest.mark.requirement("E46")
async def test_the_settings_name_modules(installed: Path) -> None:
    write(installed, "acme_tools.py", marked("acme", commands="acme"))
    async with a_group(settings={"sources": {"modules": ["acme_tools", "acme_tools"]}}) as group:
        assert await group.say("Ann", "/acme") == ["Hi"]
        assert group.daemon.functions.faults == ()


@pytest.mark.requirement("E50")
async def test_a_function_of_a_module_fails_without_an_exception_for_anybody(installed: Path) -> None:
    text = "def f(args):\n    return ('error', 'No luck.')\ndef tools():\n    return [{'name': 'f', 'handler': f}]\n"
    write(installed, "acme_tools.py", text)
    [spec] = (await given_by("acme_tools")).specs
    result = await Routing(spec).invoke("f")
    assert result.error is not None
    assert result.error.text == "No luck."
