"""Values that UPDATE reckons for each row, `SET visits = visits + 1`: a name that is no variable means the column of
the row. What is to be reckoned travels to the table as data, `["row", code, variables]`; any other value is
`["value", it]`.

A value may hold operators and functions of the language. Keywords and procedures stop a run, or run it elsewhere, so
they cannot be asked once for each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.limits import Limits
from function_calls.basic.running import Running
from function_calls.basic.values import OPERATORS, truth
from function_calls.basic.values_code import PLAIN
from function_calls.basic.world import World
from services.json_values import JsonObject, JsonValue

MOST_STEPS = 500_000
"""For all rows of one statement together."""
_REFUSED = frozenset({"load_top", "store_top", "load_own", "load_error", "forget_error"})
_OWN = frozenset({"load", "const", "binary", "and", "or"})


def is_for_rows(operation: str) -> bool:
    """Whether this instruction can be carried out for each row."""
    return operation in _OWN or (operation in PLAIN and operation not in _REFUSED)


def changes_of(values: Mapping[str, JsonValue], world: World) -> Callable[[JsonObject], JsonObject]:
    """What gives a row its new fields. Raises RunFault where it is called: for what cannot be reckoned, and where all
    rows together take too long."""
    run = Running({}, {}, world, Limits(steps=MOST_STEPS))
    steps = 0

    def reckoned(code: JsonValue, variables: Mapping[str, JsonValue]) -> JsonValue:
        nonlocal steps
        value, taken = _reckoned(run, code, variables, MOST_STEPS - steps)
        steps += taken
        run.memory.held = 0
        return value

    def changes(row: JsonObject) -> JsonObject:
        fields = {name.lower(): value for name, value in row.items()}
        return {
            name: value[1] if value[0] == "value" else reckoned(value[1], {**fields, **value[2]})
            for name, value in values.items()
        }

    return changes


def _reckoned(
    run: Running, code: JsonValue, variables: Mapping[str, JsonValue], most_steps: int
) -> tuple[JsonValue, int]:
    """The value, and how many steps it took. The code has no way back, so it ends."""
    stack: list[JsonValue] = []
    position = steps = 0
    while position < len(code):
        operation, operand = code[position]
        position += 1
        if operation == "load":
            stack.append(variables.get(operand))
        elif operation == "const":
            stack.append(operand)
        elif operation == "binary":
            right = stack.pop()
            stack[-1] = OPERATORS[operand](stack[-1], right)
            run.memory.made_inside(stack[-1])
        elif operation in ("and", "or"):
            # What is left where the other side need not be looked at.
            if truth(stack[-1]) is (operation == "or"):
                stack[-1] = operation == "or"
                position = operand
            else:
                stack.pop()
        else:
            PLAIN[operation](run, stack, operand)
        steps += 1 + run.memory.work
        run.memory.work = 0
        if steps > most_steps:
            raise RunFault(RunCode.STEPS, "UPDATE reckons too much; take a part of the rows, with WHERE")
    return stack[-1], steps
