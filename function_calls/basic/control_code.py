"""Instructions that say where a run goes on: loops, jumps, calls, errors, and the stops for keywords."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from function_calls.basic.caught import LastError, shortened
from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.counting import counted, counting
from function_calls.basic.events import Ended, Event, Wants
from function_calls.basic.frames import Frame, WayBack
from function_calls.basic.outside import copied
from function_calls.basic.running import Running
from function_calls.basic.values import items_of, text_of, truth
from services.json_values import JsonValue

ControlInstruction = Callable[[Running, Frame, JsonValue], Event | None]


def _jump_true(run: Running, frame: Frame, target: JsonValue) -> None:
    if truth(frame.stack.pop()):
        frame.position = target


def _and(run: Running, frame: Frame, target: JsonValue) -> None:
    """FALSE is left of what does not hold, and the right side is passed over."""
    if truth(frame.stack[-1]):
        frame.stack.pop()
    else:
        frame.stack[-1] = False
        frame.position = target


def _or(run: Running, frame: Frame, target: JsonValue) -> None:
    if truth(frame.stack[-1]):
        frame.stack[-1] = True
        frame.position = target
    else:
        frame.stack.pop()


def _each(run: Running, frame: Frame, _: JsonValue) -> None:
    """The list as it is now, whatever becomes of the variable that it came from."""
    of = frame.stack[-1]
    items = items_of(of)
    frame.stack.pop()
    frame.loops.append([items, 0])
    if items is not of:
        run.memory.made_inside(items)


def _next_each(run: Running, frame: Frame, operand: JsonValue) -> None:
    end, name, is_top = operand
    loop = frame.loops[-1]
    items, position = loop
    if position >= len(items):
        frame.loops.pop()
        frame.position = end
        return
    loop[1] = position + 1
    (run.top if is_top else frame.variables)[name] = items[position]


def _to(run: Running, frame: Frame, _: JsonValue) -> None:
    frame.loops.append(counting(*frame.stack[-3:]))
    del frame.stack[-3:]


def _next_to(run: Running, frame: Frame, operand: JsonValue) -> None:
    end, name, is_top = operand
    variables = run.top if is_top else frame.variables
    variables[name], is_over = counted(frame.loops[-1], variables.get(name))
    if is_over:
        frame.loops.pop()
        frame.position = end


def _cut(run: Running, frame: Frame, depth: JsonValue) -> None:
    """The loops that are left by a jump."""
    del frame.loops[depth:]


def _call(run: Running, frame: Frame, operand: JsonValue) -> None:
    name, count = operand
    if len(run.frames) > run.limits.depth:
        raise RunFault(RunCode.DEPTH, f"{name} calls itself, or others, more than {run.limits.depth} deep")
    procedure = run.procedures[name]
    stack = frame.stack
    variables = dict(zip(procedure.parameters, stack[len(stack) - count :], strict=True))
    del stack[len(stack) - count :]
    run.frames.append(Frame(procedure, variables))


def _return(run: Running, frame: Frame, _: JsonValue) -> Event | None:
    value = frame.stack.pop()
    if len(run.frames) == 1:
        return Ended(value)
    run.frames.pop()
    run.frames[-1].stack.append(value)
    return None


def _stop(run: Running, frame: Frame, _: JsonValue) -> Event:
    return Ended(None)


def _gosub(run: Running, frame: Frame, operand: JsonValue) -> None:
    target, depth = operand
    if len(frame.ways_back) >= run.limits.depth:
        raise RunFault(RunCode.DEPTH, f"GOSUB without RETURN, more than {run.limits.depth} deep")
    frame.ways_back.append(WayBack(frame.position, [list(loop) for loop in frame.loops]))
    del frame.loops[depth:]
    frame.position = target


def _back(run: Running, frame: Frame, _: JsonValue) -> None:
    """Behind the GOSUB, where there was one."""
    if frame.ways_back:
        way = frame.ways_back.pop()
        frame.position = way.position
        frame.loops = way.loops


def _on_error(run: Running, frame: Frame, what: JsonValue) -> None:
    frame.on_error = what
    run.error = LastError()


def _throw(run: Running, frame: Frame, _: JsonValue) -> None:
    raise RunFault(RunCode.THROWN, shortened(text_of(frame.stack.pop())))


def _assert(run: Running, frame: Frame, _: JsonValue) -> None:
    raise RunFault(RunCode.ASSERTION, shortened(text_of(frame.stack.pop())))


def _want(run: Running, frame: Frame, _: JsonValue) -> Event:
    """The run stays here, with the arguments on the stack, until there is a value."""
    run.memory.check_stop(run.count())
    frame.position -= 1
    return wanted(frame)


def wanted(frame: Frame) -> Wants:
    """What the run waits for, at the keyword where it stands."""
    _, (keyword, slots) = frame.procedure.code[frame.position]
    values = frame.stack[len(frame.stack) - len(slots) :]
    arguments = {slot: copied(value) for slot, value in zip(slots, values, strict=True)}
    return Wants(keyword, arguments, frame.procedure.place(frame.position))


CONTROL: Mapping[str, ControlInstruction] = MappingProxyType(
    {
        "jump_true": _jump_true,
        "and": _and,
        "or": _or,
        "each": _each,
        "next_each": _next_each,
        "to": _to,
        "next_to": _next_to,
        "cut": _cut,
        "call": _call,
        "return": _return,
        "stop": _stop,
        "gosub": _gosub,
        "back": _back,
        "on_error": _on_error,
        "throw": _throw,
        "assert": _assert,
        "want": _want,
    }
)
"""By what an instruction is called. Each gives an event where the run stops."""
