"""The question for an approval that a message answers, as the store has it."""

from __future__ import annotations

from bot.decisions import Decisions
from bot.open_questions import OpenQuestions
from function_calls.approval_terms import Became
from services.refs import ChatRef
from services.store.port import Store


class WaitingApproval:
    """The question of that id, for the turn that answers it."""

    def __init__(
        self, store: Store, questions: OpenQuestions, decisions: Decisions, id_: int, *, chat: ChatRef, turn_id: int
    ) -> None:
        self._store = store
        self._questions = questions
        self._decisions = decisions
        self._id = id_
        self._chat = chat
        self._turn_id = turn_id

    async def claim(self, allows: bool) -> bool:
        return await self._questions.claim(self._store, self._chat.key, self._id, self._turn_id, allows=allows)

    async def claimed(self) -> bool:
        return await self._questions.claimed(self._store, self._id, self._turn_id)

    async def became(self) -> Became:
        return await self._decisions.of(self._id)

    def others_wait(self) -> bool:
        return bool(self._questions.approvals_in(self._chat.key))
