"""Diagnostic: one fault in a file that an operator wrote, with its place and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

Severity = Literal["error", "warning"]


class Code(StrEnum):
    """The faults that this floor can find. Closed: scripts and tests rely on the names. Subjects above (BASIC, command
    files) have closed sets of their own under their own prefix."""

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
    SECRET_IN_CLEAR = "settings.secret_in_clear"  # noqa: S105 - a fault, no secret

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
    """A place in a file, both counted from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One fault. An error makes the file unusable; with a warning it works, though perhaps not as meant."""

    file: str
    line: int
    """From 1 on; 0 where it stands in no line that is known."""
    column: int
    code: str
    """A member of a closed set: `Code`, or that of the subject whose file it is."""
    message: str
    """What is wrong and what to do. Never holds a value that could be a secret."""
    severity: Severity = "error"

    @property
    def place(self) -> str:
        """`file:line`, or what stands for it where there is no line, such as a key of the settings."""
        return f"{self.file}:{self.line}" if self.line else self.file

    def __str__(self) -> str:
        column = f":{self.column}" if self.line else ""
        return f"{self.place}{column} {self.code} {self.message}"


class Diagnostics(list[Diagnostic]):
    """The faults of one check, in the order of their places once `in_order` was called."""

    @property
    def errors(self) -> list[Diagnostic]:
        """Those that make the file unusable."""
        return [diagnostic for diagnostic in self if diagnostic.severity == "error"]

    def in_order(self) -> Diagnostics:
        """The same faults sorted by file, line and column, each once."""
        return Diagnostics(sorted(dict.fromkeys(self), key=lambda found: (found.file, found.line, found.column)))

    def __str__(self) -> str:
        return "\n".join(str(diagnostic) for diagnostic in self)
