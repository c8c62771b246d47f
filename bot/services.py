"""The services that functions may name by type, and that nothing else in the daemon holds."""

from __future__ import annotations

from pathlib import Path
from random import Random

from bot.web_services import news_of, search_of
from config.settings import Settings
from config.summary import SummarySettings
from services.chat_past import ChatPast
from services.clock import Clock
from services.dice import Dice
from services.http import WebClient
from services.known_members import KnownMembers
from services.member_zones import MemberZones
from services.news import News
from services.places import Places
from services.polls import Polls
from services.reminders import Reminders
from services.sandbox import Sandbox
from services.search import WebSearch
from services.shell import Shell
from services.store.ids import Ids
from services.store.port import Store
from services.times import Times
from services.timetable import Timetable
from services.todo import TodoLists
from services.units import Units
from services.weather import OpenMeteo
from services.workspace import Workspaces

WORKSPACES = Path("work", "chats")
"""Below `home`: the folders of the chats."""


def services_of(
    settings: Settings, store: Store, clock: Clock, ids: Ids, rng: Random, web: WebClient | None, timetable: Timetable
) -> dict[type, object]:
    """Each under its type. Where `web` is given it is the only way out; else each has what the settings say."""
    client, zones, times = web or WebClient(), MemberZones(store, clock), Times()
    sandbox = Sandbox(clock, settings.sandbox)
    workspaces = Workspaces(Path(settings.home) / WORKSPACES, settings.files)
    return {
        Clock: clock,
        WebClient: client,
        OpenMeteo: OpenMeteo(client, clock),
        TodoLists: TodoLists(store, clock),
        Polls: Polls(store, clock),
        Places: Places(clock),
        Dice: Dice(rng),
        Units: Units(),
        News: news_of(settings.news, clock, web),
        WebSearch: search_of(settings.search, clock, web),
        Sandbox: sandbox,
        Workspaces: workspaces,
        Shell: Shell(sandbox, workspaces, settings.shell),
        ChatPast: ChatPast(store, clock, ids, most_lines=settings.summary.lines),
        SummarySettings: settings.summary,
        Timetable: timetable,
        MemberZones: zones,
        KnownMembers: KnownMembers(store),
        Times: times,
        Reminders: Reminders(timetable, zones, times, settings.reminders, clock),
    }
