"""The past of one message: which earlier lines a model may be shown, by the scope that holds in the chat."""

from __future__ import annotations

from collections.abc import Sequence

from bot.chats import Chats
from bot.summaries import Part, Summaries, line_of
from function_calls.context import MessageContext
from function_calls.turn import HistoryLine
from services.store import history
from services.store.port import Store


class Past:
    """Reads what was said before one message, and remembers that more of it is to be summarised."""

    def __init__(
        self,
        store: Store,
        summaries: Summaries,
        chats: Chats,
        context: MessageContext,
        turn_id: int,
        count: int,
    ) -> None:
        self._store = store
        self._summaries = summaries
        self._context = context
        self._turn_id = turn_id
        self._chats = chats
        self._count = count
        self._part: Part | None = None
        self._is_cut = False

    async def lines(self) -> Sequence[HistoryLine]:
        """The latest lines in scope, oldest first."""
        chat, part = self._context.chat.key, await self._its_part()
        if part.scope == "chat":
            query = history.recent(chat, self._turn_id, self._count)
        else:
            query = history.recent_in(chat, part.scope, part.value, self._turn_id, self._count)
        return [line_of(row) for row in reversed(await self._store.read(query))]

    async def recall(self) -> str:
        """The summary of what was said before them."""
        self._is_cut = True
        return await self._summaries.of(await self._its_part())

    def is_over(self) -> None:
        """The turn has ended: what it could not be shown may be summarised for the next one."""
        if self._is_cut and self._part is not None:
            self._summaries.consider(self._part, self._turn_id, self._chats.profile(self._context.chat))

    async def _its_part(self) -> Part:
        if self._part is None:
            chat = self._context.chat.key
            scope = self._chats.profile(self._context.chat).context_scope if self._context.is_group else "chat"
            value = ""
            if scope == "member":
                value = self._context.sender.ref.key
            elif scope == "thread":
                rows = await self._store.read(history.thread(self._turn_id))
                value = (rows[0]["thread"] or "") if rows else ""
            self._part = Part(chat, scope, value)
        return self._part
