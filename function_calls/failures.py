"""The results that stand for a run that never was: what a person is told, and what the logs keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from config.texts import Phrases
from function_calls.failed_runs import REFUSED_BY as REFUSED_BY
from function_calls.permissions import Refusal
from function_calls.profile import ChatProfile
from function_calls.questions import argument_question
from function_calls.spec import ArgumentFault, FunctionResult, FunctionSpec
from function_calls.usage import fault_text, spoken_name
from services.refs import ErrorCode

LASTS = "lasts"
"""In the metadata of a refusal that stays the same until somebody does something about it. One of a filter or a budget
does not say so: it may be gone in a minute."""


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
