"""`plugins`: modules of functions that are enabled by name, for all bots or for one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from bot.registration.functions import built_in_plugins, modules_of, plugins_of
from bot.testing import a_group
from config.settings import Settings
from function_calls.loading.module_functions import ModuleReader
from function_calls.loading.source import Snapshot
from function_calls.sources.python_modules import PythonModules
from services.clock import VirtualClock
from tests.bot.cli.running import a_settings_file, command
from tests.bot.cli.running import without_a_model as without_a_model
from tests.fakes.sources import published_by

PLAIN = "tests.function_calls.plain_tools"
BUILT_IN = {"plain": PLAIN, "samples": "tests.function_calls.sample_functions"}


async def given_by(settings: Mapping[str, Any]) -> Snapshot:
    """Functions of the plugins of these settings; two modules are built in."""
    named = plugins_of(Settings.model_validate(settings), BUILT_IN)
    return await published_by(PythonModules("plugins", named, ModuleReader({}), VirtualClock()))


def of_bots(snapshot: Snapshot) -> Sequence[tuple[str, str | None]]:
    return [(spec.name, spec.access.bot) for spec in snapshot.specs]


@pytest.mark.requirement("E46")
@pytest.mark.parametrize("name", ["plain", PLAIN])
async def test_a_plugin_is_a_built_in_module_by_its_name_or_another_by_its_dotted_name(name: str) -> None:
    snapshot = await given_by({"plugins": [name]})
    assert (of_bots(snapshot), snapshot.faults) == ([("add", None), ("whoami", None)], ())


@pytest.mark.requirement("E46")
async def test_a_plugin_of_a_bot_is_that_bots_alone() -> None:
    bots = {"default": {"plugins": ["plain"]}, "helper": {"plugins": [PLAIN]}, "third": {}}
    snapshot = await given_by({"bots": bots})
    assert of_bots(snapshot) == [(name, bot) for bot in ("default", "helper") for name in ("add", "whoami")]


async def test_a_plugin_that_is_named_more_than_once_is_there_once() -> None:
    bots = {"default": {"plugins": ["plain"]}}
    snapshot = await given_by({"plugins": ["plain", PLAIN, "plain"], "bots": bots})
    assert of_bots(snapshot) == [("add", None), ("whoami", None)]
    settings = Settings.model_validate({"sources": {"modules": [PLAIN, "a.b", "a.b"]}, "plugins": ["plain"]})
    assert [one.module for one in modules_of(settings, plugins_of(settings, BUILT_IN))] == ["a.b"]


async def test_a_plugin_that_there_is_not_is_told_with_what_may_be_meant() -> None:
    bots = {"default": {"plugins": ["nonsense"]}}
    snapshot = await given_by({"plugins": ["plian", "plain"], "bots": bots})
    assert [name for name, _ in of_bots(snapshot)] == ["add", "whoami"]
    near, far = (fault.message for fault in snapshot.faults)
    assert near.startswith("plugins[0]: there is no plugin 'plian'; did you mean 'plain'?")
    assert far.startswith("bots.default.plugins[0]: there is no plugin 'nonsense'; there are: plain, samples, todo.")


async def test_the_to_do_list_is_there_without_being_named() -> None:
    assert await given_by({"plugins": ["todo"]}) == Snapshot()


def test_every_module_of_the_package_is_a_plugin_by_its_name() -> None:
    for name, module in built_in_plugins().items():
        assert module == f"function_calls.tool_modules.{name}"


@pytest.mark.requirement("E46")
async def test_the_chats_of_a_bot_have_its_plugins_and_others_have_not() -> None:
    settings = {
        "bots": {"default": {}, "helper": {"name": "Helper", "plugins": [PLAIN]}},
        "chats": {"allow": ["*"], "settings": {"test:bot:family": {"bot": "helper"}}},
        "plugins": ["todo"],
    }
    async with a_group(settings=settings) as group:
        assert group.daemon.functions.faults == ()
        assert group.daemon.registry.of("default").find("add") is None
        spec = group.daemon.registry.of("helper").find("add")
    assert spec is not None


# -- rollcall check


def test_what_is_wrong_with_a_plugin_is_told_at_its_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    settings = a_settings_file(
        tmp_path,
        "plugins:\n  - todo\n  - tods\n"
        "bots:\n  helper:\n    plugins:\n      - no.such.module\n"
        "sources:\n  modules: [no_such_module]\n",
    )
    head = settings.read_text().splitlines().index("plugins:") + 1
    printed = command(capsys, "check", settings)
    found = [line.removeprefix(f"{settings}:") for line in printed.out.splitlines()]
    expected = [
        (f"{head + 1}:5 settings.has_no_effect", "the to-do list is built in and always active"),
        (f"{head + 2}:5 functions.unusable plugins[1]: there is no plugin 'tods'", "did you mean 'todo'?"),
        (f"{head + 6}:9 functions.unusable bots.helper.plugins[0]: 'no.such.module'", "No module named 'no'"),
        (f"{head + 8}:13 functions.unusable sources.modules[0]: 'no_such_module'", "No module named"),
    ]
    for line, (begin, word) in zip(found, expected, strict=True):
        assert line.startswith(begin)
        assert word in line
    assert printed.status == 1


def test_a_plugin_that_changes_nothing_is_a_warning(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = f"plugins: [{PLAIN}, {PLAIN}]\nbots: {{default: {{plugins: [{PLAIN}]}}}}\n"
    printed = command(capsys, "check", a_settings_file(tmp_path, text))
    said = [line for line in printed.out.splitlines() if "settings.has_no_effect" in line]
    assert printed.status == 0
    assert [line.rpartition("has no effect: ")[2] for line in said] == [
        "it is already listed",
        "it is already listed for all bots",
    ]


@pytest.mark.parametrize("name", ["", "a b", "a..b", ".a", "1a", "a/b", "a-b"])
def test_what_is_no_name_of_a_module_is_refused_by_the_settings(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    printed = command(capsys, "check", a_settings_file(tmp_path, f"plugins: ['{name}']\n"))
    assert "settings.bad_value plugins[0] has to be the name of a Python module, such as package.module" in printed.out


@pytest.mark.requirement("E45")
async def test_file_shell_and_human_tools_are_off_in_every_chat_until_plugins_name_them_and_todos_are_on() -> None:
    off = {"file_read", "file_write", "file_list", "file_glob", "shell_exec", "human_input"}
    async with a_group() as group:
        names = {spec.name for spec in group.daemon.registry.of("default").specs}
        assert names & off == set()
        assert names >= {"todo_add", "todo_list", "todo_update"}
        await group.say("Ann", "@Rollcall hello")
        offer = group.model.requests[-1].offer
        assert offer is not None
        assert {one.original for one in offer.functions} & off == set()


@pytest.mark.requirement("E42", "E43", "E44", "E45", "F7")
async def test_the_built_in_tools_bear_the_names_that_were_asked_for() -> None:
    async with a_group(settings={"plugins": ["file", "shell", "human"]}) as group:
        names = {spec.name for spec in group.daemon.registry.of("default").specs}
    assert names >= {
        "file_read", "file_write", "file_list", "file_glob", "shell_exec", "todo_add", "todo_list", "todo_update",
        "human_input",
    }  # fmt: skip
