"""A daemon without chats, on a database that is gone afterwards: for commands that look at functions or try them."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from pydantic import SecretStr

from bot.daemon import Daemon
from bot.database.opening import beside_of, open_store
from bot.overrides import Given
from bot.wiring import build_daemon
from config.settings import Settings
from config.texts import Texts
from services.llm.offline.offline import OfflineModel
from services.store.chats import mcp_pins
from services.store.ids import Ids
from services.store.port import Write
from services.store.side import ReaderError


@asynccontextmanager
async def scratch_daemon(settings: Settings, given: Given | None = None) -> AsyncIterator[Daemon]:
    """The daemon of `settings`, never connected to a model unless `given` has one. Of the tools of other programs it
    has those that were accepted in the settings' own database. Raises DefinitionError."""
    texts = Texts()
    given = given or Given()
    if given.model is None:
        given = replace(given, model=OfflineModel(texts))
    given = replace(given, asks_servers=False, logs_faults=False)
    accepted = _accepted(settings)
    with tempfile.TemporaryDirectory(prefix="rollcall-") as folder:
        logging = settings.logging.model_copy(update={"folder": Path(folder) / "logs"})
        kept_here = settings.store.model_copy(update={"url": SecretStr("")})
        settings = settings.model_copy(update={"home": Path(folder), "logging": logging, "store": kept_here})
        store = await open_store(settings, given.clock)
        try:
            await store.commit(accepted)
            daemon = build_daemon(settings, store, [], Ids(given.clock), texts, given)
        except BaseException:
            await store.close()
            raise
        try:
            await daemon.functions.start()
            yield daemon
        finally:
            await daemon.stop()


def _accepted(settings: Settings) -> list[Write]:
    """What the settings' own database knows of the tools of servers; nothing where there is none yet."""
    if not settings.mcp.servers:
        return []
    try:
        with beside_of(settings) as database:
            return [mcp_pins.copied(row) for row in database.rows(mcp_pins.everything())]
    except ReaderError:
        return []
