"""Definitions of words: English from the Free Dictionary API, all languages from the English Wiktionary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from services.refs import ErrorCode, JsonValue
from services.web.content import one_line, text_of_html
from services.web.http import WebClient, WebError

DICTIONARY_URL = "https://api.dictionaryapi.dev/api/v2/entries/en"
WIKTIONARY_URL = "https://en.wiktionary.org/api/rest_v1/page/definition"
_MISSING = 404
_MOST_CHARS = 300
_MARKUP_CHARS = 5_000
_CHINESE = ("Chinese", "Translingual")


@dataclass(frozen=True, slots=True)
class Sense:
    """One meaning of a word."""

    definition: str
    example: str = ""


@dataclass(frozen=True, slots=True)
class Meanings:
    """Meanings of a word as one part of speech in one language."""

    part_of_speech: str
    language: str
    senses: Sequence[Sense]


@dataclass(frozen=True, slots=True)
class WordEntry:
    """Entry of a dictionary."""

    word: str
    source: str
    """Name of the dictionary."""
    meanings: Sequence[Meanings]
    phonetic: str = ""


class WordNotFound(LookupError):
    """No dictionary has the word."""


class Dictionary:
    """Looks words up in two dictionaries without keys."""

    def __init__(
        self, http: WebClient, *, dictionary_url: str = DICTIONARY_URL, wiktionary_url: str = WIKTIONARY_URL
    ) -> None:
        self._http = http
        self._dictionary_url = dictionary_url
        self._wiktionary_url = wiktionary_url

    async def look_up(self, word: str) -> WordEntry:
        """The entry of `word`; of a word in Latin letters its English meanings if there are any. Wiktionary is asked if
        the first dictionary fails or does not have the word. Raises WordNotFound, and WebError if Wiktionary fails."""
        if word.isascii():
            try:
                return _entry(word, await self._asked(self._dictionary_url, word))
            except (WebError, WordNotFound):
                pass
        return _wiktionary_entry(word, await self._asked(self._wiktionary_url, word.replace(" ", "_")))

    async def _asked(self, url: str, word: str) -> JsonValue:
        try:
            return await self._http.get_json(f"{url}/{quote(word, safe='')}")
        except WebError as error:
            if error.status == _MISSING:
                raise WordNotFound(word) from error
            raise


def _entry(word: str, answer: JsonValue) -> WordEntry:
    entries = [one for one in answer if isinstance(one, dict)] if isinstance(answer, list) else []
    meanings = [
        Meanings(_text(meaning, "partOfSpeech"), "English", list(_plain_senses(meaning)))
        for entry in entries
        for meaning in _dicts(entry, "meanings")
    ]
    phonetic = next((text for entry in entries if (text := _text(entry, "phonetic"))), "")
    return _checked(WordEntry(word, "dictionaryapi.dev", [one for one in meanings if one.senses], phonetic), answer)


def _plain_senses(meaning: dict[str, Any]) -> Iterator[Sense]:
    for one in _dicts(meaning, "definitions"):
        if definition := _text(one, "definition"):
            yield Sense(definition, _text(one, "example"))


def _wiktionary_entry(word: str, answer: JsonValue) -> WordEntry:
    """The meanings by language: English first, or Chinese for a word in Chinese characters."""
    sections = answer.values() if isinstance(answer, dict) else ()
    usages = [one for section in sections if isinstance(section, list) for one in section if isinstance(one, dict)]
    meanings = [
        Meanings(_text(one, "partOfSpeech").lower(), _text(one, "language"), list(_marked_senses(one)))
        for one in usages
    ]
    first = ("English",) if word.isascii() else _CHINESE
    meanings.sort(key=lambda one: one.language not in first)
    return _checked(WordEntry(word, "Wiktionary", [one for one in meanings if one.senses]), answer)


def _marked_senses(usage: dict[str, Any]) -> Iterator[Sense]:
    for one in _dicts(usage, "definitions"):
        definition = text_of_html(str(one.get("definition") or "")[:_MARKUP_CHARS], _MOST_CHARS)
        if definition:
            examples = (text_of_html(str(text)[:_MARKUP_CHARS], _MOST_CHARS) for text in _list(one, "examples"))
            yield Sense(definition, next((text for text in examples if text), ""))


def _checked(entry: WordEntry, answer: JsonValue) -> WordEntry:
    """`entry`. Raises WordNotFound if it is empty, and WebError if the answer has another form."""
    if not isinstance(answer, dict | list):
        raise WebError(ErrorCode.FAILED, f"{entry.source} answers in a shape that is not known")
    if not entry.meanings:
        raise WordNotFound(entry.word)
    return entry


def _text(one: dict[str, Any], key: str) -> str:
    value = one.get(key)
    return one_line(value[:_MARKUP_CHARS], _MOST_CHARS) if isinstance(value, str) else ""


def _list(one: dict[str, Any], key: str) -> list[Any]:
    value = one.get(key)
    return value if isinstance(value, list) else []


def _dicts(one: dict[str, Any], key: str) -> list[dict[str, Any]]:
    return [item for item in _list(one, key) if isinstance(item, dict)]
