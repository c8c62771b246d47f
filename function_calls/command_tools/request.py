"""What the Python callables of command tools are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from function_calls.spec import ArgumentParser
from services.refs import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class Request:
    """The call as it came."""

    tool: str
    arguments: Mapping[str, Any]
    """Checked, with the defaults of what was left out."""
    raw: Mapping[str, Any]
    """As they were given."""
    chat: str
    """`platform:account:chat`."""
    member: str
    """Who asks, as `platform:account:member`."""
    key: str
    """The same when a crashed run is repeated, and no other run has it."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a command gave."""

    stdout: str
    stderr: str
    exit_code: int
    """Negative: ended by the signal of that number."""
    cut: bool = False
    """It wrote more than is kept."""

    def to_json(self) -> JsonObject:
        """For results and for what is kept with a question."""
        facts: JsonObject = {"stdout": self.stdout, "stderr": self.stderr, "exit_code": self.exit_code}
        return {**facts, "cut": True} if self.cut else facts


@dataclass(frozen=True, slots=True)
class StepFacts:
    """A step as callables see it."""

    number: int
    """From 1 on."""
    argv: tuple[str, ...] = ()
    """The words of a command; empty for a callable."""
    python: str = ""
    """The name of a callable; empty for a command."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a step did not do what it should."""

    code: str
    """One of the closed list of error codes."""
    text: str
    """In words that may be shown in a chat."""
    output: Output | None = None
    """Of a command that ran."""


@dataclass(slots=True)
class ToolRun:
    """One run of a tool: the first argument of its callables."""

    request: Request
    env: Mapping[str, Any]
    """What `env` gave."""
    cmds: list[Any] = field(default_factory=list)
    """The steps. `setup` may change the list: add lists of words, which are taken as they stand, and callables."""
    outputs: list[JsonValue | Output] = field(default_factory=list)
    """Of the steps so far."""
    folder: Path | None = None
    """The folder of the chat, where the tool works in one."""


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments of a run as its handler has them."""

    arguments: JsonObject
    raw: JsonObject


class RequestArguments:
    """Reads arguments as `inner` does, and keeps what was given beside what it means."""

    def __init__(self, inner: ArgumentParser) -> None:
        self._inner = inner

    def parse(self, raw: Mapping[str, Any]) -> Given:
        """Raises ArgumentError."""
        return Given(self._inner.dump(self._inner.parse(raw)), dict(raw))

    def dump(self, arguments: Any) -> JsonObject:
        """The arguments as plain JSON."""
        return dict(arguments.arguments) if isinstance(arguments, Given) else self._inner.dump(arguments)
