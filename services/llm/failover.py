"""Failover between several models in order, with a circuit breaker for each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import structlog

from config.sections.models import FailoverSettings
from services.clock import Clock, Deadlines
from services.llm.model import ChatModel, ModelAnswer, ModelError, ModelRequest
from services.refs import ErrorCode, ModelProblem
from services.retry import RetryPolicy

_NEEDS_OPERATOR = frozenset({ModelProblem.KEY, ModelProblem.QUOTA, ModelProblem.MISSING})
"""Problems that an operator has to fix: retrying cannot help."""


class Breaker:
    """Circuit breaker. Closed: requests pass. Open: none pass until the pause ends; then one trial request passes, and
    its result closes the breaker or starts a longer pause. Opens after `failures` failures in a row."""

    def __init__(self, settings: FailoverSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._failures = 0
        self._pauses = 0
        self._until: float | None = None
        self._trial_runs = False
        self.problem: ModelProblem | None = None
        """Why the breaker is open; None if it is closed."""

    @property
    def seconds_left(self) -> float:
        """Remaining pause in seconds; 0 if a request may pass or the trial is running."""
        return 0.0 if self._until is None else max(0.0, self._until - self._clock.monotonic())

    def allows_request(self) -> bool:
        """Whether a request may start now."""
        return self._until is None or (not self._trial_runs and self._until <= self._clock.monotonic())

    def begin(self) -> bool:
        """Start a permitted request. Returns whether it is the trial, for `failed` or `ended_without_result`."""
        self._trial_runs = self._until is not None
        return self._trial_runs

    def answered(self) -> None:
        """The model responded, even with an error: close the breaker."""
        self._failures = self._pauses = 0
        self._until = self.problem = None
        self._trial_runs = False

    def failed(self, problem: ModelProblem, *, trial: bool, retry_after_seconds: float | None = None) -> bool:
        """The model was unavailable. Returns whether a pause starts: at once if an operator has to act or the provider
        requests a wait, else after enough failures."""
        if self._until is not None and not trial:
            # The request started before the pause and adds no information.
            return False
        self._trial_runs = False
        self._failures += 1
        pause = self._pause(problem, retry_after_seconds, trial=trial)
        if not pause:
            return False
        self._until = self._clock.monotonic() + pause
        self.problem = problem
        return True

    def ended_without_result(self, *, trial: bool) -> None:
        """The request ended without information about the model; after a trial, another one may run."""
        if trial:
            self._trial_runs = False

    def _pause(self, problem: ModelProblem, retry_after_seconds: float | None, *, trial: bool) -> float:
        """Length of the pause to start, in seconds; 0 for no pause."""
        if problem in _NEEDS_OPERATOR:
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

_AVAILABILITY = frozenset(
    {ModelProblem.OUTAGE, ModelProblem.BUSY, ModelProblem.KEY, ModelProblem.QUOTA, ModelProblem.MISSING}
)
"""Problems that mean the model was unavailable. With any other problem it responded."""
_NO_FAILOVER = frozenset({ModelProblem.FILTERED})
"""A provider that declines has answered; failing over until a filter lets the request pass serves no operator."""


@dataclass(frozen=True, slots=True)
class ModelState:
    """State of one model of a Failover, for status reports."""

    name: str
    problem: ModelProblem | None
    """Why the model is skipped; None if it is used."""
    seconds_left: float
    """Remaining pause in seconds; 0 with a problem: the next request is a trial."""
    failures: int
    """Number of requests it was unavailable for, since the start."""


@dataclass(slots=True)
class _Member:
    model: ChatModel
    breaker: Breaker
    failures: int = 0


@dataclass(slots=True)
class _Request:
    """One request to the models, with its deadline on `monotonic()` and the errors of the models tried so far."""

    request: ModelRequest
    deadline: float
    errors: list[ModelError] = field(default_factory=list)


class Failover:
    """ChatModel that tries `models` in order, skipping those that its circuit breakers have paused after failures.
    `ModelAnswer.by` names the model that answered."""

    name = "failover"

    def __init__(
        self,
        models: Sequence[ChatModel],
        settings: FailoverSettings,
        clock: Clock,
        deadlines: Deadlines,
        *,
        seeing: Collection[str] = (),
    ) -> None:
        """`seeing`: names of the models that are asked first for a request with pictures."""
        self._seeing = seeing
        self._members = [_Member(model, Breaker(settings, clock)) for model in models]
        self._settings = settings
        self._clock = clock
        self._deadlines = deadlines

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """The first answer. Raises ModelError: the first error from a model that was available, else the last error;
        fails at once if all models are paused, or none of `request.models` is known. A content filter's refusal is
        raised without trying other models."""
        now = self._clock.monotonic()
        members = self._members_for(request)
        # A single model enforces its own time limit.
        total = self._settings.total_seconds if len(members) > 1 else request.timeout_seconds
        asked = _Request(request, now + min(request.timeout_seconds, total))
        for place, member in enumerate(members):
            if not member.breaker.allows_request():
                continue
            is_last = not any(one.breaker.allows_request() for one in members[place + 1 :])
            answer = await self._ask(member, asked, is_last=is_last)
            if answer is not None:
                return answer
            if self._clock.monotonic() >= asked.deadline:
                break
        raise _error_to_raise(asked.errors) or _all_paused(members)

    async def probe(self) -> str:
        """Probe the first model only; returns its line. Raises ModelError."""
        return await self._members[0].model.probe()

    async def close(self) -> None:
        for member in self._members:
            await member.model.close()

    def states(self) -> Sequence[ModelState]:
        """States of all models, in order."""
        return [
            ModelState(one.model.name, one.breaker.problem, one.breaker.seconds_left, one.failures)
            for one in self._members
        ]

    def _members_for(self, request: ModelRequest) -> Sequence[_Member]:
        members = self._members
        if request.models:
            named = {one.model.name: one for one in self._members}
            members = [named[name] for name in request.models if name in named]
        if self._seeing and any(message.images for message in request.messages):
            members = sorted(members, key=lambda member: member.model.name not in self._seeing)
        if members or not request.models:
            return members
        text = f"no model of the list has a key or a URL: {', '.join(request.models)}"
        raise ModelError(ErrorCode.PROVIDER_ERROR, text, problem=ModelProblem.MISSING)

    async def _ask(self, member: _Member, asked: _Request, *, is_last: bool) -> ModelAnswer | None:
        """The model's answer; None to try the next model. Raises ModelError only if the provider declined
        (FILTERED)."""
        name, breaker = member.model.name, member.breaker
        left = asked.deadline - self._clock.monotonic()
        seconds = left if is_last else min(left, self._settings.first_answer_seconds)
        request = _request_for(name, asked.request, seconds)
        trial, suspensions = breaker.begin(), self._deadlines.suspensions
        try:
            answer = await self._within(member.model, request)
        except ModelError as error:
            counts = self._deadlines.suspensions == suspensions
            self._note_failure(member, error, trial=trial, counts=counts, seconds=seconds)
            if error.problem in _NO_FAILOVER:
                raise
            asked.errors.append(error)
            return None
        except BaseException:
            breaker.ended_without_result(trial=trial)
            raise
        self._note_success(member)
        return answer.attributed_to(name)

    async def _within(self, model: ChatModel, request: ModelRequest) -> ModelAnswer:
        try:
            return await self._deadlines.run(model.complete(request), self._clock.monotonic() + request.timeout_seconds)
        except TimeoutError:
            raise ModelError(
                ErrorCode.TIMEOUT, f"no answer within {request.timeout_seconds:.1f} s", retryable=True
            ) from None

    def _note_failure(self, member: _Member, error: ModelError, *, trial: bool, counts: bool, seconds: float) -> None:
        name, problem = member.model.name, error.problem
        _log.warning("model_gave_no_answer", model=name, problem=problem.value, code=error.code.value, error=str(error))
        if problem not in _AVAILABILITY:
            self._note_success(member)
            return
        member.failures += 1
        if not counts or (error.code is ErrorCode.TIMEOUT and seconds < self._settings.first_answer_seconds):
            # Too little time for any model, or the process was suspended: no information about the model.
            member.breaker.ended_without_result(trial=trial)
            return
        if member.breaker.failed(problem, trial=trial, retry_after_seconds=error.retry_after_seconds):
            _tell_operator(name, problem, member.breaker.seconds_left)

    def _note_success(self, member: _Member) -> None:
        if member.breaker.problem is not None:
            _log.info("model_answers_again", model=member.model.name)
        member.breaker.answered()


def _all_paused(members: Sequence[_Member]) -> ModelError:
    soonest = min(members, key=lambda member: member.breaker.seconds_left).breaker
    return ModelError(
        ErrorCode.PROVIDER_ERROR,
        "every model is paused after failures",
        retry_after_seconds=soonest.seconds_left,
        problem=soonest.problem,
    )


def _error_to_raise(errors: Sequence[ModelError]) -> ModelError | None:
    """The first error of an available model, which concerns this request; else the last error; None without errors."""
    there = (error for error in errors if error.problem not in _AVAILABILITY)
    return next(there, errors[-1] if errors else None)


def _request_for(name: str, request: ModelRequest, seconds: float) -> ModelRequest:
    """`request` limited to `seconds`, without opaque data of other providers, which is signed or private."""
    messages = request.messages
    if any(message.opaque and message.by != name for message in messages):
        messages = [message if message.by == name else replace(message, opaque=None) for message in messages]
    if messages is request.messages and seconds >= request.timeout_seconds:
        return request
    return request.within(seconds, messages)


def _tell_operator(name: str, problem: ModelProblem, seconds: float) -> None:
    """Log an outage as a warning, and problems for the operator as errors that name the setting."""
    match problem:
        case ModelProblem.KEY:
            _log.error("model_refuses_its_key", model=name, setting=f"models.{name}.api_key", seconds=seconds)
        case ModelProblem.QUOTA:
            _log.error("model_has_no_credit_left", model=name, seconds=seconds)
        case ModelProblem.MISSING:
            _log.error("model_not_found", model=name, setting=f"models.{name}.model, base_url", seconds=seconds)
        case _:
            _log.warning("model_left_alone", model=name, problem=problem.value, seconds=seconds)
