"""Results of runs that failed or were refused: the text for people and the details for the log."""

from __future__ import annotations

import traceback
import uuid
from dataclasses import replace
from typing import NamedTuple

import structlog

from config.texts import Phrases
from function_calls.profile import ChatProfile
from function_calls.schema.commands import plain_name, spoken_name
from function_calls.spec import FunctionResult, FunctionSpec, ToolError
from services.llm.model import MOST_CHARS, Unwritten
from services.refs import Effect, ErrorCode


class Refusal(NamedTuple):
    """Why not: the text's key, what it speaks of, and the key of the settings that decided or could change it."""

    key: str
    detail: str = ""
    setting: str = ""
    code: ErrorCode = ErrorCode.REFUSED
    may_pass: bool = False
    """The same may be allowed in a minute, though nobody changes anything."""


def switched_on(profile: ChatProfile) -> Refusal | None:
    """Refusal if a model may call no functions at all in the chat."""
    if profile.functions_on:
        return None
    return Refusal("refusals.functions_off", setting=profile.layers.get("functions_on", ""))


REFUSED_BY = "refused_by"
"""In the metadata of a refusal: the setting, role or rule that decided, or `@key name`: a sentence of the texts and the
function that it speaks of."""
OVER_BUDGET = "over_budget"
"""In the metadata of a budget's refusal: `news`, or `told` if the member was told of it today."""
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
    if began and spec.execution.effect is Effect.ONCE:
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


LASTS = "lasts"
"""In the metadata of a refusal that stays the same until somebody does something about it. One of a filter or a budget
does not say so: it may be gone in a minute."""


def refused_result(refused: Refusal, spec: FunctionSpec, profile: ChatProfile) -> FunctionResult:
    """Why the function may not be called; the setting or role that decided goes into the call log."""
    name = spoken_name(spec, profile.texts.language)
    result = FunctionResult.fail(refused.code, profile.texts.say(refused.key, name=name, detail=refused.detail))
    metadata: dict[str, str | bool] = {REFUSED_BY: refused.setting or refused.detail or refused.key}
    return replace(result, metadata=metadata if refused.may_pass else {**metadata, LASTS: True})
