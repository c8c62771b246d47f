"""What a script finds when it starts: caller, chat, settings, ports to the daemon, and its output."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.keywords import ScriptRun, Value
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.spec import ApprovalQuestion, Choice, InputQuestion, Message
from services.clock import Clock
from services.refs import JsonObject, JsonValue

NOTING = frozenset({"SET CONTEXT", "SET SYSTEM PROMPT", "BEGIN SYSTEM PROMPT"})
"""What a script bears that has something noted for models."""
OF_MEMBERS = frozenset(
    {"username", "user", "from", "user_id", "userid", "chat", "group", "session", "session_id", "sessionid"}
)
"""The session variables whose values members, or networks for them, have chosen: names and ids."""


def session_variables(context: MessageContext, call: Call, bot: str) -> dict[str, Value]:
    """Who asks and where, by lower-case names."""
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
    found |= dict.fromkeys(("session", "session_id", "sessionid"), chat)
    # Networks do not tell them; scripts that ask whether they are there find nothing.
    found |= dict.fromkeys(("mobile", "userphone", "useremail"), "")
    return found


def variables_of(
    session: Mapping[str, Value], parameters: Mapping[str, Value], arguments: Mapping[str, Value]
) -> dict[str, Value]:
    """All of them together: arguments hide what the settings say, and that hides the session."""
    given = {**parameters, **arguments}
    return {**session, **{name.casefold(): value for name, value in given.items()}}


class NoticedVariables(dict[str, JsonValue]):
    """The variables of a script, which tell when it looks at one of `names`."""

    def __init__(self, names: frozenset[str], notice: Callable[[], None]) -> None:
        super().__init__()
        self._names = names
        self._notice = notice

    def get(self, name: str, default: JsonValue = None) -> JsonValue:
        """As of any dict."""
        if name in self._names:
            self._notice()
        return super().get(name, default)


def without_given(state: JsonObject, given: Mapping[str, Value]) -> JsonObject:
    """The state of a machine without what the settings gave it and it still has: that may be secret, and is given anew
    when the run goes on. What the script has made of it is the script's."""
    top: JsonObject = state["top"]
    names = [name for name, value in given.items() if name in top and top[name] == value]
    return {**state, "top": {name: value for name, value in top.items() if name not in names}, "given": names}


def with_given(state: JsonObject, given: Mapping[str, Value]) -> JsonObject:
    """The state with what the settings say now, in the places that `without_given` has left."""
    names: list[str] = state.get("given", [])
    return {**state, "top": {**state["top"], **{name: given.get(name) for name in names}}}


class ChatWorld:
    """The world of a run: the clock on the chat's wall, and chance of its own."""

    def __init__(self, clock: Clock, call: Call, chance: random.Random) -> None:
        """`chance` gives the seed of the run's own."""
        self._clock = clock
        self._zone = call.profile.timezone
        self.random = random.Random(chance.getrandbits(64))  # noqa: S311 - dice, no secrets
        self._ids = random.Random(chance.getrandbits(64))  # noqa: S311 - names of rows, no secrets
        self.language = call.profile.texts.language

    def now(self) -> datetime:
        return self._clock.now().astimezone(self._zone)

    def unique(self) -> str:
        return str(uuid.UUID(int=self._ids.getrandbits(128), version=4))


class ScriptFiles(Protocol):
    """The files that lie beside the scripts of a bot."""

    def read(self, bot: str, folder: str, name: str) -> bytes:
        """The content of the file `name` in the folder of a script of `bot`. May block: call it in a thread. Raises
        NoSuchScriptFile and ScriptFileTooLarge of `services.scripts.files`, and StorageError when it cannot be read."""

    def missed(self, bot: str, folder: str, name: str) -> None:
        """There is no such file, and a script that looked for its rows found none elsewhere."""


class ScriptWeb(Protocol):
    """The web, for keywords whose subject is another one."""

    async def delete(self, run: ScriptRun, url: str) -> JsonObject:
        """What the server at `url` answered to DELETE. Checks the address and the run's rights as GET does, sends the
        run's headers, and sets `run.outside`. Raises RunError."""


class ScriptModel(Protocol):
    """The language model, for keywords whose subject is another one."""

    async def extract(self, run: ScriptRun, text: str, fields: Sequence[str]) -> JsonObject:
        """What `text` says, as a flat map: of these fields where some are given, else of those that fit the text. What
        the text does not say is not in it. The chat's share of the day pays, and `run.outside` is set. Raises
        RunError (UNAVAILABLE) where there is no model or it gives nothing usable."""


class EndOfRun(Exception):
    """The run is over, and what it has said so far is said."""


class HeldUpWithin(Exception):
    """The function that the keyword called asks `question`. The run continues with the answer, and executes the keyword
    once more."""

    def __init__(self, question: InputQuestion | ApprovalQuestion) -> None:
        super().__init__(question.function)
        self.question = question


def count_up(run: ScriptRun, what: str, most: int, key: str) -> int:
    """How often the run has done `what` before, which is noted. Raises the fault `key` where that is `most` already."""
    count = int(run.kept.get(what, 0))
    if count >= most:
        raise worded(run, RunCode.NOT_ALLOWED, key, most=most)
    run.kept[what] = count + 1
    return count


def worded(run: ScriptRun, code: RunCode, key: str, **values: object) -> RunError:
    """The fault with the sentence `basic.<key>` of `config/texts/`, to be raised."""
    return RunError(code, run.call.say(f"basic.{key}", **values))


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
        """Add a message. Raises RunError where that would be too much."""
        chars = self.chars + len(message.text)
        if chars > self._most_chars:
            raise RunError(RunCode.OUTPUT, f"it says more than {self._most_chars} characters")
        if message != Message(message.text):
            if self.count >= MOST_MESSAGES:
                raise RunError(RunCode.OUTPUT, f"it says more than {MOST_MESSAGES} messages one by one")
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
