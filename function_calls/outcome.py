"""Outcome of a turn: the messages to send, the question that it asks, and the reason code."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import orjson

from config.texts import Phrases
from function_calls.call import Path
from function_calls.context import MessageContext
from function_calls.failures import FAILURE_ID, OVER_BUDGET, REFUSED_BY
from function_calls.schema.commands import done_text
from function_calls.spec import (
    ApprovalQuestion,
    ArgumentQuestion,
    FunctionResult,
    FunctionSpec,
    InputQuestion,
    Message,
    Question,
    Resumed,
)
from function_calls.turn import Continuation, OpenQuestion, Turn
from services.refs import ErrorCode, ReasonCode

UNVOUCHED = "unvouched"
"""Metadata key of an approval question: why the asker's words do not stand for the call, a text of `vouching`."""
TEXT_IN_CHAT = "said_all"
"""Metadata key of a result whose data are for models and callers only: the run has sent the chat everything."""


class OutcomeKind(StrEnum):
    """Remaining work after `dispatch`."""

    SENT = "sent"  # there are messages to send
    SILENT = "silent"  # handled without a reply
    FALLBACK = "fallback"  # not handled: answer as chat


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """Outcome of a turn. Truthy if the message was handled."""

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
    """Outcome with messages to send; SILENT if there are no messages."""
    if not messages:
        return TurnOutcome(OutcomeKind.SILENT, reason, detail=detail, error=error)
    return TurnOutcome(OutcomeKind.SENT, reason, tuple(messages), detail=detail, error=error)


def asking_messages(result: FunctionResult, texts: Phrases) -> tuple[Message, ...]:
    """Messages of a result that asks a question: the run's messages so far, then the question; only the former without
    a question."""
    question = result.question
    if question is None:
        return result.messages
    asks = Message(question.text, choices=question.choices)
    match question:
        case InputQuestion() if not question.text.strip():
            if not result.messages:
                return (replace(asks, text=texts.say("questions.input")),)
            *others, last = result.messages
            return (*others, replace(last, choices=question.choices or last.choices))
        case InputQuestion() | ApprovalQuestion(interrupted=Resumed()):
            return (*result.messages, asks)
    return (asks,)


def is_repeated(question: Question, asked: Sequence[str]) -> bool:
    """Whether `question` is for an argument that was already requested; `asked` are their names."""
    return isinstance(question, ArgumentQuestion) and question.field in asked


def suspended(
    turn: Turn,
    spec: FunctionSpec,
    result: FunctionResult,
    question: Question,
    path: Path,
    asked: Sequence[str],
    **rounds: Any,
) -> TurnOutcome:
    """Outcome of a turn that asks the `question` of `result`, with its saved state. `rounds`: the Continuation fields
    of the model rounds."""
    on = Continuation(
        path.value,
        # A function may pass on the question of a function that it called.
        (turn.input.functions.find(question.function) or spec).fingerprint,
        turn.memory.state,
        asked=(*asked, question.field) if isinstance(question, ArgumentQuestion) else asked,
        taint=sorted(turn.memory.taint),
        asked_at=turn.memory.asked_at_seconds,
        words=turn.memory.words,
        **rounds,
    )
    messages = asking_messages(result, turn.input.profile().texts)
    doubt = result.metadata.get(UNVOUCHED)
    detail = f"@vouching.{doubt} {spec.name}" if doubt else spec.name
    return TurnOutcome(OutcomeKind.SENT, ReasonCode.ASKED, messages, OpenQuestion(question, on), detail=detail)


def cause(result: FunctionResult, spec: FunctionSpec) -> str:
    """Reason of a failed run, for `/why`: the settings key that refused it or limits its time, the id in the log, or
    else the function's name."""
    found = result.metadata.get(REFUSED_BY) or result.metadata.get(FAILURE_ID)
    if found:
        return str(found)
    is_late = result.error is not None and result.error.code is ErrorCode.TIMEOUT
    return f"functions.{spec.name}.timeout_seconds" if is_late else spec.name


def shown(result: FunctionResult) -> tuple[Message, ...]:
    """Messages of a result without a model: its messages, or else its data as text."""
    if result.messages or result.data is None or result.error is not None or TEXT_IN_CHAT in result.metadata:
        return result.for_chat()
    data = result.data
    text = data if isinstance(data, str) else orjson.dumps(data, default=str, option=orjson.OPT_INDENT_2).decode()
    return (Message(text),) if text else ()


_REASONS = {
    ErrorCode.BAD_ARGUMENTS: ReasonCode.USAGE,
    ErrorCode.MISSING_ARGUMENTS: ReasonCode.USAGE,
    ErrorCode.NOT_FOUND: ReasonCode.USAGE,
    ErrorCode.REFUSED: ReasonCode.REFUSED,
    ErrorCode.UNKNOWN_OUTCOME: ReasonCode.UNKNOWN_OUTCOME,
}


def outcome_of(
    turn: Turn,
    spec: FunctionSpec,
    result: FunctionResult,
    reason: ReasonCode,
    asked: tuple[str, ...],
    path: Path = Path.COMMAND,
) -> TurnOutcome:
    """Outcome of a turn that consists of one run: suspended by its question, failed with the reason for its error, or
    sent with `reason`; a run without a message or effect falls back to chat. A question in `asked` is not repeated."""
    question = result.question
    if question is not None and not is_repeated(question, asked):
        return suspended(turn, spec, result, question, path, asked)
    if result.error is not None:
        reason = _REASONS.get(result.error.code, ReasonCode.FUNCTION_FAILED)
        detail = cause(result, spec)
        if OVER_BUDGET in result.metadata:
            was_notified = result.metadata[OVER_BUDGET] == "told" and turn.input.answering is None
            return sent(ReasonCode.OVER_BUDGET, () if was_notified else result.for_chat(), detail, result.error.code)
        return sent(reason, result.for_chat(), detail, result.error.code)
    if not result.handled and not result.messages and not turn.memory.effects:
        return TurnOutcome(OutcomeKind.FALLBACK, ReasonCode.CHAT, detail=spec.name)
    messages = shown(result)
    if not messages and turn.memory.effects and turn.input.answering is not None:
        messages = (Message(done_text([spec], turn.input.profile().texts)),)
    return sent(reason, messages, spec.name)


Dispatch = Callable[[MessageContext, Turn], Awaitable[TurnOutcome]]
