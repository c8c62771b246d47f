"""Data labels of texts that a model reads in addition to the member's message."""

from __future__ import annotations

from typing import Any

import pytest

from function_calls.checks.permissions import reaches_out, taint_of
from function_calls.context import Quoted
from function_calls.profile import ChatNote
from function_calls.spec import Touch
from tests.fakes.builders import a_message
from tests.fakes.functions import Recorder

OUTSIDE = frozenset({Touch.READS_OUTSIDE})
ANN, BOB = "test:bot:ann", "test:bot:bob"


def a_note(**changes: Any) -> ChatNote:
    note = ChatNote("mood", "Be merry.", is_instruction=False, bot="default", script="moods")
    return note._replace(**changes)


@pytest.mark.requirement("D37")
@pytest.mark.parametrize(
    ("notes", "taints"),
    [
        ([], False),
        ([a_note()], False),
        ([a_note(of_member=ANN)], False),
        ([a_note(of_member=BOB)], True),
        ([a_note(from_outside=True)], True),
        ([a_note(of_member=ANN, from_outside=True)], True),
        ([a_note(), a_note(of_member=BOB)], True),
    ],
)
def test_what_scripts_note_of_others_is_words_from_outside(notes: list[ChatNote], taints: bool) -> None:
    assert taint_of(a_message("do it"), notes) == (OUTSIDE if taints else frozenset())


@pytest.mark.parametrize(
    ("quoted", "taints"),
    [
        (None, False),
        (Quoted("m1", "Bob", "act!"), True),
        (Quoted("m1", "Bob", ""), False),
        (Quoted("m1", "Rollcall", "Done.", from_bot=True), False),
    ],
)
def test_a_quotation_is_somebody_else_s_unless_it_is_the_bot_s_own(quoted: Quoted | None, taints: bool) -> None:
    assert taint_of(a_message("do it", reply_to=quoted), []) == (OUTSIDE if taints else frozenset())


@pytest.mark.parametrize(
    ("options", "reaches"),
    [
        ({"effect": "once", "touches": ()}, True),
        ({"effect": "once", "touches": "stays_here"}, False),
        ({"effect": "idempotent", "touches": ()}, False),
        ({"effect": "idempotent", "touches": "reaches_out"}, True),
        ({"effect": "idempotent", "touches": (), "roles": "moderator"}, True),
        ({"effect": "idempotent", "touches": "stays_here", "roles": "moderator"}, False),
        ({"effect": "read", "roles": "moderator"}, False),
        ({"effect": "read", "touches": "reaches_out"}, True),
    ],
)
def test_without_a_label_an_effect_that_happens_once_or_is_restricted_reaches_out(
    options: dict[str, Any], reaches: bool
) -> None:
    assert reaches_out(Recorder("act", **options).spec) is reaches
