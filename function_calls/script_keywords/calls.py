"""CALL: scripts run other functions, with the rights of whoever called the script and of the script itself."""

from __future__ import annotations

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.keywords import Asks, ScriptRun, Value, basic_keyword
from function_calls.scripts.calling import call_function

_GIVEN = (
    '{name:word} [( "(" [{arguments...}] ")" | WITH ( {named:assignments} | {arguments...} ) | [,] {arguments...} )]'
)


@basic_keyword(
    f"CALL {_GIVEN}",
    f"RUN TOOL {_GIVEN}",
    f"TOOL {_GIVEN}",
    effect="idempotent",
)
async def call(run: ScriptRun, name: Value, arguments: Value = None, named: Value = None) -> Value | Asks:
    """Run a function by its name, with a map of arguments or with values in the order of its parameters. Gives what the
    function gives: facts, and its words as `text`."""
    if not isinstance(name, str) or not name.strip():
        raise RunFault(RunCode.BAD_VALUE, run.call.say("basic.call.no_name"))
    if isinstance(named, dict):
        return await call_function(run, name, {str(one): value for one, value in named.items()})
    return await call_function(run, name, arguments if isinstance(arguments, list) else [])
