"""What `rollcall doctor` finds out about the services that read the web: the search and the feeds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from bot.web_services import news_of, searcher_of
from config.diagnostics import Diagnostic
from config.settings import Settings
from services.clock import SystemClock
from services.http import WebError
from services.search import Searcher, advice

Check = tuple[str, Callable[[], Diagnostic | str]]
_QUESTION = "weather"
"""Something that every search finds."""


def web_checks(settings: Settings) -> Sequence[Check]:
    """One for the search and one for the feeds, where they are set."""
    checks: list[Check] = []
    searcher = searcher_of(settings.search)
    if searcher is not None:
        checks.append(("search", lambda: _search(settings, searcher)))
    if settings.news.feeds:
        checks.append(("news", lambda: _news(settings)))
    return checks


def _search(settings: Settings, searcher: Searcher) -> Diagnostic | str:
    async def probe() -> str:
        try:
            answer = await searcher.search(_QUESTION, 1, settings.language)
        finally:
            await searcher.close()
        return "answered" if answer.text or answer.hits else "answered, and found nothing"

    try:
        return f"{settings.search.kind}: {asyncio.run(probe())}"
    except WebError as error:
        return Diagnostic("search", 1, 1, "search.unusable", f"{settings.search.kind}: {error}. {advice(error)}")


def _news(settings: Settings) -> Diagnostic | str:
    async def problems() -> dict[str, str]:
        news = news_of(settings.news, SystemClock())
        try:
            return await news.problems()
        finally:
            await news.close()

    found = asyncio.run(problems())
    if not found:
        return f"{len(settings.news.feeds)} feeds, all can be read"
    text = "; ".join(f"{name}: {problem}" for name, problem in found.items())
    everything = len(found) == len(settings.news.feeds)
    return Diagnostic("news.feeds", 1, 1, "news.feed_unusable", text, "error" if everything else "warning")
