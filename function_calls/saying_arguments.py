"""Arguments in people's own words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from function_calls.profile import ChatProfile
from function_calls.spec import ArgumentParser


@runtime_checkable
class ReadsPeople(Protocol):
    """An ArgumentParser that understands more in a chat than its schema says."""

    def said(self, raw: Mapping[str, Any], profile: ChatProfile) -> Mapping[str, Any]:
        """The raw arguments as `parse` takes them: `tomorrow` as the date that it is in the chat. What fits already and
        what is not understood stays as it is."""


def as_said(arguments: ArgumentParser, raw: Mapping[str, Any], profile: ChatProfile) -> Mapping[str, Any]:
    """`raw` as people meant it, where `arguments` can tell."""
    return arguments.said(raw, profile) if isinstance(arguments, ReadsPeople) else raw
