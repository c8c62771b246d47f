"""A fixed environment for scripts."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from zoneinfo import ZoneInfo


@dataclass
class FixedWorld:
    """Time and ids are constant, as assumed by the examples of the language."""

    at: datetime = datetime(2026, 11, 20, 21, 15, tzinfo=UTC)
    zone: str = "Europe/Berlin"
    language: str = "en"
    random: Random = field(default_factory=lambda: Random(7))
    ids: int = 0

    def now(self) -> datetime:
        return self.at.astimezone(ZoneInfo(self.zone))

    def unique(self) -> str:
        self.ids += 1
        return f"00000000-0000-4000-8000-{self.ids:012d}"
