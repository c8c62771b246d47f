"""Settings of what happens when a language model fails: who is asked next, and when one that failed is asked again."""

from __future__ import annotations

from pydantic import Field

from config.terms import Count, Seconds, Section


class FailoverSettings(Section):
    """When a language model is left for the next one of the list, and for how long it is left alone."""

    first_answer_seconds: Seconds = 30
    """A model that has said nothing for so long is left for the next one. The last one of the list may take longer."""
    total_seconds: Seconds = 70
    """How long one question may take with all models together, where there are several."""
    failures: Count = Field(default=3, ge=1, le=100)
    """Questions in a row that a model fails to answer before it is left alone for a while."""
    cooldown_seconds: Seconds = 15
    """How long it is left alone then. One question tries it afterwards; each time that one fails, twice as long."""
    longest_cooldown_seconds: Seconds = 60
    """The longest of these pauses."""
    longest_wait_seconds: Seconds = 600
    """The longest that a model is left alone which asked for a wait. One that refused its key, knows no such model, or
    has no credit left is left alone for as long."""
    say_again_seconds: Seconds = 600
    """While no model answers, a chat is told once. Whoever needs the model after so long is told again."""
