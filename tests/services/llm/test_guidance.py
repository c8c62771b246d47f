"""Usage notes and samples of functions are included for models that get their instructions as text."""

from __future__ import annotations

import orjson
import pytest

from services.llm.encoding import guided
from services.llm.model import ModelMessage, ModelRequest, Offer, OfferedFunction

HELLO = (ModelMessage("system", "You are Rollcall."), ModelMessage("user", "hello"))
PLAIN = OfferedFunction("plain", "plain", "D", {"type": "object"})
CAREFUL = OfferedFunction("careful", "careful", "D", {"type": "object"}, system_prompt="Use it rarely.")
SAMPLED = OfferedFunction("sampled", "sampled", "D", {"type": "object"}, system_prompt="So:\n{schema}")


@pytest.mark.requirement("C17")
def test_it_stands_at_the_end_of_the_instructions_while_the_function_is_on_offer() -> None:
    told = guided(ModelRequest(HELLO, Offer([PLAIN, CAREFUL])))
    assert [(one.role, one.content) for one in told] == [
        ("system", "You are Rollcall."),
        ("system", "### careful\nUse it rarely."),
        ("user", "hello"),
    ]


@pytest.mark.parametrize("offer", [None, Offer([]), Offer([PLAIN]), Offer([SAMPLED])])
def test_nothing_else_is_added(offer: Offer | None) -> None:
    # The protocol defines the syntax of a call; a sample in the text would contradict it.
    assert guided(ModelRequest(HELLO, offer)) is HELLO


def test_the_bytes_on_the_wire_have_it() -> None:
    from services.llm.encoding import encode_messages
    from services.llm.protocols.anthropic_messages import encode_conversation

    told = guided(ModelRequest(HELLO, Offer([CAREFUL])))
    assert [one["role"] for one in orjson.loads(encode_messages(told))] == ["system", "system", "user"]
    system, _ = encode_conversation(told)
    assert [one["text"] for one in orjson.loads(system)] == ["You are Rollcall.", "### careful\nUse it rarely."]
