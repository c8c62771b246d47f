"""A command tool that is ready to run: words taken apart, Python found."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import orjson

from config.command_tools import ToolOptions
from function_calls.command_tools.callables import PythonNames, name_of
from function_calls.command_tools.words import Template
from services.json_values import JsonObject


class Ending(StrEnum):
    """How a run ends. Closed; `on_exit` is told."""

    SUCCESS = "success"
    ERROR = "error"
    REJECTED = "rejected"  # somebody refused a step, or nobody answered
    CANCELLED = "cancelled"  # stopped, or out of time


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A command, or a callable where there is a `function`. Compared by identity."""

    words: tuple[Template, ...] = ()
    function: Callable[..., Any] | None = None
    name: str = ""
    """Of the callable, as it can be found again."""
    stdin: Template | None = None
    when: str = ""
    options_end: int | None = None
    """From this word on values may begin with `-`. None: from none on."""
    succeeds_with: tuple[int, ...] = (0,)
    added: JsonObject | None = None
    """For a step that `setup` has added: what it is made of again."""


@dataclass(frozen=True, slots=True)
class Wording:
    """What is said of a step."""

    model: Template | None = None
    chat: Template | None = None
    function: Callable[..., Any] | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """Everything that a tool does."""

    name: str
    steps: tuple[Step, ...]
    opts: ToolOptions
    names: PythonNames
    readable: tuple[Path, ...] = ()
    env: Mapping[str, Template] | Callable[..., Any] | None = None
    setup: Callable[..., Any] | None = None
    approved: Callable[..., Any] | None = None
    on_exit: Step | None = None
    output: Mapping[Ending, Wording] | None = None
    digest: str = ""
    """Of all that decides what runs: a yes to a tool that has changed since is no yes."""

    def wording(self, ending: Ending) -> Wording | None:
        """What is said of that ending; None: what is always said."""
        return (self.output or {}).get(ending)

    @property
    def streams(self) -> bool:
        """Whether the chat is shown what a long command writes."""
        if self.opts.stream is None:
            return self.wording(Ending.SUCCESS) is None
        return self.opts.stream


def digest_of(*facts: Any) -> str:
    """The same for the same facts, after a restart too. They are JSON, callables and what settings are made of."""
    return hashlib.sha256(orjson.dumps(facts, default=_as_json, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _as_json(value: object) -> object:
    if isinstance(value, frozenset | set):
        return sorted(map(str, value))
    return name_of(value) if callable(value) else str(value)
