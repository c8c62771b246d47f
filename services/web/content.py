"""Plain text of HTML, and decoding of `data:` URLs."""

from __future__ import annotations

import base64
import binascii
import re
from contextlib import suppress
from html import unescape
from html.parser import HTMLParser
from urllib.parse import unquote_to_bytes

from services.patterns import one_line

_SILENT = frozenset({"script", "style", "template", "noscript"})
_GAPS = frozenset({"br", "p", "div", "li", "tr", "td", "th", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "img"})
_MOST_MARKUP = 50_000
"""Longer markup is truncated before parsing."""


class _Words(HTMLParser):
    """HTML parser that collects the visible text in `parts`, with spaces between blocks."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SILENT:
            self._silent += 1
        elif tag in _GAPS:
            self.parts.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag in _SILENT:
            self._silent = max(0, self._silent - 1)
        elif tag in _GAPS:
            self.parts.append(" ")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.parts.append(data)


def text_of_html(markup: str, most_chars: int) -> str:
    """Visible text of `markup` on one line, cut after a word to at most `most_chars` characters. Scripts, styles and
    markup after 50,000 characters are left out; so is an unclosed tag at the end."""
    markup = markup[:_MOST_MARKUP]
    # Python's parser takes quadratic time and more for tags without an end, so they are not passed to it.
    end = markup.rfind(">") + 1
    words = _Words()
    with suppress(AssertionError):  # raised for malformed declarations before Python 3.13
        words.feed(markup[:end])
        words.close()
    words.handle_data(unescape(markup[end:]))
    return one_line("".join(words.parts), most_chars)


_MEDIA_TYPE = re.compile(r"data:([a-z]+/[a-z0-9.+-]+)[;,]", re.IGNORECASE)


def data_in(url: str) -> bytes | None:
    """Decoded content of a `data:` URL; None if it is malformed."""
    head, comma, body = url.removeprefix("data:").partition(",")
    if not comma:
        return None
    if not head.endswith(";base64"):
        return unquote_to_bytes(body)
    try:
        return base64.b64decode(unquote_to_bytes(body), validate=True)
    except binascii.Error:
        return None


def media_type_in(url: str) -> str:
    """MIME type declared by a `data:` URL, such as `image/png`; empty if it declares none."""
    found = _MEDIA_TYPE.match(url)
    return found[1].lower() if found else ""


def data_url(content: bytes, media_type: str) -> str:
    """Encode `content` as a base64 `data:` URL."""
    return f"data:{media_type};base64,{base64.b64encode(content).decode('ascii')}"
