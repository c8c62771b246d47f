"""Checks in advance whether a scheduled call can run, since nobody can answer questions at its time."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from config.texts import Phrases
from function_calls.call import CallRequest, Path
from function_calls.checks.permissions import Policy, PolicyDecision
from function_calls.context import MessageContext
from function_calls.invocation import Invoker
from function_calls.profile import ChatProfile
from function_calls.registry import BotFunctions
from function_calls.schema.arguments import as_said
from function_calls.schema.commands import arguments_of, fault_text, spoken_name
from function_calls.spec import ArgumentError, FunctionSpec, OfferedTo, ToolError
from function_calls.turn import Turn, TurnInput
from services.refs import Effect, ErrorCode, JsonObject

_FOR_PEOPLE = frozenset({OfferedTo.COMMAND, OfferedTo.MODEL, OfferedTo.API})
_OF_TIMERS = frozenset({"reminder", "schedules"})
"""Tags of functions that manage scheduled calls; scheduling them would accumulate calls."""


class NotSchedulable(ToolError):
    """The call could not run. `text`: reason and remedy. `setting`: the settings key that decided, or empty."""

    def __init__(self, code: ErrorCode, text: str, setting: str = "") -> None:
        super().__init__(text, code)
        self.setting = setting


@dataclass(frozen=True, slots=True)
class ScheduledCall:
    """A call that can be scheduled."""

    spec: FunctionSpec
    arguments: JsonObject
    """Unvalidated; parsed again at each run."""
    line: str
    """Displayed form, such as `/weather Oslo`."""


class ScheduleCheck:
    """Checks future calls against the rules that apply when they run."""

    def bind(self, functions: Callable[[str], BotFunctions], invoker: Invoker, approvals: Policy) -> None:
        """Set the dependencies, which need the functions first: snapshots by bot, invoker and approval policy. Called
        once, before any check."""
        self._functions, self._invoker, self._approvals = functions, invoker, approvals

    def is_command(self, context: MessageContext, line: str) -> bool:
        """Whether `line`, with or without a slash, starts with a known command of the bot."""
        return self._functions(context.bot).command_line(f"/{line.strip().lstrip('/')}", bare=False) is not None

    def line(self, context: MessageContext, line: str, profile: ChatProfile) -> ScheduledCall:
        """The call of a command line. `context` is a message of the responsible member in the target chat. Raises
        NotSchedulable for an empty line, an unknown command, and arguments or functions that cannot be scheduled."""
        functions = self._functions(context.bot)
        text, texts = line.strip().lstrip("/"), profile.texts
        if not text:
            raise NotSchedulable(ErrorCode.MISSING_ARGUMENTS, texts.say("schedules.nothing_to_run"))
        command = functions.command_line(f"/{text}", bare=False)
        if command is None:
            raise NotSchedulable(ErrorCode.NOT_FOUND, _no_such_command(text, functions, texts))
        self._may_run(context, command.spec, profile)
        try:
            raw = arguments_of(command.plan, command.rest)
        except ArgumentError as fault:
            raise NotSchedulable(ErrorCode.BAD_ARGUMENTS, fault_text(command.spec, fault, texts)) from None
        self._fits(context, command.spec, raw, profile)
        shown = _as_line(command.spec, raw, texts.language) if command.spec.execution.sensitive else f"/{text}"
        return ScheduledCall(command.spec, raw, shown)

    def call(self, context: MessageContext, name: str, raw: Mapping[str, Any], profile: ChatProfile) -> ScheduledCall:
        """The call of a function by name. Raises NotSchedulable if it is unknown, not permitted, has invalid arguments,
        or needs a confirmation or approval."""
        known = self._functions(context.bot)
        spec = known.find(name)
        if spec is None or spec not in known.specs:
            near = difflib.get_close_matches(name, [one.name for one in known.specs], n=1)
            text = profile.texts.say("refusals.unknown_function", name=name)
            hint = profile.texts.say("commands.did_you_mean", commands=near[0]) if near else ""
            raise NotSchedulable(ErrorCode.NOT_FOUND, f"{text} {hint}".strip())
        self._may_run(context, spec, profile)
        self._fits(context, spec, raw, profile)
        return ScheduledCall(spec, dict(raw), _as_line(spec, raw, profile.texts.language))

    def _may_run(self, context: MessageContext, spec: FunctionSpec, profile: ChatProfile) -> None:
        """Raise NotSchedulable unless the function can be scheduled here with this member's rights."""
        texts = profile.texts
        name = spoken_name(spec, texts.language)
        is_open = OfferedTo.TIMER in spec.access.offered_to and not spec.access.offered_to.isdisjoint(_FOR_PEOPLE)
        if not is_open or (spec.execution.effect is not Effect.READ and not spec.origin.tags.isdisjoint(_OF_TIMERS)):
            raise NotSchedulable(ErrorCode.REFUSED, texts.say("schedules.not_by_the_clock", name=name))
        refused = self._invoker.refused(context, spec, self._turn(context, profile), Path.TIMER)
        if refused is not None and refused.error is not None:
            raise NotSchedulable(refused.error.code, refused.error.text, str(refused.metadata.get("refused_by", "")))

    def _fits(self, context: MessageContext, spec: FunctionSpec, raw: Mapping[str, Any], profile: ChatProfile) -> None:
        """Raise NotSchedulable unless the arguments are valid and the run needs no confirmation or approval. Raises
        TypeError if the approval policy would have to wait."""
        texts = profile.texts
        name = spoken_name(spec, texts.language)
        try:
            arguments = spec.arguments.parse(as_said(spec.arguments, raw, profile))
        except ArgumentError as fault:
            code = ErrorCode.BAD_ARGUMENTS if fault.problems else ErrorCode.MISSING_ARGUMENTS
            raise NotSchedulable(code, fault_text(spec, fault, texts)) from None
        if spec.access.confirm:
            raise NotSchedulable(ErrorCode.REFUSED, texts.say("schedules.asks_each_time", name=name))
        request = CallRequest(context, spec.name, raw, self._turn(context, profile), Path.TIMER)
        judged = self._approvals.judge(request, spec, arguments)
        if not isinstance(judged, PolicyDecision):
            raise TypeError("the policy of approvals has to judge without waiting")
        if judged.refusal is not None:
            raise NotSchedulable(
                ErrorCode.REFUSED, texts.say("schedules.waits_for_a_yes", name=name), "approvals.required"
            )

    def _turn(self, context: MessageContext, profile: ChatProfile) -> Turn:
        """A turn without anybody to ask."""
        return Turn(TurnInput("schedule_check", self._functions(context.bot), lambda: profile), math.inf)


def _no_such_command(text: str, functions: BotFunctions, texts: Phrases) -> str:
    word = text.split()[0]
    near = functions.near_commands(word)
    known = texts.say("commands.did_you_mean", commands=", ".join(f"/{one}" for one in near)) if near else ""
    return f"{texts.say('commands.unknown', word=word[:60])} {known}".strip()


def _as_line(spec: FunctionSpec, raw: Mapping[str, Any], language: str) -> str:
    """The call as an equivalent command line for display, without sensitive values."""
    values = ", ".join(f"{name}={_shown(value)}" for name, value in raw.items() if name not in spec.execution.sensitive)
    return f"{spoken_name(spec, language)} {values}".strip()


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)
