"""What a run says, in order and within its bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from function_calls.basic.codes import RunCode, RunFault
from function_calls.spec import Choice, Message
from services.json_values import JsonObject

SUGGESTIONS = "suggestions"
"""Under which a run keeps what its last message is to have under it: pairs of what is said and what is shown."""
_MOST_IN_A_ROW = 5
"""More messages than that become one of as many lines: nobody wants thirty of them at once."""
MOST_MESSAGES = 100
"""In one run that are more than words for the chat, to one member alone or with a file: each is sent by itself."""


class SaidSoFar:
    """The messages of a run since it last asked, and how much it has said in all."""

    def __init__(self, most_chars: int, chars: int = 0, count: int = 0) -> None:
        """`chars` and `count`: what it had said before, and in how many messages that were not made one."""
        self._most_chars = most_chars
        self.chars = chars
        self.count = count
        self.messages: list[Message] = []

    def say(self, message: Message) -> None:
        """Add a message. Raises RunFault where that would be too much."""
        chars = self.chars + len(message.text)
        if chars > self._most_chars:
            raise RunFault(RunCode.OUTPUT, f"it says more than {self._most_chars} characters")
        if message != Message(message.text):
            if self.count >= MOST_MESSAGES:
                raise RunFault(RunCode.OUTPUT, f"it says more than {MOST_MESSAGES} messages one by one")
            self.count += 1
        self.chars = chars
        self.messages.append(message)

    def say_on(self, before: str, more: str) -> bool:
        """Add to the last message if it says `before`, to everybody; whether it does. Raises as `say`."""
        if not self.messages or self.messages[-1] != Message(before):
            return False
        message = self.messages.pop()
        self.chars -= len(before)
        self.say(replace(message, text=before + more))
        return True

    def together(self) -> tuple[Message, ...]:
        """The messages as they are sent."""
        return in_few(self.messages)


def in_few(messages: Sequence[Message]) -> tuple[Message, ...]:
    """`messages`, with many plain ones in a row as one."""
    found: list[Message] = []
    row: list[Message] = []
    for message in [*messages, None]:
        if message is not None and message == Message(message.text):
            row.append(message)
            continue
        found += row if len(row) <= _MOST_IN_A_ROW else [Message("\n".join(one.text for one in row))]
        row = []
        if message is not None:
            found.append(message)
    return tuple(found)


def with_suggestions(messages: Sequence[Message], kept: JsonObject) -> tuple[Message, ...]:
    """`messages`, the last one for this chat with what the run suggests to say, unless it has choices of its own."""
    choices = tuple(Choice(label, value, stays=True) for value, label in kept.get(SUGGESTIONS, ()))
    found = list(messages)
    place = next((at for at in reversed(range(len(found))) if found[at].to is None), None)
    if choices and place is not None and not found[place].choices:
        found[place] = replace(found[place], choices=choices)
    return tuple(found)
