"""Shopping list of a chat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pydantic import BaseModel, Field

from services.chats.documents import Document
from services.chats.todo import MOST_OPEN
from services.refs import RequestProblem

_MOST_REMOVED = 200


class Item(BaseModel):
    """A thing to buy."""

    number: int
    text: str
    is_done: bool = False
    removed_in: int = 0
    """Version of the list in which it was removed; 0: it is on the list."""

    @property
    def is_removed(self) -> bool:
        """Whether it is kept only to be restored."""
        return self.removed_in > 0


class ShoppingList(Document):
    """Items of a chat; numbers are not reused."""

    kind: ClassVar[str] = "shopping"
    last: int = 0
    items: list[Item] = Field(default_factory=list)

    @property
    def shown(self) -> Sequence[Item]:
        """Items on the list, open ones first."""
        return sorted((one for one in self.items if not one.is_removed), key=lambda one: (one.is_done, one.number))

    def add(self, texts: Sequence[str]) -> list[int]:
        """Add items that are not open yet; returns their numbers. Raises RequestProblem if there are too many."""
        known, first = {one.text.casefold() for one in self.shown if not one.is_done}, self.last + 1
        for text in texts:
            if text.casefold() not in known:
                self.last += 1
                self.items.append(Item(number=self.last, text=text))
        if len(known) + self.last - first >= MOST_OPEN:
            raise RequestProblem("todo.full", most=MOST_OPEN)
        return list(range(first, self.last + 1))

    def mark(self, numbers: Sequence[int], *, done: bool) -> list[int]:
        """Tick items off or put them back; returns the numbers of those that changed."""
        changed = [one for one in self.shown if one.number in numbers and one.is_done is not done]
        for one in changed:
            one.is_done = done
        return [one.number for one in changed]

    def remove(self, numbers: Sequence[int]) -> list[int]:
        """Remove items; returns the numbers of those that were on the list."""
        removed = [one for one in self.shown if one.number in numbers]
        for one in removed:
            one.removed_in = self.version + 1
        kept = [one.number for one in self.items if one.is_removed][-_MOST_REMOVED:]
        self.items = [one for one in self.items if not one.is_removed or one.number in kept]
        return [one.number for one in removed]

    def restore(self, version: int) -> list[int]:
        """Put back the items removed in that version; returns their numbers."""
        back = [one for one in self.items if one.removed_in == version > 0]
        for one in back:
            one.removed_in = 0
        return [one.number for one in back]
