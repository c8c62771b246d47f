"""Settings of what is remembered of a chat beyond its latest messages."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from config.terms import Count, Section

ContextScope = Literal["chat", "thread", "member"]
"""What of a group a model is shown: all of it; the chain of replies that the message belongs to; or what the one who
asks has said and was answered."""


class MemorySettings(Section):
    """What a model is told of what was said before the messages that it is shown."""

    summarise_after_tokens: Count = Field(default=2000, ge=0, le=1_000_000)
    """When so much has been said that is shown no longer, the model is asked for a summary after a turn. 0: never."""
    summary_tokens: Count = Field(default=400, ge=50, le=10_000)
    """The longest summary."""
