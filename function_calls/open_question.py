"""A question that waits for its answer, and where a turn goes on from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from function_calls.context import MessageContext
from function_calls.spec import Question
from services.json_values import JsonObject


@dataclass(frozen=True, slots=True)
class Continuation:
    """Where a turn that asked a question goes on: plain data, so that it survives a restart."""

    path: str
    fingerprint: str
    """Of the spec when it was asked: a function that has changed since is not run on an old answer."""
    state: JsonObject
    transcript: Sequence[JsonObject] = ()
    """The model conversation so far; empty for a command."""
    call_id: str = ""
    """The model's call that the question interrupted."""
    calls: Sequence[JsonObject] = ()
    """The calls of the same answer that have not run."""
    rounds: int = 0
    final: bool = False
    """The model is not asked again after the calls."""
    asked: Sequence[str] = ()
    """Parameters that were asked for already: none is asked twice."""
    uncertain: bool = False
    """The model only guessed that this is meant: a yes is asked for before it runs."""
    taint: Sequence[str] = ()
    """What the turn has read, as `Turn.taint` has it."""
    asked_at: float | None = None
    """When the message came that led here, in seconds since 1970; None where nobody knows."""
    remembered: JsonObject = field(default_factory=dict)
    """What the rounds with the model knew of what they had done; empty for a command."""


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question that waits for its answer."""

    question: Question
    continuation: Continuation
    id: int = 0
    asker: MessageContext | None = None
    """Of one that a handler asked: whose run it is and where, without the words. The handler is told even when no
    answer comes."""
    private: bool = False
    """Nobody else in the chat was shown it."""
