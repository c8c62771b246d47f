from __future__ import annotations

import random

import pytest

from function_calls.handlers.small import dice
from services.calc.dice import Dice
from services.refs import ErrorCode
from tests.function_calls.handlers.running import Functions, text_of


@pytest.fixture
def functions() -> Functions:
    return Functions(dice, Dice(random.Random(7)))


@pytest.mark.requirement("D13", "D32", "D33", "D56")
async def test_dice_are_rolled_and_each_is_shown(functions: Functions) -> None:
    result = await functions.run("roll_dice", dice="3d1+2")
    assert text_of(result) == "🎲 3d1+2: 5 (1, 1, 1)"
    assert result.data == {"dice": "3d1+2", "faces": [1, 1, 1], "total": 5}


async def test_one_die_is_rolled_where_none_is_named_and_many_are_only_added(functions: Functions) -> None:
    one = await functions.run("roll_dice")
    assert text_of(one) == f"🎲 1d6: {one.data['total']}"
    assert text_of(await functions.run("roll_dice", dice="30d1")) == "🎲 30d1: 30"


async def test_dice_that_cannot_be_rolled_are_named_with_the_limits(functions: Functions) -> None:
    result = await functions.run("roll_dice", dice="1000d6")
    assert result.error is not None
    assert (result.error.code, result.error.fields) == (ErrorCode.BAD_ARGUMENTS, ("dice",))
    assert "1000d6" in result.error.text
    assert "100 dice" in result.error.text


async def test_a_coin_falls_on_both_sides(functions: Functions) -> None:
    said = {text_of(await functions.run("flip_coin", language="zh")) for _ in range(40)}
    assert said == {"🪙 正面。", "🪙 反面。"}


async def test_one_of_the_options_is_picked(functions: Functions) -> None:
    picked = {(await functions.run("pick_one", options=["tea, coffee or milk"])).data for _ in range(60)}
    assert picked == {"tea", "coffee", "milk"}


async def test_one_option_is_no_choice(functions: Functions) -> None:
    result = await functions.run("pick_one", options=["tea"])
    assert result.error is not None
    assert result.error.code is ErrorCode.BAD_ARGUMENTS
