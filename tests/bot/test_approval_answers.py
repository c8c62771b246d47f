"""Which approval question a message answers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from bot.intake.gate import named_or_quoted, quoted_id, unambiguous_approval
from config.texts import Texts
from function_calls.context import Kind, Quoted
from function_calls.spec import ApprovalQuestion, ApprovalTerms, ArgumentQuestion
from function_calls.turn import Continuation, OpenQuestion
from services.refs import Role
from tests.fakes.builders import a_member, a_message

EN = Texts().of("en")
OF_THE_BOT = Quoted("q1", "Rollcall", "May act run?", from_bot=True)
OF_BOB = Quoted("q1", "Bob", "May I?")


def waits(code: str, asker: str = "Ann", *, number: int = 1, role: Role | None = Role.ADMIN) -> OpenQuestion:
    terms = ApprovalTerms(
        digest=code, grant="", code=code, role=role, by_other=False, asker=a_message("/act", asker, mentions_bot=False)
    )
    question = ApprovalQuestion("May act run?", "act", {}, terms=terms)
    return OpenQuestion(question, Continuation(path="command", fingerprint="f", state={}), number)


ONE, OTHER = waits("aaaa1"), waits("bbbb2", "Bob", number=2)


def which(text: str, sender: str = "Olga", waiting: Any = (ONE,), role: Role = Role.ADMIN, **facts: Any) -> int | None:
    """Number of the question that an answer without a code refers to."""
    context = a_message(text, a_member(sender, role), **{"mentions_bot": False, **facts})
    found = unambiguous_approval(context, waiting, role, EN)
    return found.id if found else None


def said(text: str, sender: str = "Olga", **how: Any) -> Callable[[], int | None]:
    return partial(which, text, sender, **how)


@pytest.mark.requirement("D37")
@pytest.mark.parametrize(
    ("said", "is_meant"),
    [
        (said("yes", mentions_bot=True), 1),
        (said("yes"), None),
        (said("yes", is_group=False), 1),
        (said("yes", mentions_bot=True, waiting=(ONE, OTHER)), None),
        (said("yes", mentions_bot=True, waiting=()), None),
        (said("yes", "Ann"), 1),
        (said("no", "Ann", role=Role.MEMBER), 1),
        (said("yes", "Ann", role=Role.MEMBER), None),
        (said("yes", "Ann", waiting=(ONE, waits("cccc3", number=3))), None),
        (said("yes", mentions_bot=True, kind=Kind.EDIT), None),
        (said("yes", mentions_bot=True, kind=Kind.REACTION), None),
        (said("yes", mentions_bot=True, kind=Kind.CHOICE), None),
        (said("yes", mentions_bot=True, reply_to=OF_BOB), None),
        (said("yes", "Ann", reply_to=OF_BOB), None),
    ],
)
def test_a_bare_answer_is_about_the_senders_own_or_the_only_one(
    said: Callable[[], int | None], is_meant: int | None
) -> None:
    assert said() == is_meant


@pytest.mark.parametrize(
    ("text", "quoted", "number"),
    [
        ("approve bbbb2", 0, 2),
        ("approve BBBB2", 1, 2),
        ("yes", 1, 1),
        ("yes", 9, None),
        ("approve cccc3", 0, None),
    ],
)
def test_a_code_says_which_before_a_quotation_does(text: str, quoted: int, number: int | None) -> None:
    found = named_or_quoted(a_message(text), (ONE, OTHER), quoted)
    assert (found.id if found else None) == number


def test_what_is_quoted_counts_only_where_the_bot_has_said_it() -> None:
    assert quoted_id(a_message("yes", reply_to=OF_THE_BOT)) == "q1"
    assert quoted_id(a_message("yes", reply_to=OF_BOB)) == ""
    assert quoted_id(a_message("yes")) == ""
    assert quoted_id(a_message("👍", kind=Kind.REACTION, native_id="m9")) == "m9"


def test_what_one_member_alone_is_asked_is_no_question_for_a_yes() -> None:
    plain = OpenQuestion(ArgumentQuestion("Where?", "act", {}, field="where"), ONE.continuation, 3)
    with pytest.raises(ValueError, match="one member alone"):
        named_or_quoted(a_message("yes"), (plain,), 0)
