"""Resumption of a turn from a stored question with its answer, also for callers that wait on the line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

import structlog

from config.texts import Phrases
from function_calls.call import CallRequest, Path
from function_calls.checks.approvals import not_in_time, rejection, too_late, who_may
from function_calls.checks.permissions import switched_on
from function_calls.context import Kind, MessageContext
from function_calls.failures import refused_result
from function_calls.handler_questions import Ended, end, end_key, only_ends, unknown_end, with_unknown
from function_calls.invocation import Invoker
from function_calls.llm import FunctionCallLLM
from function_calls.outcome import TurnOutcome, sent
from function_calls.questions.questions import (
    Answer,
    Answered,
    Continuation,
    OpenQuestion,
    asking_messages,
    fingerprint,
    read_answer,
)
from function_calls.rounds.progress import outcome_of
from function_calls.schema.commands import plain_name, spoken_name, value_of
from function_calls.spec import (
    ApprovalTerms,
    Approved,
    FunctionResult,
    FunctionSpec,
    Message,
    Question,
    Resumed,
    ResumedKind,
    Touch,
)
from function_calls.turn import Turn
from services.refs import ErrorCode, JsonObject, ReasonCode, Role

_log = structlog.get_logger("questions")


class Resuming:
    """Knows where the answer to a question leads."""

    def __init__(self, invoker: Invoker, llm: FunctionCallLLM) -> None:
        self._invoker = invoker
        self._llm = llm

    async def go_on(self, context: MessageContext, turn: Turn, open_question: OpenQuestion, text: str) -> TurnOutcome:
        """Go on from a question with its answer."""
        turn.memory.resumed = True
        asked_at = open_question.continuation.asked_at
        turn.memory.asked_at = context.sent_at if asked_at is None else datetime.fromtimestamp(asked_at, UTC)
        if context.kind is Kind.EXPIRY:
            return await self._unanswered(context, turn, open_question)
        if open_question.question.terms is not None:
            return await self._decided(context, turn, open_question, open_question.question.terms, text)
        question, on = open_question.question, open_question.continuation
        texts = turn.input.profile().texts
        spec = turn.input.functions.find(question.function)
        if spec is None or fingerprint(spec) != on.fingerprint:
            note_changed(question, context, spec)
            name = plain_name(question.function) if spec is None else spoken_name(spec, texts.language)
            return sent(ReasonCode.ANSWERED_QUESTION, [Message(texts.say("questions.changed", name=name))])
        if question.resume is not None:
            resumed = _answered(question, text, texts, has_files=bool(context.attachments))
            return await self._resume_run(context, turn, question, on, spec, resumed)
        answer = read_answer(question, text, texts)
        if answer.kind in (Answered.CANCELLED, Answered.NO) and on.calls:
            turn.memory.state.update(on.state)
            refused = FunctionResult.fail(ErrorCode.REFUSED, texts.say("questions.dropped"))
            turn.memory.taint |= _taint(on)
            return await self._llm.resume(context, turn, on, refused, spec.name)
        if answer.kind in (Answered.CANCELLED, Answered.NO, Answered.UNRELATED):
            return sent(ReasonCode.ANSWERED_QUESTION, [Message(texts.say("questions.dropped"))], spec.name)
        raw = dict(question.arguments)
        if question.field:
            raw[question.field] = value_of(spec.parameters["properties"][question.field], answer.value)
            turn.memory.answered = question.field
        is_yes = answer.kind is Answered.YES
        return await self._go_on(context, turn, on, spec, raw, confirmed=is_yes, nested=question.nested)

    async def end(self, context: MessageContext, turn: Turn, open_question: OpenQuestion) -> list[Message]:
        """Let the run that waits for the answer come to its end, since it may not go on; what the chat has to hear of
        that. Without effect for a question of no run, and for one that somebody may still decide."""
        question, on = open_question.question, open_question.continuation
        is_open = question.terms is not None and context.kind is not Kind.EXPIRY
        spec = turn.input.functions.find(question.function)
        if not question.is_of_a_run or is_open:
            return []
        if spec is None or fingerprint(spec) != on.fingerprint:
            note_changed(question, context, spec)
            return []
        return await self._end(context, turn, question, on, "expired")

    async def _end(
        self, context: MessageContext, turn: Turn, question: Question, on: Continuation, kind: ResumedKind
    ) -> list[Message]:
        turn.memory.state.update(on.state)
        return await end(self._invoker, context, turn, Ended.of(question, Path(on.path), kind))

    async def _unanswered(self, context: MessageContext, turn: Turn, open_question: OpenQuestion) -> TurnOutcome:
        """Tell the run that nobody answered; the chat hears of it where a person's yes was waited for."""
        question, on = open_question.question, open_question.continuation
        if question.terms is not None:
            others_wait = turn.input.approval.others_wait()
            told = Message(
                not_in_time(question.terms, question.function, turn.input.profile().texts, others_wait=others_wait)
            )
            return sent(ReasonCode.EXPIRED, [told, *await self.end(context, turn, open_question)], question.function)
        spec = turn.input.functions.find(question.function)
        if spec is None or fingerprint(spec) != on.fingerprint:
            note_changed(question, context, spec)
            return sent(ReasonCode.EXPIRED, [], question.function)
        who = context.sender
        context = replace(context, sender=replace(who, role=await turn.role_now(who)))
        resumed = Resumed(question.resume or {}, "", "expired", question.number)
        return await self._resume_run(context, turn, question, on, spec, resumed)

    async def _resume_run(
        self,
        context: MessageContext,
        turn: Turn,
        question: Question,
        on: Continuation,
        spec: FunctionSpec,
        resumed: Resumed,
    ) -> TurnOutcome:
        """Give a run that asked something what the member said to it, or that nobody did."""
        result, key = await resumed_run(self._invoker, context, turn, question, on, spec, resumed)
        if resumed.kind == "expired":
            return _unheard(spec, result)
        by_model = bool(on.transcript)
        if resumed.kind == "cancelled":
            result = replace(result, messages=()) if key in turn.memory.ending else result
            result = self._cancelled(turn, result, by_model=by_model)
        if by_model:
            return await self._llm.resume(context, turn, on, result, spec.name, question.arguments, question.said)
        return outcome_of(turn, spec, result, ReasonCode.ANSWERED_QUESTION, tuple(on.asked))

    def _cancelled(self, turn: Turn, result: FunctionResult, *, by_model: bool) -> FunctionResult:
        """How a run ends that the member cancelled. A model is told that it was, and the chat what the run says."""
        result = replace(result, question=None)
        dropped = turn.input.profile().texts.say("questions.dropped")
        if result.error is not None:
            return result
        if not by_model:
            return result if result.messages else replace(result, messages=(Message(dropped),))
        turn.output.said += result.messages
        text = "\n".join(message.text for message in result.messages if message.to is None)
        return FunctionResult.fail(ErrorCode.CANCELLED, text or dropped)

    async def _decided(
        self, context: MessageContext, turn: Turn, open_question: OpenQuestion, terms: ApprovalTerms, text: str
    ) -> TurnOutcome:
        """Go on from what a member said to a run that waits for a person's yes. It is the asker's run, with the asker's
        rights as they are now."""
        question, on, texts = open_question.question, open_question.continuation, turn.input.profile().texts
        answer = read_answer(question, text, texts)
        allows = answer.kind in (Answered.YES, Answered.ALWAYS)
        member, role = context.sender.ref, await turn.role_now(context.sender)
        may = terms.may_allow(member, role) if allows else terms.may_refuse(member, role)
        # What began before a crash is seen to its end, or nobody would hear of it.
        if not may and not await turn.input.approval.claimed():
            return sent(ReasonCode.REFUSED, [Message(who_may(terms, texts))], question.function, ErrorCode.REFUSED)
        if not await turn.input.approval.claim(allows):
            late = too_late(await turn.input.approval.became(), question.function, texts)
            return sent(ReasonCode.ANSWERED_QUESTION, [Message(late)], question.function)
        sender = terms.asker.sender
        asker = replace(terms.asker, sender=replace(sender, role=await turn.role_now(sender)))
        turn.memory.asker = asker
        spec = turn.input.functions.find(question.function)
        if spec is None or fingerprint(spec) != on.fingerprint:
            note_changed(question, context, spec)
            return sent(ReasonCode.ANSWERED_QUESTION, [Message(texts.say("questions.changed", name=question.function))])
        if allows:
            turn.memory.approved = Approved(terms.digest, context.sender, answer.kind is Answered.ALWAYS)
            if question.goes_on is not None:
                return await self._resume_run(asker, turn, question, on, spec, question.goes_on)
            return await self._go_on(asker, turn, on, spec, question.arguments, confirmed=True, nested=question.nested)
        said = rejection(context, asker, spec.name, answer.value, texts, others_wait=turn.input.approval.others_wait())
        ended = [] if question.goes_on is None else await self._end(asker, turn, question, on, "cancelled")
        if not on.transcript:
            return sent(ReasonCode.ANSWERED_QUESTION, [Message(said), *ended], spec.name)
        turn.memory.state.update(on.state)
        turn.memory.taint |= _taint(on)
        turn.output.said.append(Message(said))
        turn.output.said += ended
        return await self._llm.resume(asker, turn, on, FunctionResult.fail(ErrorCode.REFUSED, said), spec.name)

    async def _go_on(
        self,
        context: MessageContext,
        turn: Turn,
        on: Continuation,
        spec: FunctionSpec,
        raw: JsonObject,
        *,
        confirmed: bool,
        nested: bool,
    ) -> TurnOutcome:
        """Run what a question held up, by the way on which it was held up, and what was to follow it."""
        result = await run_held_up(self._invoker, context, turn, on, spec, raw, confirmed=confirmed, nested=nested)
        turn.memory.answered = ""
        if on.transcript and (on.calls or not _is_usage(result)):
            return await self._llm.resume(context, turn, on, result, spec.name, raw)
        asked_on = Path.TIMER if Path(on.path) is Path.TIMER else Path.COMMAND
        return outcome_of(turn, spec, result, ReasonCode.ANSWERED_QUESTION, tuple(on.asked), asked_on)


async def resumed_run(
    invoker: Invoker,
    context: MessageContext,
    turn: Turn,
    question: Question,
    on: Continuation,
    spec: FunctionSpec,
    resumed: Resumed,
) -> tuple[FunctionResult, str]:
    """The result of the run that asked `question`, gone on from `resumed`, and the key of the run that went on."""
    key = turn.next_key()
    turn.memory.resume(key, resumed)
    if question.allowed:
        turn.memory.approved = Approved(question.allowed, context.sender, always=False, is_noted=True)
    result = await run_held_up(invoker, context, turn, on, spec, question.arguments, nested=question.nested, key=key)
    turn.memory.approved = None
    return _with_what_was_said(result, question), key


async def run_held_up(
    invoker: Invoker,
    context: MessageContext,
    turn: Turn,
    on: Continuation,
    spec: FunctionSpec,
    raw: JsonObject,
    *,
    nested: bool,
    confirmed: bool = False,
    key: str = "",
) -> FunctionResult:
    """The result of the run that a question held up, by the way on which it was held up."""
    turn.memory.state.update(on.state)
    turn.memory.taint |= _taint(on)
    path = Path(on.path)
    profile = turn.input.profile()
    refused = switched_on(profile) if nested and path is Path.MODEL else None
    if refused is not None and not only_ends(key, turn):
        if key:
            resumed = replace(turn.memory.resuming[key], answer="", kind="expired")
            ended = Ended(spec.name, raw, Path.NESTED, resumed, end_key(key))
            told = await end(invoker, context, turn, ended)
            return with_unknown(refused_result(refused, spec, profile), told)
        return refused_result(refused, spec, profile)
    way = Path.NESTED if nested else path
    request = CallRequest(context, spec.name, raw, turn, way, key=key, confirmed=confirmed, uncertain=on.uncertain)
    result = await invoker.invoke(request)
    return result.from_nested() if nested else result


def _answered(question: Question, text: str, texts: Phrases, *, has_files: bool) -> Resumed:
    """What a run goes on from whose question a message answers."""
    answer = read_answer(question, text, texts, has_files=has_files)
    # One that was edited into nothing while it waited is no answer either.
    kind: ResumedKind = "answered" if answer.kind is Answered.FILLED else "cancelled"
    return Resumed(question.resume or {}, answer.value, kind, question.number)


def note_changed(question: Question, context: MessageContext, spec: FunctionSpec | None) -> None:
    """Note that a run waits for an answer, and never hears of it: what the function is now knows nothing of what it
    was, so it can neither go on from what that left nor put it away. `spec`: the function now; None: it is gone."""
    if question.is_of_a_run:
        where = spec.origin.source if spec is not None else ""
        _log.warning("waiting_run_not_ended", function=question.function, chat=context.chat.key, source=where)


def _with_what_was_said(result: FunctionResult, before: Question) -> FunctionResult:
    """`result` of a run that had asked `before`; a further question of it knows what was said since it began."""
    asked = result.question
    if asked is None or asked.function != before.function:
        return result
    return replace(result, question=replace(asked, said=before.said + asked.said))


def _unheard(spec: FunctionSpec, result: FunctionResult) -> TurnOutcome:
    """The end of a run that nobody answered: the chat hears nothing but that nobody knows what became of an effect."""
    unknown = unknown_end(result)
    if unknown:
        return sent(ReasonCode.UNKNOWN_OUTCOME, unknown, spec.name, ErrorCode.UNKNOWN_OUTCOME)
    return sent(ReasonCode.EXPIRED, [], spec.name)


def _taint(on: Continuation) -> frozenset[Touch]:
    return frozenset(map(Touch, on.taint))


def _is_usage(result: FunctionResult) -> bool:
    return result.error is not None and result.error.code is ErrorCode.BAD_ARGUMENTS


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
    spec = None if question is None else turn.input.functions.find(question.function)
    if question is None or spec is None:
        return None
    terms = question.terms
    if terms is not None and (terms.role is not None or terms.by_other):
        # Another person's yes, or that of a role: it is given in the chat, where all see who gives it.
        return None
    if question.field and (
        question.field in filled
        or question.field in spec.execution.sensitive
        or not spec.execution.ask.get(question.field)
    ):
        # What a model left out it can put right itself, unless the function says what a person is to be asked.
        return None
    texts = turn.input.profile().texts
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
        question, texts = asked.question, turn.input.profile().texts
        spec = turn.input.functions.find(question.function)
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
            turn.memory.answered = question.field
        is_yes = answer.kind is Answered.YES
        result = await run_held_up(
            self._invoker, context, turn, on, spec, raw, confirmed=is_yes, nested=question.nested
        )
        turn.memory.answered = ""
        return result

    async def end(self, context: MessageContext, turn: Turn, question: Question, path: Path) -> FunctionResult:
        """Let the run come to its end that waits for an answer to `question` and gets none; an answer in its place."""
        left = _left("expired", turn.input.profile().texts)
        spec = turn.input.functions.find(question.function)
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
        texts = turn.input.profile().texts
        if resumed.kind == "answered":
            return result
        if resumed.kind == "expired":
            return _ended(_left("expired", texts), unknown_end(result))
        if result.error is not None:
            return replace(result, question=None)
        if key in turn.memory.ending:
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
        terms, texts = question.terms, turn.input.profile().texts
        assert terms is not None
        answer = understood(question, reply.text, texts) if reply.kind == "answered" else Answer(Answered.NO)
        if answer.kind is Answered.YES:
            turn.memory.approved = Approved(terms.digest, context.sender, always=False)
            if question.goes_on is not None:
                return await self._resume(context, turn, question, on, spec, question.goes_on)
            result = await run_held_up(
                self._invoker, context, turn, on, spec, question.arguments, confirmed=True, nested=question.nested
            )
            turn.memory.approved = None
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
