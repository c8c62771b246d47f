"""Taint: a turn that has read words from outside asks a person before an effect beyond the asker's own things here."""

from __future__ import annotations

from typing import Any

from function_calls.approvals import Approvals
from function_calls.context import MessageContext
from function_calls.policies import ALLOWED, Verdict
from function_calls.spec import FunctionSpec
from function_calls.touches import is_tainted
from function_calls.turn import Turn


class Taint:
    """The policy of taint. Who is asked is known to the approvals."""

    def __init__(self, approvals: Approvals) -> None:
        self._approvals = approvals

    def judge(self, context: MessageContext, spec: FunctionSpec, arguments: Any, turn: Turn) -> Verdict:
        """ALLOWED, or the question whether this is really meant. Where a rule asks somebody anyway, one question is
        enough: the policy of approvals then asks for what both ask for."""
        if not turn.taint or not is_tainted(spec, turn) or self._is_asked_anyway(context, spec, turn):
            return ALLOWED
        return self._approvals.decide(context, spec, arguments, turn, self._approvals.tainted)

    def _is_asked_anyway(self, context: MessageContext, spec: FunctionSpec, turn: Turn) -> bool:
        return self._approvals.rule(context.chat, spec, turn.profile()) is not None
