"""CALL, USE MCP, USE TOOL and WAIT."""

from __future__ import annotations

import structlog

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.keywords import Asks, ScriptRun, Value, basic_keyword
from function_calls.basic.run.script_calls import call_function, tool_name
from function_calls.basic.run.session import translated_error
from function_calls.basic.values import kind_of, number_of, text_of
from function_calls.handlers.chat.on_request import MOST_ACTIVE
from function_calls.ports import ActiveFunctions
from services.clock import Clock

_log = structlog.get_logger("scripts")
_GIVEN = (
    '{name:tool} [( "(" [{arguments...}] ")" | WITH ( {named:assignments} | {arguments...} ) | [,] {arguments...} )]'
)


@basic_keyword(
    f"CALL {_GIVEN}",
    f"RUN TOOL {_GIVEN}",
    f"TOOL {_GIVEN}",
    "REFRESH {name:tool}",
    effect="idempotent",
)
async def call(run: ScriptRun, name: Value, arguments: Value = None, named: Value = None) -> Value | Asks:
    """Call a function by its name or by a variable that holds it, with a map of arguments or with values in the order
    of its parameters. Returns the result of the function: its data, and its message as `text`."""
    if not isinstance(name, str) or not name.strip():
        raise translated_error(run, RunCode.BAD_VALUE, "call.no_name")
    if isinstance(named, dict):
        return await call_function(run, name, {str(one): value for one, value in named.items()})
    return await call_function(run, name, arguments if isinstance(arguments, list) else [])


@basic_keyword("USE MCP {server}, {tool} [, {arguments}]", effect="idempotent")
async def use_mcp(run: ScriptRun, server: Value, tool: Value, arguments: Value = None) -> Value | Asks:
    """Call a tool of an MCP server with a map of arguments. The rights are those of the caller and those granted to the
    script by the operator."""
    names = [text_of(one).strip() for one in (server, tool)]
    if not all(names):
        raise translated_error(run, RunCode.BAD_VALUE, "mcp.names")
    if arguments is not None and not isinstance(arguments, dict):
        raise RunError(RunCode.WRONG_TYPE, f"the arguments of USE MCP must be a map, not {kind_of(arguments)}")
    wanted = f"mcp__{names[0]}__{names[1]}"
    if tool_name(wanted) != wanted:
        raise translated_error(run, RunCode.NO_SUCH_THING, "call.unknown", name=wanted[:100])
    return await call_function(run, wanted, arguments or {})


@basic_keyword("USE TOOL {tool:tool}", "ADD TOOL {tool:tool}", effect="idempotent", touches=("stays_here",))
async def use_tool(run: ScriptRun, tool: Value, *, at_hand: ActiveFunctions) -> Value:
    """Offer a function or a group of functions to models in this chat. Returns a description of the change. A start
    script continues without an unknown one, which is logged."""
    name = _name(run, tool)
    takeable = {one.name.casefold(): one.name for one in run.call.on_request()}
    found = takeable.get(name.casefold())
    if found is None:
        if any(spec.name.casefold() == name.casefold() for spec in run.call.functions()):
            return run.call.say("tools.always", name=name)
        if run.begins:
            _log.warning("start_tool_unknown", tool=run.tool, bot=run.bot, line=run.at.line, unknown=name[:100])
            return run.call.say("tools.unknown", names=name)
        raise RunError(RunCode.NO_SUCH_THING, run.call.say("tools.unknown", names=name))
    before = at_hand.of(run.context.chat)
    if found in before:
        return run.call.say("tools.taken_before", names=found)
    if len(before) >= MOST_ACTIVE:
        raise RunError(RunCode.NOT_ALLOWED, run.call.say("tools.too_many", most=MOST_ACTIVE, names=", ".join(before)))
    await at_hand.activate(run.context.chat, [found], run.context.sender.ref)
    return run.call.say("tools.taken", names=found)


@basic_keyword("REMOVE TOOL {tool:tool}", effect="idempotent", touches=("stays_here",))
async def remove_tool(run: ScriptRun, tool: Value, *, at_hand: ActiveFunctions) -> Value:
    """Stop offering a function to models in this chat. Returns a description of the change."""
    name = _name(run, tool)
    before = {one.casefold(): one for one in at_hand.of(run.context.chat)}
    found = before.get(name.casefold())
    if found is None:
        return run.call.say("tools.not_at_hand", names=name, at_hand=", ".join(before.values()) or "–")
    await at_hand.deactivate(run.context.chat, [found], run.context.sender.ref)
    return run.call.say("tools.put_away", names=found)


@basic_keyword("CLEAR TOOLS", effect="idempotent", touches=("stays_here",))
async def clear_tools(run: ScriptRun, *, at_hand: ActiveFunctions) -> Value:
    """Stop offering all functions on request to models in this chat."""
    names = at_hand.of(run.context.chat)
    await at_hand.deactivate(run.context.chat, names, run.context.sender.ref)
    return run.call.say("tools.put_away" if names else "tools.none_at_hand", names=", ".join(names))


@basic_keyword("LIST TOOLS")
async def list_tools(run: ScriptRun) -> Value:
    """The functions offered to models in this chat: a list of maps with name and description."""
    offered = [spec for spec in run.call.functions() if run.call.is_active(spec)]
    return [{"name": spec.name, "description": spec.description} for spec in offered]


def _name(run: ScriptRun, tool: Value) -> str:
    """`weather` for `"weather"`, `"weather.bas"` and `"club.gbdialog/weather.bas"`."""
    name = str(tool or "").strip().lstrip("@").replace("\\", "/").rpartition("/")[2].removesuffix(".bas")
    if not name:
        raise translated_error(run, RunCode.BAD_VALUE, "tool.no_name")
    return name


LONGEST_SECONDS = 300
_LEFT_SECONDS = 1.0
"""Time of the run reserved for the statements after the pause."""


@basic_keyword("WAIT {seconds}", "SLEEP {seconds}")
async def wait(run: ScriptRun, seconds: Value, *, clock: Clock) -> None:
    """Pause the script for a number of seconds, at most 300. Other messages of the chat wait as well."""
    pause = number_of(seconds)
    if not 0 <= pause <= LONGEST_SECONDS:
        raise translated_error(run, RunCode.BAD_VALUE, "wait.range", most=LONGEST_SECONDS)
    left = run.call.deadline - clock.monotonic() - _LEFT_SECONDS
    if pause > left:
        raise translated_error(run, RunCode.BAD_VALUE, "wait.left", seconds=text_of(pause), left=max(0, int(left)))
    await clock.sleep(pause)
