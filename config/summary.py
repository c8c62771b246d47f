"""Settings of the summaries that members ask for."""

from __future__ import annotations

from pydantic import Field

from config.terms import Count, Number, Section


class SummarySettings(Section):
    """How much of a chat is put in short when somebody asks for it."""

    lines: Count = Field(default=300, ge=10, le=5000)
    """The most messages that one summary is made of, the latest ones."""
    tokens: Count = Field(default=12_000, ge=500, le=1_000_000)
    """The most of them that the model is shown, in tokens as estimated."""
    timeout_seconds: Number = Field(default=40, gt=0, le=100)
    """How long the model may take; after that the summary is made without it."""
