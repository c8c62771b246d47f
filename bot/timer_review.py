"""Goes through all that is to come: a moment keeps the time on the wall, whatever becomes of its zone's clocks; and
when this machine's clock was ahead and has returned, rules go on from where it is now."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import orjson
import structlog

from services.clock import Clock
from services.firing import Moment, next_moment
from services.recurrence import Every, Once, Rule, occurrence_of, rule_from_json, rule_to_json
from services.store import due, occurrences, timers
from services.store.port import Row, Store, Write
from services.timer import json_text, ms_of

_log = structlog.get_logger("timers")
_PAGE = 1000
_YIELD_SECONDS = 0.0002


class TimerReview:
    """Moves what stands at another instant than it is meant for."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._zones: dict[str, ZoneInfo | None] = {}

    async def run(self, *, turned_back: bool) -> int:
        """How many were moved. `turned_back`: the clock was ahead, so what its rules mean before the moments that are
        kept is to come as well, unless it has been."""
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
        """What brings the row to where it belongs; nothing nearly always."""
        zone = self._zone(row["zone"])
        if row["snoozed"] or zone is None:
            return []
        wall, due_ms = row["wall"], row["due_ms"]
        meant, writes = (
            Moment(wall, due_ms if wall.endswith("Z") else ms_of(occurrence_of(wall, zone).at)),
            list[Write](),
        )
        if turned_back:
            rule = rule_from_json(orjson.loads(row["rule"]))
            if isinstance(rule.when, Every) and meant.due_ms > ms_of(now) + rule.when.seconds * 1000:
                # Elapsed time goes on elapsing, whatever the clock shows.
                rule = replace(rule, when=replace(rule.when, since=now))
                writes.append(timers.count_anew(row["timer_id"], json_text(rule_to_json(rule))))
            meant = await self._sooner(row, rule, meant, zone, now)
        if meant != Moment(wall, due_ms):
            writes.append(occurrences.move(row["id"], meant.wall, meant.due_ms))
        return writes

    async def _sooner(self, row: Row, rule: Rule, kept: Moment, zone: ZoneInfo, now: datetime) -> Moment:
        """The next moment of the row's rule that has not been, where it comes before the one that is kept."""
        if isinstance(rule.when, Once):
            return kept
        found = next_moment(rule, zone, now, row["done"])
        if found is not None and found.due_ms < kept.due_ms:
            over = await self._store.read(occurrences.over_since(row["timer_id"], ms_of(now)))
            found = next_moment(rule, zone, now, row["done"], {one["wall"] for one in over})
        return found if found is not None and found.due_ms < kept.due_ms else kept

    def _zone(self, name: str) -> ZoneInfo | None:
        if name not in self._zones:
            try:
                self._zones[name] = ZoneInfo(name)
            except (ZoneInfoNotFoundError, ValueError):
                _log.error("unknown_zone", zone=name, hint="this machine has no such zone; install tzdata")
                self._zones[name] = None
        return self._zones[name]
