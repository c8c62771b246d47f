"""FunctionCallLLM: the rounds of one turn between a model and the functions."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import structlog

from config.settings import RouterSettings
from function_calls.call import CallRequest, Path
from function_calls.checks.askers_words import own_text
from function_calls.checks.budgets import OverBudget, RequestBudgets
from function_calls.checks.permissions import taint_of
from function_calls.context import MessageContext
from function_calls.filters.round import Round, RoundFilter
from function_calls.invocation import Invoker
from function_calls.outcome import OutcomeKind, TurnOutcome, is_repeated, sent
from function_calls.questions.approval_questions import for_all
from function_calls.questions.argument_questions import INSUFFICIENT, models_question
from function_calls.questions.waiting_runs import end_unanswered
from function_calls.registry import BotFunctions
from function_calls.result import plain
from function_calls.rounds.claims import Claim, earlier_reports, false_claims, true_words
from function_calls.rounds.conversation import join_in_question, last_round_message, opened, paired
from function_calls.rounds.model_requests import ModelRequests, Outages, RecordAnswer, not_recorded
from function_calls.rounds.progress import Progress, Signature, signature_of
from function_calls.rounds.shortlist import ChatLists, Shortlist
from function_calls.spec import ApprovalQuestion, ArgumentQuestion, FunctionResult, FunctionSpec, InputQuestion, Message
from function_calls.turn import Continuation, Turn
from services.clock import Clock
from services.fault_points import FaultPoints
from services.llm.model import (
    ChatModel,
    ModelAnswer,
    ModelError,
    ModelMessage,
    ModelRequest,
    Offer,
    OfferedFunction,
    ToolCall,
    call_from_json,
    message_from_json,
)
from services.llm.reading.markup import names_in_calls
from services.llm.reading.tool_calls import plain_name
from services.refs import Effect, ErrorCode, ModelProblem, ReasonCode

_log = structlog.get_logger("llm")
_WORDS = re.compile(r"[\w-]+")
NO_FUNCTION = "none"
_REPAIRS = 1
_MOST_SOURCES = 3
_SPEAK_SCHEMA = {"type": "object", "properties": {"now": {"type": "boolean"}}, "required": ["now"]}
_SPEAK = Offer([OfferedFunction("speak", "speak", "Whether you say something now", _SPEAK_SCHEMA)])
_SPEAK_SECONDS = 10.0
_THINK_COMMANDS = ("/think…", "/想想…")

_FAULT_WORDS = {
    ErrorCode.INVALID_JSON: "the arguments are not valid JSON",
    ErrorCode.NOT_AN_OBJECT: "the arguments must be a JSON object",
    ErrorCode.TRUNCATED: "the arguments were cut off",
    ErrorCode.MALFORMED_BY_PROVIDER: "the call could not be read",
}


class FunctionCallLLM:
    """Model rounds of a turn: offers functions, parses the calls, runs them, and repeats until the model answers."""

    def __init__(
        self,
        model: ChatModel,
        invoker: Invoker,
        settings: RouterSettings,
        clock: Clock,
        *,
        filters: Sequence[RoundFilter] = (),
        tool_choice: str = "auto",
        record: RecordAnswer = not_recorded,
        faults: FaultPoints | None = None,
        outages: Outages | None = None,
        budgets: RequestBudgets | None = None,
        lists: ChatLists | None = None,
    ) -> None:
        """`filters` wrap every request to the model, the first one outermost. `tool_choice` applies to the first
        request of a turn, as in ModelRequest. Without `budgets` nothing is counted. `lists` holds the functions that
        chats were offered recently, to be reused. Without `outages` each failure is reported."""
        self._outages = outages
        self._ask = ModelRequests(
            model, clock, self._outages, filters=filters, record=record, faults=faults, budgets=budgets
        ).ask
        self._shortlist = Shortlist(settings, lists=lists)
        self._tool_choice = tool_choice
        self._invoker = invoker
        self._budgets = budgets
        self._settings = settings
        self._clock = clock

    async def select_function(self, progress: Progress, *, last: bool = False, offered: bool = True) -> ModelAnswer:
        """The model's answer to the conversation so far, with the callable functions on offer; the stored answer after
        a restart. Raises ModelError and OverBudget."""
        context, turn = progress.context, progress.turn
        stored = turn.input.log.stored_answer(progress.round_number)
        if stored is not None:
            return stored
        tool_choice = "none" if last else "auto" if progress.round_number else self._tool_choice
        sent, everything = self._shortlist.offer(context, turn, wanted=tool_choice) if offered else (None, None)
        messages = [*progress.messages, last_round_message()] if last and progress.round_number else progress.messages
        profile, thinks = turn.input.profile(), _asks_to_think(turn, self._settings.thinking.words)
        if thinks and not profile.thinking_models and self._budgets is not None and not progress.round_number:
            await self._budgets.notify_once_a_day(context, turn, "thinking.not_configured")
        request = ModelRequest(
            messages=paired(messages),
            offer=sent,
            everything=everything,
            tool_choice=tool_choice,
            timeout_seconds=max(1.0, turn.deadline - self._clock.monotonic()),
            language=profile.texts.language,
            models=profile.thinking_models if thinks and profile.thinking_models else profile.models,
            thinks=thinks,
        )
        round_ = Round(context, turn, progress.round_number, request)
        answer = _without_leaks(_with_own_names(await self._ask(round_), turn), turn)
        turn.input.log.answer(progress.round_number, answer, round_.writes)
        return answer

    def prepare(self, functions: BotFunctions) -> None:
        """Warm the caches that the first message would otherwise have to build."""
        self._shortlist.prepare(functions)

    def note_run(self, context: MessageContext, turn: Turn, spec: FunctionSpec) -> None:
        """Record that `spec` ran in the chat, since follow-up messages may refer to it without naming it."""
        self._shortlist.note_run(context, turn, spec)

    async def answer(self, context: MessageContext, turn: Turn) -> TurnOutcome:
        """Answer a new message."""
        messages = await opened(context, turn, self._settings)
        turn.memory.taint |= taint_of(context, turn.input.profile().notes)
        past = earlier_reports(context.text, messages)
        return await self._rounds(Progress(context, turn, self._settings, messages, earlier_reports=past))

    async def would_join_in(self, context: MessageContext, turn: Turn) -> bool:
        """Whether the model would answer a message that is not addressed to the bot. False if it does not say so, or
        cannot be asked."""
        answer = turn.input.log.stored_answer(0)
        if answer is None:
            messages = join_in_question(context, turn.input.profile(), await turn.input.history.lines())
            request = ModelRequest(messages, _SPEAK, tool_choice="speak", timeout_seconds=_SPEAK_SECONDS)
            round_ = Round(context, turn, 0, request)
            try:
                answer = await self._ask(round_)
            except (ModelError, OverBudget):
                return False
            turn.input.log.answer(0, answer, round_.writes)
        return any(call.name == "speak" and (call.arguments or {}).get("now") is True for call in answer.calls)

    async def chat(self, context: MessageContext, turn: Turn) -> TurnOutcome:
        """Answer in text only; no functions are offered."""
        messages = await opened(context, turn, self._settings)
        past = earlier_reports(context.text, messages)
        last = self._settings.max_rounds + 1
        progress = Progress(context, turn, self._settings, messages, last, earlier_reports=past)
        try:
            answer = await self.select_function(progress, last=True, offered=False)
        except ModelError as error:
            if context.unasked:
                # The message was not a request, so the chat gets no notice of the outage.
                return sent(ReasonCode.MODEL_FAILED, [])
            return await self._failed(progress, error)
        except OverBudget as over:
            return progress.over_budget(over.text, over.setting)
        if not answer.text:
            return progress.model_failed(ModelError(ErrorCode.EMPTY_RESPONSE, "calls, though none were offered"))
        return sent(ReasonCode.CHAT, [Message(_true(answer.text, progress), markdown=True)])

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
        """Continue the rounds that a question interrupted, with the `result` of the interrupted call. `arguments`:
        those of the call, if it was run. `said`: texts that it has already sent to the chat."""
        messages = [message_from_json(one) for one in on.transcript]
        progress = Progress(context, turn, self._settings, messages, on.rounds, asked=tuple(on.asked))
        progress.remember(on)
        spec = turn.input.functions.find(function)
        call = ToolCall(on.call_id, function, plain(arguments), uncertain=on.uncertain)
        rest = tuple(call_from_json(one) for one in on.calls)
        if result.question is not None and spec is not None:
            return progress.suspended(spec, call, rest, result, result.question, final=on.final)
        progress.answered(call, result)
        progress.note(call, spec, result, said)
        outcome = await self._run_calls(progress, rest, final=on.final, request_id="")
        if outcome is not None:
            return outcome
        if on.final or progress.all_direct():
            return progress.done("", direct=True)
        await turn.input.log.settle()
        progress.round_number += 1
        return await self._rounds(progress)

    async def _rounds(self, progress: Progress) -> TurnOutcome:
        while True:
            last = self._is_last(progress)
            try:
                answer = await self.select_function(progress, last=last)
            except (ModelError, OverBudget) as problem:
                return await self._unanswered(progress, problem)
            if not answer.calls:
                claims = [] if answer.has_provider_effects else _claims(answer.text, progress)
                if claims and not last and _may_be_doubted(progress):
                    progress.doubt(answer.text)
                    continue
                text = _true(answer.text, progress, claims)
                return progress.done(text, was_false=bool(claims))
            if last:
                return progress.gave_up(_true(answer.text, progress))
            progress.messages.append(_assistant_message(answer))
            progress.found.clear()
            progress.went_wrong = False
            outcome = await self._run_calls(progress, answer.calls, final=answer.final, request_id=answer.request_id)
            if outcome is not None:
                return outcome
            if answer.final or progress.all_direct():
                return progress.done("", direct=True)
            if progress.repairs > _REPAIRS:
                return progress.gave_up("")
            await progress.turn.input.log.settle()
            progress.round_number += 1

    def _is_last(self, progress: Progress) -> bool:
        """Whether the model must answer in text now: the rounds are used up, or it repeats identical calls."""
        used_up = progress.round_number >= self._settings.max_rounds - 1
        return used_up or progress.loops.stalled >= max(1, self._settings.identical_calls - 1)

    async def _unanswered(self, progress: Progress, problem: ModelError | OverBudget) -> TurnOutcome:
        """Outcome of a turn whose last model request failed."""
        turn = progress.turn
        if progress.doubted and not turn.memory.effects and not progress.found:
            return progress.done(_true(progress.doubted, progress))
        if isinstance(problem, OverBudget):
            return progress.over_budget(problem.text, problem.setting)
        if problem.problem is ModelProblem.REQUEST and progress.round_number == 0 and turn.input.functions.specs:
            return await self._without_what_is_refused(progress.context, turn, problem)
        return await self._failed(progress, problem)

    async def _without_what_is_refused(self, context: MessageContext, turn: Turn, error: ModelError) -> TurnOutcome:
        """Answer without functions after the provider rejected the request, most likely for a function's schema."""
        words = set(_WORDS.findall(str(error)))
        named = [spec.name for spec in turn.input.functions.specs if spec.name in words]
        _log.error("provider_refuses_functions", turn=turn.input.id, functions=named, error=str(error))
        return await self.chat(context, turn)

    async def _failed(self, progress: Progress, error: ModelError) -> TurnOutcome:
        if self._outages is None:
            return progress.model_failed(error)
        was_notified = await self._outages.was_notified(progress.context, error)
        outcome = progress.model_failed(error, was_notified=was_notified)
        if outcome.reason is ReasonCode.MODEL_FAILED:
            self._outages.notify(progress.context, progress.turn, error, outcome.messages[-1].text)
        return outcome

    async def _run_calls(
        self, progress: Progress, calls: Sequence[ToolCall], *, final: bool, request_id: str
    ) -> TurnOutcome | None:
        """Run the calls of an answer, in order unless `_run_reads` runs them. Returns an outcome if the turn ends
        here."""
        turn = progress.turn
        faults, turn.memory.place = 0, (1, 1)
        if len(calls) > self._settings.max_calls:
            progress.refuse_all(calls)
            calls = ()
            faults = 1
        ran = await self._run_reads(progress, calls, request_id)
        calls = [call for call, _, _ in ran] or calls
        for index, call in enumerate(calls):
            turn.memory.place = (index + 1, len(calls))
            if turn.input.functions.find(call.name) is None and call.name in (NO_FUNCTION, INSUFFICIENT.name):
                return self._without_function(progress, call, tuple(calls[index + 1 :]), final=final)
            _, spec, result = ran[index] if ran else (call, *await self._run_call(progress, call, request_id))
            question = result.question
            if question is not None and spec is not None:
                rest = tuple(calls[index + 1 :])
                if isinstance(question, ApprovalQuestion):
                    question = await self._for_all(progress, [(spec, question)], rest)
                    result = replace(result, question=question)
                if not is_repeated(question, progress.asked):
                    return progress.suspended(spec, call, rest, result, question, final=final)
                if not rest:
                    return sent(ReasonCode.USAGE, [*progress.said, *result.for_chat()], spec.name)
            faults += progress.note(call, spec, result)
        progress.repairs += bool(faults)
        progress.loops.end_round()
        return None

    async def _for_all(
        self, progress: Progress, asked: list[tuple[FunctionSpec, ApprovalQuestion]], rest: Sequence[ToolCall]
    ) -> ApprovalQuestion:
        """The question of the first call that needs an approval, extended by those calls of `rest` that need the same
        one."""
        first = asked[0][1]
        if first.interrupted is not None:
            return first
        for call in rest:
            spec = progress.turn.input.functions.find(call.name)
            if spec is None or call.arguments is None:
                continue
            question = await self._invoker.approval_needed(_request(progress, spec, call))
            if question is None or any(question.terms.digest == one.terms.digest for _, one in asked):
                continue
            if (question.terms.role, question.terms.by_other) == (first.terms.role, first.terms.by_other):
                asked.append((spec, question))
        return for_all(asked, progress.texts) if len(asked) > 1 else first

    async def _run_reads(
        self, progress: Progress, calls: Sequence[ToolCall], request_id: str
    ) -> list[tuple[ToolCall, FunctionSpec | None, FunctionResult]]:
        """Run the calls of an answer at the same time. Returns them with their results in order, those that ask a
        question last; empty if they must run in order."""
        turn = progress.turn
        if not _may_overlap(calls, turn):
            return []
        try:
            async with asyncio.TaskGroup() as group:
                # Tasks start in this order, and nothing awaits before the run key is assigned: keys are in call order.
                runs = [group.create_task(self._run_call(progress, call, request_id)) for call in calls]
        except BaseExceptionGroup as failed:
            # The turn handles single errors, such as a full disk.
            raise failed.exceptions[0] from None
        ran = [(call, *run.result()) for call, run in zip(calls, runs, strict=True)]
        for _, _, result in ran:
            turn.memory.state.update(result.context_updates)
        asked = [one for one in ran if one[2].question is not None]
        for _, _, result in asked[1:]:
            # One question is asked at a time. The call runs again after the first answer.
            question = result.question
            if isinstance(question, InputQuestion):
                await end_unanswered(self._invoker, progress.context, turn, question, Path.MODEL)
        return [one for one in ran if one[2].question is None] + asked

    async def _run_call(
        self, progress: Progress, call: ToolCall, request_id: str
    ) -> tuple[FunctionSpec | None, FunctionResult]:
        spec = progress.turn.input.functions.find(call.name)
        if spec is None and call.name:
            text = progress.texts.say("refusals.unknown_function", name=_printable(call.name))
            return None, FunctionResult.fail(ErrorCode.UNKNOWN_FUNCTION, text)
        if spec is None or call.arguments is None:
            fault = call.fault or ErrorCode.INVALID_JSON
            return spec, FunctionResult.fail(fault, _FAULT_WORDS.get(fault, "the call could not be read"))
        signature = signature_of(spec, call.arguments)
        before = progress.calls.repeated(signature, self._settings.identical_calls)
        if before is not None:
            return spec, before
        progress.calls.count += 1
        if progress.calls.count > self._settings.max_calls:
            return spec, FunctionResult.fail(ErrorCode.TOO_MANY_CALLS, progress.texts.say("failures.too_many_calls"))
        result = await self._invoker.invoke(_request(progress, spec, call, request_id))
        self.note_run(progress.context, progress.turn, spec)
        progress.calls.ended(spec, signature, result)
        return spec, result

    def _without_function(
        self, progress: Progress, call: ToolCall, rest: Sequence[ToolCall], *, final: bool
    ) -> TurnOutcome:
        """The model reports that no function fits, or which value is missing: the member is asked for it."""
        asked = ""
        if call.name == INSUFFICIENT.name:
            asked = models_question(call.arguments or {}, progress.turn.input.functions, progress.texts)
        if asked:
            text = _true(asked, progress)
            question = ArgumentQuestion(text, INSUFFICIENT.name, call.arguments or {}, field=INSUFFICIENT.name)
            result = FunctionResult(question=question)
            outcome = progress.suspended(INSUFFICIENT, call, rest, result, question, final=final)
            asks = replace(outcome.messages[-1], markdown=True)
            return replace(outcome, messages=(*outcome.messages[:-1], asks), error=None)
        if progress.turn.memory.effects or any(one.replaced_by != "" for one in progress.undone.values()):
            return progress.done("")
        return TurnOutcome(OutcomeKind.FALLBACK, ReasonCode.CHAT)


def _request(progress: Progress, spec: FunctionSpec, call: ToolCall, request_id: str = "") -> CallRequest:
    return CallRequest(
        progress.context,
        spec.name,
        call.arguments or {},
        progress.turn,
        Path.MODEL,
        uncertain=call.uncertain and spec.execution.effect is not Effect.READ,
        round_number=progress.round_number,
        request_id=request_id,
        by_model=True,
    )


def _may_overlap(calls: Sequence[ToolCall], turn: Turn) -> bool:
    """Whether the calls of an answer may run at the same time: different reads without `serial`, of which none may
    consume an approval."""
    if len(calls) < 2 or turn.memory.approved is not None:
        return False
    seen: set[Signature] = set()
    for call in calls:
        spec = turn.input.functions.find(call.name)
        if spec is None and call.name in (NO_FUNCTION, INSUFFICIENT):
            return False
        if spec is None or call.arguments is None:
            continue
        signature = signature_of(spec, call.arguments)
        if spec.execution.effect is not Effect.READ or spec.execution.serial or signature in seen:
            return False
        seen.add(signature)
    return True


def _may_be_doubted(progress: Progress) -> bool:
    """Whether to question the model's claims once; only if nothing has been done yet."""
    return not (progress.doubted or progress.acts or progress.undone or progress.turn.memory.effects)


def _true(text: str, progress: Progress, claims: Sequence[Claim] | None = None) -> str:
    """The model's text without false `claims`, by default those found in it, and with the documents that it should
    name."""
    claims = _claims(text, progress) if claims is None else claims
    true = true_words(text, progress.turn, claims, progress.acts, is_reported=bool(progress.undone))
    sources, folded = progress.turn.memory.sources, true.casefold()
    if not true or not sources or any(file.casefold() in folded for file in sources):
        return true
    named = "; ".join(list(sources.values())[:_MOST_SOURCES])
    return f"{true}\n{progress.texts.say('knowledge.looked_up', sources=named)}"


def _claims(text: str, progress: Progress) -> list[Claim]:
    reports = progress.earlier_reports
    return false_claims(text, progress.turn, progress.acts, has_read=progress.has_read, earlier_reports=reports)


def _with_own_names(answer: ModelAnswer, turn: Turn) -> ModelAnswer:
    """`answer` with the names as written of calls whose function is really called `functions.x` or alike."""
    if not any(call.written for call in answer.calls):
        return answer
    find = turn.input.functions.find
    calls = (replace(call, name=call.written) if find(call.written) else call for call in answer.calls)
    return replace(answer, calls=tuple(calls))


def _without_leaks(answer: ModelAnswer, turn: Turn) -> ModelAnswer:
    """`answer`. Raises ModelError if it has no calls, but a text that calls a function of the bot as JSON."""
    for name in () if answer.calls else names_in_calls(answer.text):
        if turn.input.functions.find(name) or turn.input.functions.find(plain_name(name)):
            text = "the text holds a call of a function"
            raise ModelError(ErrorCode.LEAKED_MARKUP, text, request_id=answer.request_id)
    return answer


def _asks_to_think(turn: Turn, words: Sequence[str]) -> bool:
    """Whether the asker's own words of this request contain one of `words`, or a command to think."""
    texts = [own_text(text).casefold() for text in turn.memory.words]
    for word in (*_THINK_COMMANDS, *(one.casefold() for one in words)):
        start, at_start, _ = word.partition("…")
        pattern = rf"\A{re.escape(start)}" if at_start else rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])"
        if any(re.search(pattern, text) for text in texts):
            return True
    return False


def _assistant_message(answer: ModelAnswer) -> ModelMessage:
    return ModelMessage("assistant", answer.text, answer.calls, "", answer.opaque, answer.by)


def _printable(name: str) -> str:
    return "".join(character for character in name if character.isprintable())[:64]
