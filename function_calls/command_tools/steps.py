"""Runs one step, a command or a callable, and reads what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from function_calls.call import Call
from function_calls.command_tools.definition import Definition, Step
from function_calls.command_tools.machine import Machine, RanOutOfTime
from function_calls.command_tools.outcomes import CallHook, Failure, fail
from function_calls.command_tools.request import Output, StepFacts, ToolRun
from function_calls.failed_runs import noted, own_words
from function_calls.results import normalised
from function_calls.spec import FunctionResult, ToolError
from services.json_values import JsonValue
from services.refs import ErrorCode
from services.sandbox import CannotStart, NotIsolated

_LOGGED_CHARS = 2000


class StepRunner:
    """Runs the steps of one run."""

    def __init__(self, tool: Definition, machine: Machine, call: Call, hook: CallHook, name: str) -> None:
        """`name`: what people know the tool as."""
        self._tool = tool
        self._machine = machine
        self._call = call
        self._hook = hook
        self._name = name

    async def run(self, step: Step, facts: StepFacts, run: ToolRun, stdin: str) -> Any:
        """The output of the step, or its Failure. Raises what the hook raises."""
        if step.function is None:
            return await self._command(step, facts.argv, stdin, run.folder)
        try:
            return _read(await self._hook(step.function, run, as_input(run.outputs)))
        except ToolError as error:
            return Failure(FunctionResult.fail(error.code, own_words(error, self._call.profile.texts)))

    async def quietly(self, argv: tuple[str, ...], stdin: str, folder: Path | None) -> str:
        """Run a command of which nobody is told; what was wrong with it, for operators."""
        try:
            output = await self._machine.run(self._tool, argv, stdin, folder, None)
        except RanOutOfTime:
            return "it ran out of time"
        except (CannotStart, NotIsolated) as error:
            return str(error)
        return "" if output.exit_code == 0 else f"it ended with {output.exit_code}"

    async def _command(self, step: Step, argv: tuple[str, ...], stdin: str, folder: Path | None) -> Output | Failure:
        texts, name = self._call.profile.texts, self._name
        tell = self._call.status if self._tool.streams else None
        try:
            output = await self._machine.run(self._tool, argv, stdin, folder, tell)
        except RanOutOfTime as late:
            failure = fail(ErrorCode.TIMEOUT, texts, "out_of_time", name=name)
            why = f"it ran out of its {self._tool.opts.timeout_seconds:g} seconds"
            return self._noted(replace(failure, output=late.output), problem=why)
        except (CannotStart, NotIsolated) as error:
            return self._noted(fail(ErrorCode.ENVIRONMENT, texts, "not_set_up", name=name), problem=str(error))
        # The code alone tells: programs write to their standard error when all is well, and fail without a word.
        if output.exit_code in step.succeeds_with:
            return output
        failure = fail(ErrorCode.FAILED, texts, "failed", name=name, exit_code=output.exit_code)
        return self._noted(replace(failure, output=output), exit_code=output.exit_code)

    def _noted(self, failure: Failure, **facts: object) -> Failure:
        """The failure of a command, in the log with the end of what it wrote."""
        ran = failure.output
        if ran is not None:
            stream = "stderr" if ran.stderr.strip() else "stdout"
            facts[stream] = getattr(ran, stream).strip()[-_LOGGED_CHARS:]
        turn = self._call.key.rpartition(":")[0]
        return replace(failure, result=noted(failure.result, self._tool.name, turn, **facts))


def as_input(outputs: Sequence[JsonValue | Output]) -> Any:
    """What the next step is given of the last one; None where there was none."""
    last = outputs[-1] if outputs else None
    return last.stdout if isinstance(last, Output) else last


def _read(value: Any) -> Any:
    """What a callable returned as an output or a Failure: `{status, msg}` and ("error", …) are read as everywhere."""
    if isinstance(value, Mapping) and value.get("status") in ("success", "error") and "msg" in value:
        if value["status"] == "error":
            return Failure(FunctionResult.fail(ErrorCode.FAILED, str(value["msg"])))
        return value["msg"]
    result = normalised(value) if isinstance(value, tuple) else value
    if not isinstance(result, FunctionResult):
        return value
    if result.error is not None:
        return Failure(result)
    if result.question is not None:
        raise TypeError("a step cannot ask: `handlers.approved` and `opts.approval` can")
    return result if result.messages else result.data
