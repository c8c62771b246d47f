"""What is wrong with definitions, as lines that name a file and a place."""

from __future__ import annotations

import re
from enum import StrEnum

from config.diagnostics import Diagnostic, Severity
from function_calls.definition import DefinitionError

SERVERS = "mcp.servers."
"""What the places of faults of MCP servers begin with: the key of the settings that names them."""
_PLACE = re.compile(r"\((?P<source>[^()\n]+:\d+)\)")


class Code(StrEnum):
    """What can be found wrong with a function. Closed."""

    UNUSABLE = "functions.unusable"
    TAKEN = "functions.taken"
    UNREACHABLE = "functions.unreachable"
    NOT_ACCEPTED = "functions.not_accepted"


def faults_of(error: DefinitionError, file: str = "") -> list[Diagnostic]:
    """One for each problem, at the last place that it names, else in `file`."""
    found: list[Diagnostic] = []
    for problem in error.problems:
        text = f"{error.where}: {problem}"
        places = _PLACE.findall(text)
        where = error.where if ":" in error.where and error.where.rpartition(":")[2].isdecimal() else file
        found.append(fault(places[-1] if places else where, text))
    return found


def fault(source: str, message: str, code: str = Code.UNUSABLE, severity: Severity = "error") -> Diagnostic:
    """At `source`, which is `file:line`, a file, a key of the settings, or empty."""
    file, _, line = source.rpartition(":")
    if not line.isdecimal():
        # Where the settings stand is not known here, so a key has no line.
        file, line = source, "0" if source.startswith(SERVERS) else "1"
    return Diagnostic(file or "functions", int(line), 1, str(code), message, severity)
