"""Faults of keywords in the chat's language."""

from __future__ import annotations

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.keywords import ScriptRun


def worded(run: ScriptRun, code: RunCode, key: str, **values: object) -> RunFault:
    """The fault with the sentence `basic.<key>` of `config/texts/`, to be raised."""
    return RunFault(code, run.call.say(f"basic.{key}", **values))
