"""What a script can know of an error: `ERROR` is whether there was one, `ERROR MESSAGE` what, `ERR` its number.

They are Names in the tree, `error`, `error_message` and `err`; `err.number`, `err.description`, `error.message` and the
like mean the same. A script that gives a variable of its own such a name has that variable instead. The last error
stays until ON ERROR is said again, until ERR.CLEAR or CLEAR ERROR, or until a keyword gives a variable its value, so
that the IF ERROR behind each `x = GET …` speaks of that one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from function_calls.basic.codes import RunCode, RunFault

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


def caught(fault: RunFault) -> LastError:
    """What a script learns of a fault."""
    number = NUMBERS.get(fault.code, NUMBERS[RunCode.FAILED])
    return LastError(number, shortened(fault.detail) or fault.code.value.replace("_", " "))


def shortened(message: str) -> str:
    """No longer than anybody reads."""
    return message if len(message) <= _LONGEST else message[: _LONGEST - 1] + "…"
