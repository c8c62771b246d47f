"""Errors between the daemon and an MCP server, with a text for the log and one for members, and size limits."""

from __future__ import annotations

import re

_TEXT_CHARS = 500
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class ServerError(Exception):
    """The server cannot be used as it should be. Its text is for the log and for models, never for a chat: a part of it
    may be a stranger's. It is one line of bounded length."""

    said = "it cannot be used; the log says why"
    """The same in a closed sentence of ours."""

    def __init__(self, details: str = "", *, said: str = "") -> None:
        """`details`: what happened; `said`: the sentence for it, where there is a better one than that of the class.
        What is left out of one of them is as in the other."""
        self.said = said or self.said
        super().__init__(in_one_line(details or self.said))


class Unreachable(ServerError):
    """There is no connection, and nothing was asked."""

    said = "it cannot be reached; the log says why"


class NotSent(ServerError):
    """The request has not reached the server."""

    said = "it cannot be reached; the log says why"


class ConnectionLost(ServerError):
    """The connection ended before the answer: nobody knows what the server has done."""

    said = "the connection broke; the log says how"


class CallRefused(ServerError):
    """The server answered with an error of the protocol instead of a result."""

    said = "it answers with an error; the log has its words"


class BadAnswer(ServerError):
    """What the server answered is not what the protocol allows, or too much."""

    said = "what it answers is not what the protocol allows; the log says more"


class Withdrawn(ServerError):
    """The tool is not, or not any more, what was accepted."""

    said = "the tool is not, or not any more, what was accepted"


class Superseded(ServerError):
    """The settings by which it was asked do not hold any more."""

    said = "its settings have changed, or it was removed from them"


def in_one_line(text: str) -> str:
    """A stranger's text in one line, of bounded length."""
    line = "".join(one if one.isprintable() else " " for one in text[: _TEXT_CHARS * 2])
    return line if len(line) <= _TEXT_CHARS else line[: _TEXT_CHARS - 1] + "…"


def is_plain(name: str) -> bool:
    """Whether a tool's name is a name and nothing else: no sentence can stand in it, and no shell makes more of it."""
    return _PLAIN_NAME.fullmatch(name) is not None and not name.startswith("-")


def shown(tool: str) -> str:
    """A tool in a sentence of ours: by its name, unless more than a name could stand in that."""
    return f"the tool {tool!r}" if is_plain(tool) else "a tool whose name is no plain one"


MESSAGE_BYTES = 8 * 1024 * 1024
"""One message of a server; a connection with a longer one is ended."""
MOST_TOOLS = 512
MOST_PAGES = 100
DEFINITION_BYTES = 64 * 1024
"""The definition of one tool, as JSON."""
