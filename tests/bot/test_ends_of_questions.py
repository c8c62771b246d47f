"""A run that has asked a question ends exactly once, even if it must not resume. In that case it cannot call functions,
and its messages are dropped."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

from bot.testing import FAMILY, Group, TestPlatform, a_group, call
from config.texts import Texts
from function_calls.context import Kind
from function_calls.spec import FunctionResult
from services.clock import VirtualClock
from services.refs import MemberRef, Role
from services.store.turns.pending import PENDING
from tests.bot.test_approvals import ADMIN, code_in
from tests.bot.test_handler_questions import BEGAN, expire, until_dead
from tests.bot.test_reload import reload
from tests.fakes.asking import Asking
from tests.fakes.dying_store import DyingStore
from tests.fakes.functions import CITY, Recorder
from tests.fakes.kept import kept, last_reason

EN = Texts().of("en")
ANN = MemberRef("test", "bot", "ann")
ANSWERED, CANCELLED, EXPIRED = ("answered", "Ann"), ("cancelled", ""), ("expired", "")
BY_ADMIN = {"functions": {"fill": {"approval": "admin"}}}
NOT_IN_TIME = EN.say("approvals.expired", function="fill")


async def held_up(group: Group, **facts: Any) -> str:
    """Ann is asked, then an approval becomes necessary, and Ann answers. Returns the code of the approval question."""
    await group.say("Ann", "/fill", **facts)
    assert await reload(group, **BY_ADMIN)
    return code_in(await group.say("Ann", "Ann", **facts))


# -- an approval that was not necessary when the run asked


@pytest.mark.requirement("C18", "C25")
async def test_a_yes_that_has_come_to_be_needed_lets_the_run_go_on_where_it_was(tmp_path: Path) -> None:
    fill = Asking(questions=["Name?", "Age?"], effect="once")
    async with a_group([fill.spec], home=tmp_path) as group:
        code = await held_up(group)
        assert fill.runs == [BEGAN]
    async with a_group([fill.spec], home=tmp_path, settings=BY_ADMIN) as group:
        assert await group.say("Bob", f"approve {code}", **ADMIN) == ["Age?"]
        assert await group.say("Ann", "7") == ["Thanks: Ann, 7."]
    assert fill.runs == [BEGAN, ANSWERED, ("answered", "7")]


@pytest.mark.requirement("C25")
async def test_a_no_to_it_ends_the_run_as_cancelled() -> None:
    fill = Asking(effect="once")
    async with a_group([fill.spec]) as group:
        code = await held_up(group)
        said = await group.say("Bob", f"reject {code}", **ADMIN)
        assert said == [EN.say("approvals.rejected", name="Bob", function="fill")]
        await expire(group, 4000)
    assert fill.runs == [BEGAN, CANCELLED]


@pytest.mark.requirement("C25")
async def test_no_answer_to_it_ends_the_run_as_expired_and_is_told_once(tmp_path: Path) -> None:
    fill = Asking(effect="once")
    async with a_group([fill.spec], home=tmp_path) as group:
        await held_up(group)
        clock = group.clock
    await clock.advance(4000)
    async with a_group([fill.spec], home=tmp_path, clock=clock, settings=BY_ADMIN) as group:
        await expire(group, 0)
        await expire(group, 0)
        assert [one.text for one in group.platform.sent] == [NOT_IN_TIME]
        assert await last_reason(group) == ("expired", "fill")
        assert {state for (state,) in await kept(group, PENDING.c.state)} == {"answered", "expired"}
    assert fill.runs == [BEGAN, EXPIRED]


async def test_a_request_that_is_deleted_ends_the_run_that_waits_for_a_yes() -> None:
    fill = Asking(effect="once")
    async with a_group([fill.spec]) as group:
        await group.say("Ann", "/fill")
        assert await reload(group, **BY_ADMIN)
        await group.say("Ann", "Ann", id="m7")
        await group.say("Ann", "", id="m7", kind=Kind.DELETE)
        await expire(group, 0)
    assert fill.runs == [BEGAN, EXPIRED]


async def test_with_a_model_the_rounds_go_on_from_the_yes_and_know_what_was_said() -> None:
    fill = Asking(effect="once", commands=[])
    async with a_group([fill.spec]) as group:
        group.model.says(call("fill"))
        assert await group.say("Ann", "@Rollcall fill it in please") == ["Your name?"]
        assert await reload(group, **BY_ADMIN)
        code = code_in(await group.say("Ann", "Ann"))
        group.model.says("All done.")
        said = await group.say("Bob", f"approve {code}", **ADMIN)
        assert said[-1] == "All done."
        told = group.model.requests[-1].messages[-1].content
    assert '"said_in_chat":["Your name?"' in told
    assert fill.runs == [BEGAN, ANSWERED]


async def test_within_another_function_it_goes_on_by_the_way_that_led_there() -> None:
    async def passes_on(context: Any, arguments: Any, own: Any) -> FunctionResult:
        result: FunctionResult = await own.invoke("fill", {"city": "Oslo"})
        return result

    fill = Asking(parameters=CITY, commands=[], offered_to=["model"], effect="once")
    outer = Recorder("outer", does=passes_on, commands=["outer"], effect="once")
    async with a_group([fill.spec, outer.spec]) as group:
        await group.say("Ann", "/outer")
        assert await reload(group, **BY_ADMIN)
        code = code_in(await group.say("Ann", "Ann"))
        assert await group.say("Bob", f"approve {code}", **ADMIN) == ["Thanks: Ann."]
    assert fill.runs == [BEGAN, ANSWERED]
    assert len(outer.runs) == 1


async def test_it_is_neither_paid_for_nor_judged_by_its_own_reading_twice() -> None:
    fill = Asking(effect="once", touches=["reads_outside", "reaches_out"])
    settings = {"budgets": {"member": {"units": 3}, "functions": {"fill": 2}}}
    async with a_group([fill.spec], settings=settings) as group:
        await group.say("Ann", "/fill")
        assert await reload(group, **settings, **BY_ADMIN)
        code = code_in(await group.say("Ann", "Ann"))
        assert await group.say("Bob", f"approve {code}", **ADMIN) == ["Thanks: Ann."]
    assert fill.runs == [BEGAN, ANSWERED]


async def test_a_yes_for_somebody_who_may_not_any_more_only_ends_the_run() -> None:
    fill = Asking(effect="once", roles="moderator")
    async with a_group([fill.spec]) as group:
        code = await held_up(group, role=Role.MODERATOR)
        group.platform.roles[ANN] = Role.MEMBER
        said = await group.say("Bob", f"approve {code}", **ADMIN)
        assert said == [EN.say("refusals.role", name="/fill", detail="moderator")]
    assert fill.runs == [BEGAN, EXPIRED]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("at", range(7, 14))
async def test_after_any_crash_such_a_run_resumes_once_or_is_reported_as_unknown(
    tmp_path: Path, at: int, when: Literal["before", "after"]
) -> None:
    fill = Asking(effect="once")
    platform, store, clock = TestPlatform(), DyingStore(at, when), VirtualClock()

    async def allowed(group: Group, code: str) -> None:
        await group.say("Bob", f"approve {code}", id="x3", **ADMIN)

    async with a_group([fill.spec], home=tmp_path, platform=platform, clock=clock) as group:
        code = await held_up(group)
    settings: dict[str, Any] = {"settings": BY_ADMIN, "home": tmp_path, "platform": platform, "clock": clock}
    async with a_group([fill.spec], around_store=store.around, **settings) as group:
        await until_dead(store, allowed(group, code))
        await group.crash()
    async with a_group([fill.spec], **settings) as group:
        await group.settle()
        await allowed(group, code)
    last = platform.sent[-1].text
    unknown = EN.say("failures.unknown_outcome", name="/fill")
    assert fill.runs.count(ANSWERED) <= 1
    assert fill.runs.count(BEGAN) == 1
    assert last in ("Thanks: Ann.", unknown, EN.say("approvals.closed"))
    assert last == unknown or fill.runs == [BEGAN, ANSWERED]


# -- no answer, and the run must not resume


async def lose(group: Group, how: str) -> None:
    """Withdraw the right to resume."""
    if how == "role":
        group.platform.roles[ANN] = Role.MEMBER
    changes: dict[str, dict[str, Any]] = {
        "function": {"functions": {"fill": {"enabled": False}}},
        "approval": BY_ADMIN,
        "chat": {"chats": {"allow": ["*"], "settings": {FAMILY.key: {"enabled": False}}}},
        "not allowed": {"chats": {"allow": ["test:bot:other"]}},
        "functions": {"chats": {"allow": ["*"], "settings": {FAMILY.key: {"functions_on": False}}}},
    }
    if how in changes:
        assert await reload(group, **changes[how])


WAYS = ["role", "function", "approval", "chat", "not allowed", "functions"]


@pytest.mark.parametrize("how", WAYS)
async def test_a_run_that_nobody_answers_and_that_may_not_go_on_only_ends(how: str) -> None:
    note, ends = Recorder("note", effect="once"), []

    async def asks(context: Any, arguments: Any, own: Any) -> FunctionResult:
        if own.resumed is None:
            return FunctionResult.ask("Go on?")
        ends.append((own.resumed.kind, (await own.invoke("note", {})).error))
        return FunctionResult.say("Nobody is to hear this.")

    fill = Recorder("fill", does=asks, roles="moderator", effect="once")
    async with a_group([fill.spec, note.spec]) as group:
        group.model.says(call("fill"))
        assert await group.say("Ann", "@Rollcall fill it in please", role=Role.MODERATOR) == ["Go on?"]
        await lose(group, how)
        await expire(group)
        await expire(group)
        assert len(group.platform.sent) == 1
    assert [kind for kind, _ in ends] == ["expired"]
    assert ends[0][1] is not None
    assert note.runs == []


async def test_a_run_that_nobody_answers_and_that_may_go_on_may_still_call_others() -> None:
    async def asks(context: Any, arguments: Any, own: Any) -> FunctionResult:
        return FunctionResult.ask("Go on?") if own.resumed is None else await own.invoke("note", {})

    fill, note = Recorder("fill", does=asks, commands=["fill"], effect="once"), Recorder("note", effect="once")
    async with a_group([fill.spec, note.spec]) as group:
        await group.say("Ann", "/fill")
        await expire(group)
    assert len(note.runs) == 1


@pytest.mark.parametrize("how", ["role", "function"])
async def test_an_answer_to_a_run_that_may_not_go_on_is_refused_and_the_run_ends(how: str) -> None:
    fill = Asking(roles="moderator", effect="once")
    async with a_group([fill.spec]) as group:
        await group.say("Ann", "/fill", role=Role.MODERATOR)
        await lose(group, how)
        key, detail = {"role": ("refusals.role", "moderator"), "function": ("refusals.disabled", "")}[how]
        assert await group.say("Ann", "Ann") == [EN.say(key, name="/fill", detail=detail)]
        await expire(group)
    assert fill.runs == [BEGAN, EXPIRED]


async def test_who_cancels_a_run_that_may_not_go_on_hears_that_it_is_dropped_and_the_run_ends() -> None:
    fill = Asking(roles="moderator", effect="once")
    async with a_group([fill.spec]) as group:
        await group.say("Ann", "/fill", role=Role.MODERATOR)
        await lose(group, "role")
        assert await group.say("Ann", "cancel") == [EN.say("questions.dropped")]
    assert fill.runs == [BEGAN, CANCELLED]


async def test_a_run_that_ends_has_what_it_left_when_it_asked_whatever_held_it_up_since() -> None:
    fill = Asking(questions=["Name?", "Age?"])
    async with a_group([fill.spec]) as group:
        assert await group.say("Ann", "/fill") == ["Name?"]
        assert await group.say("Ann", "Ann") == ["Age?"]
        assert await reload(group, **BY_ADMIN)
        code_in(await group.say("Ann", "7"))
        await expire(group, 601)
    ended = fill.resumed[-1]
    assert ended is not None
    assert (ended.kind, ended.state) == ("expired", {"answers": ["Ann"]})


# -- a question that does not reach the calling function


def quiet(answer: str = "All is done.", **options: Any) -> Recorder:
    """A function that calls `fill` and hides its question."""

    async def does(context: Any, arguments: Any, own: Any) -> FunctionResult:
        await own.invoke("fill", {})
        return FunctionResult.say(answer)

    return Recorder("outer", does=does, commands=["outer"], **options)


@pytest.mark.parametrize("effect", ["idempotent", "once"])
async def test_a_question_that_the_function_around_it_keeps_to_itself_ends_its_run_at_once(effect: str) -> None:
    fill, outer = Asking(commands=[], effect="once"), quiet(effect=effect)
    async with a_group([fill.spec, outer.spec]) as group:
        assert await group.say("Ann", "/outer") == ["All is done."]
        assert fill.runs == [BEGAN, EXPIRED]
        assert await group.say("Ann", "Ann") == []
        await expire(group)
    assert fill.runs == [BEGAN, EXPIRED]


async def test_one_that_fails_after_it_was_asked_something_ends_the_run_that_asked() -> None:
    async def fails(context: Any, arguments: Any, own: Any) -> FunctionResult:
        await own.invoke("fill", {})
        raise ValueError("no")

    fill, outer = Asking(commands=[]), Recorder("outer", does=fails, commands=["outer"], effect="idempotent")
    async with a_group([fill.spec, outer.spec]) as group:
        await group.say("Ann", "/outer")
    assert fill.runs == [BEGAN, EXPIRED]


async def test_of_two_questions_the_one_that_is_passed_on_waits_and_the_other_ends() -> None:
    async def asks_both(context: Any, arguments: Any, own: Any) -> FunctionResult:
        await own.invoke("fill", {})
        second: FunctionResult = await own.invoke("fill", {})
        return second

    async def passes_on(context: Any, arguments: Any, own: Any) -> FunctionResult:
        result: FunctionResult = await own.invoke("both", {})
        return result

    fill, both = Asking(commands=[]), Recorder("both", does=asks_both, effect="idempotent")
    outer = Recorder("outer", does=passes_on, commands=["outer"], effect="idempotent")
    async with a_group([fill.spec, both.spec, outer.spec]) as group:
        assert await group.say("Ann", "/outer") == ["Your name?"]
        assert fill.runs == [BEGAN, BEGAN, EXPIRED]
        assert await group.say("Ann", "Ann") == ["Thanks: Ann."]
        await expire(group)
    assert fill.runs == [BEGAN, BEGAN, EXPIRED, ANSWERED]
