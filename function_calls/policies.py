"""What decides about one run after its arguments are known: budget, taint and approval, each behind one interface."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from function_calls.context import MessageContext
from function_calls.spec import FunctionResult, FunctionSpec
from function_calls.turn import Turn
from services.store.port import Write


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a policy says about one run."""

    refusal: FunctionResult | None = None
    """An error or a question instead of the run; None lets it pass."""
    writes: tuple[Write, ...] = ()
    """Executed in the same unit as the intent: a budget is taken where the run begins, or not at all."""


ALLOWED = Verdict()
OVER_BUDGET = "over_budget"
"""In the metadata of a budget's refusal: `news`, or `told` where the member has heard it today."""


class Policy(Protocol):
    """Decides about one run."""

    def judge(
        self, context: MessageContext, spec: FunctionSpec, arguments: Any, turn: Turn
    ) -> Verdict | Awaitable[Verdict]:
        """ALLOWED, or why not; to be awaited where it has to look something up first."""


class Open:
    """Lets every run pass."""

    def judge(self, context: MessageContext, spec: FunctionSpec, arguments: Any, turn: Turn) -> Verdict:
        return ALLOWED


class Policies(NamedTuple):
    """The three that every run passes, in this order."""

    budget: Policy
    taint: Policy
    approval: Policy
