"""Markdown as plain text, for networks without formatting."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
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


_QUOTE = re.compile(r">\s?")
_TAGS = {"***": ("<strong><em>", "</em></strong>"), "**": ("<strong>", "</strong>"), "*": ("<em>", "</em>")}
_TAGS |= {"___": _TAGS["***"], "__": _TAGS["**"], "_": _TAGS["*"], "~~": ("<del>", "</del>")}
_SAFE_SCHEMES = ("http://", "https://", "mailto:")


def html(text: str) -> str:
    """`text`, perhaps Markdown, as HTML with the tags a, blockquote, br, code, del, em, pre and strong, and links to
    the web and to mail addresses. Lists and tables remain as text. Images are treated as in `plain_lines`."""
    out = ""
    in_code = False
    for line in text.replace("\0", "").split("\n"):
        if _FENCE.match(line) and (in_code or "`" not in line.strip().lstrip("`")):
            out = out.removesuffix("\n" if in_code else "<br>") + ("</code></pre>" if in_code else "<pre><code>")
            in_code = not in_code
        elif in_code:
            out += escape(line) + "\n"
        elif not _TABLE_RULE.fullmatch(line.strip()):
            out += _html_line(line)
    return out.removesuffix("<br>") + ("</code></pre>" if in_code else "")


def _html_line(line: str) -> str:
    heading, quote = _HEADING.match(line), _QUOTE.match(line)
    if heading:
        return f"<strong>{_spans(_HEADING_END.sub('', line[heading.end() :].rstrip()).rstrip())}</strong><br>"
    if quote:
        return f"<blockquote>{_spans(line[quote.end() :])}</blockquote>"
    return _spans(line) + "<br>"


def _spans(text: str) -> str:
    """A line as HTML. Code and links are replaced by numbers between NULs until the marks have been converted."""
    kept: list[str] = []

    def keep(markup: str) -> str:
        kept.append(markup)
        return f"\0{len(kept) - 1}\0"

    def link(words: str, address: str) -> str:
        if not address.lower().startswith(_SAFE_SCHEMES):
            return f"{words} ({address})"
        return keep(f'<a href="{escape(address)}">') + words + keep("</a>")

    text = _CODE.sub(lambda found: keep(f"<code>{escape(found[2].strip() or found[0])}</code>"), text)
    text = _IMAGE.sub(lambda found: _image(found[1], found[2]), text)
    text = _LINK.sub(lambda found: link(found[1], found[2]), text)
    text = _BARE_LINK.sub(lambda found: keep(f'<a href="{escape(found[1])}">{escape(found[1])}</a>'), text)
    text = _ESCAPED.sub(lambda found: keep(escape(found[1])), text)
    text = escape(text)
    for marks in _MARKS:
        text = marks.sub(lambda found: found[2].join(_TAGS[found[1]]), text)
    return re.sub("\0([0-9]+)\0", lambda found: kept[int(found[1])], text)
