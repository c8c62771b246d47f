"""Groups: functions that a chat takes to hand together, by one name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ToolGroup:
    """Some functions under a name, with what a model is told while they are at hand."""

    name: str
    description: str
    functions: tuple[str, ...]
    """Their names."""
    system_prompt: str = ""
    bot: str | None = None
    """None: for all bots."""
    source: str = ""
    """`file:line` of the definition."""


@dataclass(frozen=True, slots=True)
class Takeable:
    """One name that a chat may take to hand, and what comes with it."""

    name: str
    description: str
    functions: tuple[str, ...]
    """Those that there are, in registration order."""
    system_prompt: str = ""
    """What a model is told while the group is at hand; a function tells it for itself."""
    is_group: bool = True
