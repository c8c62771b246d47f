"""Code generation for expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeGuard

from function_calls.basic import nodes
from function_calls.basic.codes import Code, RunError, ScriptError
from function_calls.basic.environment import ERROR_MEMBERS, ERROR_NAMES
from function_calls.basic.functions import FUNCTIONS
from function_calls.basic.language.filter_texts import is_id, is_of_author, nodes_in, parts_variable
from function_calls.basic.language.parser_state import arguments_text
from function_calls.basic.language.scopes import SESSION_VARIABLES, Scope
from function_calls.basic.machine.program import Instruction, Procedure
from function_calls.basic.machine.values_code import is_for_rows
from function_calls.basic.nodes import At, Expression
from function_calls.basic.values import normalized_number
from services.refs import JsonValue


@dataclass(slots=True)
class JumpTarget:
    """Placeholder for an operand that is known only later, usually a jump target."""

    position: int = -1


@dataclass(slots=True)
class Assembly:
    """Builder for the code of one procedure."""

    _code: list[tuple[str, object]] = field(default_factory=list)
    _places: list[tuple[int, int, int]] = field(default_factory=list)
    _statements: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def here(self) -> int:
        """Index of the next instruction."""
        return len(self._code)

    def emit(self, at: At, operation: str, operand: object = None) -> None:
        """Append an instruction. Spots in its operand are replaced by their positions at the end."""
        if not self._places or self._places[-1][1:] != at:
            self._places.append((len(self._code), at.line, at.column))
        self._code.append((operation, operand))

    def mark(self, spot: JumpTarget) -> None:
        """Set `spot` to the next instruction."""
        spot.position = len(self._code)

    def statement(self, start: int, loops: int) -> None:
        """Record a statement from `start` to here, inside `loops` loops. Inner statements are recorded first."""
        self._statements.append((start, len(self._code), loops))

    def procedure(self, name: str, parameters: tuple[str, ...]) -> Procedure:
        """The finished procedure, with all jump targets resolved to positions."""
        code: tuple[Instruction, ...] = tuple((operation, _settled(operand)) for operation, operand in self._code)
        return Procedure(name, parameters, code, tuple(self._places), tuple(self._statements))


def _settled(operand: object) -> JsonValue:
    if isinstance(operand, JumpTarget):
        return operand.position
    return [_settled(part) for part in operand] if isinstance(operand, list) else operand


_MATCHING = frozenset({"=", "<>", "in", "like"})


class Emit(NamedTuple):
    """An instruction to append."""

    at: At
    operation: str
    operand: object = None


Task = Expression | Emit | JumpTarget
"""Work item: code of an expression, an instruction, or a Spot to set here."""


@dataclass(slots=True)
class Findings:
    """Findings of code generation for a procedure."""

    keywords: set[str] = field(default_factory=set)
    calls: set[str] = field(default_factory=set)
    """Functions that it CALLs by a literal name."""
    procedures: set[str] = field(default_factory=set)
    """SUBs and FUNCTIONs that it calls."""


class ExpressionCode:
    """Code generation for expressions of one procedure."""

    def __init__(self, assembly: Assembly, scope: Scope, found: Findings) -> None:
        self._assembly = assembly
        self._scope = scope
        self._found = found

    def expression(self, node: Expression) -> None:
        """Emit code that pushes the expression's value. Uses a work list instead of recursion."""
        work: list[Task] = [node]
        while work:
            task = work.pop()
            if isinstance(task, Emit):
                self._assembly.emit(*task)
            elif isinstance(task, JumpTarget):
                self._assembly.mark(task)
            else:
                work.extend(reversed(list(self._tasks[type(task)](self, task))))

    def load(self, at: At, name: str) -> Iterable[Task]:
        """Code for a variable, or for a name without arguments such as NOW."""
        if self._scope.has(name):
            return (Emit(at, self._scope.load(name), name),)
        if name in ERROR_NAMES:
            return (Emit(at, "load_error", ERROR_NAMES[name]),)
        if name in self._scope.definitions:
            return self._call(nodes.Apply(at, name, ()))
        function = FUNCTIONS.get(name)
        if function is not None and function.fewest == 0:
            return (Emit(at, "function", [name, 0]),)
        return (Emit(at, self._scope.load(name), name),)

    def parts(self, at: At, parts: Iterable[Expression]) -> None:
        """Emit code that pushes the list of filter parts of a text, each marked as author text, variable or value."""
        kinds = ""
        for part in parts:
            self.expression(part)
            if is_of_author(part):
                kinds += "a"
            elif self.is_followed(part):
                self._assembly.emit(at, self._scope.load(part.name), parts_variable(part.name))
                kinds += "p"
            else:
                kinds += "v"
        self._assembly.emit(at, "parts", kinds)

    def is_followed(self, node: Expression) -> TypeGuard[nodes.Name]:
        """Whether `node` is a variable whose text parts are tracked."""
        return isinstance(node, nodes.Name) and node.name in self._scope.followed and self._scope.has(node.name)

    def _filter_text(self, node: nodes.FilterText) -> Iterable[Task]:
        """Tasks that push a filter: from several parts, from an id, or from a single value. Recursion is bounded by the
        parser's limit on nested keywords."""
        whole = node.parts[0]
        if len(node.parts) > 1:
            self.parts(node.at, node.parts)
            return (Emit(node.at, "filter"),)
        if is_id(whole):
            return (whole, Emit(node.at, "id"))
        if not self.is_followed(whole):
            return (whole,)
        self.expression(whole)
        self.parts(node.at, node.parts)
        return (Emit(node.at, "filter_of_whole"),)

    def _literal(self, node: nodes.Literal) -> Iterable[Task]:
        value = node.value
        try:
            if type(value) is int or type(value) is float:
                value = normalized_number(value)
        except RunError as fault:
            raise ScriptError(node.at, Code.SYNTAX, f"{fault.detail}; a number has at most 308 digits") from None
        return (Emit(node.at, "const", value),)

    def _template(self, node: nodes.Template) -> Iterable[Task]:
        return (*node.parts, Emit(node.at, "join", len(node.parts)))

    def _name(self, node: nodes.Name) -> Iterable[Task]:
        return self.load(node.at, node.name)

    def _list_of(self, node: nodes.ListOf) -> Iterable[Task]:
        return (*node.items, Emit(node.at, "list", len(node.items)))

    def _map_of(self, node: nodes.MapOf) -> Iterable[Task]:
        entries = dict(node.entries)  # for duplicate keys the last entry counts
        return (*entries.values(), Emit(node.at, "map", list(entries)))

    def _member(self, node: nodes.Member) -> Iterable[Task]:
        about = node.of.name if isinstance(node.of, nodes.Name) and not self._scope.has(node.of.name) else ""
        if about in ERROR_NAMES and node.name.lower() in ERROR_MEMBERS:
            return (Emit(node.at, "load_error", ERROR_MEMBERS[node.name.lower()]),)
        return (node.of, Emit(node.at, "member", node.name))

    def _index(self, node: nodes.Index) -> Iterable[Task]:
        return (node.of, node.index, Emit(node.at, "item"))

    def _unary(self, node: nodes.Unary) -> Iterable[Task]:
        return (node.operand, Emit(node.at, "not" if node.operator == "not" else "negate"))

    def _binary(self, node: nodes.Binary) -> Iterable[Task]:
        if node.operator == "and" or node.operator == "or":
            end = JumpTarget()
            return (node.left, Emit(node.at, node.operator, end), node.right, Emit(node.at, "truth"), end)
        operation = "match" if node.operator in _MATCHING else "binary"
        return (node.left, node.right, Emit(node.at, operation, node.operator))

    def _is_null(self, node: nodes.IsNull) -> Iterable[Task]:
        return (node.operand, Emit(node.at, "is_null", node.negated))

    def _apply(self, node: nodes.Apply) -> Iterable[Task]:
        if node.name in self._scope.definitions:
            return self._call(node)
        function = FUNCTIONS.get(node.name)
        if function is not None:
            self._check_count(node, function.fewest, function.most)
            return (*node.arguments, Emit(node.at, "function", [node.name, len(node.arguments)]))
        if not self._scope.has(node.name):
            raise ScriptError(node.at, Code.UNKNOWN_FUNCTION, f"unknown function {node.name.upper()}")
        tasks: list[Task] = list(self.load(node.at, node.name))
        for index in node.arguments:
            tasks += (index, Emit(node.at, "item"))
        return tasks

    def _call(self, node: nodes.Apply) -> Iterable[Task]:
        count = len(self._scope.definitions[node.name].parameters)
        self._check_count(node, count, count)
        self._found.procedures.add(node.name)
        return (*node.arguments, Emit(node.at, "call", [node.name, len(node.arguments)]))

    def _want(self, node: nodes.KeywordCall) -> Iterable[Task]:
        self._found.keywords.add(node.keyword)
        arguments = dict(node.arguments)
        first = next(iter(arguments.values()), None)
        if node.keyword == "CALL" and isinstance(first, nodes.Literal) and isinstance(first.value, str):
            self._found.calls.add(first.value)
        return (*arguments.values(), Emit(node.at, "want", [node.keyword, list(arguments)]))

    def _of_row(self, node: nodes.RowExpression) -> Iterable[Task]:
        """Tasks that push an expression of UPDATE: its value, or its code if it can contain columns. The bot's settings
        may set names that the script does not, so the run decides: unset names are columns."""
        found = [one for one in nodes_in((node.value,)) if isinstance(one, nodes.Name)]
        names = {one.name: one for one in sorted(found, key=lambda one: one.at, reverse=True)}
        columns = sorted(name for name in names if self._may_be_column(name))
        if not columns:
            return (nodes.Literal(node.at, "value"), node.value, Emit(node.at, "list", 2))
        inner = Assembly()
        ExpressionCode(inner, self._scope.of_rows(names), Findings()).expression(node.value)
        code = inner.procedure("", ()).code
        if not all(is_for_rows(operation) for operation, _ in code):
            message = (
                f"`{columns[0]}` is a column here, and an expression on columns may use only operators and built-in "
                "functions; compute the rest in a variable first, or loop over the rows with FOR EACH"
            )
            raise ScriptError(names[columns[0]].at, Code.SYNTAX, message)
        variables = [name for name in names if name not in columns]
        loaded = [task for name in variables for task in self.load(node.at, name)]
        return (*loaded, Emit(node.at, "of_row", [[list(one) for one in code], variables, columns]))

    def _may_be_column(self, name: str) -> bool:
        function = FUNCTIONS.get(name)
        is_word = name in ERROR_NAMES or name in SESSION_VARIABLES or name in self._scope.definitions
        return not (self._scope.has(name) or is_word or (function is not None and function.fewest == 0))

    def _check_count(self, node: nodes.Apply, fewest: int, most: int | None) -> None:
        given = len(node.arguments)
        if given < fewest or (most is not None and given > most):
            message = f"{node.name.upper()} takes {arguments_text(fewest, most)}, got {given}"
            raise ScriptError(node.at, Code.WRONG_COUNT, message)

    # On the class: instances that hold their own methods would be reference cycles.
    _tasks: ClassVar[Mapping[type, Callable[[Any, Any], Iterable[Task]]]] = {
        nodes.Literal: _literal,
        nodes.Template: _template,
        nodes.Name: _name,
        nodes.ListOf: _list_of,
        nodes.MapOf: _map_of,
        nodes.Member: _member,
        nodes.Index: _index,
        nodes.Unary: _unary,
        nodes.Binary: _binary,
        nodes.IsNull: _is_null,
        nodes.Apply: _apply,
        nodes.KeywordCall: _want,
        nodes.FilterText: _filter_text,
        nodes.RowExpression: _of_row,
    }
