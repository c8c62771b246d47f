"""What language functions may know of the outside, limits of one run, and the error that was caught."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from random import Random
from types import MappingProxyType
from typing import NamedTuple, Protocol

from function_calls.basic.codes import RunCode, RunError


class World(Protocol):
    """Where and when a script runs."""

    def now(self) -> datetime:
        """The moment, aware, in the time zone of the chat."""

    @property
    def random(self) -> Random:
        """Chance: the run's own, so that RANDOMIZE of one script means nothing to another."""

    def unique(self) -> str:
        """A new id, as UUIDs are written."""

    @property
    def language(self) -> str:
        """That of the chat: `en`, `zh`."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one run. Its time is up to whoever lets it run."""

    steps: int = 1_000_000
    """Instructions; what makes or walks something large counts as several."""
    memory_bytes: int = 16 * 1024 * 1024
    """All its values together, each counted where it stands, as a stored state has them. What is made in between may
    go an eighth above it."""
    depth: int = 64
    """Calls of SUBs and FUNCTIONs within one another, and GOSUBs likewise."""


ERROR_NAMES: Mapping[str, str] = MappingProxyType(
    {"error": "error", "err": "err", "error_message": "error_message", "errormessage": "error_message"}
)
"""The names that stand for something about the last error, and for what."""
ERROR_MEMBERS: Mapping[str, str] = MappingProxyType(
    {
        "number": "err",
        "code": "err",
        "description": "error_message",
        "message": "error_message",
        "text": "error_message",
    }
)
"""Their members, in lower case, and for what these stand."""
NUMBERS: Mapping[RunCode, int] = MappingProxyType(
    {
        RunCode.BAD_VALUE: 5,
        RunCode.NO_SUCH_INDEX: 9,
        RunCode.DIVISION: 11,
        RunCode.WRONG_TYPE: 13,
        RunCode.FAILED: 51,
        RunCode.NO_SUCH_THING: 53,
        RunCode.UNAVAILABLE: 68,
        RunCode.NOT_ALLOWED: 70,
        RunCode.THROWN: 1000,
        RunCode.ASSERTION: 1001,
    }
)
"""`ERR` of what a script can catch: the numbers that BASIC has had for such errors since long."""
_LONGEST = 1000


class LastError(NamedTuple):
    """The error that was caught last."""

    number: int = 0
    """0: there was none."""
    message: str = ""

    def read(self, name: str) -> bool | int | str:
        """What one of the ERROR_NAMES' meanings gives."""
        if name == "err":
            return self.number
        return self.message if name == "error_message" else bool(self.number)


def caught(fault: RunError) -> LastError:
    """What a script learns of a fault."""
    number = NUMBERS.get(fault.code, NUMBERS[RunCode.FAILED])
    return LastError(number, shortened(fault.detail) or fault.code.value.replace("_", " "))


def shortened(message: str) -> str:
    """No longer than anybody reads."""
    return message if len(message) <= _LONGEST else message[: _LONGEST - 1] + "…"
