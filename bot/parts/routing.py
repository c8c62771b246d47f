"""How a message finds its function."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from bot.live_parts import BuildRouter
from bot.model_records import ModelRecords
from bot.models import shadow_of
from bot.parts.calling import Calling
from bot.parts.ground import Ground
from bot.parts.models import Models
from bot.parts.planning import Planning
from bot.parts.sending import Sending
from bot.shadow_records import ShadowRecords
from config.settings import Settings
from function_calls.filters.filters import Filters
from function_calls.llm import FunctionCallLLM
from function_calls.router import FunctionCallRouter
from function_calls.schedule_ends import ScheduleEnds
from function_calls.shadow import Shadow
from function_calls.shortlist import ChatLists


@dataclass(frozen=True, slots=True)
class Routing:
    """The router, and the model that is compared with the one that it asks."""

    router: FunctionCallRouter
    """As it was at the start."""
    router_of: BuildRouter
    shadow: Shadow | None


def routing_of(ground: Ground, models: Models, planning: Planning, calling: Calling, sending: Sending) -> Routing:
    """By the settings at the start. Raises DefinitionError for a second model that cannot be used."""
    shadow = _shadow(ground, sending)
    asked = ModelRecords(ground.model_log, ground.clock)
    lists: ChatLists = OrderedDict()

    def router_of(settings: Settings, filters: Filters) -> FunctionCallRouter:
        llm = FunctionCallLLM(
            models.current,
            calling.invoker,
            settings.router,
            ground.clock,
            filters=[*filters.round, *([shadow.around] if shadow else [])],
            record=asked.record,
            faults=ground.faults,
            outages=models.outages,
            budgets=models.requests,
            lists=lists,
        )
        return FunctionCallRouter(calling.invoker, llm, filters.turn, ScheduleEnds(planning.schedules))

    return Routing(router_of(ground.settings, calling.filters), router_of, shadow)


def _shadow(ground: Ground, sending: Sending) -> Shadow | None:
    """The second model that only says what it would have called; None where there is none."""
    given, clock, settings = ground.given, ground.clock, ground.settings
    model = given.shadow or (shadow_of(settings, clock) if given.model is None else None)
    if model is None:
        return None
    compared = ShadowRecords(ground.shadow_log, ground.registry, clock, ground.redact)
    return Shadow(model, settings.router.shadow, clock, compared.record, sending.delivery.delivered)
