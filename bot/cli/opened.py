"""A daemon that receives nothing and sends nothing: for commands that run functions on the database of the settings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.daemon import Daemon
from bot.database.leadership import Leadership, lead_or_refuse
from bot.database.opening import lead_of, open_store
from bot.overrides import Given
from bot.wiring import build_daemon
from config.settings import Settings
from config.texts import Texts
from services.clock import Clock, SystemClock
from services.store.ids import Ids


@asynccontextmanager
async def a_daemon_for_calls(settings: Settings, *, logs_faults: bool) -> AsyncIterator[Daemon]:
    """It knows what chats have set and allowed for themselves. `logs_faults`: the log says which functions cannot be
    used, since whoever asks for the daemon does not. Raises StoreError, StoreInUse among them where a daemon
    runs, and DefinitionError."""
    clock = SystemClock()
    lead = lead_of(settings, clock)
    try:
        await lead_or_refuse(lead)
        async with _a_daemon(settings, clock, lead, logs_faults=logs_faults) as daemon:
            yield daemon
    finally:
        await lead.end()


@asynccontextmanager
async def _a_daemon(settings: Settings, clock: Clock, lead: Leadership, *, logs_faults: bool) -> AsyncIterator[Daemon]:
    store = await open_store(settings, clock, guard=lead.guard)
    try:
        given = Given(clock=clock, logs_faults=logs_faults, lead=lead)
        daemon = build_daemon(settings, store, [], Ids(clock), Texts(), given)
    except BaseException:
        await store.close()
        raise
    try:
        await daemon.chats.load(store)
        await daemon.grants.load()
        await daemon.functions.start()
        yield daemon
    finally:
        await daemon.stop()
