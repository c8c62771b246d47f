"""Daily budgets of members and chats in a whole daemon, and shares with concurrent requests."""

from __future__ import annotations

import asyncio
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from sqlalchemy import select

from bot.database.opening import open_store
from bot.testing import Group, Step, call
from config.settings import Settings
from config.texts import Texts
from function_calls.call import Call
from function_calls.context import MessageContext
from services.clock import VirtualClock
from services.llm.model import ModelAnswer, ModelError, ModelRequest, Usage
from services.refs import ChatRef, ErrorCode, Role
from services.store.port import Conflict, Statement
from services.store.turns import budgets
from services.store.turns.budgets import BUDGETS
from tests.bot.cli.running import a_settings_file, command
from tests.fakes.full_disk import FullDisk
from tests.fakes.functions import CITY, Recorder
from tests.fakes.held import Held, until
from tests.fakes.kept import reasons
from tests.fakes.slow_commit import SlowCommit
from tests.fakes.wired_model import a_group, over_each_protocol
from tests.fakes.wired_model import each_protocol as each_protocol

EN = Texts().of("en")
OTHERS = ChatRef("test", "bot", "others")
SPENT_BY_ANN = EN.say("budgets.model_member", name="Ann")
SPENT_HERE = EN.say("budgets.model_chat")


async def used(group: Group) -> dict[tuple[str, str], int]:
    """Today's use of limits, by holder and kind."""
    await group.daemon.store.commit([])
    rows = await group.daemon.store.read(Statement("tests.budgets", select(BUDGETS)).query())
    return {
        (row["holder"], row["kind"]): row["used"] for row in rows if not row["holder"].startswith(("told ", "usage "))
    }


class Endless:
    """A model that never answers."""

    name = "endless"

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        self.asked.set()
        await asyncio.Event().wait()
        return ModelAnswer()

    async def probe(self) -> str:
        return ""

    async def close(self) -> None:
        return None


def answered(text: str, prompt: int, completion: int, by: str = "") -> ModelAnswer:
    return ModelAnswer(text, usage=Usage(prompt, completion), by=by)


def budget(**shares: Any) -> dict[str, Any]:
    return {"budgets": shares}


async def ask(group: Group, who: str, *steps: Step, **facts: Any) -> list[str]:
    group.model.says(*steps)
    return await group.say(who, "@Rollcall hello", **facts)


async def test_a_member_over_the_limit_hears_it_once_while_others_and_commands_go_on() -> None:
    async with a_group(settings=budget(member={"requests": 1})) as group:
        assert await ask(group, "Ann", "Hi Ann.") == ["Hi Ann."]
        assert await group.say("Ann", "@Rollcall hello") == [SPENT_BY_ANN]
        assert await group.say("Ann", "@Rollcall hello") == []
        assert await ask(group, "Bob", "Hi Bob.") == ["Hi Bob."]
        assert await group.say("Ann", "/calc 6*7") == ["6*7 = 42"]
        assert (await reasons(group))[1:3] == [("over_budget", "budgets.member.requests")] * 2
        assert len(group.model.requests) == 2


async def test_a_chat_over_the_limit_leaves_other_chats_alone() -> None:
    async with a_group(settings=budget(chat={"requests": 1})) as group:
        assert await ask(group, "Ann", "Hi.") == ["Hi."]
        assert await group.say("Bob", "@Rollcall hello") == [SPENT_HERE]
        assert await group.say("Ann", "@Rollcall hello") == []
        assert await ask(group, "Bob", "Hi.", chat=OTHERS) == ["Hi."]


async def test_what_one_member_was_told_in_private_the_group_and_others_have_not_heard() -> None:
    async with a_group(settings=budget(chat={"requests": 0})) as group:
        assert await group.say("Ann", "@Rollcall hello", private=True) == [SPENT_HERE]
        assert await group.say("Ann", "@Rollcall hello", private=True) == []
        assert await group.say("Cleo", "@Rollcall hello", private=True) == [SPENT_HERE]
        assert await group.say("Bob", "@Rollcall hello") == [SPENT_HERE]
        assert await group.say("Ann", "@Rollcall hello") == []


async def test_a_day_begins_at_midnight_in_the_time_zone_of_the_chat() -> None:
    clock = VirtualClock(datetime(2026, 3, 1, 15, 30, tzinfo=UTC))
    shanghai = {"timezone": "Asia/Shanghai", **budget(member={"requests": 1})}
    async with a_group(settings=shanghai, clock=clock) as group:
        await ask(group, "Ann", "Hi.")
        await clock.advance(29 * 60)
        assert await group.say("Ann", "@Rollcall hello") == [SPENT_BY_ANN]
        await clock.advance(60)
        assert await ask(group, "Ann", "Good morning.") == ["Good morning."]


async def test_tokens_are_settled_by_what_the_provider_counted() -> None:
    async with a_group(settings=budget(member={"tokens": 100_000}, chat={"tokens": 100_000})) as group:
        await ask(group, "Ann", answered("Hi.", 300, 20))
        await ask(group, "Bob", answered("Hi.", 400, 30))
        assert await used(group) == {
            ("member test:bot:ann", "tokens"): 320,
            ("member test:bot:bob", "tokens"): 430,
            ("chat test:bot:family", "tokens"): 750,
        }


async def test_every_round_of_a_turn_is_counted() -> None:
    climate = Recorder("climate", CITY, gives="cold")
    calls = ModelAnswer(calls=(call("climate", city="Oslo"),), usage=Usage(100, 10))
    async with a_group([climate.spec], settings=budget(member={"requests": 9, "tokens": 100_000})) as group:
        await ask(group, "Ann", calls, answered("Cold.", 200, 20))
        assert await used(group) == {
            ("member test:bot:ann", "requests"): 2,
            ("member test:bot:ann", "tokens"): 330,
        }


async def test_what_functions_did_is_said_before_the_budget_ends_the_turn() -> None:
    act = Recorder("act", effect="once", gives="Booked.")
    async with a_group([act.spec], settings=budget(member={"requests": 1})) as group:
        assert await ask(group, "Ann", call("act")) == ["Booked.", SPENT_BY_ANN]


@pytest.mark.requirement("D28")
@over_each_protocol
async def test_results_and_effects_are_both_reported_when_the_budget_ends_the_turn() -> None:
    add, rain = Recorder("add", effect="idempotent", gives="Added."), Recorder("rain", gives="It rains.")
    async with a_group([add.spec, rain.spec], settings=budget(member={"requests": 1})) as group:
        group.model.says([call("add"), call("rain")])
        assert await group.say("Ann", "@Rollcall both") == ["Added.", "It rains.", SPENT_BY_ANN]


@pytest.mark.requirement("D28")
@over_each_protocol
@pytest.mark.parametrize(("prompt", "completion"), [(0, 0), (100_000_000, 5), (10, 100_000_000)])
async def test_a_count_that_cannot_be_true_costs_no_more_than_the_estimate(prompt: int, completion: int) -> None:
    async with a_group(settings=budget(chat={"tokens": 50_000})) as group:
        await ask(group, "Ann", answered("Hi.", prompt, completion))
        assert 500 < (await used(group))["chat test:bot:family", "tokens"] < 20_000
        assert await ask(group, "Ann", "Hi again.") == ["Hi again."]


async def test_a_request_that_is_stopped_keeps_what_was_taken_since_the_provider_may_bill_it() -> None:
    model = Endless()
    async with a_group(settings=budget(member={"requests": 5}), model=model) as group:
        await group.hear("Ann", "@Rollcall tell me a long story")
        await model.asked.wait()
        await group.say("Ann", "/stop")
        assert await used(group) == {("member test:bot:ann", "requests"): 1}


@pytest.mark.requirement("D28")
@over_each_protocol
async def test_money_is_counted_by_the_prices_of_the_model_that_answered() -> None:
    prices = {"dear": {"prompt": 10, "completion": 30}, "cheap": {"prompt": 1, "completion": 2}}
    async with a_group(settings=budget(member={"money": 0.5}, prices=prices)) as group:
        await ask(group, "Ann", answered("Hi.", 1000, 100, by="cheap"))
        assert await used(group) == {("member test:bot:ann", "money"): 1200}
        await ask(group, "Ann", answered("Hi.", 1000, 100, by="dear"))
        assert await used(group) == {("member test:bot:ann", "money"): 1200 + 13_000}


async def test_a_model_that_could_not_be_asked_costs_nothing() -> None:
    async with a_group(settings=budget(member={"requests": 1, "tokens": 100_000})) as group:
        await ask(group, "Ann", ModelError(ErrorCode.TRANSIENT, "down"))
        assert set((await used(group)).values()) == {0}
        assert await ask(group, "Ann", "Hi.") == ["Hi."]


async def test_a_restart_keeps_what_is_used(tmp_path: Path) -> None:
    shares = budget(member={"requests": 1})
    async with a_group(settings=shares, home=tmp_path) as group:
        await ask(group, "Ann", "Hi.")
        assert await group.say("Ann", "@Rollcall hello") == [SPENT_BY_ANN]
    async with a_group(settings=shares, home=tmp_path) as group:
        assert await group.say("Ann", "@Rollcall hello") == []
        assert group.model.requests == []


@pytest.mark.requirement("D28")
@over_each_protocol
async def test_a_turn_that_goes_on_after_a_crash_is_settled_once(tmp_path: Path) -> None:
    held, again = Held(effect="idempotent"), Held(effect="idempotent")
    again.let_go()
    shares = budget(member={"requests": 9, "tokens": 100_000})
    async with a_group([held.spec], settings=shares, home=tmp_path) as group:
        group.model.says(ModelAnswer(calls=(call("hold", text="it"),), usage=Usage(100, 10)))
        await group.hear("Ann", "@Rollcall hold it")
        await held.has_begun("it")
        before = await used(group)
        await group.crash()
    async with a_group([again.spec], settings=shares, home=tmp_path) as group:
        group.model.says(answered("Done.", 50, 5))
        await group.settle()
        after = await used(group)
        assert "today 2× asked, 165 tokens" in (await group.say("Ann", "/usage"))[0]
    assert before == {("member test:bot:ann", "requests"): 1, ("member test:bot:ann", "tokens"): 110}
    assert after == {("member test:bot:ann", "requests"): 2, ("member test:bot:ann", "tokens"): 165}


@pytest.mark.parametrize("path", ["command", "model"])
async def test_a_function_that_costs_is_refused_when_its_units_are_used_up(path: str) -> None:
    dig = Recorder("dig", CITY, commands=["dig"], gives="found")
    shares = budget(member={"units": 5}, functions={"dig": 2})
    async with a_group([dig.spec], settings=shares) as group:
        for _ in range(3):
            if path == "model":
                await ask(group, "Ann", call("dig", city="Oslo"), "Done.")
            else:
                await group.say("Ann", "/dig Oslo")
        assert len(dig.runs) == 2
        assert (await used(group))["member test:bot:ann", "units"] == 4
        assert await group.say("Bob", "/dig Oslo") == ["found"]


async def test_the_refusal_of_a_command_is_said_once_a_day() -> None:
    dig = Recorder("dig", commands=["dig"], gives="found")
    async with a_group([dig.spec], settings=budget(member={"units": 1}, functions={"dig": 1})) as group:
        said = [await group.say("Ann", "/dig") for _ in range(3)]
        assert said == [["found"], [EN.say("budgets.units_member", name="dig")], []]
        assert (await reasons(group))[1:] == [("over_budget", "budgets.member.units")] * 2


async def test_whoever_answers_a_question_hears_of_the_refusal_though_the_chat_was_told() -> None:
    dig = Recorder("dig", commands=["dig"], gives="found", confirm="Really?")
    async with a_group([dig.spec], settings=budget(chat={"units": 1}, functions={"dig": 1})) as group:
        spent = EN.say("budgets.units_chat", name="dig")
        assert [await group.say(who, "/dig") for who in ("Ann", "Bob")] == [["Really?"]] * 2
        assert await group.say("Ann", "yes") == ["found"]
        assert [await group.say("Cleo", "/dig") for _ in range(2)] == [[spent], []]
        assert await group.say("Bob", "yes") == [spent]


async def test_a_refusal_that_a_model_keeps_to_itself_is_said_all_the_same_once_a_day() -> None:
    dig = Recorder("dig", gives="found")
    spent = EN.say("budgets.units_member", name="dig")
    async with a_group([dig.spec], settings=budget(member={"units": 0}, functions={"dig": 1})) as group:
        assert await ask(group, "Ann", call("dig"), "I found nothing.") == ["I found nothing.", spent]
        assert await ask(group, "Ann", call("dig"), "Nothing again.") == ["Nothing again."]
    async with a_group([dig.spec], settings=budget(member={"units": 0}, functions={"dig": 1})) as group:
        assert await ask(group, "Ann", call("dig"), f"Sorry! {spent}") == [f"Sorry! {spent}"]


async def test_a_refusal_that_a_function_kept_to_itself_was_not_said() -> None:
    async def does_without(context: MessageContext, arguments: dict[str, Any], own: Call) -> str:
        await own.invoke("dig", {})
        return "without"

    dig = Recorder("dig", commands=["dig"], gives="found")
    outer = Recorder("outer", does=does_without, commands=["outer"])
    settings = budget(member={"units": 0}, functions={"dig": 1})
    async with a_group([dig.spec, outer.spec], settings=settings) as group:
        assert await group.say("Ann", "/outer") == ["without"]
        said = [await group.say("Ann", "/dig") for _ in range(2)]
        assert said == [[EN.say("budgets.units_member", name="dig")], []]


async def test_a_model_that_is_asked_no_second_time_does_not_use_up_the_sentence_about_the_limit() -> None:
    async with a_group(settings=budget(member={"requests": 1})) as group:
        [doubted] = await ask(group, "Ann", "I've set a reminder for you.")
        assert doubted != SPENT_BY_ANN
        assert [await group.say("Ann", "@Rollcall hello") for _ in range(2)] == [[SPENT_BY_ANN], []]


async def test_the_sentence_about_a_limit_outlives_a_crash_before_it_was_said(tmp_path: Path) -> None:
    settings, slow = budget(member={"requests": 0}), SlowCommit("outbox.put")
    async with a_group(settings=settings, home=tmp_path, around_store=slow.under) as group:
        await group.hear("Ann", "@Rollcall hello")
        await slow.holds_a_commit()
        await group.crash()
    async with a_group(settings=settings, home=tmp_path) as group:
        await group.settle()
        assert [one.text for one in group.platform.sent] == [SPENT_BY_ANN]
        assert await group.say("Ann", "@Rollcall hello") == []


@pytest.mark.parametrize("effect", ["read", "idempotent"])
@pytest.mark.parametrize("path", ["command", "model", "yes"])
async def test_a_run_that_is_repeated_after_a_crash_is_paid_for_once(path: str, effect: str, tmp_path: Path) -> None:
    held, again = Held(effect=effect), Held(effect=effect)
    again.let_go()
    settings = budget(member={"units": 1}, functions={"hold": 1})
    if path == "yes":
        settings["approvals"] = {"required": [{"functions": ["hold"], "by": "admin"}]}
    async with a_group([held.spec], settings=settings, home=tmp_path) as group:
        group.model.says(call("hold", text="it"))
        await group.hear("Ann", "@Rollcall hold it" if path == "model" else "/hold it")
        if path == "yes":
            await group.settle()
            [question] = group.platform.sent
            await group.hear("Bob", f"approve {question.text.rpartition('#')[2][:5]}", role=Role.ADMIN)
        await held.has_begun("it")
        await group.crash()
    async with a_group([again.spec], settings=settings, home=tmp_path) as group:
        group.model.says("There.")
        await group.settle()
        assert again.begun == ["it"]
        assert (await used(group))["member test:bot:ann", "units"] == 1
        assert await group.say("Ann", "/hold more") != ["done: more"]
        assert len(again.begun) == 1


@pytest.mark.parametrize("effect", ["read", "idempotent", "once"])
async def test_a_run_that_had_to_wait_for_room_on_the_disk_is_paid_for_once(effect: str) -> None:
    disk, held, dig = FullDisk(), Held(), Recorder("dig", gives="found", effect=effect)
    settings = budget(member={"units": 1}, functions={"dig": 1})
    async with a_group([held.spec, dig.spec], settings=settings, around_store=disk.under) as group:
        group.model.says([call("hold", text="it"), call("dig")], "There.")
        await group.hear("Ann", "@Rollcall hold it and search")
        await held.has_begun("it")
        disk.is_full = True
        held.let_go()
        await until(lambda: disk.refused > 0)
        disk.is_full = False
        await group.clock.advance(5)
        await group.settle()
        assert len(dig.runs) == 1
        assert (await used(group))["member test:bot:ann", "units"] == 1


@pytest.mark.parametrize("effect", ["read", "idempotent", "once"])
async def test_chats_at_once_cannot_take_the_same_rest(effect: str) -> None:
    dig = Recorder("dig", commands=["dig"], gives="found", effect=effect)
    async with a_group([dig.spec], settings=budget(member={"units": 3}, functions={"dig": 1})) as group:
        rooms = [ChatRef("test", "bot", f"room{number}") for number in range(10)]
        await asyncio.gather(*(group.hear("Ann", "/dig", chat=room) for room in rooms))
        await group.settle()
        assert len(dig.runs) == 3
        assert (await used(group))["member test:bot:ann", "units"] == 3
        said = sorted(one.text for one in group.platform.sent)
        assert said == sorted(["found"] * 3 + [EN.say("budgets.units_member", name="dig")] * 7)


async def test_a_hundred_requests_at_once_stay_within_the_limit() -> None:
    async with a_group(settings=budget(member={"requests": 7})) as group:
        group.model.says(*["Hi."] * 100)
        rooms = [ChatRef("test", "bot", f"room{number}") for number in range(100)]
        await asyncio.gather(*(group.hear("Ann", "@Rollcall hello", chat=room) for room in rooms))
        await group.settle()
        assert len(group.model.requests) == 7
        assert (await used(group))["member test:bot:ann", "requests"] == 7


async def test_an_operator_sees_what_is_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clock = VirtualClock(datetime.now(UTC))
    home = tmp_path / "var"
    async with a_group(settings=budget(member={"requests": 1}, chat={"tokens": 900}), home=home, clock=clock) as group:
        await ask(group, "Ann", answered("Hi.", 100, 20))
        await group.say("Ann", "@Rollcall hello")
    printed = await asyncio.to_thread(command, capsys, "stats", "--config", a_settings_file(tmp_path))
    rows = [line.split()[1:] for line in printed.out.splitlines() if line.startswith("20")]
    limited = [row for row in rows if row[0] != "usage"]
    assert limited == [["chat", "test:bot:family", "tokens", "120"], ["member", "test:bot:ann", "requests", "1"]]


async def test_without_budgets_nothing_is_reserved() -> None:
    async with a_group() as group:
        await ask(group, "Ann", answered("Hi.", 10, 10))
        assert await used(group) == {}


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.lists(st.integers(1, 60), min_size=1, max_size=6)),
        st.tuples(st.just("settle"), st.lists(st.integers(-80, 0), min_size=1, max_size=3)),
    ),
    max_size=12,
)


@effort(max_examples=30, deadline=None)
@given(_STEPS)
def test_a_share_is_never_overdrawn_nor_negative_whatever_is_taken_at_once(
    steps: list[tuple[str, list[int]]],
) -> None:
    most = 100

    async def run(home: Path) -> None:
        store = await open_store(Settings.model_validate({"home": str(home)}), VirtualClock())
        expected = 0
        try:
            for kind, amounts in steps:
                make = (
                    (lambda amount: budgets.take("member a", "tokens", "2026-01-05", amount, most))
                    if kind == "take"
                    else (lambda amount: budgets.settle("member a", "tokens", "2026-01-05", amount))
                )
                results = await asyncio.gather(
                    *(store.commit([make(amount)]) for amount in amounts), return_exceptions=True
                )
                for amount, result in zip(amounts, results, strict=True):
                    if isinstance(result, Conflict):
                        assert expected + amount > most
                    else:
                        expected = max(0, expected + amount)
                rows = await store.read(budgets.used("member a", "2026-01-05"))
                assert [row["used"] for row in rows] in ([expected], [])
                assert 0 <= expected <= most
        finally:
            await store.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))
