"""One run of a command tool: what the call wants, what `env` makes of it, `setup`, each step, and `on_exit`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import structlog

from function_calls.call import Call
from function_calls.command_tools.callables import BadReference, called
from function_calls.command_tools.definition import Definition, Ending, Step, digest_of
from function_calls.command_tools.kept import (
    CannotKeep,
    added_step,
    kept,
    outputs_from_json,
    outputs_to_json,
    said_from_json,
    steps_from_json,
    steps_to_json,
    within_bounds,
)
from function_calls.command_tools.machine import Machine
from function_calls.command_tools.outcomes import Failure, Said, fail, failed, said_of, shown, succeeded, words_for
from function_calls.command_tools.permission import Permission, Rejected, question
from function_calls.command_tools.request import Given, Request, StepFacts, ToolRun
from function_calls.command_tools.steps import StepRunner, as_input
from function_calls.command_tools.words import WordFault, argv_of, holds, text_of, told
from function_calls.context import MessageContext
from function_calls.failed_runs import REFUSED_BY, broken, own_words, unknown
from function_calls.spec import FunctionResult, FunctionSpec, ToolError
from function_calls.usage import done_text, spoken_name
from services.json_values import JsonObject
from services.refs import Effect, ErrorCode
from services.workspace import WorkspaceFault

_EXIT_SECONDS = 10.0
_SHOWN_CHARS = 200
"""Of each command that has run, where it is said that it has."""
_log = structlog.get_logger("command_tools")


class HookBroken(Exception):
    """A callable of the tool raised something; `result` says so in neutral words, and the log has the rest."""

    def __init__(self, result: FunctionResult) -> None:
        super().__init__("a callable of the tool failed")
        self.result = result


class Run:
    """The state of one run."""

    def __init__(
        self,
        tool: Definition,
        machine: Machine,
        spec: FunctionSpec,
        context: MessageContext,
        given: Given,
        call: Call,
    ) -> None:
        self.ending = Ending.ERROR
        self.waits = False
        """It has asked somebody, and goes on with the answer."""
        self._spec = spec
        self._name = spoken_name(spec, call.profile.texts.language)
        self._tool = tool
        self._machine = machine
        self._context = context
        self._call = call
        request = Request(
            self._tool.name,
            given.arguments,
            given.raw,
            context.chat.key,
            context.sender.ref.key,
            call.key,
        )
        self._run = ToolRun(request, {}, list(self._tool.steps))
        self._steps: list[Step] = list(self._tool.steps)
        self._argv: dict[int, tuple[str, ...]] = {}
        self._said: list[Said] = []
        self._ran: list[str] = []
        self._at = 0
        self._allowed_at = -1
        self._began = False
        self._runner = StepRunner(self._tool, self._machine, call, self._hook, self._name)

    @property
    def _values(self) -> Mapping[str, Any]:
        return {**self._run.request.arguments, **self._run.env}

    async def result(self) -> FunctionResult:
        """What the handler gives; every failure that can be foreseen is one."""
        texts = self._call.profile.texts
        try:
            return await self._all()
        except WordFault as fault:
            result = FunctionResult.fail(
                ErrorCode.BAD_ARGUMENTS, texts.say(f"command_tools.word_{fault.why.value}", name=fault.name)
            )
            root = fault.name.partition(".")[0]
            if result.error is not None and root in self._spec.parameters["properties"]:
                result = replace(result, error=replace(result.error, fields=(root,)))
            return result
        except ToolError as error:
            return FunctionResult.fail(error.code, own_words(error, texts))
        except HookBroken as broke:
            return broke.result
        except (WorkspaceFault, OSError, BadReference, CannotKeep) as error:
            _log.error("command_tool_cannot_run", tool=self._tool.name, problem=str(error))
            return fail(ErrorCode.ENVIRONMENT, texts, "not_set_up", name=self._name).result

    async def exit(self, ending: Ending) -> None:
        """Run `on_exit`. What becomes of it changes nothing about the run that it ends."""
        step = self._tool.on_exit
        if step is None:
            return
        try:
            at = self._machine.clock.monotonic() + _EXIT_SECONDS
            await self._machine.deadlines.run(self._exit(step, ending), at)
        except (HookBroken, ToolError, OSError, WordFault) as error:
            _log.error("on_exit_failed", tool=self._tool.name, problem=f"{type(error).__name__}: {error}")

    async def _exit(self, step: Step, ending: Ending) -> None:
        if step.function is not None:
            await self._hook(step.function, self._run, ending.value)
            return
        argv = argv_of(step.words, self._values, options_end=step.options_end)
        stdin = told(step.stdin, self._values) if step.stdin is not None else ""
        problem = await self._runner.quietly(argv, stdin, self._run.folder)
        if problem:
            _log.error("on_exit_failed", tool=self._tool.name, problem=problem)

    async def _all(self) -> FunctionResult:
        if self._tool.opts.folder == "chat":
            self._run.folder = await self._machine.folder_of(self._context.chat)
        resumed = self._call.resumed
        if resumed is None:
            await self._begin()
        else:
            self._take_up(resumed.state)
            if resumed.state["tool"] != self._tool.digest:
                return await self._rejected(Rejected("changed"))
        self._argv = {
            index: argv_of(step.words, self._values, options_end=step.options_end)
            for index, step in enumerate(self._steps)
            if step.function is None and self._is_wanted(step)
        }
        if resumed is not None:
            try:
                Permission(self._call.profile.texts).check(resumed, self._digest(self._at))
            except Rejected as refused:
                return await self._rejected(refused)
            self._allowed_at = self._at
        return await self._go_on()

    async def _begin(self) -> None:
        """`env`, then `setup`: both once for each request."""
        env = self._tool.env
        if callable(env):
            given = await self._hook(env, self._run.request)
            if not isinstance(given, Mapping | None):
                raise HookBroken(self._broken(TypeError("`env` returns a mapping of names to values, or None")))
            self._run.env = dict(given or {})
        elif env is not None:
            found: dict[str, Any] = {}
            for name, template in env.items():
                found[name] = text_of(template, {**self._run.request.arguments, **found})
            self._run.env = found
        if self._tool.setup is not None:
            self._began = True
            await self._hook(self._tool.setup, self._run)
            self._steps = [added_step(one, self._tool.names) for one in self._run.cmds]
        if len(self._steps) > self._tool.opts.max_steps:
            raise ToolError("@command_tools.too_many_steps", ErrorCode.REFUSED)

    def _take_up(self, state: JsonObject) -> None:
        """Go on where the run asked."""
        self._run.env = state["env"]
        self._run.outputs = outputs_from_json(state["outputs"])
        self._said = said_from_json(state["said"])
        self._ran = list(state.get("ran", ()))
        self._at = state["at"]
        self._began = bool(self._run.outputs) or self._tool.setup is not None
        if state["tool"] == self._tool.digest:
            self._steps = steps_from_json(state["steps"], self._tool)
            self._run.cmds = list(self._steps)

    async def _go_on(self) -> FunctionResult:
        for index in range(self._at, len(self._steps)):
            step, self._at = self._steps[index], index
            if not self._is_wanted(step):
                continue
            facts = self._facts(index)
            try:
                asked = await self._permission(index, facts)
            except Rejected as refused:
                return await self._rejected(refused)
            if asked is not None:
                return asked
            output = await self._output(step, facts)
            if isinstance(output, Failure):
                return await self._failed(facts, output)
            if isinstance(output, FunctionResult):
                self._said.append(Said(chat=output.reply or None))
                output = output.data
            self._run.outputs.append(output)
            self._ran.append(shown(facts)[:_SHOWN_CHARS])
            values = {**self._values, **words_for(facts, output)}
            self._said.append(await self._own(Ending.SUCCESS, values, [self._run, facts, output]))
        self.ending = Ending.SUCCESS
        is_worded = self._tool.wording(Ending.SUCCESS) is not None
        done = done_text([self._spec], self._call.profile.texts)
        return succeeded(self._run.outputs, self._said, is_worded=is_worded, done=done)

    async def _output(self, step: Step, facts: StepFacts) -> Any:
        """What the step gives: its output, its Failure, or the result that it has made itself."""
        self._began = True
        try:
            output = await self._runner.run(step, facts, self._run, self._stdin(step))
        except HookBroken as broke:
            return Failure(broke.result)
        is_late = isinstance(output, Failure) and output.problem.code == ErrorCode.TIMEOUT
        if is_late and self._spec.effect is Effect.ONCE:
            return replace(output, result=unknown(self._spec, self._call.profile.texts))
        return output

    async def _permission(self, index: int, facts: StepFacts) -> FunctionResult | None:
        """None: the step may run. Else the question whether it may. Raises Rejected."""
        if index == self._allowed_at:
            return None
        allowed: object = None
        if self._tool.approved is not None:
            allowed = await self._hook(self._tool.approved, self._run, facts)
            if allowed is not None and not isinstance(allowed, bool):
                raise HookBroken(self._broken(TypeError("`approved` returns True, False or None")))
        if allowed is False:
            raise Rejected("by_tool")
        if allowed or self._tool.opts.approval != "each_step":
            return None
        stdin = self._stdin(self._steps[index])
        asked = question(facts, stdin, self._call.profile.texts, self._name, self._state(index))
        self.waits = True
        return asked

    def _state(self, index: int) -> JsonObject:
        """All that the answer needs to go on. Raises CannotKeep."""
        state = {
            "tool": self._tool.digest,
            "env": kept(self._run.env),
            "steps": steps_to_json(self._steps, self._tool),
            "outputs": outputs_to_json(self._run.outputs),
            "said": [list(one) for one in self._said],
            "ran": self._ran,
            "at": index,
            "asked": self._digest(index),
        }
        return within_bounds(state)

    def _digest(self, index: int) -> str:
        """Of exactly what would run; empty where there is no such step any more."""
        if index >= len(self._steps):
            return ""
        step = self._steps[index]
        argv = list(self._argv.get(index, ()))
        return digest_of(self._tool.digest, argv, step.name, self._stdin(step), self._run.request.arguments)

    async def _rejected(self, refused: Rejected) -> FunctionResult:
        self.ending = Ending.REJECTED
        facts = self._facts(self._at)
        failure = refused.failure(facts, self._call.profile.texts, self._name, self._ran)
        values = {**self._values, **words_for(facts, None, failure, refused.reason)}
        own = await self._own(Ending.REJECTED, values, [self._run, facts])
        result = failed(failure, own, self._run.outputs, self._said)
        why = "@" + f"command_tools.rejected_{refused.why}"
        return replace(result, metadata={**result.metadata, REFUSED_BY: f"{why} {self._tool.name}"})

    async def _failed(self, facts: StepFacts, failure: Failure) -> FunctionResult:
        values = {**self._values, **words_for(facts, None, failure)}
        own = await self._own(Ending.ERROR, values, [self._run, facts, failure.problem])
        return failed(failure, own, self._run.outputs, self._said)

    async def _own(self, ending: Ending, values: Mapping[str, Any], arguments: list[Any]) -> Said:
        """What the tool itself says of it."""
        try:
            return await said_of(self._tool.wording(ending), values, self._hook, arguments)
        except TypeError as error:
            raise HookBroken(self._broken(error)) from error

    def _facts(self, index: int) -> StepFacts:
        name = self._steps[index].name if index < len(self._steps) else ""
        return StepFacts(index + 1, self._argv.get(index, ()), name)

    def _is_wanted(self, step: Step) -> bool:
        return not step.when or holds(step.when, self._values)

    def _stdin(self, step: Step) -> str:
        if step.stdin is None:
            return ""
        return told(step.stdin, {**self._values, "input": as_input(self._run.outputs)})

    async def _hook(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What the callable gives. Raises ToolError where it fails on purpose, else HookBroken."""
        try:
            return await called(function, self._call.threads, *arguments)
        except ToolError:
            raise
        except (Exception, SystemExit) as error:
            raise HookBroken(self._broken(error)) from error

    def _broken(self, error: BaseException) -> FunctionResult:
        turn = self._call.key.rpartition(":")[0]
        return broken(self._spec, turn, error, self._call.profile.texts, began=self._began)
