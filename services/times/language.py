"""What a language has to do to be read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from services.times.readings import Found, Reading


class TimeLanguage(Protocol):
    """Reads the times of one language. Neither method ever raises, whatever the text; both take `now` aware, in the
    zone of whoever speaks."""

    def speaks(self, text: str) -> bool:
        """Whether `text` may be in this language; a cheap look at its letters."""

    def read(self, text: str, now: datetime) -> Reading | None:
        """What `text` means, when all of it is one time; None otherwise."""

    def find_all(self, text: str, now: datetime) -> Sequence[Found]:
        """The times within `text`, in order, each as long as it can be; they do not overlap."""
