"""MCP elicitation forms: required fields, invalid answers, and the limit of open forms."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest
from mcp_types import ElicitResult
from structlog.testing import capture_logs

from bot.direct_calls import Caller
from bot.mcp.callers import McpCaller
from bot.mcp.questions import MOST_WAITING, WaitingCalls, form_of, reply_of
from config.texts import Texts
from function_calls.call import Path
from function_calls.questions.callers import Asked, Reply
from function_calls.spec import ArgumentQuestion, Choice
from services.refs import ChatRef, MemberRef, Role
from tests.bot.test_mcp_questions import User, called
from tests.fakes.asking import Asking
from tests.fakes.functions import Recorder
from tests.harness.mcp_programs import MODERN

BLACK_OR_WHITE = [Choice("Black", "b"), Choice("White", "w")]


def a_program(name: str) -> McpCaller:
    """A program with that name and the role of an admin."""
    member, chat = MemberRef("mcp", "programs", name), ChatRef("mcp", "programs", name)
    caller = Caller(member, name, Role.MEMBER, chat, is_group=False, path=Path.MCP)
    return McpCaller(caller, role_now=lambda _member, _role: Role.ADMIN)


@pytest.mark.parametrize(("choices", "required"), [([], ["answer"]), (BLACK_OR_WHITE, None)])
async def test_the_only_field_of_a_form_has_to_be_filled_in(choices: list[Choice], required: Any) -> None:
    user = User("b")
    await called([Asking(choices=choices).spec], user, MODERN, "fill")
    assert user.asked[0].requested_schema.get("required") == required


async def test_one_of_the_values_that_an_argument_may_have_is_chosen_and_nothing_else_is_said() -> None:
    size = {"size": {"type": "string", "enum": ["small", "large"], "description": "How big", "required": True}}
    make, user = Recorder("make", size, ask={"size": "Which size?"}), User("large")
    await called([make.spec], user, MODERN, "make")
    assert [list(fields) for fields in user.fields] == [["answer"]]
    assert make.runs == [{"size": "large"}]


@pytest.mark.parametrize(("kind", "bounds"), [("boolean", {}), ("integer", {"minimum": 1}), ("string", {})])
async def test_only_numbers_have_bounds_in_a_form(kind: str, bounds: dict[str, Any]) -> None:
    asked = Asked(ArgumentQuestion("How?", "make", {}, field="how"), "How?", {"type": kind, "minimum": 1}, "")
    field = form_of(asked, "2025-11-25", Texts().of("en")).params.requested_schema["properties"]["answer"]
    assert field == {"type": kind, "title": "how", **bounds}


@pytest.mark.parametrize(("value", "text"), [(True, "true"), (False, "false"), (3, "3"), (2.5, "2.5"), ("b", "b")])
def test_a_value_of_a_form_is_read_as_people_would_write_it(value: Any, text: str) -> None:
    result = ElicitResult(action="accept", content={"answer": value})
    assert reply_of(result, a_program("editor")) == Reply("answered", text, Role.ADMIN)


@pytest.mark.parametrize("result", [None, "b", {"action": "accept", "content": {"answer": "b"}}])
def test_what_no_client_should_send_is_an_empty_answer_of_who_asks_as_they_are_now(result: object) -> None:
    assert reply_of(result, a_program("editor")) == Reply("answered", "", Role.ADMIN)


def test_only_so_many_calls_of_all_programs_wait_for_answers() -> None:
    waiting = WaitingCalls()
    with ExitStack() as open_now, capture_logs() as logs:
        let_in = [open_now.enter_context(waiting.one_more(a_program(f"p{n // 16}"))) for n in range(MOST_WAITING)]
        assert (all(let_in), len(waiting)) == (True, MOST_WAITING)
        with waiting.one_more(a_program("newcomer")) as may_wait:
            assert not may_wait
    assert [one["waiting"] for one in logs] == [MOST_WAITING]
    with waiting.one_more(a_program("newcomer")) as may_wait:
        assert may_wait
    assert len(waiting) == 0
