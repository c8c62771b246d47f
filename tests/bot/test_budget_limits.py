"""The daily limit that applies to a request, and the amount that is finally charged."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.testing import a_group
from config.sections.bots import BudgetsSettings
from function_calls.checks.budgets import OverBudget, RequestBudgets
from services.clock import VirtualClock
from services.llm.model import ModelError, ModelRequest
from services.refs import ErrorCode
from services.store.port import Conflict
from tests.bot.test_budgets import SPENT_BY_ANN, SPENT_HERE, answered, ask, budget, used
from tests.fakes.builders import a_message
from tests.fakes.kept import last_reason
from tests.function_calls.routing import Routing


@pytest.mark.parametrize(
    ("member", "chat", "told", "setting"),
    [(9, 1, SPENT_HERE, "budgets.chat.requests"), (1, 9, SPENT_BY_ANN, "budgets.member.requests")],
)
async def test_of_two_limits_the_one_that_is_used_up_is_named(member: int, chat: int, told: str, setting: str) -> None:
    async with a_group(settings=budget(member={"requests": member}, chat={"requests": chat})) as group:
        await ask(group, "Ann", "Hi.")
        assert await group.say("Ann", "@Rollcall hello") == [told]
        assert await last_reason(group) == ("over_budget", setting)


@pytest.mark.parametrize("kind", ["requests", "tokens"])
async def test_a_share_of_nothing_lets_nothing_through(kind: str) -> None:
    async with a_group(settings=budget(member={kind: 0})) as group:
        assert await group.say("Ann", "@Rollcall hello") == [SPENT_BY_ANN]
        assert group.model.requests == []


async def test_of_money_nothing_is_used_where_no_model_has_a_price() -> None:
    async with a_group(settings=budget(member={"money": 0}, chat={"requests": 5})) as group:
        assert await ask(group, "Ann", answered("Hi.", 300, 20)) == ["Hi."]
        assert await used(group) == {("chat test:bot:family", "requests"): 1}


@pytest.mark.parametrize(("prompt", "completion", "events"), [(10**8, 5, 1), (10, 10**8, 1), (0, 0, 0), (10, 5, 0)])
async def test_operators_hear_of_a_count_that_cannot_be_true(prompt: int, completion: int, events: int) -> None:
    async with a_group(settings=budget(chat={"tokens": 50_000})) as group:
        with capture_logs() as logs:
            await ask(group, "Ann", answered("Hi.", prompt, completion, by="odd"))
    told = [(one["model"], one["prompt"]) for one in logs if one["event"] == "usage_not_believed"]
    assert told == [("odd", prompt)] * events


@pytest.mark.parametrize(
    ("error", "left"), [(ErrorCode.CONTENT_FILTERED, 1), (ErrorCode.INVALID_JSON, 1), (ErrorCode.TRANSIENT, 0)]
)
async def test_a_model_that_has_worked_is_paid_for_though_its_answer_is_of_no_use(error: ErrorCode, left: int) -> None:
    async with a_group(settings=budget(member={"requests": 1})) as group:
        await ask(group, "Ann", *[ModelError(error, "of no use")] * 3)
        assert await used(group) == {("member test:bot:ann", "requests"): left}


class GivenBackMeanwhile:
    """A store in which budget is released between the refusal and the search for its reason."""

    async def commit(self, writes: Any) -> list[int]:
        raise Conflict

    async def read(self, query: Any) -> list[Any]:
        return []


async def test_what_was_not_taken_is_over_the_limit_though_somebody_gave_back_since() -> None:
    routing = Routing()
    settings = BudgetsSettings.model_validate({"member": {"requests": 5}})
    budgets = RequestBudgets(settings, GivenBackMeanwhile(), VirtualClock())  # type: ignore[arg-type]
    with pytest.raises(OverBudget) as over:
        await budgets.reserve(a_message("hello"), routing.a_turn(), ModelRequest(messages=()))
    assert over.value.setting == "budgets.member.requests"
