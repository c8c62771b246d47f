"""invoke(): the only way to run a handler. Every path goes through the same checks in the same order."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol

import structlog

from function_calls.call import Call, CallersModel, Resumed
from function_calls.checks.permissions import (
    ALLOWED,
    Policies,
    Verdict,
    callable_here,
    is_risky,
    is_tainted,
    refusal,
    refusal_now,
    timeout_seconds,
)
from function_calls.context import MessageContext
from function_calls.failures import broken, faulty, own_words, refused_result, unknown
from function_calls.filters.call import CallFilter, Invocation, Proceed, chain
from function_calls.handler_questions import (
    Ended,
    end,
    end_key,
    has_asked,
    held_up,
    nobody_answers,
    only_ends,
    with_its_run,
    with_unknown,
)
from function_calls.profile import ChatProfile
from function_calls.questions.questions import confirm_question
from function_calls.registry import begins_chats
from function_calls.result import plain, storable
from function_calls.rounds.shortlist import found_here
from function_calls.schema.arguments import as_said, require_json
from function_calls.schema.commands import spoken_name
from function_calls.schema.definition import DefinitionError
from function_calls.spec import (
    Approved,
    ArgumentFault,
    FunctionResult,
    FunctionSpec,
    Question,
    Retry,
    Takeable,
    ToolError,
)
from function_calls.turn import Path, Run, Turn
from services.clock import Clock, Deadlines
from services.fault_points import FaultPoints
from services.llm.model import OfferedFunction
from services.refs import Effect, ErrorCode, Role
from services.store.port import Conflict, Write
from services.threads import StillRunning, Threads, still_running

DEEPEST_NESTING = 4


class Runs(Protocol):
    """Who runs functions: the Invoker."""

    threads: Threads

    async def invoke(
        self,
        context: MessageContext,
        name: str,
        raw: Mapping[str, Any],
        turn: Turn,
        path: Path,
        *,
        confirmed: bool = False,
        depth: int = 0,
        key: str = "",
    ) -> FunctionResult:
        """The result of running the function `name`."""


class RunDoors:
    """The doors of one run."""

    __slots__ = ("_context", "_depth", "_key", "_profile", "_runs", "_turn", "asked")

    def __init__(
        self, runs: Runs, context: MessageContext, key: str, turn: Turn, profile: ChatProfile, depth: int
    ) -> None:
        self._runs = runs
        self._context = context
        self._key = key
        self._turn = turn
        self._profile = profile
        self._depth = depth
        self.asked: tuple[Question, ...] = ()
        """What runs within this one have asked so far in their midst."""

    @property
    def threads(self) -> Threads:
        return self._runs.threads

    @property
    def asked_at(self) -> datetime | None:
        return self._turn.asked_at if self._turn.resumed else None

    @property
    def answered(self) -> str:
        return self._turn.answered

    @property
    def resumed(self) -> Resumed | None:
        return self._turn.resuming.get(self._key)

    @property
    def callers_model(self) -> CallersModel | None:
        turn = self._turn
        # What a function of this turn may have read of others stays with the bot's own model, and a run that only ends
        # asks nobody any more.
        return None if turn.reads or turn.taint or self._key in turn.ending else turn.callers_model

    def count_from(self, at: datetime) -> None:
        self._turn.asked_at = at

    def functions(self) -> Sequence[FunctionSpec]:
        return callable_here(self._context, self._turn, Path.NESTED)

    def on_request(self) -> Sequence[Takeable]:
        may = {spec.name for spec in self.functions()}
        everything = self._turn.functions.on_request.takeable.values()
        # The functions of a group may come later.
        return [one for one in everything if not one.functions or not may.isdisjoint(one.functions)]

    def is_at_hand(self, spec: FunctionSpec) -> bool:
        return self._turn.functions.on_request.is_at_hand(spec, self._turn.profile().at_hand)

    def find(self, text: str, most: int) -> Sequence[OfferedFunction]:
        return found_here(self._context, self._turn, text, most)

    async def invoke(
        self,
        name: str,
        arguments: Mapping[str, Any],
        number: int,
        *,
        confirmed: bool = False,
        goes_on: Resumed | None = None,
        allowed: str = "",
    ) -> FunctionResult:
        if self._depth >= DEEPEST_NESTING:
            return FunctionResult.fail(ErrorCode.REFUSED, self._profile.texts.say("refusals.too_deep"))
        spec = self._turn.functions.find(name)
        if spec is not None and begins_chats(spec) and goes_on is None:
            return FunctionResult.fail(
                ErrorCode.NOT_FOUND, self._profile.texts.say("refusals.unknown_function", name=name)
            )
        if self._key in self._turn.ending:
            return FunctionResult.fail(ErrorCode.REFUSED, self._profile.texts.say("refusals.only_ends"))
        turn, key = self._turn, f"{self._key}.{number}"
        if goes_on is not None:
            turn.resume(key, goes_on)
        if allowed:
            turn.approved = Approved(allowed, self._context.sender, always=False, is_noted=True)
        result = await self._runs.invoke(
            self._context, name, arguments, turn, Path.NESTED, confirmed=confirmed, depth=self._depth + 1, key=key
        )
        if allowed:
            turn.approved = None
        if result.question is not None and result.question.kind == "input":
            self.asked += (result.question,)
        return result

    def kept_back(self, result: FunctionResult) -> list[Question]:
        """Those that have been asked and that `result` of this run does not pass on, so that nobody ever answers
        them; each once, though its run may have been tried again."""
        passed_on = (result.question.key, result.question.passes_on) if result.question is not None else ()
        return list({one.key: one for one in self.asked if one.key not in passed_on}.values())

    def has_read_outside(self) -> None:
        self._turn.holds_words_of_others(self._key)

    async def role_now(self) -> Role:
        return await self._turn.role_now(self._context.sender)

    def would_ask(self, spec: FunctionSpec) -> bool:
        return is_tainted(spec, self._turn)

    async def until_kept(self) -> None:
        await self._turn.log.until_kept()

    async def status(self, text: str) -> None:
        if self._key not in self._turn.ending:
            await self.until_kept()
            await self._turn.status(text)


_MEMBER, _NESTED = Role.MEMBER, Path.NESTED  # a module's name is found faster than a member of an enumeration
_new = tuple.__new__  # half of what a NamedTuple's own way takes
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
        key: str = "",
    ) -> FunctionResult:
        """The result of running the function `name`, or the refusal, fault or question that came instead; never an
        exception of a handler. `uncertain`: a yes is asked for first. `confirmed`: it was given. `key` is given for
        nested runs, and for one that goes on from what `turn.resuming` has under it."""
        key = key or turn.next_key()
        profile = turn.profile()
        spec = turn.functions.find(name)
        if spec is None:
            return FunctionResult.fail(ErrorCode.NOT_FOUND, profile.texts.say("refusals.unknown_function", name=name))
        known = turn.nested.get(key) or turn.log.stored_run(key)
        if known is not None and (known.result is not None or spec.effect is Effect.ONCE):
            result = self._from_before(key, spec, known.function, known.result, turn, profile)
            run = Run(key, spec, raw, path, round_number, request_id)
            return result if result.question is None else await self._asked(context, result, run, turn, profile, depth)
        refused = refusal(context, spec, turn, profile, path)
        if refused is None and context.sender.role is not _MEMBER and is_risky(spec, profile):
            refused = await refusal_now(context, spec, turn, profile)
        if refused is not None:
            asked = Run(key, spec, raw, path, round_number, request_id)
            if not only_ends(key, turn):
                return await self._not_run(context, asked, refused_result(refused, spec, profile), turn, raw)
        try:
            if path is _NESTED:
                require_json(raw, spec.parameters)
            arguments = spec.arguments.parse(as_said(spec.arguments, raw, profile))
        except ArgumentFault as fault:
            asked = Run(key, spec, raw, path, round_number, request_id)
            return await self._not_run(context, asked, faulty(spec, fault, raw, profile), turn, raw)
        run = _new(Run, (key, spec, arguments, path, round_number, request_id))
        paid, approved = known is not None and known.function == spec.name, turn.approved
        decided = await self._decided(context, run, turn, profile, confirmed=confirmed, uncertain=uncertain, paid=paid)
        if decided is not None:
            return await self._not_run(context, run, decided, turn, raw)
        # A yes that is gone now was for this run.
        allowed = approved.digest if approved is not None and turn.approved is None else ""
        result = await self._run(context, run, turn, profile, depth, allowed)
        return result if result.question is None else await self._asked(context, result, run, turn, profile, depth)

    def problems_of(self, spec: FunctionSpec) -> list[str]:
        """Why `spec` cannot be run here: the filters that it names and nobody knows. Empty: it can."""
        return [
            f"it names the filter {name!r}, which does not exist{self._near(name)}"
            for name in spec.filters
            if name not in self._named_filters
        ]

    def use(self, filters: Sequence[CallFilter], named_filters: Mapping[str, CallFilter]) -> None:
        """From the next run on these stand around it, in turns that began before too."""
        self._filters = tuple(filters)
        self._named_filters = dict(named_filters)
        self._chains = {}

    def keep(self, specs: Iterable[FunctionSpec]) -> None:
        """Only `specs` are run from now on, and by the turns in flight those that were before: forget what was built
        for others."""
        self._chains = {spec: known for spec in specs if (known := self._chains.get(spec)) is not None}

    def _near(self, name: str) -> str:
        near = difflib.get_close_matches(name, self._named_filters, n=1)
        return f"; did you mean {near[0]!r}?" if near else "; filters.named in the settings has them"

    def refused(self, context: MessageContext, spec: FunctionSpec, turn: Turn, path: Path) -> FunctionResult | None:
        """Why the sender may not run `spec` here and now, whatever the arguments; None when they may."""
        profile = turn.profile()
        found = refusal(context, spec, turn, profile, path)
        return None if found is None else refused_result(found, spec, profile)

    async def _decided(
        self,
        context: MessageContext,
        run: Run,
        turn: Turn,
        profile: ChatProfile,
        *,
        confirmed: bool,
        uncertain: bool,
        paid: bool,
    ) -> FunctionResult | None:
        """Budget, taint, approval and confirmation; then the intent. None: go on. `paid`: this very run was begun
        before, and what it costs was taken with its intent."""
        spec, arguments = run.spec, run.arguments
        writes: tuple[Write, ...] = ()
        # Budget, taint, approval. A run that goes on was paid for, and judged by what had been read before it began.
        passed = 1 if paid else 0
        if turn.resuming and run.key in turn.resuming:
            passed, confirmed = 2, True
        for policy in self._policies[passed:] if passed else self._policies:
            judged = policy.judge(context, spec, arguments, turn)
            if judged is ALLOWED:
                continue
            verdict = judged if isinstance(judged, Verdict) else await judged
            if verdict.refusal is not None:
                if only_ends(run.key, turn):
                    break
                return held_up(verdict.refusal, turn.resuming.get(run.key))
            writes += verdict.writes
        if (spec.confirm or uncertain) and not confirmed:
            return FunctionResult(question=confirm_question(spec, spec.arguments.dump(arguments), profile.texts))
        self._reach("tool.before_intent_record")
        try:
            noted = turn.log.intend(run, writes)
            if noted is not None:
                await noted
        except Conflict:
            overtaken = None if paid else await self._overtaken(context, run, turn)
            if overtaken is None:
                raise
            return overtaken
        return None

    async def _overtaken(self, context: MessageContext, run: Run, turn: Turn) -> FunctionResult | None:
        """The budget's refusal, where another turn took the last of it between the look and the grasp."""
        judged = self._policies.budget.judge(context, run.spec, run.arguments, turn)
        verdict = judged if isinstance(judged, Verdict) else await judged
        return verdict.refusal

    async def _not_run(
        self, context: MessageContext, run: Run, result: FunctionResult, turn: Turn, raw: Mapping[str, Any]
    ) -> FunctionResult:
        """`result`, which came instead of the run; on the record when it is no question. A run that was to go on then
        comes to its end."""
        if result.error is None:
            return result
        self._record(context, run._replace(arguments=plain(run.arguments)), result, turn.id, 0)
        resumed = turn.resuming.get(run.key) if turn.resuming else None
        if resumed is not None and resumed.kind == "answered":
            resumed = replace(resumed, answer="", kind="expired")
            ended = Ended(run.spec.name, raw, run.path, resumed, end_key(run.key))
            return with_unknown(result, await end(self, context, turn, ended))
        return result

    async def _asked(
        self, context: MessageContext, result: FunctionResult, run: Run, turn: Turn, profile: ChatProfile, depth: int
    ) -> FunctionResult:
        """`result` of `run`, which asks; a failure where nobody is there to answer. Who asked then hears of it, to
        clean up."""
        asked = has_asked(result, run.path, depth, can_ask=turn.can_ask)
        if asked is None:
            return result
        key, path = turn.next_key(), _NESTED if asked.nested else run.path
        resumed = Resumed(asked.resume or {}, "", "expired", asked.number)
        turn.resume(key, resumed)
        await self.invoke(context, asked.function, asked.arguments, turn, path, key=key)
        return nobody_answers(asked, run.spec, result, profile.texts)

    async def _run(
        self, context: MessageContext, run: Run, turn: Turn, profile: ChatProfile, depth: int, allowed: str
    ) -> FunctionResult:
        """The run itself, after all checks, and what is noted about it. `allowed`: by which yes it came about."""
        key, spec = run.key, run.spec
        turn.begin(run)
        self._reach("tool.after_intent_before_call")
        started = self._clock.monotonic()
        doors = RunDoors(self, context, key, turn, profile, depth)
        call = Call(key, 0.0, turn.state, profile, doors)
        try:
            if spec.retry is None:
                result = storable(await self._once(context, run, turn, call, started))
            else:
                result = storable(await self._attempts(context, run, turn, call, spec.retry))
        except asyncio.CancelledError as cancelled:
            stopped = self._cut_short(still_running(cancelled), run, turn, profile, started)
            self._record(context, run, stopped, turn.id, int((self._clock.monotonic() - started) * 1e6))
            # A run around this one need not be told of the thread: the turn has noted it.
            raise asyncio.CancelledError from None
        if doors.asked:
            for asked in doors.kept_back(result):
                ended = Ended.of(asked, _NESTED, "expired", end_key(asked.key))
                result = with_unknown(result, await end(self, context, turn, ended))
        # An effect that was begun within and not seen to end makes the outcome of the whole run unknown.
        abandoned = turn.abandoned_by(key) if turn.unfinished else ""
        if abandoned:
            is_running = abandoned in turn.still_running
            result = unknown(turn.functions.find(abandoned) or abandoned, profile.texts, still_running=is_running)
        self._reach("tool.after_call_before_result_record")
        if result.outside:
            turn.holds_words_of_others(key)
        if (spec.touches or turn.outside) and turn.is_from_outside(run):
            result = replace(result, outside=True)
        if result.question is not None:
            result = with_its_run(run, result, turn.resuming.get(key), allowed, profile.texts)
        turn.end(run, result)
        turn.log.result(run, result)
        self._record(context, run, result, turn.id, int((self._clock.monotonic() - started) * 1e6))
        return result

    async def _attempts(
        self, context: MessageContext, run: Run, turn: Turn, call: Call, retry: Retry
    ) -> FunctionResult:
        """Run, and again after transient failures."""
        left = retry.attempts_after_first if run.spec.effect is not Effect.ONCE else 0
        while True:
            result = await self._once(context, run, turn, call, self._clock.monotonic())
            if left <= 0 or result.error is None or result.error.code is not ErrorCode.TRANSIENT:
                return result
            if turn.abandoned_by(run.key):
                return result
            left -= 1
            await self._clock.sleep(retry.delay_seconds)

    async def _once(self, context: MessageContext, run: Run, turn: Turn, call: Call, begun: float) -> FunctionResult:
        """One attempt, which began at `begun`: what the handler gives in its time, or its failure as a value."""
        spec, profile = run.spec, call.profile
        deadline = begun + timeout_seconds(spec, profile)
        if deadline > turn.deadline:
            deadline = turn.deadline
        call.deadline = deadline
        began = False
        try:
            if spec.status_text:
                await call.status(profile.texts.resolve(spec.status_text))
            proceed = self._chains.get(spec) or self._chain(spec)
            began = True
            return await self._deadlines.run(proceed(Invocation(context, spec, run.arguments, call)), deadline)
        except ToolError as error:
            return FunctionResult.fail(error.code, own_words(error, profile.texts))
        except TimeoutError as late:
            thread = still_running(late)
            if thread is not None:
                self._log_end(thread, run, turn, begun)
            if spec.effect is Effect.ONCE or (thread is not None and spec.effect is not Effect.READ):
                return unknown(spec, profile.texts, still_running=thread is not None)
            name = spoken_name(spec, profile.texts.language)
            return FunctionResult.fail(ErrorCode.TIMEOUT, profile.texts.say("failures.timeout", name=name))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the border where a handler's failure becomes a value
            return broken(spec, turn.id, error, profile.texts, began=began)

    def _cut_short(
        self, thread: StillRunning | None, run: Run, turn: Turn, profile: ChatProfile, begun: float
    ) -> FunctionResult:
        """The result of a run that was cancelled from outside; `thread` of its work may go on."""
        stopped = FunctionResult.fail(ErrorCode.CANCELLED, profile.texts.say("stop.stopped"))
        if thread is None:
            return stopped
        self._log_end(thread, run, turn, begun)
        if run.spec.effect is Effect.READ:
            return stopped
        result = unknown(run.spec, profile.texts, still_running=True)
        turn.leave_running(run)
        turn.log.result(run, result)
        return result

    def _log_end(self, thread: StillRunning, run: Run, turn: Turn, begun: float) -> None:
        """Write to the log how the run really ends, once its thread does."""

        def log(ended: asyncio.Future[Callable[[], Any]]) -> None:
            outcome, failure = "returned", None
            try:
                ended.result()()
            except Exception as error:  # noqa: BLE001 - the failure of a run that nobody waits for any more
                outcome, failure = "failed", error
            seconds = round(self._clock.monotonic() - begun, 1)
            facts = {"function": run.spec.name, "turn": turn.id, "run": run.key, "seconds": seconds}
            _log.warning("function_ended_late", **facts, outcome=outcome, exc_info=failure)

        thread.ended.add_done_callback(log)

    def _chain(self, spec: FunctionSpec) -> Proceed:
        gone = [name for name in spec.filters if name not in self._named_filters]
        if gone:
            # They were taken out of the settings while this turn ran. Without them it is not to run.
            raise DefinitionError(spec.source, [f"it names the filter {gone[0]!r}, which does not exist any more"])
        own = [self._named_filters[name] for name in spec.filters]
        return self._chains.setdefault(spec, chain(spec, [*self._filters, *own]))

    def _from_before(
        self,
        key: str,
        spec: FunctionSpec,
        function: str,
        result: FunctionResult | None,
        turn: Turn,
        profile: ChatProfile,
    ) -> FunctionResult:
        """The stored result of a run from before a restart; for a `once` without one the honest unknown."""
        if spec.effect is not Effect.READ:
            turn.effects += 1
        turn.has_read(key, spec)
        if result is not None and result.outside:
            turn.holds_words_of_others(key)
        if function != spec.name:
            _log.error("ledger_mismatch", turn=turn.id, stored=function, asked=spec.name)
            return unknown(turn.functions.find(function) or function, profile.texts)
        if result is None:
            return unknown(spec, profile.texts)
        if result.context_updates:
            turn.state.update(result.context_updates)
        return result
