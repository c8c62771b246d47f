"""docs/functions.md: its Python code works, and its tables are complete."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ruamel.yaml import YAML

from bot.checks.functions_check import Code, check_functions
from bot.testing import a_group
from config.settings import Settings
from function_calls.loading.python_functions import specs_of
from function_calls.result import normalised
from function_calls.schema import definition
from function_calls.schema.definition import Code as Unfit
from services.clock import Clock, VirtualClock
from services.refs import Effect, ErrorCode
from tests import inventory_page
from tests.docs.documents import ROOT, Page
from tests.docs.terminal import Terminal

PAGE = Page("docs/functions.md")
README = Page("README.md")
OTHER_WORDS = {"auth", "tag", "confirmation_prompt", "timeout"}


@pytest.fixture
def example() -> Iterator[ModuleType]:
    """All Python code of the page, as one module."""
    module = ModuleType("example")
    sys.modules["example"] = module
    for block in PAGE.of("python"):
        # Keep line numbers, so that failures show the line of the page.
        exec(compile("\n" * (block.line - 1) + block.text, PAGE.path, "exec"), module.__dict__)
    yield module
    del sys.modules["example"]


def test_the_pages_function_is_loaded(example: ModuleType) -> None:
    spec, single = specs_of(example, {Clock: VirtualClock()})
    assert (spec.name, spec.command.words, spec.execution.effect) == ("order_drink", ("order", "点单"), Effect.ONCE)
    assert spec.parameters["required"] == single.parameters["required"] == ["drink"]
    assert single.parameters["properties"]["cups"] == {"type": "integer", "default": 1, "description": "How many cups"}


@pytest.mark.requirement("D40", "D68")
def test_the_commands_of_the_page_show_what_it_shows(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    folder = terminal.home / "my-bot"
    (folder / "functions").mkdir(parents=True)
    (folder / "functions" / "bar.py").write_text(PAGE.of("python", "A complete example")[0].text, encoding="utf-8")
    [settings] = README.of("yaml")
    (folder / "bot.yaml").write_text(settings.text, encoding="utf-8")
    terminal.follow(PAGE.of("console"))


async def test_nothing_is_remarked_on_the_functions_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "bar.py").write_text(PAGE.of("python", "A complete example")[0].text, encoding="utf-8")
    assert await check_functions(Settings.model_validate({"sources": {"python": [str(tmp_path)]}})) == []


@pytest.mark.requirement("D40")
async def test_what_the_page_switches_off_is_off(example: ModuleType) -> None:
    [settings] = [one for one in PAGE.of("yaml") if one.heading == "Options of the decorator"]
    switched: dict[str, Any] = YAML(typ="safe").load(settings.text)
    async with a_group(functions=[example.order_drink], settings=switched) as group:
        [answer] = await group.say("Ann", "/order tea")
        assert "off" in answer


@pytest.mark.requirement("B27", "E47", "E48", "E49", "E51")
def test_the_page_has_every_remark_of_check() -> None:
    [section] = re.findall(r"^## Messages of check\n(.*?)^## ", PAGE.text, re.DOTALL | re.MULTILINE)
    assert set(re.findall(r"^\| `([a-z_.]+)`", section, re.MULTILINE)) == {code.value for code in (*Code, *Unfit)}


def test_every_service_of_the_page_is_in_the_module_that_it_names() -> None:
    rows = re.findall(r"^\| `([A-Z]\w+)` \| `([\w.]+)` \|", PAGE.text, re.MULTILINE)
    assert len(rows) >= 25
    assert [name for name, module in rows if not hasattr(importlib.import_module(module), name)] == []


@pytest.mark.parametrize("name", re.findall(r"^async def (test_\w+)", PAGE.text, re.MULTILINE))
async def test_a_test_of_the_page_passes(example: ModuleType, name: str) -> None:
    await vars(example)[name]()


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("/order green tea 2 size=large", "Shall I order 2 × green tea?"),
        ('/order drink="green tea" cups=2 size=large', "Shall I order 2 × green tea?"),
        ("/order tea 9", "“cups” must be: a whole number from 1 to 4.\nUsage: /order <drink> [cups] [size]"),
    ],
)
async def test_a_command_line_of_the_page_is_read_as_it_says(example: ModuleType, line: str, answer: str) -> None:
    assert f"`{line}`" in PAGE.text
    async with a_group(functions=[example.order_drink]) as group:
        assert await group.say("Ann", line) == [answer]


async def test_the_filters_of_the_page_stand_where_they_say(example: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("\n".join(block.text for block in PAGE.of("python")))
    names = {"call": "around_a_run", "round": "around_a_round", "turn": "around_a_turn"}
    filters = {
        grain: [{"python": {"file": str(tmp_path / "own.py"), "function": name}}] for grain, name in names.items()
    }
    async with a_group(functions=[example.order_drink], settings={"filters": filters}) as group:
        group.model.says("Some coffee?")
        assert await group.say("Ann", "@Rollcall hello") == ["Some tea?"]


async def test_the_mapping_of_the_page_runs(example: ModuleType) -> None:
    async with a_group(functions=[example.shout_spec]) as group:
        assert await group.say("Ann", "/shout hello there") == ["HELLO THERE!"]


def test_the_tool_module_of_the_page_is_registered(example: ModuleType) -> None:
    [spec] = example.registry.of("default").by_tag("loud")
    assert spec.name == "shout"


def test_every_option_of_the_decorator_is_on_the_page() -> None:
    [table] = re.findall(r"^\| option \|.*?(?=\n\n)", PAGE.text, re.DOTALL | re.MULTILINE)
    described = {name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    known = {*definition._OPTIONS, "name", "description", "metadata"}
    assert described == known - OTHER_WORDS
    assert [word for word in OTHER_WORDS if f"`{word}`" not in PAGE.text] == []


@pytest.mark.parametrize(
    ("value", "says", "data", "updates"),
    [
        ("hi", "hi", "hi", {}),
        (None, "", None, {}),
        ({"a": 1}, "", {"a": 1}, {}),
        (("ok", "v", {"k": 1}), "v", "v", {"k": 1}),
        (("v", {"k": 1}), "v", "v", {"k": 1}),
        ({"status": "success", "msg": "m"}, "m", "m", {}),
    ],
)
def test_a_value_stands_for_the_result_that_the_page_tells(value: Any, says: str, data: Any, updates: Any) -> None:
    result = normalised(value)
    assert (result.reply, result.data, dict(result.context_updates)) == (says, data, updates)


@pytest.mark.parametrize("value", [("error", "no"), {"status": "error", "msg": "no"}])
def test_a_value_stands_for_the_failure_that_the_page_tells(value: Any) -> None:
    error = normalised(value).error
    assert error is not None
    assert (error.code, error.text) == (ErrorCode.FAILED, "no")


def test_the_codes_of_the_page_are_codes() -> None:
    [section] = re.findall(r"^## Errors\n(.*?)^## ", PAGE.text, re.DOTALL | re.MULTILINE)
    named = set(re.findall(r"`([a-z_]+)`", section)) - {"retry", "timeout_seconds"}
    assert named <= {code.value for code in ErrorCode}
    assert {"not_found", "refused", "transient", "environment", "failed"} <= named


def test_the_services_of_the_page_can_be_had() -> None:
    [section] = re.findall(r"^## Services and ports\n(.*?)^## ", PAGE.text, re.DOTALL | re.MULTILINE)
    source = (ROOT / "bot/wiring.py").read_text(encoding="utf-8")
    services = (ROOT / "bot/registration/services.py").read_text(encoding="utf-8")
    [built] = re.findall(r"return \{(.*?)\n    \}", services, re.DOTALL)
    [ports] = re.findall(r"ports: dict\[type, object\] = \{(.*?)\n        \}", source, re.DOTALL)
    [shared] = re.findall(r"shared: dict\[type, object\] = \{(.*?)\n        \}", source, re.DOTALL)
    available = set(re.findall(r"(\w+): ", f"{built} {ports} {shared}"))
    assert set(re.findall(r"`([A-Z]\w+)`", section)) == available


async def test_the_table_of_built_in_functions_is_up_to_date() -> None:
    page = inventory_page.PAGE.read_text(encoding="utf-8")
    assert inventory_page.with_table(page, await inventory_page.table()) == page, (
        "run python -m tests.inventory_page --write"
    )
