"""Builders of valid test values with typical defaults."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from config.texts import Texts
from function_calls.call import Call, CallRequest, Path
from function_calls.context import Kind, MessageContext, MessageKey, Sender
from function_calls.profile import ChatProfile
from function_calls.registry import BotFunctions
from function_calls.spec import FunctionResult, FunctionSpec, Resumed
from function_calls.turn import Turn, TurnInput
from services.llm.model import OfferedFunction
from services.refs import ChatRef, MemberRef, Role
from services.threads import Threads

TEXTS = Texts()
FAMILY = ChatRef("test", "bot", "family")
_NUMBERS = itertools.count(1)


def a_member(name: str = "Ann", role: Role = Role.MEMBER) -> Sender:
    """A member on the platform `test`."""
    return Sender(MemberRef("test", "bot", name.lower()), name, role)


def a_message(text: str = "hello", sender: str | Sender = "Ann", **changes: Any) -> MessageContext:
    """A message to the bot in the family group. `changes`: fields of MessageContext."""
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
    """Settings of a typical chat."""
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


def a_call(
    language: str = "en",
    key: str = "turn-1:0",
    state: dict[str, Any] | None = None,
    resumed: Resumed | None = None,
    **profile: Any,
) -> Call:
    """A run of a function in a turn without other functions: `invoke` fails, and status texts are dropped."""
    profile_ = a_profile(language, **profile)
    turn = Turn(TurnInput("turn-1", BotFunctions(()), lambda: profile_), math.inf)
    if state is not None:
        turn.memory.state = state
    if resumed is not None:
        turn.memory.resume(key, resumed)
    request = CallRequest(a_message(), "function", {}, turn, Path.COMMAND, key=key)
    return Call(_NoOtherFunctions(), request, profile_, deadline=30.0)


class _NoOtherFunctions:
    """Runs nothing."""

    threads = Threads()

    async def invoke(self, request: CallRequest) -> FunctionResult:
        raise AssertionError(f"the handler called {request.name!r} with {request.arguments!r}: not expected here")

    def now(self) -> datetime:
        return datetime(2026, 1, 5, 9, 0, tzinfo=UTC)

    def callable_by(self, request: CallRequest) -> Sequence[FunctionSpec]:
        return ()

    def find(self, request: CallRequest, text: str, most: int) -> Sequence[OfferedFunction]:
        return ()

    def would_ask(self, request: CallRequest, spec: FunctionSpec) -> bool:
        return False
