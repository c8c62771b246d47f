"""Environment of a script: variables for caller, chat and settings, and its output."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.keywords import ScriptRun, Value
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.spec import ApprovalQuestion, Choice, InputQuestion, Message
from services.clock import Clock
from services.refs import JsonObject, JsonValue

NOTE_KEYWORDS = frozenset({"SET CONTEXT", "SET SYSTEM PROMPT", "BEGIN SYSTEM PROMPT"})
"""Keywords that store text for models."""
MEMBER_VARIABLES = frozenset(
    {"username", "user", "from", "user_id", "userid", "chat", "group", "session", "session_id", "sessionid"}
)
"""Session variables with values chosen by members or networks: names and ids."""


def session_variables(context: MessageContext, call: Call, bot: str) -> dict[str, Value]:
    """Variables for caller, chat and bot by lower-case name, such as `username`, `role`, `chat` and `language`; those
    that networks do not reveal, such as `mobile`, are empty texts."""
    sender, profile = context.sender, call.profile
    member, chat = sender.ref.key, context.chat.key
    found: dict[str, Value] = {
        "username": sender.name,
        "user": {"id": member, "name": sender.name, "role": sender.role.value},
        "role": sender.role.value,
        "chat": chat,
        "channel": context.chat.platform,
        "is_group": context.is_group,
        "group": context.chat.native if context.is_group else "",
        "language": profile.texts.language,
        "bot": bot,
        "botname": profile.bot_name,
    }
    found |= dict.fromkeys(("from", "user_id", "userid"), member)
    found |= dict.fromkeys(("session_id", "sessionid"), chat)
    found["session"] = {"id": chat, "user_id": member, "user_name": sender.name, "channel": context.chat.platform}
    # Unknown to networks; defined so that scripts can test for them.
    found |= dict.fromkeys(("mobile", "userphone", "useremail"), "")
    return found


class ObservedVariables(dict[str, JsonValue]):
    """Variables that call `notice` when one of `names` is read."""

    def __init__(self, names: frozenset[str], notice: Callable[[], None]) -> None:
        super().__init__()
        self._names = names
        self._notice = notice

    def get(self, name: str, default: JsonValue = None) -> JsonValue:
        """Like `dict.get`; calls `notice` first if `name` is one of `names`."""
        if name in self._names:
            self._notice()
        return super().get(name, default)


def without_session_variables(state: JsonObject, given: Mapping[str, Value]) -> JsonObject:
    """The machine's state without unchanged variables from the settings: they may be secret, and are set again when the
    run is resumed. Values derived from them belong to the script and are stored."""
    top: JsonObject = state["top"]
    names = [name for name, value in given.items() if name in top and top[name] == value]
    return {**state, "top": {name: value for name, value in top.items() if name not in names}, "given": names}


def with_session_variables(state: JsonObject, given: Mapping[str, Value]) -> JsonObject:
    """The state with current values of the variables that `without_session_variables` removed; NULL for those that no
    longer exist."""
    names: list[str] = state.get("given", [])
    return {**state, "top": {**state["top"], **{name: given.get(name) for name in names}}}


class ChatWorld:
    """The World of a run: time in the chat's time zone, and its own random generator."""

    def __init__(self, clock: Clock, call: Call, chance: random.Random) -> None:
        """`chance` seeds the run's own generators."""
        self._clock = clock
        self._zone = call.profile.timezone
        self.random = random.Random(chance.getrandbits(64))  # noqa: S311 - dice, no secrets
        self._ids = random.Random(chance.getrandbits(64))  # noqa: S311 - names of rows, no secrets
        self.language = call.profile.texts.language

    def now(self) -> datetime:
        return self._clock.now().astimezone(self._zone)

    def unique(self) -> str:
        return str(uuid.UUID(int=self._ids.getrandbits(128), version=4))


class EndOfRun(Exception):
    """Ends the run; its messages so far are sent."""


class SuspendedByCall(Exception):
    """The called function asks `question`. The run is resumed with the answer and executes the keyword again."""

    def __init__(self, question: InputQuestion | ApprovalQuestion) -> None:
        super().__init__(question.function)
        self.question = question


def count_up(run: ScriptRun, what: str, most: int, key: str) -> int:
    """Count a use of `what` and return the number of earlier uses. Raises the error `key` if that is `most` already."""
    count = int(run.stored_data.get(what, 0))
    if count >= most:
        raise translated_error(run, RunCode.NOT_ALLOWED, key, most=most)
    run.stored_data[what] = count + 1
    return count


_LEFT_SECONDS = 1.0
"""Time of the run reserved for the statements after a slow keyword."""


def seconds_left(run: ScriptRun, clock: Clock) -> float:
    """Seconds that a keyword may take, so that the run can go on after it. Raises RunError (UNAVAILABLE) for none."""
    left = run.call.deadline - clock.monotonic() - _LEFT_SECONDS
    if left <= 0:
        raise translated_error(run, RunCode.UNAVAILABLE, "no_time")
    return left


def translated_error(run: ScriptRun, code: RunCode, key: str, **values: object) -> RunError:
    """The runtime error with the sentence `basic.<key>` of `config/texts/`, to be raised."""
    return RunError(code, run.call.say(f"basic.{key}", **values))


SUGGESTIONS = "suggestions"
"""Key in `ScriptRun.stored_data`: suggestions under the last message, as pairs of value and label."""
_MOST_IN_A_ROW = 5
"""A longer sequence of messages is joined into one, with a line for each."""
MOST_MESSAGES = 100
"""Limit per run on messages that are not plain text for the whole chat; each is sent separately."""


class OutputBuffer:
    """Messages of a run since its last question, and its total output."""

    def __init__(self, most_chars: int, chars: int = 0, count: int = 0) -> None:
        """`chars` and `count`: earlier output, and the number of earlier messages that are sent separately."""
        self._most_chars = most_chars
        self.chars = chars
        self.count = count
        self.messages: list[Message] = []

    def say(self, message: Message) -> None:
        """Add a message. Raises RunError (OUTPUT) above the limit of characters, or of messages that are not plain
        text."""
        chars = self.chars + len(message.text)
        if chars > self._most_chars:
            raise RunError(RunCode.OUTPUT, f"more than {self._most_chars} characters of messages")
        if message != Message(message.text):
            if self.count >= MOST_MESSAGES:
                raise RunError(RunCode.OUTPUT, f"more than {MOST_MESSAGES} separate messages")
            self.count += 1
        self.chars = chars
        self.messages.append(message)

    def append_to_last(self, before: str, more: str) -> bool:
        """Append to the last message if it is `before` to the whole chat; returns whether it is. Raises as `say`."""
        if not self.messages or self.messages[-1] != Message(before):
            return False
        message = self.messages.pop()
        self.chars -= len(before)
        self.say(replace(message, text=before + more))
        return True

    def together(self) -> tuple[Message, ...]:
        """The messages to send, with long sequences joined; see `joined_messages`."""
        return joined_messages(self.messages)


def joined_messages(messages: Sequence[Message]) -> tuple[Message, ...]:
    """`messages`, with more than _MOST_IN_A_ROW consecutive plain messages joined to one, by newlines."""
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
    """`messages` with the run's suggestions under the last message to this chat, unless it has its own choices."""
    choices = tuple(Choice(label, value, stays=True) for value, label in kept.get(SUGGESTIONS, ()))
    found = list(messages)
    place = next((at for at in reversed(range(len(found))) if found[at].to is None), None)
    if choices and place is not None and not found[place].choices:
        found[place] = replace(found[place], choices=choices)
    return tuple(found)
