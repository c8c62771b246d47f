"""Parser of times in words, for all supported languages."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from services.patterns import lazy_pattern
from services.times.en.phrases import English
from services.times.words.readings import Found, Kind, Reading, TimeLanguage
from services.times.zh.reader import Chinese

LANGUAGES = ("de", "fr", "es", "it", "pt", "nl", "sv", "da", "fi", "pl", "cs", "ru", "uk", "tr", "ja", "ko")
_TWELVE_HOURS = frozenset(("es", "it", "pt"))
"""Languages where a bare hour may mean either half of the day; elsewhere it is on the 24-hour clock."""
_MOST_CHARACTERS = 60
_LETTER = lazy_pattern(r"[^\W\d_]{2}|[\u3040-\u9fff\uac00-\ud7af]")
"""Minimum text for detecting a language; one letter is not enough."""
_HAN = lazy_pattern(r"[\u3400-\u9fff]")
_OTHER_EASTERN = lazy_pattern(r"[\u3040-\u30ff\uac00-\ud7af]")
_NUMBER = lazy_pattern(r"\d+")
_DAYS = (
    (lazy_pattern(r"\bin 1 day\b"), "tomorrow"),
    (lazy_pattern(r"\bin 2 day\b"), "the day after tomorrow"),
    (lazy_pattern(r"\b0 day ago\b"), "today"),
    (lazy_pattern(r"\b1 day ago\b"), "yesterday"),
)
_HOUR = lazy_pattern(r"(?<=day |row )(?:at )?(\d{1,2})(?: hour\b|$)")


class OtherLanguages:
    """Parses whole phrases in `languages` with dateparser. Language data loads on first use. Finds no times within
    sentences."""

    def __init__(self, languages: Sequence[str] = LANGUAGES) -> None:
        self._names = tuple(languages)
        self._english = English(day_first=True)

    def speaks(self, text: str) -> bool:
        is_chinese = _HAN.search(text) is not None and _OTHER_EASTERN.search(text) is None
        return len(text) <= _MOST_CHARACTERS and _LETTER.search(text) is not None and not is_chinese

    def read(self, text: str, now: datetime) -> Reading | None:
        translated = self._in_english(text)
        return None if translated is None else self._english.read(translated, now)

    def find_all(self, text: str, now: datetime) -> Sequence[Found]:
        """Always empty: without a grammar a time cannot be separated from the words around it."""
        return ()

    def _in_english(self, text: str) -> str | None:
        """The phrase translated to English if dateparser recognises a date in one of the languages; else None."""
        parser, locales, settings = self._dateparser
        language = parser.get_date_data(text).locale
        if not language:
            return None
        words = str(locales.get_locale(language).translate(text.lower(), False, settings))
        words = " ".join(words.split())
        if len(_NUMBER.findall(words)) > len(_NUMBER.findall(text)):
            for pattern, day in _DAYS:  # undo dateparser's translation of names of days into numbers of days
                words = pattern.sub(day, words, count=1)
        return _HOUR.sub(lambda found: self._hour(found[1], language), words, count=1)

    @staticmethod
    def _hour(hour: str, language: str) -> str:
        return f"at {hour}" if language.split("-")[0] in _TWELVE_HOURS else f"at {int(hour):02}:00"

    @cached_property
    def _dateparser(self) -> tuple[Any, Any, Any]:  # dateparser is untyped
        """Parser of the languages, loader of language data, and settings."""
        from dateparser.conf import settings
        from dateparser.date import DateDataParser
        from dateparser.languages.loader import LocaleDataLoader

        settings = settings.replace(PREFER_DATES_FROM="future", RELATIVE_BASE=datetime(2024, 1, 1))  # noqa: DTZ001 - its value is not used
        return DateDataParser(languages=list(self._names), settings=settings), LocaleDataLoader(), settings


MOST_CHARACTERS = 300
"""Longer phrases are not times; longer sentences are truncated."""


class Times:
    """Parses times in natural language. `now` must be aware and in the member's zone, which defines today and wall
    times. Pure: no clock, network or state."""

    def __init__(self, languages: Sequence[TimeLanguage] | None = None) -> None:
        """`languages` are tried in this order."""
        self._languages = (Chinese(), English(), OtherLanguages()) if languages is None else tuple(languages)

    def read(self, text: str, now: datetime) -> Reading | None:
        """Parse the whole `text`; None if it is not a single time or longer than 300 characters. A reading may have a
        `problem`."""
        phrase = text.strip()
        if not phrase or len(phrase) > MOST_CHARACTERS:
            return None
        for language in self._languages:
            if language.speaks(phrase) and (reading := language.read(phrase, now)) is not None:
                return reading
        return None

    def find(self, text: str, now: datetime) -> Found | None:
        """The longest time in `text`; None if it contains none."""
        found = self.find_all(text, now)
        return max(found, key=lambda one: one.end - one.start, default=None)

    def find_all(self, text: str, now: datetime) -> list[Found]:
        """All times in `text`, in order, without overlaps. Only the first 300 characters are searched; all are in the
        first language that finds any."""
        looked_at = text[:MOST_CHARACTERS]
        for language in self._languages:
            if language.speaks(looked_at) and (found := language.find_all(looked_at, now)):
                return list(found)
        return []


def end_of(until: str | None, now: datetime, times: Times, default: timedelta) -> datetime | None:
    """The end, in UTC, of a period that begins at `now`, aware and in the member's zone: a duration or a time in words,
    or `default`. None if `until` is no single time."""
    if not (until or "").strip():
        return (now + default).astimezone(UTC)
    reading = times.read(until or "", now)
    if reading is None or reading.problem is not None or reading.repeats is not None:
        return None
    if reading.kind is Kind.DURATION and reading.length is not None:
        return now.astimezone(UTC) + timedelta(days=reading.length.days, seconds=reading.length.seconds)
    at = reading.at or (reading.end if reading.kind is Kind.INTERVAL else reading.start)
    return at.replace(tzinfo=now.tzinfo).astimezone(UTC) if at is not None else None
