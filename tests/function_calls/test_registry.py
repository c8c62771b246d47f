"""The registry: a collection of specs, and the snapshot that a turn uses."""

from __future__ import annotations

import time
from types import ModuleType

import pytest

from function_calls.registry import FunctionRegistry
from function_calls.schema.definition import DefinitionError
from function_calls.spec import ToolGroup
from tests.fakes.functions import CITY, Recorder
from tests.function_calls import plain_tools


def names(registry: FunctionRegistry, bot: str = "default") -> list[str]:
    """Functions of a bot, in order."""
    return [spec.name for spec in registry.of(bot).specs]


@pytest.mark.requirement("D19", "E29", "E30", "E31", "E33")
def test_functions_are_added_alone_together_and_by_module() -> None:
    registry, other = FunctionRegistry(), FunctionRegistry()
    one = Recorder("one").spec
    registry.register_function(one)
    registry.register_functions([Recorder("two").spec, Recorder("three").spec])
    registry.register_module(plain_tools)
    assert names(registry) == ["one", "two", "three", "add", "whoami"]
    assert registry.of("default").find("one") is one
    assert registry.of("default").find("four") is None
    assert other.specs == ()


@pytest.mark.requirement("E34")
def test_functions_are_found_by_tag() -> None:
    registry = FunctionRegistry()
    registry.register_functions([Recorder("a", tags=["x", "y"]).spec, Recorder("b", tags="y").spec, Recorder("c").spec])
    functions = registry.of("default")
    assert [[spec.name for spec in functions.by_tag(tag)] for tag in ("x", "y", "z")] == [["a"], ["a", "b"], []]


@pytest.mark.requirement("D19", "B31", "E31")
@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (Recorder("same"), Recorder("same"), "name 'same' is taken twice"),
        (Recorder("a", commands=["go"]), Recorder("b", commands=["/GO"]), "command 'go' is taken twice"),
        (Recorder("a", commands=["go on"]), Recorder("b", commands=["Go  On"]), "command 'go on' is taken twice"),
        (Recorder("same"), Recorder("same", bot="shop"), "name 'same' is taken twice"),
        (Recorder("same", bot="shop"), Recorder("same", bot="shop"), "name 'same' is taken twice"),
    ],
)
def test_a_name_or_command_taken_twice_is_an_error_that_names_both_places(
    first: Recorder, second: Recorder, words: str
) -> None:
    registry = FunctionRegistry()
    registry.register_function(first.spec, "left")
    with pytest.raises(ValueError, match=words) as caught:
        registry.register_functions([Recorder("innocent").spec, second.spec], "right")
    assert f"tests/{first.spec.name}.py:1" in str(caught.value)
    assert f"tests/{second.spec.name}.py:1" in str(caught.value)
    assert registry.specs == (first.spec,)


@pytest.mark.requirement("B31")
def test_bots_have_functions_of_their_own_beside_those_for_all() -> None:
    registry = FunctionRegistry()
    registry.register_functions(
        [Recorder("all").spec, Recorder("open", bot="shop").spec, Recorder("open", bot="office").spec]
    )
    assert (names(registry), names(registry, "shop"), names(registry, "office")) == (
        ["all"],
        ["all", "open"],
        ["all", "open"],
    )
    assert registry.of("shop").find("open") is not registry.of("office").find("open")


def test_a_snapshot_stays_what_it_was_when_a_source_is_replaced() -> None:
    registry = FunctionRegistry()
    registry.publish("files", [Recorder("old", commands=["go"]).spec])
    before = registry.of("default")
    assert registry.of("default") is before
    registry.publish("files", [Recorder("new", commands=["go"]).spec])
    assert (before.find("old") is not None, before.find("new")) == (True, None)
    assert names(registry) == ["new"]


@pytest.mark.requirement("B31", "E31")
def test_of_two_sources_that_want_a_name_the_first_has_it_and_the_other_is_told() -> None:
    registry = FunctionRegistry()
    assert registry.publish("built in") == []
    assert registry.publish("files", [Recorder("same").spec, Recorder("other").spec]) == []
    [found] = registry.publish("built in", [Recorder("same").spec])
    assert (found.file, found.code) == ("tests/same.py", "functions.taken")
    assert found.message.count("tests/same.py:1") == 2
    assert names(registry) == ["same", "other"]
    assert registry.publish("files", [Recorder("other").spec]) == []
    registry.publish("files", [Recorder("same").spec])
    assert registry.withdraw("built in") == []
    assert names(registry) == ["same"]


def test_of_one_source_the_first_function_has_the_name() -> None:
    registry = FunctionRegistry()
    first = Recorder("x").spec
    [found] = registry.publish("files", [first, Recorder("x").spec, Recorder("y").spec])
    assert "name 'x' is taken twice" in found.message
    assert names(registry) == ["x", "y"]
    assert registry.of("default").find("x") is first


def test_a_group_has_its_name_among_the_functions() -> None:
    registry = FunctionRegistry()
    group = ToolGroup("research", "Look things up.", ("search",), source="tools.yaml:3")
    [found] = registry.publish("files", [Recorder("research").spec], [group])
    assert (found.file, found.line) == ("tools.yaml", 3)
    assert registry.of("default").groups == {}
    registry.publish("files", [Recorder("search").spec], [group])
    assert registry.of("default").groups == {"research": group}


@pytest.mark.requirement("E28", "E31")
def test_a_module_without_functions_is_refused() -> None:
    with pytest.raises(DefinitionError, match="it has no function tools"):
        FunctionRegistry().register_module(ModuleType("empty"))


@pytest.mark.requirement("E32", "B10")
def test_the_schema_of_a_function_is_found_by_its_name() -> None:
    registry = FunctionRegistry()
    registry.register_function(Recorder("weather", CITY).spec)
    spec = registry.of("default").find("weather")
    assert spec is not None
    assert spec.parameters["properties"] == {"city": {"type": "string", "description": "The place"}}
    offer = registry.of("default").offer([spec])
    assert offer.by_name["weather"].parameters is spec.parameters


def test_names_that_providers_do_not_allow_are_offered_under_others_that_lead_back() -> None:
    wanted = ["todo.add", "todo_add", "天气", "a.b", "x" * 100, "x" * 99 + "y", "日历"]
    registry = FunctionRegistry()
    registry.register_functions(Recorder(name).spec for name in wanted)
    functions = registry.of("default")
    offer = functions.offer(functions.specs)
    assert len(offer.by_name) == len(wanted)
    for one in offer.functions:
        assert one.name.replace("_", "").replace("-", "").isalnum()
        assert one.name.isascii()
        assert 1 <= len(one.name) <= 64
        found = functions.find(one.name)
        assert found is not None
        assert found.name == one.original
    assert offer.by_name["todo_add"].original == "todo_add"
    again = FunctionRegistry()
    again.register_functions(Recorder(name).spec for name in wanted)
    assert list(again.of("default").offer(again.of("default").specs).by_name) == list(offer.by_name)


def test_a_function_that_is_refused_leaves_no_trace() -> None:
    registry = FunctionRegistry()
    registry.register_function(Recorder("one", commands=["go"]).spec)
    with pytest.raises(DefinitionError):
        registry.register_functions([Recorder("two", commands=["walk"]).spec, Recorder("three", commands=["go"]).spec])
    registry.register_functions([Recorder("two", commands=["walk"]).spec])
    assert names(registry) == ["one", "two"]
    registry.publish("code", [])
    registry.register_function(Recorder("one", commands=["go", "walk"]).spec)
    assert names(registry) == ["one"]


def test_adding_functions_one_by_one_takes_time_in_proportion_to_their_number() -> None:
    specs = [Recorder(f"f{n}", commands=[f"c{n}"]).spec for n in range(1600)]

    def seconds_for(count: int) -> float:
        registry = FunctionRegistry()
        began = time.process_time()
        for spec in specs[:count]:
            registry.register_function(spec)
        return time.process_time() - began

    # Eight times as many functions: a factor of 8 if linear, 64 if quadratic.
    assert min(seconds_for(1600) for _ in range(3)) < 24 * max(min(seconds_for(200) for _ in range(5)), 1e-4)
