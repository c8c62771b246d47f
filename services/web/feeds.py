"""Entries of RSS and Atom feeds. Runs in a child process, started by `services.sandbox.parsing`."""

from __future__ import annotations

import calendar
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from io import BytesIO
from typing import Any

from services.patterns import one_line
from services.refs import JsonObject
from services.web.addresses import clean_link
from services.web.content import text_of_html

_MOST_ENTRIES = 200
_TITLE_CHARS = 200
_SUMMARY_CHARS = 300
_LONGEST_TEXT = 20_000
_ROOT = re.compile(rb"<\s*(\w+:)?(rss|feed|rdf)\b", re.IGNORECASE)
_ROOT_WITHIN = 20_000


@dataclass(frozen=True, slots=True)
class Entry:
    """Item of a feed."""

    title: str
    link: str
    """http or https, without tracking parameters; empty if the feed has none."""
    summary: str
    at_ms: int | None
    """Milliseconds since 1970 UTC, published or else last changed; None if the feed has no date."""


class NoFeed(ValueError):
    """The bytes are not a feed."""


def read_feed(body: bytes, content_type: str) -> list[Entry]:
    """Parse at most 200 entries of a feed, in the feed's order and without untitled ones. Raises NoFeed. A hostile
    feed of 1 MiB takes minutes and gigabytes: call it through `services.sandbox.parsing`."""
    import feedparser

    if not _ROOT.search(body[:_ROOT_WITHIN]):
        raise NoFeed("there is neither RSS nor Atom in it")
    headers = {"content-type": content_type}
    try:
        # A stream, because feedparser would take a str or bytes for an address or a file name.
        parsed = feedparser.parse(BytesIO(body), response_headers=headers, sanitize_html=False)
    except Exception as error:
        # Malformed input makes the parser raise exceptions of any kind.
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
    """Text of a field; a field declared as plain text may contain `<b>` literally."""
    is_markup = one.get(f"{key}_detail", {}).get("type") != "text/plain"
    return (text_of_html if is_markup else one_line)(_text(one, key)[:_LONGEST_TEXT], most_chars)


def _text(one: Mapping[str, Any], key: str) -> str:
    value = one.get(key)
    return value if isinstance(value, str) else ""


def _instant(one: Mapping[str, Any]) -> int | None:
    # A plain dict: the parser's own mapping warns when it substitutes one date for the other.
    dates = dict(one)
    for key in ("published_parsed", "updated_parsed"):
        parsed = dates.get(key)
        if parsed:
            try:
                return calendar.timegm(parsed) * 1000
            except (ValueError, OverflowError, TypeError):
                continue
    return None


def feed_to_json(body: bytes, content_type: str) -> JsonObject:
    """`read_feed` with a JSON value as the result."""
    try:
        return {"entries": [asdict(entry) for entry in read_feed(body, content_type)]}
    except NoFeed as error:
        return {"problem": str(error)}


def feed_from_json(data: JsonObject) -> list[Entry]:
    """Entries from a result of `feed_to_json`. Raises NoFeed."""
    if "problem" in data:
        raise NoFeed(data["problem"])
    return [Entry(**entry) for entry in data["entries"]]
