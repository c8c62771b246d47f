"""USE TOOL and its kin: what models are offered in this chat on request."""

from __future__ import annotations

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.keywords import ScriptRun, Value, basic_keyword
from function_calls.handlers.on_request import MOST_AT_HAND
from function_calls.ports import AtHand
from function_calls.scripts.faults import worded


@basic_keyword("USE TOOL {tool:word}", "ADD TOOL {tool:word}", effect="idempotent", touches=("stays_here",))
async def use_tool(run: ScriptRun, tool: Value, *, at_hand: AtHand) -> Value:
    """Offer a function or a group of functions to models in this chat. Its value says what it did."""
    name = _name(run, tool)
    takeable = {one.name.casefold(): one.name for one in run.call.on_request()}
    found = takeable.get(name.casefold())
    if found is None:
        if any(spec.name.casefold() == name.casefold() for spec in run.call.functions()):
            return run.call.say("tools.always", name=name)
        raise RunFault(RunCode.NO_SUCH_THING, run.call.say("tools.unknown", names=name))
    before = at_hand.of(run.context.chat)
    if found in before:
        return run.call.say("tools.taken_before", names=found)
    if len(before) >= MOST_AT_HAND:
        raise RunFault(RunCode.NOT_ALLOWED, run.call.say("tools.too_many", most=MOST_AT_HAND, names=", ".join(before)))
    await at_hand.take(run.context.chat, [found], run.context.sender.ref)
    return run.call.say("tools.taken", names=found)


@basic_keyword("REMOVE TOOL {tool:word}", effect="idempotent", touches=("stays_here",))
async def remove_tool(run: ScriptRun, tool: Value, *, at_hand: AtHand) -> Value:
    """Offer a function to models in this chat no more. Its value says what it did."""
    name = _name(run, tool)
    before = {one.casefold(): one for one in at_hand.of(run.context.chat)}
    found = before.get(name.casefold())
    if found is None:
        return run.call.say("tools.not_at_hand", names=name, at_hand=", ".join(before.values()) or "–")
    await at_hand.put_away(run.context.chat, [found], run.context.sender.ref)
    return run.call.say("tools.put_away", names=found)


@basic_keyword("CLEAR TOOLS", effect="idempotent", touches=("stays_here",))
async def clear_tools(run: ScriptRun, *, at_hand: AtHand) -> Value:
    """Offer models in this chat nothing that is on request. Its value says what it did."""
    names = at_hand.of(run.context.chat)
    await at_hand.put_away(run.context.chat, names, run.context.sender.ref)
    return run.call.say("tools.put_away" if names else "tools.none_at_hand", names=", ".join(names))


@basic_keyword("LIST TOOLS")
async def list_tools(run: ScriptRun) -> Value:
    """What models are offered in this chat: a list of maps with name and description."""
    offered = [spec for spec in run.call.functions() if run.call.is_at_hand(spec)]
    return [{"name": spec.name, "description": spec.description} for spec in offered]


def _name(run: ScriptRun, tool: Value) -> str:
    """`weather` for `"weather"`, `"weather.bas"` and `"club.gbdialog/weather.bas"`."""
    name = str(tool or "").strip().lstrip("@").replace("\\", "/").rpartition("/")[2].removesuffix(".bas")
    if not name:
        raise worded(run, RunCode.BAD_VALUE, "tool.no_name")
    return name
