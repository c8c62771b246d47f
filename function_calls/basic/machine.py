"""Machine: runs a program, step by step, and stops wherever it wants something of the world.

Values are never changed: `a[0] = 1` gives the variable another list, and whoever had the old one still has that. So
`b = a`, a list that is handed to a SUB and the list of a FOR EACH are like copies, and a run that was stored and read
again, which shares nothing any more, goes on as if it had not been."""

from __future__ import annotations

from collections.abc import Mapping

import structlog

from function_calls.basic.caught import LastError, caught, shortened
from function_calls.basic.codes import CATCHABLE, RunCode, RunFault
from function_calls.basic.control_code import CONTROL, wanted
from function_calls.basic.events import Event, Failed, Paused, Wants
from function_calls.basic.frames import Frame, frame_of_json
from function_calls.basic.limits import Limits
from function_calls.basic.outside import taken
from function_calls.basic.program import Program
from function_calls.basic.running import Running
from function_calls.basic.values import OPERATORS, truth
from function_calls.basic.values_code import PLAIN
from function_calls.basic.world import World
from services.json_values import JsonObject, JsonValue

_log = structlog.get_logger("basic")


class StaleState(ValueError):
    """The state is of another program, or is none: the run cannot go on."""


class Machine:
    """One run of a program. Nothing is raised by it but StaleState, by `resumed`."""

    __slots__ = ("_fault", "_over", "_program", "_run", "_steps", "_waits")

    def __init__(
        self,
        program: Program,
        arguments: Mapping[str, JsonValue],
        world: World,
        limits: Limits,
        top: JsonObject | None = None,
    ) -> None:
        """`top` keeps the script's own variables, for whoever wants to notice how they are read."""
        self._program = program
        self._steps = 0
        self._waits = False
        self._fault: RunFault | None = None
        self._over: Event | None = None
        self._run = Running(program.procedures, {} if top is None else top, world, limits)
        self._run.frames.append(Frame(program.procedures[""], self._run.top))
        self._begin(arguments)

    @classmethod
    def resumed(cls, program: Program, state: JsonObject, world: World, limits: Limits) -> Machine:
        """The run whose state this is. A run that waited says once more what it wants. Raises StaleState."""
        if state.get("program") != program.digest:
            raise StaleState("the state is of another program")
        machine = cls(program, {}, world, limits)
        try:
            machine._restore(state, world, limits)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as fault:
            raise StaleState("the state is none of a run") from fault
        return machine

    @property
    def steps(self) -> int:
        """How many are done; never more than the limit."""
        return min(self._steps, self._run.limits.steps)

    @property
    def held_bytes(self) -> int:
        """About how much all values hold together, or held when they were measured last."""
        return self._run.memory.held

    def state(self) -> JsonObject:
        """The run as plain data, which `resumed` takes; running on does not change it."""
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

    def give(self, value: JsonValue) -> None:
        """The value of the keyword that was wanted; the next `go` goes on with it. Ignored when none is wanted."""
        if self._waits and self._fault is None and self._over is None:
            self._answer(value)

    def fail(self, fault: RunFault) -> None:
        """Let the statement at which the run stands fail, which ON ERROR of the script may hold, with the next `go`. So
        fails a keyword, and so ends a run whose time is over."""
        self._fault = self._fault or fault

    def go(self, most_steps: int) -> Event:
        """Run until something is wanted, the run is over, or about so many steps are done, one at least; once it is
        over, the same event again."""
        if self._over is not None:
            return self._over
        try:
            event = self._go(self._steps + max(1, most_steps))
        except Exception as error:  # noqa: BLE001
            # A third border, beside those of calls and turns: what runs here is a stranger's program, and whatever it
            # finds wrong with the interpreter may end this run and nothing else.
            event = self._broken(error)
        if not isinstance(event, Paused | Wants):
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
            except RunFault as fault:
                if not self._recovered(fault):
                    return self._failed(fault)
                continue
            if isinstance(event, Wants):
                self._waits = True
            if isinstance(event, Paused) and self._steps >= run.limits.steps:
                return self._failed(
                    RunFault(RunCode.STEPS, f"it took more than {run.limits.steps:,} steps; does a loop never end?")
                )
            return event

    def _raise_fault(self) -> None:
        fault, self._fault = self._fault, None
        if self._waits:
            self._run.frames[-1].position += 1  # behind the keyword, as all else stands that fails
            self._waits = False
        if fault is not None:
            raise fault

    def _steps_until(self, stop: int) -> Event:  # noqa: C901 - a call for each instruction would halve the pace
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
        """An operator gave a text or a list."""
        memory = self._run.memory
        if type(result) is str:
            memory.made(result)
            memory.compared(left)
            memory.compared(right)
        else:
            memory.made_inside(result)

    def _recovered(self, fault: RunFault) -> bool:
        """Go on where ON ERROR says, if it does. What has been said in a SUB or FUNCTION ends with it; where nothing
        has been said, the caller's word holds."""
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
        # An error while the script deals with one ends the run; otherwise the two could go on forever.
        frame.on_error = "off"
        return True

    def _go_behind_statement(self) -> None:
        frame = self._run.frames[-1]
        frame.stack.clear()
        frame.position, loops = frame.procedure.behind(_last(frame))
        del frame.loops[loops:]

    def _failed(self, fault: RunFault) -> Failed:
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
                self._run.top[name.lower()] = argument = taken(value)
                self._run.memory.made_inside(argument)
        except RunFault as fault:
            self._fault = fault
        except Exception as error:  # noqa: BLE001 - as in `go`: it ends this run
            self._over = self._broken(error)

    def _answer(self, value: JsonValue) -> None:
        frame = self._run.frames[-1]
        try:
            answer = taken(value)
            _, (_, slots) = frame.procedure.code[frame.position]
            del frame.stack[len(frame.stack) - len(slots) :]
            frame.stack.append(answer)
            frame.position += 1
            self._waits = False
            self._run.memory.made_inside(answer)
        except RunFault as fault:
            self._fault = fault
        except Exception as error:  # noqa: BLE001 - as in `go`: it ends this run
            self._over = self._broken(error)

    def _restore(self, state: JsonObject, world: World, limits: Limits) -> None:
        procedures = self._program.procedures
        run = Running(procedures, dict(state["top"]), world, limits, int(state["held"]), int(state["above"]))
        run.frames.extend(frame_of_json(frame, procedures[frame["procedure"]], run.top) for frame in state["frames"])
        if state["fault"] is not None:
            code, detail = state["fault"]
            self._fault = RunFault(RunCode(code), str(detail))
        number, message = state["error"]
        run.error = LastError(int(number), str(message))
        self._run, self._steps, self._waits = run, int(state["steps"]), bool(state["waits"])
        if not run.frames:
            raise ValueError("a run has one frame at least")


def _last(frame: Frame) -> int:
    """The instruction that was carried out last."""
    return max(0, frame.position - 1)
