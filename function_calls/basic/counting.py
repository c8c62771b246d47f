"""FOR … TO: what the variable is next."""

from __future__ import annotations

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.conversions import settled
from function_calls.basic.frames import Loop
from function_calls.basic.values import number_of
from services.json_values import JsonValue

_NOT_BEGUN = -1
_SLACK = 1e-9


def counting(first: JsonValue, last: JsonValue, step: JsonValue) -> Loop:
    """A loop that has not begun. Raises RunFault for what is no number, and for STEP 0, which would never end."""
    by = number_of(step)
    if not by:
        raise RunFault(RunCode.BAD_VALUE, "FOR with STEP 0 would never end")
    return [number_of(first), _NOT_BEGUN, number_of(last), by]


def counted(loop: Loop, now: JsonValue) -> tuple[int | float, bool]:
    """What the variable is next, which is `now` so and so, and whether the loop is over with that.

    The n-th value is reckoned from the first one, so fractions do not add up what they lack: 1 TO 2 STEP 0.1 ends with
    2. When the script has changed the variable, counting goes on from there."""
    first, times, last, step = loop
    if type(now) is int and type(step) is int and type(first) is int and times != _NOT_BEGUN:
        value = settled(now + step)  # whole numbers lack nothing, and most loops count in them
        loop[0], loop[1] = value, 0
        return value, value > last if step > 0 else value < last
    if times != _NOT_BEGUN and now != _value(first, times, step):
        first, times = number_of(now), 0
        loop[0] = first
    loop[1] = times = times + 1
    value = _value(first, times, step)
    return value, value > last + step * _SLACK if step > 0 else value < last + step * _SLACK


def _value(first: int | float, times: int, step: int | float) -> int | float:
    value = settled(first + times * step)
    return float(format(value, ".15g")) if type(value) is float else value
