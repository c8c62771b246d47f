"""Schedules in the settings: after each start and reload the stored schedules match the file."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from pydantic import BaseModel

from bot.checks.functions_check import Code, check_functions
from bot.live.settings import Reload
from bot.testing import Group, a_group
from config.loader import check_settings
from config.settings import Settings
from config.yaml_document import read_yaml_file
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from services.clock import VirtualClock
from services.refs import Role
from services.timers.timer import Timer
from tests.fakes.timers import pass_time, tick

CHAT = "test:bot:family"
Entries = Mapping[str, Mapping[str, Any]]


class Note(BaseModel, frozen=True):
    """What to note."""

    text: str


def entry(**changes: Any) -> dict[str, Any]:
    """A valid entry with the test's changes."""
    return {"chat": CHAT, "when": "0 7 * * *", "run": "calc 6*7", **changes}


async def listed(group: Group) -> list[str]:
    """Lines of the list without its title."""
    [said] = await group.say("Bo", "/schedule list")
    return said.splitlines()[1:]


async def reload(group: Group, before: Settings, schedules: Entries) -> Settings:
    """Reload the settings of a running daemon with other schedules."""
    after = Settings.model_validate({**before.model_dump(), "schedules": schedules})
    assert await Reload(group.daemon.live, lambda: after).now()
    await group.daemon.settings_schedules.sync()
    return after


@pytest.mark.requirement("D45")
async def test_an_entry_is_kept_from_the_start_on() -> None:
    async with a_group(settings={"schedules": {"answer": entry()}}) as group:
        assert await listed(group) == [
            "1. /calc 6*7 – every day at 07:00; next: tomorrow, Tuesday 6 January at 07:00; "
            "from my settings (schedules.answer)"
        ]


@pytest.mark.parametrize(
    ("when", "said"),
    [
        ({"cron": "30 18 * * 5"}, "every Friday at 18:30"),
        ({"at": "7:05"}, "every day at 07:05"),
        ({"at": "07:05", "on": ["sun", "mon"]}, "every Monday and Sunday at 07:05"),
        ({"every_minutes": 90}, "every 1 hour 30 minutes"),
        ({"once": "2026-12-24 18:00"}, "Thursday 24 December at 18:00"),
    ],
)
async def test_every_exact_form_of_time_is_understood(when: dict[str, Any], said: str) -> None:
    async with a_group(settings={"schedules": {"answer": entry(when=when)}}) as group:
        assert (await listed(group))[0].startswith(f"1. /calc 6*7 – {said}; next: ")


async def test_a_function_by_its_name_takes_its_arguments() -> None:
    named = entry(function="poll_create", arguments={"question": "Where?", "options": ["here", "there"]}, run="")
    async with a_group(settings={"schedules": {"poll": named}}) as group:
        assert (await listed(group))[0].startswith("1. /poll question=Where?, options=here, there – every day")


async def test_what_is_off_is_as_though_it_were_not_there() -> None:
    async with a_group(settings={"schedules": {"answer": entry(enabled=False)}}) as group:
        assert await listed(group) == []


async def test_times_are_those_of_the_chat_unless_the_entry_says_otherwise() -> None:
    schedules = {"one": entry(), "two": entry(timezone="Asia/Tokyo")}
    async with a_group(settings={"timezone": "Europe/Oslo", "schedules": schedules}) as group:
        assert [line.split(" – ")[1].split(";")[0] for line in await listed(group)] == [
            "every day at 07:00 (Asia/Tokyo)",
            "every day at 07:00",
        ]
        timers = {timer.source: timer for timer in await declared(group)}
        assert (timers["schedules.one"].zone, timers["schedules.two"].zone) == ("Europe/Oslo", "Asia/Tokyo")


async def test_the_zone_follows_the_chat_when_it_sets_another_one() -> None:
    async with a_group(settings={"schedules": {"answer": entry()}}) as group:
        await group.say("Ann", "/settings timezone Asia/Tokyo", role=Role.ADMIN)
        await group.daemon.settings_schedules.sync()
        [timer] = await declared(group)
        assert timer.zone == "Asia/Tokyo"
        assert timer.next_at is not None
        assert timer.next_at.hour == 22


@pytest.mark.parametrize("restarts", [False, True])
async def test_where_the_time_of_today_has_been_in_a_zone_farther_east_it_comes_again_tomorrow(
    tmp_path: Path, restarts: bool
) -> None:
    clock = VirtualClock(datetime(2026, 11, 20, 0, 59, tzinfo=UTC))
    schedules = {"a": entry(when="0 9 * * *"), "b": entry(when="0 12 * * *")}
    settings = {"timezone": "Asia/Shanghai", "schedules": schedules}
    async with a_group(settings=settings, clock=clock, home=tmp_path) as group:
        assert await pass_time(group, 120, step=30) == ["6*7 = 42"]
        await group.say("Ann", "/settings timezone Europe/Berlin", role=Role.ADMIN)
        if not restarts:
            await group.daemon.settings_schedules.sync()
            found = {timer.source: timer.next_at for timer in await declared(group)}
    if restarts:
        async with a_group(settings=settings, clock=clock, home=tmp_path) as group:
            found = {timer.source: timer.next_at for timer in await declared(group)}
    assert found == {
        "schedules.a": datetime(2026, 11, 21, 8, tzinfo=UTC),
        "schedules.b": datetime(2026, 11, 20, 11, tzinfo=UTC),
    }


async def test_a_start_with_the_same_file_changes_nothing(tmp_path: Path) -> None:
    schedules = {"a": entry(), "b": entry(when={"every_minutes": 90})}
    clock = VirtualClock()
    async with a_group(settings={"schedules": schedules}, home=tmp_path, clock=clock) as group:
        before = await declared(group)
    await clock.advance(600)
    backwards = dict(reversed(schedules.items()))
    async with a_group(settings={"schedules": backwards}, home=tmp_path, clock=clock) as group:
        assert await declared(group) == before


async def test_an_edit_of_what_runs_keeps_the_next_time(tmp_path: Path) -> None:
    clock = VirtualClock()
    every = {"every_minutes": 90}
    async with a_group(settings={"schedules": {"a": entry(when=every)}}, home=tmp_path, clock=clock) as group:
        [before] = await declared(group)
    await clock.advance(600)
    edited = {"a": entry(when=every, run="calc 1+1")}
    async with a_group(settings={"schedules": edited}, home=tmp_path, clock=clock) as group:
        [after] = await declared(group)
    assert (after.id, after.number, after.next_at) == (before.id, before.number, before.next_at)
    assert (after.title, after.arguments) == ("/calc 1+1", {"expression": "1+1"})


async def test_a_reload_adds_changes_and_removes_and_leaves_what_chats_made() -> None:
    async with a_group(settings={"schedules": {"a": entry(), "b": entry(run="calc 2")}}) as group:
        await group.say("Ann", "/schedule 0 9 * * * calc 9", role=Role.ADMIN)
        before = Settings.model_validate(
            {"chats": {"allow": ["*"]}, "schedules": {"a": entry(), "b": entry(run="calc 2")}}
        )
        await reload(group, before, {"b": entry(run="calc 2", when="0 8 * * *"), "c": entry(run="calc 3")})
        assert [(line.split(" – ")[0], line.split(";")[0][-5:]) for line in await listed(group)] == [
            ("4. /calc 3", "07:00"),
            ("2. /calc 2", "08:00"),
            ("3. /calc 9", "09:00"),
        ]


async def test_a_faulty_entry_changes_nothing() -> None:
    async with a_group(settings={"schedules": {"a": entry()}}) as group:
        before = Settings.model_validate({"chats": {"allow": ["*"]}, "schedules": {"a": entry()}})
        after = await reload(group, before, {"a": entry(run="clac 6*7"), "b": entry(when="0 8 * * 9")})
        assert [line.split(";")[0] for line in await listed(group)] == ["1. /calc 6*7 – every day at 07:00"]
        await reload(group, after, {})
        assert await listed(group) == []


async def test_in_the_chat_it_is_paused_for_longer_than_a_start_and_never_removed(tmp_path: Path) -> None:
    async with a_group(settings={"schedules": {"a": entry()}}, home=tmp_path) as group:
        [said] = await group.say("Ann", "/schedule remove 1", role=Role.ADMIN)
        assert said.startswith("Schedule 1 comes from my settings (schedules.a)")
        await group.say("Ann", "/schedule pause 1", role=Role.ADMIN)
    async with a_group(settings={"schedules": {"a": entry(run="calc 2")}}, home=tmp_path) as group:
        assert (await listed(group))[0].startswith("1. /calc 2 – every day at 07:00; paused; from my settings")


TODAY = 'chat: "web:main:x"\nwhen: 0 7 * * *\n'


@pytest.mark.parametrize(
    ("lines", "line", "words"),
    [
        ('chat: "web:main:other"\nwhen: 0 7 * * *\nrun: calc 1', 5, "chat: web:main:other is not in chats.allow"),
        ('chat: "web:main:x"\nwhen: some day\nrun: calc 1', 6, "when: is no exact time"),
        ('chat: "web:main:x"\nwhen: blue moon\nrun: calc 1', 6, "when: is no time that can be read"),
        ('chat: "web:main:x"\nwhen: tomorrow at 8\nrun: calc 1', 6, "when: means another time each day"),
        ('chat: "web:main:x"\nwhen: every 30 seconds\nrun: calc 1', 6, "when: is too often"),
        ('chat: "web:main:x"\nwhen: 0 7 * * 9\nrun: calc 1', 6, "when: is no cron expression"),
        ('chat: "web:main:x"\nwhen: {once: "2001-01-01 10:00"}\nrun: calc 1', 6, "when: is over"),
        ('chat: "web:main:x"\nwhen: {once: "2031-02-30 10:00"}\nrun: calc 1', 6, "names a day or a time that there"),
        (TODAY + "run: clac 1", 7, "run: I don't know the command /clac. Did you mean"),
        (TODAY + "run: poll", 7, "“question” is missing."),
        (TODAY + "function: calculat", 7, "There is no function called “calculat”. Did you mean calculate?"),
        (TODAY + "function: calculate\narguments: {expresion: 1}", 8, "There is no option called “expresion”"),
        (TODAY + "run: schedule 0 8 * * * calc 1", 7, "can't run on a schedule"),
        (TODAY + "run: calc 1\nas_role: member", 7, "Only admins and above"),
    ],
)
async def test_check_names_what_is_wrong_at_its_line(tmp_path: Path, lines: str, line: int, words: str) -> None:
    entry_lines = "".join(f"    {one}\n" for one in lines.splitlines())
    rules = 'functions: {calculate: {roles: admin}}\nchats: {allow: ["web:main:x"]}\n'
    file = tmp_path / "bot.yaml"
    file.write_text(f"{rules}schedules:\n  answer:\n{entry_lines}", encoding="utf-8")
    loaded, _ = check_settings(file, {})
    assert loaded is not None
    [found] = await check_functions(loaded, read_yaml_file(file))
    assert (found.code, found.file, found.line) == (Code.SCHEDULE, str(file), line)
    assert found.message.startswith("schedules.answer.")
    assert words in found.message
    assert found.severity == ("warning" if "is over" in words else "error")


async def declared(group: Group) -> list[Timer]:
    """Stored schedules of the settings, by name."""
    return await group.daemon.timetable.declared()


HOUR = 3600
WHENS: dict[str, int] = {"0 * * * *": HOUR, "0 */3 * * *": 3 * HOUR, "every 90 minutes": 0, "every 4 hours": 0}
"""Interval in seconds from midnight for calendar rules; 0 for elapsed time."""
ELAPSED = {"every 90 minutes": 5400, "every 4 hours": 4 * HOUR}
ENTRY = st.fixed_dictionaries(
    {
        "when": st.sampled_from(list(WHENS)),
        "text": st.sampled_from("xy"),
        "enabled": st.sampled_from([True, True, False]),
    }
)
EDIT = st.tuples(st.sampled_from("abc"), st.none() | ENTRY)
LIFE = st.tuples(
    st.lists(EDIT, max_size=1), st.integers(0, 4), st.booleans(), st.sampled_from([0, 600, 4000, 20_000, 100_000])
)
"""An edit of the file, a number of ticks, whether a crash follows, and seconds until the next start."""


class PlainModel:
    """Expected behaviour: each occurrence of an existing entry runs once, including the last missed one, unless it is
    more than twelve hours old."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[str, float, float]] = {}
        """By name: the rule, the start of counting, and the time of the last tick."""

    def file(self, entries: Entries, now: float) -> None:
        """Load the settings."""
        there = {name: one["when"] for name, one in entries.items() if one["enabled"]}
        self.known = {
            name: self.known[name] if name in self.known and self.known[name][0] == when else (when, now, now)
            for name, when in there.items()
        }

    def look(self, now: float) -> list[str]:
        """Entries that became due since the last tick."""
        ran: list[str] = []
        for name, (when, began, seen) in self.known.items():
            start, step = (began, ELAPSED[when]) if when in ELAPSED else (0.0, WHENS[when])
            last = start + (now - start) // step * step
            if last > seen and now - last <= 12 * HOUR:
                ran.append(name)
            self.known[name] = (when, began, now)
        return ran


@effort(max_examples=20, deadline=None)
@given(entries=st.dictionaries(st.sampled_from("abc"), ENTRY, min_size=2), lives=st.lists(LIFE, min_size=1, max_size=4))
def test_after_any_edits_and_restarts_each_time_is_run_once_as_a_plain_model_says(
    entries: dict[str, dict[str, Any]], lives: list[tuple[list[tuple[str, Any]], int, bool, int]]
) -> None:
    ran: list[str] = []

    @tool_function(name="note", commands=("note",))
    async def note(context: MessageContext, args: Note) -> None:
        """Note that it ran."""
        assert context.timer is not None
        ran.append(f"{context.sender.ref.native} {args.text}")

    async def live(home: Path) -> None:
        clock, model = VirtualClock(), PlainModel()
        for edits, looks, crashes, gap in lives:
            entries.update(edits)
            for name in [name for name, one in entries.items() if one is None]:
                del entries[name]
            schedules = {
                name: entry(when=one["when"], run=f"note {one['text']}", enabled=one["enabled"])
                for name, one in reversed(entries.items())
            }
            async with a_group([note], settings={"schedules": schedules}, home=home, clock=clock) as group:
                model.file(entries, clock.now().timestamp())
                for _ in range(looks + 1):
                    ran.clear()
                    await tick(group)
                    expected = [f"{name} {entries[name]['text']}" for name in model.look(clock.now().timestamp())]
                    assert sorted(ran) == sorted(expected)
                    await clock.advance(1700)
                if crashes:
                    await group.crash()
            await clock.advance(gap)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(live(Path(folder)))
