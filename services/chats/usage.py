"""Use of the language model by the members of a chat."""

from __future__ import annotations

from collections import Counter
from datetime import date

from services.refs import ChatRef
from services.store.port import Store
from services.store.turns import budgets


class UsageCounts:
    """Counted answers of language models, read from the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def of(self, chat: ChatRef, today: date) -> dict[str, tuple[Counter[str], Counter[str]]]:
        """`requests`, `tokens` and `money` (in millionths) in `chat`, today and this month, by member key; an empty key
        for the bot's own requests, such as summaries."""
        found: dict[str, tuple[Counter[str], Counter[str]]] = {}
        for row in await self._store.read(budgets.usage(chat.key, today.replace(day=1).isoformat())):
            of_day, of_month = found.setdefault(row["holder"].partition("\n")[2], (Counter(), Counter()))
            of_month[row["kind"]] += row["used"]
            of_day[row["kind"]] += row["used"] if row["day"] == today.isoformat() else 0
        return found
