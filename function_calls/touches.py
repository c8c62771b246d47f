"""What a turn has read and what a function would touch: the plain facts by which taint is judged."""

from __future__ import annotations

from collections.abc import Sequence

from function_calls.context import MessageContext
from function_calls.profile import ChatNote
from function_calls.spec import FunctionSpec, Touch
from function_calls.turn import Turn
from services.refs import Effect, Role

_NOTHING: frozenset[Touch] = frozenset()
_OUTSIDE = frozenset({Touch.READS_OUTSIDE})


def reaches_out(spec: FunctionSpec) -> bool:
    """Whether its effect goes beyond the asker's own things in this chat. A function that does not say so reaches out
    when it acts only once or may not be called by every member; what may be repeated and is open to all does not."""
    if Touch.REACHES_OUT in spec.touches:
        return True
    if spec.effect is Effect.READ or Touch.STAYS_HERE in spec.touches:
        return False
    return spec.effect is Effect.ONCE or Role.MEMBER not in spec.roles


def is_tainted(spec: FunctionSpec, turn: Turn) -> bool:
    """Whether words from outside may have led to this effect, or what not everybody may know may go out with it. One
    search after another asks nothing: what the first one found was known outside before."""
    if Touch.SENDS_OUT in spec.touches and Touch.READS_PRIVATE in turn.taint:
        return True
    return bool(turn.taint) and reaches_out(spec)


def taint_of(context: MessageContext, notes: Sequence[ChatNote]) -> frozenset[Touch]:
    """What a model reads with the message beside the words of who asks: a quoted message is somebody else's, unless it
    is the bot's own, and so is what scripts have noted of others."""
    quoted, asker = context.reply_to, context.sender.ref.key
    if quoted is not None and quoted.text and not quoted.from_bot:
        return _OUTSIDE
    for note in notes:
        if note.from_outside or note.of_member not in ("", asker):
            return _OUTSIDE
    return _NOTHING
