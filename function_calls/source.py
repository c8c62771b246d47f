"""A source: a place where functions come from, for as long as the daemon runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from config.diagnostics import Diagnostic
from function_calls.groups import ToolGroup
from function_calls.spec import FunctionSpec


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a source has at one moment."""

    specs: tuple[FunctionSpec, ...] = ()
    """In the order in which they are offered."""
    groups: tuple[ToolGroup, ...] = ()
    faults: tuple[Diagnostic, ...] = ()
    """What of it cannot be used, and why. Where an edit broke something, `specs` still has the last that could be."""


Publish = Callable[[Snapshot], None]


class FunctionSource(Protocol):
    """The registry cannot tell sources apart."""

    name: str
    """Unique among the sources."""

    async def run(self, publish: Publish) -> None:
        """Publish what there is, and again whenever it has changed. Ends when it is cancelled, or when nothing can
        change any more. One bad definition is a fault of the snapshot and hides no good one; DefinitionError is raised
        for functions that are given in code, where nobody could mend them while the daemon runs."""


class Changes(Protocol):
    """Who is told when files change."""

    def of(self, *paths: Path) -> AsyncGenerator[None, None]:
        """An item at once, and another one whenever something at or below `paths` may have changed. Ends when nothing
        is watched."""


class Unwatched:
    """Tells of no change: for commands that look once and end."""

    async def of(self, *paths: Path) -> AsyncGenerator[None, None]:
        yield
