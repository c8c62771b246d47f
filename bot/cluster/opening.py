"""Opening the database as a process of a cluster. Imports the packages of the extra `cluster` on demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bot.database.opening import driver, prepare_server
from config.settings import Settings
from services.clock import Clock
from services.store.port import StoreBroken
from services.store.turns.cluster import ProcessRole

if TYPE_CHECKING:
    from bot.cluster.cluster import Cluster


async def open_cluster(
    settings: Settings, clock: Clock, on_broken: Callable[[StoreBroken], None] | None, role: ProcessRole
) -> Cluster:
    """This process as part of the cluster of the settings. Raises StoreError; StoreInUse if a single daemon has the
    database."""
    with driver("cluster", "procrastinate"):
        from bot.cluster.cluster import Cluster
        from services.store.postgres.jobs import prepare_jobs
        from services.store.postgres.locks import SHARED
        from services.store.postgres.store import PostgresStore

    def prepare(url: str) -> None:
        prepare_server(url)
        prepare_jobs(url)

    url = settings.store.url.get_secret_value()
    store = await PostgresStore.open(url, clock=clock, prepare=prepare, on_broken=on_broken, claims=[SHARED])
    try:
        return await Cluster.join(settings, store, clock, role)
    except BaseException:
        await store.close()
        raise
