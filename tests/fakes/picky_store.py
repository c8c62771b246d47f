"""A store that refuses rows with a certain word, as a database refuses values that it cannot store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence

from services.store.port import BadUnit, Values, Write
from tests.fakes.full_disk import FullDisk


class PickyStore(FullDisk):
    """Refuses units that contain `refuses`; none if it is empty."""

    def __init__(self, refuses: str) -> None:
        super().__init__()
        self.refuses = refuses

    def commit(self, writes: Sequence[Write]) -> Awaitable[list[int]]:
        values = [value for write in writes for value in _bound(write.values)]
        if not self.refuses or not any(self.refuses in str(value) for value in values):
            return super().commit(writes)
        self.refused += 1
        refused: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()
        refused.set_exception(BadUnit(f"a value holds {self.refuses}"))
        return refused


def _bound(values: Values) -> Iterable[object]:
    return values if isinstance(values, tuple) else values.values()
