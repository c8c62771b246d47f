"""What a script finds there when it begins: who asks, where, and what the operator has set; and the world of a run."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime

from function_calls.basic.keywords import Value
from function_calls.call import Call
from function_calls.context import MessageContext
from services.clock import Clock
from services.json_values import JsonObject, JsonValue

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
