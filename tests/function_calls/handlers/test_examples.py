from __future__ import annotations

import random
from pathlib import Path

from function_calls.handlers import calculate, dice, poll, time, todo, weather
from services.clock import VirtualClock
from services.dice import Dice
from services.http import WebClient
from services.places import Places
from services.polls import Polls
from services.todo import TodoLists
from services.units import Units
from services.weather import OpenMeteo
from tests.fakes.sqlite_store import a_store
from tests.function_calls.handlers.running import Functions


async def test_every_slot_of_an_example_is_a_parameter_and_both_languages_have_examples(tmp_path: Path) -> None:
    clock = VirtualClock()
    async with a_store(tmp_path, clock) as store:
        services = (
            OpenMeteo(WebClient(), clock),
            Places(clock),
            TodoLists(store, clock),
            Polls(store, clock),
            Dice(random.Random(1)),
            Units(),
        )
        loaded = [Functions(module, *services) for module in (calculate, dice, poll, time, todo, weather)]
    assert [slot for functions in loaded for slot in functions.unknown_slots()] == []
    for functions in loaded:
        for spec in functions.specs.values():
            chinese = [example for example in spec.examples if any("\u4e00" <= sign <= "\u9fff" for sign in example)]
            assert len(spec.examples) - len(chinese) >= 5, spec.name
            assert len(chinese) >= 2, spec.name
            assert any(word.isascii() for word in spec.commands), spec.name
            assert any(not word.isascii() for word in spec.commands), spec.name
