"""`rollcall.Router`: a router in another program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, Field

from rollcall import (
    Clock,
    ErrorCode,
    FunctionResult,
    Invocation,
    MessageContext,
    Proceed,
    Router,
    a_message,
    tool_function,
)


class Order(BaseModel):
    drink: str = Field(description="What to drink")


@tool_function(
    commands=["order"],
    examples=["order some {drink}"],
    ask={"drink": "What would you like?"},
    confirm="Order {drink}?",
    effect="once",
)
async def order(context: MessageContext, args: Order) -> str:
    """Order something to drink."""
    return f"{args.drink} for {context.sender.name}"


class Year:
    def __init__(self, year: int) -> None:
        self.year = year


@tool_function(commands=["year"])
async def year(context: MessageContext, *, clock: Clock, wanted: Year) -> int:
    """Tell the year."""
    return wanted.year if clock.now().year >= wanted.year else 0


async def test_a_question_is_answered_by_the_member_who_was_asked() -> None:
    async with Router([order]) as router:
        ann = [a_message(text, "Ann") for text in ("/order", "tea", "yes", "yes")]
        assert await router.answer(ann[0]) == "What would you like?"
        assert "tea" not in await router.answer(a_message("milk", "Bob"))
        assert await router.answer(ann[1]) == "Order tea?"
        assert await router.answer(ann[2]) == "tea for Ann"
        assert "tea" not in await router.answer(ann[3])


async def test_without_a_model_examples_are_matched() -> None:
    async with Router([order]) as router:
        assert await router.answer("order some juice") == "Order juice?"


async def test_an_own_function_is_a_model() -> None:
    async def model(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> str:
        return f"{len(tools)} tools"

    async with Router([order, year], model, services={Year: Year(2020)}) as router:
        assert await router.answer("hello") == "2 tools"
        assert (await router.invoke("year")).data == 2020


@pytest.mark.requirement("E36")
@pytest.mark.parametrize("message", [None, a_message(sender="Ann")], ids=["without a message", "with a message"])
async def test_a_direct_run_passes_no_filter(message: MessageContext | None) -> None:
    passed: list[str] = []

    async def count(invocation: Invocation, proceed: Proceed) -> FunctionResult:
        passed.append(invocation.spec.name)
        return await proceed(invocation)

    async with Router([order], filters=[count]) as router:
        result = await router.invoke("order", Order(drink="tea"), message, confirmed=True)
        assert (result.reply, passed) == (f"tea for {message.sender.name if message else 'you'}", [])
        await router.answer("/order tea")
        assert await router.answer("yes") == "tea for you"
        assert passed == ["order"]


@dataclass
class Drink:
    drink: str


@pytest.mark.requirement("E36")
@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("order", {"drink": "tea"}, None),
        ("order", Drink("tea"), None),
        ("order", {"drink": 5}, ErrorCode.BAD_ARGUMENTS),
        ("nothing", {}, ErrorCode.NOT_FOUND),
    ],
)
async def test_a_direct_run_is_checked(name: str, arguments: object, code: ErrorCode | None) -> None:
    async with Router([order]) as router:
        result = await router.invoke(name, arguments, confirmed=True)
        assert (result.error.code if result.error else None) == code
        with pytest.raises(TypeError, match="not list"):
            await router.invoke("order", ["tea"])
