"""What models there are, and what asking them may cost."""

from __future__ import annotations

from dataclasses import dataclass

from bot.chat_writer import ModelWriter
from bot.current_model import CurrentModel
from bot.models import model_of
from bot.paid_requests import PaidRequests
from bot.parts.ground import Ground
from function_calls.budgets import RequestBudgets
from function_calls.outages import Outages


@dataclass(frozen=True, slots=True)
class Models:
    """The model that is asked, and the ways to ask it."""

    current: CurrentModel
    requests: RequestBudgets
    paid: PaidRequests
    """Asks beside turns."""
    writer: ModelWriter
    """Writes words for functions."""
    outages: Outages


def models_of(ground: Ground) -> Models:
    """The model that was given, else those of the settings. Raises DefinitionError for a function of one's own that
    cannot be found."""
    settings, clock, deadlines = ground.settings, ground.clock, ground.deadlines
    current = CurrentModel(ground.given.model or model_of(settings, ground.texts, clock, deadlines))
    requests = RequestBudgets(settings.budgets, ground.store, clock)
    # The offline model puts nothing in short.
    paid = PaidRequests(current, requests, can_write=lambda: current.can_write)
    return Models(
        current=current,
        requests=requests,
        paid=paid,
        writer=ModelWriter(paid, ground.store, deadlines, clock),
        outages=Outages(clock, settings.failover.say_again_seconds),
    )
