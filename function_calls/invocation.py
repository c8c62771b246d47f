"""invoke(): the one way a handler is ever run. Every path leads through the same checks in the same order."""

from __future__ import annotations

import traceback
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import structlog

from config.texts import Phrases
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.definition import DefinitionError
from function_calls.filters.call import CallFilter, Invocation, Proceed, chain
from function_calls.permissions import Refusal, callable_here, refusal, timeout_seconds
from function_calls.policies import Policies
from function_calls.profile import ChatProfile
from function_calls.questions import argument_question, confirm_question
from function_calls.results import storable
from function_calls.spec import ArgumentFault, FunctionError, FunctionResult, FunctionSpec, ToolError
from function_calls.turn import Path, Run, Turn
from function_calls.usage import fault_text
from services.clock import Clock
from services.deadlines import Deadlines
from services.fault_points import FaultPoints
from services.refs import Effect, ErrorCode

DEEPEST_NESTING = 4
_log = structlog.get_logger("invocation")

RecordCall = Callable[[MessageContext, Run, FunctionResult, str, int], None]
"""Writes one line of the call log: context, run, result, turn id, duration in microseconds."""


def _not_recorded(context: MessageContext, run: Run, result: FunctionResult, turn_id: str, duration_us: int) -> None:
    return None


class Invoker:
    """Runs functions. Keeps the call chain of each spec, built when the spec is first run."""

    def __init__(
        self,
        policies: Policies,
        deadlines: Deadlines,
        clock: Clock,
        *,
        filters: Sequence[CallFilter] = (),
        named_filters: Mapping[str, CallFilter] | None = None,
        record: RecordCall = _not_recorded,
        faults: FaultPoints | None = None,
    ) -> None:
        self._policies = policies
        self._deadlines = deadlines
        self._clock = clock
        self._filters = tuple(filters)
        self._named_filters = dict(named_filters or {})
        self._record = record
        self._reach = (faults or FaultPoints()).reach
        self._chains: dict[FunctionSpec, Proceed] = {}

    async def invoke(
        self,
        context: MessageContext,
        name: str,
        raw: Mapping[str, Any],
        turn: Turn,
        path: Path,
        *,
        confirmed: bool = False,
        uncertain: bool = False,
        round_number: int = 0,
        request_id: str = "",
        depth: int = 0,
    ) -> FunctionResult:
        """The result of running the function `name`, or the refusal, fault or question that came instead; never an
        exception of a handler. `uncertain`: a yes is asked for first. `confirmed`: it was given."""
        key = turn.next_key()
        profile = turn.profile()
        spec = turn.functions.find(name)
        if spec is None:
            return _failed(ErrorCode.NOT_FOUND, profile.texts.say("refusals.unknown_function", name=name))
        known = turn.log.stored_run(key)
        if known is not None and (known.result is not None or spec.effect is Effect.ONCE):
            return self._from_before(spec, known.function, known.result, turn, profile)
        refused = refusal(context, spec, turn, profile, path)
        if refused is not None:
            return _refused(refused, spec, profile)
        try:
            arguments = spec.arguments.parse(raw)
        except ArgumentFault as fault:
            return _faulty(spec, fault, raw, profile)
        run = Run(key, spec, arguments, path, round_number, request_id)
        decided = await self._decided(context, run, turn, profile, confirmed=confirmed, uncertain=uncertain)
        if decided is not None:
            return decided
        in_flight = turn.in_flight
        if spec.effect is not Effect.READ:
            turn.effects += 1
            turn.in_flight = spec.name if spec.effect is Effect.ONCE else turn.in_flight
        self._reach("tool.after_intent_before_call")
        started = self._clock.monotonic()
        attempt = self._once if spec.retry is None else self._attempts
        result = storable(await attempt(context, run, turn, profile, depth))
        turn.in_flight = in_flight
        self._reach("tool.after_call_before_result_record")
        if result.context_updates:
            turn.state.update(result.context_updates)
        turn.log.result(run, result)
        self._record(context, run, result, turn.id, int((self._clock.monotonic() - started) * 1e6))
        return result

    def check(self, specs: Iterable[FunctionSpec]) -> None:
        """Return when every filter that `specs` name is known. Raises DefinitionError for all that are not."""
        problems = [
            f"function {spec.name!r} ({spec.source}) names the filter {name!r}, which does not exist"
            for spec in specs
            for name in spec.filters
            if name not in self._named_filters
        ]
        if problems:
            raise DefinitionError("filters", problems)

    def refused(self, context: MessageContext, spec: FunctionSpec, turn: Turn, path: Path) -> FunctionResult | None:
        """Why the sender may not run `spec` here and now, whatever the arguments; None when they may."""
        profile = turn.profile()
        found = refusal(context, spec, turn, profile, path)
        return None if found is None else _refused(found, spec, profile)

    async def _decided(
        self,
        context: MessageContext,
        run: Run,
        turn: Turn,
        profile: ChatProfile,
        *,
        confirmed: bool,
        uncertain: bool,
    ) -> FunctionResult | None:
        """Budget, taint, approval and confirmation; then the intent. None: go on."""
        spec, arguments = run.spec, run.arguments
        budget = await self._policies.budget.judge(context, spec, arguments, turn)
        if budget.refusal is not None:
            return budget.refusal
        taint = await self._policies.taint.judge(context, spec, arguments, turn)
        if taint.refusal is not None:
            return taint.refusal
        approval = await self._policies.approval.judge(context, spec, arguments, turn)
        if approval.refusal is not None:
            return approval.refusal
        if (spec.confirm or uncertain) and not confirmed:
            return FunctionResult(question=confirm_question(spec, spec.arguments.dump(arguments), profile.texts))
        self._reach("tool.before_intent_record")
        await turn.log.intend(run, (*budget.writes, *taint.writes, *approval.writes))
        return None

    async def _attempts(
        self, context: MessageContext, run: Run, turn: Turn, profile: ChatProfile, depth: int
    ) -> FunctionResult:
        """Run, and again after transient failures where the spec allows it."""
        spec = run.spec
        left = spec.retry.attempts_after_first if spec.retry and spec.effect is not Effect.ONCE else 0
        while True:
            result = await self._once(context, run, turn, profile, depth)
            if left <= 0 or spec.retry is None or result.error is None or result.error.code is not ErrorCode.TRANSIENT:
                return result
            left -= 1
            await self._clock.sleep(spec.retry.delay_seconds)

    async def _once(
        self, context: MessageContext, run: Run, turn: Turn, profile: ChatProfile, depth: int
    ) -> FunctionResult:
        spec = run.spec
        deadline = min(self._clock.monotonic() + timeout_seconds(spec, profile), turn.deadline)
        call = Call(
            key=run.key,
            deadline=deadline,
            state=turn.state,
            profile=profile,
            functions=lambda: callable_here(context, turn, Path.NESTED),
            invoke=self._nested(context, turn, depth, profile),
            status=turn.status,
        )
        if spec.status_text:
            await turn.status(profile.texts.resolve(spec.status_text))
        try:
            proceed = self._chains.get(spec) or self._chain(spec)
            return await self._deadlines.run(proceed(Invocation(context, spec, run.arguments, call)), deadline)
        except ToolError as error:
            return _failed(error.code, _own_words(error, profile.texts))
        except TimeoutError:
            if spec.effect is Effect.ONCE:
                return _failed(ErrorCode.UNKNOWN_OUTCOME, profile.texts.say("failures.unknown_outcome", name=spec.name))
            return _failed(ErrorCode.TIMEOUT, profile.texts.say("failures.timeout", name=spec.name))
        except Exception as error:  # noqa: BLE001 - the border where a handler's failure becomes a value
            return _broken(spec, turn, error, profile.texts)

    def _chain(self, spec: FunctionSpec) -> Proceed:
        own = [self._named_filters[name] for name in spec.filters]
        return self._chains.setdefault(spec, chain(spec, [*self._filters, *own]))

    def _nested(
        self, context: MessageContext, turn: Turn, depth: int, profile: ChatProfile
    ) -> Callable[[str, Mapping[str, Any]], Awaitable[FunctionResult]]:
        async def invoke(name: str, arguments: Mapping[str, Any]) -> FunctionResult:
            if depth >= DEEPEST_NESTING:
                return _failed(ErrorCode.REFUSED, profile.texts.say("refusals.too_deep"))
            return await self.invoke(context, name, arguments, turn, Path.NESTED, depth=depth + 1)

        return invoke

    def _from_before(
        self, spec: FunctionSpec, function: str, result: FunctionResult | None, turn: Turn, profile: ChatProfile
    ) -> FunctionResult:
        """The stored result of a run from before a restart; for a `once` without one the honest unknown."""
        if spec.effect is not Effect.READ:
            turn.effects += 1
        if function != spec.name:
            _log.error("ledger_mismatch", turn=turn.id, stored=function, asked=spec.name)
            return _failed(ErrorCode.UNKNOWN_OUTCOME, profile.texts.say("failures.unknown_outcome", name=function))
        if result is None:
            return _failed(ErrorCode.UNKNOWN_OUTCOME, profile.texts.say("failures.unknown_outcome", name=spec.name))
        if result.context_updates:
            turn.state.update(result.context_updates)
        return result


def _own_words(error: ToolError, texts: Phrases) -> str:
    """What a handler says of its failure: `@key` names a sentence, `@somebody` is a person."""
    return texts.resolve(error.text) if texts.has(error.text.removeprefix("@")) else error.text


def _broken(spec: FunctionSpec, turn: Turn, error: Exception, texts: Phrases) -> FunctionResult:
    """A failure that the handler did not mean. After a lost connection nobody knows what a `once` has done."""
    short_id = uuid.uuid4().hex[:8]
    _log.error("function_failed", function=spec.name, id=short_id, turn=turn.id, exc_info=error)
    failure = FunctionError(ErrorCode.FAILED, texts.say("failures.function", name=spec.name, id=short_id))
    if spec.effect is Effect.ONCE and isinstance(error, ConnectionError):
        failure = FunctionError(ErrorCode.UNKNOWN_OUTCOME, texts.say("failures.unknown_outcome", name=spec.name))
    return FunctionResult(error=failure, metadata=_failure(short_id, error))


def _failure(short_id: str, error: Exception) -> dict[str, str]:
    """For the call log; never for a chat."""
    return {
        "failure_id": short_id,
        "exception": f"{type(error).__name__}: {error}",
        "traceback": "".join(traceback.format_exception(error, limit=-8)),
    }


def _failed(code: ErrorCode, text: str) -> FunctionResult:
    return FunctionResult.fail(code, text)


def _refused(refused: Refusal, spec: FunctionSpec, profile: ChatProfile) -> FunctionResult:
    result = _failed(refused.code, profile.texts.say(refused.key, name=spec.name, detail=refused.detail))
    return replace(result, metadata={"refused_by": refused.detail or refused.key})


def _faulty(spec: FunctionSpec, fault: ArgumentFault, raw: Mapping[str, Any], profile: ChatProfile) -> FunctionResult:
    """Only something missing: the question for it. Something wrong: what, what is allowed, and the usage line."""
    texts: Phrases = profile.texts
    fields = (*fault.problems, *fault.missing)
    if fault.problems:
        return FunctionResult.fail(ErrorCode.BAD_ARGUMENTS, fault_text(spec, fault, texts), fields)
    return replace(
        FunctionResult.fail(ErrorCode.MISSING_ARGUMENTS, fault_text(spec, fault, texts), fields),
        question=argument_question(spec, dict(raw), fault.missing[0], texts),
    )
