"""Errors of MCP servers, with a text for the log and a text for members, and size limits."""

from __future__ import annotations

import re

_TEXT_CHARS = 500
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class ServerError(Exception):
    """An MCP server cannot be used. `str()` is one line of bounded length for the log and for models; it may contain
    text from the server, so it is never shown in a chat."""

    member_text = "it cannot be used; the log says why"
    """Fixed text for members, without server text."""

    def __init__(self, details: str = "", *, member_text: str = "") -> None:
        """`details` for the log, `member_text` for members instead of the class's text. Each defaults to the other."""
        self.member_text = member_text or self.member_text
        super().__init__(in_one_line(details or self.member_text))


class Unreachable(ServerError):
    """There is no connection, and no request was sent."""

    member_text = "it cannot be reached; the log says why"


class LoginRequired(Unreachable):
    """Somebody has to log in first."""


class NotSent(ServerError):
    """The request did not reach the server."""

    member_text = "it cannot be reached; the log says why"


class ConnectionLost(ServerError):
    """The connection ended before the response; the outcome is unknown."""

    member_text = "the connection broke; the log says how"


class CallRefused(ServerError):
    """The server responded with a protocol error."""

    member_text = "it responds with an error; the log has the details"


class BadAnswer(ServerError):
    """The response violates the protocol or a size limit."""

    member_text = "its response violates the protocol; the log has the details"


class Withdrawn(ServerError):
    """The tool's current definition is not the accepted version."""

    member_text = "its definition is not the accepted one"


class Superseded(ServerError):
    """The settings of the call were replaced or removed."""

    member_text = "its settings have changed, or it was removed from them"


def in_one_line(text: str) -> str:
    """Untrusted text in one line of at most 500 characters, without control characters; a cut text ends with an
    ellipsis."""
    line = "".join(one if one.isprintable() else " " for one in text[: _TEXT_CHARS * 2])
    return line if len(line) <= _TEXT_CHARS else line[: _TEXT_CHARS - 1] + "…"


def is_plain(name: str) -> bool:
    """Whether a tool's name is safe in sentences and in shell commands: 1 to 64 ASCII letters, digits, `_`, `.` or `-`,
    not starting with `-`."""
    return _PLAIN_NAME.fullmatch(name) is not None and not name.startswith("-")


def shown(tool: str) -> str:
    """A tool's name for members; replaced by a neutral phrase unless it is plain."""
    return f"the tool {tool!r}" if is_plain(tool) else "a tool whose name is no plain one"


MESSAGE_BYTES = 8 * 1024 * 1024
"""Size limit of one message; a longer message ends the connection."""
MOST_TOOLS = 512
MOST_PAGES = 100
DEFINITION_BYTES = 64 * 1024
"""Size limit of one tool's definition as JSON."""
