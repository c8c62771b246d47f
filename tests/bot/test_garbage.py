"""A message creates no reference cycles: with many chats their collection would cost more than the store."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest
from pydantic import BaseModel, Field

from bot.testing import Group, a_group, call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function

_MESSAGES = 20


class Town(BaseModel, frozen=True):
    """Where."""

    city: str = Field(description="The town")


@tool_function(commands=["temperature"])
async def temperature(context: MessageContext, args: Town) -> str:
    """Say how warm it is in a town."""
    return f"{args.city}: 3 degrees"


@tool_function(commands=["ring"], effect="once")
async def ring(context: MessageContext, args: Town) -> str:
    """Ring the bell of a town."""
    return f"{args.city}: ding"


def _by_command(group: Group, number: int) -> str:
    return f"/temperature Oslo{number}"


def _by_an_effect(group: Group, number: int) -> str:
    return f"/ring Oslo{number}"


def _by_the_model(group: Group, number: int) -> str:
    group.model.says(call("temperature", city=f"Oslo{number}"), f"Cold {number}.")
    return f"@Rollcall how is Oslo{number}?"


def _as_chat(group: Group, number: int) -> str:
    group.model.says(f"Hello {number}.")
    return "@Rollcall hi"


@pytest.fixture
def no_search() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_search")
@pytest.mark.parametrize("text", [_by_command, _by_an_effect, _by_the_model, _as_chat])
async def test_a_turn_leaves_no_cycles_behind(text: Callable[[Group, int], str]) -> None:
    async with a_group([temperature, ring]) as group:
        for number in range(3):
            assert await group.say("Ann", text(group, number))
        gc.collect()
        for number in range(_MESSAGES):
            assert await group.say("Ann", text(group, number))
        assert gc.collect() < _MESSAGES
