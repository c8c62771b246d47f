"""Conditions on the rows of a table, made of expressions: `status = "open" AND age > 18`."""

from __future__ import annotations

from function_calls.basic.codes import Code, ScriptFault
from function_calls.basic.nodes import (
    Apply,
    At,
    Binary,
    Expression,
    IsNull,
    ListOf,
    Literal,
    Member,
    Name,
    Template,
    Unary,
)

_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">=", "like", "in"})
_TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_MEANT = 'a condition compares columns with values, as in `status = "open" AND age > 18`'


def condition_of(expression: Expression) -> Expression:
    """`["and", ["status", "=", "open"], ["age", ">", 18]]`, with "or" and `["not", …]` alike; the outermost is always
    "and" or "or". IS NULL is `=` with NULL. What compares nothing, such as a text that holds a condition, stays as it
    is. Raises ScriptFault where only a part of it compares."""
    if isinstance(expression, Unary) and expression.operator == "-":
        return expression
    if isinstance(expression, Binary) and not (_joins(expression) or expression.operator in _COMPARISONS):
        return expression
    if not isinstance(expression, Binary | Unary | IsNull):
        return expression
    found = _condition(expression)
    return found if _joins(expression) else _list(expression.at, "and", found)


def _condition(expression: Expression) -> Expression:
    if isinstance(expression, Unary) and expression.operator == "not":
        return _list(expression.at, "not", _condition(expression.operand))
    if isinstance(expression, IsNull):
        operator = "<>" if expression.negated else "="
        return _list(expression.at, _column(expression.operand), operator, Literal(expression.at, None))
    if isinstance(expression, Binary) and _joins(expression):
        return _list(expression.at, expression.operator, *map(_condition, _joined(expression)))
    if isinstance(expression, Binary) and expression.operator in _COMPARISONS:
        return _comparison(expression)
    raise ScriptFault(expression.at, Code.SYNTAX, _MEANT)


def _comparison(expression: Binary) -> Expression:
    operator, left, right = expression.operator, expression.left, expression.right
    if isinstance(left, Literal | Template) and isinstance(right, Name) and operator in _TURNED:
        return _list(expression.at, _column(right), _TURNED[operator], left)
    return _list(expression.at, _column(left), operator, right)


def _joins(expression: Expression) -> bool:
    return isinstance(expression, Binary) and expression.operator in ("and", "or")


def _joined(expression: Binary) -> list[Expression]:
    """All that the same operator joins here, in order. A long row of them is a deep tree, so this is a loop."""
    sides: list[Expression] = []
    left: Expression = expression
    while isinstance(left, Binary) and left.operator == expression.operator:
        sides.append(left.right)
        left = left.left
    return [left, *reversed(sides)]


def _column(expression: Expression) -> Expression:
    names: list[str] = []
    of = expression
    while isinstance(of, Member):
        names.append(of.name)
        of = of.of
    if isinstance(of, Name):
        names.append(of.name)
    elif isinstance(of, Apply) and not of.arguments:
        # A column may be called as a function is: `date = "2026-01-05"`.
        names.append(of.name)
    elif isinstance(of, Literal) and isinstance(of.value, str) and not names:
        names.append(of.value)
    else:
        raise ScriptFault(expression.at, Code.SYNTAX, _MEANT)
    return Literal(expression.at, ".".join(reversed(names)))


def _list(at: At, *items: Expression | str) -> ListOf:
    return ListOf(at, tuple(Literal(at, one) if isinstance(one, str) else one for one in items))
