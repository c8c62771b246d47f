"""Code of statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from function_calls.basic.assembly import Assembly, Spot
from function_calls.basic.caught import ERROR_NAMES
from function_calls.basic.code_blocks import BlockCode
from function_calls.basic.code_expressions import ExpressionCode, Found
from function_calls.basic.codes import Code
from function_calls.basic.filter_texts import is_of_author, parts_beside, parts_of
from function_calls.basic.jumps import Jumps
from function_calls.basic.nodes import (
    Apply,
    Assert,
    Assign,
    At,
    Continue,
    Dim,
    Evaluate,
    Expression,
    ForEach,
    ForTo,
    Goto,
    If,
    Index,
    Label,
    Leave,
    Literal,
    Loop,
    Member,
    Name,
    OnError,
    Return,
    Select,
    Statement,
    Stop,
    Target,
    Throw,
    Want,
    With,
)
from function_calls.basic.program import Procedure
from function_calls.basic.scopes import Scope, changed_by, clears_error, root_of

_DEEPEST = 120
"""Blocks within one another: more than the parser lets through, so that it speaks first."""
UNWORDED_ASSERTION = "an ASSERT of the script does not hold"
"""What an ASSERT says that has no words of its own."""


class StatementCode:
    """Makes the code of one procedure."""

    def __init__(self, scope: Scope, name: str, found: Found) -> None:
        self._assembly = Assembly()
        self._scope = scope
        self._name = name
        self._found = found
        self._depth = 0
        self._values = ExpressionCode(self._assembly, scope, found)
        self._jumps = Jumps(self._assembly, found.faults)
        self._end = Spot()

    @property
    def blocks(self) -> BlockCode:
        """What makes the code of its blocks."""
        return BlockCode(self._assembly, self._scope, self._values, self._jumps, self._body)

    def procedure(self, at: At, parameters: tuple[str, ...], body: tuple[Statement, ...]) -> Procedure:
        """The code of all of it."""
        self._body(body)
        self._assembly.mark(self._end)
        self._give_back(at)
        self._jumps.settle()
        return self._assembly.procedure(self._name, parameters)

    def _body(self, body: tuple[Statement, ...]) -> None:
        if self._depth >= _DEEPEST:
            at = body[0].at if body else At(1, 1)
            self._values.fault(at, Code.TOO_DEEP, f"blocks stand more than {_DEEPEST} deep within one another")
            return
        self._depth += 1
        for statement in body:
            if isinstance(statement, Label):
                self._jumps.label(statement)
            elif type(statement) in self._make:
                start = self._assembly.here
                self._make[type(statement)](self, statement)
                self._assembly.statement(start, self._jumps.loops)
            else:
                self._values.fault(statement.at, Code.MISPLACED, "SUBs and FUNCTIONs stand at the top of a script")
        self._depth -= 1

    def _assign(self, node: Assign) -> None:
        if clears_error(node) and not self._scope.has(str(root_of(node.target))):
            self._assembly.emit(node.at, "forget_error")
            return
        if self._values.is_followed(node.target) and self._follow(node.target, node.value):
            return
        self._values.expression(node.value)
        if isinstance(node.value, Want):
            # The IF ERROR behind it speaks of this keyword, which has done what it should, and of none before.
            self._assembly.emit(node.at, "forget_error")
        self._store(node.target)

    def _follow(self, variable: Name, value: Expression) -> bool:
        """Give a variable its value, and keep beside it of which parts its text is made, where this can be told."""
        parts = parts_of(value)
        if not (parts or is_of_author(value) or self._values.is_followed(value)):
            return False
        at, name = variable.at, variable.name
        if parts:
            self._values.parts(at, parts)
            self._assembly.emit(at, "duplicate")
            self._assembly.emit(at, self._scope.store(name), parts_beside(name))
            self._assembly.emit(at, "text_of_parts")
        else:
            self._values.expression(value)
            self._assembly.emit(at, "duplicate")
            if self._values.is_followed(value):
                self._assembly.emit(at, self._scope.load(value.name), parts_beside(value.name))
            self._assembly.emit(at, "parts", "p" if self._values.is_followed(value) else "a")
            self._assembly.emit(at, self._scope.store(name), parts_beside(name))
        self._assembly.emit(at, self._scope.store(name), name)
        return True

    def _store(self, target: Target) -> None:
        """Give the value on the stack to a variable, or to what stands in one."""
        keys: list[tuple[str | None, Expression | None]] = []
        inner: Expression = target
        while not isinstance(inner, Name):
            if isinstance(inner, Member):
                keys.append((inner.name, None))
                inner = inner.of
            elif isinstance(inner, Index):
                keys.append((None, inner.index))
                inner = inner.of
            elif isinstance(inner, Apply) and inner.arguments:
                keys.extend((None, index) for index in reversed(inner.arguments))
                inner = Name(inner.at, inner.name)
            else:
                self._values.fault(
                    inner.at, Code.SYNTAX, "only a variable, or what stands in one, can be given a value"
                )
                return
        if keys:
            self._change(inner, keys[::-1])
        self._assembly.emit(target.at, self._scope.store(inner.name), inner.name)

    def _change(self, variable: Name, keys: list[tuple[str | None, Expression | None]]) -> None:
        for _, index in keys:
            if index is not None:
                self._values.expression(index)
        self._assembly.emit(variable.at, self._scope.load(variable.name), variable.name)
        self._assembly.emit(variable.at, "changed", [name for name, _ in keys])

    def _dim(self, node: Dim) -> None:
        if node.size is None:
            self._assembly.emit(node.at, "list", 0)
        else:
            self._values.expression(node.size)
            self._assembly.emit(node.at, "dim")
        self._assembly.emit(node.at, self._scope.store(node.name), node.name)

    def _evaluate(self, node: Evaluate) -> None:
        expression = node.expression
        target = changed_by(expression)
        if self._is_error_clear(expression):
            self._assembly.emit(node.at, "forget_error")
            return
        self._values.expression(expression)
        if target is not None:
            self._store(target)
        else:
            self._assembly.emit(node.at, "drop")

    def _is_error_clear(self, expression: Expression) -> bool:
        """`ERR.CLEAR`, with parentheses or without."""
        if isinstance(expression, Member) and expression.name.lower() == "clear":
            of = expression.of
        elif isinstance(expression, Apply) and expression.name == "clear" and len(expression.arguments) == 1:
            of = expression.arguments[0]
        else:
            return False
        return isinstance(of, Name) and of.name in ERROR_NAMES and not self._scope.has(of.name)

    def _leave(self, node: Leave) -> None:
        if node.what not in ("sub", "function"):
            self._jumps.leave(node.at, node.what)
        elif self._scope.own is None:
            self._values.fault(node.at, Code.MISPLACED, f"EXIT {node.what.upper()} stands in no {node.what.upper()}")
        else:
            self._assembly.emit(node.at, "jump", self._end)

    def _continue(self, node: Continue) -> None:
        self._jumps.again(node.at, node.what)

    def _goto(self, node: Goto) -> None:
        self._jumps.go(node.at, node.label, node.comes_back)

    def _stop(self, node: Stop) -> None:
        self._assembly.emit(node.at, "stop")

    def _return(self, node: Return) -> None:
        if node.value is not None:
            self._values.expression(node.value)
            self._assembly.emit(node.at, "return")
        else:
            self._assembly.emit(node.at, "back")
            self._give_back(node.at)

    def _give_back(self, at: At) -> None:
        """What a FUNCTION has given its own name; of all else nothing."""
        if self._scope.own is None:
            self._assembly.emit(at, "const", None)
        else:
            self._assembly.emit(at, "load", self._name)
        self._assembly.emit(at, "return")

    def _with(self, node: With) -> None:
        self._values.expression(node.target)
        self._entries(node, 0)
        self._store(node.target)

    def _entries(self, node: With, depth: int) -> None:
        """Put the members into what is on the stack."""
        if depth >= _DEEPEST:
            self._values.fault(node.at, Code.TOO_DEEP, f"WITHs stand more than {_DEEPEST} deep within one another")
            return
        self._assembly.emit(node.at, "as_map")
        for name, value in node.entries:
            if isinstance(value, With):
                self._assembly.emit(value.at, "duplicate")
                self._assembly.emit(value.at, "member", name)
                self._entries(value, depth + 1)
            else:
                self._values.expression(value)
            self._assembly.emit(value.at, "put_member", name)

    def _on_error(self, node: OnError) -> None:
        if node.label:
            self._jumps.on_error(node.at, node.label)
        else:
            self._assembly.emit(node.at, "on_error", "next" if node.resume else "off")

    def _throw(self, node: Throw) -> None:
        self._values.expression(node.message)
        self._assembly.emit(node.at, "throw")

    def _assert(self, node: Assert) -> None:
        holds = Spot()
        self._values.expression(node.condition)
        self._assembly.emit(node.at, "jump_true", holds)
        self._values.expression(node.message or Literal(node.at, UNWORDED_ASSERTION))
        self._assembly.emit(node.at, "assert")
        self._assembly.mark(holds)

    # With the class: what held its own methods would be garbage that counting references does not find.
    _make: ClassVar[Mapping[type, Callable[[Any, Any], None]]] = {
        Assign: _assign,
        Dim: _dim,
        Evaluate: _evaluate,
        If: lambda code, node: code.blocks.if_(node),
        ForEach: lambda code, node: code.blocks.for_each(node),
        ForTo: lambda code, node: code.blocks.for_to(node),
        Loop: lambda code, node: code.blocks.loop(node),
        Select: lambda code, node: code.blocks.select(node),
        Leave: _leave,
        Continue: _continue,
        Return: _return,
        Stop: _stop,
        With: _with,
        OnError: _on_error,
        Throw: _throw,
        Assert: _assert,
        Goto: _goto,
    }
