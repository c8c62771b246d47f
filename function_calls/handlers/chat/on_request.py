"""Activation of functions and groups that models are offered only on request."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Annotated

from pydantic import Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.ports import ActiveFunctions
from function_calls.spec import Activatable, FunctionResult
from services.refs import ErrorCode, JsonObject

MOST_ACTIVE = 20
_BETWEEN = re.compile(r"[\s,，、;；]+")
_LISTED = 60
_DESCRIPTION_CHARS = 80

_names_command = partial(tool_function, tags="tools", effect="idempotent", offered_to=("command",), line="names")
_Names = Annotated[
    str, Field(max_length=1000, description="Names of functions or groups, with spaces between; empty: list them")
]
_Name = Annotated[
    str | None, Field(max_length=200, description="A function or group to show in detail, with its parameters")
]


@_names_command(description="Activate functions that are offered on request only", commands=("use", "使用"))
async def use_tools(
    context: MessageContext, names: _Names = "", *, active: ActiveFunctions, call: Call
) -> FunctionResult:
    """Activate functions or groups in this chat, or deactivate all of them."""
    words = _words(names)
    if not words:
        return _listed(active.of(context.chat), call)
    if len(words) == 1 and words[0].casefold() in call.profile.texts.words("tools.none_words"):
        return await _deactivate_all(context, active, call)
    found, unknown = _found(words, call)
    if unknown:
        return _no_such(unknown, call)
    before = active.of(context.chat)
    wanted = [one.name for one in found]
    count = len({*before, *wanted})
    if count > max(MOST_ACTIVE, len(before)):
        return FunctionResult.fail(
            ErrorCode.REFUSED, call.say("tools.too_many", most=MOST_ACTIVE, names=", ".join(before))
        )
    await active.activate(context.chat, wanted, context.sender.ref)
    key = "tools.taken_before" if set(wanted) <= set(before) else "tools.taken"
    return FunctionResult.say(call.say(key, names=", ".join(wanted)), data={"at_hand": list(active.of(context.chat))})


@_names_command(description="Deactivate functions that were activated", commands=("unuse", "停用"))
async def put_away_tools(
    context: MessageContext, names: _Names = "", *, active: ActiveFunctions, call: Call
) -> FunctionResult:
    """Deactivate functions and groups in this chat, by name or all of them."""
    words, before = _words(names), active.of(context.chat)
    if not words:
        return _listed(before, call)
    if len(words) == 1 and words[0].casefold() in call.profile.texts.words("tools.all_words"):
        return await _deactivate_all(context, active, call)
    by_word = {name.casefold(): name for name in before}
    # Names that no longer exist can be deactivated too.
    unknown = [word for word in words if word.casefold() not in by_word]
    if unknown:
        text = call.say("tools.not_at_hand", names=", ".join(unknown), at_hand=", ".join(before) or "–")
        return FunctionResult.fail(ErrorCode.NOT_FOUND, text, ["names"])
    unwanted = [by_word[word.casefold()] for word in words]
    await active.deactivate(context.chat, unwanted, context.sender.ref)
    return FunctionResult.say(
        call.say("tools.put_away", names=", ".join(unwanted)), data={"at_hand": list(active.of(context.chat))}
    )


@tool_function(
    examples=(
        "which tools are at hand",
        "list the tools of this chat",
        "what tools do you have here",
        "show me the tools",
        "which tools can be switched on",
        "现在有哪些工具",
        "可以使用哪些工具",
    ),
    commands=("tools", "工具"),
    tags="tools",
    offered_to=("command", "model"),
)
async def list_tools(
    context: MessageContext, name: _Name = None, *, active: ActiveFunctions, call: Call
) -> FunctionResult:
    """List the functions active in this chat and those that can be activated, or show one in detail"""
    if name:
        return _detail(name.strip(), active.of(context.chat), call)
    return _listed(active.of(context.chat), call)


def _words(names: str) -> list[str]:
    return [word for one in _BETWEEN.split(names) if (word := one.lstrip("@＠"))]


def _found(words: Iterable[str], call: Call) -> tuple[list[Activatable], list[str]]:
    """Functions and groups named by the words, without duplicates, and the unknown words."""
    known = {one.name.casefold(): one for one in call.on_request()}
    found = {word: known.get(word.casefold()) for word in words}
    named = dict.fromkeys(one.name for one in found.values() if one is not None)
    return [known[name.casefold()] for name in named], [word for word, one in found.items() if one is None]


def _no_such(unknown: Sequence[str], call: Call) -> FunctionResult:
    """Failed result for names that cannot be activated: always active, or unknown."""
    always = {spec.name.casefold() for spec in call.functions()}
    if unknown[0].casefold() in always:
        return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, call.say("tools.always", name=unknown[0]), ["names"])
    known = [one.name for one in call.on_request()]
    near = difflib.get_close_matches(unknown[0].casefold(), known, n=3)
    text = call.say("tools.unknown", names=", ".join(unknown))
    hint = call.say("tools.did_you_mean", names=", ".join(near)) if near else ""
    return FunctionResult.fail(ErrorCode.NOT_FOUND, f"{text} {hint}".strip(), ["names"])


async def _deactivate_all(context: MessageContext, active: ActiveFunctions, call: Call) -> FunctionResult:
    names = active.of(context.chat)
    await active.deactivate(context.chat, names, context.sender.ref)
    key = "tools.put_away" if names else "tools.none_at_hand"
    return FunctionResult.say(call.say(key, names=", ".join(names)), data={"at_hand": []})


def _listed(names: Sequence[str], call: Call) -> FunctionResult:
    """List of active and of available functions as text, at most _LISTED available ones; complete in the data, as
    `at_hand` and `on_request`."""
    activatable = call.on_request()
    known = {one.name: one for one in activatable}
    here = [_line(known[name], call) if name in known else call.say("tools.gone", name=name) for name in names]
    others = [one for one in activatable if one.name not in names]
    lines = [call.say("tools.at_hand") if here else call.say("tools.none_at_hand"), *here]
    if others:
        lines += [call.say("tools.could_be"), *(_line(one, call) for one in others[:_LISTED])]
        if len(others) > _LISTED:
            lines.append(call.say("tools.more", count=len(others) - _LISTED))
    elif not here:
        lines = [call.say("tools.nothing")]
    data = {
        "at_hand": [_data(known[name]) for name in names if name in known],
        "on_request": [_data(one) for one in others],
    }
    return FunctionResult.say("\n".join(lines), data=data)


def _line(one: Activatable, call: Call) -> str:
    if not one.is_group:
        return call.say("tools.line", name=one.name, description=_short(one.description))
    members = ", ".join(one.functions[:8]) + ("…" if len(one.functions) > 8 else "")
    return call.say("tools.group_line", name=one.name, description=_short(one.description) or "–", functions=members)


def _short(description: str) -> str:
    first = description.split(". ")[0].rstrip(".")
    return first if len(first) <= _DESCRIPTION_CHARS else f"{first[:_DESCRIPTION_CHARS]}…"


def _data(one: Activatable) -> JsonObject:
    data: JsonObject = {"name": one.name, "description": one.description}
    return {**data, "functions": list(one.functions)} if one.is_group else data


def _detail(name: str, names: Sequence[str], call: Call) -> FunctionResult:
    """A function with its schema, or a group with its functions and whether it is active; a failed result (NOT_FOUND)
    for an unknown name."""
    key = name.lstrip("@＠/").casefold()
    group = next((one for one in call.on_request() if one.is_group and one.name.casefold() == key), None)
    if group is not None:
        state = call.say("tools.is_at_hand" if group.name in names else "tools.is_not", name=group.name)
        return FunctionResult.say(
            f"{_line(group, call)}\n{state}", data={**_data(group), "at_hand": group.name in names}
        )
    for spec in call.functions():
        if key == spec.name.casefold() or key in spec.command.words:
            data = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
            parameters = ", ".join(spec.parameters["properties"]) or "–"
            text = call.say("tools.detail", name=spec.name, description=spec.description, parameters=parameters)
            return FunctionResult.say(text, data=data)
    return FunctionResult.fail(ErrorCode.NOT_FOUND, call.say("tools.unknown", names=name), ["name"])
