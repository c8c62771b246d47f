"""Sign-up lists of a chat: members in the order of joining; those beyond the places wait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pydantic import BaseModel, Field

from services.chats.documents import Document
from services.refs import ErrorCode, RequestProblem

MOST_OPEN = 20
MOST_PLACES = 10_000
_REMEMBERED_MS = 90 * 86_400_000


class Signup(BaseModel):
    """A list."""

    number: int
    title: str
    author: str
    """Key of the member who created it."""
    places: int | None = None
    """None: unlimited."""
    members: list[str] = []
    """Keys of members in the order of joining."""
    closed_ms: int | None = None

    @property
    def taking_part(self) -> Sequence[str]:
        """Keys of the members with a place."""
        return self.members[: self.places]

    @property
    def waiting(self) -> Sequence[str]:
        """Keys of the members without a place, the next one first."""
        return self.members[len(self.taking_part) :]

    def change(self, member: str, *, joins: bool) -> Sequence[str]:
        """Add the member at the end, unless they are in the list, or remove them; returns the keys of those who get a
        place because the member leaves. Raises RequestProblem if the list is closed."""
        if self.closed_ms is not None:
            raise RequestProblem("signup.closed_before")
        before = self.taking_part
        if joins:
            self.members += [member] if member not in self.members else []
            return []
        self.members = [one for one in self.members if one != member]
        return [one for one in self.taking_part if one not in before]


class Signups(Document):
    """The lists of a chat, numbered from 1. Closed ones are deleted after 90 days, when another is created."""

    kind: ClassVar[str] = "signups"
    last: int = 0
    lists: list[Signup] = Field(default_factory=list)

    def create(self, title: str, places: int | None, author: str, now_ms: int) -> int:
        """Add a list and return its number. Raises RequestProblem if there are too many."""
        self.lists = [one for one in self.lists if one.closed_ms is None or one.closed_ms > now_ms - _REMEMBERED_MS]
        if sum(one.closed_ms is None for one in self.lists) >= MOST_OPEN:
            raise RequestProblem("signup.too_many", most=MOST_OPEN)
        self.last += 1
        self.lists.append(Signup(number=self.last, title=title, author=author, places=places))
        return self.last

    def find(self, number: int | str | None) -> Signup:
        """The list with that number, or the latest open one, or the latest. Raises RequestProblem if there is none."""
        found = [one for one in self.lists if number in (None, one.number)]
        if not found:
            raise RequestProblem("signup.none", ErrorCode.NOT_FOUND)
        return ([one for one in found if one.closed_ms is None] or found)[-1]
