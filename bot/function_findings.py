"""What can be found out about functions, and how a finding is told."""

from __future__ import annotations

from enum import StrEnum

from config.diagnostics import Diagnostic, Severity
from function_calls.definition_faults import fault


class Code(StrEnum):
    """What can be found. Closed."""

    BAD_SCHEMA = "functions.bad_schema"
    UNKNOWN = "functions.unknown"
    SCHEDULE = "functions.schedule"
    CONTESTED_EXAMPLE = "functions.contested_example"
    READS_TEXT = "functions.reads_text"
    RAW_TEXT = "functions.raw_text"
    NO_DESCRIPTION = "functions.no_description"
    THIN_DESCRIPTION = "functions.thin_description"
    UNDESCRIBED_PARAMETER = "functions.undescribed_parameter"
    UNCLEAR_PARAMETER = "functions.unclear_parameter"
    NO_EXAMPLES = "functions.no_examples"
    NO_TAGS = "functions.no_tags"
    NO_TIMEOUT = "functions.no_timeout"
    REFUSED_NAME = "functions.refused_name"
    NO_PROGRAM = "functions.no_program"
    GROUP_MEMBER = "functions.group_member"


def finding(source: str, code: Code, message: str, severity: Severity = "warning") -> Diagnostic:
    """At `source`, which is a file with a line, a file, or empty."""
    return fault(source, message, code, severity)
