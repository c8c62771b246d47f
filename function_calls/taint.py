"""Taint: a turn that has read words from outside asks a person before an effect beyond the asker's own things here."""

from __future__ import annotations

from typing import Any, Literal

from config.terms import RoleName
from function_calls.approvals import Approvals, Rule
from function_calls.context import MessageContext
from function_calls.policies import ALLOWED, Verdict
from function_calls.spec import FunctionSpec
from function_calls.touches import is_tainted
from function_calls.turn import Turn
from services.refs import Role


class Taint:
    """The policy of taint. Who is asked: the asker, or the least role that the settings name."""

    def __init__(self, asked: Literal["asker"] | RoleName, approvals: Approvals) -> None:
        self._approvals = approvals
        self.use(asked)

    def use(self, asked: Literal["asker"] | RoleName) -> None:
        """From the next run on this one is asked."""
        self._rule = Rule(None if asked == "asker" else Role(asked))

    def judge(self, context: MessageContext, spec: FunctionSpec, arguments: Any, turn: Turn) -> Verdict:
        """ALLOWED, or the question whether this is really meant. Where a rule asks somebody anyway, that is enough."""
        if not turn.taint or not is_tainted(spec, turn) or self._is_asked_anyway(context, spec, turn):
            return ALLOWED
        return self._approvals.decide(context, spec, arguments, turn, self._rule)

    def _is_asked_anyway(self, context: MessageContext, spec: FunctionSpec, turn: Turn) -> bool:
        return self._approvals.rule(context.chat, spec, turn.profile()) is not None
