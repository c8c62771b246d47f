"""Markdown as plain text, for networks without formatting, and as simple HTML."""

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
_URL = re.compile(r"https?://[!-~]*[A-Za-z0-9/&=#%+$-]")
# In URLs, replaced by noncharacters while the marks of emphasis are removed.
_HIDDEN = str.maketrans("*_~", "\ufdd0\ufdd1\ufdd2")
_SHOWN = str.maketrans("\ufdd0\ufdd1\ufdd2", "*_~")
_ESCAPED = re.compile(r"\\([\\`*_{}\[\]()#+.!~|>-])")
_STYLED = re.compile(
    r"(?<!`)(?P<ticks>`+)(?!`)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)"
    r"|(?P<image>!\[[^\]\n]*\]\([^)\n]*\))"
    r"|\[(?P<words>[^\]\n]+)\]\(\s*<?(?P<url>https?://[^\s)>]+)>?[^)\n]*\)"
    r"|<(?P<bare>https?://[^\s<>|]+)>"
    r"|(?<![A-Za-z0-9_*\\])(?P<star>\*{1,3})(?=[^\s*])(?P<starred>.+?)(?<=[^\s*\\])(?P=star)(?![A-Za-z0-9_*])"
    r"|(?<![\w\\])(?P<bar>_{1,3})(?=[^\s_])(?P<barred>.+?)(?<=[^\s_\\])(?P=bar)(?!\w)"
    r"|(?<!~)~~(?=\S)(?P<struck>.+?)(?<=\S)~~(?!~)"
    r"|\\(?P<escaped>[\\`*_{}\[\]()#+.!~|>-])"
)
_TAGS = {1: ("<i>", "</i>"), 2: ("<b>", "</b>"), 3: ("<b><i>", "</i></b>")}
"""By number of marks."""
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
    text = _with_hidden_marks(_BARE_LINK.sub(r"\1", text))
    for marks in _MARKS:
        text = marks.sub(r"\2", text)
    return _ESCAPED.sub(r"\1", text).translate(_SHOWN)


def _with_hidden_marks(text: str) -> str:
    return _URL.sub(lambda found: found[0].translate(_HIDDEN), text)


def _image(words: str, address: str) -> str:
    try:
        host = urlsplit(address).hostname
    except ValueError:
        host = None
    return f"{words or 'image'} (image at {host})" if host else f"{words or 'image'} (image)"


def html_of(text: str) -> str:
    """`text`, perhaps Markdown, as HTML with properly nested tags b, i, s, a, code and pre, and LF as line ends. Image
    URLs are reduced to the host, as in `plain_lines`."""
    lines: list[str] = []
    block: int | None = None
    # The last fence closes an open block.
    for line in (*text.split("\n"), "```"):
        if block is None and _FENCE.match(line) and "`" not in line.strip().lstrip("`"):
            block = len(lines)
        elif block is not None and _FENCE.match(line):
            content = "\n".join(lines[block:])
            lines[block:] = [f"<pre>{content}</pre>"] if content.strip() else []
            block = None
        elif block is not None:
            lines.append(_escaped(line))
        elif heading := _HEADING.match(line):
            lines.append(f"<b>{_styled(_HEADING_END.sub('', line[heading.end() :].rstrip()).rstrip())}</b>")
        elif not _TABLE_RULE.fullmatch(line.strip()):
            lines.append(_styled(line))
    return "\n".join(lines).translate(_SHOWN)


def _escaped(text: str) -> str:
    return escape(text, quote=False)


def _styled(text: str) -> str:
    text = _with_hidden_marks(text)
    pieces: list[str] = []
    at = 0
    for found in _STYLED.finditer(text):
        pieces += [_escaped(text[at : found.start()]), _tagged(found)]
        at = found.end()
    return "".join([*pieces, _escaped(text[at:])])


def _tagged(found: re.Match[str]) -> str:
    if code := found["code"]:
        return f"<code>{_escaped(code.strip() or code)}</code>"
    if image := found["image"]:
        return _escaped(_without_marks(image))
    if url := found["url"] or found["bare"]:
        return f'<a href="{escape(url)}">{_styled(found["words"] or "") or _escaped(url)}</a>'
    if marks := found["star"] or found["bar"] or found["struck"]:
        opening, closing = ("<s>", "</s>") if found["struck"] else _TAGS[len(marks)]
        return f"{opening}{_styled(found['starred'] or found['barred'] or marks)}{closing}"
    return _escaped(found["escaped"])
