"""Sign-up lists of a chat: members in the order in which they joined; those beyond the places wait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pydantic import BaseModel

from services.chats.documents import Document
from services.refs import MemberRef

MOST_OPEN = 20
MOST_PLACES = 10_000
_REMEMBERED_MS = 90 * 86_400_000


class NoSignup(LookupError):
    """The chat has no list with that number, or none at all."""


class SignupClosed(Exception):
    """The list is closed."""


class NotYourSignup(PermissionError):
    """The list belongs to another member; `author` is the key of that member."""

    def __init__(self, author: str) -> None:
        super().__init__(author)
        self.author = author


class TooManySignups(Exception):
    """The chat has `MOST_OPEN` open lists."""


class Signup(BaseModel):
    """One list."""

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

    def join(self, member: str) -> None:
        """Add the member at the end; no change if they are in the list. Raises SignupClosed."""
        if self.closed_ms is not None:
            raise SignupClosed
        if member not in self.members:
            self.members.append(member)

    def leave(self, member: str) -> Sequence[str]:
        """Remove the member; returns the keys of those who get a place by it. Raises SignupClosed."""
        if self.closed_ms is not None:
            raise SignupClosed
        before = self.taking_part
        self.members = [one for one in self.members if one != member]
        return [one for one in self.taking_part if one not in before]


class Signups(Document):
    """The lists of a chat, numbered from 1. Closed ones are deleted after 90 days, when another is created."""

    kind: ClassVar[str] = "signups"
    last: int = 0
    lists: list[Signup] = []

    def create(self, title: str, places: int | None, author: MemberRef, now_ms: int) -> Signup:
        """Add an open list. Raises TooManySignups."""
        self.lists = [one for one in self.lists if one.closed_ms is None or one.closed_ms > now_ms - _REMEMBERED_MS]
        if sum(one.closed_ms is None for one in self.lists) >= MOST_OPEN:
            raise TooManySignups
        self.last += 1
        self.lists.append(Signup(number=self.last, title=title, author=author.key, places=places))
        return self.lists[-1]

    def find(self, number: int | None) -> Signup:
        """The list with that number, or the latest open one, or the latest. Raises NoSignup."""
        found = [one for one in self.lists if number in (None, one.number)]
        if not found:
            raise NoSignup
        return ([one for one in found if one.closed_ms is None] or found)[-1]

    def close(self, number: int | None, by: MemberRef, now_ms: int | None, *, any_author: bool) -> Signup:
        """Close a list at `now_ms`, or open it again if that is None. Raises NoSignup and NotYourSignup."""
        found = self.find(number)
        if found.author != by.key and not any_author:
            raise NotYourSignup(found.author)
        if now_ms is None or found.closed_ms is None:
            found.closed_ms = now_ms
        return found
