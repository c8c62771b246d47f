"""How a turn ends, as routing gives it to whoever sends the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from function_calls.context import MessageContext
from function_calls.questions.questions import OpenQuestion
from function_calls.spec import Message
from function_calls.turn import Turn
from services.refs import ErrorCode, ReasonCode


class OutcomeKind(StrEnum):
    """What is left to do after `dispatch`."""

    SENT = "sent"  # there are messages to send
    SILENT = "silent"  # handled, and nothing is to be said
    FALLBACK = "fallback"  # not handled: answer as chat


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """The end of a turn. True when it was handled."""

    kind: OutcomeKind
    reason: ReasonCode
    messages: tuple[Message, ...] = ()
    question: OpenQuestion | None = None
    error: ErrorCode | None = None
    detail: str = ""
    """A function's name, a settings key or a short id, for `/why`."""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.kind is not OutcomeKind.FALLBACK


def sent(
    reason: ReasonCode, messages: Sequence[Message], detail: str = "", error: ErrorCode | None = None
) -> TurnOutcome:
    """Messages to send; without any, handled in silence."""
    if not messages:
        return TurnOutcome(OutcomeKind.SILENT, reason, detail=detail, error=error)
    return TurnOutcome(OutcomeKind.SENT, reason, tuple(messages), detail=detail, error=error)


Dispatch = Callable[[MessageContext, Turn], Awaitable[TurnOutcome]]
