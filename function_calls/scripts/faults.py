"""Faults of keywords in the chat's language."""

from __future__ import annotations

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.keywords import ScriptRun


def count_up(run: ScriptRun, what: str, most: int, key: str) -> int:
    """How often the run has done `what` before, which is noted. Raises the fault `key` where that is `most` already."""
    count = int(run.kept.get(what, 0))
    if count >= most:
        raise worded(run, RunCode.NOT_ALLOWED, key, most=most)
    run.kept[what] = count + 1
    return count


def worded(run: ScriptRun, code: RunCode, key: str, **values: object) -> RunFault:
    """The fault with the sentence `basic.<key>` of `config/texts/`, to be raised."""
    return RunFault(code, run.call.say(f"basic.{key}", **values))
