"""Values for tests, each whole and ordinary unless the test says otherwise."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from config.texts import Texts
from function_calls.call import Call, Resumed
from function_calls.context import Kind, MessageContext, MessageKey, Sender
from function_calls.profile import ChatProfile
from function_calls.spec import FunctionResult, FunctionSpec, Takeable
from services.llm.model import OfferedFunction
from services.refs import ChatRef, MemberRef, Role
from services.threads import Threads

TEXTS = Texts()
FAMILY = ChatRef("test", "bot", "family")
_NUMBERS = itertools.count(1)


def a_member(name: str = "Ann", role: Role = Role.MEMBER) -> Sender:
    """A person on the platform `test`."""
    return Sender(MemberRef("test", "bot", name.lower()), name, role)


def a_message(text: str = "hello", sender: str | Sender = "Ann", **changes: Any) -> MessageContext:
    """A message to the bot in the family group. `changes` are fields of MessageContext."""
    chat = changes.pop("chat", FAMILY)
    native_id = changes.pop("native_id", None) or f"m{next(_NUMBERS)}"
    context = MessageContext(
        key=MessageKey(chat, native_id),
        kind=Kind.MESSAGE,
        chat=chat,
        is_group=True,
        sender=sender if isinstance(sender, Sender) else a_member(sender),
        text=text,
        sent_at=datetime(2026, 1, 5, 9, 0, tzinfo=UTC),
        mentions_bot=True,
    )
    return replace(context, **changes)


def a_profile(language: str = "en", timezone: str = "Europe/Oslo", **changes: Any) -> ChatProfile:
    """The settings of an ordinary chat."""
    profile = ChatProfile(
        bot="default",
        bot_name="Rollcall",
        persona="",
        texts=TEXTS.of(language),
        timezone=ZoneInfo(timezone),
        functions_on=True,
        functions={},
        layers={},
    )
    return replace(profile, **changes)


def a_call(language: str = "en", key: str = "turn-1:0", state: dict[str, Any] | None = None, **profile: Any) -> Call:
    """A run of a function, outside any turn: `invoke` fails, and status texts are dropped."""

    profile_ = a_profile(language, **profile)
    return Call(key, 30.0, {} if state is None else state, profile_, _NoDoors())


class _NoDoors:
    """Leads to no other function, and to no chat."""

    threads = Threads()
    asked_at = None
    answered = ""
    resumed = None

    def count_from(self, at: datetime) -> None:
        return None

    def functions(self) -> Sequence[FunctionSpec]:
        return ()

    def on_request(self) -> Sequence[Takeable]:
        return ()

    def is_at_hand(self, spec: FunctionSpec) -> bool:
        return True

    def find(self, text: str, most: int) -> Sequence[OfferedFunction]:
        return ()

    async def invoke(
        self,
        name: str,
        arguments: Mapping[str, Any],
        number: int,
        *,
        confirmed: bool = False,
        goes_on: Resumed | None = None,
        allowed: str = "",
    ) -> FunctionResult:
        raise AssertionError(f"the handler called {name!r} with {dict(arguments)!r}, which this test did not expect")

    def has_read_outside(self) -> None:
        return None

    async def role_now(self) -> Role:
        return Role.MEMBER

    def would_ask(self, spec: FunctionSpec) -> bool:
        return False

    async def until_kept(self) -> None:
        return None

    async def status(self, text: str) -> None:
        return None
