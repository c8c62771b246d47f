"""Text conversion for IRC: formatting codes, CTCP, Markdown, and splitting into lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import regex

from bot.platforms.base import Outgoing
from bot.platforms.markdown import plain_lines

_CTCP = "\x01"
_CODES = re.compile(
    "\x03(?:[0-9]{1,2}(?:,[0-9]{1,2})?)?|\x04(?:[0-9A-Fa-f]{6}(?:,[0-9A-Fa-f]{6})?)?|[\x02\x0f\x11\x16\x1d\x1e\x1f]"
)
# Formatting, CTCP and other control characters; line breaks are handled before.
_UNSENDABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\ud800-\udfff]")
_LINE_ENDS = re.compile("\r\n|[\r\n\x0b\x0c\x85\u2028\u2029]")
_GRAPHEME = regex.compile(r"\X")
# Prefixes that other bots and clients interpret as a command at the start of a line.
_LIKE_A_COMMAND = re.compile(r"[/!.~?%$&+;,@\\-][^\W\d_]")


class Ctcp(NamedTuple):
    """A CTCP request or reply between clients, inside a message."""

    command: str
    """In upper case."""
    text: str


def ctcp(text: str) -> Ctcp | None:
    """The CTCP in the text of a PRIVMSG or NOTICE; None for plain text."""
    if not text.startswith(_CTCP):
        return None
    command, _, rest = text[1:].partition(_CTCP)[0].partition(" ")
    return Ctcp(command.upper(), rest)


def ctcp_answer(command: str, text: str) -> str:
    """The text of a NOTICE that answers a CTCP, without unprintable characters."""
    return f"{_CTCP}{command} {''.join(char for char in text if char.isprintable())}{_CTCP}"


def without_codes(text: str) -> str:
    """`text` without IRC's control codes for colours and formatting."""
    return _CODES.sub("", text)


def sendable_lines(text: str, *, markdown: bool) -> list[str]:
    """`text` as lines of plain text without empty ones."""
    text = _CODES.sub("", _LINE_ENDS.sub("\n", text)).replace("\t", "    ")
    text = _UNSENDABLE.sub("\ufffd", text)
    return [line.rstrip() for line in (plain_lines(text) if markdown else text.split("\n")) if line.strip()]


def harmless(line: str) -> str:
    """`line` with a space in front if it looks like a command of other bots or clients."""
    return f" {line}" if _LIKE_A_COMMAND.match(line) else line


def in_pieces(line: str, room: int) -> Iterator[str]:
    """`line` in pieces of at most `room` bytes of UTF-8. Cut at spaces if that leaves a piece of at least half the
    room, and never inside a grapheme, unless one grapheme is too long."""
    while len(line.encode("utf-8", "replace")) > room:
        cut = _cut(line, max(room, 4))
        yield line[:cut].rstrip(" ") or line[:cut]
        line = line[cut:].lstrip(" ")
    if line:
        yield line


def _cut(line: str, room: int) -> int:
    """Number of code points that fit into `room` bytes, up to a good break."""
    used = end = 0
    space = 0
    for found in _GRAPHEME.finditer(line):
        size = len(found[0].encode("utf-8", "replace"))
        if used + size > room:
            break
        used, end = used + size, found.end()
        if found[0] == " " and used * 2 > room:
            space = end
    # A space right after the last piece that fits is a good break too.
    if line[end : end + 1] == " ":
        return end
    if space or end:
        return space or end
    return len(line.encode("utf-8", "replace")[:room].decode("utf-8", "ignore"))


_LEAST_BYTES = 40


class Progress(NamedTuple):
    """Progress of a message on the network."""

    sent_text: str
    """The text of the lines that arrived, without spaces."""
    first_id: str
    """Native id of the first of them; empty if none has arrived."""


NOTHING = Progress("", "")


def lines_of(
    outgoing: Outgoing, sent_text: str, addressees: Sequence[str], room: Callable[[], int]
) -> Iterator[tuple[str, str]]:
    """The lines left to send after `sent_text`, each with its part of the message. The first line of all begins with
    the nicks of the addressees. `room` returns the bytes of text per line; it is called for each line, because it
    depends on the bot's nick."""
    lines = sendable_lines(outgoing.text, markdown=outgoing.markdown)
    lines += [f"{one.name}: {one.url}" for one in outgoing.attachments if one.url]
    rest = _after(sent_text, lines or ["…"])
    head = "" if sent_text else _head(rest[0], addressees) if rest else ""
    for line in rest:
        while line:
            # One byte is reserved for the space in front of a command-like text.
            room_bytes = max(room() - len(head.encode()) - 1, _LEAST_BYTES)
            piece = next(in_pieces(line, room_bytes))
            yield (head + piece if head else harmless(piece)), piece
            line = line[len(piece) :].lstrip(" ")
            head = ""


def without_spaces(text: str) -> str:
    """`text` without white space, for comparisons independent of line splitting."""
    return "".join(text.split())


def _head(first: str, addressees: Sequence[str]) -> str:
    """`ann, bob: `, without nicks in the text; at most five."""
    folded = first[:200].casefold()
    nicks = [nick for nick in dict.fromkeys(addressees) if nick.casefold() not in folded]
    return f"{', '.join(nicks[:5])}: " if nicks else ""


def _after(sent_text: str, lines: Sequence[str]) -> list[str]:
    """`lines` after the text that has been sent; all of them if they do not begin with it."""
    rest = list(sent_text)
    rest.reverse()
    for number, line in enumerate(lines):
        for place, char in enumerate(line):
            if not rest:
                return [one for one in (line[place:].lstrip(" "), *lines[number + 1 :]) if one]
            if char.isspace():
                continue
            if rest.pop() != char:
                return list(lines)
    return [] if not rest else list(lines)
