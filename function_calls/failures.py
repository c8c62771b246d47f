"""The results that stand for a run that failed or never was: what a person is told, and what the logs keep."""

from __future__ import annotations

import traceback
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import structlog

from config.texts import Phrases
from function_calls.permissions import Refusal
from function_calls.profile import ChatProfile
from function_calls.questions import argument_question
from function_calls.spec import ArgumentFault, FunctionResult, FunctionSpec, ToolError
from function_calls.usage import fault_text, plain_name, spoken_name
from services.refs import Effect, ErrorCode

REFUSED_BY = "refused_by"
"""In the metadata of a refusal: the setting, role or rule that decided."""
LASTS = "lasts"
"""In the metadata of a refusal that stays the same until somebody does something about it. One of a filter or a budget
does not say so: it may be gone in a minute."""
_log = structlog.get_logger("invocation")


def own_words(error: ToolError, texts: Phrases) -> str:
    """What a handler says of its failure: `@key` names a sentence, `@somebody` is a person."""
    return texts.resolve(error.text) if texts.has(error.text.removeprefix("@")) else error.text


def broken(spec: FunctionSpec, turn_id: str, error: Exception, texts: Phrases, *, began: bool) -> FunctionResult:
    """A failure that the handler did not mean: once it began, nobody knows what a `once` has done before that."""
    short_id = uuid.uuid4().hex[:8]
    _log.error("function_failed", function=spec.name, id=short_id, turn=turn_id, exc_info=error)
    failed = FunctionResult.fail(
        ErrorCode.FAILED, texts.say("failures.function", name=spoken_name(spec, texts.language), id=short_id)
    )
    if began and spec.effect is Effect.ONCE:
        failed = unknown(spec, texts)
    return replace(failed, metadata=_failure(short_id, error))


def _failure(short_id: str, error: Exception) -> dict[str, str]:
    """For the call log; never for a chat."""
    return {
        "failure_id": short_id,
        "exception": f"{type(error).__name__}: {error}",
        "traceback": "".join(traceback.format_exception(error, limit=-8)),
    }


def unknown(function: FunctionSpec | str, texts: Phrases) -> FunctionResult:
    """Nobody can tell what the effect of `function` has done; a name stands for one that is not there any more."""
    name = plain_name(function) if isinstance(function, str) else spoken_name(function, texts.language)
    return FunctionResult.fail(ErrorCode.UNKNOWN_OUTCOME, texts.say("failures.unknown_outcome", name=name))


def refused_result(refused: Refusal, spec: FunctionSpec, profile: ChatProfile) -> FunctionResult:
    """Why the function may not be called; the setting or role that decided goes into the call log."""
    name = spoken_name(spec, profile.texts.language)
    result = FunctionResult.fail(refused.code, profile.texts.say(refused.key, name=name, detail=refused.detail))
    metadata: dict[str, str | bool] = {REFUSED_BY: refused.setting or refused.detail or refused.key}
    return replace(result, metadata=metadata if refused.may_pass else {**metadata, LASTS: True})


def faulty(spec: FunctionSpec, fault: ArgumentFault, raw: Mapping[str, Any], profile: ChatProfile) -> FunctionResult:
    """Only something missing: the question for it. Something wrong: what, what is allowed, and the usage line."""
    texts: Phrases = profile.texts
    fields = (*fault.problems, *fault.missing)
    if fault.problems:
        return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, fault_text(spec, fault, texts), fields)
    return replace(
        FunctionResult.fail(ErrorCode.MISSING_ARGUMENTS, fault_text(spec, fault, texts), fields),
        question=argument_question(spec, dict(raw), fault.missing[0], texts),
    )
