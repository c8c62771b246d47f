"""Markdown as plain text, for networks without formatting."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

_FENCE = re.compile(r"\s*(?:```|~~~)")
_HEADING = re.compile(r"#{1,6}\s+(?=\S)")
_HEADING_END = re.compile(r"(?<=\s)#+$")
_IMAGE = re.compile(r"!\[([^\]\n]*)\]\(\s*<?([^\s)>]+)>?[^)\n]*\)")
_LINK = re.compile(r"\[([^\]\n]+)\]\(\s*<?([^\s)>]+)>?[^)\n]*\)")
_BARE_LINK = re.compile(r"<(https?://[^\s<>|]+)>")
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_MARKS = (
    # Between ASCII letters and digits it is arithmetic; languages without spaces have it between letters.
    re.compile(r"(?<![A-Za-z0-9_*\\])(\*\*\*|\*\*|\*)(?=[^\s*])(.+?)(?<=[^\s*\\])\1(?![A-Za-z0-9_*])"),
    re.compile(r"(?<![\w\\])(___|__|_)(?=[^\s_])(.+?)(?<=[^\s_\\])\1(?!\w)"),
    re.compile(r"(?<!~)(~~)(?=\S)(.+?)(?<=\S)\1(?!~)"),
)
_ESCAPED = re.compile(r"\\([\\`*_{}\[\]()#+.!~|>-])")
_TABLE_RULE = re.compile(r"\|?(\s*:?-+:?\s*\|)+(\s*:?-+:?)?")


def plain_lines(text: str) -> Iterator[str]:
    """`text`, perhaps Markdown, as lines of plain text: without the marks of headings, emphasis, code and tables, with
    those of lists. Image URLs are reduced to the host: clients may fetch them automatically, which would leak data in
    the URL to its author."""
    in_code = False
    for line in text.split("\n"):
        if _FENCE.match(line) and (in_code or "`" not in line.strip().lstrip("`")):
            in_code = not in_code
        elif in_code:
            yield line
        elif not _TABLE_RULE.fullmatch(line.strip()):
            yield _plain(line)


def _plain(line: str) -> str:
    heading = _HEADING.match(line)
    if heading:
        line = _HEADING_END.sub("", line[heading.end() :].rstrip()).rstrip()
    pieces: list[str] = []
    at = 0
    # Text in backquotes is left as it is.
    for code in _CODE.finditer(line):
        pieces += [_without_marks(line[at : code.start()]), code[2].strip() or code[0]]
        at = code.end()
    return "".join([*pieces, _without_marks(line[at:])])


def _without_marks(text: str) -> str:
    text = _IMAGE.sub(lambda found: _image(found[1], found[2]), text)
    text = _LINK.sub(lambda found: found[1] if found[1] == found[2] else f"{found[1]} ({found[2]})", text)
    text = _BARE_LINK.sub(r"\1", text)
    for marks in _MARKS:
        text = marks.sub(r"\2", text)
    return _ESCAPED.sub(r"\1", text)


def _image(words: str, address: str) -> str:
    try:
        host = urlsplit(address).hostname
    except ValueError:
        host = None
    return f"{words or 'image'} (image at {host})" if host else f"{words or 'image'} (image)"
