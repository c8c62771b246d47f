"""Reminders as they are asked for: by whom, what, and the plan that becomes of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from services.known_members import KnownMember
from services.recurrence import Occurrence, Once
from services.refs import ChatRef, MemberRef, Role
from services.wished_times import Understood, WishedTime


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, where."""

    chat: ChatRef
    is_group: bool
    is_private: bool
    """Nobody else reads it: a private chat, or said to the bot alone in a group."""
    bot: str
    member: MemberRef
    name: str
    role: Role
    home: ZoneInfo
    """The chat's zone, for those who have set none."""
    asked_at: datetime | None = None
    """When it was asked for, where a question held it up since; None: now."""

    @property
    def private_to(self) -> MemberRef | None:
        """Whose own business it stays in a group that does not read along."""
        return self.member if self.is_group and self.is_private else None


@dataclass(frozen=True, slots=True)
class Wish:
    """One reminder that is asked for."""

    text: str
    time: WishedTime


@dataclass(frozen=True, slots=True)
class Plan:
    """A reminder as it is to be: for whom, and how its time was understood."""

    wish: Wish
    members: tuple[KnownMember, ...]
    """Nobody: everybody in the chat."""
    time: Understood
    first: Occurrence

    def is_for_alone(self, member: MemberRef) -> bool:
        """Whether it is for `member` and nobody else."""
        return [one.ref for one in self.members] == [member]

    @property
    def zone(self) -> ZoneInfo:
        """That of its wall times."""
        return ZoneInfo(self.time.zone)

    @property
    def moved_to(self) -> datetime | None:
        """What the clocks show instead of its first wall time, where they skip that; naive."""
        shown = self.first.at.astimezone(self.zone).replace(tzinfo=None, microsecond=0, fold=0)
        return shown if shown != self.first.wall.replace(fold=0, microsecond=0) else None

    @property
    def comes_twice(self) -> bool:
        """Whether the clocks show its first wall time twice; the first one is meant."""
        wall = self.first.wall.replace(tzinfo=self.zone)
        is_ambiguous = wall.utcoffset() != wall.replace(fold=1 - wall.fold).utcoffset() and self.moved_to is None
        return is_ambiguous and isinstance(self.time.rule.when, Once)


def one_line(text: str) -> str:
    """`text` as a reminder keeps it: nobody can make a message of several lines of it."""
    return " ".join(text.replace("\0", " ").split())
