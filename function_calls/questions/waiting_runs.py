"""Calls that wait for an answer: resume them with it, or end them without one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import structlog

from config.texts import Phrases
from function_calls.call import CallRequest, Path, Runs
from function_calls.context import MessageContext
from function_calls.failures import refused_result, switched_on
from function_calls.outcome import TurnOutcome, outcome_of, sent
from function_calls.schema.commands import plain_name, spoken_name
from function_calls.spec import (
    ApprovalQuestion,
    Approved,
    FunctionResult,
    FunctionSpec,
    InputQuestion,
    Message,
    Question,
    Resumed,
    ResumedKind,
    Touch,
)
from function_calls.turn import Continuation, Turn
from services.refs import ErrorCode, JsonObject, ReasonCode

_log = structlog.get_logger("questions")


class ResumesRounds(Protocol):
    """Continues the rounds of a model; implemented by FunctionCallLLM."""

    async def resume(
        self,
        context: MessageContext,
        turn: Turn,
        on: Continuation,
        result: FunctionResult,
        function: str,
        arguments: Mapping[str, Any] | None = None,
        said: Sequence[str] = (),
    ) -> TurnOutcome:
        """Continue with the result of the interrupted call."""


async def end(invoker: Runs, request: CallRequest, resumed: Resumed) -> list[Message]:
    """Run the function of `request` once more so that the run saved in `resumed` can clean up. Returns the messages
    that the chat must get: only that the outcome of an effect is unknown."""
    turn, key = request.turn, request.key or request.turn.next_key()
    turn.memory.resume(key, resumed)
    turn.memory.ending |= {key}
    return unknown_end(await invoker.invoke(request._replace(key=key)))


async def end_unanswered(
    invoker: Runs, context: MessageContext, turn: Turn, asked: InputQuestion, path: Path
) -> list[Message]:
    """End the run that asked a question which nobody will answer; messages as in `end`."""
    request = CallRequest(context, asked.function, asked.arguments, turn, path, key=end_key(asked.key))
    return await end(invoker, request, replace(asked.saved_run, kind="expired"))


def end_key(key: str) -> str:
    """The key under which the run of `key` is ended in the same turn; the same on every attempt."""
    return f"{key}.end"


def mark_ending(key: str, turn: Turn) -> bool:
    """Whether a refused run may start nevertheless, only to clean up and end."""
    resumed = turn.memory.resuming.get(key)
    if resumed is None or resumed.kind == "answered":
        return False
    turn.memory.ending |= {key}
    return True


def with_interrupted_run(result: FunctionResult, resumed: Resumed | None) -> FunctionResult:
    """`result` of a policy that stopped a run. If it asks for an approval, the run continues from `resumed` with it."""
    if not isinstance(result.question, ApprovalQuestion) or resumed is None:
        return result
    return replace(result, question=replace(result.question, interrupted=resumed))


def unknown_end(result: FunctionResult) -> list[Message]:
    """Messages that the chat must get about a run that ended without a recipient for its result."""
    if result.error is not None and result.error.code is ErrorCode.UNKNOWN_OUTCOME:
        return list(result.for_chat())
    return []


def with_unknown(result: FunctionResult, notes: list[Message]) -> FunctionResult:
    """`result` with the messages about another run that was ended meanwhile."""
    return replace(result, messages=(*result.for_chat(), *notes)) if notes else result


@dataclass(frozen=True, slots=True)
class WaitingRun:
    """A call that a question interrupted, in the turn that continues it."""

    invoker: Runs
    context: MessageContext
    """A message of the member who requested the run."""
    turn: Turn
    on: Continuation

    @property
    def texts(self) -> Phrases:
        """Texts in the chat's language."""
        return self.turn.input.profile().texts

    def find(self, question: Question) -> FunctionSpec | None:
        """The function that asked; None if it was removed or changed. A waiting run then cannot continue or clean up,
        which is logged."""
        spec = self.turn.input.functions.find(question.function)
        if spec is not None and spec.fingerprint == self.on.fingerprint:
            return spec
        if question.saved_run is not None:
            where = spec.origin.source if spec is not None else ""
            chat = self.context.chat.key
            _log.warning("waiting_run_not_ended", function=question.function, chat=chat, source=where)
        return None

    def changed(self, question: Question) -> str:
        """Text for an answer to a function that was removed or changed."""
        spec = self.turn.input.functions.find(question.function)
        name = plain_name(question.function) if spec is None else spoken_name(spec, self.texts.language)
        return self.texts.say("questions.changed", name=name)

    def restore(self) -> None:
        """Restore the saved state and data labels of the turn."""
        self.turn.memory.state.update(self.on.state)
        self.turn.memory.taint |= frozenset(map(Touch, self.on.taint))

    async def call(
        self, question: Question, spec: FunctionSpec, arguments: JsonObject, *, confirmed: bool = False, key: str = ""
    ) -> FunctionResult:
        """Result of the interrupted call, on its original path. `key`: key of a run that continues."""
        turn, path = self.turn, Path(self.on.path)
        self.restore()
        profile = turn.input.profile()
        refused = switched_on(profile) if question.nested and path is Path.MODEL else None
        if refused is not None and not mark_ending(key, turn):
            refusal = refused_result(refused, spec, profile)
            if not key:
                return refusal
            resumed = replace(turn.memory.resuming[key], answer="", kind="expired")
            request = CallRequest(self.context, spec.name, arguments, turn, Path.NESTED, key=end_key(key))
            return with_unknown(refusal, await end(self.invoker, request, resumed))
        call_path = Path.NESTED if question.nested else path
        request = CallRequest(
            self.context,
            spec.name,
            arguments,
            turn,
            call_path,
            key=key,
            confirmed=confirmed,
            uncertain=self.on.uncertain,
            by_model=path is Path.MODEL,
        )
        result = await self.invoker.invoke(request)
        return result.from_nested() if question.nested else result

    async def resume(
        self, question: InputQuestion | ApprovalQuestion, spec: FunctionSpec, resumed: Resumed
    ) -> tuple[FunctionResult, str]:
        """Continue the run that asked `question`. Returns its result and the key of its continuation."""
        turn, key = self.turn, self.turn.next_key()
        turn.memory.resume(key, resumed)
        if isinstance(question, InputQuestion) and question.allowed:
            turn.memory.approved = Approved(question.allowed, self.context.sender, always=False, is_noted=True)
        result = await self.call(question, spec, question.arguments, key=key)
        turn.memory.approved = None
        asked = result.question
        if isinstance(asked, InputQuestion | ApprovalQuestion) and asked.function == question.function:
            # A further question of the same run includes all texts since its start.
            result = replace(result, question=replace(asked, said=question.said + asked.said))
        return result, key

    async def end(self, question: Question, kind: ResumedKind) -> list[Message]:
        """End the waiting run, if any. Returns the messages that the chat must get."""
        saved, path = question.saved_run, Path.NESTED if question.nested else Path(self.on.path)
        if saved is None or self.find(question) is None:
            return []
        self.turn.memory.state.update(self.on.state)
        request = CallRequest(self.context, question.function, question.arguments, self.turn, path)
        return await end(self.invoker, request, replace(saved, answer="", kind=kind))


@dataclass(frozen=True, slots=True)
class WaitingTurn(WaitingRun):
    """A stored question in the turn that continues from it."""

    rounds: ResumesRounds

    async def run(
        self, question: Question, spec: FunctionSpec, arguments: JsonObject, *, confirmed: bool = False
    ) -> TurnOutcome:
        """Run the function after its question, then continue the interrupted turn."""
        turn, on = self.turn, self.on
        result = await self.call(question, spec, arguments, confirmed=confirmed)
        turn.memory.answered = ""
        is_usage = result.error is not None and result.error.code is ErrorCode.BAD_ARGUMENTS
        if on.transcript and (on.calls or not is_usage):
            return await self.rounds.resume(self.context, turn, on, result, spec.name, arguments)
        asked_on = Path.TIMER if Path(on.path) is Path.TIMER else Path.COMMAND
        return outcome_of(turn, spec, result, ReasonCode.ANSWERED_QUESTION, tuple(on.asked), asked_on)

    async def resume_run(
        self, question: InputQuestion | ApprovalQuestion, spec: FunctionSpec, resumed: Resumed
    ) -> TurnOutcome:
        """Continue the run that asked `question`, and then the turn that it interrupted."""
        turn, on = self.turn, self.on
        result, key = await self.resume(question, spec, resumed)
        if resumed.kind == "expired":
            unknown = unknown_end(result)
            if unknown:
                return sent(ReasonCode.UNKNOWN_OUTCOME, unknown, spec.name, ErrorCode.UNKNOWN_OUTCOME)
            return sent(ReasonCode.EXPIRED, [], spec.name)
        if resumed.kind == "cancelled":
            result = replace(result, messages=()) if key in turn.memory.ending else result
            result = self._cancelled(result)
        if on.transcript:
            return await self.rounds.resume(
                self.context, turn, on, result, spec.name, question.arguments, question.said
            )
        return outcome_of(turn, spec, result, ReasonCode.ANSWERED_QUESTION, tuple(on.asked))

    def _cancelled(self, result: FunctionResult) -> FunctionResult:
        """Result of a run that the member cancelled: its messages for the chat, and CANCELLED for a model."""
        result = replace(result, question=None)
        if result.error is not None:
            return result
        dropped = self.texts.say("questions.dropped")
        if not self.on.transcript:
            return result if result.messages else replace(result, messages=(Message(dropped),))
        self.turn.output.said += result.messages
        text = "\n".join(message.text for message in result.messages if message.to is None)
        return FunctionResult.fail(ErrorCode.CANCELLED, text or dropped)

    async def drop(self, spec: FunctionSpec, *, is_clear: bool) -> TurnOutcome:
        """Drop a call that has not started. `is_clear`: the member said no; further calls of the model then run."""
        dropped = self.texts.say("questions.dropped")
        if is_clear and self.on.calls:
            return await self.refuse(spec, dropped)
        return sent(ReasonCode.ANSWERED_QUESTION, [Message(dropped)], spec.name)

    async def refuse(self, spec: FunctionSpec, text: str) -> TurnOutcome:
        """Tell the model that the interrupted call was refused, and continue its rounds."""
        self.restore()
        refused = FunctionResult.fail(ErrorCode.REFUSED, text)
        return await self.rounds.resume(self.context, self.turn, self.on, refused, spec.name)
