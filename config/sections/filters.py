"""Settings of filters around turns, model rounds and function runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from config.terms import Count, LocalPath, Seconds, Section, Word, settings_error


def _regular_expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise settings_error(f"is no regular expression: {error}") from None
    return text


def _visible(text: str) -> str:
    if not "".join(character for character in text if character.isprintable()).strip():
        raise settings_error("has to hold something that can be seen")
    return text


def _some(words: tuple[str, ...]) -> tuple[str, ...]:
    if not words:
        raise settings_error("names no word")
    return words


VisibleWord = Annotated[Word, AfterValidator(_visible)]
"""A word with visible characters."""
Expression = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_regular_expression)]
"""A Python regular expression."""


class LoggingFilter(Section):
    """Logs a line with time, outcome and duration; no texts and no arguments."""

    level: Literal["debug", "info"] = "info"
    """Log level of the line."""


class LimitsFilter(Section):
    """Rejects runs that are too frequent."""

    calls_per_minute: Count = Field(ge=1, le=100_000)
    """Number of runs that are possible at once; each is available again after an equal part of 60 seconds."""
    counted_by: Literal["member", "chat"] = "member"
    """Whose runs are counted together: one member's in all chats, or all of one chat."""


class RedactionFilter(Section):
    """Replaces sensitive text in functions' results by `***` before a model or chat gets it."""

    secrets: bool = True
    """Secrets of the settings, and strings that look like keys or passwords."""
    emails: bool = False
    """E-mail addresses."""
    phone_numbers: bool = False
    """Phone numbers in international form, and Chinese mobile numbers."""
    card_numbers: bool = False
    """Payment card numbers."""
    patterns: tuple[Expression, ...] = Field(default=(), max_length=100)
    """Additional regular expressions."""


class BlacklistFilter(Section):
    """Stops a message that contains one of these words, before commands, functions and models."""

    words: Annotated[tuple[VisibleWord, ...], Field(max_length=10_000), AfterValidator(_some)]
    """Words or phrases, ignoring case; in Chinese and Japanese also within other text."""
    reply: bool = True
    """Whether the chat is notified."""


class ClassifierFilter(Section):
    """Calls a Python function that decides whether to stop a message, before commands, functions and models."""

    file: LocalPath
    """Python file. It runs with the daemon's rights."""
    function: Word = "classify"
    """An `async def classify(message)`: an empty text or None lets the message pass, other texts are the reason."""
    timeout_seconds: Seconds = 5
    """Timeout; then the message is stopped."""
    reply: bool = True
    """Whether the chat is notified."""


class MemoryFilter(Section):
    """Keeps values that functions store in the turn's state for the member's next turns in the same chat."""

    minutes: Count = Field(default=60, ge=1, le=525_600)
    """Time until they expire, from the last turn that stored values."""


class HarmFilter(Section):
    """Asks a language model whether the run of a risky function is harmful. Without a clear answer it does not run."""

    effects: tuple[Literal["read", "idempotent", "once"], ...] = ("once",)
    """Functions with one of these effects are asked about."""
    tags: tuple[Word, ...] = Field(default=(), max_length=100)
    """Functions with one of these tags, too, whatever their effect."""
    model: Word | None = None
    """Name of the model in `models` that is asked. Missing: the chat's. The requests count towards the budgets."""
    timeout_seconds: Seconds = 20
    """Time for the answer, within the timeout of the function."""


class PythonFilter(Section):
    """A custom filter."""

    file: LocalPath
    """Python file. It runs with the daemon's rights."""
    function: Word
    """Name of the filter in the file."""


class ModuleFilter(Section):
    """Filters that a tool module declares by a function `filters()`: before and after runs or requests."""

    file: LocalPath
    """Python file. It runs with the daemon's rights."""


class OneFilter(Section):
    """One filter: its name with its options."""

    @model_validator(mode="after")
    def _exactly_one(self) -> OneFilter:
        if len(self.model_fields_set) != 1 or self.chosen[1] is None:
            raise settings_error(
                f"has to name one filter with its options, such as {next(iter(type(self).model_fields))}: {{}}"
            )
        return self

    @property
    def chosen(self) -> tuple[str, Section]:
        """Name and options of the only filter that is set."""
        name = next(iter(self.model_fields_set))
        return name, getattr(self, name)


class TurnFilterSettings(OneFilter):
    """A filter around a turn."""

    logging: LoggingFilter | None = None
    """Logs a line per turn."""
    blacklist: BlacklistFilter | None = None
    """Stops messages by their words."""
    classifier: ClassifierFilter | None = None
    """Stops messages by a custom function."""
    memory: MemoryFilter | None = None
    """Keeps the turn's state for later turns."""
    python: PythonFilter | None = None
    """`async def f(message, turn, dispatch)` in a file."""


class RoundFilterSettings(OneFilter):
    """A filter around each model round."""

    logging: LoggingFilter | None = None
    """Logs a line per request to the model."""
    module: ModuleFilter | None = None
    """Filters `pre_chat` and `post_chat` of a tool module."""
    python: PythonFilter | None = None
    """`async def f(round, ask)` in a file."""


class CallFilterSettings(OneFilter):
    """A filter around each function run."""

    logging: LoggingFilter | None = None
    """Logs a line per run."""
    limits: LimitsFilter | None = None
    """Rejects runs that are too frequent."""
    redaction: RedactionFilter | None = None
    """Hides secrets and personal data in results."""
    harm: HarmFilter | None = None
    """Asks a model before risky functions run."""
    module: ModuleFilter | None = None
    """Filters `pre_invocation` and `post_invocation` of a tool module."""
    python: PythonFilter | None = None
    """`async def f(invocation, proceed)` in a file."""


class FiltersSettings(Section):
    """Filters, the first of each list outermost. All checks are outside of them, so filters cannot remove a check."""

    turn: tuple[TurnFilterSettings, ...] = Field(default=(), max_length=50)
    """Around the answer to one message."""
    round: tuple[RoundFilterSettings, ...] = Field(default=(), max_length=50)
    """Around each request to the model."""
    call: tuple[CallFilterSettings, ...] = Field(default=(), max_length=50)
    """Around each function run."""
    named: Mapping[Word, CallFilterSettings] = Field(default_factory=dict)
    """Filters of single functions, which select them by `filters=[…]`; inside those for all functions."""
