"""Settings of the shadow: a second model whose first decision is compared, and which never does anything."""

from __future__ import annotations

from pydantic import Field

from config.terms import Count, Seconds, Section


class ShadowSettings(Section):
    """A model that is asked, after the reply was sent, what it would have called; nothing is run for it."""

    model: str = Field(default="", max_length=128)
    """The name of an entry in `models`, which then answers no chat. Empty: there is no shadow."""
    max_per_hour: Count = Field(default=60, ge=1, le=1_000_000)
    """Questions to it in any 60 minutes; what is over that is counted and not asked."""
    parallel: Count = Field(default=1, ge=1, le=100)
    """Questions to it at the same time."""
    queue: Count = Field(default=20, ge=1, le=10_000)
    """Questions that may wait; what is over that is counted and not asked."""
    timeout_seconds: Seconds = 60
    """How long one answer may take."""
