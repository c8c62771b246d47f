"""Resuming: a turn goes on from a question with its answer, exactly where it was held up."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from function_calls.answers import Answered
from function_calls.approval_terms import ApprovalTerms, Approved
from function_calls.approvals import rejection, who_may
from function_calls.call import Resumed, ResumedKind
from function_calls.commands import value_of
from function_calls.context import Kind, MessageContext
from function_calls.failures import refused_result
from function_calls.invocation import Invoker
from function_calls.llm import FunctionCallLLM
from function_calls.permissions import switched_on
from function_calls.questions import fingerprint, read_answer
from function_calls.single_runs import outcome_of
from function_calls.spec import FunctionResult, FunctionSpec, Message, Question, Touch
from function_calls.turn import Continuation, OpenQuestion, Path, Turn, TurnOutcome, sent
from function_calls.usage import plain_name, spoken_name
from services.json_values import JsonObject
from services.refs import ErrorCode, ReasonCode

_EXPIRY = Kind.EXPIRY


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
        if open_question.question.terms is not None:
            return await self._decided(context, turn, open_question, open_question.question.terms, text)
        question, on = open_question.question, open_question.continuation
        texts = turn.profile().texts
        spec = turn.functions.find(question.function)
        if spec is None or fingerprint(spec) != on.fingerprint:
            if context.kind is _EXPIRY:
                return sent(ReasonCode.EXPIRED, [], question.function)
            name = plain_name(question.function) if spec is None else spoken_name(spec, texts.language)
            return sent(ReasonCode.ANSWERED_QUESTION, [Message(texts.say("questions.changed", name=name))])
        if question.resume is not None:
            return await self._resume_run(context, turn, question, on, spec, text)
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

    async def _resume_run(
        self, context: MessageContext, turn: Turn, question: Question, on: Continuation, spec: FunctionSpec, text: str
    ) -> TurnOutcome:
        """Give a run that asked something what the member said to it, or that nobody did."""
        kind, answer = _answered(context, question, text, turn)
        if kind == "expired":
            who = context.sender
            context = replace(context, sender=replace(who, role=await turn.role_now(who)))
        key = turn.next_key()
        turn.resuming[key] = Resumed(question.resume or {}, answer, kind, question.number)
        if question.allowed:
            turn.approved = Approved(question.allowed, context.sender, always=False, is_noted=True)
        result = await self._run_held_up(context, turn, on, spec, question.arguments, nested=question.nested, key=key)
        turn.approved = None
        result = _with_what_was_said(result, question)
        if kind == "expired":
            return _unheard(spec, result)
        by_model = Path(on.path) is Path.MODEL and bool(on.transcript)
        if kind == "cancelled":
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
        if not may and not await turn.claimed():
            return sent(ReasonCode.REFUSED, [Message(who_may(terms, texts))], question.function, ErrorCode.REFUSED)
        if not await turn.claim():
            return sent(ReasonCode.ANSWERED_QUESTION, [Message(texts.say("approvals.closed"))], question.function)
        sender = terms.asker.sender
        asker = replace(terms.asker, sender=replace(sender, role=await turn.role_now(sender)))
        turn.asker = asker
        spec = turn.functions.find(question.function)
        if spec is None or fingerprint(spec) != on.fingerprint:
            return sent(ReasonCode.ANSWERED_QUESTION, [Message(texts.say("questions.changed", name=question.function))])
        if allows:
            turn.approved = Approved(terms.digest, context.sender, answer.kind is Answered.ALWAYS)
            return await self._go_on(asker, turn, on, spec, question.arguments, confirmed=True, nested=question.nested)
        said = rejection(context, asker, spec.name, answer.value, texts)
        if Path(on.path) is not Path.MODEL or not on.transcript:
            return sent(ReasonCode.ANSWERED_QUESTION, [Message(said)], spec.name)
        turn.state.update(on.state)
        turn.taint |= _taint(on)
        turn.said.append(Message(said))
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
        result = await self._run_held_up(context, turn, on, spec, raw, confirmed=confirmed, nested=nested)
        turn.answered, path = "", Path(on.path)
        if path is Path.MODEL and on.transcript and (on.calls or not _is_usage(result)):
            return await self._llm.resume(context, turn, on, result, spec.name, raw)
        asked_on = path if path is Path.TIMER else Path.COMMAND
        return outcome_of(turn, spec, result, ReasonCode.ANSWERED_QUESTION, tuple(on.asked), asked_on)

    async def _run_held_up(
        self,
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
        refused = switched_on(profile, path) if nested else None
        if refused is not None:
            return refused_result(refused, spec, profile)
        way = Path.NESTED if nested else path
        result = await self._invoker.invoke(
            context, spec.name, raw, turn, way, confirmed=confirmed, uncertain=on.uncertain, key=key
        )
        return result.from_nested() if nested else result


def _answered(context: MessageContext, question: Question, text: str, turn: Turn) -> tuple[ResumedKind, str]:
    """How a handler's question was answered, and with what."""
    if context.kind is _EXPIRY:
        return "expired", ""
    answer = read_answer(question, text, turn.profile().texts)
    # One that was edited into nothing while it waited is no answer either.
    return ("answered", answer.value) if answer.kind is Answered.FILLED else ("cancelled", "")


def _with_what_was_said(result: FunctionResult, before: Question) -> FunctionResult:
    """`result` of a run that had asked `before`; a further question of it knows what was said since it began."""
    asked = result.question
    if asked is None or asked.kind != "input" or asked.function != before.function:
        return result
    return replace(result, question=replace(asked, said=before.said + asked.said))


def _unheard(spec: FunctionSpec, result: FunctionResult) -> TurnOutcome:
    """The end of a run that nobody answered: the chat hears nothing but that nobody knows what became of an effect."""
    if result.error is not None and result.error.code is ErrorCode.UNKNOWN_OUTCOME:
        return sent(ReasonCode.UNKNOWN_OUTCOME, result.for_chat(), spec.name, result.error.code)
    return sent(ReasonCode.EXPIRED, [], spec.name)


def _taint(on: Continuation) -> frozenset[Touch]:
    return frozenset(map(Touch, on.taint))


def _is_usage(result: FunctionResult) -> bool:
    return result.error is not None and result.error.code is ErrorCode.BAD_ARGUMENTS
