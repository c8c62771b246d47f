"""Functions from mappings, modules and decorators: all fields, all forms of handlers, and all errors at once."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from decimal import Decimal
from operator import attrgetter
from types import ModuleType
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from bot.testing import a_group, call
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import declaration_of, tool_function
from function_calls.loading.python_functions import PythonFunctions, as_spec
from function_calls.schema.definition import DefinitionError
from function_calls.schema.mappings import new_spec, spec_from_mapping, specs_of_module
from function_calls.spec import Activation, ArgumentError, FunctionResult, OfferedTo, Touch
from services.refs import Effect, Role
from services.retry import RetryPolicy
from tests.fakes.builders import a_member, a_message
from tests.fakes.sources import published_by
from tests.function_calls import plain_tools, sample_functions
from tests.function_calls.routing import Routing
from tests.function_calls.sample_functions import Booking, Conversions, book, hello, keep, travel


def nothing(args: dict[str, Any]) -> None:
    return None


# -- mappings


@pytest.mark.requirement("D9", "D18", "E3", "E6", "E25")
def test_a_definition_of_a_name_and_a_handler_has_these_defaults() -> None:
    spec = spec_from_mapping({"name": "act", "handler": nothing})
    assert (spec.name, spec.description, spec.access.bot, spec.prompt.result_schema) == ("act", "", None, None)
    assert (spec.access.scope, spec.access.require_at, spec.access.roles) == ("both", False, frozenset(Role))
    assert (spec.prompt.examples, spec.command.words, spec.origin.tags, spec.execution.filters) == (
        (),
        (),
        frozenset(),
        (),
    )
    assert (spec.execution.timeout_seconds, spec.execution.retry, spec.execution.effect) == (30.0, None, Effect.READ)
    assert (spec.access.offered_to, spec.prompt.activation) == (frozenset(OfferedTo), Activation.ALWAYS)
    assert (spec.execution.serial, spec.execution.return_direct, spec.command.immediate, spec.access.confirm) == (
        False,
        False,
        False,
        "",
    )
    assert (spec.parameters, dict(spec.origin.metadata)) == ({"type": "object", "properties": {}, "required": []}, {})


_OPTIONS: list[tuple[str, Any, str, Any]] = [
    ("activation", "on_request", "prompt.activation", Activation.ON_REQUEST),
    ("approval", "admin", "access.approval", Role.ADMIN),
    ("ask", {"city": "Where?"}, "execution.ask", {"city": "Where?"}),
    ("background", True, "execution.background", True),
    ("bot", "helper", "access.bot", "helper"),
    ("commands", ["act"], "command.words", ("act",)),
    ("confirm", "Sure?", "access.confirm", "Sure?"),
    ("effect", "once", "execution.effect", Effect.ONCE),
    ("examples", ["act in {city}"], "prompt.examples", ("act in {city}",)),
    ("filters", ["safe"], "execution.filters", ("safe",)),
    ("groups", "travel", "prompt.groups", {"travel"}),
    ("immediate", True, "command.immediate", True),
    ("line", "city", "command.line", "city"),
    ("offered_to", ["model"], "access.offered_to", {OfferedTo.MODEL}),
    ("positional", ["city"], "command.positional", ("city",)),
    ("require_at", True, "access.require_at", True),
    ("retry", {"max": 1, "delay": 250}, "execution.retry", RetryPolicy(2, 0.25, 0.25)),
    ("return_direct", True, "execution.return_direct", True),
    ("roles", "owner", "access.roles", {Role.OWNER}),
    ("scope", "private", "access.scope", "private"),
    ("sensitive", "city", "execution.sensitive", {"city"}),
    ("serial", True, "execution.serial", True),
    ("sinks", "city", "access.sinks", {"city"}),
    ("status_text", "…", "execution.status_text", "…"),
    ("system_prompt", "Acts.", "prompt.system_prompt", "Acts."),
    ("tags", ["one"], "origin.tags", {"one"}),
    ("timeout_seconds", 5, "execution.timeout_seconds", 5.0),
    ("touches", "sends_out", "execution.touches", {Touch.SENDS_OUT}),
]
"""Option, its value, the field of the spec, and the field's value."""
_NOT_DECLARED = frozenset(
    {
        "execution.configured",
        "origin.built_in",
        "origin.declared",
        "origin.metadata",
        "origin.runs",
        "origin.services",
        "origin.source",
        "origin.version",
        "prompt.result_schema",
    }
)
"""Fields that are known from elsewhere than an option."""


@pytest.mark.requirement("D5", "D18")
@pytest.mark.parametrize(("option", "value", "field", "expected"), _OPTIONS)
def test_each_option_reaches_the_field_that_it_declares(option: str, value: Any, field: str, expected: Any) -> None:
    act = {"name": "act", "handler": nothing, "parameters": {"city": {"type": "string"}}}
    read = attrgetter(field)
    assert read(spec_from_mapping(act)) != expected
    spec = spec_from_mapping({**act, option: value})
    assert (read(spec), spec.origin.declared, spec.origin.metadata) == (expected, {field.partition(".")[2]}, {})


@pytest.mark.requirement("D5", "D18")
def test_every_field_of_a_spec_can_be_declared_in_its_definition() -> None:
    spec = spec_from_mapping({"name": "act", "handler": nothing})
    groups = {name: getattr(spec, name) for name in ("prompt", "command", "access", "execution", "origin")}
    known = {f"{name}.{field.name}" for name, group in groups.items() for field in dataclasses.fields(group)}
    assert known == {field for _, _, field, _ in _OPTIONS} | _NOT_DECLARED


@pytest.mark.requirement("D5", "D18", "E5", "E7", "E8", "E9")
def test_every_option_is_read() -> None:
    spec = spec_from_mapping(
        {
            "name": "act",
            "handler": nothing,
            "description": "  Acts. ",
            "parameters": {"city": {"type": "string"}},
            "examples": "act in {city}",
            "commands": ["/Act", "act  NOW", "行动"],
            "scope": "group",
            "require_at": True,
            "auth": "admin",
            "tag": "one",
            "timeout": 1500,
            "retry": {"max": 3, "delay": 250},
            "filters": ["safe"],
            "confirmation_prompt": "Sure?",
            "ask": {"city": "Where?"},
            "offered_to": ["model"],
            "activation": "on_request",
            "effect": "idempotent",
            "sensitive": "city",
            "status_text": "…",
            "metadata": {"team": "blue"},
            "x-cost": 3,
        },
        "here:1",
    )
    assert (spec.description, spec.prompt.examples, spec.command.words) == (
        "Acts.",
        ("act in {city}",),
        ("act", "act now", "行动"),
    )
    assert (spec.access.scope, spec.access.require_at, spec.access.roles) == (
        "group",
        True,
        frozenset({Role.ADMIN, Role.OWNER}),
    )
    assert (spec.origin.tags, spec.execution.sensitive, spec.execution.filters) == (
        frozenset({"one"}),
        frozenset({"city"}),
        ("safe",),
    )
    assert (spec.execution.timeout_seconds, spec.execution.retry, spec.execution.effect) == (
        1.5,
        RetryPolicy(4, 0.25, 0.25),
        Effect.IDEMPOTENT,
    )
    assert (spec.access.confirm, dict(spec.execution.ask), spec.execution.status_text) == (
        "Sure?",
        {"city": "Where?"},
        "…",
    )
    assert (spec.access.offered_to, spec.prompt.activation) == (frozenset({OfferedTo.MODEL}), Activation.ON_REQUEST)
    assert (dict(spec.origin.metadata), spec.origin.source) == ({"team": "blue", "x-cost": 3}, "here:1")


@pytest.mark.requirement("E5")
@pytest.mark.parametrize(("key", "value"), [("tag", "a"), ("tag", ["a"]), ("tags", ("a",)), ("tags", {"a"})])
def test_one_tag_or_several_become_a_set(key: str, value: Any) -> None:
    assert spec_from_mapping({"name": "act", "handler": nothing, key: value}).origin.tags == frozenset({"a"})


@pytest.mark.requirement("E1", "E2")
@pytest.mark.parametrize(
    ("definition", "problems"),
    [
        ({}, ["name is required", "handler is required"]),
        ({"name": "", "handler": None}, ["name is required", "handler is required"]),
        ({"name": "act", "handler": 5}, ["handler: 5 cannot be called"]),
        ({"handler": "nowhere"}, ["name is required", "handler: 'nowhere' is not of the form package.module:function"]),
        ({"name": "act", "handler": "os.path:nothing"}, ["handler: module 'posixpath' has no attribute 'nothing'"]),
        ({"name": "act", "handler": "no_such_module:f"}, ["handler: No module named 'no_such_module'"]),
    ],
)
def test_without_a_name_or_a_handler_it_is_refused_with_all_that_is_wrong(
    definition: Mapping[str, Any], problems: list[str]
) -> None:
    with pytest.raises(DefinitionError) as caught:
        spec_from_mapping(definition)
    assert list(caught.value.problems) == problems


@pytest.mark.requirement("E1")
def test_all_wrong_options_are_told_at_once() -> None:
    wrong = {
        "name": "a b",
        "handler": nothing,
        "scope": "world",
        "timeout": "soon",
        "retry": {"max": 99},
        "commands": ["one two three"],
        "roles": "king",
        "require_at": "yes",
        "effect": "maybe",
        "examples": ["go to {town}"],
        "ask": {"village": "?"},
    }
    with pytest.raises(DefinitionError) as caught:
        spec_from_mapping(wrong, "file.yaml:7")
    problems = "\n".join(caught.value.problems)
    assert len(caught.value.problems) == 10
    assert "file.yaml:7" in str(caught.value)
    for word in (
        "name",
        "scope",
        "timeout",
        "retry",
        "commands",
        "roles",
        "require_at",
        "effect",
        "{town}",
        "'village'",
    ):
        assert word in problems


@pytest.mark.requirement("E7")
def test_an_effect_that_must_happen_once_cannot_ask_to_be_repeated() -> None:
    with pytest.raises(DefinitionError, match="never repeated"):
        new_spec("pay", nothing, effect="once", retry={"max": 1, "delay": 0})


@pytest.mark.requirement("E4", "B16", "E17", "E18", "E19", "E20", "E21", "E22", "E23", "E24")
def test_the_short_form_of_parameters_becomes_a_schema_at_every_depth() -> None:
    spec = new_spec(
        "act",
        nothing,
        parameters={
            "city": {"type": "string", "description": "Where", "required": True},
            "size": {"type": "float", "enum": [1.5, 2.5], "default": 1.5},
            "names": {
                "type": "array",
                "items": {"type": "object", "properties": {"n": {"type": "integer", "required": True}}},
            },
            "address": {
                "type": "object",
                "properties": {
                    "street": {"type": "string", "required": True},
                    "geo": {"type": "object", "properties": {"lat": {"type": "float", "required": True}}},
                },
            },
            "plain": "boolean",
        },
    )
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where"},
            "size": {"type": "number", "enum": [1.5, 2.5], "default": 1.5},
            "names": {
                "type": "array",
                "items": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
            },
            "address": {
                "type": "object",
                "properties": {
                    "street": {"type": "string"},
                    "geo": {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]},
                },
                "required": ["street"],
            },
            "plain": {"type": "boolean"},
        },
        "required": ["city"],
    }


@pytest.mark.requirement("E20", "E24")
def test_a_list_of_required_names_within_the_short_form_survives() -> None:
    nested = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"required": True}}, "required": ["a"]}
    spec = new_spec("act", nothing, parameters={"one": nested, "many": {"type": "array", "items": nested}})
    properties = spec.parameters["properties"]
    assert spec.parameters["required"] == []
    assert properties["one"]["required"] == ["a", "b"]
    assert properties["many"]["items"]["required"] == ["a", "b"]


@pytest.mark.requirement("E26", "E27", "E36")
async def test_a_spec_is_built_from_a_name_a_handler_and_options() -> None:
    spec = new_spec("add", plain_tools.add, "Adds.", parameters=plain_tools.NUMBERS, tags=["math"])
    assert (spec.description, spec.origin.tags) == ("Adds.", frozenset({"math"}))
    assert plain_tools.add({"a": 1, "b": 2}) == 3
    assert (await Routing(spec).invoke("add", raw={"a": 1, "b": "2"})).data == 3


async def _awaited(args: dict[str, Any]) -> str:
    return f"async {args['name']}"


class Greeter:
    """A handler that is an object."""

    async def __call__(self, args: dict[str, Any], context: dict[str, Any]) -> str:
        return f"object {args['name']} {context['member']}"


@pytest.mark.requirement("E10", "E11", "E12", "E13", "C8")
@pytest.mark.parametrize(
    ("handler", "text"),
    [
        (lambda args: f"sync {args['name']}", "sync Bo"),
        (lambda args, context: f"with {context['member']}", "with test:bot:ann"),
        (lambda *both: f"{len(both)} given", "2 given"),
        (_awaited, "async Bo"),
        (Greeter(), "object Bo test:bot:ann"),
        (functools.partial(plain_tools.greet, greeting="Hej", mark="."), "Hej, Bo."),
        ("tests.function_calls.plain_tools:greet_all", ""),
        (("tests.function_calls.plain_tools:greet", ["Hi", "!"]), "Hi, Bo!"),
        (["tests.function_calls.plain_tools:greet", ("Hi", "?")], "Hi, Bo?"),
    ],
)
async def test_every_form_of_handler_is_run(handler: Any, text: str) -> None:
    definition = {"name": "act", "handler": handler, "parameters": {"name": {"type": "string"}}}
    if not text:
        with pytest.raises(DefinitionError):
            spec_from_mapping(definition)
        return
    result = await Routing(spec_from_mapping(definition)).invoke("act", raw={"name": "Bo"})
    assert result.reply == text


@pytest.mark.requirement("E12")
async def test_a_handler_is_found_by_its_path() -> None:
    spec = new_spec("add", "tests.function_calls.plain_tools:add", parameters=plain_tools.NUMBERS)
    assert (await Routing(spec).invoke("add", raw={"a": 2, "b": 3})).data == 5


@pytest.mark.parametrize("handler", [("a:b",), ("a:b", "xy"), "a:", ":b", {"a": 1}])
def test_a_handler_of_no_form_is_refused(handler: Any) -> None:
    with pytest.raises(DefinitionError, match="handler"):
        new_spec("act", handler)


@pytest.mark.requirement("E38", "E39")
async def test_a_plain_handler_reads_who_asked_and_what_earlier_calls_left() -> None:
    routing = Routing(
        new_spec("remember", lambda args: ("ok", "noted", {"colour": "red", "member": "forged"})),
        new_spec("recall", lambda args, context: context["colour"]),
        *specs_of_module(plain_tools),
    )
    turn = routing.a_turn()
    await routing.invoke("remember", turn=turn)
    assert (await routing.invoke("recall", turn=turn)).reply == "red"
    who = await routing.invoke("whoami", turn=turn)
    assert who.data == {"member": "test:bot:ann", "run": turn.input.id, "agent": "default", "chat": "test:bot:family"}


# -- modules


@pytest.mark.requirement("E28", "C27")
def test_a_module_lends_its_tags_to_tools_that_have_none() -> None:
    specs = {spec.name: spec for spec in specs_of_module(plain_tools)}
    assert (specs["add"].origin.tags, specs["whoami"].origin.tags) == (
        frozenset({"plain", "small"}),
        frozenset({"people"}),
    )
    assert specs["add"].origin.source == "tests/function_calls/plain_tools.py:8"
    assert specs["whoami"].description == "Small things"


@pytest.mark.requirement("E28")
def test_a_module_without_tools_is_refused_by_name() -> None:
    with pytest.raises(DefinitionError, match=r"module empty: it has no function tools\(\)"):
        specs_of_module(ModuleType("empty"))


# -- decorated functions


@pytest.mark.requirement("D8", "D32", "D33", "D42", "D43")
async def test_a_marked_function_is_read_from_its_signature_and_docstring() -> None:
    spec = as_spec(book, {})
    assert (spec.name, spec.description) == ("book", "Book a room or a desk.")
    assert (spec.prompt.examples, spec.origin.tags, spec.command.words) == (
        ("book {title}",),
        frozenset({"office"}),
        ("book",),
    )
    assert dict(spec.origin.metadata) == {"x_color": "blue"}
    assert spec.origin.source.startswith("tests/function_calls/sample_functions.py:")
    assert spec.arguments.parse({"title": "Hall", "guests": "3"}) == Booking(title="Hall", guests=3)
    result = await Routing(spec).invoke("book", raw={"title": "Hall"})
    assert (result.data, result.messages) == ({"title": "Hall", "lines": ["turn-2:0"]}, ())


@pytest.mark.requirement("D42")
async def test_name_description_and_examples_of_the_decorator_come_before_those_of_the_function() -> None:
    @tool_function("lamp_on", "Switch a lamp on", ["light in {room}"])
    async def act(context: MessageContext, room: str) -> str:
        """Act."""
        return f"Light in the {room}."

    spec = as_spec(act, {})
    assert (spec.name, spec.description, spec.prompt.examples) == ("lamp_on", "Switch a lamp on", ("light in {room}",))
    assert spec.parameters["properties"] == {"room": {"type": "string"}}
    assert (await Routing(spec).invoke("lamp_on", raw={"room": "hall"})).reply == "Light in the hall."


@pytest.mark.requirement("D8")
async def test_adding_a_function_takes_one_decorated_handler_and_one_model() -> None:
    routing = Routing(as_spec(hello, {}), as_spec(travel, {}))
    ann = a_message(sender=a_member("Ann"))
    assert (await routing.invoke("hello", message=ann)).reply == "Hello, Ann"
    trip = {"to": {"name": "Rome"}, "stops": []}
    assert (await routing.invoke("travel", raw=trip)).reply == "3 days to Rome"


@pytest.mark.requirement("D46")
async def test_a_function_may_take_the_raw_text_as_a_parameter() -> None:
    spec = as_spec(keep, {})
    assert spec.parameters["required"] == ["raw_text"]
    assert (await Routing(spec).invoke("keep", raw={"raw_text": "as it was said"})).reply == "as it was said"


class Visitor(BaseModel, frozen=True, extra="forbid"):
    name: str = Field(description="Who is greeted", min_length=2)
    times: int = Field(default=1, ge=1, description="How often, as a number")
    size: Literal["small", "large"] | None = None
    loud: bool = False


@tool_function(description="Greet somebody", commands=["greet"])
async def with_model(context: MessageContext, args: Visitor) -> str:
    return f"{'Hi ' * args.times}{args.name}, {context.sender.name} {args.size} {args.loud}"


@tool_function(description="Greet somebody", commands=["greet"])
def with_parameters(  # type: ignore[no-untyped-def]
    context,
    name: Annotated[str, Field(description="Who is greeted", min_length=2)],
    times: Annotated[int, Field(ge=1)] = 1,
    size: Literal["small", "large"] | None = None,
    loud: bool = False,
    *,
    call: Call,
) -> str:
    """Greet.

    Args:
        name: this description does not count
        times (int): How often,
            as a number
    """
    assert call.key
    return f"{'Hi ' * times}{name}, {context.sender.name} {size} {loud}"


@pytest.mark.parametrize(
    ("line", "reply"),
    [
        ("/greet Bob", "Hi Bob, Ann None False"),
        ("/greet Bob times=2 size=large loud=yes", "Hi Hi Bob, Ann large True"),
        ("/greet Bob times=0", None),
        ("/greet X", None),
        ("/greet", None),
    ],
)
async def test_single_parameters_work_as_a_model_does(line: str, reply: str | None) -> None:
    replies = []
    for function in (with_model, with_parameters):
        found = declaration_of(function)
        assert found is not None
        async with a_group(functions=[tool_function("greet", found.description, **found.meta)(function)]) as group:
            replies.append(await group.say("Ann", line))
            group.model.says(call("greet", name="Bob", times="2"), "Done.")
            replies[-1] += await group.say("Ann", "@Rollcall no questions, greet Bob twice")
    assert replies[0] == replies[1]
    assert reply is None or replies[0][0] == reply


def test_single_parameters_become_the_schema_of_their_model() -> None:
    model, single = as_spec(with_model, {}), as_spec(with_parameters, {})
    assert single.parameters == model.parameters
    assert single.parameters["properties"]["times"]["description"] == "How often, as a number"
    for spec in (model, single):
        for raw in ({"name": "Bob", "other": 1}, {"name": "B"}, {"name": "Bob", "times": 1.5}, {}):
            with pytest.raises(ArgumentError):
                spec.arguments.parse(raw)


async def test_a_decimal_parameter_is_described_as_a_number() -> None:
    @tool_function(commands=["split"])
    def split(context: MessageContext, amount: Decimal) -> str:
        """Split a bill."""
        return f"{amount / 2}"

    spec = as_spec(split, {})
    assert spec.parameters["properties"]["amount"] == {"type": "number"}
    async with a_group([split]) as group:
        assert await group.say("Ann", "/split 12.50") == ["6.25"]
        assert "a number" in (await group.say("Ann", "/split abc"))[0]


async def test_a_parameter_may_have_the_name_of_an_attribute_of_models() -> None:
    @tool_function()
    async def act(context: MessageContext, copy: str, json: int = 1) -> str:
        return f"{copy} {json}"

    assert (await Routing(as_spec(act, {})).invoke("act", raw={"copy": "a"})).reply == "a 1"


def test_services_are_bound_by_type_and_a_missing_one_is_an_error_of_loading() -> None:
    with pytest.raises(DefinitionError, match="there is no service of type Conversions for parameter 'conversions'"):
        as_spec(sample_functions.convert, {})
    assert as_spec(sample_functions.convert, {Conversions: Conversions([])}).name == "convert"


@pytest.mark.parametrize(
    ("written", "meant"), [("rolles", "roles"), ("efect", "effect"), ("command", "commands"), ("metadatas", "metadata")]
)
def test_an_option_that_is_nearly_a_known_one_is_an_error_and_loosens_nothing(written: str, meant: str) -> None:
    async def own(context: MessageContext) -> None: ...

    with pytest.raises(DefinitionError, match=f"there is no option '{written}'; did you mean '{meant}'"):
        as_spec(tool_function(**{written: "admin"})(own), {})
    assert as_spec(tool_function(colour="blue")(own), {}).origin.metadata == {"colour": "blue"}


@tool_function()
async def no_context(args: Booking) -> None: ...


@tool_function()
async def no_model(context: MessageContext, args: dict[str, Any]) -> None: ...


@tool_function()
async def too_many(context: MessageContext, args: Booking, other: Conversions) -> None: ...


@tool_function()
async def untyped_parameter(context: MessageContext, name) -> None: ...  # type: ignore[no-untyped-def]


@tool_function()
async def untyped_service(context: MessageContext, *, service) -> None: ...  # type: ignore[no-untyped-def]


@tool_function()
async def unknown_type(context: MessageContext, args: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821


async def unmarked(context: MessageContext) -> None: ...


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (no_context, "the first parameter must be annotated with MessageContext"),
        (no_model, "must be annotated with a pydantic model or a dataclass"),
        (too_many, "parameter 'other' has a name or type that no argument can have; put `\\*` before services"),
        (untyped_parameter, "parameter 'name' needs a type, such as `name: str`"),
        (untyped_service, "parameter 'service' needs a type"),
        (unknown_type, "a type in the signature is unknown"),
        (unmarked, "unmarked is not marked with @tool_function"),
    ],
)
@pytest.mark.requirement("D42")
def test_a_signature_of_another_kind_is_refused_with_its_place(function: Any, problem: str) -> None:
    with pytest.raises(DefinitionError, match=problem) as caught:
        as_spec(function, {})
    assert "test_definition.py:" in caught.value.where


async def test_a_marked_function_stays_a_plain_function() -> None:
    assert await sample_functions.hello(a_message()) == "Hello, Ann"


async def test_a_source_publishes_the_marked_functions_of_its_modules_in_their_order() -> None:
    source = PythonFunctions("samples", [sample_functions], {Conversions: Conversions([])})
    published = await published_by(source)
    assert [spec.name for spec in published.specs] == ["convert", "book", "travel", "hello", "keep"]


@pytest.mark.requirement("D34")
def test_a_result_shows_its_parts_together() -> None:
    result = FunctionResult.say("Hi", data=5)
    assert (result.ok, result.reply, result.data, result.at_list, result.attachments) == (True, "Hi", 5, (), ())
