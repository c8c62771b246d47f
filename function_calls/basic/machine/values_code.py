"""Instructions on values and filters, frames, and memory accounting."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.environment import LastError, Limits, World
from function_calls.basic.functions import FUNCTIONS
from function_calls.basic.machine.program import Procedure
from function_calls.basic.value_sizes import DEEPEST, check_count, check_length, shallow_size, size_of
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
    whole_of,
)
from services.refs import JsonObject, JsonValue

Loop = list[Any]
"""State of an active FOR: `[items, next]` of FOR EACH, `[first, times, last, step]` of FOR … TO."""


@dataclass(slots=True)
class ReturnAddress:
    """Return address of a GOSUB."""

    position: int
    loops: list[Loop]
    """Copies of the loops at the GOSUB, restored on return."""


@dataclass(slots=True)
class Frame:
    """Stack frame of a procedure call. The first frame is the script itself, with the top-level variables."""

    procedure: Procedure
    variables: JsonObject
    position: int = 0
    """Index of the next instruction; during an instruction, of the following one."""
    stack: list[JsonValue] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    """In order from the outermost inwards."""
    return_addresses: list[ReturnAddress] = field(default_factory=list)
    on_error: int | str | None = None
    """ON ERROR state: `next`, `off`, or the instruction of a label. None: not set here, so the caller's state
    applies."""

    def to_json(self, is_top: bool) -> JsonObject:
        """A snapshot of the frame as plain data; `variables` is None if `is_top`, because the run stores the global
        ones."""
        return {
            "procedure": self.procedure.name,
            "variables": None if is_top else dict(self.variables),
            "position": self.position,
            "stack": list(self.stack),
            "loops": [list(loop) for loop in self.loops],
            "ways_back": [
                [address.position, [list(loop) for loop in address.loops]] for address in self.return_addresses
            ],
            "on_error": self.on_error,
        }


def frame_of_json(data: JsonObject, procedure: Procedure, top: JsonObject) -> Frame:
    """The frame that `to_json` serialized. Raises KeyError, TypeError and ValueError for invalid data."""
    return Frame(
        procedure,
        top if data["variables"] is None else dict(data["variables"]),
        _position(data["position"], procedure),
        list(data["stack"]),
        [list(loop) for loop in data["loops"]],
        [
            ReturnAddress(_position(position, procedure), [list(loop) for loop in loops])
            for position, loops in data["ways_back"]
        ],
        data["on_error"],
    )


def _position(value: JsonValue, procedure: Procedure) -> int:
    if type(value) is not int or not 0 <= value < len(procedure.code):
        raise ValueError("a position outside of the procedure")
    return value


_BYTES_COPIED = 13
_BYTES_WALKED = 10
_CHARACTERS_READ = 8
_CHARACTERS_TRIED = 3
_ITEMS_LOOKED_AT = 3
_PAIRS_TRIED = 8
_ITEMS_ORDERED = 5
_BYTES_OF_ITEM = 5
"""Shifts: 2**n bytes or items cost about as much as one instruction."""
_LONG_TEXT = 1024


class Memory:
    """Memory use of a run, and the cost in steps of creating values."""

    __slots__ = ("_above", "_limit", "_most_steps", "_roots", "held", "work")

    def __init__(self, limits: Limits, roots: Callable[[], Iterator[JsonValue]], held: int = 0, above: int = 0) -> None:
        self._limit = limit = limits.memory_bytes
        self._most_steps = limits.steps
        self._roots = roots
        self._above = max(limit, above)
        self.held = held
        """Bytes; at least the size of the largest value."""
        self.work = 0
        """Accrued cost in steps; the machine charges it and resets it to 0."""

    @property
    def above(self) -> int:
        """Threshold of `held` for measuring all values again."""
        return self._above

    def made(self, value: JsonValue) -> None:
        """Account for a new value: a text, or a list or map of items that were already counted. Raises RunError
        (MEMORY)."""
        size = shallow_size(value)
        self.work += size >> _BYTES_COPIED
        self.held += size
        if self.held > self._above:
            self._measure_all()

    def made_inside(self, value: JsonValue) -> None:
        """Account for a new value with its contents. Raises RunError (MEMORY)."""
        if type(value) is list or type(value) is dict:
            self._walk(value)
        elif type(value) is str:
            self.made(value)

    def put(self, value: JsonValue, deep: int = 1) -> None:
        """Account for an item put into another value, `deep` levels below its top. Raises RunError (MEMORY) above
        DEEPEST levels."""
        if type(value) is list or type(value) is dict:
            self._walk(value)
            deep += _depth(value)
        elif type(value) is str:
            self.held += len(value)
        if deep > DEEPEST:
            raise RunError(RunCode.MEMORY, f"lists and maps are nested more than {DEEPEST} deep")

    def looked_at(self, values: Sequence[JsonValue]) -> None:
        """Charge for a scan of `values`; with items and a long text, for a scan of the text per item. Raises RunError
        (STEPS) if the cost exceeds the run's step limit."""
        characters = items = 0
        for value in values:
            kind = type(value)
            if kind is str:
                characters += len(value)
            elif kind is list or kind is dict:
                items += len(value)
        self.work += (characters >> _CHARACTERS_READ) + (items >> _ITEMS_LOOKED_AT)
        if items and characters > _LONG_TEXT:
            self.work += items * characters >> _PAIRS_TRIED
            if self.work > self._most_steps:
                raise RunError(RunCode.STEPS, "the text is too long to search in this many items")

    def ordered(self, values: Sequence[JsonValue]) -> None:
        """Charge for sorting all items of the lists in `values`, at any depth: n·log n steps for n items. Raises
        RunError for values that are too large."""
        count = sum(size_of(one, self._limit) >> _BYTES_OF_ITEM for one in values if type(one) in (list, dict))
        self.work += count * count.bit_length() >> _ITEMS_ORDERED

    def tried(self, text: JsonValue, keys: int = 0) -> None:
        """Charge for matching the text against a pattern, or a name against `keys` keys."""
        self.work += (len(text) >> _CHARACTERS_TRIED if type(text) is str else 0) + (keys >> _ITEMS_LOOKED_AT)

    def compared(self, value: JsonValue) -> None:
        """Charge for a traversal of the whole value. Raises RunError (MEMORY) if it is nested too deep."""
        if type(value) is list or type(value) is dict:
            self.work += size_of(value, self._limit) >> _BYTES_WALKED

    def check_stop(self, values: int) -> None:
        """Check the memory limit before the run is suspended and perhaps stored, with `values` as the number of its
        values. Raises RunError (MEMORY)."""
        if self.held * values > self._limit:
            self._measure_all()

    def _walk(self, value: JsonValue) -> None:
        size = size_of(value, self._limit + 1)
        if size > self._limit:
            raise self._full()
        self.work += size >> _BYTES_WALKED
        self.held += size
        if self.held > self._above:
            self._measure_all()

    def _measure_all(self) -> None:
        total = 0
        for value in self._roots():
            total += size_of(value, self._limit) if type(value) is list or type(value) is dict else shallow_size(value)
            if total > self._limit:
                raise self._full()
        self.work += total >> _BYTES_WALKED
        self.held = total
        # The extra eighth prevents measuring at every step when memory is nearly full.
        self._above = max(self._limit, total + (self._limit >> 3))

    def _full(self) -> RunError:
        return RunError(RunCode.MEMORY, f"the variables of the script are larger than {_amount(self._limit)} in total")


def _amount(count: int) -> str:
    return f"{count >> 20} MB" if count >= 1 << 20 else f"{count >> 10} kB"


def _depth(value: JsonValue) -> int:
    """Nesting depth of a list or map, known not to exceed DEEPEST."""
    level, depth = [value], 0
    while level:
        depth += 1
        level = [
            item
            for container in level
            for item in (container if type(container) is list else container.values())
            if type(item) is list or type(item) is dict
        ]
    return depth


class RunState:
    """State and environment of one run."""

    __slots__ = ("error", "frames", "limits", "memory", "procedures", "top", "world")

    def __init__(
        self,
        procedures: Mapping[str, Procedure],
        top: JsonObject,
        world: World,
        limits: Limits,
        held: int = 0,
        above: int = 0,
    ) -> None:
        self.procedures = procedures
        self.top = top
        """Top-level variables, visible in SUBs and FUNCTIONs as well."""
        self.frames: list[Frame] = []
        """The active frame is the last."""
        self.world = world
        self.limits = limits
        self.error = LastError()
        self.memory = Memory(limits, functools.partial(_held_by, self.frames), held, above)

    def count(self) -> int:
        """Number of values, not counting items of lists and maps."""
        return sum(
            len(frame.variables)
            + len(frame.stack)
            + len(frame.loops)
            + sum(len(address.loops) for address in frame.return_addresses)
            for frame in self.frames
        )


def _held_by(frames: Iterable[Frame]) -> Iterator[JsonValue]:
    """All values reachable from these frames."""
    for frame in frames:
        yield from frame.variables.values()
        yield from frame.stack
        for loop in frame.loops:
            yield from loop
        for address in frame.return_addresses:
            for loop in address.loops:
                yield from loop


Stack = list[JsonValue]


def _parts(run: RunState, stack: Stack, kinds: JsonValue) -> None:
    """Replace stack values by the list of their filter parts. Kinds: `a` is author text, `v` a value, `p` a variable
    followed by its stored parts. Raises RunError if the filter is too long."""
    count = len(kinds) + kinds.count("p")
    given = iter(stack[len(stack) - count :])
    parts: list[JsonValue] = []
    for kind in kinds:
        value = next(given)
        kept = next(given) if kind == "p" else None
        if kind == "a":
            parts.append(text_of(value))
        elif type(kept) is list and _written(kept) == text_of(value):
            parts += kept
        else:
            parts.append([value] if type(value) is str else [value, text_of(value)])
    del stack[len(stack) - count :]
    check_length(len(_written(parts)), "the text")
    stack.append(parts)
    run.memory.made_inside(parts)


def _text_of_parts(run: RunState, stack: Stack, _: JsonValue) -> None:
    text = _written(stack.pop())
    stack.append(text)
    run.memory.made(text)


def _filter(run: RunState, stack: Stack, _: JsonValue) -> None:
    """Convert parts to a filter; to a plain value if no part is a value, or none is author text."""
    parts = stack.pop()
    values = [part for part in parts if type(part) is list]
    own = "".join(part for part in parts if type(part) is str)
    if values and own.strip():
        stack.append(["filter", *parts])
        return
    stack.append(values[0][0] if len(values) == 1 and not own else _written(parts))


def _filter_of_whole(run: RunState, stack: Stack, _: JsonValue) -> None:
    """Like `_filter`, for a variable on the stack below its parts."""
    parts, value = stack.pop(), stack.pop()
    is_made = len(parts) > 1 and any(type(part) is str and part.strip() for part in parts)
    stack.append(["filter", *parts] if is_made and any(type(part) is list for part in parts) else value)


def _id(run: RunState, stack: Stack, _: JsonValue) -> None:
    """Mark a text as a row id, whatever it contains."""
    if type(stack[-1]) is str:
        stack[-1] = ["id", stack[-1]]


def _written(parts: JsonValue) -> str:
    return "".join(part if type(part) is str else part[-1] for part in parts)


FILTERS: Mapping[str, Callable[[RunState, Stack, JsonValue], None]] = {
    "parts": _parts,
    "text_of_parts": _text_of_parts,
    "filter": _filter,
    "filter_of_whole": _filter_of_whole,
    "id": _id,
}
"""Filter instructions by name."""


PlainInstruction = Callable[[RunState, Stack, JsonValue], None]

_GROWING = frozenset({"push", "append", "unshift", "prepend"})
"""Functions that add values to a list: only the added values are measured."""
_ORDERING = frozenset({"sort", "unique", "distinct", "min", "max", "median", "join", "tojson", "toyaml"})
"""Functions that compare or serialize the items of a list, at a higher cost per item."""
_AT_ONCE = frozenset(
    {
        *("len", "length", "size", "count", "ubound", "lbound", "first", "last", "left", "right", "mid", "substr"),
        *("isempty", "notempty", "isnull", "isnothing", "nvl", "coalesce", "iif", "choose", "typeof", "typename"),
        *("isarray", "islist", "ismap", "isobject", "isstring", "istext"),
    }
)
"""Functions in constant time for arguments of any size. Lists and maps that they return are not new."""


def _store_top(run: RunState, stack: Stack, name: JsonValue) -> None:
    run.top[name] = stack.pop()


def _load_own(run: RunState, stack: Stack, name: JsonValue) -> None:
    """A procedure's local variable; until it is set, the top-level variable with that name."""
    variables = run.frames[-1].variables
    stack.append(variables[name] if name in variables else run.top.get(name))


def _forget_error(run: RunState, stack: Stack, _: JsonValue) -> None:
    run.error = LastError()


def _taken(stack: Stack, count: int) -> list[JsonValue]:
    """Pop `count` values. They are lost if the statement fails, which clears the stack anyway."""
    if not count:
        return []
    values = stack[-count:]
    del stack[-count:]
    return values


def _list(run: RunState, stack: Stack, count: JsonValue) -> None:
    items = _taken(stack, count)
    stack.append(items)
    run.memory.made(items)
    for value in items:
        run.memory.put(value)


def _map(run: RunState, stack: Stack, keys: JsonValue) -> None:
    values = _taken(stack, len(keys))
    made = dict(zip(keys, values, strict=True))
    stack.append(made)
    run.memory.made(made)
    for value in values:
        run.memory.put(value)


def _join(run: RunState, stack: Stack, count: JsonValue) -> None:
    values = _taken(stack, count)
    parts = [text_of(value) for value in values]
    check_length(sum(map(len, parts)), "the text")
    text = "".join(parts)
    stack.append(text)
    run.memory.made(text)
    for value in values:
        run.memory.compared(value)


def _member(run: RunState, stack: Stack, name: JsonValue) -> None:
    of = stack[-1]
    if type(of) is dict and name not in of:  # all keys are searched, ignoring case
        run.memory.tried(None, len(of))
    stack[-1] = member(of, name)


def _item(run: RunState, stack: Stack, _: JsonValue) -> None:
    index = stack.pop()
    if type(index) is str:
        run.memory.tried(index)
    stack[-1] = item(stack[-1], index)


def _negate(run: RunState, stack: Stack, _: JsonValue) -> None:
    stack[-1] = negated(stack[-1])


def _not(run: RunState, stack: Stack, _: JsonValue) -> None:
    stack[-1] = not truth(stack[-1])


def _truth(run: RunState, stack: Stack, _: JsonValue) -> None:
    stack[-1] = truth(stack[-1])


def _is_null(run: RunState, stack: Stack, negated_: JsonValue) -> None:
    stack[-1] = is_null(stack[-1]) is not negated_


def _match(run: RunState, stack: Stack, operator: JsonValue) -> None:
    """Replace two values by the result of LIKE, IN or a comparison, which may traverse them; counts the work for the
    step limit."""
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


def _within(run: RunState, stack: Stack, _: JsonValue) -> None:
    """CASE low TO high."""
    high, low = stack.pop(), stack.pop()
    stack[-1] = bool(OPERATORS[">="](stack[-1], low)) and bool(OPERATORS["<="](stack[-1], high))


def _function(run: RunState, stack: Stack, operand: JsonValue) -> None:
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


def _as_map(run: RunState, stack: Stack, _: JsonValue) -> None:
    """Target of WITH: a map or list unchanged, a new map for any other value."""
    if type(stack[-1]) is not dict and type(stack[-1]) is not list:
        stack[-1] = {}


def _put_member(run: RunState, stack: Stack, name: JsonValue) -> None:
    of, value = _taken(stack, 2)
    changed = set_member(of, name, value)
    stack.append(changed)
    run.memory.put(value)
    run.memory.made(changed)


def _changed(run: RunState, stack: Stack, keys: JsonValue) -> None:
    """Assign to a path inside a variable: names in `keys` are members, None is an index from the stack. Pops the value,
    the indices in order and the variable; pushes the changed variable."""
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
    """The current value at the key; NULL beyond the end of a list, which will be extended."""
    if not is_index:
        return member(of, key)
    try:
        return item(of, key)
    except RunError as fault:
        if fault.code is RunCode.NO_SUCH_INDEX and type(of) is list:
            return None
        raise


def _of_row(run: RunState, stack: Stack, operand: JsonValue) -> None:
    """An expression evaluated per row: its code and the values of its variables by name."""
    code, variables, columns = operand
    given = dict(zip(variables, _taken(stack, len(variables)), strict=True))
    given |= {name: run.top.get(name) for name in columns if name in run.top}
    stack.append(["row", code, given])
    run.memory.made_inside(stack[-1])


def _dim(run: RunState, stack: Stack, _: JsonValue) -> None:
    """Replace the size on the stack by a list of NULLs. Raises RunError for a negative or too large size."""
    size = whole_of(stack[-1], "the size after DIM")
    if size < 0:
        raise RunError(RunCode.BAD_VALUE, f"DIM cannot create a list of {size} items")
    check_count(size, "the list made by DIM")
    stack[-1] = [None] * size
    run.memory.made_inside(stack[-1])


PLAIN: Mapping[str, PlainInstruction] = {
    "load_top": lambda run, stack, name: stack.append(run.top.get(name)),
    "store_top": _store_top,
    "load_own": _load_own,
    "load_error": lambda run, stack, name: stack.append(run.error.read(name)),
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
    "duplicate": lambda run, stack, _: stack.append(stack[-1]),
    "drop": lambda run, stack, _: stack.pop(),
    "as_map": _as_map,
    "put_member": _put_member,
    "changed": _changed,
    "dim": _dim,
    "of_row": _of_row,
    **FILTERS,
}
"""Instructions on values by name."""


_REFUSED = frozenset({"load_top", "store_top", "load_own", "load_error", "forget_error"})
_OWN = frozenset({"load", "const", "binary", "and", "or"})


def is_for_rows(operation: str) -> bool:
    """Whether the instruction can be executed per row."""
    return operation in _OWN or (operation in PLAIN and operation not in _REFUSED)
