"""Runs of schedules: the usual checks, one message about a failure, and a pause for permanent errors."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest
from pydantic import BaseModel

from bot.live.settings import Reload
from bot.registration.services import PlatformMembers
from bot.testing import Group, a_group
from config.settings import Settings
from function_calls.call import Call
from function_calls.context import Kind, MessageContext
from function_calls.declaration import tool_function
from function_calls.filters.call import Invocation, Proceed
from function_calls.spec import FunctionResult, ToolError
from services.clock import VirtualClock
from services.refs import ErrorCode, MemberRef, Role
from tests.fakes.kept import last_reason
from tests.fakes.timers import tick

ADMIN = Role.ADMIN
ANN = MemberRef("test", "bot", "ann")
DAY = 86_400.0
BEFORE_SEVEN = datetime(2026, 1, 5, 6, 59, tzinfo=UTC)


class Weather:
    """A service that works or fails as the test says."""

    def __init__(self) -> None:
        self.down = ""
        self.asked = 0
        self.seen: list[MessageContext] = []

    @property
    def function(self) -> object:
        """The decorated function that uses it."""

        @tool_function(name="sky", commands=("sky",))
        async def sky(context: MessageContext) -> FunctionResult:
            """Look at the sky."""
            self.asked += 1
            self.seen.append(context)
            if self.down:
                raise ToolError(self.down, ErrorCode.TRANSIENT)
            return FunctionResult.say("Blue.")

        return sky


async def come_to(group: Group, seconds: float) -> list[str]:
    """Advance the clock; returns the bot's messages."""
    await group.clock.advance(seconds)
    return await tick(group)


async def kept_at_seven(group: Group, line: str = "sky") -> None:
    """Ann schedules a command for 7:00 every day."""
    [said] = await group.say("Ann", f"/schedule 0 7 * * * {line}", role=ADMIN)
    assert "schedule 1" in said


@pytest.mark.requirement("D45")
async def test_at_its_time_it_runs_like_a_command_day_after_day() -> None:
    weather = Weather()
    async with a_group([weather.function], clock=VirtualClock(BEFORE_SEVEN)) as group:
        await kept_at_seven(group)
        assert await come_to(group, 59) == []
        assert await come_to(group, 1) == ["Blue."]
        assert await come_to(group, DAY - 1) == []
        assert await come_to(group, 1) == ["Blue."]
        [first, _] = weather.seen
        assert (first.kind, first.sender.ref, first.sender.role) == (Kind.TIMER, ANN, ADMIN)
        assert await last_reason(group) == ("timer", "sky")


@pytest.mark.requirement("D45")
async def test_filters_and_the_log_of_calls_hold_for_it(tmp_path: Path) -> None:
    seen: list[str] = []

    async def watch(invocation: Invocation, proceed: Proceed) -> FunctionResult:
        seen.append(invocation.spec.name)
        return await proceed(invocation)

    async with a_group([Weather().function], filters=[watch], home=tmp_path, clock=VirtualClock(BEFORE_SEVEN)) as group:
        await kept_at_seven(group)
        seen.clear()
        await come_to(group, 60)
        assert seen == ["sky"]
        for log in group.daemon.logs:
            log.flush()
    lines = [orjson.loads(line) for line in (tmp_path / "logs/function_calls.jsonl").read_bytes().splitlines()]
    assert [(line["function"], line["path"], line["member"]) for line in lines[-1:]] == [("sky", "timer", ANN.key)]


@pytest.mark.requirement("D45")
async def test_a_filter_of_whole_turns_may_stop_it(tmp_path: Path) -> None:
    file = tmp_path / "classify.py"
    file.write_text("async def classify(message):\n    return 'not now' if message.timer else None\n")
    weather, filters = Weather(), {"turn": [{"classifier": {"file": str(file)}}]}
    async with a_group([weather.function], settings={"filters": filters}, clock=VirtualClock(BEFORE_SEVEN)) as group:
        await kept_at_seven(group)
        asked = weather.asked
        await come_to(group, 60)
        assert (weather.asked, await last_reason(group)) == (asked, ("filtered", "filters.turn[0].classifier: not now"))


async def test_no_model_is_asked() -> None:
    async with a_group([Weather().function], clock=VirtualClock(BEFORE_SEVEN)) as group:
        await kept_at_seven(group)
        await come_to(group, 60)
        assert group.model.requests == []


async def test_a_paused_one_does_not_run_and_a_resumed_one_does() -> None:
    async with a_group([Weather().function], clock=VirtualClock(BEFORE_SEVEN)) as group:
        await kept_at_seven(group)
        await group.say("Ann", "/schedule pause 1", role=ADMIN)
        assert await come_to(group, 60) == []
        await group.say("Ann", "/schedule resume 1", role=ADMIN)
        assert await come_to(group, DAY) == ["Blue."]


async def test_the_list_shows_how_it_went() -> None:
    weather = Weather()
    async with a_group([weather.function], clock=VirtualClock(BEFORE_SEVEN)) as group:
        await kept_at_seven(group)
        await come_to(group, 60)
        assert "; last ran today, Monday 5 January at 07:00" in (await group.say("Bo", "/schedule list"))[0]
        weather.down = "No sky."
        for _ in range(3):
            await come_to(group, DAY)
        assert "; failing since Tuesday 6 January at 07:00" in (await group.say("Bo", "/schedule list"))[0]
        weather.down = ""
        await come_to(group, DAY)
        assert "failed" not in (await group.say("Bo", "/schedule list"))[0]


async def test_a_failure_is_told_once_and_again_only_after_it_had_worked() -> None:
    weather = Weather()
    async with a_group([weather.function], clock=VirtualClock(BEFORE_SEVEN)) as group:
        await kept_at_seven(group)
        weather.down = "No sky."
        told = [
            "⏰ Schedule 1 (/sky) didn't work: No sky.\n"
            "I'll try again next time, and won't mention it again until it works."
        ]
        assert await come_to(group, 60) == told
        assert await come_to(group, DAY) == []
        assert await last_reason(group) == ("function_failed", "sky")
        assert await come_to(group, DAY) == []
        weather.down = ""
        assert await come_to(group, DAY) == ["Blue."]
        weather.down = "No sky."
        assert await come_to(group, DAY) == told
        assert weather.asked == 5


async def test_a_row_of_failures_is_known_after_a_restart(tmp_path: Path) -> None:
    weather, clock = Weather(), VirtualClock(BEFORE_SEVEN)
    weather.down = "No sky."
    async with a_group([weather.function], home=tmp_path, clock=clock) as group:
        await kept_at_seven(group)
        assert len(await come_to(group, 60)) == 1
    async with a_group([weather.function], home=tmp_path, clock=clock) as group:
        assert await come_to(group, DAY) == []


async def test_why_explains_a_run_that_said_nothing() -> None:
    weather = Weather()
    async with a_group([weather.function], clock=VirtualClock(BEFORE_SEVEN)) as group:
        await kept_at_seven(group)
        weather.down = "No sky."
        await come_to(group, 60)
        await come_to(group, DAY)
        [said] = await group.say("Bo", "/why")
        assert "/sky" in said
        assert "something failed" in said


@tool_function(name="sweep", commands=("sweep",), roles="admin", effect="idempotent")
async def sweep(context: MessageContext) -> FunctionResult:
    """Something for admins alone."""
    return FunctionResult.say("Swept.")


async def test_who_is_no_admin_any_more_runs_nothing_of_admins_and_it_is_paused() -> None:
    async with a_group([sweep], clock=VirtualClock(BEFORE_SEVEN)) as group:
        await kept_at_seven(group, "sweep")
        assert await come_to(group, 60) == ["Swept."]
        group.platform.roles[ANN] = Role.MEMBER
        assert await come_to(group, DAY) == [
            "⏰ The schedule for /sweep couldn't run: Only admins and above can use “/sweep”.\n"
            "I have paused it. To start it again, send /schedule resume 1."
        ]
        assert await come_to(group, DAY) == []
        group.platform.roles[ANN] = ADMIN
        await group.say("Ann", "/schedule resume 1", role=ADMIN)
        assert await come_to(group, DAY) == ["Swept."]


async def test_what_the_network_tells_no_role_of_has_no_privilege_and_loses_nothing() -> None:
    async with a_group([sweep], clock=VirtualClock(BEFORE_SEVEN)) as group:
        await kept_at_seven(group, "sweep")
        del group.platform.roles[ANN]
        [said] = await come_to(group, 60)
        assert "Only admins and above can use “/sweep”, and I can't check right now" in said
        assert "I'll try again next time" in said
        group.platform.roles[ANN] = ADMIN
        assert await come_to(group, DAY) == ["Swept."]


async def test_a_limit_that_passes_in_a_minute_pauses_nothing() -> None:
    entries = {name: {"chat": "test:bot:family", "when": "0 7 * * *", "run": f"calc {name}"} for name in ("1", "2")}
    limits = {"call": [{"limits": {"calls_per_minute": 1, "counted_by": "chat"}}]}
    settings = {"schedules": {f"n{name}": entry for name, entry in entries.items()}, "filters": limits}
    async with a_group(settings=settings, clock=VirtualClock(BEFORE_SEVEN)) as group:
        said = await come_to(group, 60)
        assert len(said) == 2
        assert "Please wait a minute" in said[1]
        assert "paused" not in (await group.say("Bo", "/schedule list"))[0]
        assert await come_to(group, DAY) == [said[0]]


async def test_a_function_that_was_switched_off_pauses_its_schedules() -> None:
    async with a_group([Weather().function], clock=VirtualClock(BEFORE_SEVEN)) as group:
        await kept_at_seven(group)
        off = Settings.model_validate({"chats": {"allow": ["*"]}, "functions": {"sky": {"enabled": False}}})
        await Reload(group.daemon.live, lambda: off).now()
        [said] = await come_to(group, 60)
        assert said.startswith(
            "⏰ The schedule for /sky couldn't run: “/sky” is switched off in this chat.\nI have paused it."
        )
        assert "; paused" in (await group.say("Bo", "/schedule list"))[0]


async def test_a_function_that_is_gone_pauses_its_schedules(tmp_path: Path) -> None:
    clock = VirtualClock(BEFORE_SEVEN)
    async with a_group([Weather().function], home=tmp_path, clock=clock) as group:
        await kept_at_seven(group)
    async with a_group(home=tmp_path, clock=clock) as group:
        [said] = await come_to(group, 60)
        assert "There is no function called “sky”." in said
        assert "I have paused it." in said


class Cups(BaseModel, frozen=True):
    """How many."""

    cups: int = 1


class ManyCups(BaseModel, frozen=True):
    """How many, and of what, which nobody was asked for."""

    cups: int
    drink: str


@tool_function(name="brew", commands=("brew",))
async def brew(context: MessageContext, args: Cups) -> FunctionResult:
    """Brew something."""
    return FunctionResult.say(f"{args.cups}.")


@tool_function(name="brew", commands=("brew",))
async def brew_anew(context: MessageContext, args: ManyCups) -> FunctionResult:
    """Brew something else."""
    return FunctionResult.say(f"{args.cups} {args.drink}.")


@tool_function(name="brew", commands=("brew",), confirm="Really?")
async def brew_with_care(context: MessageContext, args: Cups) -> FunctionResult:
    """Brew something after a question."""
    return FunctionResult.say(f"{args.cups}.")


@pytest.mark.parametrize("function", [brew_anew, brew_with_care])
async def test_what_has_begun_to_ask_something_ends_with_a_clear_word_and_is_paused(
    tmp_path: Path, function: object
) -> None:
    clock = VirtualClock(BEFORE_SEVEN)
    async with a_group([brew], home=tmp_path, clock=clock) as group:
        await kept_at_seven(group, "brew 2")
    async with a_group([function], home=tmp_path, clock=clock) as group:
        [said] = await come_to(group, 60)
        assert "It has to ask a question first" in said
        assert "I have paused it." in said
        assert await group.say("Ann", "yes", role=ADMIN) == []
        assert await come_to(group, DAY) == []


async def test_an_approval_that_was_introduced_since_pauses_it(tmp_path: Path) -> None:
    clock = VirtualClock(BEFORE_SEVEN)
    async with a_group([brew], home=tmp_path, clock=clock) as group:
        await kept_at_seven(group, "brew 2")
    needs_a_yes = {"approvals": {"required": [{"functions": ["brew"], "by": "owner"}]}}
    async with a_group([brew], settings=needs_a_yes, home=tmp_path, clock=clock) as group:
        [said] = await come_to(group, 60)
        assert "It has to ask a question first" in said
        assert group.daemon.questions.approvals_in(group.chat.key) == []


async def test_a_used_up_share_of_the_day_pauses_nothing() -> None:
    budget = {"budgets": {"chat": {"units": 1}, "functions": {"sky": 1}}}
    async with a_group([Weather().function], settings=budget, clock=VirtualClock(BEFORE_SEVEN)) as group:
        await kept_at_seven(group)
        await group.say("Bo", "/sky")
        [said] = await come_to(group, 60)
        assert "has used up its share" in said
        assert await come_to(group, DAY) == ["Blue."]


@tool_function(name="plan", commands=("plan",))
async def plan(context: MessageContext, *, call: Call) -> FunctionResult:
    """A function that would make schedules."""
    arguments = {"when": "0 8 * * *", "function": "plan", "arguments": {}}
    return (await call.invoke("schedule_create", arguments)).with_error_text("Not from here.")


async def test_what_runs_by_the_clock_makes_no_schedules() -> None:
    async with a_group([plan], clock=VirtualClock(BEFORE_SEVEN)) as group:
        await kept_at_seven(group, "plan")
        [said] = await come_to(group, 60)
        assert "Not from here." in said
        [shown] = await group.say("Bo", "/schedule list")
        assert len(shown.splitlines()) == 2


async def test_an_entry_of_the_settings_runs_with_the_role_that_they_give_it() -> None:
    entry = {"chat": "test:bot:family", "when": "0 7 * * *", "run": "sweep"}
    clock = VirtualClock(BEFORE_SEVEN)
    async with a_group([sweep], settings={"schedules": {"clean": entry}}, clock=clock) as group:
        assert await come_to(group, 60) == ["Swept."]
        less = {"chats": {"allow": ["*"]}, "schedules": {"clean": {**entry, "as_role": "member"}}}
        fresh = Settings.model_validate(less)
        await Reload(group.daemon.live, lambda: fresh).now()
        # The stored schedule continues with its current rights in the file.
        await group.daemon.settings_schedules.sync()
        [said] = await come_to(group, DAY)
        assert "Only admins and above" in said


async def test_an_entry_that_is_gone_from_the_settings_does_not_run_though_it_was_due(tmp_path: Path) -> None:
    entry = {"chat": "test:bot:family", "when": "0 7 * * *", "run": "sky"}
    clock = VirtualClock(BEFORE_SEVEN)
    async with a_group([Weather().function], settings={"schedules": {"a": entry}}, home=tmp_path, clock=clock):
        pass
    async with a_group([Weather().function], home=tmp_path, clock=clock) as group:
        assert await come_to(group, 60) == []


async def test_what_was_due_while_the_daemon_was_away_runs_once_and_says_so(tmp_path: Path) -> None:
    entry = {"chat": "test:bot:family", "when": "0 7 * * *", "run": "sky"}
    clock = VirtualClock(BEFORE_SEVEN)
    settings = {"schedules": {"a": entry}}
    async with a_group([Weather().function], settings=settings, home=tmp_path, clock=clock):
        pass
    await clock.advance(3 * 3600)
    async with a_group([Weather().function], settings=settings, home=tmp_path, clock=clock) as group:
        [said] = await come_to(group, 0)
        assert said.endswith("late: I was away.)\nBlue.")
        assert await come_to(group, 60) == []


async def test_the_role_of_an_entry_is_that_of_its_own_chat_and_no_networks_word() -> None:
    entry = {"chat": "test:bot:family", "when": "0 7 * * *", "run": "calc 1"}
    async with a_group(settings={"schedules": {"clean": entry}}) as group:
        daemon, owner = group.daemon, MemberRef("schedules", "settings", "clean")
        members = PlatformMembers(daemon.store, daemon.chats, group.deadlines, group.clock, daemon.delivery.platform)
        group.platform.roles[owner] = Role.OWNER
        assert await members.role(group.chat, owner) is ADMIN
        assert await members.role(group.chat._replace(native="work"), owner) is None
        assert await members.role(group.chat, owner._replace(native="other")) is None


async def test_what_was_made_in_private_speaks_in_private() -> None:
    async with a_group([Weather().function], clock=VirtualClock(BEFORE_SEVEN)) as group:
        await group.say("Ann", "/schedule 0 7 * * * sky", role=ADMIN, private=True)
        assert await come_to(group, 60) == ["Blue."]
        assert group.platform.sent[-1].private_to == ANN


@tool_function(name="post", commands=("post",), effect="once")
async def post(context: MessageContext) -> FunctionResult:
    """Post a letter, or perhaps not."""
    raise RuntimeError("the letter is gone")


async def test_an_effect_of_which_nobody_knows_is_told_every_time() -> None:
    async with a_group([post], clock=VirtualClock(BEFORE_SEVEN)) as group:
        await kept_at_seven(group, "post")
        told = [await come_to(group, 60), await come_to(group, DAY)]
        assert [len(one) for one in told] == [1, 1]
        assert all("can't tell whether it took effect" in one[0] for one in told)
        assert "paused" not in (await group.say("Bo", "/schedule list"))[0]


async def test_what_was_removed_before_a_crash_stays_removed(tmp_path: Path) -> None:
    clock = VirtualClock(BEFORE_SEVEN)
    async with a_group([Weather().function], home=tmp_path, clock=clock) as group:
        await kept_at_seven(group)
        await group.say("Ann", "/schedule remove 1", role=ADMIN)
        await group.crash()
    async with a_group([Weather().function], home=tmp_path, clock=clock) as group:
        assert await come_to(group, 60) == []
