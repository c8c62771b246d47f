"""Requests to the model beside those of turns: they are taken from the chat's own share of the day, and from that of
the member whom they are for."""

from __future__ import annotations

from collections.abc import Callable

from function_calls.budgets import RequestBudgets
from function_calls.profile import ChatProfile
from services.llm.model import ChatModel, ModelAnswer, ModelError, ModelRequest
from services.store.port import Write


class PaidRequests:
    """Asks the model at the expense of a chat, and perhaps of a member."""

    def __init__(
        self,
        model: ChatModel,
        budgets: RequestBudgets | None = None,
        *,
        can_write: Callable[[], bool] = lambda: True,
    ) -> None:
        """Without `budgets` nothing is counted. `can_write` says whether the model of this moment finds words."""
        self._model = model
        self._budgets = budgets
        self._can_write = can_write

    @property
    def can_write(self) -> bool:
        """Whether there is anybody to ask."""
        return self._can_write()

    async def complete(
        self, request: ModelRequest, chat: str, profile: ChatProfile, *, member: str = ""
    ) -> tuple[ModelAnswer, list[Write]]:
        """The answer, and the writes that settle it, for one unit with what is made of it. The member with the key
        `member` pays as well. Raises OverBudget and ModelError."""
        if self._budgets is None or not self._budgets.is_limited:
            return await self._model.complete(request), []
        reservation = await self._budgets.reserve_for_chat(chat, profile, request, member=member)
        try:
            answer = await self._model.complete(request)
        except ModelError as error:
            self._budgets.give_back(reservation, error)
            raise
        return answer, self._budgets.settled(reservation, answer)
