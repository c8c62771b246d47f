"""Limits: what one run of a script may use at the most."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one run. Its time is up to whoever lets it run."""

    steps: int = 1_000_000
    """Instructions; what makes or walks something large counts as several."""
    memory_bytes: int = 16 * 1024 * 1024
    """All its values together, each counted where it stands, as a stored state has them. What is made in between may
    go an eighth above it."""
    depth: int = 64
    """Calls of SUBs and FUNCTIONs within one another, and GOSUBs likewise."""
