"""A model's words for one run of a function: what is asked for them, and what comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from services.llm.model import ModelMessage

MOST_TOKENS = 1000
MOST_CHARS = 24_000
"""Of all messages of a request together."""


class Unwritten(Enum):
    """Why there are no words."""

    NO_MODEL = "no_model"
    DOWN = "down"
    OVER_BUDGET = "over_budget"
    DECLINED = "declined"
    """Whoever called did not want their own model to be asked."""
    TOO_LONG = "too_long"


@dataclass(frozen=True, slots=True)
class WordsWanted:
    """What a model is asked; nothing else goes with it."""

    messages: Sequence[ModelMessage]
    """Of the roles `system`, `user` and `assistant`."""
    timeout_seconds: float = 60.0
    """At most; no more than what is left of the run."""
    most_tokens: int = MOST_TOKENS
    """What the model of whoever called is to write at most. The bot's own keeps to its settings."""


class Written(NamedTuple):
    """A model's words."""

    text: str
    is_callers: bool
    """They come from the model of whoever called, and prove no more than the caller's own word."""


class CallersModel(Protocol):
    """The language model that whoever called has."""

    async def write(self, wanted: WordsWanted) -> Written | Unwritten:
        """Its words, or why there are none. May wait for ever, and may be cancelled."""
