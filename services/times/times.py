"""The service that reads times in words, whatever their language."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from services.times.chinese import Chinese
from services.times.english import English
from services.times.foreign import OtherLanguages
from services.times.language import TimeLanguage
from services.times.readings import Found, Reading

MOST_CHARACTERS = 300
"""Longer phrases are no times; of longer sentences only the beginning is looked at."""


class Times:
    """Reads times as people write them. `now` is always aware and in the zone of whoever speaks: today is today there,
    and wall times are of there. Pure: no clock, no network, nothing kept."""

    def __init__(self, languages: Sequence[TimeLanguage] | None = None) -> None:
        """`languages` are asked in this order."""
        self._languages = (Chinese(), English(), OtherLanguages()) if languages is None else tuple(languages)

    def read(self, text: str, now: datetime) -> Reading | None:
        """What `text` means, all of it; None when it is not a time, or more than one."""
        phrase = text.strip()
        if not phrase or len(phrase) > MOST_CHARACTERS:
            return None
        for language in self._languages:
            if language.speaks(phrase) and (reading := language.read(phrase, now)) is not None:
                return reading
        return None

    def find(self, text: str, now: datetime) -> Found | None:
        """The time that a sentence is about: the most telling one where there are several."""
        found = self.find_all(text, now)
        return max(found, key=lambda one: one.end - one.start, default=None)

    def find_all(self, text: str, now: datetime) -> list[Found]:
        """All the times within `text`, in order; they do not overlap."""
        looked_at = text[:MOST_CHARACTERS]
        for language in self._languages:
            if language.speaks(looked_at) and (found := language.find_all(looked_at, now)):
                return list(found)
        return []
