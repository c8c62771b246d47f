"""Call: information and operations of a handler during one run. Injected into keyword-only parameters of this type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from function_calls.context import MessageContext
from function_calls.profile import ChatProfile
from function_calls.spec import (
    Activatable,
    Approved,
    Choice,
    FunctionResult,
    FunctionSpec,
    InputQuestion,
    Resumed,
    leaves_chat,
)
from services.llm.model import CallersModel, OfferedFunction
from services.refs import ErrorCode, Role
from services.threads import Threads

if TYPE_CHECKING:
    from function_calls.turn import Turn

DEEPEST_NESTING = 4


class Path(StrEnum):
    """Entry point through which a function is called."""

    COMMAND = "command"
    MODEL = "model"
    TIMER = "timer"
    API = "api"
    MCP = "mcp"
    CLI = "cli"
    NESTED = "nested"  # a handler called another function


class CallRequest(NamedTuple):
    """Request to call a function, the argument of `Invoker.invoke`."""

    context: MessageContext
    name: str
    arguments: Mapping[str, Any]
    """Unvalidated arguments from a model or a person."""
    turn: Turn
    path: Path
    key: str = ""
    """Key of a nested run, or of a run that continues from `turn.memory.resuming[key]`. Empty: the turn's next key."""
    depth: int = 0
    """Nesting depth; 0 for a call that no handler made."""
    confirmed: bool = False
    """The member has confirmed it."""
    uncertain: bool = False
    """The model only guessed: ask for confirmation first."""
    round_number: int = 0
    request_id: str = ""
    """Id of the model request that contained the call; empty for commands."""
    by_model: bool = False
    """A model wrote the call, or an outer call whose own effect needs no vouching."""
    outer: FunctionSpec | None = None
    """The function whose handler made the call; None if no handler did."""


class Runs(Protocol):
    """Runs functions; implemented by the Invoker."""

    threads: Threads

    async def invoke(self, request: CallRequest) -> FunctionResult:
        """Result of the requested run. Exceptions of a handler become failed results."""

    def now(self) -> datetime:
        """The current time, in UTC."""

    def callable_by(self, request: CallRequest) -> Sequence[FunctionSpec]:
        """Functions that the run of `request` may call, in registration order."""

    def find(self, request: CallRequest, text: str, most: int) -> Sequence[OfferedFunction]:
        """At most `most` functions that a model may call for this member and that match `text`, best first."""


class Call:
    """One run of a function: its key, deadline and settings, and access to other functions and to the chat with the
    rights of the requesting member."""

    __slots__ = ("_nested", "_request", "_runs", "_turn", "asked", "attempts", "deadline", "key", "profile", "state")

    def __init__(self, runs: Runs, request: CallRequest, profile: ChatProfile, *, deadline: float = 0.0) -> None:
        self.key = request.key
        """Idempotency key: unique to this run, and unchanged when the run is repeated after a crash."""
        self.deadline = deadline
        """Deadline on the clock's `monotonic()`, after which the run is cancelled."""
        self.state = request.turn.memory.state
        """State shared by the calls of a turn; a call reads the values that earlier calls wrote."""
        self.profile = profile
        """The chat's language, time zone and texts."""
        self.asked: tuple[InputQuestion, ...] = ()
        """Questions that nested runs have asked so far."""
        self.attempts = 0
        """Number of times that the handler was started."""
        self._runs = runs
        self._request = request
        self._turn = request.turn
        self._nested = 0

    @property
    def threads(self) -> Threads:
        """Thread pool for blocking work: `await call.threads.run(f, …)`."""
        return self._runs.threads

    @property
    def path(self) -> Path:
        """How the run was started: command, model, timer, another function, …"""
        return self._request.path

    @property
    def now(self) -> datetime:
        """The current time in the chat's time zone. `MessageContext.sent_at` may be long before it, since a run can
        wait for an answer or an approval."""
        return self._runs.now().astimezone(self.profile.timezone)

    @property
    def askers_texts(self) -> Sequence[str] | None:
        """If a model wrote the call: the asker's message and the messages and answers before it that belong to the
        request, oldest first. None if the asker wrote the call."""
        return self._turn.memory.words if self._request.by_model else None

    @property
    def asked_at(self) -> datetime | None:
        """Time of the request that a question interrupted; relative times such as `in 10 minutes` count from it, not
        from the answer. None if the run was not interrupted."""
        memory = self._turn.memory
        return memory.asked_at if memory.resumed else None

    @property
    def answered(self) -> str:
        """Name of the argument that a question requested and this message supplies, or empty."""
        return self._turn.memory.answered

    @property
    def resumed(self) -> Resumed | None:
        """Saved state and answer of a run that continues after `FunctionResult.ask`; None on its first start."""
        return self._turn.memory.resuming.get(self.key)

    @property
    def callers_model(self) -> CallersModel | None:
        """The caller's language model; None if this run may not use it, or there is none. The `Words` port chooses
        between it and the bot's."""
        turn, memory = self._turn, self._turn.memory
        # Outside text read by the turn is not sent to the caller's model. A run that only cleans up uses no model.
        if memory.reads or memory.taint or self.key in memory.ending:
            return None
        return turn.input.callers_model

    def set_request_time(self, at: datetime) -> None:
        """Set the time of the request to `at`, also for later questions. Used when the answer itself states a relative
        time."""
        self._turn.memory.asked_at = at

    def functions(self) -> Sequence[FunctionSpec]:
        """Functions that this member may call here, in registration order."""
        return self._runs.callable_by(self._request)

    def functions_elsewhere(self) -> Sequence[FunctionSpec]:
        """Functions that the member could call with the same role if a private chat were a group, or a group a private
        chat; in registration order."""
        context = self._request.context
        there = replace(context, is_group=not context.is_group)
        return self._runs.callable_by(self._request._replace(context=there))

    def on_request(self) -> Sequence[Activatable]:
        """On-request functions and groups, activated or not, that contain a function this member may call here. Groups
        that have no functions yet are included."""
        may = {spec.name for spec in self.functions()}
        everything = self._turn.input.functions.activation.activatable.values()
        return [found for found in everything if not found.functions or not may.isdisjoint(found.functions)]

    def is_active(self, spec: FunctionSpec) -> bool:
        """Whether `spec` is active in the chat, by its name or a group; always true if it is not on request."""
        return self._turn.input.functions.activation.is_active(spec, self._turn.input.profile().active)

    def find(self, text: str, most: int) -> Sequence[OfferedFunction]:
        """At most `most` functions that a model may call here for this member and that match `text`, best first."""
        return self._runs.find(self._request, text, most)

    def say(self, key: str, **values: object) -> str:
        """Text `key` of `config/texts/` in the chat's language."""
        return self.profile.texts.say(key, **values)

    async def invoke(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        confirmed: bool = False,
        resumed: Resumed | None = None,
        allowed: str = "",
    ) -> FunctionResult:
        """Run another function with the same member's rights, nested at most 4 deep. `confirmed`: the member has
        confirmed it. `resumed`: saved state of a nested run whose question this run has passed on; that run continues.
        `allowed`: the `InputQuestion.allowed` of that question."""
        turn, key, texts = self._turn, f"{self.key}.{self._nested}", self.profile.texts
        self._nested += 1
        if self._request.depth >= DEEPEST_NESTING:
            return FunctionResult.fail(ErrorCode.REFUSED, texts.say("refusals.too_deep"))
        spec = turn.input.functions.find(name)
        if spec is not None and spec.is_start_function and resumed is None:
            return FunctionResult.fail(ErrorCode.NOT_FOUND, texts.say("refusals.unknown_function", name=name))
        if self.key in turn.memory.ending:
            return FunctionResult.fail(ErrorCode.REFUSED, texts.say("refusals.only_ends"))
        if resumed is not None:
            turn.memory.resume(key, resumed)
        outer = turn.input.functions.find(self._request.name)
        if allowed:
            sender = self._request.context.sender
            turn.memory.approved = Approved(allowed, sender, always=False, is_noted=True)
        request = CallRequest(
            self._request.context,
            name,
            arguments,
            turn,
            Path.NESTED,
            key=key,
            depth=self._request.depth + 1,
            confirmed=confirmed,
            by_model=self._request.by_model and (outer is None or not leaves_chat(outer)),
            outer=outer,
        )
        result = await self._runs.invoke(request)
        if allowed:
            turn.memory.approved = None
        if isinstance(result.question, InputQuestion):
            self.asked += (result.question,)
        return result.from_nested()

    def unanswerable(self, result: FunctionResult) -> list[InputQuestion]:
        """Questions of nested runs that `result` does not pass on, so nobody can answer them. Each appears once, even
        if the nested run was retried."""
        own = result.question
        passed_on = (own.key, own.passes_on) if isinstance(own, InputQuestion) else ()
        return list({asked.key: asked for asked in self.asked if asked.key not in passed_on}.values())

    def mark_outside(self) -> None:
        """Mark the run as holding outside text before it ends, so that the checks of its nested calls consider it."""
        self._turn.memory.mark_outside(self.key)

    def start_attempt(self) -> None:
        """Count the attempt, and restart the numbering of nested runs, so that they get the same keys."""
        self.attempts += 1
        self._nested = 0

    async def role_now(self) -> Role:
        """The member's current role according to the platform; MEMBER if the platform does not report it."""
        return await self._turn.role_now(self._request.context.sender)

    def undo(self, command: str) -> tuple[Choice, ...]:
        """A button that sends `command`, which undoes this run; empty if no model wrote the call."""
        return (Choice(self.say("undo"), command, stays=True),) if self._request.by_model else ()

    async def status(self, text: str) -> None:
        """Show a progress text in the chat; never stored in history. Ignored in a run that only cleans up."""
        if self.key not in self._turn.memory.ending:
            await self._turn.input.status(text)
