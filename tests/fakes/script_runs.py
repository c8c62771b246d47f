"""Runs of scripts without a machine, for tests of keywords."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from function_calls.basic.keywords import Grants, ScriptRun
from function_calls.basic.nodes import At
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.spec import Message
from tests.fakes.builders import a_call, a_message


@dataclass(slots=True)
class Heard:
    """Records the messages of a run."""

    messages: list[Message] = field(default_factory=list)

    def __call__(self, message: Message) -> None:
        self.messages.append(message)

    @property
    def texts(self) -> list[str]:
        """Texts of the messages, in order."""
        return [message.text for message in self.messages]


def a_run(
    context: MessageContext | None = None,
    *,
    heard: Heard | None = None,
    call: Call | None = None,
    language: str = "en",
    **changes: Any,
) -> ScriptRun:
    """A run that Ann started in the family group, of a script in the root of its storage. `changes`: fields of
    ScriptRun. `heard` receives its messages."""
    return ScriptRun(
        **{
            "context": context or a_message(),
            "call": call or a_call(language),
            "bot": "default",
            "tool": "sample",
            "folder": "",
            "grants": Grants(),
            "say": heard or Heard(),
            "stored_data": {},
            "at": At(1, 1),
            **changes,
        }
    )
