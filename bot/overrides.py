"""Values that replace parts of the daemon, for tests and commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random, SystemRandom
from typing import TYPE_CHECKING

from config.settings import Settings
from function_calls.filters.call import CallFilter
from function_calls.loading.source import Changes, FunctionSource, Unwatched
from services.clock import Clock, Deadlines, SystemClock
from services.fault_points import FaultPoints
from services.llm.model import ChatModel
from services.web.http import WebClient

if TYPE_CHECKING:
    from bot.cluster.cluster import Cluster


@dataclass(frozen=True, slots=True)
class Overrides:
    """Overrides of parts that are otherwise built from the settings, such as clock, random numbers, model and web
    client. Used by tests and commands; the daemon uses the defaults."""

    clock: Clock = field(default_factory=SystemClock)
    rng: Random = field(default_factory=SystemRandom)
    model: ChatModel | None = None
    shadow: ChatModel | None = None
    """Replaces the shadow model of the settings, which is not used if `model` is set."""
    web: WebClient | None = None
    sources: Callable[[Mapping[type, object]], Sequence[FunctionSource]] | None = None
    """Returns additional sources; called with the services that they may bind."""
    changes: Changes = field(default_factory=Unwatched)
    """Notifies sources of changed files."""
    asks_servers: bool = True
    """Whether MCP servers without known tools are queried at the start; else only when one of their tools is called."""
    logs_faults: bool = True
    """Whether unusable functions are logged; commands print them instead."""
    filters: Sequence[CallFilter] = ()
    """Filters around every run, the first one outermost."""
    named_filters: Mapping[str, CallFilter] = field(default_factory=dict)
    """Filters around the functions that name them."""
    read_settings: Callable[[], Settings] | None = None
    """Reads the settings from their file; raises SettingsInvalid. None: settings are never reloaded."""
    settings_file: Path | None = None
    """Path of the settings file, for diagnostics."""
    faults: FaultPoints = field(default_factory=FaultPoints)
    deadlines: Deadlines | None = None
    cluster: Cluster | None = None
    """The cluster that this process is part of."""
