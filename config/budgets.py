"""Settings of what members and chats may use in a day: requests to language models, tokens, money, costly functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from config.terms import Count, Number, Section, Tokens, Word

_Share = Annotated[Count, Field(ge=0, le=1_000_000_000)]


class AllowanceSettings(Section):
    """What may be used in a day, which begins at midnight in the chat's time zone. What is left out has no limit."""

    requests: _Share | None = None
    """Requests to a language model; a message takes one or more."""
    tokens: _Share | None = None
    """Tokens of requests and answers together."""
    money: Number | None = Field(default=None, ge=0, le=1_000_000)
    """Money, in the currency of `prices`."""
    units: _Share | None = None
    """Units of the functions that cost something, by `functions`."""


class PriceSettings(Section):
    """What a model costs, for a million tokens."""

    prompt: Number = Field(default=0, ge=0, le=100_000)
    """For what it is sent."""
    completion: Number = Field(default=0, ge=0, le=100_000)
    """For what it answers."""


class BudgetsSettings(Section):
    """Budgets of a day. With none set, nothing is counted."""

    member: AllowanceSettings = AllowanceSettings()
    """For each member, in all chats together."""
    chat: AllowanceSettings = AllowanceSettings()
    """For each chat, all its members together."""
    answer_tokens: Tokens = 500
    """How long an answer is taken to be before it is known."""
    prices: Mapping[Word, PriceSettings] = Field(default_factory=dict)
    """What models cost, by their names in `models`. Others are free."""
    functions: Mapping[Word, Annotated[Count, Field(ge=1, le=1_000_000)]] = Field(default_factory=dict)
    """Units that one run of a function takes, by its name. Others are free."""
