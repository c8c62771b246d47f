"""Dispatch by kind of question: read the answer, resume the turn that asked, or end the run that waits."""

from __future__ import annotations

from datetime import UTC, datetime

from config.texts import Phrases
from function_calls.call import Runs
from function_calls.context import Kind, MessageContext
from function_calls.outcome import TurnOutcome, sent
from function_calls.questions import approval_questions, argument_questions, confirm_questions, input_questions
from function_calls.questions.open_questions import Answer, read_yes_or_no
from function_calls.questions.waiting_runs import ResumesRounds, WaitingTurn
from function_calls.spec import ApprovalQuestion, ArgumentQuestion, ConfirmQuestion, InputQuestion, Message, Question
from function_calls.turn import OpenQuestion, Turn
from services.refs import ReasonCode


def read_answer(question: Question, text: str, texts: Phrases, *, has_files: bool = False) -> Answer:
    """Answer in `text`, a message of the member who was asked. `has_files`: the message has files."""
    match question:
        case ArgumentQuestion():
            return argument_questions.read_argument(text, texts)
        case ConfirmQuestion():
            return read_yes_or_no(text, texts)
        case ApprovalQuestion():
            return approval_questions.read_decision(question.terms.code, text, texts)
        case InputQuestion():
            return input_questions.read_input(question, text, texts, has_files=has_files)


def is_decision(question: Question) -> bool:
    """Whether only its choices, or other words for them, are answers."""
    return isinstance(question, ApprovalQuestion | ConfirmQuestion) or (
        isinstance(question, InputQuestion) and question.only_choices
    )


class Questions:
    """Resumes turns from their stored questions."""

    def __init__(self, invoker: Runs, rounds: ResumesRounds) -> None:
        self._invoker = invoker
        self._rounds = rounds

    async def resume(self, context: MessageContext, turn: Turn, asked: OpenQuestion, text: str) -> TurnOutcome:
        """Resume the turn that `asked` with the answer `text`; in a turn for its expiry without an answer."""
        turn.memory.resumed = True
        turn.memory.words = tuple(asked.continuation.words)
        if not isinstance(asked.question, ApprovalQuestion):
            turn.memory.words += (text,)
        asked_at, waiting = asked.continuation.asked_at, self._waiting(context, turn, asked)
        turn.memory.asked_at = context.sent_at if asked_at is None else datetime.fromtimestamp(asked_at, UTC)
        question, is_expiry = asked.question, context.kind is Kind.EXPIRY
        if isinstance(question, ApprovalQuestion):
            expire, resume = approval_questions.expire, approval_questions.resume
            return await (expire(waiting, question) if is_expiry else resume(waiting, question, text))
        if is_expiry and isinstance(question, InputQuestion):
            return await input_questions.expire(waiting, question)
        spec = waiting.find(question)
        if spec is None and question.function == argument_questions.INSUFFICIENT.name:
            return await argument_questions.resume_model(waiting, text)
        if spec is None:
            return sent(ReasonCode.ANSWERED_QUESTION, [Message(waiting.changed(question))])
        match question:
            case ArgumentQuestion():
                return await argument_questions.resume(waiting, question, spec, text)
            case ConfirmQuestion():
                return await confirm_questions.resume(waiting, question, spec, text)
            case InputQuestion():
                return await input_questions.resume(waiting, question, spec, text)

    async def end(self, context: MessageContext, turn: Turn, asked: OpenQuestion) -> list[Message]:
        """End the waiting run, which may not continue. Returns the messages that the chat must get. No effect if no run
        waits, and for an approval that may still be given."""
        if isinstance(asked.question, ApprovalQuestion) and context.kind is not Kind.EXPIRY:
            return []
        return await self._waiting(context, turn, asked).end(asked.question, "expired")

    def _waiting(self, context: MessageContext, turn: Turn, asked: OpenQuestion) -> WaitingTurn:
        return WaitingTurn(self._invoker, context, turn, asked.continuation, self._rounds)
