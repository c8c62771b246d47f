"""From one message of the daemon's to lines of IRC: plain text, as long as a line may be, addressed as people do."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from bot.platforms.base import Outgoing
from bot.platforms.irc_text import harmless, in_pieces, plain_lines

_KEPT = 500
_LEAST_BYTES = 40


class Progress(NamedTuple):
    """How much of a message the network has."""

    said: str
    """The text of the lines that arrived, without spaces."""
    first_id: str
    """The id of the first of them; empty when none has arrived."""


NOTHING = Progress("", "")


class Interrupted:
    """Messages that broke off between two lines: a further attempt goes on where they did, however the rest is cut."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Progress] = OrderedDict()

    def of(self, key: str) -> Progress:
        """How far the message with this idempotency key came."""
        return self._kept.get(key, NOTHING)

    def keep(self, key: str, progress: Progress) -> None:
        """Note that a further line arrived."""
        self._kept[key] = progress
        self._kept.move_to_end(key)
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)

    def forget(self, key: str) -> None:
        """All of it has arrived."""
        self._kept.pop(key, None)


def lines_of(
    outgoing: Outgoing, said: str, addressees: Sequence[str], room: Callable[[], int]
) -> Iterator[tuple[str, str]]:
    """The lines that are left to send after `said` has arrived, each with what of the message it bears. Before the
    first of all stand the nicks of whom it is for. `room` gives the bytes of a line's text; it is asked for each line,
    because it changes with our own name."""
    lines = plain_lines(outgoing.text)
    lines += [f"{one.name}: {one.url}" for one in outgoing.attachments if one.url]
    rest = _after(said, lines or ["…"])
    head = "" if said else _head(rest[0], addressees) if rest else ""
    for line in rest:
        while line:
            room_bytes = max(room(), _LEAST_BYTES)
            # One byte for the space before what looks like a command.
            first = max(room_bytes - len(head.encode()) - 1, _LEAST_BYTES)
            piece = next(in_pieces(line, first, first))
            yield (head + piece if head else harmless(piece)), piece
            line = line[len(piece) :].lstrip(" ")
            head = ""


def without_spaces(text: str) -> str:
    """What of `text` does not depend on where lines are cut."""
    return "".join(text.split())


def _head(first: str, addressees: Sequence[str]) -> str:
    """`ann, bob: `, without those whom the text speaks to by itself; no longer than a line can bear."""
    spoken = first[:200].casefold()
    nicks = [nick for nick in dict.fromkeys(addressees) if nick.casefold() not in spoken]
    return f"{', '.join(nicks[:5])}: " if nicks else ""


def _after(said: str, lines: Sequence[str]) -> list[str]:
    """`lines` behind the text that was said already; all of them when it is not what they begin with."""
    left = list(said)
    left.reverse()
    for number, line in enumerate(lines):
        for place, char in enumerate(line):
            if not left:
                return [one for one in (line[place:].lstrip(" "), *lines[number + 1 :]) if one]
            if char.isspace():
                continue
            if left.pop() != char:
                return list(lines)
    return [] if not left else list(lines)
