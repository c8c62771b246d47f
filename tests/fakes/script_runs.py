"""A run of a script, as keywords have it."""

from __future__ import annotations

from typing import Any

from function_calls.basic.keywords import Grants, ScriptRun
from function_calls.basic.nodes import At
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.spec import Message
from services.json_values import JsonObject
from tests.fakes.builders import a_call, a_message


def a_script_run(
    *,
    context: MessageContext | None = None,
    call: Call | None = None,
    said: list[Message] | None = None,
    kept: JsonObject | None = None,
    grants: Grants | None = None,
    **changes: Any,
) -> ScriptRun:
    """A run that Ann has called in the family group. What it says is put into `said`; `changes` are fields of
    ScriptRun."""
    given: dict[str, Any] = {"bot": "default", "tool": "a_tool", "folder": "", "at": At(1, 1), **changes}
    return ScriptRun(
        context=context or a_message(),
        call=call or a_call(),
        grants=grants or Grants(),
        say=(said if said is not None else []).append,
        kept=kept if kept is not None else {},
        **given,
    )
