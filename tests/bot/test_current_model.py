"""Replacing the model at run time: new requests use the new one, the old one is closed after its last request."""

from __future__ import annotations

import asyncio
import contextlib

from bot.registration.models import CurrentModel
from config.texts import Texts
from services.llm.model import ModelAnswer, ModelMessage, ModelRequest
from services.llm.offline.offline import OfflineModel

QUESTION = ModelRequest([ModelMessage("user", "hello")])


class Slow:
    """Answers with its name after its release."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.may_answer = asyncio.Event()
        self.asked = asyncio.Event()
        self.closed = asyncio.Event()

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        self.asked.set()
        await self.may_answer.wait()
        assert not self.closed.is_set()
        return ModelAnswer(text=self.name)

    async def probe(self) -> str:
        return self.name

    async def close(self) -> None:
        self.closed.set()


async def test_what_was_asked_is_answered_by_the_old_one_and_the_next_by_the_new() -> None:
    old, new = Slow("old"), Slow("new")
    model = CurrentModel(old)
    first = asyncio.create_task(model.complete(QUESTION))
    second = asyncio.create_task(model.complete(QUESTION))
    await old.asked.wait()
    model.use(new)
    assert model.name == "new"
    third = asyncio.create_task(model.complete(QUESTION))
    await new.asked.wait()
    second.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await second
    assert not old.closed.is_set()
    old.may_answer.set()
    new.may_answer.set()
    assert ((await first).text, (await third).text) == ("old", "new")
    await old.closed.wait()
    assert not new.closed.is_set()
    await model.close()
    assert new.closed.is_set()


async def test_an_idle_model_is_closed_immediately_and_an_unchanged_one_is_kept() -> None:
    old, new = Slow("old"), Slow("new")
    model = CurrentModel(old)
    model.use(old)
    await asyncio.sleep(0)
    assert not old.closed.is_set()
    model.use(new)
    await old.closed.wait()
    await model.close()


async def test_only_one_that_finds_words_of_its_own_writes() -> None:
    model = CurrentModel(OfflineModel(Texts()))
    assert not model.can_write
    model.use(Slow("online"))
    assert model.can_write
