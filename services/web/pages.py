"""Reading of web pages: request, and extraction of the main text in a child process."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.util import find_spec
from urllib.parse import urlsplit

from services.clock import Clock
from services.refs import ErrorCode
from services.sandbox.parsing import DocumentParser, Parser, ParsingError
from services.web.http import WebClient, WebError, WebLimits

EXTRA = "read"
"""Extra of the installation with the extraction of text."""
_LIMITS = WebLimits(timeout_seconds=20.0, body_bytes=3 * 1024 * 1024)
_ACCEPT = "text/html, application/xhtml+xml, text/plain;q=0.8, */*;q=0.1"
_MEDIA_TYPE = re.compile(r"[a-z]{1,20}/[a-z0-9.+-]{1,60}")
_READABLE = ("text/html", "application/xhtml+xml", "text/plain")


@dataclass(frozen=True, slots=True)
class PageText:
    """Main text of a page."""

    url: str
    """URL after redirects."""
    title: str
    site: str
    """Name of the site, or else its host."""
    date: str
    """ISO date of publication; empty if the page has none."""
    text: str
    is_cut: bool
    """The page has more text."""
    is_public: bool = True
    """False: of a permitted server of a private network."""


class NoExtractor(Exception):
    """The extra `read` is not installed."""


class NotText(Exception):
    """The URL has another type of content, such as an image."""

    def __init__(self, media_type: str) -> None:
        super().__init__(media_type)
        self.media_type = media_type


class PageReader:
    """Reads public pages. `has_extractor`: whether the extra is installed; None looks for it."""

    def __init__(self, http: WebClient, clock: Clock, *, has_extractor: bool | None = None) -> None:
        self._http = http
        self._parser = DocumentParser(clock)
        self._has_extractor = find_spec("trafilatura") is not None if has_extractor is None else has_extractor

    def is_configured(self, _bot: str) -> bool:
        """Whether the extra is installed."""
        return self._has_extractor

    async def read(self, url: str, most_chars: int) -> PageText:
        """The main text at `url`, at most `most_chars` characters. Raises NoExtractor, NotText, and WebError if the
        address is refused, the server fails or the page is too large or unreadable."""
        if not self._has_extractor:
            raise NoExtractor
        answer = await self._http.request("GET", url, headers={"accept": _ACCEPT}, limits=_LIMITS)
        media_type = answer.content_type.partition(";")[0].strip().lower() or "text/html"
        if media_type not in _READABLE:
            raise NotText(media_type if _MEDIA_TYPE.fullmatch(media_type) else "?")
        try:
            found = await self._parser.parse(Parser.PAGE, answer.body, answer.content_type or media_type)
        except ParsingError as error:
            raise WebError(ErrorCode.FAILED, f"{urlsplit(answer.url).hostname}: {error}") from error
        text = found["text"]
        host = (urlsplit(answer.url).hostname or "").removeprefix("www.")
        is_cut, is_public = len(text) > most_chars, not self._http.is_private(answer.url)
        shown = text[:most_chars].rstrip() if is_cut else text
        return PageText(answer.url, found["title"], found["site"] or host, found["date"], shown, is_cut, is_public)
