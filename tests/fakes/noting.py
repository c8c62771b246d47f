"""A function for timers that returns its text."""

from __future__ import annotations

from typing import Any

from function_calls.spec import OfferedTo
from tests.fakes.functions import Recorder

TEXT = {"text": {"type": "string", "description": "What to say", "required": True}}


def a_note(**options: Any) -> Recorder:
    """The function `note`, the default of drafts: returns its text."""

    async def say(context: object, arguments: dict[str, Any], call: object) -> str:
        return f"⏰ {arguments['text']}"

    given = {"offered_to": [OfferedTo.TIMER.value], "effect": "once", "does": say, **options}
    return Recorder("note", TEXT, **given)
