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
    """Language profile: which scripts are accepted."""

    STRICT = "strict"
    """The documented language: parameters at the start, three types, all of them required and described."""
    EXTENDED = "extended"
    """The language that existing scripts use."""


class Code(StrEnum):
    """Compile-time problems."""

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
    SUSPICIOUS = "basic.suspicious"
    UNKNOWN_VARIABLE = "basic.unknown_variable"
    UNKNOWN_CALL = "basic.unknown_call"
    DUPLICATE_TOOL = "basic.duplicate_tool"
    UNKNOWN_BOT = "basic.unknown_bot"


class ScriptProblem(NamedTuple):
    """One problem of a script."""

    at: At
    code: Code
    message: str
    """The problem and the permitted forms, for the script's author."""
    severity: Severity = "error"

    def diagnostic(self, file: str) -> Diagnostic:
        """The problem as a diagnostic of `file`; names of more than 60 characters are shortened."""
        message = _LONG_NAME.sub(lambda name: f"{name[0][:_LONGEST_NAME]}…", self.message)
        return Diagnostic(file, self.at.line, self.at.column, self.code.value, message, self.severity)


class ScriptError(Exception):
    """Raised by the lexer, parser and compiler for source that cannot be understood."""

    def __init__(self, at: At, code: Code, message: str) -> None:
        super().__init__(message)
        self.fault = ScriptProblem(at, code, message)


class RunCode(StrEnum):
    """Reason why a run stopped. `config/texts/` has a sentence for each: `basic.stopped.<code>`."""

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
"""Errors that ON ERROR handles. Limits always end the run, and so does an effect with unknown outcome, which has to be
reported to the chat."""


class RunError(Exception):
    """Runtime error of an operation, a function or a keyword."""

    def __init__(self, code: RunCode, detail: str = "") -> None:
        super().__init__(detail or code.value)
        self.code = code
        self.detail = detail
        """Details in our words or the script's, never in a stranger's. Shown to people."""
