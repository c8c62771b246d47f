"""Instructions that work on values: each takes what it needs from the stack and puts its result there.

The commonest ones stand in the machine's own loop: `const`, `load`, `store`, `binary`, `jump`, `jump_false`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from function_calls.basic.caught import LastError
from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.conversions import whole_of
from function_calls.basic.filter_code import FILTERS
from function_calls.basic.functions import FUNCTIONS
from function_calls.basic.measuring import check_count, check_length
from function_calls.basic.running import Running
from function_calls.basic.values import (
    OPERATORS,
    is_null,
    item,
    member,
    negated,
    set_item,
    set_member,
    text_of,
    truth,
)
from services.json_values import JsonValue

Stack = list[JsonValue]
PlainInstruction = Callable[[Running, Stack, JsonValue], None]

_GROWING = frozenset({"push", "append", "unshift", "prepend"})
"""Functions that put values into a list: what they give is measured by what is new in it."""
_ORDERING = frozenset({"sort", "unique", "distinct", "min", "max", "median", "join", "tojson", "toyaml"})
"""Functions to which the items of a list are more work than a look: they are compared, or written out."""
_AT_ONCE = frozenset(
    {
        *("len", "length", "size", "count", "ubound", "lbound", "first", "last", "left", "right", "mid", "substr"),
        *("isempty", "notempty", "isnull", "isnothing", "nvl", "coalesce", "iif", "choose", "typeof", "typename"),
        *("isarray", "islist", "ismap", "isobject", "isstring", "istext"),
    }
)
"""Functions that take the same time however large what they are given is. Lists and maps that they give are none that
they made."""


def _load_top(run: Running, stack: Stack, name: JsonValue) -> None:
    stack.append(run.top.get(name))


def _store_top(run: Running, stack: Stack, name: JsonValue) -> None:
    run.top[name] = stack.pop()


def _load_own(run: Running, stack: Stack, name: JsonValue) -> None:
    """A procedure's own variable; before it has a value, what the run was given under that name."""
    variables = run.frames[-1].variables
    stack.append(variables[name] if name in variables else run.top.get(name))


def _load_error(run: Running, stack: Stack, name: JsonValue) -> None:
    stack.append(run.error.read(name))


def _forget_error(run: Running, stack: Stack, _: JsonValue) -> None:
    run.error = LastError()


def _taken(stack: Stack, count: int) -> list[JsonValue]:
    """The last values of the stack, which has them no more: a statement that fails leaves nothing there anyway."""
    if not count:
        return []
    values = stack[-count:]
    del stack[-count:]
    return values


def _list(run: Running, stack: Stack, count: JsonValue) -> None:
    items = _taken(stack, count)
    stack.append(items)
    run.memory.made(items)
    for value in items:
        run.memory.put(value)


def _map(run: Running, stack: Stack, keys: JsonValue) -> None:
    values = _taken(stack, len(keys))
    made = dict(zip(keys, values, strict=True))
    stack.append(made)
    run.memory.made(made)
    for value in values:
        run.memory.put(value)


def _join(run: Running, stack: Stack, count: JsonValue) -> None:
    values = _taken(stack, count)
    parts = [text_of(value) for value in values]
    check_length(sum(map(len, parts)), "the text")
    text = "".join(parts)
    stack.append(text)
    run.memory.made(text)
    for value in values:
        run.memory.compared(value)


def _member(run: Running, stack: Stack, name: JsonValue) -> None:
    of = stack[-1]
    if type(of) is dict and name not in of:  # each key is looked at, for one in other letter case
        run.memory.tried(None, len(of))
    stack[-1] = member(of, name)


def _item(run: Running, stack: Stack, _: JsonValue) -> None:
    index = stack.pop()
    if type(index) is str:
        run.memory.tried(index)
    stack[-1] = item(stack[-1], index)


def _negate(run: Running, stack: Stack, _: JsonValue) -> None:
    stack[-1] = negated(stack[-1])


def _not(run: Running, stack: Stack, _: JsonValue) -> None:
    stack[-1] = not truth(stack[-1])


def _truth(run: Running, stack: Stack, _: JsonValue) -> None:
    stack[-1] = truth(stack[-1])


def _is_null(run: Running, stack: Stack, negated_: JsonValue) -> None:
    stack[-1] = is_null(stack[-1]) is not negated_


def _match(run: Running, stack: Stack, operator: JsonValue) -> None:
    """An operator that may walk what it is given."""
    right = stack.pop()
    left = stack[-1]
    memory = run.memory
    if operator == "like":
        memory.tried(left)
    elif operator == "in":
        memory.looked_at((left, right))
    elif type(right) in (list, dict):
        memory.compared(left)
        memory.compared(right)
    stack[-1] = OPERATORS[operator](left, right)


def _within(run: Running, stack: Stack, _: JsonValue) -> None:
    """CASE low TO high."""
    high, low = stack.pop(), stack.pop()
    stack[-1] = bool(OPERATORS[">="](stack[-1], low)) and bool(OPERATORS["<="](stack[-1], high))


def _function(run: Running, stack: Stack, operand: JsonValue) -> None:
    name, count = operand
    arguments = _taken(stack, count)
    at_once = name in _AT_ONCE and not (name == "count" and count > 1)
    if not at_once and name not in _GROWING:
        run.memory.looked_at(arguments)
        if name in _ORDERING:
            run.memory.ordered(arguments)
    result = FUNCTIONS[name].run(run.world, arguments)
    stack.append(result)
    if name in _GROWING:
        run.memory.made(result)
        for value in arguments[1:]:
            run.memory.put(value)
    elif not at_once or type(result) is str:
        run.memory.made_inside(result)


def _duplicate(run: Running, stack: Stack, _: JsonValue) -> None:
    stack.append(stack[-1])


def _drop(run: Running, stack: Stack, _: JsonValue) -> None:
    stack.pop()


def _as_map(run: Running, stack: Stack, _: JsonValue) -> None:
    """What WITH puts its members into: a map or a list of them as it is, a new one in place of all else."""
    if type(stack[-1]) is not dict and type(stack[-1]) is not list:
        stack[-1] = {}


def _put_member(run: Running, stack: Stack, name: JsonValue) -> None:
    of, value = _taken(stack, 2)
    changed = set_member(of, name, value)
    stack.append(changed)
    run.memory.put(value)
    run.memory.made(changed)


def _changed(run: Running, stack: Stack, keys: JsonValue) -> None:
    """The variable on the stack with the value below it at the end of a path: names are members, None is an index from
    the stack. The stack has the value, the indices in order, and the variable on top; the changed one is left."""
    value, *given, whole = _taken(stack, 2 + sum(1 for key in keys if key is None))
    indices = iter(given)
    path = [(key is None, next(indices) if key is None else key) for key in keys]
    around = [whole]
    for is_index, key in path[:-1]:
        around.append(_found(around[-1], is_index, key))
    changed, made = value, []
    for of, (is_index, key) in zip(reversed(around), reversed(path), strict=True):
        changed = set_item(of, key, changed) if is_index else set_member(of, key, changed)
        made.append(changed)
    stack.append(changed)
    run.memory.put(value, len(path))
    for each in made:
        run.memory.made(each)


def _found(of: JsonValue, is_index: bool, key: JsonValue) -> JsonValue:
    """What stands there so far; NULL, which becomes a list or map, where a list is yet to grow."""
    if not is_index:
        return member(of, key)
    try:
        return item(of, key)
    except RunFault as fault:
        if fault.code is RunCode.NO_SUCH_INDEX and type(of) is list:
            return None
        raise


def _of_row(run: Running, stack: Stack, operand: JsonValue) -> None:
    """What is reckoned for each row: its code, and the variables in it by their names."""
    code, variables, columns = operand
    given = dict(zip(variables, _taken(stack, len(variables)), strict=True))
    given |= {name: run.top.get(name) for name in columns if name in run.top}
    stack.append(["row", code, given])
    run.memory.made_inside(stack[-1])


def _dim(run: Running, stack: Stack, _: JsonValue) -> None:
    """A list of so many NULLs."""
    size = whole_of(stack[-1], "the size behind DIM")
    if size < 0:
        raise RunFault(RunCode.BAD_VALUE, f"DIM makes a list of {size} items; the fewest are 0")
    check_count(size, "the list of DIM")
    stack[-1] = [None] * size
    run.memory.made_inside(stack[-1])


PLAIN: Mapping[str, PlainInstruction] = MappingProxyType(
    {
        "load_top": _load_top,
        "store_top": _store_top,
        "load_own": _load_own,
        "load_error": _load_error,
        "forget_error": _forget_error,
        "list": _list,
        "map": _map,
        "join": _join,
        "member": _member,
        "item": _item,
        "negate": _negate,
        "not": _not,
        "truth": _truth,
        "is_null": _is_null,
        "match": _match,
        "within": _within,
        "function": _function,
        "duplicate": _duplicate,
        "drop": _drop,
        "as_map": _as_map,
        "put_member": _put_member,
        "changed": _changed,
        "dim": _dim,
        "of_row": _of_row,
        **FILTERS,
    }
)
"""By what an instruction is called."""
