"""Job: one turn that is to run, as the engine holds it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bot.engine.keeping import Keeping
from function_calls.context import MessageContext
from function_calls.open_question import OpenQuestion


@dataclass(slots=True, eq=False)
class Job:
    """A message that was accepted and waits for its answer."""

    turn_id: int
    """Also the id of its row in the inbox."""
    context: MessageContext
    addressed: bool
    question: OpenQuestion | None = None
    """The question that it answers."""
    attempts: int = 0
    """How many of its runs an earlier process began, as far as that is known, and did not end."""
    recovered: bool = False
    """An earlier process accepted it: something of it may be stored, and each of its runs is counted before it
    begins."""
    suspect: bool = False
    """An earlier process died during a counted run of it: it runs alone, so that what ends the process is known."""
    immediate: bool = False
    begun: bool = False
    begun_ms: int = 0
    """When the attempt that runs began."""
    abandoned: bool = False
    """It turned out not to be one: nothing is done for it."""
    stopped: bool = False
    """Somebody ended it with /stop."""
    answered: bool = False
    """Its answer is being kept, or waits for room to be: it can be stopped no more."""
    keeping: Keeping | None = None
    """Its message is being written down while it runs; None where it was written before."""
    withdrawn: bool = False
    """Its message was deleted before it was queued."""
    edited: bool = False
    """Its message was changed while it was being answered."""
    repeated: bool = False
    """It was tried in this process before, so something of it may be stored."""
    unfit: str = ""
    """The id under which the log has why its end could not be kept as it was."""
    ended: Callable[[], None] | None = None
    """Called when the engine is done with it, however it ended."""
    taken: tuple[OpenQuestion, float] | None = None
    """The question, and when it expires, where nobody else can answer it meanwhile; forgotten by a restart."""

    @property
    def runs_for(self) -> MessageContext:
        """The message whose sender runs what this turn runs: of an approval the one who asked, not the one who
        answers."""
        terms = self.question.question.terms if self.question is not None else None
        return self.context if terms is None else terms.asker


RunTurn = Callable[[Job], Awaitable[None]]
