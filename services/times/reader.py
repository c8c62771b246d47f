"""The service that reads times in words in any supported language."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from services.patterns import lazy_pattern
from services.times.en.phrases import English
from services.times.words.readings import Found, Reading, TimeLanguage
from services.times.zh.reader import Chinese

LANGUAGES = ("de", "fr", "es", "it", "pt", "nl", "sv", "da", "fi", "pl", "cs", "ru", "uk", "tr", "ja", "ko")
_TWELVE_HOURS = frozenset(("es", "it", "pt"))
"""Here an hour without more is said of both halves of the day; elsewhere it is one of 24."""
_MOST_CHARACTERS = 60
_LETTER = lazy_pattern(r"[^\W\d_]{2}|[\u3040-\u9fff\uac00-\ud7af]")
"""Something to know a language by: one letter is none."""
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
    """Reads whole phrases in `languages`. The tables of a language are read when a phrase is first looked at."""

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
        """Nothing: without a grammar a time cannot be told from the words around it."""
        return ()

    def _in_english(self, text: str) -> str | None:
        """The phrase in English, when dateparser takes it for a date in one of the languages."""
        language = self._parser.get_date_data(text).locale
        if not language:
            return None
        words = str(self._locales.get_locale(language).translate(text.lower(), False, self._settings))
        words = " ".join(words.split())
        if len(_NUMBER.findall(words)) > len(_NUMBER.findall(text)):
            for pattern, day in _DAYS:  # the name of a day, of which dateparser makes a number of days
                words = pattern.sub(day, words, count=1)
        return _HOUR.sub(lambda found: self._hour(found[1], language), words, count=1)

    @staticmethod
    def _hour(hour: str, language: str) -> str:
        return f"at {hour}" if language.split("-")[0] in _TWELVE_HOURS else f"at {int(hour):02}:00"

    @cached_property
    def _settings(self) -> Any:  # dateparser is untyped
        from dateparser.conf import settings

        return settings.replace(PREFER_DATES_FROM="future", RELATIVE_BASE=datetime(2024, 1, 1))  # noqa: DTZ001 - its value is not used

    @cached_property
    def _parser(self) -> Any:  # the same
        from dateparser.date import DateDataParser

        return DateDataParser(languages=list(self._names), settings=self._settings)

    @cached_property
    def _locales(self) -> Any:  # the same
        from dateparser.languages.loader import LocaleDataLoader

        return LocaleDataLoader()


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
