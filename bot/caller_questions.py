"""What is asked of whoever called a function and waits on the line: for how long, how often, and how a run ends whose
caller goes away instead of answering."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import structlog

from bot.inbound_text import fit_text
from bot.turn_log import StoreTurnLog
from function_calls.answering import Answering, Asked, Person, Reply, to_ask, understood
from function_calls.answers import Answered
from function_calls.context import MessageContext
from function_calls.handler_questions import MOST_QUESTIONS
from function_calls.registry import FunctionRegistry
from function_calls.spec import FunctionResult, Message, Question
from function_calls.turn import Turn
from function_calls.turn_log import Path
from services.clock import Clock
from services.deadlines import Deadlines
from services.store.port import Store, StoreError

_MOST_TRIES = 3
"""So often the same thing is asked of somebody whose answers are none."""
_LONGEST_ANSWER = 32_768

_log = structlog.get_logger("direct_calls")


@dataclass(slots=True)
class RunningCall:
    """One call while it runs."""

    context: MessageContext
    turn: Turn
    turn_id: int
    log: StoreTurnLog
    path: Path
    here: list[Message] = field(default_factory=list)
    unsent: list[Message] = field(default_factory=list)
    said_elsewhere: int = 0
    is_handed_over: bool = False
    """Whoever called is gone, and what they began is being ended by somebody else."""


BeforeAsking = Callable[[RunningCall, FunctionResult], Awaitable[None]]


class CallerQuestions:
    """Puts questions to callers and goes on with their answers."""

    def __init__(
        self,
        answering: Answering,
        registry: FunctionRegistry,
        store: Store,
        deadlines: Deadlines,
        clock: Clock,
        wait_seconds: Callable[[Question], float],
    ) -> None:
        """`wait_seconds`: how long a question waits."""
        self._answering = answering
        self._registry = registry
        self._store = store
        self._deadlines = deadlines
        self._clock = clock
        self._wait_seconds = wait_seconds
        self._ending: set[asyncio.Task[None]] = set()

    async def settled(self) -> None:
        """Return when the runs have come to their end whose callers went away before they had answered."""
        while self._ending:
            await asyncio.wait(self._ending)

    async def with_answers(
        self, running: RunningCall, result: FunctionResult, person: Person, before_asking: BeforeAsking
    ) -> FunctionResult:
        """`result`, and where it asks what whoever called may answer, what came of that in the end. `before_asking` is
        called with each result that asks."""
        turn, path = running.turn, running.path
        filled: frozenset[str] = frozenset()
        for _ in range(MOST_QUESTIONS):
            asked = to_ask(result, turn, filled)
            if asked is None:
                break
            await before_asking(running, result)
            reply = await self._reply(running, asked, person)
            if reply.role is not None:
                sender = replace(running.context.sender, role=reply.role)
                running.context = replace(running.context, sender=sender)
            turn.functions = self._registry.of(running.context.bot)
            filled |= {asked.question.field} - {""}
            result = await self._answering.go_on(running.context, turn, asked, reply, path)
        question = result.question
        if question is None or not question.is_of_a_run:
            return result
        # It wants the yes of somebody else, or asks too much.
        ended = await self._answering.end(running.context, turn, question, path)
        return result if question.terms is not None and ended.error is None else ended

    async def _reply(self, running: RunningCall, asked: Asked, person: Person) -> Reply:
        """What whoever called says, as far as it is an answer. The call has so much longer as they took."""
        turn, question = running.turn, asked.question
        began = self._clock.monotonic()
        by = began + self._wait_seconds(question)
        try:
            for _ in range(_MOST_TRIES):
                reply = await self._deadlines.run(person.answer(asked), by)
                if reply.kind != "answered":
                    return reply
                text = fit_text(reply.text, _LONGEST_ANSWER)
                if understood(question, text, turn.profile().texts).kind is not Answered.UNRELATED:
                    return reply._replace(text=text)
            _log.warning("answers_are_none", turn=turn.id, function=question.function)
        except TimeoutError:
            pass
        except asyncio.CancelledError:
            running.is_handed_over = True
            task = asyncio.create_task(self._end(running, question), name="a run whose caller is gone")
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
            raise
        finally:
            turn.deadline += self._clock.monotonic() - began
        return Reply("expired")

    async def _end(self, running: RunningCall, question: Question) -> None:
        """Let the run come to its end that waited for an answer of somebody who is gone."""
        try:
            await self._answering.end(running.context, running.turn, question, running.path)
            await self._store.commit(running.log.rest())
        except StoreError as error:
            _log.error("run_not_ended", turn=running.turn.id, function=question.function, problem=str(error))
        finally:
            running.log.unbind()
