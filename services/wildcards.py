"""Patterns for paths: `*` and `?` within a name, `**` for any number of folders. Time grows with pattern times path,
whatever the pattern."""

from __future__ import annotations

from collections.abc import Sequence

ANY_FOLDERS = "**"


def path_matches(pattern: Sequence[str], path: Sequence[str]) -> bool:
    """Whether the names of `path` fit those of `pattern`, one by one."""
    places = _skipped(pattern, {0})
    for name in path:
        after: set[int] = set()
        for place in places:
            if place == len(pattern):
                continue
            if pattern[place] == ANY_FOLDERS:
                after.add(place)
            elif name_matches(pattern[place], name):
                after.add(place + 1)
        places = _skipped(pattern, after)
    return len(pattern) in places


def name_matches(pattern: str, name: str) -> bool:
    """Whether one name fits: `*` is any characters or none, `?` is one, and all else is itself."""
    at = here = 0
    star, resume = -1, 0
    while here < len(name):
        if at < len(pattern) and pattern[at] == "*":
            star, resume = at, here
            at += 1
        elif at < len(pattern) and pattern[at] in ("?", name[here]):
            at += 1
            here += 1
        elif star >= 0:  # the last star takes one more: the ones before need not be tried again
            resume += 1
            at, here = star + 1, resume
        else:
            return False
    return not pattern[at:].strip("*")


def _skipped(pattern: Sequence[str], places: set[int]) -> set[int]:
    """`places` and those behind every `**` there, which may stand for no folder at all."""
    found = set(places)
    for place in places:
        while place < len(pattern) and pattern[place] == ANY_FOLDERS:
            place += 1
            found.add(place)
    return found
