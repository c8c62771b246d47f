"""What stands in the bytes of a feed: RSS and Atom in all their spellings, as plain text."""

from __future__ import annotations

import calendar
import re
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from services.html_text import one_line, text_of_html
from services.web_links import clean_link

_MOST_ENTRIES = 200
_TITLE_CHARS = 200
_SUMMARY_CHARS = 300
_LONGEST_TEXT = 20_000
_ROOT = re.compile(rb"<\s*(\w+:)?(rss|feed|rdf)\b", re.IGNORECASE)
_ROOT_WITHIN = 20_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One item of a feed."""

    title: str
    link: str
    """http or https, without what follows readers; empty where there is none."""
    summary: str
    at_ms: int | None
    """Milliseconds since 1970 UTC when it was published or last changed; None where the feed does not say."""


class NoFeed(ValueError):
    """The bytes are no feed."""


def read_feed(body: bytes, content_type: str) -> list[Entry]:
    """The entries of a feed in its own order, at most 200; those without a title are left out. Raises NoFeed. Takes
    long for long feeds, so it belongs into a thread."""
    # 60 ms: paid by the first feed instead of by the start.
    import feedparser

    if not _ROOT.search(body[:_ROOT_WITHIN]):
        raise NoFeed("there is neither RSS nor Atom in it")
    headers = {"content-type": content_type}
    try:
        # A stream, because a text or bytes would be taken for an address or a file to open.
        parsed = feedparser.parse(BytesIO(body), response_headers=headers, sanitize_html=False)
    except Exception as error:
        # What strangers send brings out faults of every kind in the parser.
        raise NoFeed(f"it cannot be read ({type(error).__name__})") from error
    if not parsed.get("version") and not parsed.entries:
        raise NoFeed("it cannot be read as RSS or Atom")
    return [entry for one in parsed.entries[:_MOST_ENTRIES] if (entry := _entry(one)).title]


def _entry(one: Mapping[str, Any]) -> Entry:
    return Entry(
        title=_plain(one, "title", _TITLE_CHARS),
        link=clean_link(_text(one, "link")) or clean_link(_text(one, "id")),
        summary=_plain(one, "summary", _SUMMARY_CHARS),
        at_ms=_instant(one),
    )


def _plain(one: Mapping[str, Any], key: str, most_chars: int) -> str:
    """The text of a field; what says that it is no markup may speak of `<b>`."""
    is_markup = one.get(f"{key}_detail", {}).get("type") != "text/plain"
    return (text_of_html if is_markup else one_line)(_text(one, key)[:_LONGEST_TEXT], most_chars)


def _text(one: Mapping[str, Any], key: str) -> str:
    value = one.get(key)
    return value if isinstance(value, str) else ""


def _instant(one: Mapping[str, Any]) -> int | None:
    # A plain copy: the parser's own mapping warns where it would give the one date for the other.
    dates = dict(one)
    for key in ("published_parsed", "updated_parsed"):
        parsed = dates.get(key)
        if parsed:
            try:
                return calendar.timegm(parsed) * 1000
            except (ValueError, OverflowError, TypeError):
                continue
    return None
