"""A scripted model whose texts and calls are encoded by the server side of a protocol and parsed by its client. It uses
no sockets, to be fast; `tests.contracts.test_every_protocol` tests with sockets."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

import pytest

from bot import testing
from services.llm.model import ModelAnswer, ModelRequest
from tests.fakes.model import Scripted, ScriptedModel
from tests.fakes.wire_answers import Unsayable as Unsayable
from tests.fakes.wire_answers import body_of
from tests.fakes.wire_requests import is_told, same
from tests.fakes.wires import WIRES, Wire

Test = TypeVar("Test", bound=Callable[..., Any])
AT_HAND = "at hand"
_NOWHERE = "http://127.0.0.1:1/v1"
_WITH_IDS = frozenset({"openai", "anthropic"})
"""Protocols with call ids."""
_WITH_TYPES = frozenset({"openai", "anthropic", "json_text"})
"""Protocols with typed values; in the other one a value gets the type of its parameter."""
_UNFIT = re.compile(r"\\[rx]|\\u00|\\uff")
"""Control characters and invalid code points, in Python's notation; clients refuse them, or XML cannot contain them."""


class Way:
    """The protocol of the current test's models; see `each_protocol`."""

    wire: ClassVar[Wire | None] = None


@pytest.fixture(params=(None, *WIRES), ids=lambda way: name_of(way))
def each_protocol(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tests with this fixture run once with a model in memory, and once for each protocol."""
    Way.wire = request.param
    try:
        yield
    finally:
        Way.wire = None


over_each_protocol = pytest.mark.usefixtures("each_protocol")
"""For single tests in a module in which most need no model. The module imports the fixture."""


def at_hand(reason: str) -> Callable[[Test], Test]:
    """Run only with a model in memory, for this `reason`: no protocol is involved, or none can express the script."""
    assert reason
    return _over([None])


def not_over(*protocols: str, because: str) -> Callable[[Test], Test]:
    """Exclude protocols that cannot express the script, `because` of this reason."""
    assert because
    return _over(ways_but(*protocols))


def ways_but(*protocols: str) -> list[Wire | None]:
    """All protocols except these, and the model in memory."""
    assert {*protocols} < {wire.name for wire in WIRES}
    return [None, *(wire for wire in WIRES if wire.name not in protocols)]


def name_of(way: Wire | None) -> str:
    """Name of the protocol in test ids."""
    return AT_HAND if way is None else way.name


def _over(ways: Sequence[Wire | None]) -> Callable[[Test], Test]:
    over_these = pytest.mark.parametrize("each_protocol", ways, ids=name_of, indirect=True)
    return lambda test: over_each_protocol(over_these(test))


class Wired:
    """Server and client of a protocol."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._client = wire.model(_NOWHERE)
        self._answers = 0

    def carried(self, request: ModelRequest, step: ModelAnswer) -> ModelAnswer:
        """The client's answer for `step`, after the request has been encoded and checked. Raises ModelError like the
        client, and Unsayable."""
        is_told(self._wire, json.loads(self._client.encode(request)), request)
        self._answers += 1
        answer_id = step.request_id or f"answer-{self._answers}"
        answer = self._client.read(request, 200, {}, body_of(self._wire.name, step, answer_id))
        if request.offer is not None and request.offer.functions:
            self._is_read_as_it_was_said(answer, step)
        return replace(_under_the_ids(answer, step), request_id=step.request_id, by=step.by)

    def _is_read_as_it_was_said(self, answer: ModelAnswer, step: ModelAnswer) -> None:
        said, read = step.calls, answer.calls
        if not _are_distinct(step) or any(_UNFIT.search(str(call.arguments)) for call in said):
            return
        if self._wire.name not in _WITH_IDS and len(said) > 1 and any(call.arguments is None for call in said):
            # If one call of a text is invalid, all of them are.
            same("arguments", [one.arguments for one in read], [None])
            return
        same("calls", [(one.name, one.fault) for one in read], [(one.name, one.fault) for one in said])
        same("tokens", answer.usage, step.usage)
        if self._wire.name in _WITH_TYPES:
            same("arguments", [one.arguments for one in read], [one.arguments for one in said])
        if self._wire.name in _WITH_IDS:
            same("ids", [one.id for one in read], [one.id for one in said])


def _are_distinct(step: ModelAnswer) -> bool:
    """Whether each call has a distinct id; otherwise the client generates ids and drops duplicates."""
    ids = [call.id for call in step.calls]
    return all(ids) and len({*ids}) == len(ids)


def _under_the_ids(answer: ModelAnswer, step: ModelAnswer) -> ModelAnswer:
    """`answer` with the ids of the script, because protocols without ids generate them."""
    if not _are_distinct(step) or len(answer.calls) != len(step.calls):
        return answer
    calls = tuple(replace(one, id=call.id) for one, call in zip(answer.calls, step.calls, strict=True))
    return replace(answer, calls=calls)


class WiredModel(ScriptedModel):
    """Answers are its script after encoding and parsing with `wire`. Errors in the script are raised unchanged, because
    the clients' own tests cover the bytes of errors."""

    def __init__(self, wire: Wire, *script: Scripted) -> None:
        super().__init__(*script)
        self._wired = Wired(wire)

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        return self._wired.carried(request, await super().complete(request))


def scripted_model(*script: Scripted) -> ScriptedModel:
    """A model with this script, with the protocol of the current test."""
    return ScriptedModel(*script) if Way.wire is None else WiredModel(Way.wire, *script)


def encoded(request: ModelRequest) -> bytes:
    """Request body of `request` in the protocol of the current test; for a model in memory, in the first protocol."""
    return (Way.wire or WIRES[0]).model(_NOWHERE).encode(request)


class _Between:
    """Wraps the model of a group's daemon."""

    def __init__(self, wire: Wire, model: testing.ScriptedModel) -> None:
        self.name = model.name
        self._model = model
        self._wired = Wired(wire)
        self.fault: AssertionError | None = None
        """The first encoding error, because a daemon does not report exceptions to the test."""

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        step = await self._model.complete(request)
        try:
            return self._wired.carried(request, step)
        except AssertionError as fault:
            self.fault = fault
            raise

    async def probe(self) -> str:
        return await self._model.probe()

    async def close(self) -> None:
        return None


@asynccontextmanager
async def a_group(*functions: Any, **options: Any) -> AsyncIterator[testing.Group]:
    """`bot.testing.a_group` with the protocol of the current test."""
    if Way.wire is None or "model" in options:
        async with testing.a_group(*functions, **options) as group:
            yield group
        return
    model = testing.ScriptedModel()
    between = _Between(Way.wire, model)
    try:
        async with testing.a_group(*functions, model=between, **options) as group:
            group.model = model
            yield group
    finally:
        if between.fault is not None:
            raise between.fault
