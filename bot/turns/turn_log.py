"""Log of a turn in the store, and explanations of message outcomes."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import orjson

from function_calls.context import MessageContext
from function_calls.ports import Explanation
from function_calls.result import ended_as, result_from_json, result_to_json
from function_calls.spec import FunctionResult, Touch
from function_calls.turn import Run, StoredRun, Turn
from services.clock import Clock
from services.fault_points import FaultPoints
from services.llm.model import ModelAnswer, answer_from_json, answer_to_json
from services.redaction import HIDDEN
from services.refs import ChatRef, Effect, MemberRef, ReasonCode
from services.store.chats import outcomes
from services.store.port import Conflict, Row, Store, StoreFull, Write
from services.store.turns import budgets, ledger, outbox, turn_state

_NOTHING_READ: frozenset[Touch] = frozenset()


class _Answer(NamedTuple):
    answer: ModelAnswer
    taint: frozenset[Touch]


class StoreTurnLog:
    """Collects writes and commits as rarely as durability permits: an answer goes with the first intent that follows
    from it, a result with the next write, and only an effect waits for the disk."""

    def __init__(self, store: Store, context: MessageContext, turn_id: int, clock: Clock, faults: FaultPoints) -> None:
        self._store = store
        self._context = context
        self._turn_id = turn_id
        self._clock = clock
        self._reach = faults.reach
        self._collected: list[Write] = []
        self._must_be_durable = False
        self._is_answer_new = False
        self._answers: dict[int, _Answer] = {}
        self._runs: dict[str, StoredRun] = {}
        self._read_by_runs: dict[str, frozenset[Touch]] = {}
        self._turn: Turn | None = None
        self._started: dict[str, int] = {}

    def bind(self, turn: Turn) -> None:
        """Attach `turn`, the attempt that follows. The taint it has is stored with its runs and answers, and is added
        to the turn again when a stored run or answer is reused."""
        self._turn = turn

    def unbind(self) -> None:
        """Detach the turn. Otherwise turn and log form a reference cycle per message, which only the cyclic garbage
        collector frees."""
        self._turn = None

    async def load(self) -> None:
        """Load the answers and runs that an earlier attempt of this turn stored. Raises StoreError."""
        for row in await self._store.read(turn_state.of_turn(self._turn_id)):
            answer = answer_from_json(orjson.loads(row["body"]))
            self._answers[row["round"]] = _Answer(answer, _of_text(row["taint"]))
        for row in await self._store.read(ledger.of_turn(self._turn_id)):
            if row["key"] in self._runs:
                # The state in memory is newer than the stored one.
                continue
            body = row["result"]
            result = result_from_json(orjson.loads(body)) if body else None
            self._runs[row["key"]] = StoredRun(row["function"], result, Effect(row["effect"]))
            self._read_by_runs[row["key"]] = _of_text(row["taint"])

    def stored_answer(self, round_number: int) -> ModelAnswer | None:
        stored = self._answers.get(round_number)
        if stored is None:
            return None
        self._has_read(stored.taint)
        return stored.answer

    def stored_run(self, key: str) -> StoredRun | None:
        run = self._runs.get(key)
        if run is not None:
            self._has_read(self._read_by_runs.get(key, _NOTHING_READ))
        return run

    @property
    def _taint(self) -> frozenset[Touch]:
        return _NOTHING_READ if self._turn is None else self._turn.memory.taint

    def _has_read(self, taint: frozenset[Touch]) -> None:
        if taint and self._turn is not None:
            self._turn.memory.taint |= taint

    def answer(self, round_number: int, answer: ModelAnswer, writes: Sequence[Write] = ()) -> None:
        taint = self._taint
        self._answers[round_number] = _Answer(answer, taint)
        body, now_ms = orjson.dumps(answer_to_json(answer)).decode(), self._clock.now_ms()
        self._collected.append(
            turn_state.put(self._turn_id, round_number, body, answer.request_id, now_ms, _as_text(taint))
        )
        self._collected += writes
        # No effect and no reply uses an answer before it is durable, so it does not need a commit by itself.
        self._is_answer_new = True
        if not all(map(budgets.is_count, writes)):
            # The budget charge is in the same unit and must not be lost if the disk is full for a moment.
            self._must_be_durable = True

    def intend(self, run: Run, writes: Sequence[Write] = ()) -> Awaitable[None] | None:
        spec = run.spec
        if spec.execution.effect is Effect.READ and not (
            writes or self._collected or run.key in self._runs or spec.execution.background
        ):
            self._started[run.key] = self._clock.now_ms()
            return None
        return self._intend(run, writes)

    async def _intend(self, run: Run, writes: Sequence[Write]) -> None:
        spec = run.spec
        before, must_be_durable = list(self._collected) if writes else [], self._must_be_durable
        is_read = spec.execution.effect is Effect.READ and not spec.execution.background
        if is_read and not writes and run.key not in self._runs:
            self._started[run.key] = self._clock.now_ms()
        else:
            # A read with a cost gets a row: it is charged once, however often it is started.
            self._collected.append(self._row(run, self._clock.now_ms()))
        self._collected += writes
        if spec.execution.starts_once or writes or (self._is_answer_new and spec.execution.effect is not Effect.READ):
            self._must_be_durable = True
        try:
            await self.settle()
        except Conflict:
            # The unit was rolled back: its earlier writes go with the next unit.
            self._collected = [*before, *self._collected]
            self._must_be_durable = must_be_durable
            raise
        except StoreFull:
            # The run did not start: drop its charge, which the retry adds again.
            self._collected = [one for one in self._collected if not any(one is write for write in writes)]
            raise

    def _row(self, run: Run, at_ms: int, *, code: str = "", ended_ms: int | None = None) -> Write:
        spec, context = run.spec, self._context
        arguments = spec.arguments.dump(run.arguments)
        for name in spec.execution.sensitive:
            if name in arguments:
                arguments[name] = HIDDEN
        return ledger.started(
            key=run.key,
            turn_id=self._turn_id,
            chat=context.chat.key,
            member=context.sender.ref.key,
            function=spec.name,
            arguments=orjson.dumps(arguments, default=str).decode(),
            effect=str(spec.execution.effect),
            path=str(run.path),
            round_number=run.round_number,
            at_ms=at_ms,
            taint=_as_text(self._taint),
            code=code,
            ended_ms=ended_ms,
        )

    def result(self, run: Run, result: FunctionResult) -> None:
        taint = self._taint
        self._runs[run.key] = StoredRun(run.spec.name, result, run.spec.execution.effect)
        self._read_by_runs[run.key] = taint
        code = ended_as(result)
        now_ms, execution = self._clock.now_ms(), run.spec.execution
        # After a crash a read simply runs again, so its result is not stored.
        is_read = execution.effect is Effect.READ and not execution.background
        body = None if is_read else orjson.dumps(result_to_json(result), default=str).decode()
        started_ms = self._started.pop(run.key, None)
        if started_ms is not None:
            # Start and end of a read in one row, for the call history.
            self._collected.append(self._row(run, started_ms, code=code, ended_ms=now_ms))
        else:
            self._collected.append(ledger.result(self._turn_id, run.key, code, body, now_ms, _as_text(taint)))
        if run.spec.execution.effect is Effect.ONCE:
            self._must_be_durable = True
        self._reach("tool.after_result_record")

    async def settle(self) -> None:
        if not self._collected:
            return
        writes, self._collected = self._collected, []
        if not self._must_be_durable:
            self._store.post(writes)
            return
        try:
            await self._store.commit(writes)
        except StoreFull:
            # They go with the next unit, once there is disk space.
            self._collected = [*writes, *self._collected]
            raise
        self._is_answer_new = False
        self._reach("llm.after_persist")

    def drop(self) -> None:
        """Discard the writes that are not stored yet: one of them cannot be stored."""
        self._collected = []
        self._must_be_durable = self._is_answer_new = False

    @property
    def results(self) -> Mapping[str, StoredRun]:
        """The turn's runs known to this process and earlier ones, by run key; a view, which later runs change."""
        return self._runs

    def rest(self) -> list[Write]:
        """The writes that are not stored yet, to be committed with the end of the turn."""
        return list(self._collected)


def _as_text(taint: frozenset[Touch]) -> str:
    return " ".join(sorted(taint)) if taint else ""


def _of_text(stored: str | None) -> frozenset[Touch]:
    return frozenset(map(Touch, stored.split())) if stored else _NOTHING_READ


_SHOWN_CHARS = 60


class StoredExplanations:
    """Reads explanations from the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def last(self, chat: ChatRef, before_native_id: str, count: int) -> Sequence[Explanation]:
        """Outcomes of the last `count` messages and failed timer runs visible to everybody in `chat`, without the
        requesting message; newest first."""
        return [_explained(row) for row in await self._last(chat, before_native_id, count)]

    async def back(self, chat: ChatRef, before_native_id: str, number: int) -> Explanation | None:
        """The outcome of the message `number` before the asking one (1 is the last), or None."""
        rows = await self._last(chat, before_native_id, number)
        return _explained(rows[-1]) if len(rows) == number else None

    async def of(self, chat: ChatRef, native_id: str, private_to: MemberRef | None = None) -> Sequence[Explanation]:
        """The outcomes of one message of `chat` and its changes, oldest first; for a message of the bot, of the message
        that it answered. Private outcomes are returned only if they belong to `private_to`. Raises StoreError."""
        rows: Sequence[Row] = await self._store.read(outcomes.of_native(chat.key, native_id))
        if not rows:
            sent = await self._store.read(outbox.turn_of(chat.key, native_id))
            # A turn of another chat may have sent the message here: that chat's outcomes are not shown.
            rows = await self._in_chat(chat, sent[0]["turn_id"], private_to) if sent else []
        return [_explained(row) for row in rows]

    async def _last(self, chat: ChatRef, before_native_id: str, count: int) -> list[Row]:
        """Rows of messages and of timers, newest first. Raises StoreError."""
        rows = await self._store.read(outcomes.last(chat.key, before_native_id, count))
        by_clock = await self._store.read(outcomes.last_timers(chat.key, count))
        return sorted([*rows, *by_clock], key=lambda row: int(row["id"]), reverse=True)[:count]

    async def _in_chat(self, chat: ChatRef, turn_id: int, private_to: MemberRef | None) -> Sequence[Row]:
        by_clock = await self._store.read(outcomes.timer_in_chat(chat.key, turn_id))
        if by_clock:
            may_know = (None, private_to.key) if private_to is not None else (None,)
            return [row for row in by_clock if row["private_to"] in may_know]
        return await self._store.read(outcomes.in_chat(chat.key, turn_id))


def _explained(row: Row) -> Explanation:
    text = row["text"] or ""
    reason = ReasonCode(row["reason"])
    # The detail of an unknown command is a word of the message: it is hidden once the text is.
    is_shown = bool(text) or reason is not ReasonCode.UNKNOWN_COMMAND
    return Explanation(
        text=text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…",
        sender_name=row["sender_name"],
        at=datetime.fromtimestamp(row["received_ms"] / 1000, UTC),
        reason=reason,
        detail=row["detail"] if is_shown else "",
        short_id=str(row["id"]),
    )
