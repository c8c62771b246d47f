"""What a turn remembers of its runs, and of what a model said between them."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from function_calls.spec import FunctionResult, FunctionSpec
from services.llm.model import ModelAnswer
from services.refs import Effect
from services.store.port import Write


class Path(StrEnum):
    """The way by which a run came about."""

    COMMAND = "command"
    MODEL = "model"
    TIMER = "timer"
    API = "api"
    MCP = "mcp"
    CLI = "cli"
    NESTED = "nested"  # a handler called another function


class Run(NamedTuple):
    """One run of a function, as the ledger and the call log know it."""

    key: str
    spec: FunctionSpec
    arguments: Any
    path: Path
    round_number: int
    request_id: str
    """The model request that asked for it; empty for commands."""


class StoredRun(NamedTuple):
    """What is known of a run from before a restart."""

    function: str
    result: FunctionResult | None
    """None: it was begun, and nobody knows how it ended."""
    effect: Effect = Effect.READ


class TurnLog(Protocol):
    """What a turn must remember to survive a crash. The order of these calls is the order of what is durable."""

    def stored_answer(self, round_number: int) -> ModelAnswer | None:
        """The model's answer in that round, from before a restart. What the turn had read when it came, it has then
        read again."""

    def stored_run(self, key: str) -> StoredRun | None:
        """The run of that key, from before a restart. What the turn had read when it ended, it has then read again."""

    def answer(self, round_number: int, answer: ModelAnswer, writes: Sequence[Write] = ()) -> None:
        """Note an answer, together with `writes`; durable with the next intent, or with the end of the turn."""

    async def until_kept(self) -> None:
        """Return when the message that the turn answers is durable: before that, nothing is done that costs or that
        others notice. Raises StoreError when there is no such message: then the turn is none."""

    def intend(self, run: Run, writes: Sequence[Write] = ()) -> Awaitable[None] | None:
        """Note that `run` is about to happen, together with `writes`. It happens when what is returned has come to its
        end: a run with an effect is durable then. None: there is nothing to wait for. Raises Conflict, on the way or
        then, when `writes` cannot be done: then nothing was noted."""

    def result(self, run: Run, result: FunctionResult) -> None:
        """Note how it ended; durable with the next `settle` or the end of the turn."""

    async def settle(self) -> None:
        """Make results of effects durable before anything slow happens."""


class NoTurnLog:
    """Remembers nothing: for calls outside a daemon, and for tests."""

    def stored_answer(self, round_number: int) -> ModelAnswer | None:
        return None

    def stored_run(self, key: str) -> StoredRun | None:
        return None

    def answer(self, round_number: int, answer: ModelAnswer, writes: Sequence[Write] = ()) -> None:
        return None

    async def until_kept(self) -> None:
        return None

    def intend(self, run: Run, writes: Sequence[Write] = ()) -> None:
        return None

    def result(self, run: Run, result: FunctionResult) -> None:
        return None

    async def settle(self) -> None:
        return None
