"""Random choices: dice, coin flips, picks."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.spec import FunctionResult
from services.calc.dice import MOST_DICE, MOST_SIDES, BadDice, Dice, alternatives
from services.refs import ErrorCode

_FACES_SHOWN = 20
_Dice = Annotated[str, Field(description="Dice notation, e.g. '2d6+1', 'd20'", max_length=60)]
_Options = Annotated[list[str], Field(description="The options to pick from", min_length=1, max_length=50)]


@tool_function(
    description="Roll dice and add them up",
    examples=(
        "roll a dice",
        "roll the dice and tell me the result",
        "roll {dice}",
        "can you roll {dice} for me",
        "roll a {dice} die",
        "please throw some dice",
        "i'd like a {dice} dice roll",
        "掷骰子",
        "帮我掷个骰子",
        "掷一个{dice}",
    ),
    commands=("roll", "dice", "骰子", "掷骰子"),
    tags="chance",
    effect="read",
)
async def roll_dice(context: MessageContext, dice: _Dice = "1d6", *, roller: Dice, call: Call) -> FunctionResult:
    """Roll dice. Single faces are shown for up to 20 dice."""
    try:
        roll = roller.roll(dice)
    except BadDice:
        text = call.say("dice.bad_dice", dice=dice, most_dice=MOST_DICE, most_sides=MOST_SIDES)
        return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, text, ["dice"])
    plain = roll.faces == (roll.total,) or len(roll.faces) > _FACES_SHOWN
    text = call.say(
        "dice.rolled" if plain else "dice.rolled_each",
        dice=roll.notation,
        total=roll.total,
        faces=", ".join(map(str, roll.faces)),
    )
    return FunctionResult.say(text, data={"dice": roll.notation, "faces": list(roll.faces), "total": roll.total})


@tool_function(
    examples=(
        "flip a coin",
        "toss a coin for me",
        "heads or tails",
        "flip a coin and tell me if it lands on heads or tails",
        "do a coin flip",
        "抛硬币",
        "抛个硬币",
        "帮我掷一枚硬币",
    ),
    commands=("flip", "coin", "抛硬币", "硬币"),
    tags="chance",
    effect="read",
)
async def flip_coin(context: MessageContext, *, dice: Dice, call: Call) -> FunctionResult:
    """Heads or tails, by flipping a coin"""
    heads = dice.flip()
    return FunctionResult.say(call.say("dice.heads" if heads else "dice.tails"), data="heads" if heads else "tails")


@tool_function(
    examples=(
        "pick one of {options}",
        "choose between {options}",
        "help me decide between {options}",
        "pick one at random from {options}",
        "choose randomly from {options}",
        "which should i take, {options}",
        "从{options}里选一个",
        "帮我在{options}之间选一个",
        "随机选一个：{options}",
    ),
    commands=("pick", "choose", "选", "选一个"),
    tags=("chance", "decide"),
    effect="read",
    ask={"options": "@dice.ask_options"},
)
async def pick_one(context: MessageContext, options: _Options, *, dice: Dice, call: Call) -> FunctionResult:
    """Pick one of several options at random"""
    found = alternatives(options)
    if len(found) < 2:
        return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, call.say("dice.too_few_options"), ["options"])
    picked = dice.pick(found)
    return FunctionResult.say(call.say("dice.picked", option=picked), data=picked)
