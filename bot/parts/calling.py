"""The one way in which functions are run: the policies that judge a run, and the filters around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from bot.call_records import CallRecords
from bot.filters import FilterFactory
from bot.parts.consent import Consent
from bot.parts.ground import Ground
from config.settings import Settings
from function_calls.budgets import FunctionBudgets
from function_calls.filters.filters import Filters
from function_calls.invocation import Invoker
from function_calls.policies import Policies
from function_calls.taint import Taint


@dataclass(frozen=True, slots=True)
class Calling:
    """Who runs functions, and by what."""

    invoker: Invoker
    units: FunctionBudgets
    filters: Filters
    """Those of the settings at the start, around runs, rounds and turns."""
    filters_of: Callable[[Settings], Filters]
    """Those of other settings; raises DefinitionError."""


def calling_of(ground: Ground, consent: Consent) -> Calling:
    """By the settings at the start. Raises DefinitionError for filters that cannot be used."""
    settings, given, clock = ground.settings, ground.given, ground.clock
    factory = FilterFactory(ground.store, clock, ground.deadlines, ground.redact)

    def filters_of(settings: Settings) -> Filters:
        filters = factory.build(settings.filters)
        named = {**filters.named, **given.named_filters}
        return replace(filters, call=[*given.filters, *filters.call], named=named)

    filters, units = filters_of(settings), FunctionBudgets(settings.budgets, ground.store, clock)
    invoker = Invoker(
        Policies(budget=units, taint=Taint(consent.approvals), approval=consent.approvals),
        ground.deadlines,
        clock,
        filters=filters.call,
        named_filters=filters.named,
        record=CallRecords(ground.call_log, ground.metrics, clock, ground.redact).record,
        faults=ground.faults,
    )
    return Calling(invoker, units, filters, filters_of)
