"""The one function that is not registered: a model that is offered a few of many functions finds the others by it."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, Field

from function_calls.arguments import ModelArguments
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.definition import build_spec
from function_calls.spec import FunctionResult

NAME = "find_functions"
FOUND = "found_functions"
"""The key of a turn's state under which the names of what was found stand: they are on offer in the rounds after."""
_MOST = 8
_LONGEST_LIST = 1200
"""Characters of all names together."""
_DESCRIPTION = (
    "Find functions that are not listed here; what is found can be called afterwards. "
    "Search before saying that something cannot be done."
)


class FindArguments(BaseModel, frozen=True):
    """What to find."""

    query: str = Field(max_length=300, description="What is to be done, in a few words")


async def _find(ctx: MessageContext, args: FindArguments, call: Call) -> FunctionResult:
    """Name the functions that fit `query`, of those that the sender may call here."""
    functions = call.find(args.query, _MOST)
    if not functions:
        return FunctionResult.say(call.say("find_functions.nothing"))
    names = dict.fromkeys((*call.state.get(FOUND, ()), *(function.name for function in functions)))
    told = [{"name": function.name, "description": function.description} for function in functions]
    return FunctionResult(data=told, context_updates={FOUND: list(names)})


_ARGUMENTS = ModelArguments(FindArguments)
FIND_FUNCTIONS = build_spec(
    name=NAME,
    description=_DESCRIPTION,
    handler=_find,
    arguments=_ARGUMENTS,
    parameters=_ARGUMENTS.schema,
    options={"effect": "read", "offered_to": ["model"]},
    source="function_calls/find_functions.py:1",
)


def description_naming(names: Iterable[str]) -> str:
    """What a model is told of it, with the names of all that there is where the list is short: a name is often enough
    to know what to search for."""
    listed = ", ".join(names)
    return f"{_DESCRIPTION} All there are: {listed}." if len(listed) <= _LONGEST_LIST else _DESCRIPTION
