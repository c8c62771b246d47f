"""Several models as one: the first that can answer does, failing ones are skipped by a circuit breaker."""

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
"""What does not pass by itself: the next question would meet the same."""


class Breaker:
    """Closed: all questions go through. Open: none does until the pause is over; then one does, as a trial, whose end
    closes the breaker or begins a longer pause."""

    def __init__(self, settings: FailoverSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._failures = 0
        self._pauses = 0
        self._until: float | None = None
        self._trial_runs = False
        self.trouble: ModelProblem | None = None
        """Why it is open; None: it is closed."""

    @property
    def seconds_left(self) -> float:
        """How long the pause still lasts; 0 when a question may go through or the trial runs."""
        return 0.0 if self._until is None else max(0.0, self._until - self._clock.monotonic())

    def lets_through(self) -> bool:
        """Whether a question may be asked now."""
        return self._until is None or (not self._trial_runs and self._until <= self._clock.monotonic())

    def begin(self) -> bool:
        """A question that was let through is being asked. True: it is the trial; to be handed back when it ends."""
        self._trial_runs = self._until is not None
        return self._trial_runs

    def answered(self) -> None:
        """The model answered, well or badly: it is there."""
        self._failures = self._pauses = 0
        self._until = self.trouble = None
        self._trial_runs = False

    def failed(self, trouble: ModelProblem, *, trial: bool, retry_after_seconds: float | None = None) -> bool:
        """The model could not be asked. True: a pause begins with this."""
        if self._until is not None and not trial:
            # It was asked before the pause began, and says nothing new.
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
        """The question ended without telling anything about the model."""
        if trial:
            self._trial_runs = False

    def _pause(self, trouble: ModelProblem, retry_after_seconds: float | None, *, trial: bool) -> float:
        """The length of the pause that begins now, in seconds; 0: none does."""
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
"""The model could not be asked. After anything else it was there, and answered something."""
_NOT_PASSED_ON = frozenset({ModelProblem.FILTERED})
"""A provider that declines has answered: asking around until one does not is no service to an operator."""


@dataclass(frozen=True, slots=True)
class ModelState:
    """How one model is doing."""

    name: str
    trouble: ModelProblem | None
    """Why it is left alone; None: it is asked."""
    seconds_left: float
    """How long it is left alone; 0 with a trouble: the next question tries it."""
    failures: int
    """Questions that it could not be asked, since the start."""


@dataclass(slots=True)
class _Member:
    model: ChatModel
    breaker: Breaker
    failures: int = 0


@dataclass(slots=True)
class _Asked:
    """One question on its way from model to model."""

    request: ModelRequest
    deadline: float
    errors: list[ModelError] = field(default_factory=list)


class Failover:
    """A ChatModel that asks `models` in their order. The one that answered is named in `ModelAnswer.by`."""

    name = "failover"

    def __init__(
        self, models: Sequence[ChatModel], settings: FailoverSettings, clock: Clock, deadlines: Deadlines
    ) -> None:
        self._members = [_Member(model, Breaker(settings, clock)) for model in models]
        self._settings = settings
        self._clock = clock
        self._deadlines = deadlines

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """The answer of the first model that gives one. Raises the error of the first that was there and could not
        answer this, else that of the last; at once when all of them are left alone."""
        now = self._clock.monotonic()
        # One model alone has a limit of its own.
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
        """The line of the first model."""
        return await self._members[0].model.probe()

    async def close(self) -> None:
        for member in self._members:
            await member.model.close()

    def states(self) -> Sequence[ModelState]:
        """How each model is doing, in their order."""
        return [
            ModelState(one.model.name, one.breaker.trouble, one.breaker.seconds_left, one.failures)
            for one in self._members
        ]

    def _has_another(self, start: int) -> bool:
        return any(member.breaker.lets_through() for member in self._members[start:])

    async def _ask(self, member: _Member, asked: _Asked, *, is_last: bool) -> ModelAnswer | None:
        """The model's answer; None when another one is to be asked. Raises what is not passed on."""
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
            # There was less time than any model is given, so this says nothing about it.
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
    """The first error of a model that was there: it is about this question. Else the last."""
    there = (error for error in errors if error.trouble not in _AVAILABILITY)
    return next(there, errors[-1] if errors else None)


def _fit_for(name: str, request: ModelRequest, seconds: float) -> ModelRequest:
    """`request` within `seconds`, and without what another provider wants back: it is signed or private."""
    messages = request.messages
    # Hardly any message has something of a provider's own.
    if any(map(_opaque_of, messages)) and any(message.opaque and message.by != name for message in messages):
        messages = [message if message.by == name else replace(message, opaque=None) for message in messages]
    if messages is request.messages and seconds >= request.timeout_seconds:
        return request
    return request.within(seconds, messages)


def _tell_operator(name: str, trouble: ModelProblem, seconds: float) -> None:
    """A passing outage is a warning; what somebody has to mend is an error that names where."""
    match trouble:
        case ModelProblem.KEY:
            _log.error("model_refuses_its_key", model=name, setting=f"models.{name}.api_key", seconds=seconds)
        case ModelProblem.QUOTA:
            _log.error("model_has_no_credit_left", model=name, seconds=seconds)
        case ModelProblem.MISSING:
            _log.error("model_not_found", model=name, setting=f"models.{name}.model, base_url", seconds=seconds)
        case _:
            _log.warning("model_left_alone", model=name, trouble=trouble.value, seconds=seconds)
