"""invoke(): the only way to run a handler. Every path passes the same checks in the same order."""

from __future__ import annotations

import asyncio
import difflib
import functools
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import structlog

from config.texts import Phrases
from function_calls.call import Call, CallRequest, Path
from function_calls.checks.permissions import (
    ALLOWED,
    Policies,
    PolicyDecision,
    callable_here,
    is_risky,
    refusal,
    refusal_now,
    timeout_seconds,
)
from function_calls.context import MessageContext
from function_calls.failures import broken, refused_result, tool_error_text, unknown
from function_calls.filters.call import CallFilter, Invocation, Proceed, chain
from function_calls.profile import ChatProfile
from function_calls.questions.argument_questions import faulty
from function_calls.questions.confirm_questions import confirm_question
from function_calls.questions.input_questions import has_asked, input_question, nobody_answers
from function_calls.questions.waiting_runs import (
    end,
    end_key,
    end_unanswered,
    mark_ending,
    with_interrupted_run,
    with_unknown,
)
from function_calls.result import plain, storable
from function_calls.rounds.shortlist import found_here
from function_calls.schema.arguments import as_said, require_json
from function_calls.schema.commands import spoken_name
from function_calls.schema.definition import DefinitionError
from function_calls.spec import ApprovalQuestion, ArgumentError, FunctionResult, FunctionSpec, InputQuestion, ToolError
from function_calls.turn import Run, Turn
from services.clock import Clock, Deadlines
from services.fault_points import FaultPoints
from services.llm.model import OfferedFunction
from services.refs import Effect, ErrorCode, Role
from services.retry import RetryPolicy
from services.store.port import Conflict, Write
from services.threads import StillRunning, Threads, still_running

_log = structlog.get_logger("invocation")

RecordCall = Callable[[MessageContext, Run, FunctionResult, str, int], None]
"""Writes a line of the call log: context, run, result, turn id, duration in microseconds."""


def _not_recorded(context: MessageContext, run: Run, result: FunctionResult, turn_id: str, duration_us: int) -> None:
    return None


class Invoker:
    """Runs functions. Caches the filter chain of each spec, built on the first run."""

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
        threads: Threads | None = None,
    ) -> None:
        self._policies = policies
        self._deadlines = deadlines
        self._clock = clock
        self._filters = tuple(filters)
        self._named_filters = dict(named_filters or {})
        self._record = record
        self._reach = (faults or FaultPoints()).reach
        self.threads = threads or Threads()
        self._chains: dict[FunctionSpec, Proceed] = {}

    async def invoke(self, request: CallRequest) -> FunctionResult:
        """Result of the call, or the refusal, error or question that replaced it. Raises no handler's exception."""
        turn, context = request.turn, request.context
        key, profile = request.key or turn.next_key(), turn.input.profile()
        request = request._replace(key=key)
        spec = turn.input.functions.find(request.name)
        if spec is None:
            text = profile.texts.say("refusals.unknown_function", name=request.name)
            return FunctionResult.fail(ErrorCode.NOT_FOUND, text)
        if request.outer is not None and _exceeds(request.outer, spec):
            _log.error("effect_within_a_read", function=spec.name, outer=request.outer.name)
            text = profile.texts.say("refusals.effect_within_read", name=spec.name)
            return FunctionResult.fail(ErrorCode.REFUSED, text)
        known = turn.memory.nested.get(key) or turn.input.log.stored_run(key)
        if known is not None and (known.result is not None or spec.execution.starts_once):
            result = self._stored_result(key, spec, known.function, known.result, turn, profile)
            return await self._with_its_question(result, request, spec, profile)
        refused = refusal(context, spec, turn, profile, request.path)
        if refused is None and context.sender.role is not Role.MEMBER and is_risky(spec, profile):
            refused = await refusal_now(context, spec, turn, profile)
        if refused is not None and not mark_ending(key, turn):
            return await self._not_run(request, spec, refused_result(refused, spec, profile))
        try:
            if request.path is Path.NESTED:
                require_json(request.arguments, spec.parameters)
            arguments = spec.arguments.parse(as_said(spec.arguments, request.arguments, profile))
        except ArgumentError as fault:
            return await self._not_run(request, spec, faulty(spec, fault, request.arguments, profile))
        run = Run(key, spec, arguments, request.path, request.round_number, request.request_id)
        is_paid, approved = known is not None and known.function == spec.name, turn.memory.approved
        decided = await self._decided(request, run, profile, is_paid=is_paid)
        if decided is not None:
            return await self._not_run(request, spec, decided, arguments)
        # If the approval has changed, this run consumed its part.
        left = turn.memory.approved
        allowed = "" if approved is None or left is approved else approved.consumed_by(left)
        result = await self._run(request, run, profile, allowed)
        return await self._with_its_question(result, request, spec, profile)

    async def approval_needed(self, request: CallRequest) -> ApprovalQuestion | None:
        """The approval question that a call would ask now; None if it would ask none. Nothing is run or recorded."""
        turn, profile = request.turn, request.turn.input.profile()
        spec = turn.input.functions.find(request.name)
        if spec is None or refusal(request.context, spec, turn, profile, request.path) is not None:
            return None
        try:
            arguments = spec.arguments.parse(as_said(spec.arguments, request.arguments, profile))
        except ArgumentError:
            return None
        judged = self._policies.approval.judge(request, spec, arguments)
        decision = judged if isinstance(judged, PolicyDecision) else await judged
        question = decision.refusal.question if decision.refusal is not None else None
        return question if isinstance(question, ApprovalQuestion) else None

    def now(self) -> datetime:
        return self._clock.now()

    def callable_by(self, request: CallRequest) -> Sequence[FunctionSpec]:
        return callable_here(request.context, request.turn, Path.NESTED)

    def find(self, request: CallRequest, text: str, most: int) -> Sequence[OfferedFunction]:
        return found_here(request.context, request.turn, text, most)

    def problems_of(self, spec: FunctionSpec) -> list[str]:
        """Problems that prevent a run of `spec`: the unknown filters that it names."""
        return [
            f"it names the filter {name!r}, which does not exist{self._near(name)}"
            for name in spec.execution.filters
            if name not in self._named_filters
        ]

    def use(self, filters: Sequence[CallFilter], named_filters: Mapping[str, CallFilter]) -> None:
        """Replace the filters for all later runs, also in turns that are already active."""
        self._filters = tuple(filters)
        self._named_filters = dict(named_filters)
        self._chains = {}

    def keep(self, specs: Iterable[FunctionSpec]) -> None:
        """Drop cached filter chains of all functions except `specs`. Active turns rebuild what they still need."""
        self._chains = {spec: known for spec in specs if (known := self._chains.get(spec)) is not None}

    def _near(self, name: str) -> str:
        near = difflib.get_close_matches(name, self._named_filters, n=1)
        return f"; did you mean {near[0]!r}?" if near else "; filters.named in the settings has them"

    def refused(self, context: MessageContext, spec: FunctionSpec, turn: Turn, path: Path) -> FunctionResult | None:
        """Refusal if the sender may not run `spec` here, whatever the arguments; None if they may."""
        profile = turn.input.profile()
        found = refusal(context, spec, turn, profile, path)
        return None if found is None else refused_result(found, spec, profile)

    async def _decided(
        self, request: CallRequest, run: Run, profile: ChatProfile, *, is_paid: bool
    ) -> FunctionResult | None:
        """Check budget, approval and confirmation, then store the intent. Returns None if the run may start.
        `is_paid`: an earlier attempt has stored the intent and charged the budget."""
        turn, spec, arguments = request.turn, run.spec, run.arguments
        writes: tuple[Write, ...] = ()
        # A resumed run paid its budget before it began.
        is_resumed = run.key in turn.memory.resuming
        passed, is_confirmed = 1 if is_paid or is_resumed else 0, request.confirmed or is_resumed
        for policy in self._policies[passed:]:
            judged = policy.judge(request, spec, arguments)
            if judged is ALLOWED:
                continue
            decision = judged if isinstance(judged, PolicyDecision) else await judged
            if decision.refusal is not None:
                if mark_ending(run.key, turn):
                    break
                return with_interrupted_run(decision.refusal, turn.memory.resuming.get(run.key))
            writes += decision.writes
        if (spec.access.confirm or request.uncertain) and not is_confirmed:
            return FunctionResult(question=confirm_question(spec, spec.arguments.dump(arguments), profile.texts))
        self._reach("tool.before_intent_record")
        try:
            noted = turn.input.log.intend(run, writes)
            if noted is not None:
                await noted
        except Conflict:
            overtaken = None if is_paid else await self._result_meanwhile(request, run)
            if overtaken is None:
                raise
            return overtaken
        return None

    async def _result_meanwhile(self, request: CallRequest, run: Run) -> FunctionResult | None:
        """The budget's refusal, if another turn used up the budget between the check and the charge."""
        judged = self._policies.budget.judge(request, run.spec, run.arguments)
        decision = judged if isinstance(judged, PolicyDecision) else await judged
        return decision.refusal

    async def _not_run(
        self, request: CallRequest, spec: FunctionSpec, result: FunctionResult, arguments: Any = None
    ) -> FunctionResult:
        """`result`, which replaced the run; recorded unless it is a question. A run that was to continue is ended.
        `arguments`: the parsed arguments, if parsing succeeded."""
        if result.error is None:
            return result
        turn, raw = request.turn, request.arguments
        shown = plain(raw if arguments is None else arguments)
        run = Run(request.key, spec, shown, request.path, request.round_number, request.request_id)
        self._record(request.context, run, result, turn.input.id, 0)
        resumed = turn.memory.resuming.get(run.key)
        if resumed is not None and resumed.kind == "answered":
            resumed = replace(resumed, answer="", kind="expired")
            ended = CallRequest(request.context, spec.name, raw, turn, run.path, key=end_key(run.key))
            return with_unknown(result, await end(self, ended, resumed))
        return result

    async def _with_its_question(
        self, result: FunctionResult, request: CallRequest, spec: FunctionSpec, profile: ChatProfile
    ) -> FunctionResult:
        """`result`, or a failure if it asks a question that nobody can answer. The run that asked is then ended so that
        it can clean up."""
        turn = request.turn
        asked = has_asked(result, request.path, request.depth, can_ask=turn.input.can_ask)
        if asked is None:
            return result
        key, path = turn.next_key(), Path.NESTED if asked.nested else request.path
        turn.memory.resume(key, replace(asked.saved_run, kind="expired"))
        await self.invoke(CallRequest(request.context, asked.function, asked.arguments, turn, path, key=key))
        return nobody_answers(asked, spec, result, profile.texts)

    async def _run(self, request: CallRequest, run: Run, profile: ChatProfile, allowed: str) -> FunctionResult:
        """Run the function after all checks, and record the run. `allowed`: digest of the approval that it consumed."""
        context, turn, key, spec = request.context, request.turn, run.key, run.spec
        turn.memory.begin(run)
        self._reach("tool.after_intent_before_call")
        started = self._clock.monotonic()
        call = Call(self, request, profile)
        try:
            if _leaves_queue(request, spec) and not turn.leave_queue(started + timeout_seconds(spec, profile)):
                result = FunctionResult.fail(ErrorCode.REFUSED, profile.texts.say("refusals.too_many_in_background"))
            else:
                retry = spec.execution.retry
                attempt = self._once if retry is None else functools.partial(self._attempts, retry)
                result = await attempt(context, run, turn, call, started)
        except asyncio.CancelledError as cancelled:
            stopped = self._timed_out(still_running(cancelled), run, turn, profile, started)
            self._record(context, run, stopped, turn.input.id, int((self._clock.monotonic() - started) * 1e6))
            # The turn records the running thread, so an outer run needs no notification.
            raise asyncio.CancelledError from None
        for asked in call.unanswerable(result) if call.asked else ():
            result = with_unknown(result, await end_unanswered(self, context, turn, asked, Path.NESTED))
        # A nested effect that was not awaited makes the outcome of the whole run unknown.
        abandoned = turn.memory.abandoned_by(key)
        if abandoned:
            is_running = abandoned in turn.memory.still_running
            result = unknown(turn.input.functions.find(abandoned) or abandoned, profile.texts, still_running=is_running)
        self._reach("tool.after_call_before_result_record")
        if result.outside:
            turn.memory.mark_outside(key)
        if turn.memory.is_from_outside(run):
            result = replace(result, outside=True)
        turn.memory.note_texts(run, result)
        question = result.question
        if isinstance(question, InputQuestion) and not question.nested:
            resumed = turn.memory.resuming.get(key)
            result = input_question(run, result, question, resumed, allowed, profile.texts)
        turn.memory.end(run, result)
        turn.input.log.result(run, result)
        self._record(context, run, result, turn.input.id, int((self._clock.monotonic() - started) * 1e6))
        return result

    async def _attempts(
        self, retry: RetryPolicy, context: MessageContext, run: Run, turn: Turn, call: Call, started_at: float
    ) -> FunctionResult:
        """Run the function, with retries after transient failures."""
        attempts = retry.attempts if run.spec.execution.effect is not Effect.ONCE else 1
        attempt = 1
        while True:
            result = await self._once(context, run, turn, call, started_at)
            if attempt >= attempts or result.error is None or result.error.code is not ErrorCode.TRANSIENT:
                return result
            if turn.memory.abandoned_by(run.key):
                return result
            await self._clock.sleep(retry.wait_after(attempt))
            attempt += 1
            started_at = self._clock.monotonic()

    async def _once(
        self, context: MessageContext, run: Run, turn: Turn, call: Call, started_at: float
    ) -> FunctionResult:
        """Run a single attempt that began at `started_at`, within its timeout. A failure is returned as a result."""
        spec, profile = run.spec, call.profile
        deadline = started_at + timeout_seconds(spec, profile)
        if deadline > turn.deadline:
            deadline = turn.deadline
        call.deadline = deadline
        began = False
        try:
            if spec.execution.status_text:
                await call.status(profile.texts.resolve(spec.execution.status_text))
            proceed = self._chains.get(spec) or self._chain(spec)
            began = True
            return await self._returned(
                proceed(Invocation(context, spec, run.arguments, call)), deadline, profile.texts
            )
        except TimeoutError as late:
            thread = still_running(late)
            if thread is not None:
                self._log_end(thread, run, turn, started_at)
            if spec.execution.effect is Effect.ONCE or (
                thread is not None and spec.execution.effect is not Effect.READ
            ):
                return unknown(spec, profile.texts, still_running=thread is not None)
            name = spoken_name(spec, profile.texts.language)
            return FunctionResult.fail(ErrorCode.TIMEOUT, profile.texts.say("failures.timeout", name=name))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - boundary at which a handler's failure becomes a value
            return storable(broken(spec, turn.input.id, error, profile.texts, began=began))

    async def _returned(self, run: Awaitable[FunctionResult], deadline: float, texts: Phrases) -> FunctionResult:
        """Result of `run`, or of its ToolError. Raises TimeoutError, and other exceptions for a malformed result."""
        try:
            result = await self._deadlines.run(run, deadline)
        except ToolError as error:
            result = FunctionResult.fail(error.code, tool_error_text(error, texts))
        return storable(result)

    def _timed_out(
        self, thread: StillRunning | None, run: Run, turn: Turn, profile: ChatProfile, started_at: float
    ) -> FunctionResult:
        """Result of a run that was cancelled from outside. A worker `thread` may continue."""
        stopped = FunctionResult.fail(ErrorCode.CANCELLED, profile.texts.say("stop.stopped"))
        if thread is None:
            return stopped
        self._log_end(thread, run, turn, started_at)
        if run.spec.execution.effect is Effect.READ:
            return stopped
        result = unknown(run.spec, profile.texts, still_running=True)
        turn.memory.leave_running(run)
        turn.input.log.result(run, result)
        return result

    def _log_end(self, thread: StillRunning, run: Run, turn: Turn, started_at: float) -> None:
        """Log the real end of the run when its thread finishes."""

        def log(ended: asyncio.Future[Callable[[], Any]]) -> None:
            outcome, failure = "returned", None
            try:
                ended.result()()
            except Exception as error:  # noqa: BLE001 - failure of a run that nobody awaits any more
                outcome, failure = "failed", error
            seconds = round(self._clock.monotonic() - started_at, 1)
            facts = {"function": run.spec.name, "turn": turn.input.id, "run": run.key, "seconds": seconds}
            _log.warning("function_ended_late", **facts, outcome=outcome, exc_info=failure)

        thread.ended.add_done_callback(log)

    def _chain(self, spec: FunctionSpec) -> Proceed:
        missing = [name for name in spec.execution.filters if name not in self._named_filters]
        if missing:
            # The filters were removed from the settings during this turn. The function must not run without them.
            raise DefinitionError(
                spec.origin.source, [f"it names the filter {missing[0]!r}, which does not exist any more"]
            )
        own = [self._named_filters[name] for name in spec.execution.filters]
        return self._chains.setdefault(spec, chain(spec, [*self._filters, *own]))

    def _stored_result(
        self,
        key: str,
        spec: FunctionSpec,
        function: str,
        result: FunctionResult | None,
        turn: Turn,
        profile: ChatProfile,
    ) -> FunctionResult:
        """Stored result of a run from before a restart, or an unknown outcome if it never completed."""
        if spec.execution.effect is not Effect.READ:
            turn.memory.effects += 1
        turn.memory.note_read(key, spec)
        if result is not None and result.outside:
            turn.memory.mark_outside(key)
        if function != spec.name:
            _log.error("ledger_mismatch", turn=turn.input.id, stored=function, asked=spec.name)
            return unknown(turn.input.functions.find(function) or function, profile.texts)
        if result is None:
            return unknown(spec, profile.texts)
        turn.memory.state.update(result.context_updates)
        return result


def _leaves_queue(request: CallRequest, spec: FunctionSpec) -> bool:
    return spec.execution.background and request.depth == 0


def _exceeds(outer: FunctionSpec, spec: FunctionSpec) -> bool:
    """Whether `spec` has an effect although `outer`, whose handler calls it, only reads."""
    return outer.execution.effect is Effect.READ and spec.execution.effect is not Effect.READ
