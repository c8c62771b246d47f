"""WAIT: a pause in a run."""

from __future__ import annotations

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.keywords import ScriptRun, Value, basic_keyword
from function_calls.basic.values import number_of, text_of
from services.clock import Clock

LONGEST_SECONDS = 300
_LEFT_SECONDS = 1.0
"""Of the run's time, for what comes behind the pause."""


@basic_keyword("WAIT {seconds}", "SLEEP {seconds}")
async def wait(run: ScriptRun, seconds: Value, *, clock: Clock) -> None:
    """Go on after so many seconds, at most 300. The chat waits as well; nothing is said meanwhile."""
    pause = number_of(seconds)
    if not 0 <= pause <= LONGEST_SECONDS:
        raise RunFault(RunCode.BAD_VALUE, run.call.say("basic.wait.range", most=LONGEST_SECONDS))
    left = run.call.deadline - clock.monotonic() - _LEFT_SECONDS
    if pause > left:
        raise RunFault(
            RunCode.BAD_VALUE, run.call.say("basic.wait.left", seconds=text_of(pause), left=max(0, int(left)))
        )
    await clock.sleep(pause)
