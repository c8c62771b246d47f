"""Arguments of the Python callables of command tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from function_calls.spec import ArgumentParser
from services.refs import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class Request:
    """The call of the tool."""

    tool: str
    arguments: Mapping[str, Any]
    """Validated, with defaults."""
    raw: Mapping[str, Any]
    """As supplied by the caller."""
    chat: str
    """`platform:account:chat`."""
    member: str
    """The requesting member, as `platform:account:member`."""
    key: str
    """Unique key of the run, unchanged when it is repeated after a crash."""


@dataclass(frozen=True, slots=True)
class Output:
    """Output of a command."""

    stdout: str
    stderr: str
    exit_code: int
    """Negative: number of the signal that terminated it."""
    cut: bool = False
    """The output exceeded the limit and was truncated."""

    def to_json(self) -> JsonObject:
        """Plain data for results and for the saved state of questions: `stdout`, `stderr`, `exit_code`, and `cut` if it
        is true."""
        facts: JsonObject = {"stdout": self.stdout, "stderr": self.stderr, "exit_code": self.exit_code}
        return {**facts, "cut": True} if self.cut else facts


@dataclass(frozen=True, slots=True)
class StepFacts:
    """Description of a step for callables."""

    number: int
    """Counted from 1."""
    argv: tuple[str, ...] = ()
    """Words of a command; empty for a callable."""
    python: str = ""
    """Name of a callable; empty for a command."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Reason why a step failed."""

    code: str
    """An error code of the closed list."""
    text: str
    """Text that may be shown in a chat."""
    output: Output | None = None
    """Output of the command, if it ran."""


@dataclass(slots=True)
class ToolRun:
    """A run of a tool: the first argument of its callables."""

    request: Request
    env: Mapping[str, Any]
    """Result of `env`."""
    cmds: list[Any] = field(default_factory=list)
    """The steps. `setup` may change the list by adding callables and lists of words, which are used literally."""
    outputs: list[JsonValue | Output] = field(default_factory=list)
    """Outputs of the completed steps."""
    folder: Path | None = None
    """The chat's folder, if the tool uses one."""


@dataclass(frozen=True, slots=True)
class RequestValues:
    """Arguments of a run, as the handler gets them."""

    arguments: JsonObject
    raw: JsonObject


class RequestArguments:
    """Parses arguments with `inner` and keeps the raw values too."""

    def __init__(self, inner: ArgumentParser) -> None:
        self._inner = inner

    def parse(self, raw: Mapping[str, Any]) -> RequestValues:
        """Validated and raw arguments. Raises ArgumentError."""
        return RequestValues(self._inner.dump(self._inner.parse(raw)), dict(raw))

    def dump(self, arguments: Any) -> JsonObject:
        """The arguments as plain JSON: for a request the raw ones, otherwise those of the wrapped parser."""
        return dict(arguments.arguments) if isinstance(arguments, RequestValues) else self._inner.dump(arguments)
