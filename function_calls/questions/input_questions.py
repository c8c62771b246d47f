"""Input questions: a handler asks the member during its run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import orjson
import structlog

from config.texts import Phrases
from function_calls.call import Path
from function_calls.failures import LASTS, REFUSED_BY
from function_calls.outcome import TurnOutcome, asking_messages, sent
from function_calls.questions.open_questions import Answer, Answered, bare_word, read_yes_or_no
from function_calls.questions.waiting_runs import WaitingTurn
from function_calls.result import plain
from function_calls.schema.commands import spoken_name
from function_calls.spec import Choice, FunctionResult, FunctionSpec, InputQuestion, Resumed, ResumedKind
from function_calls.turn import Run
from services.refs import ErrorCode, JsonObject, ReasonCode

MOST_QUESTIONS = 50
"""Maximum number of answered questions per run, as a guard against broken handlers."""
MOST_STATE_BYTES = 512_000
_UNANSWERED = frozenset({Path.TIMER, Path.API, Path.MCP, Path.CLI})
_log = structlog.get_logger("questions")


def input_question(
    run: Run,
    result: FunctionResult,
    question: InputQuestion,
    resumed: Resumed | None,
    allowed: str,
    texts: Phrases,
) -> FunctionResult:
    """`result` of `run` with the facts that its question needs to be resumed; a failure if it may not ask again.
    `resumed`: saved state from which the run continued. `allowed`: digest of the approval that it consumed."""
    spec = run.spec
    if resumed is not None and resumed.kind != "answered":
        _log.warning("asked_after_the_end", function=spec.name, kind=resumed.kind)
        return replace(result, question=None)
    before = resumed.number if resumed is not None else 0
    too_much = "too_many_questions" if before >= MOST_QUESTIONS else ""
    if not too_much and is_too_much(question.resume):
        too_much = "too_much_state"
    if too_much:
        _log.error(too_much, function=spec.name, source=spec.origin.source, questions=before)
        text = texts.say("questions.cannot_go_on", name=spoken_name(spec, texts.language))
        return replace(FunctionResult.fail(ErrorCode.FAILED, text), messages=result.messages)
    asked = replace(
        question,
        function=spec.name,
        arguments=plain(spec.arguments.dump(run.arguments)),
        number=before + 1,
        key=run.key,
        allowed=allowed,
        said=tuple(message.text for message in asking_messages(result, texts) if message.to is None),
    )
    return replace(result, question=asked)


def is_too_much(state: JsonObject) -> bool:
    """Whether the state that a handler saves with its question exceeds the limit."""
    return len(orjson.dumps(state, default=str)) > MOST_STATE_BYTES


def has_asked(result: FunctionResult, path: Path, depth: int, *, can_ask: bool) -> InputQuestion | None:
    """The question of a run that began on `path`, if nobody can answer it there; else None."""
    question = result.question
    if not isinstance(question, InputQuestion) or depth or path not in _UNANSWERED or can_ask:
        return None
    return question


def nobody_answers(
    question: InputQuestion, spec: FunctionSpec, result: FunctionResult, texts: Phrases
) -> FunctionResult:
    """Failure of a run that asked where nobody can answer."""
    words = [message.text for message in result.messages] if not question.text.strip() else [question.text]
    name = spoken_name(spec, texts.language)
    failed = FunctionResult.fail(
        ErrorCode.REFUSED, texts.say("questions.nobody_answers", name=name, question=" ".join(words).strip())
    )
    return replace(failed, metadata={REFUSED_BY: "questions", LASTS: True})


def read_input(question: InputQuestion, text: str, texts: Phrases, *, has_files: bool = False) -> Answer:
    """FILLED with the answer, CANCELLED or UNRELATED. A choice is always an answer, even if it is a word that would
    cancel. `has_files`: the message has files."""
    answer = text.strip()
    if not answer:
        return Answer(Answered.FILLED if question.takes_files and has_files else Answered.UNRELATED)
    for choice in question.choices:
        if answer.casefold() in (choice.value.casefold(), choice.label.casefold()):
            return Answer(Answered.FILLED, choice.value)
    if bare_word(answer) in texts.words("answers.cancel"):
        return Answer(Answered.CANCELLED)
    return _among(question.choices, answer, texts) if question.only_choices else Answer(Answered.FILLED, answer)


def _among(choices: Sequence[Choice], answer: str, texts: Phrases) -> Answer:
    """The matching choice, also for other words for yes or no. A no is passed on with its reason."""
    for choice in choices:
        if bare_word(answer) in (bare_word(choice.value), bare_word(choice.label)):
            return Answer(Answered.FILLED, choice.value)
    decided = read_yes_or_no(answer, texts)
    if decided.kind is not Answered.UNRELATED:
        for choice in choices:
            if read_yes_or_no(choice.value, texts).kind is decided.kind:
                return Answer(Answered.FILLED, answer if decided.value else choice.value)
    return Answer(Answered.UNRELATED)


async def resume(waiting: WaitingTurn, question: InputQuestion, spec: FunctionSpec, text: str) -> TurnOutcome:
    """Continue the run with the answer, or cancel it."""
    answer = read_input(question, text, waiting.texts, has_files=bool(waiting.context.attachments))
    # A message edited into an empty text is no answer either.
    kind: ResumedKind = "answered" if answer.kind is Answered.FILLED else "cancelled"
    resumed = replace(question.saved_run, answer=answer.value, kind=kind)
    return await waiting.resume_run(question, spec, resumed)


async def expire(waiting: WaitingTurn, question: InputQuestion) -> TurnOutcome:
    """Resume the run without an answer. Nothing is sent to the chat, unless an effect's outcome is unknown."""
    spec = waiting.find(question)
    if spec is None:
        return sent(ReasonCode.EXPIRED, [], question.function)
    who = waiting.context.sender
    context = replace(waiting.context, sender=replace(who, role=await waiting.turn.role_now(who)))
    resumed = replace(question.saved_run, kind="expired")
    return await replace(waiting, context=context).resume_run(question, spec, resumed)
