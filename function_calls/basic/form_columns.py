"""The slots of forms that name columns: `SAVE "people", id, name`, `INSERT INTO t (a, b) VALUES (1, 2)`,
`REMEMBER "key" = value`."""

from __future__ import annotations

from function_calls.basic.form_parts import SlotKind
from function_calls.basic.form_slots import Absent, Slots
from function_calls.basic.nodes import Binary, Expression, Index, ListOf, Literal, MapOf, Member, Name
from function_calls.basic.tokens import Kind


def columns_in(slots: Slots, kind: SlotKind) -> Expression:
    """What a slot of this kind takes where the cursor stands. Raises as the other slots do."""
    match kind:
        case SlotKind.NAMED:
            return _named(slots)
        case SlotKind.NAMES:
            return _names(slots)
        case SlotKind.ROW:
            return _row(slots)
        case _:
            return _pair(slots)


def _named(slots: Slots) -> MapOf:
    """One or more values, under the names by which the script knows them: that of the variable, the last one of
    `a.b`, the text in `a["b"]`; what has none is `#1`, `#2` by its place. A name that comes again gets `_2`."""
    at = slots.cursor.now.at
    entries: dict[str, Expression] = {}
    while True:
        value = slots.value()
        name = known = _name_of(value) or f"#{len(entries) + 1}"
        count = 1
        while name in entries:
            count += 1
            name = f"{known}_{count}"
        entries[name] = value
        if not slots.cursor.symbol(","):
            return MapOf(at, tuple(entries.items()))


def _name_of(value: Expression) -> str:
    if isinstance(value, Name | Member):
        return value.name
    if isinstance(value, Index) and isinstance(value.index, Literal) and isinstance(value.index.value, str):
        return value.index.value
    return ""


def _names(slots: Slots) -> ListOf:
    """Bare words, or texts, in parentheses."""
    cursor, at = slots.cursor, slots.cursor.now.at
    if not cursor.symbol("("):
        raise Absent
    names: list[Expression] = []
    while True:
        token = cursor.now
        if token.kind not in (Kind.WORD, Kind.TEXT):
            raise Absent("a column's name")
        names.append(
            Literal(token.at, cursor.take().text) if token.kind is Kind.WORD else slots.read.text(cursor.take())
        )
        if not cursor.symbol(","):
            break
    if not cursor.symbol(")"):
        raise Absent("`)`")
    return ListOf(at, tuple(names))


def _row(slots: Slots) -> ListOf:
    """Values in parentheses."""
    cursor, at = slots.cursor, slots.cursor.now.at
    if not cursor.symbol("("):
        raise Absent
    values = [slots.value()]
    while cursor.symbol(","):
        values.append(slots.value())
    if not cursor.symbol(")"):
        raise Absent("`)`")
    return ListOf(at, tuple(values))


def _pair(slots: Slots) -> ListOf:
    """`key = value` as a list of the two; where the value compares something itself, it needs parentheses."""
    expression = slots.value()
    if not isinstance(expression, Binary) or expression.operator != "=":
        raise Absent
    return ListOf(expression.at, (expression.left, expression.right))
