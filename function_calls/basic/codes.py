"""Error codes of scripts at compile time and at run time."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from config.diagnostics import Diagnostic, Severity
from function_calls.basic.nodes import At

_LONGEST_NAME = 60
_LONG_NAME = re.compile(rf"\w{{{_LONGEST_NAME + 1},}}")


class Profile(StrEnum):
    """Which scripts are allowed."""

    STRICT = "strict"
    """What the documents of the language say: parameters at the start, three types, all required, all described."""
    EXTENDED = "extended"
    """What real scripts need."""


class Code(StrEnum):
    """Found when a script is read."""

    UNREADABLE = "basic.unreadable"
    TOO_LONG = "basic.too_long"
    BAD_CHARACTER = "basic.bad_character"
    OPEN_TEXT = "basic.open_text"
    SYNTAX = "basic.syntax"
    TOO_DEEP = "basic.too_deep"
    UNKNOWN_STATEMENT = "basic.unknown_statement"
    UNKNOWN_FUNCTION = "basic.unknown_function"
    WRONG_COUNT = "basic.wrong_count"
    BAD_ARGUMENT = "basic.bad_argument"
    NOT_CLOSED = "basic.not_closed"
    STRAY_END = "basic.stray_end"
    MISPLACED = "basic.misplaced"
    UNKNOWN_LABEL = "basic.unknown_label"
    DUPLICATE_NAME = "basic.duplicate_name"

    BAD_PARAM = "basic.bad_param"
    BAD_TYPE = "basic.bad_type"
    BAD_NAME = "basic.bad_name"
    LATE_PARAM = "basic.late_param"
    NOT_IN_STRICT = "basic.not_in_strict"
    MISSING_DESCRIPTION = "basic.missing_description"
    MISSING_PARAM_DESCRIPTION = "basic.missing_param_description"
    MISSING_LIKE = "basic.missing_like"
    UNCLEAR_NAME = "basic.unclear_name"
    UNKNOWN_VARIABLE = "basic.unknown_variable"
    DUPLICATE_TOOL = "basic.duplicate_tool"
    UNKNOWN_BOT = "basic.unknown_bot"
    UNKNOWN_TOOL = "basic.unknown_tool"


class ScriptProblem(NamedTuple):
    """One fault of a script."""

    at: At
    code: Code
    message: str
    """What is wrong and what is allowed, for the author."""
    severity: Severity = "error"

    def diagnostic(self, file: str) -> Diagnostic:
        """The same, of this file."""
        message = _LONG_NAME.sub(lambda name: f"{name[0][:_LONGEST_NAME]}…", self.message)
        return Diagnostic(file, self.at.line, self.at.column, self.code.value, message, self.severity)


class ScriptError(Exception):
    """Raised while a script is read: what stands here cannot be understood."""

    def __init__(self, at: At, code: Code, message: str) -> None:
        super().__init__(message)
        self.fault = ScriptProblem(at, code, message)


class RunCode(StrEnum):
    """Why a run stopped. `config/texts/` has a sentence for each: `basic.stopped.<code>`."""

    STEPS = "steps"
    TIME = "time"
    MEMORY = "memory"
    DEPTH = "depth"
    OUTPUT = "output"
    WRONG_TYPE = "wrong_type"
    BAD_VALUE = "bad_value"
    DIVISION = "division"
    NO_SUCH_INDEX = "no_such_index"
    NO_SUCH_THING = "no_such_thing"
    NOT_ALLOWED = "not_allowed"
    THROWN = "thrown"
    ASSERTION = "assertion"
    UNAVAILABLE = "unavailable"
    UNKNOWN_OUTCOME = "unknown_outcome"
    FAILED = "failed"


CATCHABLE = frozenset(RunCode) - {
    RunCode.STEPS,
    RunCode.TIME,
    RunCode.MEMORY,
    RunCode.DEPTH,
    RunCode.OUTPUT,
    RunCode.UNKNOWN_OUTCOME,
}
"""What ON ERROR of a script holds. A limit ends the run whatever the script says, and so does an effect of which nobody
knows whether it happened: the chat has to hear of it."""


class RunError(Exception):
    """Raised by an operation, a function of the language or a keyword: the statement cannot be done."""

    def __init__(self, code: RunCode, detail: str = "") -> None:
        super().__init__(detail or code.value)
        self.code = code
        self.detail = detail
        """What exactly, in our own words or the script's: never a stranger's. Shown to people."""
