"""Search on the web: what is asked and what comes back, whoever searches. The same question is not asked again soon."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from services.clock import Clock
from services.http import WebError
from services.refs import ErrorCode

_log = structlog.get_logger("search")
KEPT_ANSWERS = 256
TITLE_CHARS = 150
SNIPPET_CHARS = 250


@dataclass(frozen=True, slots=True)
class Hit:
    """One page that was found."""

    title: str
    url: str
    """http or https, whole."""
    snippet: str = ""
    number: int = 0
    """What the answer's text calls it, as in `[2]`; 0 where it does not."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a search gave: words, pages, or both; nothing at all when nothing was found."""

    text: str = ""
    hits: Sequence[Hit] = ()


class Searcher(Protocol):
    """Somebody who searches the web."""

    async def search(self, query: str, count: int, language: str) -> Answer:
        """What there is about `query`, with at most `count` pages, if possible in `language`. Raises WebError."""

    async def close(self) -> None:
        """Close what is open; nobody searches afterwards."""


class NoSearch(Exception):
    """Nobody is set to search."""


class WebSearch:
    """The searcher of the settings, with the latest answers; None: there is nobody."""

    def __init__(self, searcher: Searcher | None, clock: Clock, *, results: int, cache_seconds: float) -> None:
        self._searcher = searcher
        self._clock = clock
        self._results = results
        self._cache_seconds = cache_seconds
        self._kept: OrderedDict[tuple[str, str], tuple[float, Answer]] = OrderedDict()

    async def search(self, query: str, language: str) -> Answer:
        """What there is about `query`. Raises NoSearch, and WebError with the reason in the log."""
        if self._searcher is None:
            raise NoSearch
        key = " ".join(query.casefold().split()), language
        now = self._clock.monotonic()
        known = self._kept.get(key)
        if known is not None and now - known[0] < self._cache_seconds:
            self._kept.move_to_end(key)
            return known[1]
        try:
            answer = await self._searcher.search(query, self._results, language)
        except WebError as error:
            _log.warning("search_failed", status=error.status, problem=str(error), advice=advice(error))
            raise
        self._kept[key] = (now, answer)
        self._kept.move_to_end(key)
        while len(self._kept) > KEPT_ANSWERS:
            self._kept.popitem(last=False)
        return answer

    async def close(self) -> None:
        """Close what is open."""
        if self._searcher is not None:
            await self._searcher.close()


def advice(error: WebError) -> str:
    """What an operator may do about it."""
    if error.status == 401:
        return "Check search.api_key: it is refused"
    if error.status == 403:
        return "Check search.api_key; a SearXNG instance has to have json among search.formats in its settings.yml"
    if error.status == 402:
        return "There is no credit left"
    if error.status == 429:
        return "It asks to be left alone for a while"
    if error.code is ErrorCode.REFUSED:
        return "Set search.private_network if search.url is on this machine or in a network of your own"
    if error.code is ErrorCode.TRANSIENT:
        return "Check that it is there, and search.timeout_seconds"
    return "Check search.kind, search.url and search.model"
