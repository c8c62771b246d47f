"""Replacement of values in requests and answers of a model."""

from __future__ import annotations

from dataclasses import fields, replace

from services.llm.model import ModelMessage, ModelRequest, Offer


def test_a_request_with_other_messages_and_less_time_keeps_all_else() -> None:
    offer, everything = Offer(()), Offer(())
    request = ModelRequest([ModelMessage("user", "Hi.")], offer, everything, "required", 30.0, "zh", ("main",), True)
    assert all(getattr(request, one.name) != one.default for one in fields(request))
    others = [ModelMessage("user", "Bye.")]
    assert request.within(2.5, others) == replace(request, timeout_seconds=2.5, messages=others)
