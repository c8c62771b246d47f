"""Which reminders are meant: by their numbers, or by words of what they say."""

from __future__ import annotations

import re
from collections.abc import Sequence

from services.lazy_patterns import lazy_pattern
from services.timer import Timer

_A_NUMBER = r"(?:#|no\.?|number|reminders?|第)?\s*#?\s*\d{1,9}\s*(?:号|条|个|项)?"
_BETWEEN = r"(?:\s*(?:,|，|、|&|\+|\band\b|和|跟|与)\s*|\s+)"
_NUMBERS = lazy_pattern(rf"\s*{_A_NUMBER}(?:{_BETWEEN}{_A_NUMBER})*\s*", re.IGNORECASE)
_ALL = frozenset(
    """all|all of them|all of mine|all mine|everything|every one|all reminders|all my reminders|my reminders
    |all of my reminders|全部|所有|全部提醒|所有提醒|我的全部提醒|我的所有提醒|全都""".replace("\n", "")
    .replace("  ", "")
    .split("|")
)
_NOISE = lazy_pattern(
    r"^(?:(?:the|my|that|a|our)\s+)+|^(?:reminders?|one)\s+(?:(?:about|for|to|of)\s+)?"
    r"|\s+(?:one|reminders?|thing)$|^(?:关于|那个|那条|我的|这个|这条)|(?:的?提醒|那个|那条|的)$",
    re.IGNORECASE,
)
_EDGES = " \t\"'“”「」.。!！"


class NoSuchReminder(LookupError):
    """None of the reminders is meant."""


class SeveralReminders(LookupError):
    """More than one of them may be meant: `candidates`."""

    def __init__(self, candidates: Sequence[Timer]) -> None:
        super().__init__(len(candidates))
        self.candidates = tuple(candidates)


def means_all(which: str) -> bool:
    """Whether `which` asks for every one."""
    return " ".join(which.split()).strip(_EDGES).casefold() in _ALL


def numbers_in(which: str) -> list[int]:
    """The numbers that `which` lists, each once; none where it is anything but numbers."""
    if not _NUMBERS.fullmatch(which):
        return []
    return list(dict.fromkeys(int(digits) for digits in re.findall(r"\d+", which)))


def described(timers: Sequence[Timer], words: str) -> Timer:
    """The one of `timers` that `words` describe: all of what it says, else a part of it, else every word somewhere in
    it. Raises NoSuchReminder and SeveralReminders."""
    wanted = _bare(words)
    if not wanted:
        raise NoSuchReminder(words)
    titles = [(timer, " ".join(timer.title.split()).casefold()) for timer in timers]
    found = [timer for timer, title in titles if title == wanted]
    found = found or [timer for timer, title in titles if wanted in title]
    found = found or [timer for timer, title in titles if all(word in title for word in wanted.split())]
    if not found:
        raise NoSuchReminder(words)
    if len(found) > 1:
        raise SeveralReminders(found)
    return found[0]


def only(timers: Sequence[Timer]) -> Timer:
    """The one that is meant. Raises SeveralReminders."""
    if len(timers) > 1:
        raise SeveralReminders(timers)
    return timers[0]


def _bare(words: str) -> str:
    """Folded, without the words around a description: `the dentist one` is `dentist`."""
    bare = " ".join(words.split()).strip(_EDGES).casefold()
    while (shorter := _NOISE.sub("", bare).strip(_EDGES)) != bare and shorter:
        bare = shorter
    return bare
