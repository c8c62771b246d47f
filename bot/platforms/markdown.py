"""Markdown in other formats: plain text for networks without formatting, and simple HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from urllib.parse import urlsplit

_FENCE = re.compile(r"\s*(?:```|~~~)")
_HEADING = re.compile(r"#{1,6}\s+(?=\S)")
_HEADING_END = re.compile(r"(?<=\s)#+$")
_TABLE_RULE = re.compile(r"\|?(\s*:?-+:?\s*\|)+(\s*:?-+:?)?")
_SPAN = re.compile(
    r"(?<!`)(?P<ticks>`+)(?!`)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)"
    r"|(?P<image>!)\[(?P<about>[^\]\n]*)\]\(\s*<?(?P<source>[^\s)>]+)>?[^)\n]*\)"
    r"|\[(?P<words>[^\]\n]+)\]\(\s*<?(?P<url>[^\s)>]+)>?[^)\n]*\)"
    r"|<(?P<bare>https?://[^\s<>|]+)>"
    # Between ASCII letters and digits it is arithmetic; languages without spaces have it between letters.
    r"|(?<![A-Za-z0-9_*\\])(?P<star>\*{1,3})(?=[^\s*])(?P<starred>.+?)(?<=[^\s*\\])(?P=star)(?![A-Za-z0-9_*])"
    r"|(?<![\w\\])(?P<bar>_{1,3})(?=[^\s_])(?P<barred>.+?)(?<=[^\s_\\])(?P=bar)(?!\w)"
    r"|(?<!~)~~(?=\S)(?P<struck>.+?)(?<=\S)~~(?!~)"
    r"|\\(?P<escaped>[\\`*_{}\[\]()#+.!~|>-])"
)
_URL = re.compile(r"https?://[!-~]*[A-Za-z0-9/&=#%+$-]")
# In URLs, replaced by noncharacters while emphasis is looked for.
_HIDDEN = str.maketrans("*_~", "\ufdd0\ufdd1\ufdd2")
_SHOWN = str.maketrans("\ufdd0\ufdd1\ufdd2", "*_~")
_KINDS = {1: "i", 2: "b", 3: "ib"}
"""Emphasis by number of marks, from the inside: italic, bold; `s` is struck."""


class Format:
    """Markdown in another format; this class has plain text. The methods that subclasses override get texts of Markdown
    without its marks."""

    def lines(self, markdown: str) -> Iterator[str]:
        """A text, perhaps Markdown, by lines; a block of code is one item. Marks of lists are retained, and rules of
        tables removed. Image URLs are reduced to the host: clients may fetch them automatically, which would leak data
        in the URL to its author."""
        block: list[str] | None = None
        # The last fence closes an open block.
        for line in (*markdown.split("\n"), "```"):
            if block is None and _FENCE.match(line) and "`" not in line.strip().lstrip("`"):
                block = []
            elif block is not None and _FENCE.match(line):
                if any(one.strip() for one in block):
                    yield self.block("\n".join(block))
                block = None
            elif block is not None:
                block.append(line)
            elif heading := _HEADING.match(line):
                yield self.heading(self.inline(_HEADING_END.sub("", line[heading.end() :].rstrip()).rstrip()))
            elif not _TABLE_RULE.fullmatch(line.strip()):
                yield self.inline(line)

    def inline(self, markdown: str) -> str:
        """A text without blocks."""
        return self._inline(_URL.sub(lambda found: found[0].translate(_HIDDEN), markdown))

    def text(self, text: str) -> str:
        """Text without formatting."""
        return text

    def code(self, code: str) -> str:
        """Code in a line."""
        return self.text(code)

    def block(self, code: str) -> str:
        """Lines of code."""
        return self.text(code)

    def link(self, words: str, url: str) -> str:
        """A link; `words` are Markdown, empty for none."""
        return f"{self.inline(words)} ({url})" if words not in ("", url) else url

    def emphasis(self, words: str, kinds: str, *, is_inside_word: bool) -> str:
        """`words`, already in this format, in each of `kinds`: `i`, `b`, `s`."""
        return words

    def heading(self, words: str) -> str:
        """A heading; `words` are already in this format."""
        return self.emphasis(words, "b", is_inside_word=False)

    def _inline(self, markdown: str) -> str:
        pieces: list[str] = []
        at = 0
        for found in _SPAN.finditer(markdown):
            pieces += [self.text(markdown[at : found.start()].translate(_SHOWN)), self._span(found)]
            at = found.end()
        return "".join([*pieces, self.text(markdown[at:].translate(_SHOWN))])

    def _span(self, found: re.Match[str]) -> str:
        parts = {name: part.translate(_SHOWN) for name, part in found.groupdict("").items()}
        if code := parts["code"]:
            return self.code(code.strip() or code)
        if parts["image"]:
            return self.text(_image(parts["about"], parts["source"]))
        if url := parts["url"] or parts["bare"]:
            return self.link(parts["words"], url)
        if inside := found["starred"] or found["barred"] or found["struck"]:
            text, (start, end) = found.string, found.span()
            is_inside_word = any(char.isalnum() for char in (*text[max(start - 1, 0) : start], *text[end : end + 1]))
            kinds = "s" if found["struck"] else _KINDS[len(found["star"] or found["bar"])]
            return self.emphasis(self._inline(inside), kinds, is_inside_word=is_inside_word)
        return self.text(parts["escaped"])


class _Html(Format):
    def text(self, text: str) -> str:
        return escape(text, quote=False)

    def code(self, code: str) -> str:
        return f"<code>{self.text(code)}</code>"

    def block(self, code: str) -> str:
        return f"<pre>{self.text(code)}</pre>"

    def link(self, words: str, url: str) -> str:
        if url.startswith(("https://", "http://")):
            return f'<a href="{escape(url)}">{self.inline(words) or self.text(url)}</a>'
        return f"[{self.inline(words)}]({self.text(url)})"

    def emphasis(self, words: str, kinds: str, *, is_inside_word: bool) -> str:
        for kind in kinds:
            words = f"<{kind}>{words}</{kind}>"
        return words


def plain_lines(text: str) -> Iterator[str]:
    """`text`, perhaps Markdown, as lines of plain text. See `Format.lines`."""
    for item in Format().lines(text):
        yield from item.split("\n")


def html_of(text: str) -> str:
    """`text`, perhaps Markdown, as HTML with properly nested tags b, i, s, a, code and pre, and LF as line ends. See
    `Format.lines`."""
    return "\n".join(_Html().lines(text))


def _image(words: str, address: str) -> str:
    try:
        host = urlsplit(address).hostname
    except ValueError:
        host = None
    return f"{words or 'image'} (image at {host})" if host else f"{words or 'image'} (image)"
