"""Concatenated filters, `"owner = '" + name + "'"`: separation of the author's text from runtime values.

For a variable that holds such a text or a part of it, the run also stores the parts, under a name that scripts cannot
use. So `wanted = "owner = '" + name + "'"` is equivalent to the same expression after FIND. If the variable's text has
changed since, the whole text counts as a value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from function_calls.basic.functions import FUNCTIONS
from function_calls.basic.nodes import Apply, Assign, Binary, Expression, FilterText, Literal, Member, Name, Template

_JOINS = ("+", "&")
_BEHIND_CONDITION = {"iif": 1}
"""Number of leading arguments that only select a result, by function."""


def filter_text(expression: Expression) -> Expression:
    """Convert an expression to a filter; a literal stays as it is."""
    if isinstance(expression, Literal):
        return expression
    return FilterText(expression.at, parts_of(expression) or (expression,))


def parts_of(expression: Expression) -> tuple[Expression, ...]:
    """Operands of a text built with `+`, `&` and `${}`, as FilterText has them; empty for other expressions."""
    parts, is_text = _parts(expression)
    return parts if is_text else ()


def _parts(expression: Expression) -> tuple[tuple[Expression, ...], bool]:
    """The operands, and whether one is a text, so that `+` concatenates instead of adding."""
    if isinstance(expression, Literal):
        return (expression,), isinstance(expression.value, str)
    if isinstance(expression, Template):
        return tuple(inner for part in expression.parts for inner in _parts(part)[0]), True
    joins: list[Binary] = []
    left: Expression = expression
    while isinstance(left, Binary) and left.operator in _JOINS:  # iterative, because long sums are deep trees
        joins.append(left)
        left = left.left
    if not joins:
        return (left,), False
    first, is_text = _parts(left)
    found = list(first)
    for join in reversed(joins):
        others, is_other_text = _parts(join.right)
        if is_text or is_other_text or join.operator == "&":
            found += others
            is_text = True
        else:
            found = [join]
    return tuple(found), is_text


def is_id(expression: Expression) -> bool:
    """Whether the name looks like a row id: `id`, `order.id`, `customer_id`."""
    name = expression.name.lower() if isinstance(expression, Name | Member) else ""
    return name == "id" or name.endswith("_id")


def is_of_author(part: Expression) -> bool:
    """Whether the value can only consist of literals in the script. Conditions of IIF may use runtime values."""
    left: list[Expression] = [part]
    while left:
        one = left.pop()
        if isinstance(one, Template):
            left += one.parts
        elif isinstance(one, Binary):
            left += (one.left, one.right)
        elif isinstance(one, Apply) and one.name in FUNCTIONS:
            left += one.arguments[_BEHIND_CONDITION.get(one.name, 0) :]
        elif not isinstance(one, Literal):
            return False
    return True


def tracked_variables(roots: Iterable[object]) -> frozenset[str]:
    """Variables whose parts must be tracked: those used in filters, and transitively those assigned to them."""
    wanted: set[str] = set()
    given: dict[str, list[Expression]] = {}
    for node in nodes_in(roots):
        if isinstance(node, FilterText):
            wanted |= _names(node.parts)
        elif isinstance(node, Assign) and isinstance(node.target, Name):
            given.setdefault(node.target.name, []).append(node.value)
    waiting, seen = list(wanted), set(wanted)
    while waiting:
        for value in given.get(waiting.pop(), ()):
            new = _names(_parts(value)[0]) - seen
            seen |= new
            waiting += new
    return frozenset(name for name in seen if name in given)


def parts_variable(name: str) -> str:
    """Name under which the run stores the parts of this variable's text."""
    return f"{name}#parts"


def _names(parts: Iterable[Expression]) -> set[str]:
    return {part.name for part in parts if isinstance(part, Name)}


def nodes_in(roots: Iterable[object]) -> Iterator[object]:
    """All nodes of these trees. Iterative, because long scripts make deep trees."""
    left = list(roots)
    while left:
        one = left.pop()
        if isinstance(one, tuple):
            left += one
        elif is_dataclass(one) and not isinstance(one, type):
            yield one
            left += [getattr(one, name) for name in _below(type(one))]


@cache
def _below(node: type[Any]) -> tuple[str, ...]:
    return tuple(each.name for each in fields(node) if each.name not in ("at", "name", "operator"))
