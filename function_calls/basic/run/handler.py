"""Handler of functions that are BASIC scripts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from random import Random
from typing import Any

import structlog

from config.sections.basic import BasicSettings
from function_calls.basic.codes import RunCode
from function_calls.basic.environment import Limits
from function_calls.basic.keywords import Asks, Grants, ScriptRun, Value
from function_calls.basic.machine.machine import Ended, Failed, Machine, StaleState
from function_calls.basic.machine.program import Program
from function_calls.basic.nodes import At
from function_calls.basic.run.driver import Asked, Cancelled, Driver, Pause, RunScheduler, Spent, Stop, Suspended
from function_calls.basic.run.keyword_table import KeywordTable
from function_calls.basic.run.script_calls import SAID, STOPPED_AT, Said, end_within
from function_calls.basic.run.session import (
    MEMBER_VARIABLES,
    NOTE_KEYWORDS,
    ChatWorld,
    ObservedVariables,
    OutputBuffer,
    session_variables,
    with_session_variables,
    with_suggestions,
)
from function_calls.basic.tool_definition import ToolDefinition
from function_calls.call import Call
from function_calls.context import Kind, MessageContext
from function_calls.failures import noted
from function_calls.outcome import TEXT_IN_CHAT
from function_calls.questions.input_questions import is_too_much
from function_calls.schema.arguments import SchemaArguments
from function_calls.schema.commands import plain_name
from function_calls.spec import (
    START_FUNCTION,
    ApprovalQuestion,
    ArgumentError,
    FunctionResult,
    InputQuestion,
    Message,
    Resumed,
)
from services.clock import Clock
from services.refs import ErrorCode, JsonObject

_PAUSE_SECONDS = 0.0002
_USUAL_SECONDS = 90.0
_WAITING_SECONDS = 330.0
_ERRORS = {RunCode.NOT_ALLOWED: ErrorCode.REFUSED, RunCode.UNKNOWN_OUTCOME: ErrorCode.UNKNOWN_OUTCOME}
_log = structlog.get_logger("scripts")

Load = Callable[[], Awaitable[Program]]
"""Loads the script's current program."""


async def breathe() -> None:
    """Let other threads and tasks run. Not zero, which would let tasks run but never the database's writer thread; not
    by a Clock, since no time is waited for."""
    await asyncio.sleep(_PAUSE_SECONDS)


def script_seconds(keywords: Iterable[str]) -> float:
    """Timeout of a function with these keywords. The turn may have less time."""
    return _WAITING_SECONDS if {"WAIT", "SLEEP"} & set(keywords) else _USUAL_SECONDS


class ScriptHandler:
    """Runs one script."""

    def __init__(
        self,
        definition: ToolDefinition,
        load: Load,
        table: KeywordTable,
        settings: BasicSettings,
        grants: Grants,
        *,
        clock: Clock,
        chance: Random,
        folder: str = "",
        parameters: Callable[[str], Mapping[str, Value]] = lambda bot: {},
        pause: Pause = breathe,
        line: RunScheduler | None = None,
    ) -> None:
        """`folder`: the script's folder in its storage. `parameters` returns the variables that the settings of a bot
        define."""
        self._definition = definition
        self._load = load
        self._table = table
        self._settings = settings
        self._grants = grants
        self._clock = clock
        self._chance = chance
        self._folder = folder
        self._parameters = parameters
        self._pause = pause
        self._line = line
        self._begins = definition.metadata.get(START_FUNCTION) is True
        """Whether it is the start script of a chat, which has no caller to reply to."""

    async def handle(self, context: MessageContext, arguments: Any, call: Call) -> FunctionResult:
        """The script's messages and value, its question, or the reason why it stopped."""
        resumed = call.resumed
        if resumed is not None and resumed.kind != "answered":
            return await end_within(call, resumed)
        program = await self._load()
        state = resumed.state if resumed is not None else {}
        said = OutputBuffer(self._settings.output_chars, state.get("chars", 0), state.get("messages", 0))
        script = self._script(context, arguments, call, said, resumed)
        script.knows_member_text = resumed is not None or self._is_given(arguments)
        given = self._given(arguments)
        try:
            machine = self._machine(program, script, state, given)
        except StaleState:
            name = plain_name(self._definition.name)
            return FunctionResult.fail(ErrorCode.CANCELLED, call.say("questions.changed", name=name))
        driver = Driver(
            machine,
            script,
            self._table,
            cpu_seconds=self._settings.cpu_seconds,
            pause=self._pause,
            line=self._line,
            spent=Spent(state.get("cpu_seconds", 0.0), state.get("is_begun", False)),
            given=given,
        )
        stop = await driver.run()
        result = self._result(stop, driver, said, script)
        result = replace(result, messages=with_suggestions(result.messages, script.stored_data))
        return replace(result, outside=True) if script.has_outside_text else result

    def _script(
        self, context: MessageContext, arguments: Any, call: Call, said: OutputBuffer, resumed: Resumed | None
    ) -> ScriptRun:
        state = resumed.state if resumed is not None else {}
        is_answered = resumed is not None and not state["needs_yes"]
        return ScriptRun(
            context=context,
            call=call,
            bot=self._definition.bot,
            tool=self._definition.name,
            folder=self._folder,
            grants=self._grants,
            say=said.say,
            append_to_last=said.append_to_last,
            stored_data=state.get("kept", {}),
            at=At(1, 1),
            arguments=dict(arguments),
            answer=resumed.answer if resumed is not None and is_answered else None,
            asked=state.get("asked", 0),
            begins=self._begins,
            has_outside_text=state.get("outside", False),
        )

    def _given(self, arguments: Any) -> dict[str, Value]:
        """Variables from the settings by lower-case name, without those that a parameter or an argument hides."""
        hidden = {name.casefold() for name in (*(one.name for one in self._definition.parameters), *arguments)}
        given = {name.casefold(): value for name, value in self._parameters(self._definition.bot).items()}
        return {name: value for name, value in given.items() if name not in hidden}

    def _machine(
        self, program: Program, script: ScriptRun, state: JsonObject, settings_give: Mapping[str, Value]
    ) -> Machine:
        """A new machine, or the one resumed from `state` if it is not empty. Reading variables about the member sets
        `script.knows_member_text`. Raises StaleState if the state is of another program."""
        settings = self._settings
        limits = Limits(settings.steps, settings.memory_megabytes * 1024 * 1024, settings.depth)
        world = ChatWorld(self._clock, script.call, self._chance)
        if state:
            return Machine.resumed(program, with_session_variables(state["machine"], settings_give), world, limits)
        defaults = {one.name: one.default for one in self._definition.parameters}
        given = {**settings_give, **defaults, **script.arguments}
        session = session_variables(script.context, script.call, script.bot)
        variables = {**session, **{name.casefold(): value for name, value in given.items()}}
        if NOTE_KEYWORDS.isdisjoint(program.keywords):
            return Machine(program, variables, world, limits)

        def has_looked() -> None:
            script.knows_member_text = True

        return Machine(program, variables, world, limits, ObservedVariables(MEMBER_VARIABLES, has_looked))

    def _is_given(self, arguments: Mapping[str, Any]) -> bool:
        """Whether any argument differs from the author's defaults."""
        defaults = {one.name: one.default for one in self._definition.parameters}
        return any(name not in defaults or value != defaults[name] for name, value in arguments.items())

    def _result(self, stop: Stop, driver: Driver, said: OutputBuffer, script: ScriptRun) -> FunctionResult:
        messages = said.together()
        match stop:
            case Ended(value):
                value, problem = self._checked(value)
                if problem:
                    at = At(self._definition.results[0].line, 1)
                    return self._failed(Failed(RunCode.BAD_VALUE, problem, at), driver, messages, script.call)
                return self._ended(value, said, script)
            case Cancelled():
                return FunctionResult(messages=messages, metadata={SAID: Said.TALK})
            case Asked(asks):
                return replace(_question(asks, driver, said), messages=messages)
            case Suspended(question):
                if isinstance(question, ApprovalQuestion):
                    state = _state(driver, said, "", needs_yes=True)
                    return self._suspended(question, state, messages, script)
                return replace(_question(question, driver, said, passes_on=question.key), messages=messages)
            case Failed():
                return self._failed(stop, driver, messages, script.call)

    def _checked(self, value: Value) -> tuple[Value, str]:
        """The value as the header declares it, and a problem or an empty text. A single declared member may be returned
        without a map."""
        schema = self._definition.result_schema()
        if schema is None:
            return value, ""
        names = list(schema["properties"])
        if len(names) == 1 and not isinstance(value, dict):
            value = {names[0]: value}
        if not isinstance(value, dict):
            return value, f"RETURN must give a map with {', '.join(names)}, as the header declares"
        folded = {name.casefold(): name for name in names}
        value = {folded.get(name.casefold(), name): one for name, one in value.items()}
        try:
            SchemaArguments(schema).parse({name: one for name, one in value.items() if name in schema["properties"]})
        except ArgumentError as error:
            wrong = ", ".join((*error.problems, *error.missing))
            return value, f"the returned value does not match RETURNS: {wrong}"
        return value, ""

    def _suspended(
        self, question: ApprovalQuestion, state: JsonObject, messages: tuple[Message, ...], script: ScriptRun
    ) -> FunctionResult:
        """The question for the approval that the run needs to continue, with its state; a failed result if the state is
        too large."""
        if is_too_much(state):
            text = script.call.say("questions.cannot_go_on", name=plain_name(script.tool))
            return replace(FunctionResult.fail(ErrorCode.FAILED, text), messages=(*messages, Message(text)))
        resumed = script.call.resumed
        own = replace(
            question,
            function=script.tool,
            arguments=dict(script.arguments),
            nested=False,
            interrupted=Resumed(state, "", number=resumed.number if resumed is not None else 1),
            said=tuple(message.text for message in messages if message.to is None),
        )
        return FunctionResult(messages=messages, question=own)

    def _ended(self, value: Value, said: OutputBuffer, script: ScriptRun) -> FunctionResult:
        """Result of a completed run: its messages, else its return value, else a confirmation. No confirmation for
        scheduled and start scripts; a value is not shown if the run sent messages before a question."""
        if said.messages:
            return FunctionResult(messages=said.together(), data=value, metadata={SAID: Said.TALK})
        if value is not None and said.chars:
            return FunctionResult(data=value, metadata={TEXT_IN_CHAT: True})
        if isinstance(value, str) and value.strip():
            return FunctionResult(messages=(Message(value),), data=value, metadata={SAID: Said.VALUE})
        if value is not None or script.context.kind is Kind.TIMER or script.begins:
            return FunctionResult(data=value)
        done = script.call.say("claims.done", names=plain_name(script.tool))
        return FunctionResult(messages=(Message(done),), metadata={SAID: Said.DONE})

    def _failed(self, stop: Failed, driver: Driver, messages: tuple[Message, ...], call: Call) -> FunctionResult:
        """Result of a stopped run: its messages so far, then a neutral sentence with position and reason."""
        definition, code = self._definition, stop.code
        text = self._why(stop, driver, call)
        if driver.spent.is_begun:
            text = f"{text} {call.say('basic.stopped.begun')}"
        error = _ERRORS.get(code, ErrorCode.FAILED)
        where = f"line {stop.at.line}, column {stop.at.column}: {stop.detail or code.value}"
        result = replace(FunctionResult.fail(error, text), metadata={SAID: Said.TALK, STOPPED_AT: where})
        if messages:
            before = [message.text for message in messages if message.to is None]
            result = replace(result, messages=(*messages, Message(text)), data={"said": before})
        return noted(
            result,
            definition.name,
            call.key.partition(":")[0],
            bot=definition.bot,
            file=definition.source_file,
            line=stop.at.line,
            column=stop.at.column,
            code=code.value,
            detail=stop.detail,
        )

    def _why(self, stop: Failed, driver: Driver, call: Call) -> str:
        name = plain_name(self._definition.name)
        text = call.say(f"basic.stopped.{stop.code.value}", name=name, line=stop.at.line)
        if not driver.is_worded(stop):
            return text
        # Deliberate messages of scripts, also of a called script that stopped, need no introduction.
        stands_alone = stop.code in (RunCode.THROWN, RunCode.ASSERTION)
        return stop.detail if stands_alone or driver.stopped_within == stop.detail else f"{text} {stop.detail}"


def _question(asks: Asks | InputQuestion, driver: Driver, said: OutputBuffer, passes_on: str = "") -> FunctionResult:
    return FunctionResult.ask(
        asks.text,
        resume=_state(driver, said, asks.text, needs_yes=False),
        choices=asks.choices,
        only_choices=asks.only_choices,
        takes_files=asks.takes_files,
        passes_on=passes_on,
    )


def _state(driver: Driver, said: OutputBuffer, text: str, *, needs_yes: bool) -> JsonObject:
    """State for resuming the run after the question `text`: that of the driver, the characters and messages sent, and
    whether the question `needs_yes`."""
    return {**driver.state(), "chars": said.chars + len(text), "messages": said.count, "needs_yes": needs_yes}
