"""What nobody answered: a function that asked is told so in a turn of its own, which takes the ordinary road."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from bot.gate import Verdict
from bot.intake import Intake
from bot.open_questions import OpenQuestions
from function_calls.context import Kind, MessageContext, MessageKey
from function_calls.open_question import OpenQuestion
from services.clock import Clock
from services.refs import ReasonCode
from services.store import pending
from services.store.port import Conflict, StoreError, Write

_log = structlog.get_logger("questions")


class Expiry:
    """Ends what waited for an answer in vain."""

    def __init__(self, intake: Intake, questions: OpenQuestions, clock: Clock) -> None:
        self._intake = intake
        self._questions = questions
        self._clock = clock

    async def end(self, left: Sequence[OpenQuestion]) -> None:
        """Tell the functions that asked these questions, each in its chat when its turn comes. The question is over in
        the unit that keeps the turn, so neither gets lost; what cannot be kept now is tried again the next time."""
        for question in left:
            try:
                is_over = await self._fire(question)
            except Conflict:
                # It was answered, or another process was faster.
                _log.info("question_was_over", question=question.id)
            except StoreError as problem:
                _log.error("expiry_waits_for_the_store", question=question.id, problem=str(problem))
                self._questions.still_left(question)
            else:
                if not is_over:
                    self._questions.still_left(question)

    async def _fire(self, question: OpenQuestion) -> bool:
        asker = question.asker
        if asker is None:
            raise ValueError("a question that a function asked has an asker")

        def claim(verdict: Verdict, turn_id: int) -> Sequence[Write]:
            return [pending.end_unanswered(question.id, turn_id)]

        context = self._context(asker, question.id)
        verdict = await self._intake.fire(context, claim, question=question)
        return verdict.reason is not ReasonCode.QUEUE_FULL

    def _context(self, asker: MessageContext, id_: int) -> MessageContext:
        """The event that stands for it: the asker's, who says nothing."""
        return MessageContext(
            key=MessageKey(asker.chat, f"question-{id_}", Kind.EXPIRY),
            kind=Kind.EXPIRY,
            chat=asker.chat,
            is_group=asker.is_group,
            sender=asker.sender,
            text="",
            sent_at=self._clock.now(),
            private=asker.private,
            chat_title=asker.chat_title,
            bot=asker.bot,
        )
