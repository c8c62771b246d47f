"""Filters that a script puts together, `"owner = '" + name + "'"`: what in them its author wrote, and what is a value.

A variable that holds such a text, or a part of one, is followed: beside it the run keeps the parts of which its text
was made, under a name that no script can write. So `wanted = "owner = '" + name + "'"` is as good as the same text
behind FIND. Where the variable has got another text since, that one counts as a value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from function_calls.basic.functions import FUNCTIONS
from function_calls.basic.nodes import Apply, Assign, Binary, Expression, FilterText, Literal, Member, Name, Template

_JOINS = ("+", "&")
_BEHIND_CONDITION = {"iif": 1}
"""Of these functions the first values only say which of the others it is."""


def filter_text(expression: Expression) -> Expression:
    """The same as a filter; a text that is written out stays as it is."""
    if isinstance(expression, Literal):
        return expression
    return FilterText(expression.at, parts_of(expression) or (expression,))


def parts_of(expression: Expression) -> tuple[Expression, ...]:
    """The parts of a text that `+`, `&` and `${}` put together, as FilterText has them; empty where it is none."""
    parts, is_text = _parts(expression)
    return parts if is_text else ()


def _parts(expression: Expression) -> tuple[tuple[Expression, ...], bool]:
    """The parts, and whether a text is among them, so that `+` joins and does not add."""
    if isinstance(expression, Literal):
        return (expression,), isinstance(expression.value, str)
    if isinstance(expression, Template):
        return tuple(inner for part in expression.parts for inner in _parts(part)[0]), True
    joins: list[Binary] = []
    left: Expression = expression
    while isinstance(left, Binary) and left.operator in _JOINS:  # a sum may be long, and is as deep as that
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
    """Whether it is called as the id of a row is: `id`, `order.id`, `customer_id`."""
    name = expression.name.lower() if isinstance(expression, Name | Member) else ""
    return name == "id" or name.endswith("_id")


def is_of_author(part: Expression) -> bool:
    """Whether nothing that the run is given goes into the value: it is made of what stands in the script."""
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


def followed_in(roots: Iterable[object]) -> frozenset[str]:
    """The variables that are to be followed: those of which filters are made, and those of which they are made again,
    where they are given a text that is put together or written out."""
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


def parts_beside(name: str) -> str:
    """Under which name the run keeps the parts of this variable's text."""
    return f"{name}#parts"


def _names(parts: Iterable[Expression]) -> set[str]:
    return {part.name for part in parts if isinstance(part, Name)}


def nodes_in(roots: Iterable[object]) -> Iterator[object]:
    """Everything in these trees. A loop, since scripts may be long."""
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
