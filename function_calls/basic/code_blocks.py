"""Code of statements that hold others: IF, the loops, SELECT. Each is given what makes the code of the others."""

from __future__ import annotations

from collections.abc import Callable

from function_calls.basic.assembly import Assembly, Spot
from function_calls.basic.code_expressions import ExpressionCode
from function_calls.basic.jumps import Around, Jumps
from function_calls.basic.nodes import At, Case, ForEach, ForTo, If, Loop, Select, Statement
from function_calls.basic.scopes import Scope

Body = Callable[[tuple[Statement, ...]], None]


class BlockCode:
    """Makes the code of blocks in one procedure."""

    def __init__(self, assembly: Assembly, scope: Scope, values: ExpressionCode, jumps: Jumps, body: Body) -> None:
        self._assembly = assembly
        self._scope = scope
        self._values = values
        self._jumps = jumps
        self._body = body

    def if_(self, node: If) -> None:
        """One branch, or none."""
        end = Spot()
        for condition, body in node.branches:
            other = Spot()
            self._values.expression(condition)
            self._assembly.emit(node.at, "jump_false", other)
            with self._jumps.block():
                self._body(body)
            self._assembly.emit(node.at, "jump", end)
            self._assembly.mark(other)
        with self._jumps.block():
            self._body(node.otherwise)
        self._assembly.mark(end)

    def for_each(self, node: ForEach) -> None:
        """What is gone over is looked at once."""
        self._values.expression(node.of)
        self._assembly.emit(node.at, "each")
        self._for(node.at, "next_each", node.variable, node.body)

    def for_to(self, node: ForTo) -> None:
        """The variable counts; behind the loop it is the first value that was too far, as BASIC has always had it."""
        self._values.expression(node.first)
        self._values.expression(node.last)
        if node.step is None:
            self._assembly.emit(node.at, "const", 1)
        else:
            self._values.expression(node.step)
        self._assembly.emit(node.at, "to")
        self._for(node.at, "next_to", node.variable, node.body)

    def loop(self, node: Loop) -> None:
        """WHILE and DO."""
        start, again, end = Spot(), Spot(), Spot()
        on, off = ("jump_false", "jump_true") if node.until else ("jump_true", "jump_false")
        self._assembly.mark(start)
        if not node.at_end:
            self._assembly.mark(again)
            if node.condition is not None:
                self._values.expression(node.condition)
                self._assembly.emit(node.at, off, end)
        loops = self._jumps.loops
        with self._jumps.block(Around(node.kind, end, loops, again, loops)):
            self._body(node.body)
        if node.at_end:
            self._assembly.mark(again)
        if node.at_end and node.condition is not None:
            self._values.expression(node.condition)
            self._assembly.emit(node.at, on, start)
        else:
            self._assembly.emit(node.at, "jump", start)
        self._assembly.mark(end)

    def select(self, node: Select) -> None:
        """The first case that fits. The subject is on the stack while they are tried, and gone in their bodies."""
        end = Spot()
        around = Around("select", end, self._jumps.loops)
        self._values.expression(node.subject)
        for cases, body in node.cases:
            fits, other = Spot(), Spot()
            for case in cases:
                self._case(case)
                self._assembly.emit(case.at, "jump_true", fits)
            self._assembly.emit(node.at, "jump", other)
            self._assembly.mark(fits)
            self._case_body(node.at, around, body)
            self._assembly.emit(node.at, "jump", end)
            self._assembly.mark(other)
        self._case_body(node.at, around, node.otherwise)
        self._assembly.mark(end)

    def _for(self, at: At, operation: str, variable: str, body: tuple[Statement, ...]) -> None:
        again, end = Spot(), Spot()
        loops = self._jumps.loops
        self._assembly.mark(again)
        self._assembly.emit(at, operation, [end, variable, self._scope.is_top(variable)])
        with self._jumps.block(Around("for", end, loops, again, loops + 1), loops=1):
            self._body(body)
        self._assembly.emit(at, "jump", again)
        self._assembly.mark(end)

    def _case(self, case: Case) -> None:
        self._assembly.emit(case.at, "duplicate")
        self._values.expression(case.low)
        if case.high is not None:
            self._values.expression(case.high)
            self._assembly.emit(case.at, "within")
        else:
            operation = "match" if case.operator in ("=", "<>") else "binary"
            self._assembly.emit(case.at, operation, case.operator)

    def _case_body(self, at: At, around: Around, body: tuple[Statement, ...]) -> None:
        self._assembly.emit(at, "drop")
        with self._jumps.block(around):
            self._body(body)
