"""What is planned to run by the clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import time

from bot.parts.ground import Ground
from function_calls.rehearsal import Rehearsal
from services.schedule_times import WhenReader
from services.schedules import Schedules
from services.times import Times
from services.timetable import Timetable


@dataclass(frozen=True, slots=True)
class Planning:
    """The moments that are kept, how they are read from words, and whether a run may be kept for one."""

    timetable: Timetable
    reader: WhenReader
    schedules: Schedules
    rehearsal: Rehearsal
    """Bound once there is who checks runs."""


def planning_of(ground: Ground) -> Planning:
    """On the timetable of the store."""
    settings, store, clock, ids = ground.settings, ground.store, ground.clock, ground.ids
    timetable = Timetable(store, clock, ids)
    reader = WhenReader(Times(), time.fromisoformat(settings.reminders.default_time))
    most_here, most_in_all = settings.limits.schedules_per_chat, settings.timers.per_member
    return Planning(
        timetable=timetable,
        reader=reader,
        schedules=Schedules(timetable, reader, store, clock, ids, most_here, most_in_all),
        rehearsal=Rehearsal(),
    )
