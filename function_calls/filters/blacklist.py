"""The filters `blacklist` and `classifier`: a message that is not to be answered is stopped before it is routed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Awaitable, Callable, Sequence

from function_calls.context import MessageContext
from function_calls.filters.turn import TurnFilter
from function_calls.outcome import Dispatch, TurnOutcome, sent
from function_calls.spec import Message
from function_calls.turn import Turn
from services.clock import Clock
from services.deadlines import Deadlines
from services.refs import ErrorCode, ReasonCode

Classify = Callable[[MessageContext], Awaitable[str | None]]
"""None or empty: the message may pass. Else why not, in a word for `/why`."""

# Scripts that are written without spaces: there a word has no edges.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_LETTER = rf"[^\W_{_UNSPACED}]"


def blacklist(words: Sequence[str], setting: str, *, reply: bool) -> TurnFilter:
    """Stops messages that hold one of `words`. `setting` is the key that `/why` names."""
    expression = re.compile("|".join(map(_expression, words)))

    async def around(context: MessageContext, turn: Turn, dispatch: Dispatch) -> TurnOutcome:
        if expression.search(_folded(context.text)):
            return _stopped(turn, setting, reply=reply)
        return await dispatch(context, turn)

    return around


def classifier(
    classify: Classify, setting: str, timeout_seconds: float, deadlines: Deadlines, clock: Clock, *, reply: bool
) -> TurnFilter:
    """Stops messages that `classify` gives a reason for, and those that it has not judged in time. What it raises ends
    the turn as a failure: nothing passes unjudged."""

    async def around(context: MessageContext, turn: Turn, dispatch: Dispatch) -> TurnOutcome:
        try:
            why_not = await deadlines.run(classify(context), clock.monotonic() + timeout_seconds)
        except TimeoutError:
            return _stopped(turn, f"{setting}.timeout_seconds", reply=reply)
        if why_not:
            return _stopped(turn, f"{setting}: {str(why_not)[:60]}", reply=reply)
        return await dispatch(context, turn)

    return around


def _stopped(turn: Turn, detail: str, *, reply: bool) -> TurnOutcome:
    said = [Message(turn.profile().texts.say("filters.stopped"))] if reply else []
    return sent(ReasonCode.FILTERED, said, detail, ErrorCode.REFUSED)


def _expression(word: str) -> str:
    """`word`, not within a longer word where words have edges."""
    folded = _folded(word)
    parts = r"\s+".join(map(re.escape, folded.split()))
    before = rf"(?<!{_LETTER})" if re.match(_LETTER, folded) else ""
    after = rf"(?!{_LETTER})" if re.search(rf"{_LETTER}\Z", folded) else ""
    return f"{before}{parts}{after}"


def _folded(text: str) -> str:
    """Without what only looks different: capital letters, wide forms, invisible characters."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return folded if folded.isascii() else "".join(one for one in folded if unicodedata.category(one) != "Cf")
