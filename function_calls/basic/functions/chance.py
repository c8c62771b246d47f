"""Functions of chance, and ids. Chance is the world's, so that a test can know it."""

from __future__ import annotations

from typing import Any

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.conversions import as_number, kind_of, settled
from function_calls.basic.functions.declaring import ANY, LIST, NUMBER, WHOLE, also, function
from function_calls.basic.world import World
from services.json_values import JsonValue


def _random(world: World, low: JsonValue = None, high: JsonValue = None) -> JsonValue:
    if low is None and high is None:
        return world.random.random()
    if type(low) is list and high is None:
        return _pick(world, low)
    first, last = (1, low) if high is None else (low, high)
    ends = as_number(first), as_number(last)
    if ends[0] is None or ends[1] is None:
        wrong = first if ends[0] is None else last
        raise RunFault(RunCode.WRONG_TYPE, f"RANDOM needs two numbers, not {kind_of(wrong)}")
    least, most = sorted((int(ends[0]), int(ends[1])))
    return settled(world.random.randint(least, most))


def _rnd(world: World, number: int | float = 1) -> JsonValue:
    """The argument of old programs says how to seed, and is no bound."""
    return world.random.random()


def _randomize(world: World, seed: int | float | None = None) -> JsonValue:
    world.random.seed(world.unique() if seed is None else seed)
    return None


def _pick(world: World, items: list[Any]) -> JsonValue:
    return items[world.random.randrange(len(items))] if items else None


def _shuffle(world: World, items: list[Any]) -> JsonValue:
    mixed = items.copy()
    world.random.shuffle(mixed)
    return mixed


def _sample(world: World, items: list[Any], count: int) -> JsonValue:
    return world.random.sample(items, max(0, min(count, len(items))))


CHANCE = (
    function(
        "RANDOM([low], [high])",
        (ANY, ANY),
        _random,
        "A whole number from low to high, both included; from 1 to the only one; without any, a fraction below 1. Of a "
        "list, one of its items.",
        "RANDOM(6, 6)",
        6,
        fewest=0,
        world=True,
    ),
    function("RND([any])", (NUMBER,), _rnd, "A fraction from 0 to below 1.", "INT(RND())", 0, fewest=0, world=True),
    function(
        "RANDOMIZE([seed])",
        (NUMBER,),
        _randomize,
        "Lets chance begin anew; with a number, always in the same way.",
        "RANDOMIZE(1)",
        None,
        fewest=0,
        world=True,
    ),
    *also(function("PICK(list)", (LIST,), _pick, "One item by chance.", 'PICK(["a"])', "a", world=True), "choice"),
    function("SHUFFLE(list)", (LIST,), _shuffle, "The items in an order by chance.", "SHUFFLE([1])", [1], world=True),
    function(
        "SAMPLE(list, count)",
        (LIST, WHOLE),
        _sample,
        "So many different items by chance.",
        "COUNT(SAMPLE([1, 2, 3], 2))",
        2,
        world=True,
    ),
    *also(
        function(
            "GUID()", (), lambda world: world.unique(), "A new id that nothing else has.", "LEN(GUID())", 36, world=True
        ),
        "uuid",
        "newid",
    ),
)
