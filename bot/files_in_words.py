"""Files for networks that take none: a link as a link, a short text as its words, and of all else what it is."""

from __future__ import annotations

from collections.abc import Sequence

from config.texts import Phrases
from function_calls.context import Attachment
from services.data_urls import data_in
from services.visible_text import visible, visible_line

_SHOWN_CHARS = 3000
_FENCE = "```"


def files_in_words(files: Sequence[Attachment], texts: Phrases) -> str:
    """What is said of `files`, one below the other."""
    return "\n".join(_in_words(file, texts) for file in files)


def _in_words(file: Attachment, texts: Phrases) -> str:
    name = visible_line(file.name)
    if file.url and not file.url.startswith("data:"):
        return texts.say("delivery.file_link", name=name, url=file.url)
    content = data_in(file.url) if file.url else None
    text = _text_of(content) if file.media_type.startswith("text/") and content is not None else None
    if text is None:
        size = len(content) if content is not None else file.size_bytes or 0
        return texts.say("delivery.file_unshown", name=name, kilobytes=f"{size / 1000:.1f}")
    shown = visible(text.strip("\n"))
    shown = shown if len(shown) <= _SHOWN_CHARS else f"{shown[:_SHOWN_CHARS]}…"
    return f"{name}:\n{shown}" if _FENCE in shown else f"{name}:\n{_FENCE}\n{shown}\n{_FENCE}"


def _text_of(content: bytes) -> str | None:
    try:
        return None if b"\0" in content else content.decode()
    except UnicodeDecodeError:
        return None
