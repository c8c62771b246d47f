"""Definitions of words of all languages, in English, from the English Wiktionary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from services.refs import ErrorCode, RequestProblem
from services.web.content import text_of_html
from services.web.http import WebClient, WebError

DICTIONARY_URL = "https://en.wiktionary.org/api/rest_v1/page/definition"
SOURCE = "Wiktionary"
_MISSING = 404
_MOST_CHARS = 300
_MARKUP_CHARS = 5_000


@dataclass(frozen=True, slots=True)
class Meanings:
    """Meanings of a word as one part of speech in one language."""

    part_of_speech: str
    language: str
    """English name of the language."""
    senses: Sequence[tuple[str, str]]
    """Definitions, each with an example, which may be empty."""


class Dictionary:
    """Looks words up, without a key."""

    def __init__(self, http: WebClient, *, url: str = DICTIONARY_URL) -> None:
        self._http = http
        self._url = url

    async def look_up(self, word: str) -> Sequence[Meanings]:
        """The meanings of `word`: English first, or Chinese for other than Latin letters. Raises RequestProblem for an
        unknown word, and WebError if the service fails."""
        try:
            answer = await self._http.get_json(f"{self._url}/{quote(word.replace(' ', '_'), safe='')}")
        except WebError as error:
            if error.status == _MISSING:
                raise _unknown(word) from error
            raise
        if not isinstance(answer, dict):
            raise WebError(ErrorCode.FAILED, "the dictionary answers in a shape that is not known")
        found = [_meanings(one) for section in answer.values() for one in _dicts(section)]
        first = "English" if word.isascii() else "Chinese"
        meanings = sorted((one for one in found if one.senses), key=lambda one: one.language != first)
        if not meanings:
            raise _unknown(word)
        return meanings


def _unknown(word: str) -> RequestProblem:
    return RequestProblem("define.not_found", ErrorCode.NOT_FOUND, fields=["word"], word=word)


def _meanings(usage: dict[str, Any]) -> Meanings:
    senses = [
        (definition, next((_plain(example.get("example")) for example in _dicts(one.get("parsedExamples"))), ""))
        for one in _dicts(usage.get("definitions"))
        if (definition := _plain(one.get("definition")))
    ]
    return Meanings(_plain(usage.get("partOfSpeech")).lower(), _plain(usage.get("language")), senses)


def _plain(markup: object) -> str:
    return text_of_html(markup[:_MARKUP_CHARS], _MOST_CHARS) if isinstance(markup, str) else ""


def _dicts(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
