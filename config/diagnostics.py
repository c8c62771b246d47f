"""Diagnostic: an error or warning in an operator's file, with its position and a hint."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

Severity = Literal["error", "warning"]


class Code(StrEnum):
    """Codes for settings, YAML and texts. A closed list: scripts and tests rely on the names. Other kinds of files
    (BASIC, command tools) have their own closed lists and prefixes."""

    UNREADABLE = "settings.unreadable"
    UNKNOWN_KEY = "settings.unknown_key"
    BAD_VALUE = "settings.bad_value"
    MISSING = "settings.missing"
    WRONG_VERSION = "settings.wrong_version"
    AMBIGUOUS_KEY = "settings.ambiguous_key"
    DUPLICATE_NAME = "settings.duplicate_name"
    UNKNOWN_BOT = "settings.unknown_bot"
    UNKNOWN_MODEL = "settings.unknown_model"
    UNKNOWN_CHAT = "settings.unknown_chat"
    SERVES_EVERY_CHAT = "settings.serves_every_chat"
    HAS_NO_EFFECT = "settings.has_no_effect"
    SECRET_IN_CLEAR = "settings.secret_in_clear"  # noqa: S105 - a code, not a secret

    SYNTAX = "yaml.syntax"
    ENCODING = "yaml.encoding"
    BAD_CHARACTER = "yaml.bad_character"
    BAD_KEY = "yaml.bad_key"
    DUPLICATE_KEY = "yaml.duplicate_key"
    ALIAS = "yaml.alias"
    TAG = "yaml.tag"
    NOT_A_MAPPING = "yaml.not_a_mapping"
    TOO_BIG = "yaml.too_big"
    TOO_DEEP = "yaml.too_deep"

    ENV_UNSET = "env.unset"
    ENV_BAD_REFERENCE = "env.bad_reference"
    ENV_BAD_VALUE = "env.bad_value"

    NO_TEXTS = "texts.no_such_language"


class Position(NamedTuple):
    """Position in a file; line and column count from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding in a file. An error makes the file unusable; with a warning the file works, but perhaps not as
    intended."""

    file: str
    line: int
    """From 1; 0 if the line is unknown."""
    column: int
    code: str
    """A member of a closed list: `Code`, or the one for that kind of file."""
    message: str
    """The problem and what to do. Never contains a value that could be a secret."""
    severity: Severity = "error"

    @property
    def place(self) -> str:
        """`file:line`, or without a line only the file or what replaces it, such as a settings key."""
        return f"{self.file}:{self.line}" if self.line else self.file

    def __str__(self) -> str:
        column = f":{self.column}" if self.line else ""
        return f"{self.place}{column} {self.code} {self.message}"


class Diagnostics(list[Diagnostic]):
    """List of the findings of one check, in any order; `in_order` sorts them."""

    @property
    def errors(self) -> list[Diagnostic]:
        """Findings that make the file unusable."""
        return [diagnostic for diagnostic in self if diagnostic.severity == "error"]

    def in_order(self) -> Diagnostics:
        """The findings sorted by file, line and column, without duplicates."""
        return Diagnostics(sorted(dict.fromkeys(self), key=lambda found: (found.file, found.line, found.column)))

    def __str__(self) -> str:
        return "\n".join(str(diagnostic) for diagnostic in self)


def did_you_mean(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Suffix of a message that suggests the closest of `known`, ignoring case; empty if none is close. `cutoff`:
    the least similarity, from 0 to 1."""
    by_word = {one.lower(): one for one in sorted(known)}
    close = difflib.get_close_matches(word.lower(), by_word, n=1, cutoff=cutoff)
    return f"; did you mean {by_word[close[0]]!r}?" if close else ""
