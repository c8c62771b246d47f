"""Main text of a web page. Runs in a child process, started by `services.sandbox.parsing`."""

from __future__ import annotations

import re
from itertools import chain

from services.patterns import one_line
from services.refs import JsonObject
from services.web.content import text_of_html

_MOST_CHARS = 100_000
_NAME_CHARS = 200
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def page_to_json(body: bytes, content_type: str) -> JsonObject:
    """`title`, `site`, `date` (ISO) and `text` of an HTML page or a plain text, each empty if unknown. A hostile page
    may take any time and memory: call it through `services.sandbox.parsing`."""
    document = _decoded(body, content_type)
    if content_type.lower().startswith("text/plain"):
        text = document.decode("utf-8", "replace") if isinstance(document, bytes) else document
        return {"title": "", "site": "", "date": "", "text": _lines(text)}
    from trafilatura import bare_extraction

    page = bare_extraction(document, with_metadata=True, include_comments=False)
    found = {name: _name(page, name) for name in ("title", "sitename", "date")}
    text = _lines(getattr(page, "text", None) or "")
    if not text:
        # Pages without an article, such as lists and forms.
        markup = document.decode("utf-8", "replace") if isinstance(document, bytes) else document
        text = text_of_html(markup, _MOST_CHARS)
    date = found["date"] if _DATE.fullmatch(found["date"]) else ""
    return {"title": found["title"], "site": found["sitename"], "date": date, "text": text}


def _decoded(body: bytes, content_type: str) -> bytes | str:
    """The text in the encoding of the header; the bytes if the header names none, or an unknown one."""
    named = _CHARSET.search(content_type)
    if named is None:
        return body
    try:
        return body.decode(named[1], "replace")
    except LookupError:
        return body


def _name(page: object, name: str) -> str:
    value = getattr(page, name, None)
    return one_line(value, _NAME_CHARS) if isinstance(value, str) else ""


def _lines(text: str) -> str:
    """`text` without control characters and with single empty lines, at most 100,000 characters."""
    lines = (one_line(line, _MOST_CHARS) for line in text[: 2 * _MOST_CHARS].splitlines())
    kept: list[str] = []
    for line in chain(lines, ("",)):
        if line or (kept and kept[-1]):
            kept.append(line)
    return "\n".join(kept).strip()[:_MOST_CHARS]
