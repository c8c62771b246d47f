"""Texts of Mattermost: Markdown that notifies nobody, and plain text in Markdown."""

from __future__ import annotations

import re

_INVISIBLE = "\u200b"
"""Inserted where the server or a client would read a mention or formatting; the server reads the text behind
backslashes and character references."""
_URL = re.compile(r"(https?://[^\s<>]*[^\s<>.,;:!?()\[\]{}'\"*_~`])")
_CODE = re.compile(r"(```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]+`)", re.DOTALL)
_MENTION = r"(?<=(?<![A-Za-z0-9])@)(?=\w)"
_IN_TEXT = re.compile(rf"{_MENTION}|(?<=@)(?=&)|(?<=&)(?=#0*64;|#x0*40;|commat;)", re.IGNORECASE)
_IN_CODE = re.compile(r"(?<=@)(?=all|channel|here)", re.IGNORECASE)
_IN_PLAIN = re.compile(
    rf"{_MENTION}|(?<=&)(?=#?\w+;)|(?<=:)(?=[\w+-]+:)|(?<=<)(?=[A-Za-z/!?])|^(?=[ \t]*(?:[#>+=-]|\d+[.)])|[ ]{{4}}|\t)",
    re.MULTILINE,
)
_MARK = re.compile(r"([\\`*_~|\[\]])")
_IMAGE = re.compile(r"!(?=\[)")


def message_of(text: str, *, markdown: bool) -> str:
    """`text`, Markdown or to be shown exactly, for a post. It mentions nobody, and shows no images: clients would
    fetch them."""
    parts = _CODE.split(text) if markdown else [text]
    return "".join(
        _IN_CODE.sub(_INVISIBLE, part) if number % 2 else _outside(part, markdown) for number, part in enumerate(parts)
    )


def _outside(text: str, markdown: bool) -> str:
    shown = []
    for number, part in enumerate(_URL.split(_IMAGE.sub("", text) if markdown else text)):
        if number % 2:
            part = re.sub(r"(?<![A-Za-z0-9])@", "%40", part)
        elif markdown:
            part = _IN_TEXT.sub(_INVISIBLE, part)
        else:
            part = _MARK.sub(r"\\\1", _IN_PLAIN.sub(_INVISIBLE, part))
        shown.append(part)
    return "".join(shown)
