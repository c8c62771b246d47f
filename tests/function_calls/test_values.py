"""Values that are stored beyond a turn: contexts, results and questions as plain data, and back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from function_calls.context import Attachment, Kind, MessageKey, Quoted, context_from_json, context_to_json
from function_calls.result import message_from_json, message_to_json, result_from_json, result_to_json
from function_calls.spec import Choice, FunctionError, FunctionResult, Message
from services.refs import ChatRef, ErrorCode, MemberRef, Role
from tests.fakes.builders import FAMILY, a_member, a_message

BO = MemberRef("test", "bot", "bo:1")
FILE = Attachment("plan.pdf", "application/pdf", "https://127.0.0.1/plan.pdf", 12)


def stored(data: Any) -> Any:
    """`data` after a round trip through a store."""
    return orjson.loads(orjson.dumps(data))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"mentions_bot": False, "is_group": False, "bot": "shop", "chat_title": "Home"},
        {"private": True},
        {"mentions": (BO,), "attachments": (FILE,), "reply_to": Quoted("m0", "Bo", "What?", True)},
        {"kind": Kind.EDIT, "key": MessageKey(FAMILY, "m1", Kind.EDIT, "2")},
        {"kind": Kind.CHOICE, "sent_at": datetime(2026, 3, 29, 1, 30, 0, 123000, tzinfo=UTC)},
        {"sender": a_member("Olga", Role.OWNER), "text": "你好 \U0001f600"},
    ],
)
def test_a_message_comes_back_from_the_inbox_as_it_was(changes: dict[str, Any]) -> None:
    context = a_message(**changes)
    assert context_from_json(stored(context_to_json(context))) == context


@pytest.mark.requirement("D34")
@pytest.mark.parametrize(
    "result",
    [
        FunctionResult(),
        FunctionResult(handled=False),
        FunctionResult.say("Hi", data={"n": 1}, mentions=(BO,), attachments=(FILE,), choices=(Choice("Yes", "y"),)),
        FunctionResult(messages=(Message("a", to=BO), Message("b", to=ChatRef("test", "bot", "x:y"), reply_to="m1"))),
        FunctionResult(error=FunctionError(ErrorCode.TRANSIENT, "later", ("city",)), metadata={"id": "x"}),
        FunctionResult(data=[1, None, "x"], context_updates={"seen": {"a": 1}}),
    ],
)
def test_a_result_comes_back_from_the_ledger_as_it_was(result: FunctionResult) -> None:
    assert result_from_json(stored(result_to_json(result))) == result
    for message in result.messages:
        assert message_from_json(stored(message_to_json(message))) == message


@pytest.mark.requirement("D34")
def test_a_result_gathers_what_its_messages_hold() -> None:
    ann = MemberRef("test", "bot", "ann")
    result = FunctionResult(
        messages=(
            Message("one", mentions=(BO, ann)),
            Message("secret", to=BO),
            Message("two", mentions=(BO,), attachments=(FILE,)),
        )
    )
    assert (result.reply, result.at_list, result.attachments) == ("one\ntwo", (BO, ann), (FILE,))


@pytest.mark.requirement("C26", "E16")
def test_people_and_models_are_told_different_things() -> None:
    failed = FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, "no", ["city"])
    assert failed.for_model() == {"error": "bad_arguments", "message": "no", "fields": ["city"]}
    assert [message.text for message in failed.for_chat()] == ["no"]
    fine = FunctionResult.say("3 °C", data={"celsius": 3})
    assert fine.for_model() == {"ok": True, "result": {"celsius": 3}, "text": ["3 °C"]}
    assert fine.for_model(said=True) == {"ok": True, "result": {"celsius": 3}, "said_in_chat": ["3 °C"]}
    assert FunctionResult(handled=False).for_model() == {"ok": False, "message": "not handled"}
    assert failed.with_error_text("nein").for_chat() == (Message("nein"),)
    assert fine.with_error_text("nein") is fine
