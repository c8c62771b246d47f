"""Answering: whoever called a function waits on the line and is asked there. The answer leads back into the same turn,
by the rules that hold in a chat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from config.texts import Phrases
from function_calls.answers import Answer, Answered
from function_calls.approval_terms import Approved
from function_calls.approvals import rejection
from function_calls.call import Resumed, ResumedKind
from function_calls.commands import value_of
from function_calls.context import MessageContext
from function_calls.invocation import Invoker
from function_calls.open_question import Continuation
from function_calls.questions import asking_messages, fingerprint, read_answer
from function_calls.resuming import note_changed, resumed_run, run_held_up
from function_calls.run_ends import Ended, end, unknown_end
from function_calls.spec import FunctionResult, FunctionSpec, Message, Question
from function_calls.turn import Turn
from function_calls.turn_log import Path
from function_calls.usage import plain_name, spoken_name
from services.json_values import JsonObject
from services.refs import ErrorCode, Role


class Reply(NamedTuple):
    """What came of asking."""

    kind: ResumedKind
    text: str = ""
    role: Role | None = None
    """Of the caller at that moment; None where it is what it was."""


class Asked(NamedTuple):
    """What the caller is asked."""

    question: Question
    text: str
    """All that a chat would be told, with what the run had to say first."""
    parameter: JsonObject
    """The schema of the parameter that the answer fills; empty where it fills none."""
    fingerprint: str
    """Of the function as it is asked for: one that has changed since is not run on the answer."""


class Person(Protocol):
    """Who called, and can be asked."""

    async def answer(self, asked: Asked) -> Reply:
        """What they say. May wait for ever, and may be cancelled."""


def to_ask(result: FunctionResult, turn: Turn, filled: frozenset[str]) -> Asked | None:
    """What `result` asks that whoever called may answer; None where it asks nothing of the kind. `filled`: the
    parameters that were asked for already."""
    question = result.question
    spec = None if question is None else turn.functions.find(question.function)
    if question is None or spec is None:
        return None
    terms = question.terms
    if terms is not None and (terms.role is not None or terms.by_other):
        # Another person's yes, or that of a role: it is given in the chat, where all see who gives it.
        return None
    if question.field and (
        question.field in filled or question.field in spec.sensitive or not spec.ask.get(question.field)
    ):
        # What a model left out it can put right itself, unless the function says what a person is to be asked.
        return None
    texts = turn.profile().texts
    said = [one.text for one in asking_messages(result, texts) if one.to is None and one.text.strip()]
    parameter = spec.parameters["properties"].get(question.field, {}) if question.field else {}
    return Asked(question, "\n".join(said), parameter, fingerprint(spec))


def understood(question: Question, text: str, texts: Phrases) -> Answer:
    """What `text` means for `question`. Who wants it to end has another way to say so than by a word, so no word is
    taken for that; and nothing is allowed for always."""
    answer = read_answer(question, text, texts)
    if answer.kind is Answered.CANCELLED and not question.only_choices:
        return Answer(Answered.FILLED, text.strip())
    return Answer(Answered.UNRELATED) if answer.kind is Answered.ALWAYS else answer


class Answering:
    """Goes on from a question in the turn that asked it."""

    def __init__(self, invoker: Invoker) -> None:
        self._invoker = invoker

    async def go_on(
        self, context: MessageContext, turn: Turn, asked: Asked, reply: Reply, path: Path
    ) -> FunctionResult:
        """The result of the run that was held up with `asked`, on the way `path`; or why it is not made."""
        question, texts = asked.question, turn.profile().texts
        spec = turn.functions.find(question.function)
        if spec is None or fingerprint(spec) != asked.fingerprint:
            note_changed(question, context, spec)
            name = plain_name(question.function) if spec is None else spoken_name(spec, texts.language)
            return FunctionResult.fail(ErrorCode.REFUSED, texts.say("questions.changed", name=name))
        on = Continuation(path.value, asked.fingerprint, {})
        if question.resume is not None:
            said = understood(question, reply.text, texts).value if reply.kind == "answered" else ""
            resumed = Resumed(question.resume, said, reply.kind, question.number)
            return await self._resume(context, turn, question, on, spec, resumed)
        if question.terms is not None:
            return await self._decided(context, turn, question, on, spec, reply)
        if reply.kind != "answered":
            return _left(reply.kind, texts)
        answer = understood(question, reply.text, texts)
        if answer.kind is Answered.NO:
            return _left("cancelled", texts)
        raw = dict(question.arguments)
        if question.field:
            raw[question.field] = value_of(asked.parameter, answer.value)
            turn.answered = question.field
        is_yes = answer.kind is Answered.YES
        result = await run_held_up(
            self._invoker, context, turn, on, spec, raw, confirmed=is_yes, nested=question.nested
        )
        turn.answered = ""
        return result

    async def end(self, context: MessageContext, turn: Turn, question: Question, path: Path) -> FunctionResult:
        """Let the run come to its end that waits for an answer to `question` and gets none; an answer in its place."""
        left = _left("expired", turn.profile().texts)
        spec = turn.functions.find(question.function)
        if spec is None or not question.is_of_a_run:
            return left
        return _ended(left, await end(self._invoker, context, turn, Ended.of(question, path, "expired")))

    async def _resume(
        self,
        context: MessageContext,
        turn: Turn,
        question: Question,
        on: Continuation,
        spec: FunctionSpec,
        resumed: Resumed,
    ) -> FunctionResult:
        result, key = await resumed_run(self._invoker, context, turn, question, on, spec, resumed)
        texts = turn.profile().texts
        if resumed.kind == "answered":
            return result
        if resumed.kind == "expired":
            return _ended(_left("expired", texts), unknown_end(result))
        if result.error is not None:
            return replace(result, question=None)
        if key in turn.ending:
            return _left("cancelled", texts)
        own_words = "\n".join(one.text for one in result.messages if one.to is None and one.text.strip())
        left = FunctionResult.fail(ErrorCode.CANCELLED, own_words) if own_words else _left("cancelled", texts)
        return replace(left, messages=tuple(one for one in result.messages if one.to is not None))

    async def _decided(
        self,
        context: MessageContext,
        turn: Turn,
        question: Question,
        on: Continuation,
        spec: FunctionSpec,
        reply: Reply,
    ) -> FunctionResult:
        """Go on from the caller's word to a run of theirs that waits for it."""
        terms, texts = question.terms, turn.profile().texts
        assert terms is not None
        answer = understood(question, reply.text, texts) if reply.kind == "answered" else Answer(Answered.NO)
        if answer.kind is Answered.YES:
            turn.approved = Approved(terms.digest, context.sender, always=False)
            if question.goes_on is not None:
                return await self._resume(context, turn, question, on, spec, question.goes_on)
            result = await run_held_up(
                self._invoker, context, turn, on, spec, question.arguments, confirmed=True, nested=question.nested
            )
            turn.approved = None
            return result
        ended: list[Message] = []
        kind: ResumedKind = "expired" if reply.kind == "expired" else "cancelled"
        if question.goes_on is not None:
            ended = await end(self._invoker, context, turn, Ended.of(question, Path(on.path), kind))
        if kind == "expired":
            return _ended(_left(kind, texts), ended)
        said = rejection(context, context, spec.name, answer.value, texts)
        return _ended(FunctionResult.fail(ErrorCode.REFUSED, said), ended)


def _ended(left: FunctionResult, told: Sequence[Message]) -> FunctionResult:
    """`left` of a run that came to its end, or `told` where nobody knows what became of an effect of it."""
    if not told:
        return left
    return FunctionResult.fail(ErrorCode.UNKNOWN_OUTCOME, "\n".join(message.text for message in told))


def _left(kind: ResumedKind, texts: Phrases) -> FunctionResult:
    """What is told of a run that was not made, since its question was not answered."""
    if kind == "expired":
        return FunctionResult.fail(ErrorCode.TIMEOUT, texts.say("questions.unanswered"))
    return FunctionResult.fail(ErrorCode.CANCELLED, texts.say("questions.dropped"))
