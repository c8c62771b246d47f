"""When the bot speaks: chime-in, quiet hours and mutes."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from bot.chats.chats import end_of_period
from bot.intake.chime_in import cap_of, drawn
from bot.testing import FAMILY, Group, a_group, call
from config.texts import Texts
from function_calls.context import Quoted
from services.clock import VirtualClock
from services.llm.model import ModelAnswer, ModelError, ModelRequest
from services.llm.offline.offline import OfflineModel
from services.refs import ErrorCode, MemberRef, Role
from tests.bot.test_schedule_runs import Weather
from tests.fakes.functions import Recorder
from tests.fakes.kept import last_reason, reasons
from tests.fakes.timers import tick

EN = Texts().of("en")
ANNA = MemberRef("test", "bot", "anna")
OSLO = ZoneInfo("Europe/Oslo")
HOUR = 3600.0
CHANCE = f"chats.settings.{FAMILY.key}.chime_in"


def chat(**settings: Any) -> dict[str, Any]:
    return {"chats": {"allow": ["*"], "settings": {FAMILY.key: settings}}, "store": {"history_per_chat": 100_000}}


class Chatty:
    """ChatModel that always has something to say."""

    name = "chatty"

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        self.requests.append(request)
        return ModelAnswer(text="Nice.", finish="stop")

    async def probe(self) -> str:
        return ""

    async def close(self) -> None:
        return None


def hits(rate: float, messages: int, name: str = "x") -> int:
    """Number of chime-ins among so many eligible messages, by the rule alone."""
    cap, step, count = cap_of(rate), 10, 0
    for number in range(messages):
        if drawn(name, str(number)) < cap * step / 10:
            count, step = count + 1, 1
        else:
            step = min(10, step + 1)
    return count


@pytest.mark.parametrize("rate", [0.005, 0.02, 0.05, 0.1, 0.2, 0.25])
def test_the_rate_is_the_share_of_answered_messages_in_the_long_run(rate: float) -> None:
    share = sum(hits(rate, 10_000, f"chat {number}") for number in range(5)) / 50_000
    assert abs(share / rate - 1) < 0.1
    assert rate < cap_of(rate) <= 1


async def test_ten_thousand_messages_are_answered_at_the_rate_and_never_twice_in_a_row() -> None:
    model = Chatty()
    async with a_group(settings=chat(chime_in="chance 10%"), model=model) as group:
        for number in range(10_000):
            await group.say(f"Ann{number % 7}", f"well {number}", id=f"m{number}")
        found = [code for code, _ in await reasons(group)]
    answered = found.count("chimed_in")
    eligible = answered + found.count("not_chimed_in")
    # The message after the bot's is not eligible.
    assert eligible + answered - found.count("not_addressed") in (0, 1) or eligible == 10_000 - found.count(
        "not_addressed"
    )
    assert abs(answered / eligible / 0.1 - 1) < 0.1
    assert all(second != "chimed_in" for first, second in pairwise(found) if first == "chimed_in")


async def speaks(group: Group, text: str, **facts: Any) -> bool:
    """Whether the bot answers `text` with the highest rate; up to ten messages of others are said before."""
    for number in range(40):
        before = await group.say("Bob", f"hm {number}")
        if not before and await group.say("Ann", text, **facts):
            return True
    return False


ALWAYS = "chance 25%"


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("@anna what do you think", {}),
        ("what do you think", {"mentions": (ANNA,)}),
        ("I think so", {"reply_to": Quoted("m0", "Anna", "hi")}),
        ("Bob: no", {}),
        ("bob, no", {}),
        ("/nosuch", {}),
        ("well", {"is_bot": True}),
        ("", {}),
        ("well", {"backfilled": True}),
    ],
)
async def test_it_does_not_join_in_on_what_is_for_others_or_for_nobody(text: str, facts: dict[str, Any]) -> None:
    async with a_group(settings=chat(chime_in=ALWAYS), model=Chatty()) as group:
        assert not await speaks(group, text, **facts)


async def test_it_joins_in_on_what_is_for_nobody_in_particular_and_calls_no_functions() -> None:
    model = Chatty()
    async with a_group(settings=chat(chime_in=ALWAYS), model=model) as group:
        assert await speaks(group, "well, that was fun")
        assert model.requests[-1].offer is None
        assert "Nobody has asked you" in model.requests[-1].messages[-2].content
        assert await last_reason(group) == ("chimed_in", CHANCE)
        assert group.platform.statuses == []


@pytest.mark.parametrize("settings", [{}, {"chime_in": "off"}, {"chime_in": "chance 0%"}])
async def test_it_never_joins_in_by_default(settings: dict[str, Any]) -> None:
    async with a_group(settings=chat(**settings), model=Chatty()) as group:
        assert not await speaks(group, "well")


@pytest.mark.parametrize("mode", ["chance 25%", "judge"])
async def test_without_a_model_it_never_joins_in(mode: str) -> None:
    async with a_group(settings=chat(chime_in=mode), model=OfflineModel(Texts())) as group:
        assert not await speaks(group, "well")


async def test_an_admin_turns_it_on_and_off_for_the_chat() -> None:
    async with a_group(model=Chatty()) as group:
        assert (await group.say("Eve", "/settings chime_in chance 25%", role=Role.ADMIN))[0].startswith(
            "chime_in: chance 25%"
        )
        assert await speaks(group, "well")
        assert await last_reason(group) == ("chimed_in", "chat")
        await group.say("Eve", "/settings chime_in off", role=Role.ADMIN)
        assert not await speaks(group, "well")


async def test_a_message_is_decided_alike_when_it_is_delivered_again_after_a_crash(tmp_path: Path) -> None:
    settings = chat(chime_in="chance 20%")

    async def run(folder: Path, *, restarts: bool) -> list[str]:
        clock, found = VirtualClock(), list[str]()
        for first in range(0, 60, 10 if restarts else 60):
            async with a_group(settings=settings, model=Chatty(), home=folder, clock=clock) as group:
                for number in range(first, first + (10 if restarts else 60)):
                    await group.say("Ann", f"hm {number}", id=f"m{number}")
                    await group.say("Ann", f"hm {number}", id=f"m{number}")
                found = [code for code, _ in await reasons(group)]
                await group.crash()
        return found

    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    found = await run(tmp_path / "a", restarts=False)
    assert len(found) == 60
    assert found.count("chimed_in") > 3
    assert await run(tmp_path / "b", restarts=True) == found


async def test_a_model_that_fails_is_silent_when_nobody_asked() -> None:
    async with a_group(settings=chat(chime_in=ALWAYS)) as group:
        group.model.says(*[ModelError(ErrorCode.PROVIDER_ERROR, "down")] * 50)
        for number in range(30):
            assert await group.say("Ann", f"hm {number}") == []
        assert len(group.model.requests) > 2
        # The outage is still reported to a member who asks.
        assert await group.say("Ann", "@Rollcall hello") != []


async def test_the_model_judges_within_its_budget() -> None:
    async with a_group(settings=chat(chime_in="judge 6")) as group:
        group.model.says(call("speak", now=False), call("speak", now=True), "I know that.", "yes, I would speak")
        assert await group.say("Ann", "who knows") == []
        assert await last_reason(group) == ("not_chimed_in", CHANCE)
        question = group.model.requests[0]
        assert [one.name for one in question.offer.functions] == ["speak"] if question.offer else False
        assert "Ann: who knows" in question.messages[-1].content
        await group.clock.advance(599)
        assert await group.say("Ann", "who knows that") == []
        assert await last_reason(group) == ("not_addressed", "")
        await group.clock.advance(1)
        assert await group.say("Ann", "who knows this") == ["I know that."]
        await group.clock.advance(600)
        assert await group.say("Ann", "thanks") == []
        assert await last_reason(group) == ("not_addressed", "")
        assert await group.say("Ann", "or so") == []
        assert len(group.model.requests) == 4


async def test_a_reply_to_the_bot_is_addressed_unless_it_begins_with_another_member() -> None:
    async with a_group() as group:
        group.model.says("One.", "Two.")
        assert await group.say("Ann", "and now?", reply_to_bot=True) == ["One."]
        assert await group.say("Ann", "@anna look", reply_to_bot=True) == []
        assert await last_reason(group) == ("not_addressed", "")
        await group.daemon.store.commit([])  # a commit also completes earlier posts
        sent = Quoted(f"sent-{group.platform.sent[0].key}")
        assert await group.say("Ann", "are you sure?", reply_to=sent) == ["Two."]
        assert await group.say("Ann", "are you sure?", reply_to=Quoted("unknown")) == []


# Quiet hours


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=OSLO).astimezone(UTC)


@pytest.mark.parametrize(
    ("period", "now", "ends"),
    [
        ("22:00-07:00", "2026-01-05T21:59:59", None),
        ("22:00-07:00", "2026-01-05T22:00", "2026-01-06T07:00"),
        ("22:00-07:00", "2026-01-06T06:59:59", "2026-01-06T07:00"),
        ("22:00-07:00", "2026-01-06T07:00", None),
        ("12:30-14:00", "2026-01-06T13:00", "2026-01-06T14:00"),
        ("12:30-14:00", "2026-01-06T11:00", None),
        # The clock is set forward at 2:00 and back at 3:00.
        ("22:00-07:00", "2026-03-29T01:30", "2026-03-29T07:00"),
        ("22:00-07:00", "2026-10-25T02:30", "2026-10-25T07:00"),
        ("01:00-02:30", "2026-03-29T01:59", "2026-03-29T03:30"),
        ("off", "2026-01-05T23:00", None),
    ],
)
def test_quiet_hours_end_at_a_wall_time(period: str, now: str, ends: str | None) -> None:
    assert end_of_period(period, OSLO, at(now)) == (None if ends is None else at(ends))


async def test_in_quiet_hours_schedules_are_collected_and_reminders_come_in_time() -> None:
    clock = VirtualClock(at("2026-03-28T21:00"))
    settings = chat(quiet_hours="22:00-07:00", timezone="Europe/Oslo", chime_in=ALWAYS)
    async with a_group([Weather().function], settings=settings, model=Chatty(), clock=clock) as group:
        for line in ("30 21 * * *", "30 23 * * *", "0 5 * * *"):
            await group.say("Ann", f"/schedule {line} sky", role=Role.ADMIN)
        await group.say("Ann", "/remind at 23:45 sleep")
        before = len(group.platform.sent)

        async def come_to(moment: str) -> list[str]:
            while clock.now() < at(moment):
                await clock.advance(min(60.0, (at(moment) - clock.now()).total_seconds()))
                await tick(group)
                await group.daemon.collected.send()
            await group.settle()
            return [one.text for one in group.platform.sent[before:]]

        assert await come_to("2026-03-28T21:31") == ["Blue."]
        assert not await speaks(group, "well") if clock.now() >= at("2026-03-28T22:00") else True
        assert (await come_to("2026-03-28T23:50"))[1:] == ["⏰ Ann: sleep"]
        # An addressed message is answered.
        assert await group.say("Ann", "@Rollcall hello") == ["Nice."]
        assert not await speaks(group, "well")
        # The night has one hour less.
        assert len(await come_to("2026-03-29T06:59")) == 3
        assert (await come_to("2026-03-29T07:01"))[3:] == ["Blue.\n\nBlue."]
        assert (await reasons(group)).count(("collected", "sky")) == 2


async def test_what_was_collected_survives_a_crash(tmp_path: Path) -> None:
    clock, settings = VirtualClock(at("2026-01-05T23:00")), chat(quiet_hours="22:00-07:00", timezone="Europe/Oslo")
    async with a_group([Weather().function], settings=settings, home=tmp_path, clock=clock) as group:
        await group.say("Ann", "/schedule 0 5 * * * sky", role=Role.ADMIN)
        await clock.advance(6 * HOUR + 1)
        await tick(group)
        await group.crash()
    async with a_group([Weather().function], settings=settings, home=tmp_path, clock=clock) as group:
        await group.settle()
        await group.daemon.collected.send()
        await group.settle()
        assert group.platform.sent == []
        await clock.advance(2 * HOUR)
        for _ in range(2):
            await group.daemon.collected.send()
            await group.settle()
        assert [one.text for one in group.platform.sent] == ["Blue."]


async def test_an_admin_sets_the_quiet_hours() -> None:
    async with a_group() as group:
        [said] = await group.say("Ann", "/settings quiet_hours 22:00-07:00", role=Role.ADMIN)
        assert said.startswith("quiet_hours: 22:00-07:00")
        assert group.daemon.chats.quiet_until(FAMILY, at("2026-01-05T23:30")) is not None
        allowed = EN.say("settings.allowed.quiet_hours")
        said = EN.say("settings.bad_value", name="quiet_hours", allowed=allowed)
        assert await group.say("Ann", "/settings quiet_hours 25:00-7", role=Role.ADMIN) == [said]


# Mutes


async def test_a_muted_bot_answers_commands_only_until_its_time_is_over(tmp_path: Path) -> None:
    note = Recorder("note", commands=["note"], gives="noted")
    async with a_group([note.spec], home=tmp_path, model=Chatty()) as group:
        [said] = await group.say("Mod", "/mute", role=Role.MODERATOR)
        assert "10:00" in said
        assert await group.say("Ann", "@Rollcall hello") == []
        assert await last_reason(group) == ("muted", "/unmute")
        assert await group.say("Ann", "/note") == ["noted"]
        clock = group.clock
    await clock.advance(HOUR - 1)
    async with a_group([note.spec], home=tmp_path, model=Chatty(), clock=clock) as group:
        assert await group.say("Ann", "@Rollcall hello") == []
        await clock.advance(1)
        assert await group.say("Ann", "@Rollcall hello") == ["Nice."]


async def test_while_it_is_muted_reminders_come_and_schedules_wait() -> None:
    async with a_group([Weather().function]) as group:
        await group.say("Ann", "/schedule 30 9 * * * sky", role=Role.ADMIN)
        await group.say("Ann", "/remind in 20 minutes tea")
        await group.say("Ann", "/mute 1 hour", role=Role.MODERATOR)
        await group.clock.advance(HOUR / 3)
        assert await tick(group) == ["⏰ Ann: tea"]
        await group.clock.advance(HOUR / 6 + 1)
        assert await tick(group) == []
        await group.daemon.collected.send()
        await group.settle()
        before = len(group.platform.sent)
        assert await group.say("Ann", "/unmute", role=Role.MODERATOR) == [EN.say("quiet.unmuted")]
        await group.daemon.collected.send()
        await group.settle()
        assert [one.text for one in group.platform.sent[before + 1 :]] == ["Blue."]
        assert await group.say("Ann", "/unmute", role=Role.MODERATOR) == [EN.say("quiet.was_not_muted")]


@pytest.mark.parametrize(
    ("line", "end"),
    [
        ("/mute 30m", "09:30"),
        ("/mute until 18:00", "18:00"),
        ("/静音 两小时", "11:00"),
        ("/mute for 90 minutes", "10:30"),
    ],
)
async def test_a_mute_ends_when_it_was_said(line: str, end: str) -> None:
    async with a_group() as group:
        [said] = await group.say("Mod", line, role=Role.MODERATOR)
        assert end in said


@pytest.mark.parametrize("line", ["/mute a lot", "/mute 8 days", "/mute every monday", "/mute yesterday"])
async def test_what_is_no_time_mutes_nothing(line: str) -> None:
    async with a_group(model=Chatty()) as group:
        await group.say("Mod", line, role=Role.MODERATOR)
        assert await group.say("Ann", "@Rollcall hello") == ["Nice."]


@pytest.mark.parametrize("line", ["/mute", "/unmute"])
async def test_only_moderators_mute(line: str) -> None:
    async with a_group(model=Chatty()) as group:
        await group.say("Ann", line)
        assert await last_reason(group) == ("refused", f"functions.{line[1:]}.roles")


@pytest.mark.parametrize("text", ["@Rollcall be quiet for an hour", "@Rollcall 安静一小时"])
async def test_the_offline_model_and_any_other_know_the_words_for_it(text: str) -> None:
    async with a_group() as group:
        group.model.says(call("mute", until="an hour"), "")
        assert "10:00" in (await group.say("Mod", text, role=Role.MODERATOR))[0]
    async with a_group(model=OfflineModel(Texts())) as group:
        said = await group.say("Mod", text, role=Role.MODERATOR)
        assert "10:00" in said[0]
