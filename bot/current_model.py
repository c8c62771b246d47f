"""The language model of this moment: the one that the settings name, which others may take the place of."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from bot.models import states_of
from services.llm.failover import ModelState
from services.llm.model import ChatModel, ModelAnswer, ModelRequest
from services.llm.offline import OfflineModel


class CurrentModel:
    """A ChatModel that asks the one in use. One whose place was taken is closed as soon as nobody waits for it."""

    def __init__(self, model: ChatModel) -> None:
        self.name = model.name
        self._model = model
        self._asked: Counter[ChatModel] = Counter()
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def can_write(self) -> bool:
        """Whether it finds words of its own: the offline model does not."""
        return not isinstance(self._model, OfflineModel)

    def use(self, model: ChatModel) -> None:
        """The next question goes to `model`."""
        old, self._model, self.name = self._model, model, model.name
        if old is not model:
            self._close_if_idle(old)

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Its answer. Raises ModelError."""
        model = self._model
        self._asked[model] += 1
        try:
            return await model.complete(request)
        finally:
            self._asked[model] -= 1
            if model is not self._model:
                self._close_if_idle(model)

    async def probe(self) -> str:
        """Its line. Raises ModelError."""
        return await self._model.probe()

    async def close(self) -> None:
        """Close it, and see to the end of those that are being closed."""
        await self._model.close()
        if self._closing:
            await asyncio.wait(self._closing)

    def states(self) -> Sequence[ModelState]:
        """How each model behind it is doing."""
        return states_of(self._model)

    def _close_if_idle(self, model: ChatModel) -> None:
        if self._asked[model] > 0:
            return
        del self._asked[model]
        task = asyncio.get_running_loop().create_task(model.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
