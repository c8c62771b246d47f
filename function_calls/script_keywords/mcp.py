"""USE MCP: scripts run tools of MCP servers, as they CALL any other function."""

from __future__ import annotations

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.keywords import Asks, ScriptRun, Value, basic_keyword
from function_calls.basic.values import kind_of, text_of
from function_calls.scripts.calling import call_function
from function_calls.scripts.faults import worded
from function_calls.scripts.rights import tool_name


@basic_keyword("USE MCP {server}, {tool} [, {arguments}]", effect="idempotent")
async def use_mcp(run: ScriptRun, server: Value, tool: Value, arguments: Value = None) -> Value | Asks:
    """Run a tool of an MCP server with a map of arguments, with the rights of whoever called the script and those that
    the operator has given to the script."""
    names = [text_of(one).strip() for one in (server, tool)]
    if not all(names):
        raise worded(run, RunCode.BAD_VALUE, "mcp.names")
    if arguments is not None and not isinstance(arguments, dict):
        raise RunFault(RunCode.WRONG_TYPE, f"the arguments of USE MCP are a map, not {kind_of(arguments)}")
    wanted = f"mcp__{names[0]}__{names[1]}"
    if tool_name(wanted) != wanted:
        raise RunFault(RunCode.NO_SUCH_THING, run.call.say("basic.call.unknown", name=wanted[:100]))
    return await call_function(run, wanted, arguments or {})
