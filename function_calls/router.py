"""FunctionCallRouter: what is due runs; else an open question, then a direct command, then a model; what none of them
handles is chat."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from function_calls.answers import Answered
from function_calls.approval_terms import ApprovalTerms, Approved
from function_calls.approvals import rejection, who_may
from function_calls.commands import arguments_of, is_command_word, value_of
from function_calls.context import MessageContext, TimerCall
from function_calls.failures import refused_result
from function_calls.filters.turn import TurnFilter, turn_chain
from function_calls.invocation import Invoker
from function_calls.llm import FunctionCallLLM
from function_calls.permissions import switched_on
from function_calls.policies import OVER_BUDGET
from function_calls.ports import TimerEnds
from function_calls.progress import cause, shown
from function_calls.questions import fingerprint, question_message, read_answer
from function_calls.registry import BotFunctions, CommandLine
from function_calls.spec import ArgumentFault, FunctionResult, FunctionSpec, Message, Touch
from function_calls.turn import (
    Continuation,
    OpenQuestion,
    OutcomeKind,
    Path,
    Turn,
    TurnOutcome,
    sent,
)
from function_calls.usage import done_text, fault_text, plain_name, spoken_name
from services.json_values import JsonObject
from services.refs import ErrorCode, ReasonCode

_REASONS = {
    ErrorCode.BAD_ARGUMENTS: ReasonCode.USAGE,
    ErrorCode.MISSING_ARGUMENTS: ReasonCode.USAGE,
    ErrorCode.NOT_FOUND: ReasonCode.USAGE,
    ErrorCode.REFUSED: ReasonCode.REFUSED,
    ErrorCode.UNKNOWN_OUTCOME: ReasonCode.UNKNOWN_OUTCOME,
}


class FunctionCallRouter:
    """Decides how a message is answered."""

    def __init__(
        self,
        invoker: Invoker,
        llm: FunctionCallLLM,
        filters: Sequence[TurnFilter] = (),
        timer_ends: TimerEnds | None = None,
    ) -> None:
        """`filters` stand around every turn, the first one outermost. `timer_ends` is asked how runs by the clock end
        for the chat."""
        self._invoker = invoker
        self._llm = llm
        self._timer_ends = timer_ends
        self._filtered = turn_chain(self._routed, filters)

    def prepare(self, functions: BotFunctions) -> None:
        """Make ready what the first message would have to wait for."""
        self._llm.prepare(functions)

    def dispatch(self, context: MessageContext, turn: Turn) -> Awaitable[TurnOutcome]:
        """The outcome of the turn. Falsy when nothing handled the message and nothing was done: then
        `run_chat_fallback` answers it."""
        if turn.answering is not None and _is_beside(turn.answering, turn):
            return self._beside(context, turn)
        return self._filtered(context, turn)

    async def _beside(self, context: MessageContext, turn: Turn) -> TurnOutcome:
        """The outcome of what was taken for the answer to an approval, and was edited into other words while it waited:
        the question waits on, and the words stand for themselves."""
        turn.answering = None
        turn.addressed = context.calls_bot or turn.functions.command_line(context.text, bare=False) is not None
        return await self._filtered(context, turn) if turn.addressed else sent(ReasonCode.NOT_ADDRESSED, [])

    async def _routed(self, context: MessageContext, turn: Turn) -> TurnOutcome:
        turn.asked_at = context.sent_at
        if context.timer is not None:
            return await self._timer(context, turn, context.timer)
        if turn.answering is not None:
            return await self._resume(context, turn, turn.answering[0], turn.answering[1])
        line = turn.functions.command_line(context.text, bare=turn.addressed)
        if line is not None:
            outcome = await self._command(context, turn, line)
            if not _was_speech(line, outcome, turn):
                return outcome
        word = unknown_command(context.text)
        if word:
            return self._unknown_command(turn, word)
        if not turn.profile().functions_on:
            return TurnOutcome(OutcomeKind.FALLBACK, ReasonCode.FUNCTIONS_OFF)
        return await self._llm.answer(context, turn)

    async def run_chat_fallback(self, context: MessageContext, turn: Turn) -> TurnOutcome:
        """Answer in plain words, without functions."""
        return await self._llm.chat(context, turn)

    async def _command(self, context: MessageContext, turn: Turn, line: CommandLine) -> TurnOutcome:
        try:
            raw = arguments_of(line.plan, line.rest)
        except ArgumentFault as fault:
            # A bare word before words that make no sense to it is speech, and nothing is told of the function.
            refused = None if line.is_bare else self._invoker.refused(context, line.spec, turn, Path.COMMAND)
            if refused is not None:
                return self._ended(turn, line.spec, refused, ReasonCode.COMMAND, ())
            text = fault_text(line.spec, fault, turn.profile().texts)
            return sent(ReasonCode.USAGE, [Message(text)], line.spec.name, ErrorCode.BAD_ARGUMENTS)
        result = await self._invoker.invoke(context, line.spec.name, raw, turn, Path.COMMAND)
        if result.ok:
            self._llm.note_run(context, turn, line.spec)
        return self._ended(turn, line.spec, result, ReasonCode.COMMAND, ())

    async def _timer(self, context: MessageContext, turn: Turn, timer: TimerCall) -> TurnOutcome:
        """Run what is due, with the rights that its owner has now. No model is asked, and there is no chat."""
        texts = turn.profile().texts
        sender = context.sender
        role = max(sender.role, await turn.role_now(sender), key=lambda one: one.rank)
        context = replace(context, sender=replace(sender, role=role))
        result = await self._invoker.invoke(context, timer.function, timer.arguments, turn, Path.TIMER)
        title = timer.title or plain_name(timer.function)
        ended = await self._timer_ends.ended(context, result, turn) if self._timer_ends is not None else None
        if ended is not None:
            result = ended
        elif result.error is not None and OVER_BUDGET not in result.metadata:
            result = result.with_error_text(texts.say("timers.problem", title=title, problem=result.error.text))
        spec = turn.functions.find(timer.function)
        if spec is None:
            return sent(ReasonCode.REFUSED, result.for_chat(), timer.function)
        outcome = self._ended(turn, spec, result, ReasonCode.TIMER, (), Path.TIMER)
        if outcome.kind is OutcomeKind.FALLBACK:
            return sent(ReasonCode.TIMER, (), spec.name)
        return replace(outcome, messages=tuple(one for one in outcome.messages if one.text or one.attachments))

    def _ended(
        self,
        turn: Turn,
        spec: FunctionSpec,
        result: FunctionResult,
        reason: ReasonCode,
        asked: tuple[str, ...],
        path: Path = Path.COMMAND,
    ) -> TurnOutcome:
        """The outcome of a turn that is one run."""
        question = result.question
        if question is not None and question.field not in asked:
            on = Continuation(
                path.value,
                # A function may hand on the question of another one that it called.
                fingerprint(turn.functions.find(question.function) or spec),
                turn.state,
                asked=(*asked, *([question.field] if question.field else [])),
                taint=sorted(turn.taint),
                asked_at=turn.asked_at_seconds,
            )
            message = question_message(question)
            return TurnOutcome(
                OutcomeKind.SENT, ReasonCode.ASKED, (message,), OpenQuestion(question, on), detail=spec.name
            )
        if result.error is not None:
            reason = _REASONS.get(result.error.code, ReasonCode.FUNCTION_FAILED)
            limit = f"functions.{spec.name}.timeout_seconds" if result.error.code is ErrorCode.TIMEOUT else spec.name
            detail = cause(result) or limit
            if OVER_BUDGET in result.metadata:
                is_told = result.metadata[OVER_BUDGET] == "told" and turn.answering is None
                return sent(ReasonCode.OVER_BUDGET, () if is_told else result.for_chat(), detail, result.error.code)
            return sent(reason, result.for_chat(), detail, result.error.code)
        if not result.handled and not result.messages and not turn.effects:
            return TurnOutcome(OutcomeKind.FALLBACK, ReasonCode.CHAT, detail=spec.name)
        messages = shown(result)
        if not messages and turn.effects and turn.answering is not None:
            messages = (Message(done_text([spec], turn.profile().texts)),)
        return sent(reason, messages, spec.name)

    async def _resume(self, context: MessageContext, turn: Turn, open_question: OpenQuestion, text: str) -> TurnOutcome:
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
            name = plain_name(question.function) if spec is None else spoken_name(spec, texts.language)
            return sent(ReasonCode.ANSWERED_QUESTION, [Message(texts.say("questions.changed", name=name))])
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
        turn.state.update(on.state)
        turn.taint |= _taint(on)
        path = Path(on.path)
        profile = turn.profile()
        refused = switched_on(profile, path) if nested else None
        if refused is not None:
            result = refused_result(refused, spec, profile)
        else:
            way = Path.NESTED if nested else path
            result = await self._invoker.invoke(
                context, spec.name, raw, turn, way, confirmed=confirmed, uncertain=on.uncertain
            )
        turn.answered = ""
        if nested:
            result = result.from_nested()
        if path is Path.MODEL and on.transcript and (on.calls or not _is_usage(result)):
            return await self._llm.resume(context, turn, on, result, spec.name, raw)
        asked_on = path if path is Path.TIMER else Path.COMMAND
        return self._ended(turn, spec, result, ReasonCode.ANSWERED_QUESTION, tuple(on.asked), asked_on)

    def _unknown_command(self, turn: Turn, word: str) -> TurnOutcome:
        texts = turn.profile().texts
        near = difflib.get_close_matches(word.casefold(), turn.functions.command_words, n=3, cutoff=0.6)
        known = texts.say("commands.did_you_mean", commands=", ".join(f"/{one}" for one in near)) if near else ""
        text = texts.say("commands.unknown", word=word)
        return sent(ReasonCode.UNKNOWN_COMMAND, [Message(f"{text} {known}".strip())], word)


def unknown_command(text: str) -> str:
    """The word of `/word …`, for a text that looks like a command; empty for `//…`, `/ …`, paths and plain text."""
    if not text.startswith("/"):
        return ""
    word = text[1:].split(maxsplit=1)[0] if text[1:2].strip() else ""
    return word if word and "/" not in word and is_command_word(word) else ""


def _was_speech(line: CommandLine, outcome: TurnOutcome, turn: Turn) -> bool:
    """Whether a word without a slash turned out to begin a plain sentence: what followed it made no sense to the
    function, and nothing was done."""
    made_no_sense = outcome.error in (ErrorCode.BAD_ARGUMENTS, ErrorCode.NOT_FOUND)
    return line.is_bare and bool(line.rest.strip()) and made_no_sense and not turn.effects


def _is_beside(answering: tuple[OpenQuestion, str], turn: Turn) -> bool:
    """Whether it says nothing to the approval that it was taken for an answer to."""
    question, text = answering[0].question, answering[1]
    return question.terms is not None and read_answer(question, text, turn.profile().texts).kind is Answered.UNRELATED


def _taint(on: Continuation) -> frozenset[Touch]:
    return frozenset(map(Touch, on.taint))


def _is_usage(result: FunctionResult) -> bool:
    return result.error is not None and result.error.code is ErrorCode.BAD_ARGUMENTS
