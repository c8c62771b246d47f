import asyncio
from dataclasses import dataclass, field

import pytest

from services.clock import VirtualClock
from services.llm.model import ModelAnswer, ModelError, ModelMessage, ModelRequest
from services.llm.resilient import ResilientModel
from services.refs import ErrorCode
from services.retry import Retry

PASSING = ModelError(ErrorCode.PROVIDER_ERROR, "busy", retryable=True)
LASTING = ModelError(ErrorCode.PROVIDER_ERROR, "bad key", status=401)
ANSWER = ModelAnswer("Hi")


@dataclass
class ScriptedModel:
    """Returns or raises the items of the script; each attempt takes `seconds`."""

    clock: VirtualClock
    script: list[ModelAnswer | ModelError]
    seconds: float = 0.0
    name: str = "scripted"
    given_seconds: list[float] = field(default_factory=list)
    closed: bool = False

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        self.given_seconds.append(request.timeout_seconds)
        if self.seconds:
            await self.clock.sleep(min(self.seconds, request.timeout_seconds))
        if self.seconds > request.timeout_seconds:
            raise ModelError(ErrorCode.TIMEOUT, "no answer", retryable=True)
        outcome = self.script.pop(0)
        if isinstance(outcome, ModelError):
            raise outcome
        return outcome

    async def probe(self) -> str:
        return "here"

    async def close(self) -> None:
        self.closed = True


async def ask(
    model: ScriptedModel,
    timeout_seconds: float = 60.0,
    *,
    own_seconds: float | None = None,
    patience_seconds: float | None = None,
) -> ModelAnswer:
    """Result of a resilient `model`, with half of each bound as jitter, while the clock advances."""
    retry = Retry(model.clock, jitter=lambda low, high: (low + high) / 2)
    resilient = ResilientModel(model, retry, model.clock, own_seconds, patience_seconds=patience_seconds)
    request = ModelRequest([ModelMessage("user", "hi")], timeout_seconds=timeout_seconds)
    asking = asyncio.create_task(resilient.complete(request))
    await model.clock.settle()
    while not asking.done():
        await model.clock.advance(0.25)
    return await asking


async def failure(model: ScriptedModel, timeout_seconds: float = 60.0) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await ask(model, timeout_seconds)
    return caught.value


async def test_a_first_answer_is_passed_on_with_the_request_as_it_was() -> None:
    model = ScriptedModel(VirtualClock(), [ANSWER])
    assert await ask(model) is ANSWER
    assert (model.given_seconds, model.clock.monotonic()) == ([60.0], 0.0)


async def test_what_may_pass_is_tried_again_with_growing_waits() -> None:
    model = ScriptedModel(VirtualClock(), [PASSING, PASSING, ANSWER])
    assert await ask(model) is ANSWER
    assert model.given_seconds == [60.0, 59.75, 59.25]


async def test_the_third_failure_is_the_last() -> None:
    model = ScriptedModel(VirtualClock(), [PASSING, PASSING, PASSING, ANSWER])
    assert await failure(model) is PASSING
    assert len(model.given_seconds) == 3


async def test_what_will_not_pass_is_not_tried_again() -> None:
    model = ScriptedModel(VirtualClock(), [PASSING, LASTING, ANSWER])
    assert await failure(model) is LASTING
    assert len(model.given_seconds) == 2


async def test_the_wait_that_the_provider_asks_for_is_kept() -> None:
    busy = ModelError(ErrorCode.PROVIDER_ERROR, "busy", retryable=True, retry_after_seconds=7.0)
    model = ScriptedModel(VirtualClock(), [busy, ANSWER])
    await ask(model)
    assert model.given_seconds == [60.0, 52.75]


async def test_a_wait_beyond_the_deadline_fails_at_once_and_says_how_long_it_is() -> None:
    busy = ModelError(ErrorCode.PROVIDER_ERROR, "busy", retryable=True, retry_after_seconds=86_400.0)
    model = ScriptedModel(VirtualClock(), [busy, ANSWER])
    assert (await failure(model)).retry_after_seconds == 86_400.0
    assert (model.clock.monotonic(), len(model.given_seconds)) == (0.0, 1)


async def test_all_attempts_share_one_deadline() -> None:
    model = ScriptedModel(VirtualClock(), [PASSING, PASSING, PASSING], seconds=6.0)
    assert (await failure(model, timeout_seconds=10.0)).code is ErrorCode.TIMEOUT
    assert model.given_seconds == [10.0, 3.75]
    assert model.clock.monotonic() <= 10.25


async def test_a_model_has_no_more_time_than_its_own_for_all_attempts() -> None:
    model = ScriptedModel(VirtualClock(), [], seconds=100.0)
    with pytest.raises(ModelError):
        await ask(model, timeout_seconds=60.0, own_seconds=25.0)
    assert (model.given_seconds, model.clock.monotonic()) == ([25.0], 25.0)


async def test_a_longer_wait_than_one_has_patience_for_is_not_sat_out() -> None:
    busy = ModelError(ErrorCode.PROVIDER_ERROR, "busy", retryable=True, retry_after_seconds=7.0)
    model = ScriptedModel(VirtualClock(), [busy, ANSWER])
    with pytest.raises(ModelError):
        await ask(model, patience_seconds=5.0)
    assert (len(model.given_seconds), model.clock.monotonic()) == (1, 0.0)


async def test_name_probe_and_close_are_those_of_the_model_inside() -> None:
    model = ScriptedModel(VirtualClock(), [])
    resilient = ResilientModel(model, Retry(model.clock), model.clock)
    assert (resilient.name, await resilient.probe()) == ("scripted", "here")
    await resilient.close()
    assert model.closed
