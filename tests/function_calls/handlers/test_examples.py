from __future__ import annotations

import random
from pathlib import Path

from config.sections.media import MediaSettings
from config.sections.models import MemorySettings
from config.sections.timers import RemindersSettings
from function_calls.handlers.chat import memory, usage
from function_calls.handlers.group import poll, todo
from function_calls.handlers.lookup import weather
from function_calls.handlers.reminders import reminder_changes, reminders
from function_calls.handlers.small import calculate, dice, draw, time, timezone
from function_calls.spec import OfferedTo
from services.calc.dice import Dice
from services.calc.units import Units
from services.chats.member_links import MemberLinks
from services.chats.members import KnownMembers, MemberZones
from services.chats.memory import Memory
from services.chats.polls import Polls
from services.chats.todo import TodoLists
from services.chats.usage import UsageCounts
from services.clock import VirtualClock
from services.media.models import MediaModels
from services.store.ids import Ids
from services.timers.reminders import Reminders
from services.timers.timetable import Timetable
from services.times import Times
from services.times.places import Places
from services.web.http import WebClient
from services.web.weather import OpenMeteo
from tests.fakes.sqlite_store import a_store
from tests.function_calls.handlers.running import Functions


async def test_every_slot_of_an_example_is_a_parameter_and_both_languages_have_examples(tmp_path: Path) -> None:
    clock = VirtualClock()
    async with a_store(tmp_path, clock) as store:
        zones = MemberZones(store, clock)
        timetable = Timetable(store, clock, Ids(clock))
        services = (
            zones,
            KnownMembers(store),
            MemberLinks(store, clock),
            Reminders(timetable, zones, Times(), RemindersSettings(), clock),
            OpenMeteo(WebClient(), clock),
            MediaModels(MediaSettings(), WebClient()),
            Places(clock),
            TodoLists(store, clock),
            Memory(store, clock, MemorySettings()),
            Polls(store, clock),
            Dice(random.Random(1)),
            Units(),
            UsageCounts(store),
        )
        about_time = (reminder_changes, reminder_changes, reminders, reminders, time, timezone)
        modules = (calculate, dice, draw, memory, poll, todo, usage, weather, *about_time)
        loaded = [Functions(module, *services) for module in modules]
    assert [slot for functions in loaded for slot in functions.unknown_slots()] == []
    for functions in loaded:
        for spec in functions.specs.values():
            if OfferedTo.MODEL not in spec.access.offered_to:
                continue
            chinese = [
                example for example in spec.prompt.examples if any("\u4e00" <= sign <= "\u9fff" for sign in example)
            ]
            assert len(spec.prompt.examples) - len(chinese) >= 5, spec.name
            assert len(chinese) >= 2, spec.name
            assert any(word.isascii() for word in spec.command.words), spec.name
            assert any(not word.isascii() for word in spec.command.words), spec.name
