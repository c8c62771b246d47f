"""The services that read the web, as the settings say: each with limits of its own."""

from __future__ import annotations

from config.news import NewsSettings
from config.search import SearchSettings
from services.clock import Clock
from services.http import WebClient, WebLimits
from services.news import News
from services.search import Searcher, WebSearch
from services.searching_model import OPENAI_URL, PERPLEXITY_URL, SearchingModel
from services.searxng import SearXNG

_PERPLEXITY_MODEL = "sonar"


def news_of(settings: NewsSettings, clock: Clock, web: WebClient | None = None) -> News:
    """The feeds, read through `web` where it is given."""
    limits = WebLimits(timeout_seconds=settings.timeout_seconds, body_bytes=settings.feed_kilobytes * 1024)
    return News(settings, web or WebClient(limits), clock)


def search_of(settings: SearchSettings, clock: Clock, web: WebClient | None = None) -> WebSearch:
    """The searcher, asked through `web` where it is given."""
    return WebSearch(searcher_of(settings, web), clock, results=settings.results, cache_seconds=settings.cache_seconds)


def searcher_of(settings: SearchSettings, web: WebClient | None = None) -> Searcher | None:
    """Who searches; None: nobody. Only the server that the settings allow may be in a private network."""
    if settings.kind == "none":
        return None
    limits = WebLimits(timeout_seconds=settings.timeout_seconds)
    if settings.kind == "searxng":
        http = web or WebClient(limits, private_origin=settings.url if settings.private_network else "")
        return SearXNG(http, settings.url, settings.api_key)
    is_perplexity = settings.kind == "perplexity"
    url = settings.url or (PERPLEXITY_URL if is_perplexity else OPENAI_URL)
    http = web or WebClient(limits, private_origin=url if settings.private_network else "")
    model = settings.model or (_PERPLEXITY_MODEL if is_perplexity else "")
    return SearchingModel(http, url, settings.api_key, model)
