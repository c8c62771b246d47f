"""Code generation for statements, blocks and jumps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple

from function_calls.basic import nodes
from function_calls.basic.codes import Code, ScriptError
from function_calls.basic.environment import ERROR_NAMES
from function_calls.basic.language.filter_texts import is_of_author, parts_of, parts_variable
from function_calls.basic.language.scopes import Scope, changed_by, clears_error, own_scope, root_of, top_scope
from function_calls.basic.machine.code_expressions import Assembly, ExpressionCode, Findings, JumpTarget
from function_calls.basic.machine.program import Procedure, Program, made
from function_calls.basic.nodes import At, Expression, Statement, Target, Unit

Path = tuple[int, ...]
"""Ids of the blocks around a statement, from the outermost inwards."""


class Around(NamedTuple):
    """An enclosing block, with the targets of EXIT and CONTINUE."""

    kind: str
    leave: JumpTarget
    leave_loops: int
    again: JumpTarget | None = None
    again_loops: int = 0


class _Place(NamedTuple):
    spot: JumpTarget
    path: Path
    loops: int


class _Jump(NamedTuple):
    """A pending jump to a label."""

    at: At
    label: str
    path: Path
    target: JumpTarget
    loops: JumpTarget


_ALSO = {"do": "while", "while": "do"}


class Jumps:
    """Labels and jumps of one procedure. Collected during code generation; resolved at the end. The parser has reported
    invalid ones to the author, so that ScriptError is raised only for other trees."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._labels: dict[str, _Place] = {}
        self._jumps: list[_Jump] = []
        self._around: list[Around] = []
        self._path: Path = ()
        self._blocks = 0
        self.loops = 0
        """Number of active FOR loops."""

    @contextmanager
    def block(self, around: Around | None = None, loops: int = 0) -> Iterator[None]:
        """Context manager for a block, with `loops` more active FOR loops. `around` is the target of EXIT and CONTINUE
        in it."""
        self._blocks += 1
        before = self._path
        self._path = (*before, self._blocks)
        self.loops += loops
        if around is not None:
            self._around.append(around)
        yield
        if around is not None:
            self._around.pop()
        self.loops -= loops
        self._path = before

    def label(self, label: nodes.Label) -> None:
        """Define a label here."""
        spot = JumpTarget()
        self._assembly.mark(spot)
        self._labels[label.name] = _Place(spot, self._path, self.loops)

    def go(self, at: At, label: str, comes_back: bool) -> None:
        """Emit GOTO, or GOSUB if `comes_back`. `settle` resolves the target."""
        jump = _Jump(at, label, self._path, JumpTarget(), JumpTarget())
        self._jumps.append(jump)
        if comes_back:
            self._assembly.emit(at, "gosub", [jump.target, jump.loops])
        else:
            if self.loops:
                self._assembly.emit(at, "cut", jump.loops)
            self._assembly.emit(at, "jump", jump.target)

    def on_error(self, at: At, label: str) -> None:
        """Emit ON ERROR GOTO: its label must be outside of all blocks, since errors occur anywhere."""
        jump = _Jump(at, label, (), JumpTarget(), JumpTarget())
        self._jumps.append(jump)
        self._assembly.emit(at, "on_error", jump.target)

    def leave(self, at: At, what: str) -> None:
        """Emit EXIT or BREAK: a jump past the innermost block of kind `what`."""
        around = self._innermost(at, what)
        self._go(at, around.leave, around.leave_loops)

    def again(self, at: At, what: str) -> None:
        """Emit CONTINUE: a jump to the next iteration of the innermost loop of this kind."""
        around = self._innermost(at, what)
        if around.again is None:
            raise ScriptError(at, Code.MISPLACED, f"CONTINUE is not inside a {what}")
        self._go(at, around.again, around.again_loops)

    def settle(self) -> None:
        """Resolve all jumps after the last label. Raises ScriptError for an unknown label and a jump into a block."""
        for jump in self._jumps:
            place = self._labels.get(jump.label)
            if place is None:
                raise ScriptError(jump.at, Code.UNKNOWN_LABEL, f"unknown label {jump.label}")
            if place.path != jump.path[: len(place.path)]:
                raise ScriptError(jump.at, Code.MISPLACED, f"a jump to {jump.label} would jump into a block")
            jump.target.position = place.spot.position
            jump.loops.position = place.loops

    def _innermost(self, at: At, what: str) -> Around:
        for wanted in (what, _ALSO.get(what)):
            for around in reversed(self._around):
                if around.kind == wanted or (what == "loop" and around.kind != "select"):
                    return around
        raise ScriptError(at, Code.MISPLACED, f"EXIT or CONTINUE is not inside a {what}")

    def _go(self, at: At, spot: JumpTarget, loops: int) -> None:
        if loops != self.loops:
            self._assembly.emit(at, "cut", loops)
        self._assembly.emit(at, "jump", spot)


_DEEPEST = 120
"""Limit on nested blocks, above the parser's so that the parser reports it first."""
UNWORDED_ASSERTION = "an ASSERT of the script does not hold"
"""Message of an ASSERT without a message."""


class StatementCode:
    """Code generation for one procedure."""

    def __init__(self, scope: Scope, name: str, found: Findings) -> None:
        self._assembly = Assembly()
        self._scope = scope
        self._name = name
        self._found = found
        self._depth = 0
        self._values = ExpressionCode(self._assembly, scope, found)
        self._jumps = Jumps(self._assembly)
        self._end = JumpTarget()

    def procedure(self, at: At, parameters: tuple[str, ...], body: tuple[Statement, ...]) -> Procedure:
        """Emit the body and the return, resolve its jumps, and return the finished procedure."""
        self._body(body)
        self._assembly.mark(self._end)
        self._give_back(at)
        self._jumps.settle()
        return self._assembly.procedure(self._name, parameters)

    def _body(self, body: tuple[Statement, ...]) -> None:
        if self._depth >= _DEEPEST:
            raise ScriptError(body[0].at if body else At(1, 1), Code.TOO_DEEP, f"more than {_DEEPEST} nested blocks")
        self._depth += 1
        for statement in body:
            if isinstance(statement, nodes.Label):
                self._jumps.label(statement)
            else:
                start = self._assembly.here
                self._make[type(statement)](self, statement)
                self._assembly.statement(start, self._jumps.loops)
        self._depth -= 1

    def _if(self, node: nodes.If) -> None:
        """Emit code that runs the first branch whose condition is true, else the ELSE branch."""
        end = JumpTarget()
        for condition, body in node.branches:
            other = JumpTarget()
            self._values.expression(condition)
            self._assembly.emit(node.at, "jump_false", other)
            with self._jumps.block():
                self._body(body)
            self._assembly.emit(node.at, "jump", end)
            self._assembly.mark(other)
        with self._jumps.block():
            self._body(node.otherwise)
        self._assembly.mark(end)

    def _for_each(self, node: nodes.ForEach) -> None:
        """The iterated value is evaluated once."""
        self._values.expression(node.of)
        self._assembly.emit(node.at, "each")
        self._for(node.at, "next_each", node.variable, node.body)

    def _for_to(self, node: nodes.ForTo) -> None:
        """After the loop, the variable has the first value past the end, as in traditional BASIC."""
        self._values.expression(node.first)
        self._values.expression(node.last)
        if node.step is None:
            self._assembly.emit(node.at, "const", 1)
        else:
            self._values.expression(node.step)
        self._assembly.emit(node.at, "to")
        self._for(node.at, "next_to", node.variable, node.body)

    def _loop(self, node: nodes.Loop) -> None:
        """Emit code for WHILE and DO, with the condition at the beginning or, if `at_end`, at the end."""
        start, again, end = JumpTarget(), JumpTarget(), JumpTarget()
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

    def _select(self, node: nodes.Select) -> None:
        """The first matching case. The subject is on the stack during the tests and dropped before a body."""
        end = JumpTarget()
        around = Around("select", end, self._jumps.loops)
        self._values.expression(node.subject)
        for cases, body in node.cases:
            fits, other = JumpTarget(), JumpTarget()
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
        again, end = JumpTarget(), JumpTarget()
        loops = self._jumps.loops
        self._assembly.mark(again)
        self._assembly.emit(at, operation, [end, variable, self._scope.is_top(variable)])
        with self._jumps.block(Around("for", end, loops, again, loops + 1), loops=1):
            self._body(body)
        self._assembly.emit(at, "jump", again)
        self._assembly.mark(end)

    def _case(self, case: nodes.Case) -> None:
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

    def _assign(self, node: nodes.Assign) -> None:
        if clears_error(node) and not self._scope.has(str(root_of(node.target))):
            self._assembly.emit(node.at, "forget_error")
            return
        if self._values.is_followed(node.target) and self._follow(node.target, node.value):
            return
        self._values.expression(node.value)
        if isinstance(node.value, nodes.KeywordCall):
            # A following IF ERROR refers to this successful keyword, not to an earlier error.
            self._assembly.emit(node.at, "forget_error")
        self._store(node.target)

    def _follow(self, variable: nodes.Name, value: Expression) -> bool:
        """Assign to a tracked variable and store the parts of its text; False if the parts are unknown."""
        parts = parts_of(value)
        if not (parts or is_of_author(value) or self._values.is_followed(value)):
            return False
        at, name = variable.at, variable.name
        if parts:
            self._values.parts(at, parts)
            self._assembly.emit(at, "duplicate")
            self._assembly.emit(at, self._scope.store(name), parts_variable(name))
            self._assembly.emit(at, "text_of_parts")
        else:
            self._values.expression(value)
            self._assembly.emit(at, "duplicate")
            if self._values.is_followed(value):
                self._assembly.emit(at, self._scope.load(value.name), parts_variable(value.name))
            self._assembly.emit(at, "parts", "p" if self._values.is_followed(value) else "a")
            self._assembly.emit(at, self._scope.store(name), parts_variable(name))
        self._assembly.emit(at, self._scope.store(name), name)
        return True

    def _store(self, target: Target) -> None:
        """Emit code that stores the value on the stack in a variable, or in a member or item of it."""
        keys: list[tuple[str | None, Expression | None]] = []
        inner: Expression = target
        while not isinstance(inner, nodes.Name):
            if isinstance(inner, nodes.Member):
                keys.append((inner.name, None))
                inner = inner.of
            elif isinstance(inner, nodes.Index):
                keys.append((None, inner.index))
                inner = inner.of
            elif isinstance(inner, nodes.Apply) and inner.arguments:
                keys.extend((None, index) for index in reversed(inner.arguments))
                inner = nodes.Name(inner.at, inner.name)
            else:
                message = "only a variable, or a member or item of one, can be assigned"
                raise ScriptError(inner.at, Code.SYNTAX, message)
        if keys:
            self._change(inner, keys[::-1])
        self._assembly.emit(target.at, self._scope.store(inner.name), inner.name)

    def _change(self, variable: nodes.Name, keys: list[tuple[str | None, Expression | None]]) -> None:
        for _, index in keys:
            if index is not None:
                self._values.expression(index)
        self._assembly.emit(variable.at, self._scope.load(variable.name), variable.name)
        self._assembly.emit(variable.at, "changed", [name for name, _ in keys])

    def _dim(self, node: nodes.Dim) -> None:
        if node.size is None:
            self._assembly.emit(node.at, "list", 0)
        else:
            self._values.expression(node.size)
            self._assembly.emit(node.at, "dim")
        self._assembly.emit(node.at, self._scope.store(node.name), node.name)

    def _evaluate(self, node: nodes.Evaluate) -> None:
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
        """Whether it is `ERR.CLEAR`, with or without parentheses."""
        if isinstance(expression, nodes.Member) and expression.name.lower() == "clear":
            of = expression.of
        elif isinstance(expression, nodes.Apply) and expression.name == "clear" and len(expression.arguments) == 1:
            of = expression.arguments[0]
        else:
            return False
        return isinstance(of, nodes.Name) and of.name in ERROR_NAMES and not self._scope.has(of.name)

    def _leave(self, node: nodes.Leave) -> None:
        if node.what not in ("sub", "function"):
            self._jumps.leave(node.at, node.what)
        elif self._scope.own is None:
            raise ScriptError(node.at, Code.MISPLACED, f"EXIT {node.what.upper()} is not inside a {node.what.upper()}")
        else:
            self._assembly.emit(node.at, "jump", self._end)

    def _continue(self, node: nodes.Continue) -> None:
        self._jumps.again(node.at, node.what)

    def _goto(self, node: nodes.Goto) -> None:
        self._jumps.go(node.at, node.label, node.comes_back)

    def _stop(self, node: nodes.Stop) -> None:
        self._assembly.emit(node.at, "stop")

    def _return(self, node: nodes.Return) -> None:
        if node.value is not None:
            self._values.expression(node.value)
            self._assembly.emit(node.at, "return")
        else:
            self._assembly.emit(node.at, "back")
            self._give_back(node.at)

    def _give_back(self, at: At) -> None:
        """Return the variable with the FUNCTION's name; NULL at the top level."""
        if self._scope.own is None:
            self._assembly.emit(at, "const", None)
        else:
            self._assembly.emit(at, "load", self._name)
        self._assembly.emit(at, "return")

    def _with(self, node: nodes.With) -> None:
        self._values.expression(node.target)
        self._entries(node, 0)
        self._store(node.target)

    def _entries(self, node: nodes.With, depth: int) -> None:
        """Emit code that sets members of the map on the stack. Raises ScriptError for too many nested WITH blocks."""
        if depth >= _DEEPEST:
            raise ScriptError(node.at, Code.TOO_DEEP, f"more than {_DEEPEST} nested WITH blocks")
        self._assembly.emit(node.at, "as_map")
        for name, value in node.entries:
            if isinstance(value, nodes.With):
                self._assembly.emit(value.at, "duplicate")
                self._assembly.emit(value.at, "member", name)
                self._entries(value, depth + 1)
            else:
                self._values.expression(value)
            self._assembly.emit(value.at, "put_member", name)

    def _on_error(self, node: nodes.OnError) -> None:
        if node.label:
            self._jumps.on_error(node.at, node.label)
        else:
            self._assembly.emit(node.at, "on_error", "next" if node.resume else "off")

    def _throw(self, node: nodes.Throw) -> None:
        self._values.expression(node.message)
        self._assembly.emit(node.at, "throw")

    def _assert(self, node: nodes.Assert) -> None:
        holds = JumpTarget()
        self._values.expression(node.condition)
        self._assembly.emit(node.at, "jump_true", holds)
        self._values.expression(node.message or nodes.Literal(node.at, UNWORDED_ASSERTION))
        self._assembly.emit(node.at, "assert")
        self._assembly.mark(holds)

    # On the class: instances that hold their own methods would be reference cycles.
    _make: ClassVar[Mapping[type, Callable[[Any, Any], None]]] = {
        nodes.Assign: _assign,
        nodes.Dim: _dim,
        nodes.Evaluate: _evaluate,
        nodes.If: _if,
        nodes.ForEach: _for_each,
        nodes.ForTo: _for_to,
        nodes.Loop: _loop,
        nodes.Select: _select,
        nodes.Leave: _leave,
        nodes.Continue: _continue,
        nodes.Return: _return,
        nodes.Stop: _stop,
        nodes.With: _with,
        nodes.OnError: _on_error,
        nodes.Throw: _throw,
        nodes.Assert: _assert,
        nodes.Goto: _goto,
    }


def program_of(unit: Unit, definitions: Sequence[nodes.Define]) -> Program:
    """Program of one unit, with the reachable SUBs and FUNCTIONs of the file. Raises ScriptError for the first problem
    of the unit or of a definition."""
    by_name = {definition.name: definition for definition in reversed(definitions)}
    scope = top_scope(unit.body, (param.name.lower() for param in unit.params), by_name)
    found = Findings()
    parts = {"": (StatementCode(scope, "", found).procedure(unit.at, (), unit.body), found)}
    for definition in by_name.values():
        found = Findings()
        code = StatementCode(own_scope(definition, scope), definition.name, found)
        parts[definition.name] = code.procedure(definition.at, definition.parameters, definition.body), found
    wanted, reached = [""], set[str]()
    while wanted:
        name = wanted.pop()
        if name not in reached:
            reached.add(name)
            wanted.extend(parts[name][1].procedures)
    findings = [parts[name][1] for name in reached]
    return made(
        {name: parts[name][0] for name in sorted(reached)},
        [keyword for one in findings for keyword in one.keywords],
        [name for one in findings for name in one.calls],
    )
