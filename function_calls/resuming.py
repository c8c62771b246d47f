"""Resuming: a turn goes on from a question with its answer, exactly where it was held up."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import structlog

from config.texts import Phrases
from function_calls.answers import Answered
from function_calls.approval_terms import ApprovalTerms, Approved
from function_calls.approvals import not_in_time, rejection, too_late, who_may
from function_calls.call import Resumed, ResumedKind
from function_calls.commands import value_of
from function_calls.context import Kind, MessageContext
from function_calls.failures import refused_result
from function_calls.invocation import Invoker
from function_calls.llm import FunctionCallLLM
from function_calls.open_question import Continuation, OpenQuestion
from function_calls.outcome import TurnOutcome, sent
from function_calls.permissions import switched_on
from function_calls.questions import fingerprint, read_answer
from function_calls.run_ends import Ended, end, end_key, only_ends, unknown_end, with_unknown
from function_calls.single_runs import outcome_of
from function_calls.spec import FunctionResult, FunctionSpec, Message, Question, Touch
from function_calls.turn import Turn
from function_calls.turn_log import Path
from function_calls.usage import plain_name, spoken_name
from services.json_values import JsonObject
from services.refs import ErrorCode, ReasonCode

_EXPIRY = Kind.EXPIRY
_log = structlog.get_logger("questions")


class Resuming:
    """Knows where the answer to a question leads."""

    def __init__(self, invoker: Invoker, llm: FunctionCallLLM) -> None:
        self._invoker = invoker
        self._llm = llm

    async def go_on(self, context: MessageContext, turn: Turn, open_question: OpenQuestion, text: str) -> TurnOutcome:
        """Go on from a question with its answer."""
        turn.resumed = True
        asked_at = open_question.continuation.asked_at
        turn.asked_at = context.sent_at if asked_at is None else datetime.fromtimestamp(asked_at, UTC)
        if context.kind is _EXPIRY:
            return await self._unanswered(context, turn, open_question)
        if open_question.question.terms is not None:
            return await self._decided(context, turn, open_question, open_question.question.terms, text)
        question, on = open_question.question, open_question.continuation
        texts = turn.profile().texts
        spec = turn.functions.find(question.function)
        if spec is None or fingerprint(spec) != on.fingerprint:
            note_changed(question, context, spec)
            name = plain_name(question.function) if spec is None else spoken_name(spec, texts.language)
            return sent(ReasonCode.ANSWERED_QUESTION, [Message(texts.say("questions.changed", name=name))])
        if question.resume is not None:
            resumed = _answered(question, text, texts, has_files=bool(context.attachments))
            return await self._resume_run(context, turn, question, on, spec, resumed)
        answer = read_answer(question, text, texts)
        if answer.kind in (Answered.CANCELLED, Answered.NO) and on.calls:
            turn.state.update(on.state)
            refused = FunctionResult.fail(ErrorCode.REFUSED, texts.say("questions.dropped"))
            turn.taint |= _taint(on)
            return await self._llm.resume(context, turn, on, refused, spec.name)
        if answer.kind in (Answered.CANCELLED, Answered.NO, Answered.UNRELATED):
            return sent(ReasonCode.ANSWERED_QUESTION, [Message(texts.say("questions.dropped"))], spec.name)
        raw = dict(question.arguments)
        if question.field:
            raw[question.field] = value_of(spec.parameters["properties"][question.field], answer.value)
            turn.answered = question.field
        is_yes = answer.kind is Answered.YES
        return await self._go_on(context, turn, on, spec, raw, confirmed=is_yes, nested=question.nested)

    async def end(self, context: MessageContext, turn: Turn, open_question: OpenQuestion) -> list[Message]:
        """Let the run that waits for the answer come to its end, since it may not go on; what the chat has to hear of
        that. Without effect for a question of no run, and for one that somebody may still decide."""
        question, on = open_question.question, open_question.continuation
        is_open = question.terms is not None and context.kind is not _EXPIRY
        spec = turn.functions.find(question.function)
        if not question.is_of_a_run or is_open:
            return []
        if spec is None or fingerprint(spec) != on.fingerprint:
            note_changed(question, context, spec)
            return []
        return await self._end(context, turn, question, on, "expired")

    async def _end(
        self, context: MessageContext, turn: Turn, question: Question, on: Continuation, kind: ResumedKind
    ) -> list[Message]:
        turn.state.update(on.state)
        return await end(self._invoker, context, turn, Ended.of(question, Path(on.path), kind))

    async def _unanswered(self, context: MessageContext, turn: Turn, open_question: OpenQuestion) -> TurnOutcome:
        """Tell the run that nobody answered; the chat hears of it where a person's yes was waited for."""
        question, on = open_question.question, open_question.continuation
        if question.terms is not None:
            others_wait = turn.approval.others_wait()
            told = Message(
                not_in_time(question.terms, question.function, turn.profile().texts, others_wait=others_wait)
            )
            return sent(ReasonCode.EXPIRED, [told, *await self.end(context, turn, open_question)], question.function)
        spec = turn.functions.find(question.function)
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
            result = replace(result, messages=()) if key in turn.ending else result
            result = self._cancelled(turn, result, by_model=by_model)
        if by_model:
            return await self._llm.resume(context, turn, on, result, spec.name, question.arguments, question.said)
        return outcome_of(turn, spec, result, ReasonCode.ANSWERED_QUESTION, tuple(on.asked))

    def _cancelled(self, turn: Turn, result: FunctionResult, *, by_model: bool) -> FunctionResult:
        """How a run ends that the member cancelled. A model is told that it was, and the chat what the run says."""
        result = replace(result, question=None)
        dropped = turn.profile().texts.say("questions.dropped")
        if result.error is not None:
            return result
        if not by_model:
            return result if result.messages else replace(result, messages=(Message(dropped),))
        turn.said += result.messages
        text = "\n".join(message.text for message in result.messages if message.to is None)
        return FunctionResult.fail(ErrorCode.CANCELLED, text or dropped)

    async def _decided(
        self, context: MessageContext, turn: Turn, open_question: OpenQuestion, terms: ApprovalTerms, text: str
    ) -> TurnOutcome:
        """Go on from what a member said to a run that waits for a person's yes. It is the asker's run, with the asker's
        rights as they are now."""
        question, on, texts = open_question.question, open_question.continuation, turn.profile().texts
        answer = read_answer(question, text, texts)
        allows = answer.kind in (Answered.YES, Answered.ALWAYS)
        member, role = context.sender.ref, await turn.role_now(context.sender)
        may = terms.may_allow(member, role) if allows else terms.may_refuse(member, role)
        # What began before a crash is seen to its end, or nobody would hear of it.
        if not may and not await turn.approval.claimed():
            return sent(ReasonCode.REFUSED, [Message(who_may(terms, texts))], question.function, ErrorCode.REFUSED)
        if not await turn.approval.claim(allows):
            late = too_late(await turn.approval.became(), question.function, texts)
            return sent(ReasonCode.ANSWERED_QUESTION, [Message(late)], question.function)
        sender = terms.asker.sender
        asker = replace(terms.asker, sender=replace(sender, role=await turn.role_now(sender)))
        turn.asker = asker
        spec = turn.functions.find(question.function)
        if spec is None or fingerprint(spec) != on.fingerprint:
            note_changed(question, context, spec)
            return sent(ReasonCode.ANSWERED_QUESTION, [Message(texts.say("questions.changed", name=question.function))])
        if allows:
            turn.approved = Approved(terms.digest, context.sender, answer.kind is Answered.ALWAYS)
            if question.goes_on is not None:
                return await self._resume_run(asker, turn, question, on, spec, question.goes_on)
            return await self._go_on(asker, turn, on, spec, question.arguments, confirmed=True, nested=question.nested)
        said = rejection(context, asker, spec.name, answer.value, texts, others_wait=turn.approval.others_wait())
        ended = [] if question.goes_on is None else await self._end(asker, turn, question, on, "cancelled")
        if not on.transcript:
            return sent(ReasonCode.ANSWERED_QUESTION, [Message(said), *ended], spec.name)
        turn.state.update(on.state)
        turn.taint |= _taint(on)
        turn.said.append(Message(said))
        turn.said += ended
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
        turn.answered = ""
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
    turn.resume(key, resumed)
    if question.allowed:
        turn.approved = Approved(question.allowed, context.sender, always=False, is_noted=True)
    result = await run_held_up(invoker, context, turn, on, spec, question.arguments, nested=question.nested, key=key)
    turn.approved = None
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
    turn.state.update(on.state)
    turn.taint |= _taint(on)
    path = Path(on.path)
    profile = turn.profile()
    refused = switched_on(profile) if nested and path is Path.MODEL else None
    if refused is not None and not only_ends(key, turn):
        if key:
            resumed = replace(turn.resuming[key], answer="", kind="expired")
            ended = Ended(spec.name, raw, Path.NESTED, resumed, end_key(key))
            told = await end(invoker, context, turn, ended)
            return with_unknown(refused_result(refused, spec, profile), told)
        return refused_result(refused, spec, profile)
    way = Path.NESTED if nested else path
    result = await invoker.invoke(
        context, spec.name, raw, turn, way, confirmed=confirmed, uncertain=on.uncertain, key=key
    )
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
        where = spec.source if spec is not None else ""
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
