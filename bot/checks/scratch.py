"""Daemons without networks, for commands: on a temporary database, or on that of the settings."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from pydantic import SecretStr

from bot.daemon import Daemon, build_daemon
from bot.database.opening import open_store, operator_connection_of
from bot.overrides import Overrides
from config.settings import Settings
from config.texts import Texts
from services.clock import SystemClock
from services.llm.offline.offline import OfflineModel
from services.store.chats import mcp_pins
from services.store.ids import Ids
from services.store.port import Store, Write
from services.store.reader import ReaderError


@asynccontextmanager
async def scratch_daemon(settings: Settings, overrides: Overrides | None = None) -> AsyncIterator[Daemon]:
    """A daemon on a temporary database, without a model connection unless `overrides` has a model. Tools of MCP servers
    are those accepted in the settings' own database. Raises DefinitionError."""
    texts = Texts()
    overrides = overrides or Overrides()
    if overrides.model is None:
        overrides = replace(overrides, model=OfflineModel(texts))
    overrides = replace(overrides, asks_servers=False, logs_faults=False)
    accepted = _accepted(settings)
    with tempfile.TemporaryDirectory(prefix="rollcall-") as folder:
        logging = settings.logging.model_copy(update={"folder": Path(folder) / "logs"})
        local_store = settings.store.model_copy(update={"url": SecretStr("")})
        untraced = settings.telemetry.model_copy(update={"traces_url": None})
        local = {"home": Path(folder), "logging": logging, "store": local_store, "telemetry": untraced}
        settings = settings.model_copy(update=local)
        store = await open_store(settings, overrides.clock)
        async with _built(settings, store, overrides, texts) as daemon:
            await store.commit(accepted)
            await daemon.functions.start()
            yield daemon


def _accepted(settings: Settings) -> list[Write]:
    """Writes that copy the accepted tools from the settings' own database, if it exists."""
    if not settings.mcp.servers:
        return []
    try:
        with operator_connection_of(settings) as database:
            return [mcp_pins.copied(row) for row in database.rows(mcp_pins.EVERYTHING)]
    except ReaderError:
        return []


@asynccontextmanager
async def a_daemon_for_calls(settings: Settings, *, logs_faults: bool) -> AsyncIterator[Daemon]:
    """A daemon on the database of the settings, with the settings and grants of its chats. `logs_faults`: log unusable
    functions, if the caller does not report them. Raises StoreError (StoreInUse if a daemon is running) and
    DefinitionError."""
    clock = SystemClock()
    store = await open_store(settings, clock)
    async with _built(settings, store, Overrides(clock=clock, logs_faults=logs_faults), Texts()) as daemon:
        await daemon.chats.load(store)
        await daemon.grants.load()
        await daemon.functions.start()
        yield daemon


@asynccontextmanager
async def _built(settings: Settings, store: Store, overrides: Overrides, texts: Texts) -> AsyncIterator[Daemon]:
    """A daemon without networks on `store`, which is closed with it. Raises DefinitionError."""
    try:
        daemon = build_daemon(settings, store, [], Ids(overrides.clock), texts, overrides)
    except BaseException:
        await store.close()
        raise
    try:
        yield daemon
    finally:
        await daemon.stop()
