"""Values that replace parts of the daemon, for tests and commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random, SystemRandom

from bot.database.leadership import Alone, Lead
from config.settings import Settings
from function_calls.filters.call import CallFilter
from function_calls.loading.source import Changes, FunctionSource, Unwatched
from services.clock import Clock, Deadlines, SystemClock
from services.fault_points import FaultPoints
from services.llm.model import ChatModel
from services.store.port import StoreBroken
from services.web.http import WebClient


@dataclass(frozen=True, slots=True)
class Given:
    """What may be given from outside instead of being built from the settings: time, chance, the model, the way
    to the web, further functions, faults. Tests and the test kit use it; the daemon uses the defaults."""

    clock: Clock = field(default_factory=SystemClock)
    rng: Random = field(default_factory=SystemRandom)
    model: ChatModel | None = None
    shadow: ChatModel | None = None
    """Instead of the one that the settings name; where `model` is given, those name none."""
    web: WebClient | None = None
    sources: Callable[[Mapping[type, object]], Sequence[FunctionSource]] | None = None
    """Further sources, given the services that they may bind."""
    changes: Changes = field(default_factory=Unwatched)
    """Who tells sources that files have changed."""
    asks_servers: bool = True
    """Whether servers of tools of which nothing is known are asked for them; else only those whose tools are called."""
    logs_faults: bool = True
    """Whether the log says which functions cannot be used; commands say it themselves."""
    filters: Sequence[CallFilter] = ()
    """Around every run, the first one outermost."""
    named_filters: Mapping[str, CallFilter] = field(default_factory=dict)
    """Around the functions that name them."""
    read_settings: Callable[[], Settings] | None = None
    """The settings as they are in their file now; raises SettingsInvalid. None: they stay as they are."""
    settings_file: Path | None = None
    """Where they stand; for the places of what is wrong with them."""
    faults: FaultPoints = field(default_factory=FaultPoints)
    deadlines: Deadlines | None = None
    lead: Lead = field(default_factory=Alone)
    """Whether this process may send, where others could lead on the same database."""
    on_broken: Callable[[StoreBroken], None] | None = None
