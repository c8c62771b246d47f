"""Shopping list of a chat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pydantic import BaseModel

from services.chats.documents import Document

MOST_OPEN = 200
_MOST_ENDED = 200
"""Done and removed items that are kept, so that they can be restored."""


class Item(BaseModel):
    """One thing to buy."""

    number: int
    text: str
    is_done: bool = False
    removed_in: int = 0
    """Version of the list in which it was removed; 0: it is on the list."""

    @property
    def is_removed(self) -> bool:
        """Whether it is no longer on the list."""
        return self.removed_in > 0


class TooManyItems(Exception):
    """The list has `MOST_OPEN` open items."""


class ShoppingList(Document):
    """The shopping list of a chat; numbers are not reused."""

    kind: ClassVar[str] = "shopping"
    last: int = 0
    items: list[Item] = []

    @property
    def shown(self) -> Sequence[Item]:
        """Items on the list: open ones first, then by number."""
        return sorted((one for one in self.items if not one.is_removed), key=lambda one: (one.is_done, one.number))

    def add(self, texts: Sequence[str]) -> list[int]:
        """Add items unless an open one has the same text; returns the numbers of all. Raises TooManyItems."""
        numbers: list[int] = []
        for text in texts:
            open_items = [one for one in self.shown if not one.is_done]
            same = next((one for one in open_items if one.text.casefold() == text.casefold()), None)
            if same is None:
                if len(open_items) >= MOST_OPEN:
                    raise TooManyItems
                self.last += 1
                same = Item(number=self.last, text=text)
                self.items.append(same)
            numbers.append(same.number)
        return numbers

    def mark(self, numbers: Sequence[int], *, done: bool) -> list[int]:
        """Tick items off, or with `done=False` put them back; returns the numbers of those that changed."""
        changed = [one for one in self.shown if one.number in numbers and one.is_done is not done]
        for one in changed:
            one.is_done = done
        return [one.number for one in changed]

    def remove(self, numbers: Sequence[int]) -> list[int]:
        """Remove items; returns the numbers of those that were on the list."""
        removed = [one for one in self.shown if one.number in numbers]
        for one in removed:
            one.removed_in = self.version + 1
        ended = [one.number for one in self.items if one.is_removed][:-_MOST_ENDED]
        self.items = [one for one in self.items if one.number not in ended]
        return [one.number for one in removed]

    def restore(self, version: int) -> list[int]:
        """Put back the items that were removed in that version of the list; returns their numbers."""
        back = [one for one in self.items if version > 0 and one.removed_in == version]
        for one in back:
            one.removed_in = 0
        return [one.number for one in back]
