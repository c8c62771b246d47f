"""Replacement of values in requests and answers of a model."""

from __future__ import annotations

from dataclasses import fields, replace

from services.llm.model import ModelAnswer, ModelMessage, ModelRequest, Offer, ToolCall, Usage


def test_a_request_with_other_messages_and_less_time_keeps_all_else() -> None:
    offer, everything = Offer(()), Offer(())
    request = ModelRequest([ModelMessage("user", "Hi.")], offer, everything, "required", 30.0, "zh", ("main",), True)
    assert all(getattr(request, one.name) != one.default for one in fields(request))
    others = [ModelMessage("user", "Bye.")]
    assert request.within(2.5, others) == replace(request, timeout_seconds=2.5, messages=others)


def test_an_answer_that_a_model_is_named_for_keeps_all_else() -> None:
    call = ToolCall("c1", "weather", {"city": "Oslo"}, "{}")
    answer = ModelAnswer("Hi.", (call,), "stop", "m-1", "r-1", Usage(1, 2, 3), {"openai": {}}, True, "one")
    assert all(getattr(answer, one.name) != one.default for one in fields(answer))
    assert answer.attributed_to("other") == replace(answer, by="other")
