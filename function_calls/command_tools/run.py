"""A run of a command tool: environment, setup, steps, and on_exit."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import orjson
import structlog

from config.texts import Phrases
from function_calls.call import Call
from function_calls.command_tools.callables import BadReference, PythonNames, called, file_of, name_of
from function_calls.command_tools.machine import Machine, RanOutOfTime, Report
from function_calls.command_tools.outcomes import (
    StepFailure,
    StepTexts,
    as_code,
    fail,
    failed,
    shown,
    step_texts,
    succeeded,
    words_for,
)
from function_calls.command_tools.request import Output, Request, RequestValues, StepFacts, ToolRun
from function_calls.command_tools.word_templates import (
    Definition,
    Ending,
    Step,
    Template,
    WordError,
    argv_of,
    digest_of,
    display_text,
    is_truthy,
    text_of,
)
from function_calls.context import MessageContext
from function_calls.failures import REFUSED_BY, broken, noted, tool_error_text, unknown
from function_calls.loading.module_loading import is_of_an_edition
from function_calls.questions.approval_questions import read_decision
from function_calls.questions.open_questions import Answered
from function_calls.result import normalised
from function_calls.schema.commands import done_text, spoken_name
from function_calls.spec import Choice, FunctionResult, FunctionSpec, Resumed, ToolError
from services.refs import Effect, ErrorCode, JsonObject, JsonValue
from services.sandbox.processes import CannotStart
from services.sandbox.sandbox import NotIsolated
from services.sandbox.workspace import WorkspaceError

_LOGGED_CHARS = 2000


def as_input(outputs: Sequence[JsonValue | Output]) -> Any:
    """Input for the next step: the last output, or None."""
    last = outputs[-1] if outputs else None
    return last.stdout if isinstance(last, Output) else last


def limited(output: Any, most: int | None) -> Any:
    """`output` with at most `most` results: lines of a command, or items of a list."""
    if most is None:
        return output
    if not isinstance(output, Output):
        return output[:most] if isinstance(output, list | tuple) else output
    lines = output.stdout.splitlines(keepends=True)
    return output if len(lines) <= most else replace(output, stdout="".join(lines[:most]), cut=True)


def _read(value: Any) -> Any:
    """Convert a callable's return value to an output or a StepFailure, with the same short forms as in handlers. Raises
    TypeError if it asks a question."""
    if isinstance(value, Mapping) and value.get("status") in ("success", "error") and "msg" in value:
        if value["status"] == "error":
            return StepFailure(FunctionResult.fail(ErrorCode.FAILED, str(value["msg"])))
        return value["msg"]
    result = normalised(value) if isinstance(value, tuple) else value
    if not isinstance(result, FunctionResult):
        return value
    if result.error is not None:
        return StepFailure(result)
    if result.question is not None:
        raise TypeError("a step cannot ask: `handlers.approved` and `opts.approval` can")
    return result if result.messages else result.data


_SHOWN_CHARS = 2000
Why = Literal["by_person", "by_tool", "expired", "changed", "too_long"]


class Rejected(Exception):
    """A step must not run."""

    def __init__(self, why: Why, reason: str = "") -> None:
        super().__init__(why)
        self.why: Why = why
        self.reason = reason
        """The member's reason, if any."""

    def failure(self, step: StepFacts, texts: Phrases, name: str, ran: Sequence[str]) -> StepFailure:
        """Default result of the tool, REFUSED, with texts for members and models. `ran`: the commands that have run
        before, which the texts list."""
        key = f"command_tools.model_{self.why}{'_because' if self.reason else ''}"
        model = texts.say(key, command=shown(step), reason=self.reason)
        if not ran:
            return fail(ErrorCode.REFUSED, texts, f"rejected_{self.why}", model=model, name=name)
        model = f"{model} {texts.say('command_tools.model_ran_before', commands='; '.join(ran))}"
        text_key = "stopped_by_person" if self.why == "by_person" else f"rejected_{self.why}"
        failure = fail(ErrorCode.REFUSED, texts, text_key, model=model, name=name)
        before = texts.say("command_tools.ran_before", commands="\n".join(map(as_code, ran)))
        text = failure.result.error.text if failure.result.error is not None else ""
        return replace(failure, result=failure.result.with_error_text(f"{text} {before}"))


def question(step: StepFacts, stdin: str, texts: Phrases, name: str, state: JsonObject) -> FunctionResult:
    """Ask the requesting member for approval of a step. Raises Rejected if the command is too long to display, since
    nobody can approve a command without reading it."""
    command = shown(step, stdin)
    if len(command) > _SHOWN_CHARS:
        raise Rejected("too_long")
    choices = (
        Choice(texts.say("approvals.yes_label"), texts.words("answers.yes")[0]),
        Choice(texts.say("approvals.no_label"), texts.words("answers.no")[0]),
    )
    text = texts.say("command_tools.ask_step", name=name, command=as_code(command))
    return FunctionResult.ask(text, resume=state, choices=choices, only_choices=True)


def require_yes(resumed: Resumed, digest: str, texts: Phrases) -> None:
    """Return if the answer approves the step with `digest`, the step that was asked about. Raises Rejected if it was
    declined, has expired, or the step has changed."""
    if resumed.kind != "answered":
        raise Rejected("expired" if resumed.kind == "expired" else "by_person")
    if resumed.state["asked"] != digest:
        raise Rejected("changed")
    answer = read_decision("", resumed.answer, texts)
    if answer.kind not in (Answered.YES, Answered.ALWAYS):
        # A no may include a reason or an alternative.
        raise Rejected("by_person", answer.value)


_MOST_BYTES = 400_000


class StateNotStorable(Exception):
    """A value that no store can hold; the message is for operators."""


def storable_outputs(value: Any) -> Any:
    """`value` as plain JSON. Raises StateNotStorable if it cannot be serialized."""
    try:
        return orjson.loads(orjson.dumps(value))
    except TypeError as error:
        raise StateNotStorable(f"{type(value).__name__} cannot wait for an answer: {error}") from None


def outputs_to_json(outputs: list[JsonValue | Output]) -> list[JsonObject]:
    """`outputs` as plain data. Raises StateNotStorable."""
    return [
        {"command": one.to_json()} if isinstance(one, Output) else {"value": storable_outputs(one)} for one in outputs
    ]


def outputs_from_json(data: list[JsonObject]) -> list[JsonValue | Output]:
    """Restore the outputs that `outputs_to_json` wrote."""
    return [Output(**one["command"]) if "command" in one else one["value"] for one in data]


def steps_to_json(steps: list[Step], tool: Definition) -> list[JsonValue]:
    """Indexes of the tool's own steps, and definitions of added ones. Raises StateNotStorable."""
    return [tool.steps.index(step) if step in tool.steps else _added(step) for step in steps]


def steps_from_json(data: list[Any], tool: Definition) -> list[Step]:
    """Restore the steps that `steps_to_json` wrote. Raises BadReference."""
    return [
        tool.steps[one] if isinstance(one, int) else added_step(one.get("argv") or one["python"], tool.names)
        for one in data
    ]


def added_step(definition: object, names: PythonNames) -> Step:
    """Step for an item that `setup` added: a list of literal words, or a callable. Raises BadReference for anything
    else."""
    if isinstance(definition, Step):
        return definition
    if isinstance(definition, list | tuple) and definition and all(isinstance(word, str) for word in definition):
        return Step(words=tuple(Template((word,)) for word in definition), added={"argv": list(definition)})
    if isinstance(definition, str) or callable(definition):
        function = names.function(definition, 2)
        return Step(function=function, name=name_of(function), added={"python": _reference_to(definition, function)})
    raise BadReference(f"`setup` gives {type(definition).__name__} as a step; a step is a list of texts, or a callable")


def _added(step: Step) -> JsonObject:
    if step.added is None or step.added.get("python") == "":
        raise StateNotStorable(
            f"the step {step.name} is a function without a name of its own, so it cannot wait for a yes"
        )
    return step.added


def _reference_to(reference: object, function: Callable[..., Any]) -> str:
    """Reference to the function that works after a restart; empty if there is none, as for a lambda."""
    if isinstance(reference, str):
        return reference
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "<")
    if "<" in name:
        return ""
    file = file_of(function)
    if file:
        return f"{file}:{name}"
    return f"{module}:{name}" if module in sys.modules and not is_of_an_edition(module) else ""


_EXIT_SECONDS = 10.0
_RUN_SHOWN_CHARS = 200
"""Length limit of each command in the list of commands that have run."""
_log = structlog.get_logger("command_tools")


class HookBroken(Exception):
    """A callable of the tool raised an exception. `result` has a neutral text; the log has the details."""

    def __init__(self, result: FunctionResult) -> None:
        super().__init__("a callable of the tool failed")
        self.result = result


class Run:
    """State of a run."""

    def __init__(
        self,
        tool: Definition,
        machine: Machine,
        spec: FunctionSpec,
        context: MessageContext,
        values: RequestValues,
        call: Call,
    ) -> None:
        self.ending = Ending.ERROR
        self.waits = False
        """Whether the run has asked a question and continues with the answer."""
        self._spec = spec
        self._name = spoken_name(spec, call.profile.texts.language)
        self._tool = tool
        self._machine = machine
        self._context = context
        self._call = call
        member = context.sender.ref.key
        request = Request(tool.name, values.arguments, values.raw, context.chat.key, member, call.key)
        self._run = ToolRun(request, {}, list(self._tool.steps))
        self._steps: list[Step] = list(self._tool.steps)
        self._argv: dict[int, tuple[str, ...]] = {}
        self._texts: list[StepTexts] = []
        self._ran: list[str] = []
        self._at = 0
        self._allowed_at = -1
        self._began = False

    @property
    def _values(self) -> Mapping[str, Any]:
        return {**self._run.request.arguments, **self._run.env}

    async def result(self) -> FunctionResult:
        """Result for the handler; expected failures, such as invalid words, a broken hook or a missing program, are
        failed results too."""
        texts = self._call.profile.texts
        try:
            return await self._all()
        except WordError as fault:
            root = fault.name.partition(".")[0]
            fields = [root] if root in self._spec.parameters["properties"] else []
            text = texts.say(f"command_tools.word_{fault.why.value}", name=fault.name)
            return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, text, fields)
        except ToolError as error:
            return FunctionResult.fail(error.code, tool_error_text(error, texts))
        except HookBroken as broke:
            return broke.result
        except (WorkspaceError, OSError, BadReference, StateNotStorable) as error:
            _log.error("command_tool_cannot_run", tool=self._tool.name, problem=str(error))
            return fail(ErrorCode.ENVIRONMENT, texts, "not_set_up", name=self._name).result

    async def exit(self, ending: Ending) -> None:
        """Run `on_exit`, within a time limit. Its failure is logged, and does not change the result of the run."""
        step = self._tool.on_exit
        if step is None:
            return
        try:
            at = self._machine.clock.monotonic() + _EXIT_SECONDS
            await self._machine.deadlines.run(self._exit(step, ending), at)
        except (HookBroken, ToolError, OSError, WordError) as error:
            _log.error("on_exit_failed", tool=self._tool.name, problem=f"{type(error).__name__}: {error}")

    async def _exit(self, step: Step, ending: Ending) -> None:
        if step.function is not None:
            await self._hook(step.function, self._run, ending.value)
            return
        argv = argv_of(step.words, self._values, options_end=step.options_end)
        stdin = display_text(step.stdin, self._values) if step.stdin is not None else ""
        try:
            output = await self._on_machine(argv, stdin)
        except RanOutOfTime:
            problem = "it ran out of time"
        except (CannotStart, NotIsolated) as error:
            problem = str(error)
        else:
            problem = "" if output.exit_code == 0 else f"it ended with {output.exit_code}"
        if problem:
            _log.error("on_exit_failed", tool=self._tool.name, problem=problem)

    async def _all(self) -> FunctionResult:
        if self._tool.opts.folder == "chat":
            self._run.folder = await self._machine.folder_of(self._context.chat)
        resumed = self._call.resumed
        if resumed is None:
            await self._begin()
        else:
            self._restore(resumed.state)
            if resumed.state["tool"] != self._tool.digest:
                return await self._rejected(Rejected("changed"))
        self._argv = {
            index: argv_of(step.words, self._values, options_end=step.options_end)
            for index, step in enumerate(self._steps)
            if step.function is None and self._is_wanted(step)
        }
        if resumed is not None:
            try:
                require_yes(resumed, self._digest(self._at), self._call.profile.texts)
            except Rejected as refused:
                return await self._rejected(refused)
            self._allowed_at = self._at
        return await self._continue()

    async def _begin(self) -> None:
        """Run `env`, then `setup`; each runs once per request. Raises HookBroken for an `env` that is not a mapping,
        BadReference for an invalid added step, and ToolError for more than `max_steps` steps."""
        env = self._tool.env
        if callable(env):
            env_values = await self._hook(env, self._run.request)
            if not isinstance(env_values, Mapping | None):
                raise HookBroken(self._broken(TypeError("`env` returns a mapping of names to values, or None")))
            self._run.env = dict(env_values or {})
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

    def _restore(self, state: JsonObject) -> None:
        """Restore the state from before the question. If the tool has changed since, its current steps are used."""
        self._run.env = state["env"]
        self._run.outputs = outputs_from_json(state["outputs"])
        self._texts = [StepTexts(model, chat) for model, chat in state["said"]]
        self._ran = list(state.get("ran", ()))
        self._at = state["at"]
        self._began = bool(self._run.outputs) or self._tool.setup is not None
        if state["tool"] == self._tool.digest:
            self._steps = steps_from_json(state["steps"], self._tool)
            self._run.cmds = list(self._steps)

    async def _continue(self) -> FunctionResult:
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
            if isinstance(output, StepFailure):
                return await self._failed(facts, output)
            if isinstance(output, FunctionResult):
                self._texts.append(StepTexts(chat=output.reply or None))
                output = output.data
            self._run.outputs.append(output)
            self._ran.append(shown(facts)[:_RUN_SHOWN_CHARS])
            found = limited(output, self._tool.opts.max_results)
            values = {**self._values, **words_for(facts, found)}
            self._texts.append(await self._own_texts(Ending.SUCCESS, values, [self._run, facts, found]))
        self.ending = Ending.SUCCESS
        has_custom_texts = self._tool.wording(Ending.SUCCESS) is not None
        done = done_text([self._spec], self._call.profile.texts)
        found = [limited(one, self._tool.opts.max_results) for one in self._run.outputs]
        return succeeded(found, self._texts, has_custom_texts=has_custom_texts, done=done)

    async def _output(self, step: Step, facts: StepFacts) -> Any:
        """Output of the step, its StepFailure, or a result that the step built itself. After a timeout of a function
        that must run only once, the outcome is unknown."""
        self._began = True
        try:
            if step.function is None:
                output: Any = await self._command(step, facts.argv)
            else:
                output = _read(await self._hook(step.function, self._run, as_input(self._run.outputs)))
        except ToolError as error:
            return StepFailure(FunctionResult.fail(error.code, tool_error_text(error, self._call.profile.texts)))
        except HookBroken as broke:
            return StepFailure(broke.result)
        is_late = isinstance(output, StepFailure) and output.problem.code == ErrorCode.TIMEOUT
        if is_late and self._spec.execution.effect is Effect.ONCE:
            return replace(output, result=unknown(self._spec, self._call.profile.texts))
        return output

    async def _command(self, step: Step, argv: tuple[str, ...]) -> Output | StepFailure:
        texts = self._call.profile.texts
        try:
            output = await self._on_machine(argv, self._stdin(step), self._call.status if self._tool.streams else None)
        except RanOutOfTime as late:
            failure = fail(ErrorCode.TIMEOUT, texts, "out_of_time", name=self._name)
            why = f"it ran out of its {self._tool.opts.timeout_seconds:g} seconds"
            return self._logged(replace(failure, output=late.output), problem=why)
        except (CannotStart, NotIsolated) as error:
            return self._logged(fail(ErrorCode.ENVIRONMENT, texts, "not_set_up", name=self._name), problem=str(error))
        # Only the exit code counts: programs write to stderr on success, and fail silently.
        if output.exit_code in step.succeeds_with:
            return output
        failure = fail(ErrorCode.FAILED, texts, "failed", name=self._name, exit_code=output.exit_code)
        return self._logged(replace(failure, output=output), exit_code=output.exit_code)

    async def _on_machine(self, argv: tuple[str, ...], stdin: str, report: Report | None = None) -> Output:
        """Output of a command. Raises RanOutOfTime, NotIsolated and CannotStart."""
        owner = self._context.sender.ref.key
        return await self._machine.run(self._tool, argv, stdin, self._run.folder, owner, report)

    def _logged(self, failure: StepFailure, **facts: object) -> StepFailure:
        """The failure of a command, logged with the end of its output."""
        ran = failure.output
        if ran is not None:
            stream = "stderr" if ran.stderr.strip() else "stdout"
            facts[stream] = getattr(ran, stream).strip()[-_LOGGED_CHARS:]
        turn = self._call.key.rpartition(":")[0]
        return replace(failure, result=noted(failure.result, self._tool.name, turn, **facts))

    async def _permission(self, index: int, facts: StepFacts) -> FunctionResult | None:
        """None if the step may run, otherwise the approval question. Raises Rejected if `approved` returns False, and
        HookBroken if it returns no bool or None."""
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
        """State to continue with after the answer: digest of the tool, `env`, steps, outputs, texts and the index of
        the step. Raises StateNotStorable."""
        state = {
            "tool": self._tool.digest,
            "env": storable_outputs(self._run.env),
            "steps": steps_to_json(self._steps, self._tool),
            "outputs": outputs_to_json(self._run.outputs),
            "said": [list(one) for one in self._texts],
            "ran": self._ran,
            "at": index,
            "asked": self._digest(index),
        }
        if len(orjson.dumps(state)) > _MOST_BYTES:
            raise StateNotStorable(
                "the output of the steps so far is too long to wait for an answer: lower opts.output_chars"
            )
        return state

    def _digest(self, index: int) -> str:
        """Digest of the exact step; empty if there is no such step any more."""
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
        own = await self._own_texts(Ending.REJECTED, values, [self._run, facts])
        result = failed(failure, own, self._run.outputs, self._texts)
        why = "@" + f"command_tools.rejected_{refused.why}"
        return replace(result, metadata={**result.metadata, REFUSED_BY: f"{why} {self._tool.name}"})

    async def _failed(self, facts: StepFacts, failure: StepFailure) -> FunctionResult:
        values = {**self._values, **words_for(facts, None, failure)}
        own = await self._own_texts(Ending.ERROR, values, [self._run, facts, failure.problem])
        return failed(failure, own, self._run.outputs, self._texts)

    async def _own_texts(self, ending: Ending, values: Mapping[str, Any], arguments: list[Any]) -> StepTexts:
        """The tool's custom texts for this ending. Raises HookBroken for values of a wrong type."""
        try:
            return await step_texts(self._tool.wording(ending), values, self._hook, arguments)
        except TypeError as error:
            raise HookBroken(self._broken(error)) from error

    def _facts(self, index: int) -> StepFacts:
        name = self._steps[index].name if index < len(self._steps) else ""
        return StepFacts(index + 1, self._argv.get(index, ()), name)

    def _is_wanted(self, step: Step) -> bool:
        return not step.when or is_truthy(step.when, self._values)

    def _stdin(self, step: Step) -> str:
        if step.stdin is None:
            return ""
        return display_text(step.stdin, {**self._values, "input": as_input(self._run.outputs)})

    async def _hook(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Result of the callable. Raises ToolError if it fails on purpose, else HookBroken."""
        try:
            return await called(function, self._call.threads, *arguments)
        except ToolError:
            raise
        except (Exception, SystemExit) as error:
            raise HookBroken(self._broken(error)) from error

    def _broken(self, error: BaseException) -> FunctionResult:
        turn = self._call.key.rpartition(":")[0]
        return broken(self._spec, turn, error, self._call.profile.texts, began=self._began)


class CommandToolHandler:
    """Handler of a command tool."""

    def __init__(self, tool: Definition, machine: Machine) -> None:
        self.tool = tool
        self.machine = machine
        self.spec: FunctionSpec | None = None
        """Set after the spec was built with this handler."""
        self._leaving: set[asyncio.Task[None]] = set()

    async def handle(self, context: MessageContext, values: RequestValues, call: Call) -> FunctionResult:
        """Result of the run, or the question before its next step. The tool's clean-up runs unless the run waits for an
        answer. Raises RuntimeError without a spec, and the exceptions of the run."""
        if self.spec is None:
            raise RuntimeError(f"the tool {self.tool.name} runs before it has a spec")
        run = Run(self.tool, self.machine, self.spec, context, values, call)
        ending = Ending.CANCELLED
        try:
            result = await run.result()
            ending = run.ending
        except asyncio.CancelledError:
            raise
        except Exception:
            ending = Ending.ERROR
            raise
        finally:
            if not run.waits:
                await self._clean_up(run, ending)
        return result

    async def _clean_up(self, run: Run, ending: Ending) -> None:
        """Run `on_exit` to its end, even if the caller is cancelled."""
        if self.tool.on_exit is None:
            return
        leaving = asyncio.create_task(run.exit(ending))
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)
        await asyncio.shield(leaving)
