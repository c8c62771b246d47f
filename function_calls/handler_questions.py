"""Questions that a handler asks in the midst of a run: what goes with them, and how a run ends that nobody answers."""

from __future__ import annotations

from dataclasses import replace

import orjson
import structlog

from config.texts import Phrases
from function_calls.call import Resumed
from function_calls.failures import LASTS, REFUSED_BY
from function_calls.questions import asking_messages
from function_calls.results import plain
from function_calls.spec import FunctionResult, FunctionSpec, Question
from function_calls.turn_log import Path, Run
from function_calls.usage import spoken_name
from services.json_values import JsonObject
from services.refs import ErrorCode

MOST_QUESTIONS = 50
"""Of one run, each of them answered: a handler that asks on and on is broken."""
MOST_STATE_BYTES = 512_000
_UNANSWERED = frozenset({Path.TIMER, Path.API, Path.MCP, Path.CLI})
_log = structlog.get_logger("questions")


def with_its_run(
    run: Run, result: FunctionResult, resumed: Resumed | None, allowed: str, texts: Phrases
) -> FunctionResult:
    """`result` of `run`, whose own question knows where its answer leads; a failure where it may ask no more.
    `resumed`: what the run went on from. `allowed`: the digest of the yes that it was given."""
    question = result.question
    if question is None or question.kind != "input" or question.nested:
        return result
    spec = run.spec
    if resumed is not None and resumed.kind != "answered":
        _log.warning("asked_after_the_end", function=spec.name, kind=resumed.kind)
        return replace(result, question=None)
    before = resumed.number if resumed is not None else 0
    state = question.resume or {}
    too_much = "too_many_questions" if before >= MOST_QUESTIONS else ""
    if not too_much and is_too_much(state):
        too_much = "too_much_state"
    if too_much:
        _log.error(too_much, function=spec.name, source=spec.source, questions=before)
        text = texts.say("questions.cannot_go_on", name=spoken_name(spec, texts.language))
        return replace(FunctionResult.fail(ErrorCode.FAILED, text), messages=result.messages)
    asked = replace(
        question,
        function=spec.name,
        arguments=plain(spec.arguments.dump(run.arguments)),
        resume=state,
        number=before + 1,
        key=run.key,
        allowed=allowed,
        said=tuple(message.text for message in asking_messages(result, texts) if message.to is None),
    )
    return replace(result, question=asked)


def is_too_much(state: JsonObject) -> bool:
    """Whether a run that waits for a person leaves more than is kept for it."""
    return len(orjson.dumps(state, default=str)) > MOST_STATE_BYTES


def has_asked(result: FunctionResult, path: Path, depth: int, *, can_ask: bool) -> Question | None:
    """What `result` of a run that began on `path` asks, where nobody is there to answer it; else None."""
    question = result.question
    if question is None or question.kind != "input" or depth or path not in _UNANSWERED or can_ask:
        return None
    return question


def nobody_answers(question: Question, spec: FunctionSpec, result: FunctionResult, texts: Phrases) -> FunctionResult:
    """The end of a run that asked where nobody can answer."""
    words = [message.text for message in result.messages] if not question.text.strip() else [question.text]
    name = spoken_name(spec, texts.language)
    failed = FunctionResult.fail(
        ErrorCode.REFUSED, texts.say("questions.nobody_answers", name=name, question=" ".join(words).strip())
    )
    return replace(failed, metadata={REFUSED_BY: "questions", LASTS: True})
