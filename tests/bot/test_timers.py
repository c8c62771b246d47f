"""Due timers fire once, with current rights, through the normal intake, and with a notice if they are late."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import bindparam, update

from bot.platforms.base import Limits, SendFailed
from bot.testing import FAMILY, Group, TestPlatform, a_group
from bot.turns.turn_log import StoredExplanations
from function_calls.context import Kind, Quoted
from services.refs import ChatRef, Role
from services.store.port import Query, Row, Statement, Store, StoreHealth, Write
from services.store.schema import TEXT
from services.store.turns.occurrences import OCCURRENCES
from services.store.turns.timers import TIMERS
from services.timers.timer import json_text
from services.timers.timetable import TimerKind, TimerState
from services.times.recurrence import Calendar, Once, Rule, rule_to_json
from tests.bot.test_delivery import Distant
from tests.fakes.drafts import ANN, BOB, DAILY, a_draft, every, later
from tests.fakes.functions import Recorder
from tests.fakes.held import Held, until
from tests.fakes.kept import heard, kept, last_reason, reasons
from tests.fakes.noting import a_note
from tests.fakes.timers import ask, pass_time, states, tick

HOUR, DAY = 3600.0, 86_400.0
OFF = ChatRef("test", "bot", "off")
BARRED = ChatRef("test", "bot", "barred")


@pytest.mark.requirement("D45")
async def test_what_is_due_runs_its_function_once_at_its_time() -> None:
    note = a_note()
    async with a_group([note.spec]) as group:
        await ask(group, "tea", later(group.clock.now(), seconds=90))
        assert await pass_time(group, 89) == []
        assert await pass_time(group, 2) == ["⏰ tea"]
        assert await pass_time(group, 600, step=30) == []
        assert note.runs == [{"text": "tea"}]
        (context,) = note.contexts
        assert (context.kind, context.sender.ref, context.is_group) == (Kind.TIMER, ANN, True)
        assert await last_reason(group) == ("timer", "note")
        assert await kept(group, TIMERS.c.state, TIMERS.c.done) == [("ended", 1)]


async def test_what_is_due_is_nobodys_message_in_the_history_but_what_it_says_is() -> None:
    async with a_group([a_note().spec]) as group:
        await ask(group, "tea", later(group.clock.now(), seconds=5))
        await group.hear("Bob", "hello all")
        await pass_time(group, 6)
        assert await heard(group) == [("Bob", "hello all"), ("Rollcall", "⏰ tea")]
        assert group.platform.sent[-1].reply_to is None


@pytest.mark.requirement("D45")
async def test_what_is_due_is_in_the_log_of_calls_and_why_tells_of_it(tmp_path: Path) -> None:
    async with a_group([a_note().spec], home=tmp_path) as group:
        await ask(group, "tea", later(group.clock.now(), seconds=5))
        await pass_time(group, 6)
        await group.daemon.store.commit([])  # a commit also completes earlier posts
        explanations = StoredExplanations(group.daemon.store)
        (found,) = await explanations.of(FAMILY, f"sent-{group.platform.sent[0].key}")
        assert (found.reason.value, found.sender_name) == ("timer", "Ann")
    assert '"path":"timer"' in (tmp_path / "logs" / "function_calls.jsonl").read_text()


async def test_why_tells_of_a_private_timer_only_whose_it_is_and_only_in_private() -> None:
    async with a_group([a_note().spec]) as group:
        await ask(group, "surprise", later(group.clock.now(), seconds=5), private_to=ANN, members=((ANN, "Ann"),))
        await pass_time(group, 6)
        await group.daemon.store.commit([])  # a commit also completes earlier posts
        its_message = Quoted(f"sent-{group.platform.sent[-1].key}", "", "Rollcall", from_bot=True)
        nothing = await group.say("Bob", "/why", reply_to=Quoted("x99", "", "Rollcall", from_bot=True))
        for who, facts in (("Bob", {}), ("Bob", {"private": True}), ("Ann", {})):
            assert await group.say(who, "/why", reply_to=its_message, **facts) == nothing
        assert "surprise" in (await group.say("Ann", "/why", reply_to=its_message, private=True))[-1]


async def test_what_comes_again_and_again_comes_each_time_and_ends_with_its_count() -> None:
    async with a_group([a_note().spec]) as group:
        await ask(group, "tick", every(60, group.clock.now()))
        rule = Rule(Calendar("*/2 * * * *"), count=2)
        await ask(group, "tock", rule)
        said = await pass_time(group, 305)
        assert (said.count("⏰ tick"), said.count("⏰ tock")) == (5, 2)
        (tick_timer,) = await group.daemon.timetable.of_chat(FAMILY, kind=TimerKind.REMINDER)
        assert (tick_timer.title, tick_timer.done) == ("tick", 5)


@pytest.mark.parametrize(
    ("language", "late"), [("en", "(2 hours late: I was away.)"), ("zh", "（晚了2小时：我刚才不在。）")]
)
async def test_what_is_late_says_by_how_much(tmp_path: Path, language: str, late: str) -> None:
    settings = {"language": language}
    async with a_group([a_note().spec], settings=settings, home=tmp_path) as group:
        await ask(group, "tea", later(group.clock.now(), seconds=90))
        clock = group.clock
    await clock.advance(2 * HOUR + 90)
    async with a_group([a_note().spec], settings=settings, home=tmp_path, clock=clock) as group:
        assert await tick(group) == [f"{late}\n⏰ tea"]


async def test_what_was_about_to_be_sent_when_the_process_died_says_how_late_it_is_then(tmp_path: Path) -> None:
    async with a_group([a_note().spec], home=tmp_path, platform=(platform := Distant())) as group:
        await ask(group, "tea", later(group.clock.now(), seconds=5))
        await group.clock.advance(6)
        await group.daemon.timers.tick()
        await platform.asked.wait()
        clock = group.clock
        await group.crash()
    await clock.advance(5 * HOUR)
    async with a_group([a_note().spec], home=tmp_path, clock=clock) as group:
        await group.settle()
        assert [one.text for one in group.platform.sent] == ["(5 hours late: I was away.)\n⏰ tea"]


async def test_what_waited_for_the_network_says_how_late_it_is_when_it_is_sent() -> None:
    async with a_group([a_note().spec], settings={"language": "zh"}, platform=(platform := Distant())) as group:
        await ask(group, "tea", later(group.clock.now(), minutes=10))
        await ask(group, "milk", later(group.clock.now(), minutes=129, seconds=30))
        for _ in range(20):
            await group.clock.advance(30)
            await group.daemon.timers.tick()
        # The message has been sent now; earlier time would count for its function.
        await platform.asked.wait()
        for _ in range(240):
            await group.clock.advance(30)
            await group.daemon.timers.tick()
        platform.is_up.set()
        await group.settle()
        await tick(group)
        assert [one.text for one in platform.sent] == ["（晚了2小时。）\n⏰ tea", "⏰ milk"]


async def test_a_send_that_fails_until_it_is_late_says_so_and_none_says_it_twice() -> None:
    async with a_group([a_note().spec]) as group:
        group.platform.failures = [SendFailed("later", retryable=True, retry_after_seconds=some) for some in (120, 90)]
        await ask(group, "tea", later(group.clock.now(), seconds=5))
        await group.clock.advance(6)
        await group.daemon.timers.tick()
        for left in (1, 0):
            await until(lambda left=left: len(group.platform.failures) == left)  # type: ignore[misc]
            await group.clock.advance(120)
        await group.settle()
        assert [one.text for one in group.platform.sent] == ["(4 minutes late.)\n⏰ tea"]


async def test_the_time_that_its_own_function_takes_makes_nothing_late() -> None:
    held = Held(offered_to=["timer"])
    async with a_group([held.spec]) as group:
        await ask(group, "report", later(group.clock.now(), seconds=5), function="hold")
        await group.clock.advance(6)
        await group.daemon.timers.tick()
        await held.has_begun("report")
        await group.clock.advance(20)
        for _ in range(5):
            await group.clock.advance(10)
        held.let_go()
        await group.settle()
        assert [one.text for one in group.platform.sent] == ["done: report"]


async def test_a_long_message_leaves_room_for_the_word_that_it_is_late() -> None:
    platform = TestPlatform(replace(TestPlatform().limits, text_chars=300))
    async with a_group([a_note().spec], platform=platform) as group:
        await ask(group, "tea", later(group.clock.now(), seconds=5), arguments={"text": "word " * 200})
        await group.clock.advance(2 * HOUR)
        first, *others = await tick(group)
        assert first.startswith("(2 hours late: I was away.)\n⏰ word")
        assert others
        assert not any("late" in one for one in others)
        assert max(map(len, [first, *others])) <= 300


async def test_a_lag_under_a_minute_is_not_mentioned_and_a_late_tick_is_no_absence() -> None:
    held = Held()
    async with a_group([a_note().spec, held.spec]) as group:
        await ask(group, "in time", later(group.clock.now(), seconds=10))
        await ask(group, "late", later(group.clock.now(), seconds=40))
        await group.clock.advance(29)
        assert await tick(group) == ["⏰ in time"]
        await group.hear("Bob", "/hold on")
        await held.has_begun("on")
        for _ in range(5):
            await group.clock.advance(20)
            await group.daemon.timers.tick()
        held.let_go()
        await group.settle()
        assert [one.text for one in group.platform.sent[1:]] == ["done: on", "(1 minute late.)\n⏰ late"]


@pytest.mark.requirement("D45")
@pytest.mark.parametrize(
    ("role", "runs"), [(Role.OWNER, 1), (Role.ADMIN, 1), (Role.MODERATOR, 0), (Role.MEMBER, 0), (None, 0)]
)
async def test_it_runs_with_the_rights_that_its_owner_has_now(role: Role | None, runs: int) -> None:
    note = a_note(roles="admin")
    async with a_group([note.spec]) as group:
        group.platform.roles[ANN] = Role.OWNER
        await ask(group, "tea", later(group.clock.now(), seconds=5))
        if role is None:
            del group.platform.roles[ANN]
        else:
            group.platform.roles[ANN] = role
        (said,) = await pass_time(group, 6)
        assert len(note.runs) == runs
        assert (said == "⏰ tea") is bool(runs)
        if not runs:
            assert said.startswith("It's time for “tea”, but it didn't work: ")
            assert (await last_reason(group))[0] == "refused"


async def test_a_role_that_the_settings_name_counts() -> None:
    note = a_note(roles="admin", effect="read")
    async with a_group([note.spec], settings={"members": {ANN.key: "owner"}}) as group:
        await ask(group, "tea", later(group.clock.now(), seconds=5))
        assert await pass_time(group, 6) == ["⏰ tea"]


async def test_only_what_is_offered_to_timers_runs_and_what_is_unknown_is_said() -> None:
    command = Recorder("note", commands=["note"], offered_to=["command"])
    async with a_group([command.spec]) as group:
        await ask(group, "tea", later(group.clock.now(), seconds=5))
        await ask(group, "milk", later(group.clock.now(), seconds=5), function="nothing")
        said = await pass_time(group, 6)
        assert command.runs == []
        assert [one.partition(", but ")[0] for one in said] == ["It's time for “tea”", "It's time for “milk”"]


async def test_no_model_is_asked_and_there_is_no_chat_about_what_nothing_handled() -> None:
    silent = Recorder("note", {"text": {"type": "string"}}, gives=None, offered_to=["timer"])
    async with a_group([silent.spec]) as group:
        await ask(group, "tea", later(group.clock.now(), seconds=5))
        assert await pass_time(group, 6) == []
        assert len(silent.runs) == 1
        assert group.model.requests == []


async def test_wrong_arguments_are_told_and_change_nothing() -> None:
    note = a_note()
    async with a_group([note.spec]) as group:
        await ask(group, "tea", later(group.clock.now(), seconds=5), arguments={"colour": "red"})
        (said,) = await pass_time(group, 6)
        assert said.startswith("It's time for “tea”, but it didn't work: ") or "text" in said
        assert note.runs == []


async def test_what_needs_a_yes_asks_its_owner_and_goes_on_with_the_answer() -> None:
    note = a_note(confirm="Really?")
    async with a_group([note.spec]) as group:
        await ask(group, "tea", later(group.clock.now(), seconds=5))
        (asked,) = await pass_time(group, 6)
        assert "Really?" in asked
        assert await group.say("Ann", "yes") == ["⏰ tea"]


@pytest.mark.parametrize("crashes", [False, True])
async def test_what_needs_somebodys_approval_waits_for_it_and_runs_as_its_owners(tmp_path: Path, crashes: bool) -> None:
    settings = {"approvals": {"required": [{"functions": ["note"], "by": "admin"}]}}
    note = a_note()
    async with a_group([note.spec], settings=settings, home=tmp_path) as group:
        await ask(group, "tea", later(group.clock.now(), seconds=5))
        (asked,) = await pass_time(group, 6)
        [code] = re.findall(r"#([0-9a-f]{5})", asked)
        clock = group.clock
        if not crashes:
            assert await group.say("Eve", f"approve {code}", role=Role.ADMIN) == ["⏰ tea"]
    if crashes:
        async with a_group([note.spec], settings=settings, home=tmp_path, clock=clock) as group:
            assert await group.say("Eve", f"approve {code}", role=Role.ADMIN) == ["⏰ tea"]
    assert [one.sender.ref for one in note.contexts] == [ANN]


async def test_what_is_private_is_said_to_its_owner_alone() -> None:
    async with a_group([a_note().spec]) as group:
        await ask(group, "tea", later(group.clock.now(), seconds=5), private_to=ANN)
        await pass_time(group, 6)
        assert [one.private_to for one in group.platform.sent] == [ANN]
        assert await heard(group) == []


@pytest.mark.parametrize(
    ("chat", "reason"),
    [(BARRED, ("chat_not_allowed", "chats.allow")), (OFF, ("chat_off", f"chats.settings.{OFF.key}.enabled"))],
)
async def test_a_chat_that_is_not_served_hears_nothing_and_it_is_marked(chat: ChatRef, reason: tuple[str, str]) -> None:
    note = a_note()
    settings = {"chats": {"allow": [FAMILY.key, OFF.key], "settings": {OFF.key: {"enabled": False}}}}
    async with a_group([note.spec], settings=settings) as group:
        await ask(group, "tea", later(group.clock.now(), seconds=5), chat=chat)
        await ask(group, "daily", DAILY, chat=chat)
        assert await pass_time(group, 6) == []
        assert await reasons(group) == [reason]
        assert await kept(group, OCCURRENCES.c.state, OCCURRENCES.c.problem) == [
            ("undeliverable", reason[0]),
            ("due", ""),
        ]
        assert group.daemon.timers.outcomes == {"undeliverable": 1}
        assert await pass_time(group, 2 * DAY, step=HOUR) == []
        assert (await states(group)).count("undeliverable") == 3
        assert note.runs == []


async def test_a_group_that_removed_the_bot_is_not_tried_again_and_it_shows() -> None:
    async with a_group([a_note().spec]) as group:
        group.platform.failures.append(SendFailed("the bot was removed from this group", retryable=False))
        await ask(group, "tea", later(group.clock.now(), seconds=5))
        assert await pass_time(group, 60) == []
        assert await kept(group, OCCURRENCES.c.state, OCCURRENCES.c.problem) == [
            ("undeliverable", "the bot was removed from this group")
        ]
        assert group.daemon.timers.outcomes["undeliverable"] == 1
        assert b'rollcall_timers_fired_total{outcome="undeliverable"} 1.0' in group.daemon.metrics.render()


async def test_a_full_queue_leaves_it_due_until_there_is_room() -> None:
    held = Held()
    limits = {"limits": {"queue_per_chat": 1}}
    async with a_group([a_note().spec, held.spec], settings=limits) as group:
        await ask(group, "tea", later(group.clock.now(), seconds=2))
        await group.hear("Bob", "/hold on")
        await held.has_begun("on")
        await group.hear("Bob", "/hold more")
        await group.clock.advance(3)
        await group.daemon.timers.tick()
        await group.daemon.timers.idle()
        assert await states(group) == ["due"]
        held.let_go()
        await group.settle()
        assert "⏰ tea" in await pass_time(group, 10)


@pytest.mark.parametrize("title", ["@everyone <@123> [x](http://a.b) **bold**", "<!channel> @all `code`"])
async def test_words_of_a_timer_mention_nobody_and_go_out_like_those_of_any_reply(title: str) -> None:
    echo = Recorder("echo", {"text": {"type": "string"}}, commands=["echo"], does=_echo)
    async with a_group([a_note(does=_echo).spec, echo.spec]) as group:
        await ask(group, title, later(group.clock.now(), seconds=5))
        await pass_time(group, 6)
        await group.say("Bob", f"/echo {title}")
        by_timer, by_command = group.platform.sent
        assert by_timer.text == by_command.text
        assert by_timer.mentions == by_command.mentions == ()


async def _echo(context: object, arguments: dict[str, Any], call: object) -> str:
    return str(arguments["text"])


async def test_removing_what_is_being_said_tells_so_and_it_is_said_once() -> None:
    held = Held()
    async with a_group([a_note().spec, held.spec]) as group:
        timer = await ask(group, "tea", later(group.clock.now(), seconds=2))
        await group.hear("Bob", "/hold on")
        await held.has_begun("on")
        await group.clock.advance(3)
        await group.daemon.timers.tick()
        await until(lambda: group.daemon.engine.waiting == 1)
        assert await states(group) == ["fired"]
        (removed,) = await group.daemon.timetable.remove([timer], by=BOB, call_key="r")
        assert removed.is_being_sent
        held.let_go()
        await group.settle()
        assert [one.text for one in group.platform.sent].count("⏰ tea") == 1


async def test_the_same_time_in_a_zone_farther_west_is_another_moment() -> None:
    async with a_group([a_note().spec]) as group:
        at = later(group.clock.now(), minutes=1)
        timer = await ask(group, "tea", at, zone="UTC")
        assert await pass_time(group, 61) == ["⏰ tea"]
        rule = Rule(Once(at.replace(tzinfo=None)))
        await group.daemon.timetable.change(timer, call_key="c", rule=rule, zone="America/New_York")
        assert await pass_time(group, 5 * HOUR - 60, step=HOUR / 10) == []
        assert await pass_time(group, 120) == ["⏰ tea"]


@pytest.mark.parametrize("moments", [2])
async def test_what_cannot_be_fired_keeps_nothing_else_of_its_chat_from_it_and_is_said_once_it_can(
    moments: int,
) -> None:
    async with a_group([a_note().spec]) as group:
        hourly = Rule(Calendar("0 * * * *"))
        for number in range(moments):
            await ask(group, f"broken {number}", hourly)
        await ask(group, "tea", later(group.clock.now(), hours=1, minutes=1))
        await set_zone(group, hourly, "Mars/Base")
        assert await pass_time(group, 2 * HOUR, step=20) == ["⏰ tea"]
        assert group.daemon.timers.waiting == moments
        await set_zone(group, hourly, "UTC")
        said = await pass_time(group, HOUR, step=20)
        assert {f"⏰ broken {number}" for number in range(moments)} <= {one.rpartition("\n")[2] for one in said}


async def test_lists_show_a_timer_whose_zone_nobody_knows_by_the_clock_of_utc() -> None:
    async with a_group([a_note().spec], settings={"timezone": "Europe/Oslo"}) as group:
        await group.say("Ann", "/remind every day at 10:00 to drink")
        schedule = await ask(group, "report", DAILY, kind=TimerKind.SCHEDULE, arguments={"text": "report"})
        [timer] = await group.daemon.timetable.of_chat(FAMILY, kind=TimerKind.REMINDER)
        for rule in (timer.rule, schedule.rule):
            await set_zone(group, rule, "Mars/Base")
        (reminders,) = await group.say("Ann", "/reminders")
        assert "at 09:00 (UTC): drink" in reminders
        (schedules,) = await group.say("Ann", "/schedule list")
        assert "(UTC)" in schedules


async def set_zone(group: Group, rule: Rule, zone: str) -> None:
    """Put all timers with that rule into `zone`, which need not exist."""
    where = TIMERS.c.rule == bindparam("of_rule", type_=TEXT)
    statement = Statement("set_zone", update(TIMERS).where(where).values(zone=bindparam("new_zone", type_=TEXT)))
    await group.daemon.store.commit([statement.write(of_rule=json_text(rule_to_json(rule)), new_zone=zone)])


async def test_reminders_do_not_wait_for_schedules_that_take_their_time() -> None:
    held = Held(offered_to=["timer"])
    async with a_group([a_note().spec, held.spec], settings={"timers": {"at_once": 2}}) as group:
        soon = later(group.clock.now(), seconds=5)
        for number in range(4):
            chat = ChatRef("test", "bot", f"c{number % 3}")
            await ask(group, f"s{number}", soon, function="hold", kind=TimerKind.SCHEDULE, chat=chat)
        await ask(group, "tea", soon)
        await ask(group, "milk", soon, chat=ChatRef("test", "bot", "c2"))
        await group.clock.advance(6)
        await group.daemon.timers.tick()
        await until(lambda: len(group.platform.sent) == 2)
        assert sorted(one.text for one in group.platform.sent) == ["⏰ milk", "⏰ tea"]
        assert held.running == ["s0", "s1"]
        held.let_go()
        await group.settle()
        assert sorted(one.text for one in group.platform.sent[2:]) == [f"done: s{number}" for number in range(4)]


async def test_in_one_chat_a_reminder_and_a_schedule_are_said_one_after_the_other() -> None:
    held = Held(offered_to=["timer"])
    async with a_group([a_note().spec, held.spec]) as group:
        await ask(group, "report", later(group.clock.now(), seconds=5), function="hold", kind=TimerKind.SCHEDULE)
        await ask(group, "tea", later(group.clock.now(), seconds=7))
        await group.clock.advance(6)
        await group.daemon.timers.tick()
        await held.has_begun("report")
        await group.clock.advance(2)
        await group.daemon.timers.tick()
        assert await states(group) == ["fired", "due"]
        held.let_go()
        await group.settle()
        assert [one.text for one in group.platform.sent] == ["done: report", "⏰ tea"]


@pytest.mark.parametrize("kind", [Kind.DELETE, Kind.EDIT])
async def test_no_network_takes_back_or_edits_what_is_due_by_naming_it(kind: Kind) -> None:
    held = Held()
    async with a_group([a_note().spec, held.spec]) as group:
        timer = await ask(group, "tea", later(group.clock.now(), seconds=2))
        await group.hear("Bob", "/hold on")
        await held.has_begun("on")
        await group.clock.advance(3)
        await group.daemon.timers.tick()
        await until(lambda: group.daemon.engine.waiting == 1)
        [(wall,)] = await kept(group, OCCURRENCES.c.wall)
        await group.hear("Mallory", "milk", kind=kind, id=f"timer-{timer.id}-{wall}")
        held.let_go()
        await group.settle()
        assert [one.text for one in group.platform.sent] == ["done: on", "⏰ tea"]
        found = await reasons(group)
        assert ("timer", "note") in found
        assert ("edit_taken", "") not in found


async def test_removing_before_its_time_silences_it() -> None:
    async with a_group([a_note().spec]) as group:
        timer = await ask(group, "tick", every(60, group.clock.now()))
        assert await pass_time(group, 61) == ["⏰ tick"]
        (removed,) = await group.daemon.timetable.remove([timer], by=ANN, call_key="r")
        assert not removed.is_being_sent
        assert await pass_time(group, 300, step=10) == []


async def test_a_snoozed_one_comes_again_and_its_rule_goes_on() -> None:
    async with a_group([a_note().spec]) as group:
        await ask(group, "tea", later(group.clock.now(), seconds=5))
        await pass_time(group, 6)
        (fired,) = await group.daemon.timetable.recently_sent(FAMILY, TimerKind.REMINDER)
        assert fired.state is TimerState.ENDED
        await group.daemon.timetable.snooze(fired, later(group.clock.now(), minutes=10), call_key="s")
        assert await pass_time(group, 599) == []
        assert await pass_time(group, 2) == ["⏰ tea"]
        ended = await group.daemon.timetable.get(FAMILY, fired.number, TimerKind.REMINDER)
        assert ended is not None
        assert ended.state is TimerState.ENDED


async def test_what_has_ended_long_ago_is_forgotten_and_its_number_is_not_given_again() -> None:
    async with a_group([a_note().spec], settings={"store": {"days_kept": 10}, "chats": {"allow": ["*"]}}) as group:
        for title in ("one", "two"):
            await ask(group, title, later(group.clock.now(), seconds=5))
        await ask(group, "daily", DAILY)
        await pass_time(group, 6)
        await group.clock.advance(9 * DAY)
        await tick(group)
        await group.daemon.housekeeping.forget()
        assert len(await kept(group, TIMERS.c.title)) == 3
        await group.clock.advance(2 * DAY)
        await group.daemon.housekeeping.forget()
        assert await kept(group, TIMERS.c.title) == [("daily",)]
        assert await states(group) == ["fired", "due"]
        (daily,) = await group.daemon.timetable.of_chat(FAMILY, kind=TimerKind.REMINDER)
        await group.daemon.timetable.remove([daily], by=ANN, call_key="r")
        await group.clock.advance(11 * DAY)
        await group.daemon.housekeeping.forget()
        assert await kept(group, TIMERS.c.title, TIMERS.c.arguments) == [("", "{}")]
        assert (await ask(group, "four", later(group.clock.now(), hours=1))).number == 4


async def test_half_of_a_networks_rate_is_left_for_answers() -> None:
    slow = TestPlatform(Limits(text_chars=4000, sends_are_idempotent=True, sends_per_minute=20, choices=True))
    async with a_group([a_note().spec, Recorder("rain", commands=["rain"], gives="rain").spec], platform=slow) as group:
        await group.daemon.timetable.add(
            [a_draft(f"t{number}", later(group.clock.now(), seconds=5)) for number in range(40)],
            call_key="c",
            most_per_owner=40,
        )
        assert len(await pass_time(group, 6)) == 10
        assert await group.say("Bob", "/rain") == ["rain"]
        said = await pass_time(group, 200)
        assert [one.rpartition(" ")[2] for one in said] == [f"t{number}" for number in range(10, 40)]


class Counting:
    """Passes on everything to a store, and counts."""

    def __init__(self, store: Store) -> None:
        self._inner = store
        self.used = 0

    def commit(self, writes: Sequence[Write]) -> Awaitable[list[int]]:
        self.used += 1
        return self._inner.commit(writes)

    def post(self, writes: Sequence[Write]) -> None:
        self.used += 1
        self._inner.post(writes)

    async def read(self, query: Query) -> list[Row]:
        self.used += 1
        return await self._inner.read(query)

    def health(self) -> StoreHealth:
        return self._inner.health()

    async def check(self) -> None:
        await self._inner.check()

    async def close(self) -> None:
        await self._inner.close()


class Yielding(Counting):
    """Lets other tasks run before a read returns its result."""

    meanwhile: Callable[[], Awaitable[None]] | None = None

    async def read(self, query: Query) -> list[Row]:
        found = await super().read(query)
        if query.statement.name == "due.soonest" and self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        return found


async def test_what_is_asked_for_while_it_is_looked_at_what_comes_next_is_not_lost() -> None:
    async with a_group([a_note().spec], around_store=Yielding) as group:
        store = group.daemon.store
        assert isinstance(store, Yielding)

        async def meanwhile() -> None:
            await ask(group, "soon", later(group.clock.now(), minutes=1))

        await ask(group, "first", later(group.clock.now(), seconds=5))
        await ask(group, "later", later(group.clock.now(), hours=1))
        store.meanwhile = meanwhile
        assert await pass_time(group, 70) == ["⏰ first", "⏰ soon"]


async def test_a_tick_with_nothing_due_does_not_touch_the_store() -> None:
    async with a_group([a_note().spec], around_store=Counting) as group:
        await ask(group, "tea", later(group.clock.now(), hours=1))
        store = group.daemon.store
        assert isinstance(store, Counting)
        before = store.used
        for _ in range(10):
            await group.clock.advance(1)
            await group.daemon.timers.tick()
        assert store.used == before
