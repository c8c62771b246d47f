"""Virtual machine: executes a program step by step and suspends at host keywords."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import structlog

from function_calls.basic.codes import CATCHABLE, RunCode, RunError
from function_calls.basic.environment import LastError, Limits, World, caught, shortened
from function_calls.basic.machine.program import Procedure, Program
from function_calls.basic.machine.values_code import PLAIN, Frame, Loop, ReturnAddress, RunState, frame_of_json
from function_calls.basic.nodes import At
from function_calls.basic.value_sizes import DEEPEST
from function_calls.basic.values import OPERATORS, items_of, normalized_number, number_of, text_of, truth
from services.refs import JsonObject, JsonValue

_NOT_BEGUN = -1
_SLACK = 1e-9


def for_loop(first: JsonValue, last: JsonValue, step: JsonValue) -> Loop:
    """Initial state of a FOR … TO loop. Raises RunError if a value is not a number, and for STEP 0."""
    by = number_of(step)
    if not by:
        raise RunError(RunCode.BAD_VALUE, "FOR with STEP 0 never ends")
    return [number_of(first), _NOT_BEGUN, number_of(last), by]


def next_iteration(loop: Loop, now: JsonValue) -> tuple[int | float, bool]:
    """Advance the loop: the variable's next value, and whether the loop is over. `now` is its current value.

    The n-th value is computed from the first, so that rounding errors do not add up: 1 TO 2 STEP 0.1 ends with 2. If
    the script has changed the variable, counting restarts from its value."""
    first, times, last, step = loop
    if type(now) is int and type(step) is int and type(first) is int and times != _NOT_BEGUN:
        value = normalized_number(now + step)  # exact fast path for integers, the usual case
        loop[0], loop[1] = value, 0
        return value, value > last if step > 0 else value < last
    if times != _NOT_BEGUN and now != _value(first, times, step):
        first, times = number_of(now), 0
        loop[0] = first
    loop[1] = times = times + 1
    value = _value(first, times, step)
    return value, value > last + step * _SLACK if step > 0 else value < last + step * _SLACK


def _value(first: int | float, times: int, step: int | float) -> int | float:
    value = normalized_number(first + times * step)
    return float(format(value, ".15g")) if type(value) is float else value


@dataclass(frozen=True, slots=True)
class KeywordRequest:
    """The run is suspended at a keyword: resume it with `give` or `fail`."""

    keyword: str
    arguments: JsonObject
    """By slot name. A copy: changing it does not affect the run."""
    at: At


@dataclass(frozen=True, slots=True)
class Ended:
    """The run has ended with the value of RETURN."""

    value: JsonValue


@dataclass(frozen=True, slots=True)
class Failed:
    """The run has ended with an error."""

    code: RunCode
    detail: str
    """In our words or the script's; may be empty."""
    at: At


@dataclass(frozen=True, slots=True)
class Paused:
    """The step budget of this call is used up; the next `go` continues."""


Event = KeywordRequest | Ended | Failed | Paused


_LARGEST_INT = 2**63 - 1
_SMALLEST_INT = -(2**63)


class Unfit(TypeError):
    """A value from the host has a type that scripts cannot hold."""


def copied(value: JsonValue) -> JsonValue:
    """A deep copy of lists and maps; other values as they are."""
    if type(value) is list:
        return [copied(item) for item in value]
    if type(value) is dict:
        return {key: copied(item) for key, item in value.items()}
    return value


def to_script_value(value: object, deep: int = 0) -> JsonValue:
    """The value converted for scripts, as a deep copy: tuples become lists, keys become texts, integers beyond 64 bits
    become floats, NaN and too large numbers become NULL, lone surrogates are replaced. Raises RunError (MEMORY) if it
    is nested too deep, and Unfit for other types."""
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int | float):
        return _number(value)
    if deep > DEEPEST:
        raise RunError(RunCode.MEMORY, f"lists and maps are nested more than {DEEPEST} deep")
    if isinstance(value, list | tuple):
        return [to_script_value(item, deep + 1) for item in value]
    if isinstance(value, Mapping):
        return {_text(str(key)): to_script_value(item, deep + 1) for key, item in value.items()}
    raise Unfit(f"a script value cannot be a {type(value).__name__}")


def _text(text: str) -> str:
    if text.isascii():
        return str(text)
    # Stored state and messages cannot contain lone surrogates.
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _number(number: int | float) -> int | float | None:
    if isinstance(number, float):
        return float(number) if math.isfinite(number) else None
    if _SMALLEST_INT <= number <= _LARGEST_INT:
        return int(number)
    return float(number) if number.bit_length() <= 1023 else None


ControlInstruction = Callable[[RunState, Frame, JsonValue], Event | None]


def _jump_true(run: RunState, frame: Frame, target: JsonValue) -> None:
    if truth(frame.stack.pop()):
        frame.position = target


def _and(run: RunState, frame: Frame, target: JsonValue) -> None:
    """A false left side becomes FALSE, and the right side is skipped."""
    if truth(frame.stack[-1]):
        frame.stack.pop()
    else:
        frame.stack[-1] = False
        frame.position = target


def _or(run: RunState, frame: Frame, target: JsonValue) -> None:
    if truth(frame.stack[-1]):
        frame.stack[-1] = True
        frame.position = target
    else:
        frame.stack.pop()


def _each(run: RunState, frame: Frame, _: JsonValue) -> None:
    """Begin FOR EACH over the list's current value, even if the variable changes later. Raises RunError if it is not
    iterable."""
    of = frame.stack[-1]
    items = items_of(of)
    frame.stack.pop()
    frame.loops.append([items, 0])
    if items is not of:
        run.memory.made_inside(items)


def _next_each(run: RunState, frame: Frame, operand: JsonValue) -> None:
    end, name, is_top = operand
    loop = frame.loops[-1]
    items, position = loop
    if position >= len(items):
        frame.loops.pop()
        frame.position = end
        return
    loop[1] = position + 1
    (run.top if is_top else frame.variables)[name] = items[position]


def _to(run: RunState, frame: Frame, _: JsonValue) -> None:
    frame.loops.append(for_loop(*frame.stack[-3:]))
    del frame.stack[-3:]


def _next_to(run: RunState, frame: Frame, operand: JsonValue) -> None:
    end, name, is_top = operand
    variables = run.top if is_top else frame.variables
    variables[name], is_over = next_iteration(frame.loops[-1], variables.get(name))
    if is_over:
        frame.loops.pop()
        frame.position = end


def _cut(run: RunState, frame: Frame, depth: JsonValue) -> None:
    """Discard loops that a jump leaves."""
    del frame.loops[depth:]


def _call(run: RunState, frame: Frame, operand: JsonValue) -> None:
    name, count = operand
    if len(run.frames) > run.limits.depth:
        raise RunError(RunCode.DEPTH, f"{name} exceeds the limit of {run.limits.depth} nested calls")
    procedure = run.procedures[name]
    stack = frame.stack
    variables = dict(zip(procedure.parameters, stack[len(stack) - count :], strict=True))
    del stack[len(stack) - count :]
    run.frames.append(Frame(procedure, variables))


def _return(run: RunState, frame: Frame, _: JsonValue) -> Event | None:
    value = frame.stack.pop()
    if len(run.frames) == 1:
        return Ended(value)
    run.frames.pop()
    run.frames[-1].stack.append(value)
    return None


def _stop(run: RunState, frame: Frame, _: JsonValue) -> Event:
    return Ended(None)


def _gosub(run: RunState, frame: Frame, operand: JsonValue) -> None:
    target, depth = operand
    if len(frame.return_addresses) >= run.limits.depth:
        raise RunError(RunCode.DEPTH, f"more than {run.limits.depth} GOSUB without RETURN")
    frame.return_addresses.append(ReturnAddress(frame.position, [list(loop) for loop in frame.loops]))
    del frame.loops[depth:]
    frame.position = target


def _back(run: RunState, frame: Frame, _: JsonValue) -> None:
    """Return from a GOSUB; no effect without one."""
    if frame.return_addresses:
        address = frame.return_addresses.pop()
        frame.position = address.position
        frame.loops = address.loops


def _on_error(run: RunState, frame: Frame, what: JsonValue) -> None:
    frame.on_error = what
    run.error = LastError()


def _throw(run: RunState, frame: Frame, _: JsonValue) -> None:
    raise RunError(RunCode.THROWN, shortened(text_of(frame.stack.pop())))


def _assert(run: RunState, frame: Frame, _: JsonValue) -> None:
    raise RunError(RunCode.ASSERTION, shortened(text_of(frame.stack.pop())))


def _want(run: RunState, frame: Frame, _: JsonValue) -> Event:
    """Suspend at this instruction, with the arguments on the stack, until the keyword has a value. Raises RunError if
    the run needs too much memory."""
    run.memory.check_stop(run.count())
    frame.position -= 1
    return wanted(frame)


def wanted(frame: Frame) -> KeywordRequest:
    """The request for the keyword at which the run is suspended."""
    _, (keyword, slots) = frame.procedure.code[frame.position]
    values = frame.stack[len(frame.stack) - len(slots) :]
    arguments = {slot: copied(value) for slot, value in zip(slots, values, strict=True)}
    return KeywordRequest(keyword, arguments, frame.procedure.place(frame.position))


CONTROL: Mapping[str, ControlInstruction] = {
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
"""Instructions by name. Each returns an event if the run stops."""


_log = structlog.get_logger("basic")


class StaleState(ValueError):
    """The state belongs to another program or is invalid: the run cannot be resumed."""


class Machine:
    """One run of a program. Raises only StaleState, in `resumed`."""

    __slots__ = ("_fault", "_over", "_program", "_run", "_steps", "_waits")

    def __init__(
        self,
        program: Program,
        arguments: Mapping[str, JsonValue],
        world: World,
        limits: Limits,
        top: JsonObject | None = None,
    ) -> None:
        """`top` holds the script's top-level variables; pass a custom mapping to observe reads."""
        self._program = program
        self._steps = 0
        self._waits = False
        self._fault: RunError | None = None
        self._over: Event | None = None
        self._run = RunState(program.procedures, {} if top is None else top, world, limits)
        self._run.frames.append(Frame(program.procedures[""], self._run.top))
        self._begin(arguments)

    @classmethod
    def resumed(cls, program: Program, state: JsonObject, world: World, limits: Limits) -> Machine:
        """The run with this saved state. A suspended run repeats its Wants event. Raises StaleState if the state is of
        another program, or no state."""
        if state.get("program") != program.digest:
            raise StaleState("the state belongs to another program")
        machine = cls(program, {}, world, limits)
        try:
            machine._restore(state, world, limits)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as fault:
            raise StaleState("the data is not the state of a run") from fault
        return machine

    @property
    def steps(self) -> int:
        """Executed steps; never more than the limit."""
        return min(self._steps, self._run.limits.steps)

    @property
    def held_bytes(self) -> int:
        """Approximate bytes of all values, as last measured."""
        return self._run.memory.held

    def state(self) -> JsonObject:
        """The run as plain data for `resumed`: program digest, steps, memory, error, global variables and stack frames.
        A snapshot, unaffected by further execution."""
        run = self._run
        return {
            "program": self._program.digest,
            "steps": self._steps,
            "held": run.memory.held,
            "above": run.memory.above,
            "waits": self._waits,
            "fault": None if self._fault is None else [self._fault.code.value, self._fault.detail],
            "error": list(run.error),
            "top": dict(run.top),
            "frames": [frame.to_json(frame.variables is run.top) for frame in run.frames],
        }

    def resume_with(self, value: JsonValue) -> None:
        """Supply the value of the requested keyword for the next `go`. Ignored if no keyword is requested."""
        if self._waits and self._fault is None and self._over is None:
            self._answer(value)

    def fail(self, fault: RunError) -> None:
        """Make the current statement fail in the next `go`; ON ERROR may handle it. For failed keywords and expired
        time."""
        self._fault = self._fault or fault

    def execute(self, most_steps: int) -> Event:
        """Run until a keyword is requested, the run ends, or about `most_steps` are done, at least one. After the end
        it returns the same event again."""
        if self._over is not None:
            return self._over
        try:
            event = self._go(self._steps + max(1, most_steps))
        except Exception as error:  # noqa: BLE001
            # Error boundary like those of calls and turns: the program is untrusted, and an interpreter bug that it
            # triggers # must end this run only.
            event = self._broken(error)
        if not isinstance(event, Paused | KeywordRequest):
            self._over = event
        return event

    def _go(self, until: int) -> Event:
        run = self._run
        stop = min(until, run.limits.steps)
        while True:
            try:
                if self._fault is not None:
                    self._raise_fault()
                event = wanted(run.frames[-1]) if self._waits else self._steps_until(stop)
            except RunError as fault:
                if not self._recovered(fault):
                    return self._failed(fault)
                continue
            if isinstance(event, KeywordRequest):
                self._waits = True
            if isinstance(event, Paused) and self._steps >= run.limits.steps:
                return self._failed(
                    RunError(
                        RunCode.STEPS,
                        f"exceeded the limit of {run.limits.steps:,} steps; check for a loop that never ends",
                    )
                )
            return event

    def _raise_fault(self) -> None:
        fault, self._fault = self._fault, None
        if self._waits:
            self._run.frames[-1].position += 1  # past the keyword, as after any other failing instruction
            self._waits = False
        if fault is not None:
            raise fault

    def _steps_until(self, stop: int) -> Event:  # noqa: C901 - a call per instruction would halve the speed
        run = self._run
        frame = run.frames[-1]
        code, stack, variables, position = frame.procedure.code, frame.stack, frame.variables, frame.position
        memory, steps = run.memory, self._steps
        try:
            while steps < stop:
                operation, operand = code[position]
                position += 1
                steps += 1
                if operation == "load":
                    stack.append(variables.get(operand))
                elif operation == "const":
                    stack.append(operand)
                elif operation == "binary":
                    right = stack.pop()
                    result = OPERATORS[operand](stack[-1], right)
                    if type(result) is str or type(result) is list:
                        left, stack[-1] = stack[-1], result
                        self._made(result, left, right)
                    else:
                        stack[-1] = result
                elif operation == "store":
                    variables[operand] = stack.pop()
                elif operation == "jump":
                    position = operand
                elif operation == "jump_false":
                    if not truth(stack.pop()):
                        position = operand
                else:
                    plain = PLAIN.get(operation)
                    if plain is not None:
                        plain(run, stack, operand)
                    else:
                        frame.position = position
                        event = CONTROL[operation](run, frame, operand)
                        if event is not None:
                            position = frame.position
                            return event
                        frame = run.frames[-1]
                        code, stack, variables = frame.procedure.code, frame.stack, frame.variables
                        position = frame.position
                    if memory.work:
                        steps += memory.work
                        memory.work = 0
            return Paused()
        finally:
            frame.position = position
            self._steps = steps + memory.work
            memory.work = 0

    def _made(self, result: JsonValue, left: JsonValue, right: JsonValue) -> None:
        """Account for a text or list that an operator created. Raises RunError if memory is exceeded."""
        memory = self._run.memory
        if type(result) is str:
            memory.made(result)
            memory.compared(left)
            memory.compared(right)
        else:
            memory.made_inside(result)

    def _recovered(self, fault: RunError) -> bool:
        """Continue as ON ERROR says; returns False if it does not apply. ON ERROR in a SUB or FUNCTION is local to that
        call; without it, the handler of the nearest caller applies."""
        run = self._run
        if fault.code not in CATCHABLE:
            return False
        index = len(run.frames) - 1
        while index and run.frames[index].on_error is None:
            index -= 1
        what = run.frames[index].on_error
        if what is None or what == "off":
            return False
        run.error = caught(fault)
        if what == "next":
            self._go_behind_statement()
            return True
        del run.frames[index + 1 :]
        frame = run.frames[index]
        frame.stack.clear()
        frame.loops.clear()
        frame.position = int(what)
        # An error in the handler ends the run, to prevent an endless loop between the two.
        frame.on_error = "off"
        return True

    def _go_behind_statement(self) -> None:
        frame = self._run.frames[-1]
        frame.stack.clear()
        frame.position, loops = frame.procedure.behind(_last(frame))
        del frame.loops[loops:]

    def _failed(self, fault: RunError) -> Failed:
        frame = self._run.frames[-1]
        return Failed(fault.code, shortened(fault.detail), frame.procedure.place(_last(frame)))

    def _broken(self, error: Exception) -> Failed:
        frame = self._run.frames[-1]
        at = frame.procedure.place(_last(frame))
        _log.error("script_broke_the_interpreter", program=self._program.digest, line=at.line, exc_info=error)
        return Failed(RunCode.FAILED, "", at)

    def _begin(self, arguments: Mapping[str, JsonValue]) -> None:
        try:
            for name, value in arguments.items():
                self._run.top[name.lower()] = argument = to_script_value(value)
                self._run.memory.made_inside(argument)
        except RunError as fault:
            self._fault = fault
        except Exception as error:  # noqa: BLE001 - as in `go`: ends this run only
            self._over = self._broken(error)

    def _answer(self, value: JsonValue) -> None:
        frame = self._run.frames[-1]
        try:
            answer = to_script_value(value)
            _, (_, slots) = frame.procedure.code[frame.position]
            del frame.stack[len(frame.stack) - len(slots) :]
            frame.stack.append(answer)
            frame.position += 1
            self._waits = False
            self._run.memory.made_inside(answer)
        except RunError as fault:
            self._fault = fault
        except Exception as error:  # noqa: BLE001 - as in `go`: ends this run only
            self._over = self._broken(error)

    def _restore(self, state: JsonObject, world: World, limits: Limits) -> None:
        procedures = self._program.procedures
        run = RunState(procedures, dict(state["top"]), world, limits, int(state["held"]), int(state["above"]))
        run.frames.extend(frame_of_json(frame, procedures[frame["procedure"]], run.top) for frame in state["frames"])
        if state["fault"] is not None:
            code, detail = state["fault"]
            self._fault = RunError(RunCode(code), str(detail))
        number, message = state["error"]
        run.error = LastError(int(number), str(message))
        self._run, self._steps, self._waits = run, int(state["steps"]), bool(state["waits"])
        if not run.frames:
            raise ValueError("a run has one frame at least")


def _last(frame: Frame) -> int:
    """The last executed instruction."""
    return max(0, frame.position - 1)


MOST_ROW_STEPS = 500_000
"""For all rows of an UPDATE in total."""


def changes_of(values: Mapping[str, JsonValue], world: World) -> Callable[[JsonObject], JsonObject]:
    """Function from a row to its new fields. It raises RunError for failed expressions, and if all rows together exceed
    the step limit."""
    programs = {name: _row_program(value[1]) for name, value in values.items() if value[0] == "row"}
    left = MOST_ROW_STEPS

    def computed(program: Program, variables: JsonObject) -> JsonValue:
        nonlocal left
        machine = Machine(program, {}, world, Limits(steps=left), variables)
        event = machine.execute(left)
        left -= machine.steps
        match event:
            case Ended(value):
                return value
            case Failed(code, detail) if code is not RunCode.STEPS:
                raise RunError(code, detail)
        raise RunError(RunCode.STEPS, "UPDATE computes too much; restrict the rows with WHERE")

    def changes(row: JsonObject) -> JsonObject:
        fields = {name.lower(): value for name, value in row.items()}
        return {
            name: computed(programs[name], {**fields, **value[2]}) if name in programs else value[1]
            for name, value in values.items()
        }

    return changes


def _row_program(code: JsonValue) -> Program:
    """The program of an expression that is evaluated for each row."""
    instructions = (*((operation, operand) for operation, operand in code), ("return", None))
    return Program({"": Procedure("", (), instructions, (), ())}, (), (), "")
