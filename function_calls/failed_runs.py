"""The results that stand for a run that failed: what a person is told, and what the logs keep. Known to sources too,
whose handlers see runs fail themselves."""

from __future__ import annotations

import traceback
import uuid
from dataclasses import replace

import structlog

from config.texts import Phrases
from function_calls.spec import FunctionResult, FunctionSpec, ToolError
from function_calls.usage import plain_name, spoken_name
from function_calls.words import MOST_CHARS, Unwritten
from services.refs import Effect, ErrorCode

REFUSED_BY = "refused_by"
"""In the metadata of a refusal: the setting, role or rule that decided, or `@key name`: a sentence of the texts and the
function that it speaks of."""
FAILURE_ID = "failure_id"
"""In the metadata of a failure: the id under which the log has it."""
_log = structlog.get_logger("invocation")
_UNWRITTEN = {
    Unwritten.NO_MODEL: ErrorCode.ENVIRONMENT,
    Unwritten.DOWN: ErrorCode.TRANSIENT,
    Unwritten.OVER_BUDGET: ErrorCode.REFUSED,
    Unwritten.DECLINED: ErrorCode.CANCELLED,
    Unwritten.TOO_LONG: ErrorCode.BAD_ARGUMENTS,
}


def own_words(error: ToolError, texts: Phrases) -> str:
    """What a handler says of its failure: `@key` names a sentence, `@somebody` is a person."""
    return texts.resolve(error.text) if texts.has(error.text.removeprefix("@")) else error.text


def broken(spec: FunctionSpec, turn_id: str, error: BaseException, texts: Phrases, *, began: bool) -> FunctionResult:
    """A failure that the handler did not mean: once it began, nobody knows what a `once` has done before that."""
    short_id = uuid.uuid4().hex[:8]
    _log.error("function_failed", function=spec.name, id=short_id, turn=turn_id, exc_info=error)
    failed = FunctionResult.fail(
        ErrorCode.FAILED, texts.say("failures.function", name=spoken_name(spec, texts.language), id=short_id)
    )
    if began and spec.effect is Effect.ONCE:
        failed = unknown(spec, texts)
    return replace(failed, metadata=_failure(short_id, error))


def noted(result: FunctionResult, function: str, turn_id: str, **facts: object) -> FunctionResult:
    """`result`, a failure that the handler knows of, with the id under which the log has what operators need to know of
    it. `facts` may be long and hold secrets: the log hides these."""
    short_id = uuid.uuid4().hex[:8]
    _log.warning("function_did_not_work", function=function, id=short_id, turn=turn_id, **facts)
    return replace(result, metadata={**result.metadata, FAILURE_ID: short_id})


def _failure(short_id: str, error: BaseException) -> dict[str, str]:
    """For the call log; never for a chat."""
    return {
        FAILURE_ID: short_id,
        "exception": f"{type(error).__name__}: {error}",
        "traceback": "".join(traceback.format_exception(error, limit=-8)),
    }


def unknown(function: FunctionSpec | str, texts: Phrases, *, still_running: bool = False) -> FunctionResult:
    """Nobody can tell what the effect of `function` has done; a name stands for one that is not there any more.
    `still_running`: it cannot be stopped and may still complete."""
    name = plain_name(function) if isinstance(function, str) else spoken_name(function, texts.language)
    key = "failures.still_running" if still_running else "failures.unknown_outcome"
    return FunctionResult.fail(ErrorCode.UNKNOWN_OUTCOME, texts.say(key, name=name))


def not_written(why: Unwritten, texts: Phrases) -> FunctionResult:
    """What people are told where a model has no words for a function."""
    return FunctionResult.fail(_UNWRITTEN[why], texts.say(f"words.{why.value}", most=MOST_CHARS))
