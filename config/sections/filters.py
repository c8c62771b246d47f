"""Settings of filters: layers around a turn, around each round with the model, and around each run of a function."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from config.terms import Count, LocalPath, Seconds, Section, Word, fault


def _regular_expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise fault(f"is no regular expression: {error}") from None
    return text


def _visible(text: str) -> str:
    if not "".join(character for character in text if character.isprintable()).strip():
        raise fault("has to hold something that can be seen")
    return text


def _some(words: tuple[str, ...]) -> tuple[str, ...]:
    if not words:
        raise fault("names no word")
    return words


VisibleWord = Annotated[Word, AfterValidator(_visible)]
"""A word that is more than white space."""
Expression = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_regular_expression)]
"""A regular expression as Python reads it."""


class LoggingFilter(Section):
    """Writes a line for what passes: when it ended, how, and how long it took; no texts and no arguments."""

    level: Literal["debug", "info"] = "info"
    """How important the line is."""


class LimitsFilter(Section):
    """Refuses runs that come too often."""

    calls_per_minute: Count = Field(ge=1, le=100_000)
    """Runs of functions in any 60 seconds."""
    counted_by: Literal["member", "chat"] = "member"
    """Whose runs are counted together: one member's in all chats, or all of one chat."""


class RedactionFilter(Section):
    """Replaces what must not be read by `***` in what functions give, before a model or a chat has it."""

    secrets: bool = True
    """The settings' own secrets, and what looks like a key or a password."""
    emails: bool = False
    """Addresses of e-mail."""
    phone_numbers: bool = False
    """Telephone numbers in the international form, and Chinese mobile numbers."""
    card_numbers: bool = False
    """Numbers of payment cards."""
    patterns: tuple[Expression, ...] = Field(default=(), max_length=100)
    """Further regular expressions."""


class BlacklistFilter(Section):
    """Stops a message that holds one of these words, before any command, function or model."""

    words: Annotated[tuple[VisibleWord, ...], Field(max_length=10_000), AfterValidator(_some)]
    """Words or phrases, in capital letters or not; in Chinese and Japanese also within other text."""
    reply: bool = True
    """Whether the chat is told."""


class ClassifierFilter(Section):
    """Asks a Python function whether a message is to be stopped, before any command, function or model."""

    file: LocalPath
    """The Python file. It runs with the daemon's rights."""
    function: Word = "classify"
    """`async def classify(message)` in it: an empty text or None lets the message pass, another text says why not."""
    timeout_seconds: Seconds = 5
    """After this time the message is stopped."""
    reply: bool = True
    """Whether the chat is told."""


class MemoryFilter(Section):
    """Keeps what functions have written into the turn's state for the member's next turns in the same chat."""

    minutes: Count = Field(default=60, ge=1, le=525_600)
    """How long it is kept after the last turn that wrote."""


class PythonFilter(Section):
    """A filter of one's own."""

    file: LocalPath
    """The Python file. It runs with the daemon's rights."""
    function: Word
    """The name of the filter in it."""


class ModuleFilter(Section):
    """The filters that a module of tools declares by a function `filters()`: before and after runs or requests."""

    file: LocalPath
    """The Python file. It runs with the daemon's rights."""


class OneFilter(Section):
    """One layer: the name of a filter, with its options."""

    @model_validator(mode="after")
    def _exactly_one(self) -> OneFilter:
        if len(self.model_fields_set) != 1 or self.chosen[1] is None:
            raise fault(f"has to name one filter with its options, such as {next(iter(type(self).model_fields))}: {{}}")
        return self

    @property
    def chosen(self) -> tuple[str, Section]:
        """The name and the options."""
        name = next(iter(self.model_fields_set))
        return name, getattr(self, name)


class TurnFilterSettings(OneFilter):
    """A layer around a turn."""

    logging: LoggingFilter | None = None
    """A line for each turn."""
    blacklist: BlacklistFilter | None = None
    """Stops messages by their words."""
    classifier: ClassifierFilter | None = None
    """Stops messages by a function of one's own."""
    memory: MemoryFilter | None = None
    """Keeps the turn's state for later turns."""
    python: PythonFilter | None = None
    """`async def f(message, turn, dispatch)` in a file."""


class RoundFilterSettings(OneFilter):
    """A layer around each round with the model."""

    logging: LoggingFilter | None = None
    """A line for each request to the model."""
    module: ModuleFilter | None = None
    """What a module of tools declares as `pre_chat` and `post_chat`."""
    python: PythonFilter | None = None
    """`async def f(round, ask)` in a file."""


class CallFilterSettings(OneFilter):
    """A layer around each run of a function."""

    logging: LoggingFilter | None = None
    """A line for each run."""
    limits: LimitsFilter | None = None
    """Refuses runs that come too often."""
    redaction: RedactionFilter | None = None
    """Hides secrets and personal data in results."""
    module: ModuleFilter | None = None
    """What a module of tools declares as `pre_invocation` and `post_invocation`."""
    python: PythonFilter | None = None
    """`async def f(invocation, proceed)` in a file."""


class FiltersSettings(Section):
    """Layers, the first of each list outermost. They stand inside all checks and can take none of them away."""

    turn: tuple[TurnFilterSettings, ...] = Field(default=(), max_length=50)
    """Around the answering of one message."""
    round: tuple[RoundFilterSettings, ...] = Field(default=(), max_length=50)
    """Around each request to the model."""
    call: tuple[CallFilterSettings, ...] = Field(default=(), max_length=50)
    """Around each run of a function."""
    named: Mapping[Word, CallFilterSettings] = Field(default_factory=dict)
    """Around the runs of those functions alone that name them in `filters=[…]`, inside those for all."""
