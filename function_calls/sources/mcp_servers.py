"""Tools of MCP servers as functions, with one source per server, so that an unreachable server affects no others.

Functions are built from accepted definitions (services/mcp/tools.py), so they exist before the server is first
contacted, at a call. Names, descriptions, schemas and results of servers are untrusted data.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Literal

import structlog

from config.diagnostics import Diagnostic
from config.sections.mcp import McpServerSettings, McpToolSettings
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.encodings import imported_definition
from function_calls.failures import noted
from function_calls.loading.foreign_questions import Questionnaire
from function_calls.loading.foreign_text import (
    ResultSchema,
    UnseenIn,
    capped,
    described,
    failed,
    has_unseen,
    progress_text,
    result_of,
)
from function_calls.loading.source import Publish, Snapshot
from function_calls.schema.definition import (
    Code,
    DefinitionError,
    build_spec,
    problem_at,
    problems_of,
    schema_arguments,
)
from function_calls.spec import FunctionResult, FunctionSpec, Handler, ToolGroup, Touch
from services.clock import Clock
from services.mcp.problems import (
    BadAnswer,
    CallRefused,
    ConnectionLost,
    LoginRequired,
    ServerError,
    Superseded,
    Unreachable,
    Withdrawn,
    in_one_line,
    is_plain,
    shown,
)
from services.mcp.server import McpServer
from services.mcp.tools import LookUp, OnProgress, Pin, Pins, PinState, Questions, ToolAnswer, ToolDefinition
from services.refs import Effect, ErrorCode, JsonObject

_log = structlog.get_logger("mcp")
PREFIX = "mcp__"
TAG = "mcp"
"""Tag of all functions of servers, for rules."""
_DESCRIPTION_CHARS = 1024
_PARAMETER_CHARS = 500
_PROGRESS_SECONDS = 3.0
_LOGGED_CHARS = 2000
_MOST_ROUNDS = 5
_RESOURCES = "Lists the resources of {server}, or reads the one with the given URI."
_PROMPTS = "Lists the prompts of {server}, or returns the one with the given name."
_URI = {"type": "string", "description": "URI of the resource to read; without it, all are listed", "maxLength": 2000}
_PROMPT = {"type": "string", "description": "Name of the prompt; without it, all are listed", "maxLength": 200}
_PROMPT_ARGUMENTS = {
    "type": "object",
    "description": "Arguments of the prompt",
    "additionalProperties": {"type": "string"},
}
_FAILURES: Mapping[type[ServerError], tuple[ErrorCode, str]] = {
    Withdrawn: (ErrorCode.REFUSED, "foreign_tools.withdrawn"),
    Superseded: (ErrorCode.REFUSED, "foreign_tools.superseded"),
    Unreachable: (ErrorCode.ENVIRONMENT, "foreign_tools.unreachable"),
    LoginRequired: (ErrorCode.ENVIRONMENT, "foreign_tools.unreachable"),
    ConnectionLost: (ErrorCode.TRANSIENT, "foreign_tools.lost"),
}
"""Error code and key of the text for the chat; other failures get the text of a failed tool."""
_SHARED = ("scope", "require_at", "approval", "timeout_seconds")
"""Settings of a server that can be overridden per tool."""


def prefix_of(server: str) -> str:
    """Prefix of the function names of `server`."""
    return f"{PREFIX}{server}__"


class McpFunctions:
    """Source for the functions of one server."""

    def __init__(self, settings: McpServerSettings, server: McpServer, pins: Pins, clock: Clock) -> None:
        self.name = f"mcp.servers.{settings.name}"
        self._settings = settings
        self._server = server
        self._pins = pins
        self._clock = clock
        self._made: dict[str, FunctionSpec | DefinitionError] = {}
        """Cache of specs by the digest of their definition."""
        self._lookups: list[FunctionSpec] = []
        if settings.resources:
            self._lookups.append(self._look_up("resources", _RESOURCES, {"uri": _URI}))
        if settings.prompts:
            self._lookups.append(self._look_up("prompts", _PROMPTS, {"name": _PROMPT, "arguments": _PROMPT_ARGUMENTS}))

    async def run(self, publish: Publish) -> None:
        """Publish the accepted tools, and again after each change of tools or problems. The server's connection runs as
        long as this method."""
        await self._pins.loaded()
        looking_after = asyncio.create_task(self._server.run(), name=f"{self.name} connection")
        try:
            with self._pins.watched(self._settings.name, self._server.news):
                await self._publish_news(publish, looking_after)
        finally:
            # At once: closing the connection may take a moment, and calls with these settings must stop now.
            self._server.refuse()
            looking_after.cancel()
            with suppress(asyncio.CancelledError):
                await looking_after

    async def _publish_news(self, publish: Publish, looking_after: asyncio.Task[None]) -> None:
        """Publish changes until cancelled or until `looking_after` ends; raises its exception."""
        published: Snapshot | None = None
        while not looking_after.done():
            self._server.news.clear()
            snapshot = self._snapshot()
            if snapshot != published:
                publish(snapshot)
                published = snapshot
            news = asyncio.create_task(self._server.news.wait())
            try:
                await asyncio.wait([news, looking_after], return_when=asyncio.FIRST_COMPLETED)
            finally:
                news.cancel()
        looking_after.result()

    def _snapshot(self) -> Snapshot:
        pins = self._pins.of(self._settings.name)
        specs: list[FunctionSpec] = []
        faults = [self._fault(problem, Code.UNREACHABLE) for problem in [self._server.problem] if problem]
        faults += [self._fault(problem) for problem in self._server.problems]
        faults += [
            self._fault(f"mcp.servers.{self._settings.name}.tools names {name!r}, which the server does not have")
            for name in self._settings.tools
            if pins and name not in pins
        ]
        made: dict[str, FunctionSpec | DefinitionError] = {}
        waiting: list[Pin] = []
        for pin in pins.values():
            if not self._is_wanted(pin.tool):
                continue
            if pin.state in (PinState.WAITING, PinState.CHANGED):
                waiting.append(pin)
            if pin.state is not PinState.ACCEPTED or pin.seen is None:
                continue
            one = made[pin.digest] = self._made.get(pin.digest) or self._spec_or_problem(pin.seen)
            if isinstance(one, FunctionSpec):
                specs.append(one)
            else:
                faults += problems_of(one, self.name)
        self._made = made
        taken = {spec.name for spec in specs}
        specs += [spec for spec in self._lookups if spec.name not in taken]
        faults += self._waiting(waiting)
        return Snapshot(tuple(specs), self._groups(specs), tuple(faults))

    def _is_wanted(self, tool: str) -> bool:
        settings = self._settings
        if tool in settings.tools and not settings.tools[tool].enabled:
            return False
        allowed = any(fnmatchcase(tool, one) for one in settings.allow)
        return allowed and not any(fnmatchcase(tool, one) for one in settings.deny)

    def _groups(self, specs: Iterable[FunctionSpec]) -> tuple[ToolGroup, ...]:
        """Group of the server's tools, named as the server, if they are activated on request."""
        names = tuple(spec.name for spec in specs)
        if self._settings.activation != "on_request" or not names:
            return ()
        name = self._settings.name
        return (ToolGroup(name, f"Tools of {name}", names, bot=self._settings.bot, source=self.name),)

    def _waiting(self, pins: Iterable[Pin]) -> list[Diagnostic]:
        """Diagnostics of tools that an operator must accept first."""
        states = {
            PinState.CHANGED: "has changed since it was accepted, so it is withdrawn",
            PinState.WAITING: "was not accepted yet",
        }
        return list(dict.fromkeys(self._fault(_awaiting(pin, states[pin.state]), Code.NOT_ACCEPTED) for pin in pins))

    def _fault(self, problem: str, code: Code = Code.UNUSABLE) -> Diagnostic:
        return problem_at(self.name, f"server {self._settings.name!r}: {problem}", code)

    def _spec_or_problem(self, tool: ToolDefinition) -> FunctionSpec | DefinitionError:
        """Spec of a tool, or an error. Details are only logged, because they contain texts of the server."""
        settings, name = self._settings, f"{prefix_of(self._settings.name)}{tool.name}"
        try:
            _check_visible(name)
            foreign = imported_definition({**tool.content, "name": name})
            parameters, arguments = schema_arguments(name, described(foreign.parameters, _PARAMETER_CHARS))
            output = tool.content.get("outputSchema")
            output = described(output, _PARAMETER_CHARS) if isinstance(output, Mapping) else None
        except UnseenIn as error:
            message = (
                f"{shown(tool.name)} is no function: its definition has characters that cannot be seen; "
                f"`rollcall mcp list {settings.name} --full` shows them"
            )
            return self._unusable(tool, message, error)
        except DefinitionError as error:
            return self._unusable(tool, f"the definition of {shown(tool.name)} cannot be used; the log says why", error)
        special = settings.tools.get(tool.name) or McpToolSettings()
        effect = self._effect(tool, special)
        try:
            return build_spec(
                name=name,
                description=special.description or capped(tool.description, _DESCRIPTION_CHARS),
                handler=self._handler(tool, name, effect, ResultSchema(output)),
                arguments=arguments,
                parameters=parameters,
                options=self._options(special, effect),
                source=self.name,
                result_schema=output,
                version=tool.digest,
            )
        except DefinitionError as error:
            # The definition contradicts the settings.
            if is_plain(tool.name):
                return error
            return self._unusable(tool, f"{shown(tool.name)} can be no function; the log says why", error)

    def _unusable(self, tool: ToolDefinition, message: str, error: Exception) -> DefinitionError:
        details = in_one_line(str(error))
        _log.info("mcp_tool_unusable", server=self._settings.name, tool=tool.name, problem=details)
        return DefinitionError(f"server {self._settings.name!r}", [message])

    def _effect(self, tool: ToolDefinition, special: McpToolSettings) -> Effect:
        """Effect from the settings, else from the server's annotations if they are trusted, else `once`."""
        declared = special.effect or self._settings.effect
        if declared is not None:
            return Effect(declared)
        if self._settings.trust_annotations:
            if tool.hint("readOnlyHint"):
                return Effect.READ
            if tool.hint("idempotentHint"):
                return Effect.IDEMPOTENT
        return Effect.ONCE

    def _options(self, special: McpToolSettings, effect: Effect) -> JsonObject:
        settings = self._settings
        touches = [Touch.READS_OUTSIDE, Touch.SENDS_OUT]
        options: JsonObject = {
            "effect": effect.value,
            "touches": [*touches, *([] if effect is Effect.READ else [Touch.REACHES_OUT])],
            "roles": sorted(special.roles or settings.roles),
            "tags": [TAG, *settings.tags, *special.tags],
            "offered_to": settings.offered_to,
            "activation": settings.activation,
            "examples": special.examples,
            "commands": special.commands,
        }
        for key in _SHARED:
            value = getattr(special, key)
            options[key] = getattr(settings, key) if value is None else value
        if settings.bot is not None:
            options["bot"] = settings.bot
        if settings.activation == "on_request":
            options["groups"] = [settings.name]
        return options

    def _handler(self, tool: ToolDefinition, name: str, effect: Effect, schema: ResultSchema) -> Handler:
        digest = tool.digest

        async def handle(context: MessageContext, arguments: Any, call: Call) -> FunctionResult:
            texts = call.profile.texts
            request = partial(
                self._server.call,
                tool.name,
                digest,
                arguments,
                deadline=call.deadline,
                may_repeat=effect is not Effect.ONCE,
                on_progress=_status(name, call, self._clock),
            )
            try:
                answer = await self._answer(request, call)
            except ServerError as problem:
                return self._failed(problem, name, effect, call)
            if isinstance(answer, FunctionResult):
                return answer
            result = result_of(
                answer, name=_display_name(name), is_read=effect is Effect.READ, fits=schema.fits(answer), texts=texts
            )
            return result if result.error is None else _noted(result, name, call, answer=str(result.data))

        return handle

    async def _answer(
        self, request: Callable[..., Awaitable[ToolAnswer | Questions]], call: Call
    ) -> ToolAnswer | FunctionResult:
        """The server's answer to `request`, or its question to the member. Raises ServerError."""
        texts, replies, resumed = call.profile.texts, None, call.resumed
        if resumed is not None:
            asked = Questionnaire(resumed.state, self._settings.name, texts)
            if resumed.kind == "answered":
                asked.take(resumed.answer)
                question = asked.next()
                if question is not None:
                    return question
            replies = asked.replies
        for _ in range(_MOST_ROUNDS):
            answer = await request(replies=replies)
            if isinstance(answer, ToolAnswer):
                return answer
            asked = Questionnaire(Questionnaire.started(answer), self._settings.name, texts)
            question = asked.next() if resumed is None or resumed.kind == "answered" else None
            if question is not None:
                return question
            replies = asked.replies
        raise CallRefused("it asks again and again")

    def _look_up(self, kind: Literal["resources", "prompts"], about: str, properties: JsonObject) -> FunctionSpec:
        name = f"{prefix_of(self._settings.name)}{kind}"

        async def handle(context: MessageContext, arguments: Any, call: Call) -> FunctionResult:
            named = arguments.get("uri") or arguments.get("name") or ""
            given = {key: str(value) for key, value in (arguments.get("arguments") or {}).items()}
            try:
                answer = await self._server.look_up(LookUp(kind, named, given), deadline=call.deadline)
            except ServerError as problem:
                return self._failed(problem, name, Effect.READ, call)
            return result_of(answer, name=_display_name(name), is_read=True, fits=True, texts=call.profile.texts)

        schema: JsonObject = {"type": "object", "properties": properties, "additionalProperties": False}
        parameters, parser = schema_arguments(name, schema)
        return build_spec(
            name=name,
            description=about.format(server=self._settings.name),
            handler=handle,
            arguments=parser,
            parameters=parameters,
            options=self._options(self._settings.tools.get(kind) or McpToolSettings(), Effect.READ),
            source=self.name,
        )

    def _failed(self, problem: ServerError, name: str, effect: Effect, call: Call) -> FunctionResult:
        """Failed result, logged. The chat gets Rollcall's own text; the model also gets the server's message."""
        # A call that waited for an answer has begun, whatever happens to its continuation.
        may_have_run = isinstance(problem, ConnectionLost | BadAnswer) or (
            call.resumed is not None and not isinstance(problem, CallRefused)
        )
        names = {"name": _display_name(name), "server": self._settings.name}
        code, text = _FAILURES.get(type(problem), (ErrorCode.FAILED, ""))
        if may_have_run and effect is Effect.ONCE:
            code, text = ErrorCode.UNKNOWN_OUTCOME, "failures.unknown_outcome"
        if text:
            result = FunctionResult.fail(code, call.say(text, **names))
        else:
            details = str(problem) if isinstance(problem, CallRefused) else None
            result = failed(names["name"], details, call.profile.texts)
        return _noted(result, name, call, kind=type(problem).__name__, problem=str(problem))


def _check_visible(name: str) -> None:
    """Raises UnseenIn for invisible characters."""
    if has_unseen(name):
        raise UnseenIn(ascii(name))


def _status(name: str, call: Call, clock: Clock) -> OnProgress:
    """Returns a callback that shows the progress of a call in the chat, at limited frequency, until its deadline."""
    shown_at = float("-inf")

    async def show(done: float, total: float | None) -> None:
        nonlocal shown_at
        now = clock.monotonic()
        if now < call.deadline and now - shown_at >= _PROGRESS_SECONDS:
            shown_at = now
            await call.status(progress_text(_display_name(name), done, total, call.profile.texts))

    return show


def _awaiting(pin: Pin, state: str) -> str:
    """Reason why a tool is not in use. Unusual names are left out of the command, which may be pasted into a shell."""
    which = f"{pin.server} {pin.tool}" if is_plain(pin.tool) else pin.server
    return f"{shown(pin.tool)} {state}; `rollcall mcp accept {which}` shows it and accepts it"


def _noted(result: FunctionResult, name: str, call: Call, **facts: str) -> FunctionResult:
    """A failed result, logged with the server's details."""
    capped_facts = {key: text[:_LOGGED_CHARS] for key, text in facts.items()}
    return noted(result, name, call.key.rpartition(":")[0], **capped_facts)


def _display_name(name: str) -> str:
    """Display name of a function: server and tool."""
    return name.removeprefix(PREFIX).replace("__", ": ", 1).replace("_", " ")
