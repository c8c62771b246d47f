"""Results of runs that failed or were refused: the text for people and the details for the log."""

from __future__ import annotations

import traceback
import uuid
from dataclasses import replace
from typing import NamedTuple

import structlog

from config.texts import Phrases
from function_calls.declaration import error_text
from function_calls.profile import ChatProfile
from function_calls.schema.commands import plain_name, role_name, spoken_name
from function_calls.spec import FunctionResult, FunctionSpec, ToolError
from services.llm.model import MOST_CHARS, NoTextReason
from services.refs import Effect, ErrorCode, Role
from services.web.http import WebError


class Refusal(NamedTuple):
    """Reason for a refusal: the text's key, its subject, and the settings key that decided or could change it."""

    key: str
    detail: str = ""
    setting: str = ""
    code: ErrorCode = ErrorCode.REFUSED
    may_pass: bool = False
    """Temporary: the same call may be permitted later without any change of settings."""


def switched_on(profile: ChatProfile) -> Refusal | None:
    """Refusal if a model may call no functions at all in the chat, else None."""
    if profile.functions_on:
        return None
    return Refusal("refusals.functions_off", setting=profile.layers.get("functions_on", ""))


REFUSED_BY = "refused_by"
"""Metadata key of a refusal. The value is the setting, role or rule that decided, or `@key name`: the key of a text and
the function that it mentions."""
OVER_BUDGET = "over_budget"
"""Metadata key of a budget's refusal: `told` if the member was already notified today, else `news`."""
FAILURE_ID = "failure_id"
"""Metadata key of a failure: its id in the log."""
_log = structlog.get_logger("invocation")
_UNWRITTEN = {
    NoTextReason.NO_MODEL: ErrorCode.ENVIRONMENT,
    NoTextReason.DOWN: ErrorCode.TRANSIENT,
    NoTextReason.OVER_BUDGET: ErrorCode.REFUSED,
    NoTextReason.DECLINED: ErrorCode.CANCELLED,
    NoTextReason.TOO_LONG: ErrorCode.BAD_ARGUMENTS,
}


def refused_by(setting: str, text: str) -> FunctionResult:
    """Refusal with `text`, and the setting or rule that decided."""
    return replace(FunctionResult.fail(ErrorCode.REFUSED, text), metadata={REFUSED_BY: setting})


def tool_error_text(error: ToolError, texts: Phrases) -> str:
    """Text of a handler's error. `@key` selects a text of the bot; any other `@name` is a mention and is kept."""
    return texts.resolve(error.text) if texts.has(error.text.removeprefix("@")) else error.text


def broken(spec: FunctionSpec, turn_id: str, error: BaseException, texts: Phrases, *, began: bool) -> FunctionResult:
    """Result of an unexpected exception. If a `once` function has begun, its outcome is unknown."""
    short_id = uuid.uuid4().hex[:8]
    _log.error("function_failed", function=spec.name, id=short_id, turn=turn_id, exc_info=error)
    failed = FunctionResult.fail(
        ErrorCode.FAILED, texts.say("failures.function", name=spoken_name(spec, texts.language), id=short_id)
    )
    if began and spec.execution.effect is Effect.ONCE:
        failed = unknown(spec, texts)
    return replace(failed, metadata=_failure(short_id, error))


def noted(result: FunctionResult, function: str, turn_id: str, **facts: object) -> FunctionResult:
    """`result`, an expected failure, with the id of a new log entry for operators. `facts` may be long and may hold
    secrets, which the log redacts."""
    short_id = uuid.uuid4().hex[:8]
    _log.warning("function_did_not_work", function=function, id=short_id, turn=turn_id, **facts)
    return replace(result, metadata={**result.metadata, FAILURE_ID: short_id})


def _failure(short_id: str, error: BaseException) -> dict[str, str]:
    """Metadata for the call log, never shown in a chat: the short id, `exception` and the last 8 frames as
    `traceback`."""
    return {
        FAILURE_ID: short_id,
        "exception": error_text(error),
        "traceback": "".join(traceback.format_exception(error, limit=-8)),
    }


def unknown(function: FunctionSpec | str, texts: Phrases, *, still_running: bool = False) -> FunctionResult:
    """Result for an effect whose outcome is unknown. `function` is a name if its spec no longer exists.
    `still_running`: it cannot be stopped and may still complete. For a read in the background, which has no effect, the
    result says that it was interrupted."""
    name = plain_name(function) if isinstance(function, str) else spoken_name(function, texts.language)
    execution = function.execution if isinstance(function, FunctionSpec) and not still_running else None
    if execution is not None and execution.background and execution.effect is Effect.READ:
        return FunctionResult.fail(ErrorCode.CANCELLED, texts.say("failures.interrupted", name=name))
    key = "failures.still_running" if still_running else "failures.unknown_outcome"
    return FunctionResult.fail(ErrorCode.UNKNOWN_OUTCOME, texts.say(key, name=name))


def not_reached(error: WebError, subject: str, texts: Phrases) -> FunctionResult:
    """Result for a function whose web service failed, with a text of `subject`: try again later, or out of order."""
    if error.code is ErrorCode.TRANSIENT:
        return FunctionResult.fail(ErrorCode.TRANSIENT, texts.say(f"{subject}.try_again"))
    return FunctionResult.fail(ErrorCode.ENVIRONMENT, texts.say(f"{subject}.out_of_order"))


def not_written(why: NoTextReason, texts: Phrases) -> FunctionResult:
    """Result for a function that got no text from a language model."""
    return FunctionResult.fail(_UNWRITTEN[why], texts.say(f"words.{why.value}", most=MOST_CHARS))


LASTS = "lasts"
"""Metadata key of a refusal that stays until somebody changes something. Temporary refusals, as by a filter or a
budget, do not have it."""


def refused_result(refused: Refusal, spec: FunctionSpec, profile: ChatProfile) -> FunctionResult:
    """Result of a call that is not permitted; the setting or role that decided is recorded in the call log."""
    name = spoken_name(spec, profile.texts.language)
    is_role = refused.key in ("refusals.role", "refusals.role_untold") and refused.detail
    detail = role_name(Role(refused.detail), profile.texts) if is_role else refused.detail
    result = FunctionResult.fail(refused.code, profile.texts.say(refused.key, name=name, detail=detail))
    metadata: dict[str, str | bool] = {REFUSED_BY: refused.setting or refused.detail or refused.key}
    return replace(result, metadata=metadata if refused.may_pass else {**metadata, LASTS: True})
