"""USE MCP runs a tool by its function, with the rights of the caller and of the script."""

from __future__ import annotations

from typing import Any

from bot.testing import a_group
from function_calls.basic.codes import RunError
from function_calls.basic.keyword_modules.calls import use_mcp
from function_calls.basic.keywords import Asks, Grants, Value
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.spec import FunctionResult
from services.refs import ErrorCode, Role
from tests.fakes.functions import CITY, Recorder
from tests.fakes.script_runs import a_run

GRANTED = Grants(("mcp__time__*",))


def a_script(arguments: Value, *, server: Value = "time", tool: Value = "now", grants: Grants = GRANTED) -> Recorder:
    """A function that runs one USE MCP, as a script does, and returns its result."""

    async def does(context: MessageContext, given: dict[str, Any], call: Call) -> FunctionResult:
        run = a_run(context, call=call, grants=grants)
        try:
            value = await use_mcp(run, server, tool, arguments)
        except RunError as fault:
            return FunctionResult.fail(ErrorCode.FAILED, f"{fault.code}: {fault.detail}")
        assert not isinstance(value, Asks)
        return FunctionResult.say(f"{value} outside={run.has_outside_text}")

    return Recorder("script", does=does, commands=["script"], effect="once")


def a_tool(name: str = "mcp__time__now", **options: Any) -> Recorder:
    given: dict[str, Any] = {"gives": FunctionResult.say("noon", data={"at": "12:00"}), "effect": "once", "touches": ()}
    return Recorder(name, CITY, **{**given, **options})


async def said(script: Recorder, *tools: Recorder, role: Role = Role.MEMBER) -> str:
    async with a_group([script.spec, *(tool.spec for tool in tools)]) as group:
        [text] = await group.say("Ann", "/script", role=role)
        return text


async def test_the_tool_runs_and_gives_its_facts_and_its_words() -> None:
    tool = a_tool(touches="reads_outside")
    text = await said(a_script({"city": "Oslo", "zone": None}), tool)
    assert text == "{'at': '12:00', 'text': 'noon'} outside=True"
    assert tool.runs == [{"city": "Oslo"}]


async def test_without_the_operators_leave_a_script_runs_none() -> None:
    tool = a_tool()
    text = await said(a_script({"city": "Oslo"}, grants=Grants(("mcp__other__*",))), tool)
    assert text.startswith("not_allowed")
    assert tool.runs == []


async def test_a_script_may_no_more_than_who_calls_it() -> None:
    tool = a_tool(roles="admin")
    assert (await said(a_script({"city": "Oslo"}), tool)).startswith("no_such_thing")
    assert tool.runs == []
    await said(a_script({"city": "Oslo"}), tool, role=Role.ADMIN)
    assert tool.runs == [{"city": "Oslo"}]


async def test_arguments_are_checked_as_ever() -> None:
    tool = a_tool()
    assert (await said(a_script({"city": 5}), tool)).startswith("bad_value")
    assert (await said(a_script("Oslo"), tool)).startswith("wrong_type")
    assert (await said(a_script({"city": "Oslo"}, server=""), tool)).startswith("bad_value")
    assert tool.runs == []


async def test_it_runs_tools_of_mcp_servers_alone() -> None:
    other = a_tool("echo", effect="read")
    for server, tool in (("nowhere", "now"), ("x__/", "echo"), ("x/", "echo.bas")):
        text = await said(a_script({"city": "Oslo"}, server=server, tool=tool, grants=Grants(("*",))), other)
        assert text.startswith("no_such_thing")
    assert other.runs == []


async def test_the_failure_of_a_tool_is_the_scripts() -> None:
    failing = a_tool(gives=FunctionResult.fail(ErrorCode.TRANSIENT, "The clock is down."))
    assert await said(a_script({"city": "Oslo"}), failing) == "unavailable: The clock is down."
