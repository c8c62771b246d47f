"""The role required when several rules apply, and the validity of an earlier approval."""

from __future__ import annotations

from typing import Any

import pytest

from config.chat_settings import ResolvedFunction
from function_calls.checks.approvals import Rule
from function_calls.spec import TAINTING, ApprovalQuestion
from services.refs import Role
from tests.function_calls.code_copies import Code
from tests.function_calls.waiting import Waiting, act, approved

STRICT = {"tainted": "admin"}


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


@pytest.mark.requirement("D37")
@pytest.mark.parametrize(("touches", "role"), [("stays_here", None), ("reaches_out", Role.ADMIN)])
async def test_only_what_words_from_outside_could_mislead_takes_the_stricter_yes(touches: str, role: Any) -> None:
    chat = Waiting(Code(), act(approval="asker", touches=touches), **STRICT)
    question = (await chat.invoke(chat.a_turn(taint=TAINTING))).question
    assert isinstance(question, ApprovalQuestion)
    assert question.terms.role is role


@pytest.mark.requirement("D37")
async def test_a_yes_that_was_given_before_words_from_outside_were_read_is_not_enough_after_them() -> None:
    function = act(approval="asker")
    chat = Waiting(Code(), function, **STRICT)
    question = (await chat.invoke(chat.a_turn())).question
    yes = approved(chat.code, question)
    again = (await chat.invoke(chat.a_turn(approved=yes, taint=TAINTING))).question
    assert (again is not None, function.runs) == (True, [])
    # A run that was approved before it read them is the same run.
    noted = chat.a_turn(approved=yes._replace(is_noted=True), taint=TAINTING)
    assert (await chat.invoke(noted)).ok


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
