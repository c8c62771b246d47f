"""Work on many values, beside the event loop, at the expense of the run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from function_calls.basic.keywords import ScriptRun

MANY = 1000
"""Values from which on the work goes into a thread. Few are done sooner than a thread has begun."""
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


async def beside(
    run: ScriptRun, size: int, work: Callable[Arguments, Result], *args: Arguments.args, **named: Arguments.kwargs
) -> Result:
    """What `work` gives or raises; others have their turn meanwhile where it is about `MANY` values or more. Its time
    of the processor is the run's, also where it raises."""
    if size < MANY:
        return work(*args, **named)

    def measured() -> Result:
        began = time.thread_time()
        try:
            return work(*args, **named)
        finally:
            run.thread_seconds += time.thread_time() - began

    return await run.call.threads.run(measured)
