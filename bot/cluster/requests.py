"""Requests to the process that holds an account: rows with a deadline, announced by notifications."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from services.background import Background
from services.clock import Clock
from services.store.ids import Ids
from services.store.port import Conflict, Row, Store
from services.store.postgres import cluster

_POLL_SECONDS = 1.0
"""Interval in which rows are read without a notification, which is lost with its connection."""
_log = structlog.get_logger("cluster")
Answer = Callable[[str, str], Awaitable[str]]
"""Answers a request to an account, by its method and body."""


class Requests:
    """Requests of this process to others, and of others to this one."""

    def __init__(self, store: Store, ids: Ids, clock: Clock) -> None:
        self._store = store
        self._ids = ids
        self._clock = clock
        self._answered: dict[int, asyncio.Event] = {}
        self._has_open = asyncio.Event()
        self._background = Background()

    async def ask(self, account: str, method: str, body: str, seconds: float) -> str:
        """The answer of the process that holds `account`. Raises TimeoutError without an answer in time: it is unknown
        then whether the request was executed. Raises StoreError."""
        id_, until_ms = self._ids.next(), self._clock.now_ms() + round(seconds * 1000)
        announced = cluster.notify(cluster.GATEWAYS, f"request {account}")
        answered = self._answered[id_] = asyncio.Event()
        try:
            async with asyncio.timeout(seconds):
                await self._store.commit([cluster.ask(id_, account, method, body, until_ms), announced])
                while not (rows := await self._store.read(cluster.answered(id_))):
                    await wait(answered, _POLL_SECONDS)
            return str(rows[0]["answer"])
        finally:
            del self._answered[id_]
            self._store.post([cluster.withdraw(id_)])

    def note_request(self) -> None:
        """There may be new requests for the accounts of this process."""
        self._has_open.set()

    def note_answer(self, id_: int) -> None:
        """The request `id_`, perhaps of this process, is answered."""
        if id_ in self._answered:
            self._answered[id_].set()

    async def serve(self, answer_of: Callable[[str], Answer | None]) -> None:
        """Answer the requests to the accounts (`network:account`) for which `answer_of` is not None, until
        cancelled."""
        try:
            while True:
                await wait(self._has_open, _POLL_SECONDS)
                self._has_open.clear()
                now_ms = self._clock.now_ms()
                for row in await self._store.read(cluster.OPEN_REQUESTS):
                    answer = answer_of(row["account"])
                    if answer is not None and row["until_ms"] > now_ms:
                        self._background.start(self._serve(answer, row))
        finally:
            await self._background.close()

    async def _serve(self, answer: Answer, row: Row) -> None:
        id_, method = row["id"], row["method"]
        try:
            # A request is executed at most once: after a crash it stays claimed, and nobody answers it.
            await self._store.commit([cluster.claim(id_)])
            text = await answer(method, row["body"])
            await self._store.commit([cluster.answer(id_, text), cluster.notify(cluster.WORKERS, f"answer {id_}")])
        except Conflict:
            return
        except Exception as error:  # noqa: BLE001 - a broken request must not end the process; its asker gets no answer
            _log.error("request_failed", account=row["account"], method=method, exc_info=error)


async def wait(event: asyncio.Event, seconds: float) -> None:
    """Return when `event` is set, or after `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
