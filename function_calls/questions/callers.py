"""Questions to callers that wait synchronously: MCP clients, the HTTP API, the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from config.texts import Phrases
from function_calls.call import Path, Runs
from function_calls.context import MessageContext
from function_calls.outcome import asking_messages
from function_calls.questions.approval_questions import rejection
from function_calls.questions.argument_questions import with_value
from function_calls.questions.open_questions import Answer, Answered
from function_calls.questions.resume import read_answer
from function_calls.questions.waiting_runs import WaitingRun, unknown_end
from function_calls.spec import (
    ApprovalQuestion,
    Approved,
    ArgumentQuestion,
    FunctionResult,
    FunctionSpec,
    InputQuestion,
    Message,
    Question,
    Resumed,
    ResumedKind,
)
from function_calls.turn import Continuation, Turn
from services.refs import ErrorCode, JsonObject, Role


class Reply(NamedTuple):
    """Reply of a caller."""

    kind: ResumedKind
    text: str = ""
    role: Role | None = None
    """Current role of the caller; None if unchanged."""


class Asked(NamedTuple):
    """A question as presented to a caller."""

    question: Question
    text: str
    """All messages that a chat would get, including those before the question."""
    parameter: JsonObject
    """Schema of the parameter that the answer fills; empty for other kinds of question."""
    fingerprint: str
    """`FunctionSpec.fingerprint` when it was asked."""


class Person(Protocol):
    """A caller who can be asked."""

    async def answer(self, asked: Asked) -> Reply:
        """The caller's reply. Has no timeout, but may be cancelled."""


def question_for_caller(result: FunctionResult, turn: Turn, filled: frozenset[str]) -> Asked | None:
    """The question of `result` if the caller may answer it, else None. `filled`: parameters that were already
    requested."""
    question, parameter = result.question, {}
    spec = None if question is None else turn.input.functions.find(question.function)
    if question is None or spec is None:
        return None
    if isinstance(question, ApprovalQuestion) and (question.terms.role is not None or question.terms.by_other):
        # Other members approve in the chat, where everybody sees who approved.
        return None
    if isinstance(question, ArgumentQuestion):
        name, execution = question.field, spec.execution
        if name in filled or name in execution.sensitive or not execution.ask.get(name):
            # A model can add a missing argument itself, unless the function declares a question to people.
            return None
        parameter = spec.parameters["properties"].get(name, {})
    texts = turn.input.profile().texts
    lines = [one.text for one in asking_messages(result, texts) if one.to is None and one.text.strip()]
    return Asked(question, "\n".join(lines), parameter, spec.fingerprint)


def read_reply(question: Question, text: str, texts: Phrases) -> Answer:
    """The answer in `text`. Cancellation words are plain text, because callers have other means to cancel; "always" is
    rejected."""
    answer = read_answer(question, text, texts)
    if answer.kind is Answered.CANCELLED and not (isinstance(question, InputQuestion) and question.only_choices):
        return Answer(Answered.FILLED, text.strip())
    return Answer(Answered.UNRELATED) if answer.kind is Answered.ALWAYS else answer


class Answering:
    """Continues from a question in the turn that asked it."""

    def __init__(self, invoker: Runs) -> None:
        self._invoker = invoker

    async def resume(
        self, context: MessageContext, turn: Turn, asked: Asked, reply: Reply, path: Path
    ) -> FunctionResult:
        """Result of the call that `asked` interrupted on `path`, or of its refusal."""
        question, texts = asked.question, turn.input.profile().texts
        waiting = WaitingRun(self._invoker, context, turn, Continuation(path.value, asked.fingerprint, {}))
        spec = waiting.find(question)
        if spec is None:
            return FunctionResult.fail(ErrorCode.REFUSED, waiting.changed(question))
        if isinstance(question, InputQuestion):
            value = read_reply(question, reply.text, texts).value if reply.kind == "answered" else ""
            return await _resume_run(
                waiting, question, spec, replace(question.saved_run, answer=value, kind=reply.kind)
            )
        if isinstance(question, ApprovalQuestion):
            return await _decide(waiting, question, spec, reply)
        if reply.kind != "answered":
            return _unanswered(reply.kind, texts)
        answer = read_reply(question, reply.text, texts)
        if answer.kind is Answered.NO:
            return _unanswered("cancelled", texts)
        if not isinstance(question, ArgumentQuestion):
            is_yes = answer.kind is Answered.YES
            return await waiting.call(question, spec, question.arguments, confirmed=is_yes)
        turn.memory.answered = question.field
        result = await waiting.call(question, spec, with_value(question, spec, answer.value))
        turn.memory.answered = ""
        return result

    async def end(self, context: MessageContext, turn: Turn, question: Question, path: Path) -> FunctionResult:
        """End a run whose question gets no answer. Returns the result for the caller."""
        spec = turn.input.functions.find(question.function)
        on = Continuation(path.value, spec.fingerprint if spec is not None else "", {})
        notes = await WaitingRun(self._invoker, context, turn, on).end(question, "expired")
        return _ended(_unanswered("expired", turn.input.profile().texts), notes)


async def _resume_run(
    waiting: WaitingRun, question: InputQuestion | ApprovalQuestion, spec: FunctionSpec, resumed: Resumed
) -> FunctionResult:
    """Result of the run that asked `question` and now continues or ends."""
    result, key = await waiting.resume(question, spec, resumed)
    if resumed.kind == "answered":
        return result
    if resumed.kind == "expired":
        return _ended(_unanswered("expired", waiting.texts), unknown_end(result))
    if result.error is not None:
        return replace(result, question=None)
    cancelled = _unanswered("cancelled", waiting.texts)
    if key in waiting.turn.memory.ending:
        return cancelled
    own_words = "\n".join(one.text for one in result.messages if one.to is None and one.text.strip())
    if own_words:
        cancelled = FunctionResult.fail(ErrorCode.CANCELLED, own_words)
    return replace(cancelled, messages=tuple(one for one in result.messages if one.to is not None))


async def _decide(waiting: WaitingRun, question: ApprovalQuestion, spec: FunctionSpec, reply: Reply) -> FunctionResult:
    """Result of a call after the caller's decision on its approval."""
    context, turn, texts = waiting.context, waiting.turn, waiting.texts
    answer = read_reply(question, reply.text, texts) if reply.kind == "answered" else Answer(Answered.NO)
    if answer.kind is Answered.YES:
        turn.memory.approved = Approved(question.terms.digest, context.sender, always=False)
        if question.interrupted is not None:
            return await _resume_run(waiting, question, spec, question.interrupted)
        result = await waiting.call(question, spec, question.arguments, confirmed=True)
        turn.memory.approved = None
        return result
    kind: ResumedKind = "expired" if reply.kind == "expired" else "cancelled"
    ended = await waiting.end(question, kind)
    if kind == "expired":
        return _ended(_unanswered(kind, texts), ended)
    text = rejection(context, context, spec.name, answer.value, texts)
    return _ended(FunctionResult.fail(ErrorCode.REFUSED, text), ended)


def _ended(result: FunctionResult, notes: Sequence[Message]) -> FunctionResult:
    """Result of a run that ended: `result`, or an unknown outcome with the texts of `notes` if there are any."""
    if not notes:
        return result
    return FunctionResult.fail(ErrorCode.UNKNOWN_OUTCOME, "\n".join(message.text for message in notes))


def _unanswered(kind: ResumedKind, texts: Phrases) -> FunctionResult:
    """Result of a call whose question was not answered."""
    if kind == "expired":
        return FunctionResult.fail(ErrorCode.TIMEOUT, texts.say("questions.unanswered"))
    return FunctionResult.fail(ErrorCode.CANCELLED, texts.say("questions.dropped"))
