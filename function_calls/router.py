"""FunctionCallRouter: routes a turn to a due scheduled call, an open question, a command or a model, in this order. An
unhandled message becomes chat."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import replace

from function_calls.call import CallRequest, Path
from function_calls.checks.permissions import callable_here
from function_calls.context import Kind, MessageContext, TimerCall
from function_calls.failures import OVER_BUDGET
from function_calls.filters.turn import TurnFilter, turn_chain
from function_calls.invocation import Invoker
from function_calls.llm import FunctionCallLLM
from function_calls.outcome import OutcomeKind, TurnOutcome, outcome_of, sent
from function_calls.ports import TimerEnds
from function_calls.questions.open_questions import Answered
from function_calls.questions.resume import Questions, read_answer
from function_calls.registry import BotFunctions, CommandLine
from function_calls.schema.commands import arguments_of, fault_text, is_command_word, is_free_text, plain_name
from function_calls.spec import (
    ApprovalQuestion,
    ArgumentError,
    ArgumentQuestion,
    Choice,
    FunctionSpec,
    Message,
    Touch,
)
from function_calls.turn import OpenQuestion, Turn
from services.llm.offline.offline import sure_match
from services.refs import Effect, ErrorCode, JsonObject, ReasonCode

_USE = "use_tools"
_THINK = "think"
_MOST_SUGGESTED = 3
_SHOWN_CHARS = 60
_LONGEST_VALUE_WORDS = 2
"""Words in Latin letters that are taken for a value without a comparison."""
_MOST_COMPARED = 300
"""Number of functions above which an answer is not compared with their examples: the index would take too long."""


class FunctionCallRouter:
    """Routes messages to functions, questions and models."""

    def __init__(
        self,
        invoker: Invoker,
        llm: FunctionCallLLM,
        filters: Sequence[TurnFilter] = (),
        timer_ends: TimerEnds | None = None,
    ) -> None:
        """`filters` wrap every turn, the first one outermost. `timer_ends` adapts the results of scheduled runs for the
        chat."""
        self._invoker = invoker
        self._llm = llm
        self._timer_ends = timer_ends
        self._questions = Questions(invoker, llm)
        self._filtered = turn_chain(self._route, filters)

    def prepare(self, functions: BotFunctions) -> None:
        """Warm the caches that the first message would otherwise have to build."""
        self._llm.prepare(functions)

    def dispatch(self, context: MessageContext, turn: Turn) -> Awaitable[TurnOutcome]:
        """Outcome of the turn. Its kind is FALLBACK, and it is false, if nothing handled the message and nothing
        was done: `run_chat_fallback` then answers it."""
        if context.kind is Kind.EXPIRY:
            # There is no message for the filters to check.
            return self._route(context, turn)
        if turn.input.answering is not None:
            if _is_unrelated(turn.input.answering, turn):
                return self._unrelated(context, turn)
            if _may_be_new_request(context, turn.input.answering, turn):
                return self._answer_or_request(context, turn)
        return self._filtered(context, turn)

    async def _unrelated(self, context: MessageContext, turn: Turn) -> TurnOutcome:
        """Outcome of a message that matched an approval question when it arrived and was edited into something else
        while queued: the question stays open, and the message is handled as a new one."""
        addressed = context.calls_bot or turn.input.functions.command_line(context.text, bare=False) is not None
        turn.input = replace(turn.input, answering=None, addressed=addressed)
        return await self._filtered(context, turn) if turn.input.addressed else sent(ReasonCode.NOT_ADDRESSED, [])

    async def _answer_or_request(self, context: MessageContext, turn: Turn) -> TurnOutcome:
        """Outcome of a message that may fill a missing argument. If it is certainly a request for another function, the
        question stays open, and the message is handled as a new one."""
        assert turn.input.answering is not None
        (asked, text), functions = turn.input.answering, turn.input.functions
        # In a thread: the index of the examples takes up to a second to build, once per snapshot of functions.
        match = await asyncio.to_thread(sure_match, functions.offer(functions.specs), text)
        wanted = match.function.original if match is not None else asked.question.function
        usable = {spec.name for spec in callable_here(context, turn, Path.MODEL)}
        if wanted != asked.question.function and wanted in usable:
            turn.input = replace(turn.input, answering=None)
        return await self._filtered(context, turn)

    async def _route(self, context: MessageContext, turn: Turn) -> TurnOutcome:
        turn.memory.asked_at, turn.memory.words = context.sent_at, (context.text,)
        if context.timer is not None:
            return await self._timer(context, turn, context.timer)
        if turn.input.answering is not None:
            return _with_notices(await self._questions.resume(context, turn, *turn.input.answering), turn)
        if context.unasked:
            joins = context.unasked == "chance" or await self._llm.would_join_in(context, turn)
            return await self._llm.chat(context, turn) if joins else sent(ReasonCode.NOT_CHIMED_IN, [])
        if context.takes:
            ended = await self._activate(context, turn)
            if ended is not None:
                return ended
        return await self._command_or_model(context, turn)

    async def _command_or_model(self, context: MessageContext, turn: Turn) -> TurnOutcome:
        """Run the command of the message, or let the model answer it."""
        line = turn.input.functions.command_line(context.text, bare=turn.input.addressed)
        if line is not None and not (line.is_bare and line.spec.name == _THINK):
            outcome = await self._command(context, turn, line)
            if line.spec.name == _THINK and outcome.kind is OutcomeKind.FALLBACK:
                context = replace(context, text=line.rest)
            elif not _was_speech(line, outcome, turn):
                return outcome
        word = unknown_command(context.text)
        if word:
            return _unknown_command(context, turn, word)
        if not turn.input.profile().functions_on:
            return TurnOutcome(OutcomeKind.FALLBACK, ReasonCode.FUNCTIONS_OFF)
        return _with_notices(await self._llm.answer(context, turn), turn)

    async def _activate(self, context: MessageContext, turn: Turn) -> TurnOutcome | None:
        """Activate the names in the message with the `use_tools` function. Returns None if the message has further
        content to answer and the activation succeeded or was not needed."""
        spec = turn.input.functions.find(_USE)
        has_more = bool(context.text.strip() or context.attachments)
        if spec is None or (has_more and turn.input.profile().active.issuperset(context.takes)):
            return None
        before = turn.memory.effects
        names: JsonObject = {"names": " ".join(context.takes)}
        result = await self._invoker.invoke(CallRequest(context, _USE, names, turn, Path.COMMAND))
        if result.ok and has_more:
            # The activation must not prevent the chat fallback for the rest of the message.
            turn.memory.effects = before
            return None
        return outcome_of(turn, spec, result, ReasonCode.COMMAND, ())

    async def run_start_function(self, context: MessageContext, turn: Turn, spec: FunctionSpec) -> TurnOutcome:
        """Run the start function `spec` of a new chat and return its outcome. The message itself is answered
        afterwards, so this run does not prevent the chat fallback, and is not reported as a result of the message."""
        effects, nested = turn.memory.effects, dict(turn.memory.nested)
        result = await self._invoker.invoke(CallRequest(context, spec.name, {}, turn, Path.NESTED))
        turn.memory.effects, turn.memory.nested = effects, nested
        return outcome_of(turn, spec, result.from_nested(), ReasonCode.COMMAND, ())

    async def end_run(self, context: MessageContext, turn: Turn, asked: OpenQuestion) -> Sequence[Message]:
        """End the run that asked `asked` without an answer. Returns the messages that the chat must get."""
        return await self._questions.end(context, turn, asked)

    async def end_waiting(self, context: MessageContext, turn: Turn) -> None:
        """End the run that waits for this answer, silently, because the chat is no longer served."""
        if turn.input.answering is not None:
            await self._questions.end(context, turn, turn.input.answering[0])

    async def run_chat_fallback(self, context: MessageContext, turn: Turn) -> TurnOutcome:
        """Answer in text only, without functions."""
        return _with_notices(await self._llm.chat(context, turn), turn)

    async def _command(self, context: MessageContext, turn: Turn, line: CommandLine) -> TurnOutcome:
        try:
            raw = arguments_of(line.plan, line.rest)
        except ArgumentError as fault:
            # Invalid arguments after a bare word suggest speech, so a refusal of the function is not shown.
            refused = None if line.is_bare else self._invoker.refused(context, line.spec, turn, Path.COMMAND)
            if refused is not None:
                return outcome_of(turn, line.spec, refused, ReasonCode.COMMAND, ())
            text = fault_text(line.spec, fault, turn.input.profile().texts)
            return sent(ReasonCode.USAGE, [Message(text)], line.spec.name, ErrorCode.BAD_ARGUMENTS)
        result = await self._invoker.invoke(CallRequest(context, line.spec.name, raw, turn, Path.COMMAND))
        if result.ok:
            self._llm.note_run(context, turn, line.spec)
        return outcome_of(turn, line.spec, result, ReasonCode.COMMAND, ())

    async def _timer(self, context: MessageContext, turn: Turn, timer: TimerCall) -> TurnOutcome:
        """Run a due call with its owner's current rights. No model is asked, and there is no chat fallback."""
        texts = turn.input.profile().texts
        sender = context.sender
        role = max(sender.role, await turn.role_now(sender), key=lambda one: one.rank)
        context = replace(context, sender=replace(sender, role=role))
        request = CallRequest(context, timer.function, timer.arguments, turn, Path.TIMER)
        result = await self._invoker.invoke(request)
        title = timer.title or plain_name(timer.function)
        ended = await self._timer_ends.ended(context, result, turn) if self._timer_ends is not None else None
        if ended is not None:
            result = ended
        elif result.error is not None and OVER_BUDGET not in result.metadata:
            result = result.with_error_text(texts.say("timers.problem", title=title, problem=result.error.text))
        spec = turn.input.functions.find(timer.function)
        if spec is None:
            return sent(ReasonCode.REFUSED, result.for_chat(), timer.function)
        outcome = outcome_of(turn, spec, result, ReasonCode.TIMER, (), Path.TIMER)
        if outcome.kind is OutcomeKind.FALLBACK:
            return sent(ReasonCode.TIMER, (), spec.name)
        return replace(outcome, messages=tuple(one for one in outcome.messages if one.text or one.attachments))


def _unknown_command(context: MessageContext, turn: Turn, word: str) -> TurnOutcome:
    """Outcome with buttons of similar commands that the sender may run here; silent if the message is not addressed to
    the bot and there is no such command one edit away."""
    texts, functions = turn.input.profile().texts, turn.input.functions
    usable = [spec for spec in callable_here(context, turn, Path.COMMAND) if spec.is_set_up(context.bot)]
    may = {known for spec in usable for known in spec.command.words}
    near = [known for known in functions.one_edit_from(word) if known in may][:_MOST_SUGGESTED]
    if turn.input.addressed and not near:
        near = [known for known in functions.near_commands(word) if known in may]
    if not near:
        said = [Message(texts.say("commands.unknown", word=word))] if turn.input.addressed else []
        return sent(ReasonCode.UNKNOWN_COMMAND, said, word)
    rest = context.text[1 + len(word) :].rstrip()
    lines = [f"/{known}{rest}" for known in near]
    shown = lines if len(rest) <= _SHOWN_CHARS and "\n" not in rest else [f"/{known}" for known in near]
    text = texts.say("commands.did_you_mean", commands=", ".join(shown))
    if turn.input.addressed:
        text = f"{texts.say('commands.unknown', word=word)} {text}"
    choices = tuple(Choice(label, line) for label, line in zip(shown, lines, strict=True))
    return sent(ReasonCode.UNKNOWN_COMMAND, [Message(text, choices=choices)], word)


def unknown_command(text: str) -> str:
    """Command word of a text of the form `/word …`; empty for `//…`, `/ …`, paths and plain text."""
    if not text.startswith("/"):
        return ""
    word = text[1:].split(maxsplit=1)[0] if text[1:2].strip() else ""
    return word if word and "/" not in word and is_command_word(word) else ""


def _with_notices(outcome: TurnOutcome, turn: Turn) -> TurnOutcome:
    """`outcome` with the required notices that the model's reply left out, such as a used-up budget; unchanged if
    nothing was sent."""
    if not turn.output.notices or outcome.kind is not OutcomeKind.SENT:
        return outcome
    texts = [message.text for message in outcome.messages]
    required = dict.fromkeys(one.text for one in turn.output.notices if one.is_required)
    missing = [Message(text) for text in required if not any(text in one for one in texts)]
    return replace(outcome, messages=(*outcome.messages, *missing))


def _was_speech(line: CommandLine, outcome: TurnOutcome, turn: Turn) -> bool:
    """Whether a command word without a slash turned out to start a plain sentence: the function rejected the rest, and
    nothing was done."""
    if not line.is_bare or not line.rest.strip():
        return False
    return outcome.error in (ErrorCode.BAD_ARGUMENTS, ErrorCode.NOT_FOUND) and not turn.memory.effects


def _may_be_new_request(context: MessageContext, answering: tuple[OpenQuestion, str], turn: Turn) -> bool:
    """Whether an answer for a missing argument may be a request instead. False for a reply to the question, and where
    the value may be any sentence: a text of a function with effects, or of one that sends it out."""
    (asked, text), functions = answering, turn.input.functions
    question = asked.question
    if not isinstance(question, ArgumentQuestion) or context.reply_to is not None:
        return False
    if text.isascii() and len(text.split()) <= _LONGEST_VALUE_WORDS:
        return False
    spec = functions.find(question.function)
    if spec is None or Touch.SENDS_OUT in spec.execution.touches or len(functions.specs) > _MOST_COMPARED:
        return False
    schema = spec.parameters["properties"].get(question.field, {})
    return spec.execution.effect is Effect.READ or not is_free_text(schema)


def _is_unrelated(answering: tuple[OpenQuestion, str], turn: Turn) -> bool:
    """Whether a message that matched an approval question does not answer it."""
    question, text = answering[0].question, answering[1]
    return (
        isinstance(question, ApprovalQuestion)
        and read_answer(question, text, turn.input.profile().texts).kind is Answered.UNRELATED
    )
