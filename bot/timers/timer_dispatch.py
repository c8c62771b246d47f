"""Dispatch of due timers: each occurrence becomes an inbox row and a turn."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import InitVar, dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import orjson
import structlog

from bot.delivery.delivery import Delivery
from bot.delivery.outgoing import OutboundMessage
from bot.intake.gate import GateDecision
from bot.intake.intake import Intake
from config.sections.timers import TimersSettings
from config.texts import Phrases
from function_calls.context import Kind, MessageContext, MessageKey, Sender, TimerCall
from services.background import Background
from services.clock import Clock
from services.fault_points import FaultPoints
from services.refs import ChatRef, MemberRef, ReasonCode
from services.retry import RetryPolicy
from services.store.ids import Ids
from services.store.port import Conflict, Row, Store, StoreError, Write
from services.store.turns import due, occurrences, timers
from services.timers.timer import (
    OccurrenceDecision,
    OccurrenceTime,
    TimerKind,
    at_ms,
    decide,
    json_text,
    ms_of,
    next_occurrence,
)
from services.timers.timetable import Timetable
from services.times.recurrence import Every, Once, Rule, occurrence_of, rule_from_json, rule_to_json
from services.times.time_formatting import rough_amount


def timer_context(row: Row, moment: OccurrenceTime, now: datetime, *, was_away: bool) -> MessageContext:
    """The context of the occurrence `moment` of a timer; `row` is a row of `services.store.turns.due.row`. Its key is
    unique to the occurrence, so the inbox accepts it once."""
    chat = ChatRef.parse(row["chat"])
    return MessageContext(
        key=MessageKey(chat, f"timer-{row['id']}-{moment.wall}", Kind.TIMER),
        kind=Kind.TIMER,
        chat=chat,
        is_group=bool(row["is_group"]),
        sender=Sender(MemberRef.parse(row["owner"]), row["owner_name"]),
        text=row["title"],
        sent_at=now,
        private=row["private_to"] is not None,
        bot=row["bot"],
        timer=TimerCall(
            function=row["function"],
            arguments=orjson.loads(row["arguments"]),
            timer_id=row["id"],
            occurrence_id=row["occurrence_id"],
            due_at=at_ms(moment.due_ms),
            title=row["title"],
            number=row["number"],
            was_away=was_away,
        ),
    )


_ASIDE = RetryPolicy(first_wait_seconds=60.0, longest_wait_seconds=900.0)


class Line(NamedTuple):
    """Identifies a queue of occurrences: kind of timer and chat."""

    kind: str
    chat: str


class DueQueue:
    """Queues of ids, one per kind and chat. Taking an id blocks all kinds of its chat until `release`."""

    def __init__(self, clock: Clock, kinds: Iterable[str]) -> None:
        self._clock = clock
        self._known: set[int] = set()
        self._lines: dict[Line, deque[int]] = {}
        # Ordered sets, because a chat is removed from the middle.
        self._ready: dict[str, OrderedDict[str, None]] = {kind: OrderedDict() for kind in kinds}
        self._busy: set[str] = set()
        self._later: list[tuple[float, int, str]] = []
        self._aside: list[tuple[float, int, Line, int]] = []
        self._failures: dict[int, int] = {}
        self._order = itertools.count()
        self.waiting = 0
        """Number of ids that are not taken."""

    @property
    def known(self) -> int:
        """Number of ids that are queued or taken and not forgotten."""
        return len(self._known)

    @property
    def aside(self) -> int:
        """Number of known ids that wait for a retry."""
        return len(self._aside)

    def add(self, line: Line, one: int) -> None:
        """Append an id to the queue of `line`, unless it is known."""
        if one in self._known:
            return
        self._known.add(one)
        self._line(line).append(one)
        self.waiting += 1

    def take(self, kind: str) -> tuple[Line, int] | None:
        """Take the first id of that kind from the next ready chat, which stays busy until it is released; None if no
        chat is ready. Returns the id with its line."""
        now = self._clock.monotonic()
        while self._later and self._later[0][0] <= now:
            self._free(heapq.heappop(self._later)[2])
        while self._aside and self._aside[0][0] <= now:
            _, _, back, one = heapq.heappop(self._aside)
            self._line(back).append(one)
        if not self._ready[kind]:
            return None
        line = Line(kind, next(iter(self._ready[kind])))
        for ready in self._ready.values():
            ready.pop(line.chat, None)
        ids = self._lines[line]
        one = ids.popleft()
        if not ids:
            del self._lines[line]
        self._busy.add(line.chat)
        self.waiting -= 1
        return line, one

    def put_back(self, line: Line, one: int) -> None:
        """Return a taken id to the front of its queue."""
        self._line(line).appendleft(one)
        self.waiting += 1

    def put_aside(self, line: Line, one: int) -> None:
        """Return a taken id, which failed by itself, to the end of its queue after a delay: one minute, doubled with
        each failure up to 15 minutes."""
        failures = self._failures[one] = self._failures.get(one, 0) + 1
        heapq.heappush(
            self._aside, (self._clock.monotonic() + _ASIDE.wait_after(failures), next(self._order), line, one)
        )
        self.waiting += 1

    def forget(self, one: int) -> None:
        """Forget a taken id that is done."""
        self._known.discard(one)
        self._failures.pop(one, None)

    def release(self, chat: str, pause_seconds: float = 0.0) -> None:
        """Unblock the chat, after a pause."""
        if pause_seconds > 0:
            heapq.heappush(self._later, (self._clock.monotonic() + pause_seconds, next(self._order), chat))
        else:
            self._free(chat)

    def clear(self) -> None:
        """Forget all queued and postponed ids and failures; taken ones stay taken."""
        for ids in self._lines.values():
            self._known.difference_update(ids)
        self._known.difference_update(one for _, _, _, one in self._aside)
        self._aside.clear()
        self._failures.clear()
        self._lines.clear()
        for ready in self._ready.values():
            ready.clear()
        self.waiting = 0

    def _line(self, line: Line) -> deque[int]:
        ids = self._lines.get(line)
        if ids is None:
            ids = self._lines[line] = deque()
            if line.chat not in self._busy:
                self._ready[line.kind][line.chat] = None
        return ids

    def _free(self, chat: str) -> None:
        self._busy.discard(chat)
        for kind, ready in self._ready.items():
            if Line(kind, chat) in self._lines:
                ready[chat] = None


_log = structlog.get_logger("timers")
_HOUR = 3600.0
_DAY = 24 * _HOUR
_ABSURD = 366 * _DAY
_ABSURD_HOLD = _DAY
_QUIET = 30 * _DAY
_AWAY = 30.0


class ClockGuard:
    """Compares the wall clock with the monotonic clock. Called once a second."""

    def __init__(self, clock: Clock, settings: TimersSettings) -> None:
        self._clock = clock
        self._settings = settings
        self._wall = clock.now().timestamp()
        self._passed = clock.monotonic()
        self._ahead = 0.0
        self._until = 0.0
        self.away_until_ms = clock.now_ms()
        """Timers due before this time became due while the process was not running or suspended."""
        self.is_holding = False
        """Due timers are held back."""

    @property
    def in_doubt(self) -> bool:
        """Whether the wall clock may be wrong: it has jumped ahead of the time that passed."""
        return self._ahead > 0

    def begin(self, newest_ms: int | None) -> None:
        """Start comparing. `newest_ms`: time of the newest row in the store."""
        self._wall, self._passed = self._clock.now().timestamp(), self._clock.monotonic()
        self.away_until_ms = self._clock.now_ms()
        quiet = 0.0 if newest_ms is None else (self._clock.now_ms() - newest_ms) / 1000
        if quiet > _QUIET:
            self._doubt(quiet)

    def look(self) -> float:
        """Seconds that the wall clock gained on the monotonic clock since the last look; negative if set back."""
        wall, passed = self._clock.now().timestamp(), self._clock.monotonic()
        elapsed = passed - self._passed
        jump = wall - self._wall - elapsed
        self._wall, self._passed = wall, passed
        if elapsed > _AWAY or jump > _AWAY:
            self.away_until_ms = self._clock.now_ms()
        if jump > _HOUR:
            self._doubt(self._ahead + jump)
        elif jump < 0:
            self.away_until_ms = min(self.away_until_ms, self._clock.now_ms())
        if jump < -_HOUR and self._ahead:
            self._ahead = max(0.0, self._ahead + jump)
            if self._ahead <= _HOUR:
                self._trust("the clock has returned to where it was")
        return jump

    def holds(self, overdue: int) -> bool:
        """Whether to hold back `overdue` due timers, because they are too many after a jump of the clock."""
        most = self._settings.hold_over
        if not self._ahead or not most:
            self.is_holding = False
            return False
        if self._clock.monotonic() >= self._until:
            self._trust("the clock has stayed as it is")
            return False
        is_too_much = overdue > (0 if self._ahead > _ABSURD else most)
        if is_too_much and not self.is_holding:
            self._alert(overdue)
        elif self.is_holding and not is_too_much:
            _log.warning("timers_released", because="no more are overdue than usual")
        self.is_holding = is_too_much
        return is_too_much

    def _doubt(self, ahead: float) -> None:
        hold = _ABSURD_HOLD if ahead > _ABSURD else self._settings.hold_seconds
        self._ahead = ahead
        self._until = self._clock.monotonic() + hold

    def _trust(self, because: str) -> None:
        self._ahead = 0.0
        if self.is_holding:
            _log.warning("timers_released", because=because)
        self.is_holding = False

    def _alert(self, overdue: int) -> None:
        _log.error(
            "timers_held",
            overdue_at_least=overdue,
            clock_says=self._clock.now().isoformat(timespec="seconds"),
            jumped_hours=round(self._ahead / _HOUR, 1),
            released_in_seconds=round(self._until - self._clock.monotonic()),
            hint="set the machine's clock right, and they are released by themselves; if it is right, wait, or set "
            "timers.hold_over to 0 and restart to fire what is overdue now",
        )


_PAGE = 1000
_YIELD_SECONDS = 0.0002


class TimerReview:
    """Moves stored occurrences whose time no longer agrees with their rule."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._zones: dict[str, ZoneInfo | None] = {}

    async def run(self, *, turned_back: bool) -> int:
        """Check all occurrences; returns how many were moved. `turned_back`: the clock was set back, so earlier
        occurrences of the rules that have not run are scheduled too. Raises StoreError."""
        place, moved, now = (-1, 0), 0, self._clock.now()
        while rows := await self._store.read(due.to_come(place, _PAGE)):
            place = (rows[-1]["due_ms"], rows[-1]["id"])
            changes = [change for row in rows if (change := await self._moved(row, now, turned_back))]
            if changes:
                await self._store.commit([write for change in changes for write in change])
                moved += len(changes)
            await asyncio.sleep(_YIELD_SECONDS)
        if moved:
            _log.info("timers_moved", count=moved, because="the clock" if turned_back else "zones have new rules")
        return moved

    async def _moved(self, row: Row, now: datetime, turned_back: bool) -> list[Write]:
        """Writes that move the row's occurrence after a change of the clock or the zone; nearly always empty.
        `turned_back`: the clock was set back, so intervals restart from now."""
        zone = self._zone(row["zone"])
        if row["snoozed"] or zone is None:
            return []
        wall, due_ms = row["wall"], row["due_ms"]
        meant, writes = (
            OccurrenceTime(wall, due_ms if wall.endswith("Z") else ms_of(occurrence_of(wall, zone).at)),
            list[Write](),
        )
        if turned_back:
            rule = rule_from_json(orjson.loads(row["rule"]))
            if isinstance(rule.when, Every) and meant.due_ms > ms_of(now) + rule.when.seconds * 1000:
                # An interval continues from now, whatever the clock shows.
                rule = replace(rule, when=replace(rule.when, since=now))
                writes.append(timers.reset_count(row["timer_id"], json_text(rule_to_json(rule))))
            meant = await self._sooner(row, rule, meant, zone, now)
        if meant != OccurrenceTime(wall, due_ms):
            writes.append(occurrences.move(row["id"], meant.wall, meant.due_ms))
        return writes

    async def _sooner(
        self, row: Row, rule: Rule, stored: OccurrenceTime, zone: ZoneInfo, now: datetime
    ) -> OccurrenceTime:
        """The row's next occurrence that has not run, if it is earlier than the stored one; else the stored one. Raises
        StoreError."""
        if isinstance(rule.when, Once):
            return stored
        found = next_occurrence(rule, zone, now, row["done"])
        if found is not None and found.due_ms < stored.due_ms:
            over = await self._store.read(occurrences.over_since(row["timer_id"], ms_of(now)))
            found = next_occurrence(rule, zone, now, row["done"], {one["wall"] for one in over})
        return found if found is not None and found.due_ms < stored.due_ms else stored

    def _zone(self, name: str) -> ZoneInfo | None:
        if name not in self._zones:
            try:
                self._zones[name] = ZoneInfo(name)
            except (ZoneInfoNotFoundError, ValueError):
                _log.error("unknown_zone", zone=name, hint="this machine has no such zone; install tzdata")
                self._zones[name] = None
        return self._zones[name]


_TIMERS_PAGE = 2000
_MOST_COUNTED = 1_000_000
_FAR_MS = 2**53
_MOST_KNOWN = 10_000
_ATTEMPTS = 3
_FULL_SECONDS = 5.0
_NO_PLATFORM_SECONDS = 60.0
_WINDOW_SECONDS = 60.0
_MUCH_LATE_SECONDS = 1800.0
_TURNED_BACK_SECONDS = -60.0


@dataclass(eq=False, repr=False, kw_only=True)
class Timers:
    """Fires due timers."""

    store: Store
    intake: Intake
    delivery: Delivery
    timetable: Timetable
    settings: TimersSettings
    clock: Clock
    ids: Ids
    faults: InitVar[FaultPoints]
    is_shared: bool = False
    """Whether other processes add timers too."""

    def __post_init__(self, faults: FaultPoints) -> None:
        self._reach = faults.reach
        self._guard = ClockGuard(self.clock, self.settings)
        self._review = TimerReview(self.store, self.clock)
        self._queue = DueQueue(self.clock, TimerKind)
        self._running: Counter[str] = Counter()
        self._background = Background()
        self._sent_at: dict[str, deque[float]] = {}
        self._speaking: dict[str, int] = {}
        self._is_closed = False
        self.outcomes: Counter[str] = Counter()
        """Number of occurrences since the start by outcome: in_time, late, missed, undeliverable."""
        self.on_undeliverable: list[Callable[[str, int], None]] = []
        """Called with chat and occurrence id for each occurrence that was rejected."""
        self.pending = 0
        """Stored occurrences that have not fired, at the last count; at most a million."""
        self.delivery.on_given_up.append(self._not_delivered)

    @property
    def waiting(self) -> int:
        """Known due occurrences that have not started."""
        return self._queue.waiting

    @property
    def is_holding(self) -> bool:
        """Whether all due timers are held back because the clock is in doubt."""
        return self._guard.is_holding

    async def start(self, newest_ms: int | None) -> None:
        """Review the stored timers. `newest_ms`: time of the newest row in the store."""
        now_ms = self.clock.now_ms()
        self._guard.begin(newest_ms)
        self.timetable.begin_look()
        await self._review.run(turned_back=newest_ms is not None and newest_ms > now_ms + _WINDOW_SECONDS * 1000)
        await self._set_soonest(-1)

    async def tick(self) -> None:
        """Fire what has become due; called once a second. If the clock was turned back, all occurrences are read again.
        Raises StoreError."""
        if self._guard.look() < _TURNED_BACK_SECONDS:
            self._queue.clear()
            self.timetable.begin_look()
            await self._review.run(turned_back=True)
            await self._set_soonest(-1)
        if self.is_shared:
            self.timetable.begin_look()
            await self._set_soonest(-1)
        soonest, now_ms = self.timetable.soonest_ms, self.clock.now_ms()
        if soonest is not None and soonest <= now_ms:
            await self._look(now_ms)
        if self._queue.waiting:
            self._begin()

    async def count(self) -> None:
        """Count the stored occurrences that have not fired. Raises StoreError."""
        (row,) = await self.store.read(due.overdue(_FAR_MS, _MOST_COUNTED))
        self.pending = row["count"]

    async def idle(self) -> None:
        """Return when nothing is running. Occurrences that wait for the pace of their chat may remain."""
        await self._background.idle()

    async def close(self) -> None:
        """Start no more. Claimed occurrences are sent now or after the next start."""
        self._is_closed = True
        await self._background.close()

    async def _look(self, now_ms: int) -> None:
        """Queue the due occurrences, unless the clock is in doubt or too many are queued. Raises StoreError."""
        if self._guard.in_doubt:
            (row,) = await self.store.read(due.overdue(now_ms, self.settings.hold_over + 1))
            if self._guard.holds(row["count"]):
                return
        if self._queue.known - self._queue.aside >= _MOST_KNOWN:
            return
        # Always from the beginning: a new timer may be due before known ones.
        self.timetable.begin_look()
        most = self._queue.known + _TIMERS_PAGE
        rows = await self.store.read(due.page(now_ms, (-1, 0), most))
        for row in rows:
            # In a cluster, the gateway that holds the account of the chat fires its timers.
            if self.delivery.is_here(ChatRef.parse(row["chat"])):
                self._queue.add(Line(row["kind"], row["chat"]), row["id"])
        if len(rows) < most:
            await self._set_soonest(now_ms)

    async def _set_soonest(self, after_ms: int) -> None:
        (row,) = await self.store.read(due.soonest(after_ms))
        self.timetable.end_look(row["due_ms"])

    def _begin(self) -> None:
        # A limit per kind: reminders must not wait for schedules, which may take long.
        for kind in TimerKind:
            while not self._is_closed and self._running[kind] < self.settings.at_once:
                next_due = self._queue.take(kind)
                if next_due is None:
                    break
                self._running[kind] += 1
                self._background.start(self._run(*next_due))

    async def _run(self, line: Line, occurrence_id: int) -> None:
        """Fire one occurrence and start a task that releases its chat when its messages are sent. An occurrence that
        cannot be fired is queued again for later. Failures are logged, not raised."""
        chat, pause, is_broken = line.chat, 0.0, False
        try:
            pause = await self._fire(ChatRef.parse(chat), occurrence_id)
        except Conflict:
            _log.error("timer_conflicts", chat=chat, occurrence=occurrence_id)
            is_broken = True
        except StoreError as problem:
            _log.error("timer_waits_for_the_store", chat=chat, problem=str(problem))
            pause = _FULL_SECONDS
        except Exception as error:  # noqa: BLE001 - a broken timer must not stop the others
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
            self._background.start(self._release(chat))
        self._begin()

    async def _release(self, chat: str) -> None:
        """Release the chat after its messages are sent; otherwise replies would wait behind all due timers."""
        await self.delivery.delivered(ChatRef.parse(chat))
        self._speaking.pop(chat, None)
        self._queue.release(chat, self._pause(chat))
        self._begin()

    async def _fire(self, chat: ChatRef, occurrence_id: int) -> float:
        """Fire the occurrence, or record it as missed or undeliverable. Returns 0 when done, else the seconds until the
        next attempt. Raises Conflict if it keeps changing."""
        if self.delivery.platform(chat) is None:
            _log.error("timer_without_a_platform", chat=chat.key, setting="platforms")
            return _NO_PLATFORM_SECONDS
        over: set[str] = set()
        for attempt in range(1, _ATTEMPTS + 1):
            row = next(iter(await self.store.read(due.row(occurrence_id))), None)
            if row is None:
                return 0.0
            decision = await self._decide(row, over)
            try:
                if not decision.dispatches:
                    await self._miss(row, decision)
                    return 0.0
                return await self._dispatch(row, decision)
            except Conflict:
                if attempt == _ATTEMPTS:
                    raise
                # The timer was changed or removed, or the clock was set back to a time whose occurrences have run.
                found = await self.store.read(occurrences.over_since(row["id"], row["due_ms"]))
                over = {one["wall"] for one in found}
        return 0.0

    async def _decide(self, row: Row, over: set[str]) -> OccurrenceDecision:
        now, most_late = self.clock.now(), timedelta(hours=self.settings.recurring_late_hours)
        is_much_late = (now - at_ms(row["due_ms"])).total_seconds() >= _MUCH_LATE_SECONDS
        if is_much_late and "count" in orjson.loads(row["rule"]):
            # May count thousands of occurrences, so not on the event loop.
            return await asyncio.to_thread(decide, row, now, most_late, over)
        return decide(row, now, most_late, over)

    async def _miss(self, row: Row, decision: OccurrenceDecision) -> None:
        now_ms = self.clock.now_ms()
        await self.store.commit(
            [occurrences.close(row["occurrence_id"], "missed", "too late", now_ms), *self._after(row, decision, None)]
        )
        self._expect(decision)
        self.outcomes["missed"] += 1
        _log.warning("timer_missed", chat=row["chat"], timer=row["id"], setting="timers.recurring_late_hours")

    async def _dispatch(self, row: Row, decision: OccurrenceDecision) -> float:
        ended = asyncio.Event()
        late_seconds = (self.clock.now_ms() - decision.occurrence.due_ms) / 1000

        def claim(gated: GateDecision, turn_id: int) -> Sequence[Write]:
            return self._claim(row, decision, gated, turn_id)

        was_away = decision.occurrence.due_ms <= self._guard.away_until_ms
        context = timer_context(row, decision.occurrence, self.clock.now(), was_away=was_away)
        gated = await self.intake.fire(context, claim, ended.set)
        if gated.reason is ReasonCode.QUEUE_FULL:
            return _FULL_SECONDS
        self._expect(decision)
        if not gated.starts_turn:
            self._count_undeliverable(row["chat"], row["id"], gated.reason.value)
            for call in self.on_undeliverable:
                call(row["chat"], row["occurrence_id"])
            return 0.0
        self._speaking[row["chat"]] = row["id"]
        self.outcomes["late" if late_seconds >= self.settings.late_after_seconds else "in_time"] += 1
        await ended.wait()
        self._reach("sched.after_fire_before_done")
        return 0.0

    def _claim(self, row: Row, decision: OccurrenceDecision, gated: GateDecision, turn_id: int) -> list[Write]:
        """Writes committed with the message: close this occurrence and add the next one."""
        now_ms, moment = self.clock.now_ms(), decision.occurrence
        if not gated.starts_turn:
            closed = occurrences.close(row["occurrence_id"], "undeliverable", gated.reason.value, now_ms)
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

    def _after(self, row: Row, decision: OccurrenceDecision, turn_id: int | None) -> list[Write]:
        now_ms = self.clock.now_ms()
        at_ms = None if turn_id is None else now_ms
        writes = [timers.fired(row["id"], passed=decision.passed, at_ms=at_ms, turn_id=turn_id)]
        if decision.next is not None:
            wall, due_ms = decision.next.wall, decision.next.due_ms
            coming = self.ids.next()
            writes.append(occurrences.add(id=coming, timer_id=row["id"], wall=wall, due_ms=due_ms, snoozed=False))
        return [*writes, timers.end(row["id"], now_ms)]

    def _expect(self, decision: OccurrenceDecision) -> None:
        """Announce the next occurrence, after it is stored: the look that this triggers must find it."""
        if decision.next is not None:
            self.timetable.expect(decision.next.due_ms)

    def _pause(self, chat: str) -> float:
        """Seconds until the next occurrence of the chat: timers use half of the network's rate, so that replies need
        not wait."""
        platform = self.delivery.platform(ChatRef.parse(chat))
        times, now = self._sent_at.setdefault(chat, deque()), self.clock.monotonic()
        times.append(now)
        while times[0] <= now - _WINDOW_SECONDS:
            times.popleft()
        if len(self._sent_at) > _MOST_KNOWN:
            self._sent_at = {key: sent for key, sent in self._sent_at.items() if sent[-1] > now - _WINDOW_SECONDS}
        share = max(1, platform.limits.sends_per_minute // 2) if platform else 1
        return times[-share] + _WINDOW_SECONDS - now if len(times) >= share else 0.0

    def _not_delivered(self, outbound: OutboundMessage, problem: str) -> None:
        """Record a message that was given up."""
        self.store.post([occurrences.undelivered(outbound.row_id, problem)])
        chat = outbound.outgoing.chat.key
        if chat in self._speaking:
            self._count_undeliverable(chat, self._speaking[chat], problem)

    def _count_undeliverable(self, chat: str, timer_id: int, why: str) -> None:
        self.outcomes["undeliverable"] += 1
        _log.warning("timer_undeliverable", chat=chat, timer=timer_id, problem=why)


def late_note(seconds: int, texts: Phrases, *, was_away: bool) -> str:
    """The note in front of a message that is `seconds` late. `was_away`: because the bot was not running."""
    key = "timers.late_away" if was_away else "timers.late"
    return texts.say(key, duration=rough_amount(seconds, texts))
