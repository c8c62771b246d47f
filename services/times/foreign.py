"""Times in other languages. `dateparser` knows their words: it says which language a phrase is in and puts it into
English, word for word; what that means is read by our own grammar, all of it or nothing. dateparser's own values are
not used: it drops what it does not understand ("mañana a las 5" is 17:30 tomorrow to it, when it is said at 17:30)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from services.lazy_patterns import lazy_pattern
from services.times.english import English
from services.times.readings import Found, Reading

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
