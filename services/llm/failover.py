"""Failover between several models in order, with a circuit breaker for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

import structlog

from config.sections.models import FailoverSettings
from services.clock import Clock, Deadlines
from services.llm.model import ChatModel, ModelAnswer, ModelError, ModelRequest
from services.refs import ErrorCode, ModelProblem
from services.retry import RetryPolicy

_TO_BE_MENDED = frozenset({ModelProblem.KEY, ModelProblem.QUOTA, ModelProblem.MISSING})
"""Problems that an operator has to fix: retrying cannot help."""


class Breaker:
    """Circuit breaker. Closed: requests pass. Open: none pass until the pause ends; then one trial request passes, and
    its result closes the breaker or starts a longer pause."""

    def __init__(self, settings: FailoverSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._failures = 0
        self._pauses = 0
        self._until: float | None = None
        self._trial_runs = False
        self.trouble: ModelProblem | None = None
        """Why the breaker is open; None if it is closed."""

    @property
    def seconds_left(self) -> float:
        """Remaining pause in seconds; 0 if a request may pass or the trial is running."""
        return 0.0 if self._until is None else max(0.0, self._until - self._clock.monotonic())

    def lets_through(self) -> bool:
        """Whether a request may start now."""
        return self._until is None or (not self._trial_runs and self._until <= self._clock.monotonic())

    def begin(self) -> bool:
        """Start a permitted request. Returns whether it is the trial, for `failed` or `left`."""
        self._trial_runs = self._until is not None
        return self._trial_runs

    def answered(self) -> None:
        """The model responded, even with an error: close the breaker."""
        self._failures = self._pauses = 0
        self._until = self.trouble = None
        self._trial_runs = False

    def failed(self, trouble: ModelProblem, *, trial: bool, retry_after_seconds: float | None = None) -> bool:
        """The model was unavailable. Returns whether a pause starts."""
        if self._until is not None and not trial:
            # The request started before the pause and adds no information.
            return False
        self._trial_runs = False
        self._failures += 1
        pause = self._pause(trouble, retry_after_seconds, trial=trial)
        if not pause:
            return False
        self._until = self._clock.monotonic() + pause
        self.trouble = trouble
        return True

    def left(self, *, trial: bool) -> None:
        """The request ended without information about the model."""
        if trial:
            self._trial_runs = False

    def _pause(self, trouble: ModelProblem, retry_after_seconds: float | None, *, trial: bool) -> float:
        """Length of the pause to start, in seconds; 0 for no pause."""
        if trouble in _TO_BE_MENDED:
            return self._settings.longest_wait_seconds
        if retry_after_seconds:
            return min(retry_after_seconds, self._settings.longest_wait_seconds)
        if not trial and self._failures < self._settings.failures:
            return 0.0
        longest = max(self._settings.cooldown_seconds, self._settings.longest_cooldown_seconds)
        self._pauses += 1
        policy = RetryPolicy(first_wait_seconds=self._settings.cooldown_seconds, longest_wait_seconds=longest)
        return policy.wait_after(self._pauses)


_log = structlog.get_logger("models")
_opaque_of = attrgetter("opaque")

_AVAILABILITY = frozenset(
    {ModelProblem.OUTAGE, ModelProblem.BUSY, ModelProblem.KEY, ModelProblem.QUOTA, ModelProblem.MISSING}
)
"""Problems that mean the model was unavailable. With any other problem it responded."""
_NOT_PASSED_ON = frozenset({ModelProblem.FILTERED})
"""A provider that declines has answered; failing over until a filter lets the request pass serves no operator."""


@dataclass(frozen=True, slots=True)
class ModelState:
    """State of one model."""

    name: str
    trouble: ModelProblem | None
    """Why the model is skipped; None if it is used."""
    seconds_left: float
    """Remaining pause in seconds; 0 with a trouble: the next request is a trial."""
    failures: int
    """Number of requests it was unavailable for, since the start."""


@dataclass(slots=True)
class _Member:
    model: ChatModel
    breaker: Breaker
    failures: int = 0


@dataclass(slots=True)
class _Asked:
    """One request with its deadline and errors."""

    request: ModelRequest
    deadline: float
    errors: list[ModelError] = field(default_factory=list)


class Failover:
    """ChatModel that tries `models` in order. `ModelAnswer.by` names the model that answered."""

    name = "failover"

    def __init__(
        self, models: Sequence[ChatModel], settings: FailoverSettings, clock: Clock, deadlines: Deadlines
    ) -> None:
        self._members = [_Member(model, Breaker(settings, clock)) for model in models]
        self._settings = settings
        self._clock = clock
        self._deadlines = deadlines

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """The first answer. Raises the first error from a model that was available, else the last error; fails at once
        if all models are paused."""
        now = self._clock.monotonic()
        # A single model enforces its own time limit.
        total = self._settings.total_seconds if len(self._members) > 1 else request.timeout_seconds
        asked = _Asked(request, now + min(request.timeout_seconds, total))
        for place, member in enumerate(self._members):
            if not member.breaker.lets_through():
                continue
            answer = await self._ask(member, asked, is_last=not self._has_another(place + 1))
            if answer is not None:
                return answer
            if self._clock.monotonic() >= asked.deadline:
                break
        raise _worth_telling(asked.errors) or self._all_left_alone()

    async def probe(self) -> str:
        """Probe the first model."""
        return await self._members[0].model.probe()

    async def close(self) -> None:
        for member in self._members:
            await member.model.close()

    def states(self) -> Sequence[ModelState]:
        """States of all models, in order."""
        return [
            ModelState(one.model.name, one.breaker.trouble, one.breaker.seconds_left, one.failures)
            for one in self._members
        ]

    def _has_another(self, start: int) -> bool:
        return any(member.breaker.lets_through() for member in self._members[start:])

    async def _ask(self, member: _Member, asked: _Asked, *, is_last: bool) -> ModelAnswer | None:
        """The model's answer; None to try the next model. Raises errors that do not fail over."""
        name, breaker = member.model.name, member.breaker
        left = asked.deadline - self._clock.monotonic()
        seconds = left if is_last else min(left, self._settings.first_answer_seconds)
        request = _fit_for(name, asked.request, seconds)
        trial = breaker.begin()
        try:
            answer = await self._within(member.model, request)
        except ModelError as error:
            self._note(member, error, trial=trial, seconds=seconds)
            if error.trouble in _NOT_PASSED_ON:
                raise
            asked.errors.append(error)
            return None
        except BaseException:
            breaker.left(trial=trial)
            raise
        self._works(member)
        return answer.given_by(name)

    async def _within(self, model: ChatModel, request: ModelRequest) -> ModelAnswer:
        try:
            return await self._deadlines.run(model.complete(request), self._clock.monotonic() + request.timeout_seconds)
        except TimeoutError:
            raise ModelError(
                ErrorCode.TIMEOUT, f"no answer within {request.timeout_seconds:.1f} s", retryable=True
            ) from None

    def _note(self, member: _Member, error: ModelError, *, trial: bool, seconds: float) -> None:
        name, trouble = member.model.name, error.trouble
        _log.warning("model_gave_no_answer", model=name, trouble=trouble.value, code=error.code.value, error=str(error))
        if trouble not in _AVAILABILITY:
            self._works(member)
            return
        member.failures += 1
        if error.code is ErrorCode.TIMEOUT and seconds < self._settings.first_answer_seconds:
            # Too little time for any model, so the timeout does not count against it.
            member.breaker.left(trial=trial)
            return
        if member.breaker.failed(trouble, trial=trial, retry_after_seconds=error.retry_after_seconds):
            _tell_operator(name, trouble, member.breaker.seconds_left)

    def _works(self, member: _Member) -> None:
        if member.breaker.trouble is not None:
            _log.info("model_answers_again", model=member.model.name)
        member.breaker.answered()

    def _all_left_alone(self) -> ModelError:
        soonest = min(self._members, key=lambda member: member.breaker.seconds_left).breaker
        return ModelError(
            ErrorCode.PROVIDER_ERROR,
            "every model is left alone after failures",
            retry_after_seconds=soonest.seconds_left,
            trouble=soonest.trouble,
        )


def _worth_telling(errors: Sequence[ModelError]) -> ModelError | None:
    """The first error of an available model, which concerns this request; else the last error."""
    there = (error for error in errors if error.trouble not in _AVAILABILITY)
    return next(there, errors[-1] if errors else None)


def _fit_for(name: str, request: ModelRequest, seconds: float) -> ModelRequest:
    """`request` limited to `seconds`, without opaque data of other providers, which is signed or private."""
    messages = request.messages
    # Fast path: few messages have opaque data.
    if any(map(_opaque_of, messages)) and any(message.opaque and message.by != name for message in messages):
        messages = [message if message.by == name else replace(message, opaque=None) for message in messages]
    if messages is request.messages and seconds >= request.timeout_seconds:
        return request
    return request.within(seconds, messages)


def _tell_operator(name: str, trouble: ModelProblem, seconds: float) -> None:
    """Log an outage as a warning, and problems for the operator as errors that name the setting."""
    match trouble:
        case ModelProblem.KEY:
            _log.error("model_refuses_its_key", model=name, setting=f"models.{name}.api_key", seconds=seconds)
        case ModelProblem.QUOTA:
            _log.error("model_has_no_credit_left", model=name, seconds=seconds)
        case ModelProblem.MISSING:
            _log.error("model_not_found", model=name, setting=f"models.{name}.model, base_url", seconds=seconds)
        case _:
            _log.warning("model_left_alone", model=name, trouble=trouble.value, seconds=seconds)
