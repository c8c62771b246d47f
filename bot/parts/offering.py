"""Where functions come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bot.function_sources import FunctionSources, WantedSource
from bot.functions import made_of, sources_of
from bot.mcp_clients import mcp_sources
from bot.parts.calling import Calling
from bot.parts.ground import Ground
from bot.parts.leaning import Leaning
from config.settings import Settings
from services.mcp.pins import Pins
from services.mcp.sandboxed import SandboxedStart


@dataclass(frozen=True, slots=True)
class Offering:
    """What keeps the registry as the sources say."""

    sources: FunctionSources
    wanted: Callable[[Settings], list[WantedSource]]
    """The sources that settings want."""
    pins: Pins


def offering_of(ground: Ground, leaning: Leaning, calling: Calling) -> Offering:
    """The sources of the settings and those that are given; `calling` says what cannot be run."""
    given, clock, services = ground.given, ground.clock, leaning.services
    others = [WantedSource(one, one) for one in (given.sources(services) if given.sources else ())]
    pins = Pins(ground.store, clock)
    start = SandboxedStart(leaning.sandbox, Path(ground.settings.home) / "mcp")

    def wanted(settings: Settings) -> list[WantedSource]:
        coarsely = made_of(settings)
        found = sources_of(settings, services, given.changes)
        servers = mcp_sources(settings.mcp.servers, pins, clock, start, asks_first=given.asks_servers)
        return [
            *(one if isinstance(one, WantedSource) else WantedSource(one, coarsely) for one in found),
            *servers,
            *others,
        ]

    sources = FunctionSources(
        wanted(ground.settings), ground.registry, calling.invoker.problems_of, logs_faults=given.logs_faults
    )
    return Offering(sources, wanted, pins)
