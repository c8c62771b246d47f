"""The durable TurnLog: what one turn writes into the store, and in which unit."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from function_calls.context import MessageContext
from function_calls.results import result_from_json, result_to_json
from function_calls.spec import FunctionResult
from function_calls.turn import Run, StoredRun
from services.clock import Clock
from services.fault_points import FaultPoints
from services.llm.model import ModelAnswer, answer_from_json, answer_to_json
from services.redaction import HIDDEN
from services.refs import Effect
from services.store import answers, ledger
from services.store.port import Conflict, Store, StoreFull, Write


class StoreTurnLog:
    """Collects writes and commits them no more often than the promises need: an answer goes with the first intent that
    follows from it, a result with whatever comes next, and only an effect waits for the disk."""

    def __init__(self, store: Store, context: MessageContext, turn_id: int, clock: Clock, faults: FaultPoints) -> None:
        self._store = store
        self._context = context
        self._turn_id = turn_id
        self._clock = clock
        self._reach = faults.reach
        self._collected: list[Write] = []
        self._must_be_durable = False
        self._answers: dict[int, ModelAnswer] = {}
        self._runs: dict[str, StoredRun] = {}
        self._begun: dict[str, int] = {}

    async def load(self) -> None:
        """Read what an earlier attempt of this turn left."""
        for row in await self._store.read(answers.of_turn(self._turn_id)):
            self._answers[row["round"]] = answer_from_json(orjson.loads(row["body"]))
        for row in await self._store.read(ledger.of_turn(self._turn_id)):
            if row["key"] in self._runs:
                # What this process knows is newer than what it could write.
                continue
            body = row["result"]
            result = result_from_json(orjson.loads(body)) if body else None
            self._runs[row["key"]] = StoredRun(row["function"], result)

    def stored_answer(self, round_number: int) -> ModelAnswer | None:
        return self._answers.get(round_number)

    def stored_run(self, key: str) -> StoredRun | None:
        return self._runs.get(key)

    def answer(self, round_number: int, answer: ModelAnswer, writes: Sequence[Write] = ()) -> None:
        self._answers[round_number] = answer
        body = orjson.dumps(answer_to_json(answer)).decode()
        self._collected.append(answers.put(self._turn_id, round_number, body, answer.request_id, self._clock.now_ms()))
        self._collected += writes
        # Nothing of it is used before it is durable: neither by an effect nor by a message to the chat.
        self._must_be_durable = True

    async def intend(self, run: Run, writes: Sequence[Write] = ()) -> None:
        spec = run.spec
        before, must_be_durable = list(self._collected) if writes else [], self._must_be_durable
        if spec.effect is Effect.READ:
            self._begun[run.key] = self._clock.now_ms()
        else:
            self._collected.append(self._row(run, self._clock.now_ms()))
        self._collected += writes
        if spec.effect is Effect.ONCE or writes:
            self._must_be_durable = True
        try:
            await self.settle()
        except Conflict:
            # Nothing of the unit was done: what stood in it before goes with the next one.
            self._collected = [*before, *self._collected]
            self._must_be_durable = must_be_durable
            raise

    def _row(self, run: Run, at_ms: int, *, code: str = "", ended_ms: int | None = None) -> Write:
        arguments = {
            name: HIDDEN if name in run.spec.sensitive else value
            for name, value in run.spec.arguments.dump(run.arguments).items()
        }
        return ledger.begun(
            key=run.key,
            turn_id=self._turn_id,
            chat=self._context.chat.key,
            member=self._context.sender.ref.key,
            function=run.spec.name,
            arguments=orjson.dumps(arguments, default=str).decode(),
            effect=run.spec.effect.value,
            path=run.path.value,
            round_number=run.round_number,
            at_ms=at_ms,
            code=code,
            ended_ms=ended_ms,
        )

    def result(self, run: Run, result: FunctionResult) -> None:
        self._runs[run.key] = StoredRun(run.spec.name, result)
        code = result.error.code.value if result.error else "ok"
        if run.spec.effect is Effect.READ:
            # One row for the record. After a crash a read is simply run again, so its result is not kept.
            now_ms = self._clock.now_ms()
            self._collected.append(self._row(run, self._begun.pop(run.key, now_ms), code=code, ended_ms=now_ms))
            self._reach("tool.after_result_record")
            return
        body = orjson.dumps(result_to_json(result), default=str).decode()
        self._collected.append(ledger.result(self._turn_id, run.key, code, body, self._clock.now_ms()))
        if run.spec.effect is Effect.ONCE:
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
            # They go with the next unit, once there is room.
            self._collected = [*writes, *self._collected]
            raise
        self._must_be_durable = False
        self._reach("llm.after_persist")

    def rest(self) -> list[Write]:
        """What is not in the store yet: it goes with the end of the turn."""
        return list(self._collected)
