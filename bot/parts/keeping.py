"""What is kept in step with settings and scripts, and what is looked after now and then."""

from __future__ import annotations

from dataclasses import dataclass

from bot.chat_notes import ScriptNotes
from bot.database import database_of
from bot.dead_letters import DeadLetters
from bot.expiry import Expiry
from bot.housekeeping import Housekeeping
from bot.parts.consent import Consent
from bot.parts.ground import Ground
from bot.parts.leaning import Leaning
from bot.parts.minding import Minding
from bot.parts.offering import Offering
from bot.parts.planning import Planning
from bot.parts.receiving import Receiving
from bot.parts.sending import Sending
from bot.schedule_plans import SchedulePlans
from bot.script_schedules import ScriptSchedules
from bot.settings_schedules import SettingsSchedules
from services.basic_tools import COUNTER as SCRIPTS
from services.mcp.pins import COUNTER as PINS
from services.store.dead_letters import COUNTER as DEAD


@dataclass(frozen=True, slots=True)
class Keeping:
    """What the daemon's ticker calls, but for the timers."""

    schedules: SettingsSchedules
    script_schedules: ScriptSchedules
    script_notes: ScriptNotes
    housekeeping: Housekeeping
    dead_letters: DeadLetters


def keeping_of(
    ground: Ground,
    consent: Consent,
    planning: Planning,
    leaning: Leaning,
    offering: Offering,
    sending: Sending,
    receiving: Receiving,
    minding: Minding,
) -> Keeping:
    """By the settings at the start."""
    chats, clock, functions, scripts = ground.chats, ground.clock, ground.registry.of, leaning.scripts
    plans = SchedulePlans(chats, planning.rehearsal, planning.reader, clock, ground.texts.of("en"))
    delivery, intake = sending.delivery, receiving.intake
    dead = DeadLetters(ground.store, intake, delivery, planning.timetable, minding.news, clock)
    return Keeping(
        schedules=SettingsSchedules(chats, plans, planning.schedules),
        script_schedules=ScriptSchedules(planning.schedules, functions, scripts, clock),
        script_notes=ScriptNotes(leaning.notes, chats, functions, scripts),
        housekeeping=Housekeeping(
            ground.store,
            chats,
            consent.questions,
            sending.notices,
            Expiry(intake, consent.questions, clock),
            ground.settings.store,
            clock,
            {PINS: offering.pins.load, SCRIPTS: scripts.look, DEAD: dead.look},
            None if ground.settings.store.is_on_a_server else database_of(ground.settings),
        ),
        dead_letters=dead,
    )
