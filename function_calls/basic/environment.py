"""Environment of a run: clock and chance for language functions, limits, and the last caught error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import NamedTuple, Protocol

from function_calls.basic.codes import RunCode, RunError


class World(Protocol):
    """Time, chance, ids and language of a run."""

    def now(self) -> datetime:
        """The current time, timezone-aware, in the chat's time zone."""

    @property
    def random(self) -> Random:
        """The run's own random generator, so that RANDOMIZE affects no other run."""

    def unique(self) -> str:
        """A new UUID as text."""

    @property
    def language(self) -> str:
        """The chat's language code: `en`, `zh`."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one run. The driver enforces the time limit."""

    steps: int = 1_000_000
    """Instructions; creating or traversing large values counts as several."""
    memory_bytes: int = 16 * 1024 * 1024
    """Total size of all values, each counted at every place where it occurs, as in the stored state. Temporary values
    may exceed it by an eighth."""
    depth: int = 64
    """Nesting depth of SUB and FUNCTION calls, and separately of GOSUBs."""


ERROR_NAMES: Mapping[str, str] = {
    "error": "error",
    "err": "err",
    "error_message": "error_message",
    "errormessage": "error_message",
}
"""Names of the last error's fields as variables, and the field that each reads."""
ERROR_MEMBERS: Mapping[str, str] = {
    "number": "err",
    "code": "err",
    "description": "error_message",
    "message": "error_message",
    "text": "error_message",
}
"""Names of the last error's fields as members, in lower case, and the field that each reads."""
NUMBERS: Mapping[RunCode, int] = {
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
"""`ERR` numbers of catchable errors, as in traditional BASIC dialects."""
_LONGEST = 1000


class LastError(NamedTuple):
    """The last caught error."""

    number: int = 0
    """0: no error."""
    message: str = ""

    def read(self, name: str) -> bool | int | str:
        """The value of a variable of ERROR_NAMES: the number for `err`, the text for `error_message`, otherwise whether
        there was an error."""
        if name == "err":
            return self.number
        return self.message if name == "error_message" else bool(self.number)


def caught(fault: RunError) -> LastError:
    """The error as a script sees it."""
    number = NUMBERS.get(fault.code, NUMBERS[RunCode.FAILED])
    return LastError(number, shortened(fault.detail) or fault.code.value.replace("_", " "))


def shortened(message: str) -> str:
    """`message` cut to 1,000 characters, with `…` at the end if it was longer."""
    return message if len(message) <= _LONGEST else message[: _LONGEST - 1] + "…"
