"""In each request every call has exactly one result, whatever happened before in the conversation."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function_calls.rounds.conversation import is_paired, paired
from services.llm.model import ModelMessage, ToolCall
from services.refs import ErrorCode
from tests.fakes.functions import Recorder
from tests.fakes.model import call, calls, says, unreadable_call
from tests.fakes.wired_model import each_protocol as each_protocol
from tests.fakes.wired_model import over_each_protocol
from tests.function_calls.routing import Routing

ids = st.sampled_from(["a", "b", "b-2", "c", ""])
tool = st.builds(lambda id_, text: ModelMessage("tool", text, call_id=id_), ids, st.text(max_size=3))
asking = st.builds(
    lambda wanted: ModelMessage("assistant", "", tuple(ToolCall(one, "look", {}) for one in wanted)),
    st.lists(ids, min_size=1, max_size=4),
)
spoken = st.builds(ModelMessage, st.sampled_from(["user", "assistant", "system"]), st.text(max_size=3))
conversations = st.lists(st.one_of(tool, asking, spoken), max_size=14)


def answers(messages: list[ModelMessage]) -> Counter[str]:
    return Counter(message.content for message in messages if message.role == "tool")


@given(conversations)
def test_any_conversation_comes_out_paired_with_its_words_and_calls_untouched(messages: list[ModelMessage]) -> None:
    result = list(paired(messages))
    assert is_paired(result)
    for before, after in zip(
        [one for one in messages if one.role != "tool"], [one for one in result if one.role != "tool"], strict=True
    ):
        assert (before.role, before.content, len(before.calls)) == (after.role, after.content, len(after.calls))
    for place, message in enumerate(result):
        following = result[place + 1 : place + 1 + len(message.calls)]
        assert [one.id for one in message.calls] == [one.call_id for one in following]
        assert len({one.id for one in message.calls}) == len(message.calls)


@given(conversations)
def test_no_result_is_invented_but_the_one_that_says_it_is_unknown(messages: list[ModelMessage]) -> None:
    invented = answers(list(paired(messages))) - answers(messages)
    assert all("unknown_outcome" in text for text in invented)


@given(conversations)
def test_a_conversation_that_is_paired_is_left_as_it_is(messages: list[ModelMessage]) -> None:
    once = paired(messages)
    assert paired(once) is once


def test_a_result_that_came_late_is_put_to_its_call() -> None:
    wanted = ModelMessage("assistant", "", (ToolCall("a", "look", {}), ToolCall("b", "look", {})))
    late = [
        wanted,
        ModelMessage("tool", "2", call_id="b"),
        ModelMessage("user", "hm"),
        ModelMessage("tool", "1", call_id="a"),
    ]
    assert [one.content for one in paired(late)] == ["", "1", "2", "hm"]


TEXT = {"text": {"type": "string", "required": True}}
wanted = st.one_of(
    st.builds(lambda id_, text: call("look", id_, text=text), ids, st.text(max_size=2)),
    st.builds(lambda id_: call("note", id_, text="x"), ids),
    st.builds(lambda id_: call("gone", id_), ids),
    st.builds(lambda id_: unreadable_call("look", ErrorCode.TRUNCATED, id_), ids),
    st.builds(lambda id_: call("look", id_, text=5), ids),
    st.builds(lambda id_: call("break", id_), ids),
    st.builds(lambda id_: call("look", id_), ids),
)


@pytest.mark.requirement("D28")
@over_each_protocol
@given(st.lists(st.lists(wanted, min_size=1, max_size=3), min_size=1, max_size=4), st.sampled_from(["tea", "cancel"]))
async def test_every_request_of_a_turn_and_of_its_continuation_is_paired(
    answers: list[list[ToolCall]], reply: str
) -> None:
    functions = [
        Recorder("look", TEXT, gives=("ok", "found")),
        Recorder("note", TEXT, effect="once", gives="Noted."),
        Recorder("break", gives=RuntimeError("no")),
    ]
    script = [*(calls(*answer) for answer in answers), *[says("Well.")] * 20]
    routing = Routing(*functions, script=script)
    outcome = await routing.hears("do it")
    for _ in range(12):
        if outcome.question is None:
            break
        outcome = await routing.hears_answer(outcome, reply)
    assert routing.model.requests
    assert all(is_paired(request.messages) for request in routing.model.requests)
