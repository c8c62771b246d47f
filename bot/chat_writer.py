"""The language model as functions have it: words for a chat, within a deadline and shares of the day."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from bot.paid_requests import PaidRequests
from function_calls.budgets import OverBudget
from function_calls.context import MessageContext
from function_calls.profile import ChatProfile
from function_calls.words import Unwritten
from services.clock import Clock
from services.deadlines import Deadlines
from services.llm.model import ModelError, ModelMessage, ModelRequest
from services.refs import ChatRef, MemberRef
from services.store.port import Store

_log = structlog.get_logger("chat_writer")


class ModelWriter:
    """A ChatWriter over the model that answers the chats."""

    def __init__(self, requests: PaidRequests, store: Store, deadlines: Deadlines, clock: Clock) -> None:
        self._requests = requests
        self._store = store
        self._deadlines = deadlines
        self._clock = clock

    async def write(
        self, chat: ChatRef, profile: ChatProfile, messages: Sequence[ModelMessage], timeout_seconds: float
    ) -> str | Unwritten:
        """The model's words, or why there are none."""
        return await self._written(chat, None, profile, messages, timeout_seconds)

    async def write_for(
        self, context: MessageContext, profile: ChatProfile, messages: Sequence[ModelMessage], timeout_seconds: float
    ) -> str | Unwritten:
        """The model's words at the expense of the sender and the chat, or why there are none."""
        return await self._written(context.chat, context.sender.ref, profile, messages, timeout_seconds)

    async def _written(
        self,
        chat: ChatRef,
        member: MemberRef | None,
        profile: ChatProfile,
        messages: Sequence[ModelMessage],
        timeout_seconds: float,
    ) -> str | Unwritten:
        if not self._requests.can_write:
            return Unwritten.NO_MODEL
        request = ModelRequest(
            messages, tool_choice="none", timeout_seconds=timeout_seconds, language=profile.texts.language
        )
        work = self._requests.complete(request, chat.key, profile, member=member.key if member is not None else "")
        try:
            answer, writes = await self._deadlines.run(work, self._clock.monotonic() + timeout_seconds)
        except OverBudget as over:
            _log.info("words_over_budget", chat=chat.key, setting=over.setting)
            return Unwritten.OVER_BUDGET
        except (ModelError, TimeoutError) as problem:
            _log.warning("words_failed", chat=chat.key, problem=str(problem) or "it took too long")
            return Unwritten.DOWN
        if writes:
            await self._store.commit(writes)
        return answer.text.strip() or Unwritten.DOWN
