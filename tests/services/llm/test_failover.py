"""Several models as one: selection, timeouts, and pauses after errors."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.sections.models import FailoverSettings
from services.clock import Deadlines, VirtualClock
from services.llm.failover import Breaker, Failover
from services.llm.model import ModelAnswer, ModelError, ModelMessage, ModelRequest
from services.refs import ErrorCode, ModelProblem

SETTINGS = FailoverSettings(
    first_answer_seconds=10,
    total_seconds=25,
    failures=2,
    cooldown_seconds=15,
    longest_cooldown_seconds=40,
    longest_wait_seconds=600,
)
DOWN = ModelError(ErrorCode.TRANSIENT, "connection refused", retryable=True)
BAD_KEY = ModelError(ErrorCode.PROVIDER_ERROR, "bad key", status=401)
NO_CREDIT = ModelError(ErrorCode.PROVIDER_ERROR, "spent", status=402)
NO_SUCH_MODEL = ModelError(ErrorCode.PROVIDER_ERROR, "no such model", status=404)
BAD_REQUEST = ModelError(ErrorCode.PROVIDER_ERROR, "bad schema", status=400)
EMPTY = ModelError(ErrorCode.EMPTY_RESPONSE, "nothing", retryable=True)
FILTERED = ModelError(ErrorCode.CONTENT_FILTERED, "declined")


def busy(seconds: float) -> ModelError:
    """An error with a requested delay."""
    return ModelError(ErrorCode.PROVIDER_ERROR, "busy", status=429, retryable=True, retry_after_seconds=seconds)


@dataclass
class Model:
    """Returns the items of its script in order, the last one repeatedly; `None` hangs."""

    name: str
    script: list[str | ModelError | None]
    asked: list[ModelRequest] = field(default_factory=list)
    closed: bool = False

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        self.asked.append(request)
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if step is None:
            await asyncio.Event().wait()
        if isinstance(step, ModelError):
            raise step
        return ModelAnswer(step or "")

    async def probe(self) -> str:
        return f"{self.name} is here"

    async def close(self) -> None:
        self.closed = True


class World:
    """Models behind a failover, with a virtual clock."""

    def __init__(self, *models: Model, settings: FailoverSettings = SETTINGS, suspended_seconds: float = 2.0) -> None:
        self.clock = VirtualClock()
        self.deadlines = Deadlines(self.clock, tick_seconds=0.01, suspended_seconds=suspended_seconds)
        self.models = models
        self.failover = Failover(models, settings, self.clock, self.deadlines)

    def asks(self, messages: Sequence[ModelMessage] = (), seconds: float = 60.0) -> asyncio.Task[ModelAnswer]:
        request = ModelRequest(list(messages) or [ModelMessage("user", "hi")], timeout_seconds=seconds)
        return asyncio.create_task(self.failover.complete(request))

    async def answer(self) -> str:
        """Name of the model, and its answer."""
        got = await self.asks()
        return f"{got.by}: {got.text}"

    async def error(self) -> ModelError:
        with pytest.raises(ModelError) as caught:
            await self.asks()
        return caught.value

    async def passes(self, seconds: float) -> None:
        """Advance the clock, including timeouts."""
        await self.clock.settle()
        await self.clock.advance(seconds)
        self.deadlines.expire()
        await self.clock.settle()

    def counts(self) -> list[int]:
        return [len(model.asked) for model in self.models]

    def troubles(self) -> list[ModelProblem | None]:
        return [state.problem for state in self.failover.states()]


async def test_the_first_model_answers_while_it_can_and_is_named() -> None:
    world = World(Model("a", ["Hi"]), Model("b", ["Ho"]))
    assert [await world.answer() for _ in range(3)] == ["a: Hi"] * 3
    assert world.counts() == [3, 0]


@pytest.mark.parametrize(
    "error", [DOWN, BAD_KEY, NO_CREDIT, NO_SUCH_MODEL, BAD_REQUEST, EMPTY, busy(30)], ids=lambda error: str(error)
)
async def test_the_next_model_is_asked_when_one_gives_nothing_usable(error: ModelError) -> None:
    world = World(Model("a", [error]), Model("b", ["Ho"]))
    assert await world.answer() == "b: Ho"


async def test_a_provider_that_declines_has_answered_and_nobody_else_is_asked() -> None:
    world = World(Model("a", [FILTERED]), Model("b", ["Ho"]))
    assert await world.error() is FILTERED
    assert (world.counts(), world.troubles()) == ([1, 0], [None, None])


async def test_a_model_that_says_nothing_is_left_for_the_next_one() -> None:
    world = World(Model("a", [None]), Model("b", ["Ho"]))
    asking = world.asks()
    await world.passes(9.9)
    assert not asking.done()
    await world.passes(0.1)
    assert (await asking).by == "b"
    assert [model.asked[0].timeout_seconds for model in world.models] == [10, 15]


async def test_all_models_together_have_one_deadline() -> None:
    world = World(Model("a", [None]), Model("b", [None]), Model("c", ["late"]))
    asking = world.asks()
    await world.passes(10)
    await world.passes(10)
    assert (await asking).by == "c"
    world = World(Model("a", [None]), Model("b", [None]))
    asking = world.asks()
    await world.passes(10)
    await world.passes(15)
    with pytest.raises(ModelError) as caught:
        await asking
    assert (caught.value.code, world.clock.monotonic()) == (ErrorCode.TIMEOUT, 25)


async def test_a_model_alone_may_take_all_the_time_of_the_request() -> None:
    world = World(Model("a", [None]))
    asking = world.asks(seconds=60)
    await world.passes(59)
    assert not asking.done()
    await world.passes(1)
    with pytest.raises(ModelError):
        await asking


async def test_a_model_that_fails_in_a_row_is_left_alone_and_tried_once_after_a_pause() -> None:
    world = World(Model("a", [DOWN, DOWN, "Hi"]), Model("b", ["Ho"]))
    for _ in range(4):
        assert await world.answer() == "b: Ho"
    assert world.counts() == [2, 4]
    assert world.failover.states()[0].seconds_left == 15
    await world.passes(15)
    assert await world.answer() == "a: Hi"
    assert world.troubles() == [None, None]


async def test_an_answer_in_between_makes_failures_begin_anew() -> None:
    world = World(Model("a", [DOWN, "Hi", DOWN, "Hi"]), Model("b", ["Ho"]))
    assert [await world.answer() for _ in range(4)] == ["b: Ho", "a: Hi", "b: Ho", "a: Hi"]


async def test_pauses_grow_while_trials_fail_but_not_for_ever() -> None:
    world = World(Model("a", [DOWN]), Model("b", ["Ho"]))
    await world.answer()
    lengths = []
    for _ in range(4):
        await world.answer()
        lengths.append(world.failover.states()[0].seconds_left)
        await world.passes(lengths[-1])
    assert lengths == [15, 30, 40, 40]


async def test_only_one_question_tries_a_model_that_failed() -> None:
    world = World(Model("a", [DOWN, DOWN, None]), Model("b", ["Ho"]))
    await world.answer()
    await world.answer()
    await world.passes(15)
    trial = world.asks()
    await world.clock.settle()
    assert [await world.answer() for _ in range(3)] == ["b: Ho"] * 3
    assert world.counts()[0] == 3
    trial.cancel()
    await world.clock.settle()
    world.models[0].script = ["Hi"]
    assert await world.answer() == "a: Hi"


@pytest.mark.parametrize("error", [BAD_KEY, NO_CREDIT, NO_SUCH_MODEL], ids=str)
async def test_what_somebody_has_to_mend_is_not_tried_again_soon(error: ModelError) -> None:
    world = World(Model("a", [error]), Model("b", ["Ho"]))
    await world.answer()
    assert world.troubles() == [error.problem, None]
    await world.passes(599)
    await world.answer()
    assert world.counts()[0] == 1
    await world.passes(1)
    await world.answer()
    assert world.counts()[0] == 2


@pytest.mark.parametrize(("asked_for", "kept"), [(7.0, 7.0), (86_400.0, 600.0)])
async def test_the_wait_that_a_provider_asks_for_is_kept_up_to_a_limit(asked_for: float, kept: float) -> None:
    world = World(Model("a", [busy(asked_for), "Hi"]), Model("b", ["Ho"]))
    await world.answer()
    await world.passes(kept - 0.5)
    assert await world.answer() == "b: Ho"
    await world.passes(0.5)
    assert await world.answer() == "a: Hi"


async def test_when_all_are_left_alone_the_failure_comes_at_once_and_says_when_to_try_again() -> None:
    world = World(Model("a", [BAD_KEY]), Model("b", [DOWN]))
    for _ in range(3):
        error = await world.error()
    assert (world.counts(), error.problem, error.retry_after_seconds) == ([1, 2], ModelProblem.OUTAGE, 15)


async def test_an_answer_that_cannot_be_used_is_no_reason_to_leave_a_model_alone() -> None:
    world = World(Model("a", [EMPTY]), Model("b", [DOWN]))
    for _ in range(5):
        assert (await world.error()).code is ErrorCode.EMPTY_RESPONSE
    assert world.troubles()[0] is None


async def test_a_model_that_was_given_too_little_time_is_not_blamed() -> None:
    world = World(Model("a", [None]))
    for _ in range(5):
        asking = world.asks(seconds=1)
        await world.passes(1)
        with pytest.raises(ModelError):
            await asking
    assert world.troubles() == [None]


async def test_a_model_is_not_blamed_for_requests_that_timed_out_while_the_process_was_suspended() -> None:
    world = World(Model("a", [None]), suspended_seconds=0.01)
    for _ in range(5):
        asking = world.asks(seconds=60)
        await asyncio.sleep(0)
        suspended_until = time.monotonic() + 0.03
        while time.monotonic() < suspended_until:
            pass
        await world.passes(60)
        with pytest.raises(ModelError):
            await asking
    assert world.troubles() == [None]


async def test_what_one_provider_wants_back_is_sent_to_no_other() -> None:
    signed = ModelMessage("assistant", "", opaque={"openai": {"message": {"signature": "s3cret"}}}, by="a")
    foreign = ModelMessage("assistant", "", opaque={"openai": {"message": {"signature": "other"}}})
    world = World(Model("a", ["Hi", DOWN]), Model("b", ["Ho"]))
    await world.asks([signed, foreign])
    await world.asks([signed, foreign])
    to_a, to_b = world.models[0].asked[0].messages, world.models[1].asked[0].messages
    assert [message.opaque for message in to_a] == [signed.opaque, None]
    assert [message.opaque for message in to_b] == [None, None]


async def test_closing_closes_every_model_and_the_probe_is_the_first_ones() -> None:
    world = World(Model("a", ["Hi"]), Model("b", ["Ho"]))
    assert await world.failover.probe() == "a is here"
    await world.failover.close()
    assert [model.closed for model in world.models] == [True, True]


_EVENTS = st.one_of(
    st.just("answered"),
    st.sampled_from([ModelProblem.OUTAGE, ModelProblem.BUSY, ModelProblem.KEY]),
    st.integers(min_value=1, max_value=1000),
)


@given(st.lists(_EVENTS, max_size=40))
def test_a_breaker_never_pauses_longer_than_allowed_and_always_lets_a_trial_through_afterwards(
    events: list[str | ModelProblem | int],
) -> None:
    async def run() -> None:
        clock = VirtualClock()
        breaker = Breaker(SETTINGS, clock)
        for event in events:
            if isinstance(event, int):
                await clock.advance(event)
                continue
            if not breaker.allows_request():
                assert 0 < breaker.seconds_left <= SETTINGS.longest_wait_seconds
                continue
            trial = breaker.begin()
            assert not (trial and breaker.allows_request())
            if event == "answered":
                breaker.answered()
                assert breaker.allows_request()
            else:
                breaker.failed(ModelProblem(event), trial=trial)
                assert not (trial and breaker.allows_request())
        await clock.advance(SETTINGS.longest_wait_seconds)
        assert breaker.allows_request()

    asyncio.run(run())
