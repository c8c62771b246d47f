"""What the functions of the language may know of the world outside a script."""

from __future__ import annotations

from datetime import datetime
from random import Random
from typing import Protocol


class World(Protocol):
    """Where and when a script runs."""

    def now(self) -> datetime:
        """The moment, aware, in the time zone of the chat."""

    @property
    def random(self) -> Random:
        """Chance: the run's own, so that RANDOMIZE of one script means nothing to another."""

    def unique(self) -> str:
        """A new id, as UUIDs are written."""

    @property
    def language(self) -> str:
        """That of the chat: `en`, `zh`."""
