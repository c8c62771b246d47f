"""Only a member's words activate a function, and nothing else that contains its name."""

from __future__ import annotations

import pytest

from bot.intake.intake import FunctionMentions
from function_calls.context import Kind
from tests.fakes.builders import a_message
from tests.fakes.functions import Recorder
from tests.function_calls.routing import Routing

TAKES = {Kind.MESSAGE, Kind.EDIT}


@pytest.mark.parametrize("kind", Kind)
def test_only_a_message_or_its_edit_takes_a_function_to_hand(kind: Kind) -> None:
    routing = Routing(Recorder("sonar", activation="on_request"))
    context = a_message("@sonar how deep is it?", kind=kind)
    read = FunctionMentions().extract(context, routing.registry.of("default"))
    if kind in TAKES:
        assert (read.takes, read.text) == (("sonar",), "how deep is it?")
    else:
        assert read is context
