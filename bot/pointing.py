"""Which question a message may answer, and what is said where the one it points to is open no longer."""

from __future__ import annotations

from bot.approval_answers import meant, pointed_out
from bot.chats import Chats
from bot.open_questions import OpenQuestions, Pointed
from function_calls.answers import Answered, is_about_a_code
from function_calls.context import Kind, MessageContext
from function_calls.open_question import OpenQuestion
from function_calls.questions import is_decision, read_answer

_SAID = (Kind.MESSAGE, Kind.CHOICE)


class Pointing:
    """Knows what waits, and who may speak of what."""

    def __init__(self, questions: OpenQuestions, chats: Chats) -> None:
        self._questions = questions
        self._chats = chats

    def question(self, context: MessageContext, pointed: Pointed | None) -> OpenQuestion | None:
        """What the message may answer: what it points to, and then nothing else; what its sender was asked; or what is
        plainly meant. `pointed`: the question whose message it quotes."""
        if not self._questions.any_waiting:
            return None
        chat = context.chat
        own = self._questions.of(chat.key, context.sender.ref.key)
        waiting = self._questions.approvals_in(chat.key)
        found = pointed_out(context, waiting, pointed.question.id if pointed is not None else 0) if waiting else None
        if found is not None:
            return found
        if pointed is not None:
            return own if own is not None and own.id == pointed.question.id else None
        if context.kind is Kind.REACTION:
            # It speaks of its message alone.
            return None
        if own is None and not waiting:
            return None
        names_another = self._names_a_code(context)
        if own is not None:
            return None if names_another and is_decision(own.question) else own
        if names_another:
            return None
        role = self._chats.role(context.sender.ref.key, context.sender.role)
        return meant(context, waiting, role, self._chats.profile(chat).texts)

    def closed(self, context: MessageContext, pointed: Pointed | None, question: OpenQuestion | None) -> str:
        """The key of what is said to a message that answers a question which is open no longer; empty for all else.
        `question`: what it may answer."""
        if context.kind not in _SAID:
            return ""
        if question is None and pointed is not None and self._answers(context, pointed):
            return "questions.closed" if pointed.question.question.terms is None else "approvals.closed"
        is_taken = question is not None and not is_decision(question.question)
        return "approvals.no_such_code" if not is_taken and self._names_a_code(context, question) else ""

    def _answers(self, context: MessageContext, pointed: Pointed) -> bool:
        """Whether the message would answer the question that it points to, were it open."""
        question, member = pointed.question, context.sender.ref.key
        if question.question.terms is None and pointed.member != member:
            return False
        if context.kind is Kind.CHOICE:
            return not context.text.startswith("/")
        if pointed.is_answered and not is_decision(question.question):
            # What is said to it now may be anything.
            return False
        answer = read_answer(question.question, context.text, self._chats.profile(context.chat).texts)
        return answer.kind is not Answered.UNRELATED

    def _names_a_code(self, context: MessageContext, question: OpenQuestion | None = None) -> bool:
        """Whether it decides about what has a code, which is not that of `question`."""
        if question is not None and question.question.terms is not None:
            return False
        if context.text.startswith("/"):
            # A command answers nothing.
            return False
        return is_about_a_code(context.text, self._chats.profile(context.chat).texts, clearly=not context.calls_bot)
