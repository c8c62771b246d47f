"""The role required when several rules apply, and the validity of an earlier approval."""

from __future__ import annotations

import pytest

from config.chat_settings import ResolvedFunction
from function_calls.checks.approvals import Rule
from function_calls.spec import ApprovalQuestion
from services.refs import Role
from tests.function_calls.code_copies import Code
from tests.function_calls.waiting import Waiting, act


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (Rule(None), Rule(None), Rule(None)),
        (Rule(None), Rule(Role.MEMBER), Rule(Role.MEMBER)),
        (Rule(Role.MODERATOR), Rule(Role.ADMIN), Rule(Role.ADMIN)),
        (Rule(Role.MODERATOR, by_other=True), Rule(Role.ADMIN), Rule(Role.ADMIN, by_other=True)),
        (Rule(None), Rule(Role.ADMIN, by_other=True), Rule(Role.ADMIN, by_other=True)),
    ],
)
def test_two_rules_are_as_strict_together_whichever_comes_first(one: Rule, other: Rule, both: Rule) -> None:
    assert (one.with_all_of(other), other.with_all_of(one)) == (both, both)


@pytest.mark.parametrize(("said", "role"), [(None, Role.ADMIN), ("moderator", Role.MODERATOR), ("none", None)])
async def test_settings_that_say_nothing_of_whose_yes_it_needs_leave_it_as_the_function_declares_it(
    said: str | None, role: Role | None
) -> None:
    function = act(approval="admin")
    chat = Waiting(Code(), function)
    setting = ResolvedFunction(
        enabled=True, roles=None, timeout_seconds=None, require_at=None, scope=None, layers={}, approval=said
    )
    chat.routing.set_profile(functions={"act": setting})
    question = (await chat.invoke(chat.a_turn())).question
    assert (question.terms.role if isinstance(question, ApprovalQuestion) else None) is role
    assert len(function.runs) == (role is None)
