"""Timers of all chats: creation, changes, removal. Every change is one commit and has the key of its call, so that a
repeated call has no effect. Due timers are dispatched elsewhere, from the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import orjson

from services.clock import Clock
from services.refs import ChatRef, ErrorCode, JsonObject, MemberRef, RequestProblem
from services.store.ids import Ids
from services.store.port import Conflict, Query, Row, Store, Write
from services.store.turns import occurrences, timers
from services.timers.timer import Draft, Timer, TimerKind, TimerState, draft_values, json_text, ms_of, timer_of
from services.times.recurrence import (
    BadRule,
    Occurrence,
    Once,
    Rule,
    RuleProblem,
    check,
    instant_text,
    next_after,
    occurrence_text,
    rule_from_json,
    rule_to_json,
)

_ATTEMPTS = 5
_Writes = Callable[[Row, str], Awaitable[tuple[list[Write], int | None]]]


class TooMany(RequestProblem):
    """The owner has or would have more than the maximum number of timers of a kind, `most`."""

    def __init__(self, most: int) -> None:
        super().__init__("reminders.too_many", most=most)
        self.most = most


class NoSuchTimer(RequestProblem):
    """The timer was removed between reading and changing it."""

    def __init__(self, timer: Timer) -> None:
        key = "reminders.not_found" if timer.kind is TimerKind.REMINDER else "schedules.no_such"
        super().__init__(key, ErrorCode.NOT_FOUND, fields=["which"], which=timer.number, number=timer.number)


class Removed(NamedTuple):
    """Result of removing one timer."""

    timer: Timer
    is_being_sent: bool
    """An occurrence was just being dispatched; it is still sent, and none after it."""


class Timetable:
    """Creates, changes, removes and lists timers of both kinds."""

    def __init__(self, store: Store, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self.soonest_ms: int | None = None
        """No occurrence is due before this time. None: none is known. Set by the dispatcher after each query."""
        self._expected_ms: int | None = None

    async def add(self, drafts: Sequence[Draft], *, call_key: str, most_per_owner: int) -> list[Timer]:
        """Create all timers in the same order, or none, and return them; a repeated call returns those of the first.
        Raises BadRule with the index of the draft, and TooMany if an owner would have more than `most_per_owner` of a
        kind in all chats."""
        known = await self.added_by(call_key)
        if known:
            return known
        firsts = [self._first_of(draft, index) for index, draft in enumerate(drafts)]
        for _ in range(_ATTEMPTS):  # another process may take a number concurrently
            try:
                await self._store.commit(self._additions(drafts, firsts, call_key, most_per_owner))
            except Conflict:
                known = await self.added_by(call_key)
                if known:
                    return known
                await self._refuse_too_many(drafts, most_per_owner)
                continue
            for first in firsts:
                self.expect(ms_of(first.at))
            return await self.added_by(call_key)
        raise Conflict(f"numbers of timers were taken {_ATTEMPTS} times in a row")

    async def added_by(self, call_key: str) -> list[Timer]:
        """Timers created by that call, in order; including removed ones."""
        return await self._timers(timers.of_call(call_key))

    async def of_chat(self, chat: ChatRef, *, kind: TimerKind, private_to: MemberRef | None = None) -> list[Timer]:
        """Active and paused timers of the chat, soonest first, paused ones last. Private timers are included only for
        `private_to`."""
        found = [
            one
            for one in await self._timers(timers.of_chat(chat.key, kind.value))
            if one.private_to in (None, private_to)
        ]
        return sorted(
            found, key=lambda one: (one.soonest is None, ms_of(one.soonest) if one.soonest else 0, one.number)
        )

    async def get(self, chat: ChatRef, number: int, kind: TimerKind) -> Timer | None:
        """The timer with that number, even if ended; None if it does not exist or was removed. The caller checks
        ownership and privacy."""
        found = await self._timers(timers.of_number(chat.key, kind.value, number))
        return found[0] if found else None

    async def recently_sent(self, chat: ChatRef, kind: TimerKind) -> list[Timer]:
        """The timers dispatched last in the chat, latest first, including ended ones; at most 20."""
        return await self._timers(timers.recently_sent(chat.key, kind.value))

    async def of_id(self, timer_id: int) -> Timer | None:
        """The timer with that id, even if ended; None if it does not exist or was removed."""
        found = await self._timers(timers.of_id(timer_id))
        return found[0] if found and found[0].state is not TimerState.REMOVED else None

    async def declared(self) -> list[Timer]:
        """Timers declared in the settings, ordered by `source`, including ended ones."""
        return await self._timers(timers.DECLARED)

    async def change(
        self,
        timer: Timer,
        *,
        call_key: str,
        title: str | None = None,
        arguments: JsonObject | None = None,
        rule: Rule | None = None,
        zone: str | None = None,
    ) -> Timer:
        """Change the given values and return the timer; None does not change a value. Another rule or zone restarts the
        timer: its count is reset, a snoozed occurrence is dropped, and an ended timer becomes active. Raises BadRule
        and NoSuchTimer."""

        async def writes(row: Row, marker: str) -> tuple[list[Write], int | None]:
            text = None if arguments is None else json_text(arguments)
            new = {"title": title, "arguments": text, "zone": zone}
            values: dict[str, Any] = {name: value for name, value in new.items() if value is not None}
            if rule is not None:
                values["rule"] = json_text(rule_to_json(rule))
            if rule is None and zone is None:
                return [self._change(row, marker, **values)], None
            is_paused = row["state"] == TimerState.PAUSED
            values |= {"done": 0, "state": row["state"] if is_paused else TimerState.ACTIVE.value}
            wanted = rule or rule_from_json(orjson.loads(row["rule"]))
            due, due_ms = await self._next(row["id"], wanted, zone or row["zone"], 0)
            changed = [self._change(row, marker, **values), occurrences.drop(row["id"])]
            return (changed, None) if is_paused else ([*changed, due], due_ms)

        return await self._changed(timer, f"change {call_key}", writes)

    async def snooze(self, timer: Timer, until: datetime, *, call_key: str) -> Timer:
        """Add an occurrence at `until`, replacing an earlier snoozed one; the rule does not change, and an ended timer
        becomes active until then. Raises BadRule if `until` has passed, and NoSuchTimer."""

        async def writes(row: Row, marker: str) -> tuple[list[Write], int | None]:
            if until <= self._clock.now():
                raise BadRule(RuleProblem.PAST)
            is_over = row["state"] == TimerState.ENDED
            state = TimerState.ACTIVE.value if is_over else row["state"]
            due = self._moment(row["id"], instant_text(until), ms_of(until), snoozed=True)
            return [self._change(row, marker, state=state), occurrences.drop_snoozed(row["id"]), due], ms_of(until)

        return await self._changed(timer, f"snooze {call_key}", writes)

    async def drop_snoozed(self, timer: Timer, *, call_key: str) -> Timer:
        """Drop the snoozed occurrence; the rule does not change. Raises NoSuchTimer."""

        async def writes(row: Row, marker: str) -> tuple[list[Write], int | None]:
            over = timers.end(row["id"], self._clock.now_ms())
            return [self._change(row, marker), occurrences.drop_snoozed(row["id"]), over], None

        return await self._changed(timer, f"done {call_key}", writes)

    async def pause(self, timer: Timer, *, call_key: str) -> Timer:
        """Pause the timer until `resume`; an ended timer does not change. Raises NoSuchTimer."""

        async def writes(row: Row, marker: str) -> tuple[list[Write], int | None]:
            is_over = row["state"] == TimerState.ENDED
            state = row["state"] if is_over else TimerState.PAUSED.value
            return [self._change(row, marker, state=state), occurrences.drop(row["id"])], None

        return await self._changed(timer, f"pause {call_key}", writes)

    async def resume(self, timer: Timer, *, call_key: str) -> Timer:
        """Resume the timer with its rule's next occurrence; those missed meanwhile are skipped. Raises BadRule if no
        occurrence is left, and NoSuchTimer."""

        async def writes(row: Row, marker: str) -> tuple[list[Write], int | None]:
            if row["state"] != TimerState.PAUSED:
                return [self._change(row, marker)], None
            rule = rule_from_json(orjson.loads(row["rule"]))
            due, due_ms = await self._next(row["id"], rule, row["zone"], row["done"])
            return [self._change(row, marker, state=TimerState.ACTIVE.value), due], due_ms

        return await self._changed(timer, f"resume {call_key}", writes)

    async def remove(self, wanted: Sequence[Timer], *, by: MemberRef, call_key: str) -> list[Removed]:
        """Remove all timers in one commit; one result for each, in order, also for those removed before. An occurrence
        that is just being dispatched is still sent."""
        marker, now_ms = f"remove {call_key}", self._clock.now_ms()
        writes: list[Write] = []
        for timer in sorted(wanted, key=lambda one: one.id):
            writes.append(occurrences.drop(timer.id))
            writes.append(timers.remove(timer.id, by_call=marker, by_member=by.key, now_ms=now_ms))
        await self._store.commit(writes)
        removed: list[Removed] = []
        for timer in wanted:
            row = next(iter(await self._store.read(timers.of_id(timer.id))), None)
            is_being_said = row is not None and row["changed_by"] == marker and bool(row["being_said"])
            removed.append(Removed(timer, is_being_said and timer.state is not TimerState.ENDED))
        return removed

    async def removed_by(self, chat: ChatRef, call_key: str) -> list[Removed]:
        """Timers that the call removed in the chat, for a repeated call; empty if there are none."""
        rows = await self._store.read(timers.removed_by_call(chat.key, f"remove {call_key}"))
        return [Removed(timer_of(row), bool(row["being_said"])) for row in rows]

    def _first_of(self, draft: Draft, index: int) -> Occurrence:
        try:
            return check(draft.rule, ZoneInfo(draft.zone), self._clock.now())
        except BadRule as fault:
            raise BadRule(fault.reason, index) from fault

    def _additions(
        self, drafts: Sequence[Draft], firsts: Sequence[Occurrence], call_key: str, most_per_owner: int
    ) -> list[Write]:
        now_ms, writes = self._clock.now_ms(), list[Write]()
        for place, (draft, first) in enumerate(zip(drafts, firsts, strict=True)):
            timer_id, made = self._ids.next(), {"created_ms": now_ms, "changed_ms": now_ms}
            key = {"id": timer_id, "call_key": call_key, "place": place}
            writes.append(timers.add(most_per_owner=most_per_owner, **key, **made, **draft_values(draft)))
            writes.append(self._moment(timer_id, occurrence_text(draft.rule, first), ms_of(first.at), snoozed=False))
        return writes

    async def _refuse_too_many(self, drafts: Sequence[Draft], most: int) -> None:
        asked = Counter((draft.owner.key, draft.kind.value) for draft in drafts)
        for (owner, kind), count in asked.items():
            (row,) = await self._store.read(timers.count(owner, kind))
            if row["count"] + count > most:
                raise TooMany(most)

    async def _changed(self, timer: Timer, marker: str, writes: _Writes) -> Timer:
        """Commit a change and return the timer; `writes` returns the change of a row, and its new due time. A repeated
        call changes nothing. Raises NoSuchTimer, and Conflict after five attempts."""
        for _ in range(_ATTEMPTS):  # the row may change between reading and writing
            row = next(iter(await self._store.read(timers.of_id(timer.id))), None)
            if row is None or row["state"] == TimerState.REMOVED:
                raise NoSuchTimer(timer)
            if row["changed_by"] == marker:
                return timer_of(row)
            unit, due_ms = await writes(row, marker)
            try:
                await self._store.commit(unit)
            except Conflict:
                continue
            if due_ms is not None:
                self.expect(due_ms)
            (row,) = await self._store.read(timers.of_id(timer.id))
            return timer_of(row)
        raise Conflict(f"timer {timer.id} was changed {_ATTEMPTS} times in a row")

    def _change(self, row: Row, marker: str, **values: Any) -> Write:
        return timers.change(row, changed_by=marker, now_ms=self._clock.now_ms(), **values)

    async def _next(self, timer_id: int, rule: Rule, zone_name: str, done: int) -> tuple[Write, int]:
        """The rule's next occurrence that is not over, and its due time. Raises BadRule if no occurrence is left."""
        zone, now = ZoneInfo(zone_name), self._clock.now()
        found: Occurrence | None = check(rule, zone, now)
        over = {row["wall"] for row in await self._store.read(occurrences.over_since(timer_id, ms_of(now)))}
        if found is not None and isinstance(rule.when, Once) and occurrence_text(rule, found) in over:
            # The same wall time is over in another zone, but this is another time.
            return self._moment(timer_id, instant_text(found.at), ms_of(found.at), snoozed=False), ms_of(found.at)
        while found is not None and occurrence_text(rule, found) in over:
            found = next_after(rule, zone, found.at)
        if found is None or (rule.count is not None and done >= rule.count):
            raise BadRule(RuleProblem.NEVER)
        due_ms = ms_of(found.at)
        return self._moment(timer_id, occurrence_text(rule, found), due_ms, snoozed=False), due_ms

    def _moment(self, timer_id: int, wall: str, due_ms: int, *, snoozed: bool) -> Write:
        return occurrences.add(id=self._ids.next(), timer_id=timer_id, wall=wall, due_ms=due_ms, snoozed=snoozed)

    def expect(self, due_ms: int) -> None:
        """Record that an occurrence with this due time was stored: lowers `soonest_ms` if it is sooner."""
        self.soonest_ms = _sooner(self.soonest_ms, due_ms)
        self._expected_ms = _sooner(self._expected_ms, due_ms)

    def begin_look(self) -> None:
        """Call before querying the due occurrences."""
        self._expected_ms = None

    def end_look(self, soonest_ms: int | None) -> None:
        """Set the next due time after the query; includes occurrences stored since `begin_look`."""
        self.soonest_ms = _sooner(self._expected_ms, soonest_ms)

    async def _timers(self, query: Query) -> list[Timer]:
        return [timer_of(row) for row in await self._store.read(query)]


def _sooner(one_ms: int | None, other_ms: int | None) -> int | None:
    if one_ms is None or other_ms is None:
        return other_ms if one_ms is None else one_ms
    return min(one_ms, other_ms)
