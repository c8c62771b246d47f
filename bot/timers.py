"""What is due becomes a message and takes the ordinary road: its row in the inbox, its own state and the next moment of
its timer are one commit. A tick costs next to nothing while nothing is due, and what is due is said no faster than
leaves room for what people ask meanwhile."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from typing import Any

import orjson
import structlog

from bot.clock_guard import ClockGuard
from bot.delivery import Delivery, Parcel
from bot.due_queue import DueQueue, Line
from bot.gate import Verdict
from bot.intake import Intake
from bot.timer_context import timer_context
from bot.timer_review import TimerReview
from config.timers import TimersSettings
from services.clock import Clock
from services.fault_points import FaultPoints
from services.firing import Decision, decide
from services.refs import ChatRef, ReasonCode
from services.store import due, occurrences, timers
from services.store.ids import Ids
from services.store.port import Conflict, Row, Store, StoreError, Write
from services.timer import TimerKind, at_ms
from services.timetable import Timetable

_log = structlog.get_logger("timers")
_PAGE = 2000
_MOST_KNOWN = 10_000
_ATTEMPTS = 3
_FULL_SECONDS = 5.0
_NO_PLATFORM_SECONDS = 60.0
_WINDOW_SECONDS = 60.0
_MUCH_LATE_SECONDS = 1800.0
_TURNED_BACK_SECONDS = -60.0


class Timers:
    """Fires what is due."""

    def __init__(
        self,
        *,
        store: Store,
        intake: Intake,
        delivery: Delivery,
        timetable: Timetable,
        settings: TimersSettings,
        clock: Clock,
        ids: Ids,
        faults: FaultPoints,
    ) -> None:
        self._store = store
        self._intake = intake
        self._delivery = delivery
        self._timetable = timetable
        self._settings = settings
        self._clock = clock
        self._ids = ids
        self._reach = faults.reach
        self._guard = ClockGuard(clock, settings)
        self._review = TimerReview(store, clock)
        self._queue = DueQueue(clock, TimerKind)
        self._running: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._said_at: dict[str, deque[float]] = {}
        self._speaking: dict[str, int] = {}
        self._is_closed = False
        self.outcomes: Counter[str] = Counter()
        """How moments ended since the start: in_time, late, missed, undeliverable."""
        self.on_undeliverable: list[Callable[[str, int], None]] = []
        """Called for each moment that was refused, with its chat and its id."""
        delivery.on_given_up.append(self._not_delivered)

    @property
    def waiting(self) -> int:
        """Moments that have come and are not being said yet, as far as they were looked at."""
        return self._queue.waiting

    @property
    def is_holding(self) -> bool:
        """Whether all that is due is held back, because the clock is in doubt."""
        return self._guard.is_holding

    async def start(self, newest_ms: int | None) -> None:
        """Look through what is to come. `newest_ms`: the instant of the newest thing in the store."""
        now_ms = self._clock.now_ms()
        self._guard.begin(newest_ms)
        self._timetable.begin_look()
        await self._review.run(turned_back=newest_ms is not None and newest_ms > now_ms + _WINDOW_SECONDS * 1000)
        await self._set_soonest(-1)

    async def tick(self) -> None:
        """See whether something has become due; called once a second."""
        if self._guard.look() < _TURNED_BACK_SECONDS:
            self._queue.clear()
            self._timetable.begin_look()
            await self._review.run(turned_back=True)
            await self._set_soonest(-1)
        soonest, now_ms = self._timetable.soonest_ms, self._clock.now_ms()
        if soonest is not None and soonest <= now_ms:
            await self._look(now_ms)
        if self._queue.waiting:
            self._begin()

    async def idle(self) -> None:
        """Return when nothing is being said; what has to wait for its pace may be left."""
        while self._tasks:
            await asyncio.wait(list(self._tasks))

    async def close(self) -> None:
        """Begin nothing more. What was claimed is said, now or after the next start."""
        self._is_closed = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _look(self, now_ms: int) -> None:
        """Put what is due into the queue, unless the clock is not to be believed."""
        if self._guard.in_doubt:
            (row,) = await self._store.read(due.overdue(now_ms, self._settings.hold_over + 1))
            if self._guard.holds(row["count"]):
                return
        if self._queue.known - self._queue.aside >= _MOST_KNOWN:
            return
        # From the beginning each time: something that was asked for meanwhile may be due before what is known.
        self._timetable.begin_look()
        most = self._queue.known + _PAGE
        rows = await self._store.read(due.page(now_ms, (-1, 0), most))
        for row in rows:
            self._queue.add(Line(row["kind"], row["chat"]), row["id"])
        if len(rows) < most:
            await self._set_soonest(now_ms)

    async def _set_soonest(self, after_ms: int) -> None:
        (row,) = await self._store.read(due.soonest(after_ms))
        self._timetable.end_look(row["due_ms"])

    def _begin(self) -> None:
        # Each kind has places of its own: reminders must not wait for schedules, which may take long.
        for kind in TimerKind:
            while not self._is_closed and self._running[kind] < self._settings.at_once:
                taken = self._queue.take(kind)
                if taken is None:
                    break
                self._running[kind] += 1
                self._spawn(self._run(*taken))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, line: Line, occurrence_id: int) -> None:
        """Fire one, and let the chat give its next one when what it says has been sent."""
        chat, pause, is_broken = line.chat, 0.0, False
        try:
            pause = await self._fire(ChatRef.parse(chat), occurrence_id)
        except Conflict:
            _log.error("timer_conflicts", chat=chat, occurrence=occurrence_id)
            is_broken = True
        except StoreError as problem:
            _log.error("timer_waits_for_the_store", chat=chat, problem=str(problem))
            pause = _FULL_SECONDS
        except Exception as error:  # noqa: BLE001 - one that cannot be fired must not keep the others from it
            _log.error("timer_cannot_be_fired", chat=chat, occurrence=occurrence_id, exc_info=error)
            is_broken = True
        finally:
            self._running[line.kind] -= 1
        if is_broken:
            self._queue.put_aside(line, occurrence_id)
            self._queue.release(chat)
        elif pause:
            self._queue.put_back(line, occurrence_id)
            self._queue.release(chat, pause)
        else:
            self._queue.forget(occurrence_id)
            self._spawn(self._release(chat))
        self._begin()

    async def _release(self, chat: str) -> None:
        """What was said is on its way first: else the chat's own answers would wait behind all that is due."""
        await self._delivery.delivered(ChatRef.parse(chat))
        self._speaking.pop(chat, None)
        self._queue.release(chat, self._pause(chat))
        self._begin()

    async def _fire(self, chat: ChatRef, occurrence_id: int) -> float:
        """Say what is due, or note that it is missed or cannot be. 0 when it is over, else after how many seconds the
        chat is to be tried again. Raises Conflict when it is changed all the time."""
        if self._delivery.platform(chat) is None:
            _log.error("timer_without_a_platform", chat=chat.key, setting="platforms")
            return _NO_PLATFORM_SECONDS
        been: set[str] = set()
        for attempt in range(1, _ATTEMPTS + 1):
            row = next(iter(await self._store.read(due.row(occurrence_id))), None)
            if row is None:
                return 0.0
            decision = await self._decide(row, been)
            try:
                if not decision.says:
                    await self._miss(row, decision)
                    return 0.0
                return await self._say(row, decision)
            except Conflict:
                if attempt == _ATTEMPTS:
                    raise
                # It was changed or taken back meanwhile, or the clock went back over what has been.
                found = await self._store.read(occurrences.over_since(row["id"], row["due_ms"]))
                been = {one["wall"] for one in found}
        return 0.0

    async def _decide(self, row: Row, been: set[str]) -> Decision:
        now, most_late = self._clock.now(), timedelta(hours=self._settings.recurring_late_hours)
        is_much_late = (now - at_ms(row["due_ms"])).total_seconds() >= _MUCH_LATE_SECONDS
        if is_much_late and "count" in orjson.loads(row["rule"]):
            # Thousands may have to be counted, and nobody else is to wait for that.
            return await asyncio.to_thread(decide, row, now, most_late, been)
        return decide(row, now, most_late, been)

    async def _miss(self, row: Row, decision: Decision) -> None:
        now_ms = self._clock.now_ms()
        await self._store.commit(
            [occurrences.close(row["occurrence_id"], "missed", "too late", now_ms), *self._after(row, decision, None)]
        )
        self._expect(decision)
        self.outcomes["missed"] += 1
        _log.warning("timer_missed", chat=row["chat"], timer=row["id"], setting="timers.recurring_late_hours")

    async def _say(self, row: Row, decision: Decision) -> float:
        ended = asyncio.Event()
        late_seconds = (self._clock.now_ms() - decision.moment.due_ms) / 1000

        def claim(verdict: Verdict, turn_id: int) -> Sequence[Write]:
            return self._claim(row, decision, verdict, turn_id)

        was_away = decision.moment.due_ms <= self._guard.away_until_ms
        context = timer_context(row, decision.moment, self._clock.now(), was_away=was_away)
        verdict = await self._intake.fire(context, claim, ended.set)
        if verdict.reason is ReasonCode.QUEUE_FULL:
            return _FULL_SECONDS
        self._expect(decision)
        if not verdict.is_for_us:
            self._count_undeliverable(row["chat"], row["id"], verdict.reason.value)
            for call in self.on_undeliverable:
                call(row["chat"], row["occurrence_id"])
            return 0.0
        self._speaking[row["chat"]] = row["id"]
        self.outcomes["late" if late_seconds >= self._settings.late_after_seconds else "in_time"] += 1
        await ended.wait()
        self._reach("sched.after_fire_before_done")
        return 0.0

    def _claim(self, row: Row, decision: Decision, verdict: Verdict, turn_id: int) -> list[Write]:
        """What is written with the message: the moment is over, and the next one is to come."""
        now_ms, moment = self._clock.now_ms(), decision.moment
        if not verdict.is_for_us:
            closed = occurrences.close(row["occurrence_id"], "undeliverable", verdict.reason.value, now_ms)
            return [closed, *self._after(row, decision, None)]
        claimed = due.claim(
            row["occurrence_id"],
            revision=row["revision"],
            wall=moment.wall,
            due_ms=moment.due_ms,
            now_ms=now_ms,
            turn_id=turn_id,
        )
        return [claimed, *self._after(row, decision, turn_id)]

    def _after(self, row: Row, decision: Decision, turn_id: int | None) -> list[Write]:
        now_ms = self._clock.now_ms()
        at_ms = None if turn_id is None else now_ms
        writes = [timers.fired(row["id"], passed=decision.passed, at_ms=at_ms, turn_id=turn_id)]
        if decision.next is not None:
            wall, due_ms = decision.next.wall, decision.next.due_ms
            coming = self._ids.next()
            writes.append(occurrences.add(id=coming, timer_id=row["id"], wall=wall, due_ms=due_ms, snoozed=False))
        return [*writes, timers.end(row["id"], now_ms)]

    def _expect(self, decision: Decision) -> None:
        """The next moment is kept now. Not before: who looks for it has to find it."""
        if decision.next is not None:
            self._timetable.expect(decision.next.due_ms)

    def _pause(self, chat: str) -> float:
        """How long the chat has to wait for its next one: what is due takes half of the network's rate, so that answers
        need not wait for it."""
        platform = self._delivery.platform(ChatRef.parse(chat))
        times, now = self._said_at.setdefault(chat, deque()), self._clock.monotonic()
        times.append(now)
        while times[0] <= now - _WINDOW_SECONDS:
            times.popleft()
        if len(self._said_at) > _MOST_KNOWN:
            self._said_at = {key: said for key, said in self._said_at.items() if said[-1] > now - _WINDOW_SECONDS}
        share = max(1, platform.limits.sends_per_minute // 2) if platform else 1
        return times[-share] + _WINDOW_SECONDS - now if len(times) >= share else 0.0

    def _not_delivered(self, parcel: Parcel, problem: str) -> None:
        """No network took a message."""
        self._store.post([occurrences.undelivered(parcel.row_id, problem)])
        chat = parcel.outgoing.chat.key
        if chat in self._speaking:
            self._count_undeliverable(chat, self._speaking[chat], problem)

    def _count_undeliverable(self, chat: str, timer_id: int, why: str) -> None:
        self.outcomes["undeliverable"] += 1
        _log.warning("timer_undeliverable", chat=chat, timer=timer_id, problem=why)
