"""For every form of definition and every location a function has the same spec and one `invoke`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from bot.testing import Group, a_group, call
from services.refs import Role

MARKED = """
from typing import Literal
from pydantic import BaseModel, Field
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.spec import FunctionResult, ToolError

class Order(BaseModel):
    drink: str = Field(description="What")
    cups: int = Field(default=1, ge=1, le=4, description="How many")

@tool_function(
    "order", "Order a drink", ["bring {cups} cups of {drink}"], commands=["order"], tags=["bar"], roles="moderator",
    ask={"drink": "Which drink?"}, filters=["polite"], timeout=2000, effect="idempotent", metadata={"team": "blue"},
)
async def order(context: MessageContext, args: Order) -> FunctionResult:
    if args.drink == "none":
        raise ToolError("There is none.")
    if args.drink == "broken":
        raise KeyError("secret")
    return FunctionResult.say(f"{args.cups} x {args.drink}", data={"cups": args.cups})
"""
MAPPED = """
from function_calls.spec import FunctionResult

def order(args):
    if args["drink"] == "none":
        return ("error", "There is none.")
    if args["drink"] == "broken":
        raise KeyError("secret")
    return FunctionResult.say(f"{args['cups']} x {args['drink']}", data={"cups": args["cups"]})

async def order_later(args, context, *extra):
    return order(args)

DEFINITION = {
    "name": "order",
    "description": "Order a drink",
    "handler": HANDLER,
    "parameters": {
        "drink": {"type": "string", "description": "What", "required": True},
        "cups": {"type": "integer", "description": "How many", "default": 1, "minimum": 1, "maximum": 4},
    },
    "examples": ["bring {cups} cups of {drink}"],
    "commands": ["order"],
    "tag": "bar",
    "auth": "moderator",
    "ask": {"drink": "Which drink?"},
    "filters": ["polite"],
    "timeout": 2000,
    "effect": "idempotent",
    "metadata": {"team": "blue"},
}

def tools():
    return [GIVEN]
"""
FILTER = """
def polite(facts):
    return ("skip", "Say please.") if facts["args"]["drink"] == "now" else None

def filters():
    return [{"name": "polite", "type": "pre_invocation", "handler": polite}]
"""


def mapped(handler: str, given: str = "DEFINITION") -> str:
    text = MAPPED.replace("HANDLER", handler).replace("GIVEN", given)
    if "spec_from_mapping" in given:
        text = "from function_calls.schema.mappings import spec_from_mapping\n" + text
    return text


WRITTEN = {
    "marked": MARKED,
    "a mapping": mapped("order"),
    "a mapping with a coroutine": mapped("order_later"),
    "a path": mapped('"own_tools:order"'),
    "a path with more arguments": mapped('("own_tools:order_later", ["extra"])'),
    "a spec": mapped("order", "spec_from_mapping(DEFINITION)"),
}
FOUND = ["file", "package", "module", "plugin", "plugin of the bot", "entry point"]


@pytest.fixture(params=[(way, "file") for way in WRITTEN] + [("a mapping", place) for place in FOUND[1:]])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Settings with the function, in each form and location."""
    way, place = request.param
    text = dedent(WRITTEN[way]) + FILTER
    if place in ("file", "package"):
        file = tmp_path / ("own_tools.py" if place == "file" else "own_tools/__init__.py")
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        yield {"sources": {"python": [str(file.parent)]}}
        return
    (tmp_path / "own_tools").mkdir()
    (tmp_path / "own_tools" / "__init__.py").write_text("")
    (tmp_path / "own_tools" / "bar.py").write_text(text)
    folder = tmp_path / "own-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1\n")
    (folder / "entry_points.txt").write_text("[rollcall.functions]\nbar = own_tools.bar\n")
    sys.path.insert(0, str(tmp_path))
    yield {
        "module": {"sources": {"modules": ["own_tools"]}},
        "plugin": {"plugins": ["own_tools.bar"]},
        "plugin of the bot": {"bots": {"default": {"plugins": ["own_tools.bar"]}}},
        "entry point": {"sources": {"entry_points": True}},
    }[place]
    sys.path.remove(str(tmp_path))
    for name in ("own_tools", "own_tools.bar"):
        sys.modules.pop(name, None)


async def said(group: Group, text: str, role: Role = Role.MODERATOR) -> list[str]:
    return await group.say("Ann" if role is Role.MODERATOR else "Bob", text, role=role)


@pytest.mark.requirement("E10", "E11", "E12", "E13", "E25", "E28", "E46", "D2")
async def test_a_function_behaves_the_same_whichever_way_it_is_written_and_found(settings: dict[str, Any]) -> None:
    async with a_group(settings=settings) as group:
        assert group.daemon.functions.faults == ()
        spec = group.daemon.registry.of("default").find("order")
        assert spec is not None
        assert (spec.origin.tags, dict(spec.origin.metadata), spec.execution.timeout_seconds) == (
            {"bar"},
            {"team": "blue"},
            2.0,
        )
        assert spec.origin.source.rpartition(":")[2].isdecimal()
        assert await said(group, "/order tea 2") == ["2 x tea"]
        assert await said(group, "/order tea") == ["1 x tea"]
        assert await said(group, "/order now") == ["Say please."]
        assert await said(group, "/order none") == ["There is none."]
        [wrong] = await said(group, "/order tea 9")
        assert wrong == "“cups” must be: a whole number from 1 to 4.\nUsage: /order <drink> [cups]"
        [refused] = await said(group, "/order tea", Role.MEMBER)
        assert "x tea" not in refused
        [broken] = await said(group, "/order broken")
        assert "secret" not in broken
        assert await said(group, "/order") == ["Which drink?"]
        assert await said(group, "milk") == ["1 x milk"]
        group.model.says(call("order", drink="tea", cups="3"), "Done.")
        assert await said(group, "@Rollcall three cups of tea") == ["3 x tea", "Done."]
