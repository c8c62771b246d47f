"""A command line is split into words, and nothing else is done with it: what would need a shell is refused."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from services.visible_text import is_visible

MOST_CHARS = 1000
_QUOTES = "'\""
_OF_A_SHELL = frozenset(";&|<>$`*?[](){}~#!\\")
_OF_A_SHELL_IN_DOUBLE_QUOTES = frozenset("$`\\!")


class LineProblem(StrEnum):
    """Why a line is no command; `shell.problem.…` says it."""

    BLANK = "blank"
    TOO_LONG = "too_long"
    UNSEEN = "unseen"
    SHELL = "shell"
    QUOTE = "quote"


class NoCommand(Exception):
    """The line cannot be run; `values` are for the sentence that says so."""

    def __init__(self, problem: LineProblem, **values: object) -> None:
        super().__init__(problem.value)
        self.problem = problem
        self.values = values


@dataclass(frozen=True, slots=True)
class _Piece:
    text: str
    end: int


def words_of(line: str) -> tuple[str, ...]:
    """The words of `line`. Spaces part them; a word may stand in single or double quotes, whole. Raises NoCommand for
    a character that a shell would read, unless it is in quotes in which a shell would leave it alone."""
    if len(line) > MOST_CHARS:
        raise NoCommand(LineProblem.TOO_LONG, most=MOST_CHARS)
    if not is_visible(line):
        raise NoCommand(LineProblem.UNSEEN)
    words: list[str] = []
    at = 0
    while at < len(line):
        if line[at] == " ":
            at += 1
            continue
        piece = _quoted(line, at) if line[at] in _QUOTES else _plain(line, at)
        words.append(piece.text)
        at = piece.end
    if not words:
        raise NoCommand(LineProblem.BLANK)
    return tuple(words)


def _quoted(line: str, start: int) -> _Piece:
    quote = line[start]
    end = line.find(quote, start + 1)
    if end < 0 or line[end + 1 : end + 2] not in ("", " "):
        raise NoCommand(LineProblem.QUOTE)
    inside = line[start + 1 : end]
    if quote == '"':
        _refuse(inside, _OF_A_SHELL_IN_DOUBLE_QUOTES)
    return _Piece(inside, end + 1)


def _plain(line: str, start: int) -> _Piece:
    end = line.find(" ", start)
    text = line[start:] if end < 0 else line[start:end]
    _refuse(text, _OF_A_SHELL)
    if any(one in text for one in _QUOTES):
        raise NoCommand(LineProblem.QUOTE)
    return _Piece(text, start + len(text))


def _refuse(text: str, signs: frozenset[str]) -> None:
    sign = next((one for one in text if one in signs), None)
    if sign is not None:
        raise NoCommand(LineProblem.SHELL, sign=sign)
