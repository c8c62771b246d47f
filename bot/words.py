"""Words for one run of a function: whose model is asked, and how much of it."""

from __future__ import annotations

import structlog

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.ports import ChatWriter
from function_calls.words import MOST_CHARS, CallersModel, Unwritten, WordsWanted, Written
from services.clock import Clock
from services.deadlines import Deadlines

_LEFT_SECONDS = 1.0
"""Of the run, in which it can still say that there are no words."""
_log = structlog.get_logger("words")


class WordsOfModels:
    """The port `Words`."""

    def __init__(self, writer: ChatWriter, deadlines: Deadlines, clock: Clock) -> None:
        self._writer = writer
        self._deadlines = deadlines
        self._clock = clock

    async def ask(self, context: MessageContext, call: Call, wanted: WordsWanted) -> Written | Unwritten:
        """The words, or why there are none."""
        if sum(len(one.content) for one in wanted.messages) > MOST_CHARS:
            return Unwritten.TOO_LONG
        seconds = min(wanted.timeout_seconds, call.deadline - self._clock.monotonic() - _LEFT_SECONDS)
        if seconds <= 0:
            return Unwritten.DOWN
        model = call.callers_model
        if model is None:
            written = await self._writer.write_for(context, call.profile, wanted.messages, seconds)
            return written if isinstance(written, Unwritten) else Written(written, is_callers=False)
        return await self._of_caller(context, call, model, wanted, seconds)

    async def _of_caller(
        self, context: MessageContext, call: Call, model: CallersModel, wanted: WordsWanted, seconds: float
    ) -> Written | Unwritten:
        try:
            written = await self._deadlines.run(model.write(wanted), self._clock.monotonic() + seconds)
        except TimeoutError:
            written = Unwritten.DOWN
        how = written.value if isinstance(written, Unwritten) else "written"
        _log.info("callers_model_asked", member=context.sender.ref.key, call=call.key, how=how)
        return written
