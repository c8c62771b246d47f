"""Search through an instance of SearXNG, which asks many search engines at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import SecretStr

from services.html_text import one_line, text_of_html
from services.http import WebClient, WebError
from services.refs import ErrorCode
from services.search import SNIPPET_CHARS, TITLE_CHARS, Answer, Hit
from services.web_links import clean_link, link_key

_ANSWER_CHARS = 600


class SearXNG:
    """A Searcher over the instance at `base_url`, which has to answer in JSON."""

    def __init__(self, http: WebClient, base_url: str, api_key: SecretStr) -> None:
        """`api_key` is sent as a bearer token, for an instance behind a gate; empty: none is."""
        self._http = http
        self._url = f"{base_url.rstrip('/')}/search"
        self._api_key = api_key

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    async def search(self, query: str, count: int, language: str) -> Answer:
        """The best pages, each once; and what the instance itself answers to simple questions. Raises WebError."""
        key = self._api_key.get_secret_value()
        headers = {"authorization": f"Bearer {key}"} if key else {}
        asked = {"q": query, "format": "json", "language": language}
        body = await self._http.get_json(self._url, query=asked, headers=headers)
        if not isinstance(body, dict) or not isinstance(body.get("results"), list):
            raise WebError(ErrorCode.FAILED, "the search service answers in a shape that is not known")
        hits = _each_once(_hit(one) for one in body["results"] if isinstance(one, dict))
        return Answer(_answer(body), tuple(hit for hit, _ in zip(hits, range(count), strict=False)))


def _hit(one: Mapping[str, Any]) -> Hit | None:
    url = clean_link(str(one.get("url") or ""))
    title = text_of_html(str(one.get("title") or ""), TITLE_CHARS)
    return Hit(title or url, url, text_of_html(str(one.get("content") or ""), SNIPPET_CHARS)) if url else None


def _each_once(hits: Iterable[Hit | None]) -> Iterator[Hit]:
    seen: set[str] = set()
    for hit in hits:
        if hit is not None and link_key(hit.url) not in seen:
            seen.add(link_key(hit.url))
            yield hit


def _answer(body: Mapping[str, Any]) -> str:
    """A direct answer, else what an encyclopedia says; empty where there is neither. Older releases give a text where
    newer ones give an object."""
    for one in _list(body, "answers"):
        text = one.get("answer") if isinstance(one, dict) else one
        if isinstance(text, str) and text.strip():
            return one_line(text, _ANSWER_CHARS)
    for one in _list(body, "infoboxes"):
        text = one.get("content") if isinstance(one, dict) else None
        if isinstance(text, str) and text.strip():
            return text_of_html(text, _ANSWER_CHARS)
    return ""


def _list(body: Mapping[str, Any], key: str) -> list[Any]:
    found = body.get(key)
    return found if isinstance(found, list) else []
