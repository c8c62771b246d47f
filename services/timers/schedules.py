"""Schedules: timers that run functions. They are set by chat admins, the settings or scripts."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import structlog

from services.clock import Clock
from services.refs import ChatRef, ErrorCode, JsonObject, MemberRef, ReasonCode, RequestProblem
from services.store.ids import Ids
from services.store.port import Conflict, Store
from services.store.turns import occurrences
from services.timers.timer import Draft, Timer, TimerKind, TimerState
from services.timers.timetable import NoSuchTimer, Timetable, TooMany
from services.times import Reading, Times, UnclearTime
from services.times.recurrence import BadRule, Calendar, Every, Once, Rule, check

_NINE = time(9)
MOST_HEAD_WORDS = 14
"""Maximum number of words at the beginning of a line that are parsed as a time."""
_CRON = re.compile(r"[\d*/,\-]+(?:\s+[\dA-Za-z*/,\-#?]+){4}")
_CRON_HEAD = re.compile(rf"{_CRON.pattern}(?=\s|$)")
_SOME_OTHER_DAY = timedelta(days=401)
"""Leads to another year, month, day and weekday: a rule parsed equally then does not depend on the day."""
_SPACES = re.compile(r"\s+")
_BETWEEN = " ,，:：、\t\n"
"""Characters allowed between a time and the rest of the line."""


class UnclearWhen(RequestProblem):
    """Not a valid time rule. `why`: not_a_time, past, no_such, ambiguous, vague, several, moves, counted."""

    def __init__(self, why: str) -> None:
        super().__init__(f"schedules.when.{why}", ErrorCode.BAD_ARGUMENTS, fields=["when"])
        self.why = why


@dataclass(frozen=True, slots=True)
class When:
    """A time rule with its zone, as parsed from words, cron or fields."""

    rule: Rule
    zone: str
    """IANA name of the zone of the rule's wall times."""
    floats: bool = False
    """Its intervals count from the time of parsing, as in `every 90 minutes` or `every other day`."""

    def is_like(self, other: Rule, zone: str) -> bool:
        """Whether the rule `other` in `zone`, parsed at another time, is the same rule."""
        if zone != self.zone:
            return False
        return _without_start(other) == _without_start(self.rule) if self.floats else other == self.rule


def is_cron(text: str) -> bool:
    """Whether `text` has the form of a five-field cron expression."""
    return _CRON.fullmatch(text.strip()) is not None


def by_cron(text: str, zone: str) -> When:
    """A When from a five-field cron expression, not yet checked for whether it ever occurs."""
    return When(Rule(Calendar(" ".join(text.split()))), zone)


def every_seconds(seconds: int, now: datetime, zone: str) -> When:
    """A When by elapsed time, counted from `now` (aware)."""
    return When(Rule(Every(seconds, now.astimezone(UTC))), zone, floats=True)


def at_clock(clock: str, weekdays: tuple[int, ...], zone: str) -> When:
    """A When for `HH:MM` on these days of the week (1 is Monday, 7 is Sunday), or every day if empty."""
    hour, minute = (int(part) for part in clock.split(":"))
    days = ",".join(str(day) for day in sorted({day % 7 for day in weekdays})) or "*"
    return When(Rule(Calendar(f"{minute} {hour} * * {days}")), zone)


def once_at(wall: str, zone: str) -> When:
    """A When for `YYYY-MM-DD HH:MM` in `zone`, once, also if it has passed. Raises UnclearWhen for an invalid date."""
    day, _, clock = wall.replace("T", " ").partition(" ")
    try:
        return When(Rule(Once(datetime.fromisoformat(f"{day} {clock:0>5}"))), zone)
    except ValueError:
        raise UnclearWhen("no_such") from None


class WhenReader:
    """Parses times in words or cron expressions to a When."""

    def __init__(self, times: Times, usual_time: time = _NINE) -> None:
        """`usual_time`: the default time of day."""
        self._times = times
        self._usual_time = usual_time

    def parse_as_of(self, text: str, now: datetime, zone: str) -> When:
        """Parse `text`, words or a cron expression, as of `now` (aware) in `zone`. Raises UnclearWhen for other texts;
        a time may have passed."""
        if is_cron(text):
            return by_cron(text, zone)
        reading, here = self._reading(text, now, zone)
        return self._when(reading, here, zone)

    def parse_fixed(self, text: str, now: datetime, zone: str) -> When:
        """Parse `text` from a file, which is parsed repeatedly and must not depend on the day. Raises UnclearWhen, with
        `moves` or `counted` if it does."""
        if is_cron(text):
            return by_cron(text, zone)
        reading, here = self._reading(text, now, zone)
        if reading.problem is not None:
            raise UnclearWhen(reading.problem.value)
        later, there = self._reading(text, now + _SOME_OTHER_DAY, zone)
        if reading.repeats is None:
            if reading.moment(self._usual_time) != later.moment(self._usual_time):
                raise UnclearWhen("moves")
            return self._when(reading, here, zone)
        one, other = self._when(reading, here, zone), self._when(later, there, zone)
        if one.rule.count is not None:
            # It would be unknown whether the count has ended.
            raise UnclearWhen("counted")
        if one.rule == other.rule:
            return one
        floating = replace(one, floats=True)
        if not floating.is_like(other.rule, other.zone):
            raise UnclearWhen("moves")
        return floating

    def head(self, line: str, now: datetime, zone: str, may_follow: Callable[[str], bool]) -> tuple[When, str]:
        """The time at the beginning of `line`, and the rest: as many words as form a time, with a rest that
        `may_follow` accepts. Raises UnclearWhen if it begins with none."""
        line = line.strip()
        cron = _CRON_HEAD.match(line)
        if cron is not None:
            return by_cron(cron[0], zone), line[cron.end() :].strip()
        ends = self._head_ends(line, now.astimezone(ZoneInfo(zone)))
        if not ends:
            raise UnclearWhen("not_a_time")
        splits = [(line[:end], line[end:].strip(_BETWEEN)) for end in ends]
        head, rest = next((one for one in splits if may_follow(one[1])), splits[0])
        return self.parse_as_of(head, now, zone), rest

    def _head_ends(self, line: str, here: datetime) -> list[int]:
        """Possible ends of a time at the beginning of `line` as character offsets, longest first: after a word, or in a
        language without spaces after a recognised time."""
        ends = [gap.start() for gap in _SPACES.finditer(line)][: MOST_HEAD_WORDS - 1]
        ends += [len(line)] if len(ends) < MOST_HEAD_WORDS - 1 else []
        found = {end for end in ends if self._times.read(line[:end], here) is not None}
        found |= {one.end for one in self._times.find_all(line, here) if one.start == 0}
        return sorted(found, reverse=True)

    def _reading(self, text: str, now: datetime, zone: str) -> tuple[Reading, datetime]:
        here = now.astimezone(ZoneInfo(zone))
        reading = self._times.read(text, here)
        if reading is None:
            raise UnclearWhen("not_a_time")
        return reading, here

    def _when(self, reading: Reading, here: datetime, zone: str) -> When:
        try:
            rule = reading.rule(here, self._usual_time)
        except UnclearTime as error:
            raise UnclearWhen(error.problem.value) from None
        key = getattr(reading.zone, "key", None) if reading.zone is not None else zone
        if key is None:
            # An offset ("+02:00") without a named zone has no rules for clock changes.
            raise UnclearWhen("ambiguous")
        return When(rule, key)


def _without_start(rule: Rule) -> Rule:
    """`rule` without the start that its intervals count from."""
    when = rule.when
    if isinstance(when, Every):
        return replace(rule, when=replace(when, since=datetime(1970, 1, 1, tzinfo=UTC)))
    return replace(rule, when=replace(when, first=None)) if isinstance(when, Calendar) else rule


_log = structlog.get_logger("schedules")
OPERATORS_PLATFORM = "schedules"
"""Platform of pseudo-members for entries of the settings; no network has this name."""
SCRIPTS = "scripts"
"""Origin of schedules set by scripts. An admin may remove them, and the script sets them again when it runs for an
admin."""
_FAILURES = frozenset(
    {
        ReasonCode.USAGE,
        ReasonCode.REFUSED,
        ReasonCode.FUNCTION_FAILED,
        ReasonCode.UNKNOWN_OUTCOME,
        ReasonCode.OVER_BUDGET,
        ReasonCode.MODEL_FAILED,
        ReasonCode.MODEL_DOWN,
        ReasonCode.GAVE_UP,
    }
)
_NEUTRAL = frozenset({ReasonCode.STOPPED, ReasonCode.FILTERED, ReasonCode.CHAT_OFF, ReasonCode.CHAT_NOT_ALLOWED})
"""Outcomes that neither continue nor end a series of failures."""
_LOOKED_AT = 500
_NEWEST = 2**62
_NO_LIMIT = 1_000_000
_IMMUTABLE = ("bot", "chat", "is_group", "owner", "function")


@dataclass(frozen=True, slots=True)
class Listed:
    """A schedule and the state of its runs."""

    timer: Timer
    last_at: datetime | None
    """Its last run, as long as the settings keep messages."""
    failing_since: datetime | None
    """The first of the failures that have continued until now."""


@dataclass(frozen=True, slots=True)
class DeclaredSchedule:
    """A schedule as declared in a file."""

    bot: str
    chat: ChatRef
    is_group: bool
    owner: MemberRef
    owner_name: str
    function: str
    arguments: JsonObject
    title: str
    when: When


@dataclass(slots=True)
class Reconciled:
    """Result of a reconciliation: names of added, changed, removed, refused and failed schedules."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    refused: dict[str, BadRule] = field(default_factory=dict)
    """Rejected declarations; their existing schedules continue."""
    failed: list[str] = field(default_factory=list)
    """Declarations with unexpected errors, which are logged; their existing schedules continue."""


class Schedules:
    """The schedules of all chats. Every change has the key of its call; a repeated call changes nothing."""

    def __init__(
        self,
        timetable: Timetable,
        reader: WhenReader,
        store: Store,
        clock: Clock,
        ids: Ids,
        most_per_chat: int,
        most_per_member: int,
    ) -> None:
        self._timetable = timetable
        self._store = store
        self._clock = clock
        self._most_per_chat = most_per_chat
        self._most_per_member = most_per_member
        self._ids = ids
        self.reader = reader
        """Parses times in words."""

    def use(self, most_per_chat: int) -> None:
        """Set the maximum per chat; existing schedules are not affected."""
        self._most_per_chat = most_per_chat

    async def create(self, draft: Draft, *, call_key: str) -> Timer:
        """Store the schedule that `draft` describes. Raises RequestProblem if the chat or the member has too many, and
        BadRule for a rule that never occurs."""
        if not await self._timetable.added_by(call_key):
            await self._check_room(draft.chat, draft.private_to)
        try:
            [timer] = await self._timetable.add([draft], call_key=call_key, most_per_owner=self._most_per_member)
        except TooMany:
            raise RequestProblem("schedules.full_of_yours", most=self._most_per_member) from None
        return timer

    async def of_chat(self, chat: ChatRef, *, private_to: MemberRef | None = None) -> Sequence[Listed]:
        """All schedules of `chat` with the state of their runs, soonest first. Private ones are included only for
        `private_to`."""
        found = await self._timetable.of_chat(chat, kind=TimerKind.SCHEDULE, private_to=private_to)
        return [await self._listed(timer) for timer in found]

    async def pause(self, chat: ChatRef, number: int, *, private_to: MemberRef | None, call_key: str) -> Timer:
        """Pause the schedule with that number until it is resumed, and return it. Raises RequestProblem without one."""
        return await self._timetable.pause(await self._find(chat, number, private_to), call_key=call_key)

    async def resume(self, chat: ChatRef, number: int, *, private_to: MemberRef | None, call_key: str) -> Timer:
        """Resume the schedule with that number, with its next occurrence, and return it. Raises RequestProblem without
        one, and BadRule if no occurrence is left."""
        return await self._timetable.resume(await self._find(chat, number, private_to), call_key=call_key)

    async def remove(
        self, chat: ChatRef, number: int, *, by: MemberRef, private_to: MemberRef | None, call_key: str
    ) -> Timer:
        """Remove the schedule with that number; returns its previous state. Raises RequestProblem without one, and
        for a schedule of the settings, which would be set again from there."""
        for removed in await self._timetable.removed_by(chat, call_key):
            return removed.timer
        timer = await self._find(chat, number, private_to)
        if timer.source and not is_of_a_script(timer.source):
            raise RequestProblem("schedules.set_elsewhere", number=number, source=timer.source)
        await self._timetable.remove([timer], by=by, call_key=call_key)
        return timer

    async def of_id(self, timer_id: int) -> Timer | None:
        """The schedule with that id; None if it was removed or is another kind of timer."""
        timer = await self._timetable.of_id(timer_id)
        return timer if timer is not None and timer.kind is TimerKind.SCHEDULE else None

    async def pause_if_exists(self, timer: Timer, *, call_key: str) -> None:
        """Pause `timer` until somebody resumes it; does nothing if it was removed meanwhile."""
        with suppress(NoSuchTimer):
            await self._timetable.pause(timer, call_key=call_key)

    async def failed_before(self, timer_id: int, turn_id: int) -> bool:
        """Whether the timer's last known run before that turn failed, too; runs that were stopped or filtered do not
        count."""
        return bool(self._streak(await self._runs(timer_id, turn_id)))

    async def reconcile(
        self, origin: str, declared: Mapping[str, DeclaredSchedule], *, unread: Collection[str] = ()
    ) -> Reconciled:
        """Make the schedules of `origin` (such as `schedules`) equal to `declared`, by names: add new ones, remove
        missing ones, and change the others, keeping the next occurrence if the time is the same. Names in `unread`,
        whose declarations could not be parsed, are not changed. An interrupted reconciliation can be repeated."""
        existing = await self._declared(origin)
        done = Reconciled()
        for name, timer in existing.items():
            if name not in declared and name not in unread:
                await self._forget(timer)
                done.removed.append(name)
        for name, one in declared.items():
            try:
                await self._retry_commit(_draft(f"{origin}.{name}", one), one.when, existing.get(name), name, done)
            except BadRule as error:
                done.refused[name] = error
            except (Conflict, LookupError, ValueError) as error:
                # One failing schedule must not prevent the others or the daemon's start.
                _log.error("schedule_not_in_step", setting=f"{origin}.{name}", exc_info=error)
                done.failed.append(name)
        return done

    async def declared(self, origin: str) -> Sequence[str]:
        """The names of all schedules of `origin`, including ended ones."""
        return list(await self._declared(origin))

    async def declare(self, origin: str, name: str, schedule: DeclaredSchedule | None) -> Timer | None:
        """Reconcile a single name, for a running script; returns its schedule. None as `schedule` removes it. Raises
        RequestProblem if the chat would have too many, and BadRule; then nothing is changed."""
        existing = (await self._declared(origin)).get(name)
        if schedule is not None:
            if existing is None:
                await self._check_room(schedule.chat, None)
            await self._retry_commit(_draft(f"{origin}.{name}", schedule), schedule.when, existing, name, Reconciled())
        elif existing is not None:
            await self._forget(existing)
        return (await self._declared(origin)).get(name)

    async def _check_room(self, chat: ChatRef, private_to: MemberRef | None) -> None:
        """Raises RequestProblem if the chat has the maximum number of schedules. Schedules in the settings do not
        count: they are the operator's."""
        here = await self._timetable.of_chat(chat, kind=TimerKind.SCHEDULE, private_to=private_to)
        if sum(not timer.source or is_of_a_script(timer.source) for timer in here) >= self._most_per_chat:
            raise RequestProblem("schedules.full", most=self._most_per_chat)

    async def _retry_commit(self, draft: Draft, when: When, timer: Timer | None, name: str, done: Reconciled) -> None:
        """Add the schedule `name`, or change or replace `timer` if it differs; record it in `done`. Raises BadRule,
        without a change."""
        if timer is None:
            await self._add(draft)
            done.added.append(name)
            return
        same_time = when.is_like(timer.rule, timer.zone)
        same_run = (timer.title, timer.arguments) == (draft.title, draft.arguments)
        if _is_another(timer, draft):
            await self._replace(timer, replace(draft, rule=timer.rule) if same_time else draft)
            done.changed.append(name)
        elif not (same_time and same_run):
            await self._timetable.change(
                timer,
                call_key=self._key(draft.source),
                title=draft.title,
                arguments=draft.arguments,
                rule=None if same_time else draft.rule,
                zone=None if same_time else draft.zone,
            )
            done.changed.append(name)

    async def _declared(self, origin: str) -> dict[str, Timer]:
        """Schedules of `origin` by names, including ended ones."""
        declared = [timer for timer in await self._timetable.declared() if timer.kind is TimerKind.SCHEDULE]
        parts = [(timer, *timer.source.partition(".")) for timer in declared]
        return {name: timer for timer, at, _, name in parts if at == origin}

    async def _replace(self, timer: Timer, draft: Draft) -> None:
        """Remove `timer` and add another one for `draft`, paused if it was. Raises BadRule."""
        check(draft.rule, ZoneInfo(draft.zone), self._clock.now())
        await self._forget(timer)
        added = await self._add(draft)
        if timer.state is TimerState.PAUSED:
            await self._timetable.pause(added, call_key=self._key(draft.source))

    async def _add(self, draft: Draft) -> Timer:
        key = self._key(draft.source)
        [timer] = await self._timetable.add([draft], call_key=key, most_per_owner=_NO_LIMIT)
        return timer

    async def _forget(self, timer: Timer) -> None:
        await self._timetable.remove([timer], by=timer.owner, call_key=self._key(timer.source))

    def _key(self, source: str) -> str:
        """A unique call key for a change without a call."""
        return f"{source}@{self._ids.next()}"

    async def _find(self, chat: ChatRef, number: int, private_to: MemberRef | None) -> Timer:
        timer = await self._timetable.get(chat, number, TimerKind.SCHEDULE)
        is_hidden = timer is not None and timer.private_to not in (None, private_to)
        if timer is None or is_hidden or timer.state is TimerState.ENDED:
            raise RequestProblem("schedules.no_such", ErrorCode.NOT_FOUND, fields=["number"], number=number)
        return timer

    async def _listed(self, timer: Timer) -> Listed:
        runs = await self._runs(timer.id)
        failing = self._streak(runs)
        return Listed(timer, runs[0][1] if runs else None, failing[-1] if failing else None)

    async def _runs(self, timer_id: int, before_turn: int = _NEWEST) -> Sequence[tuple[ReasonCode, datetime]]:
        """Outcomes and start times of its runs, newest first."""
        rows = await self._store.read(occurrences.latest(timer_id, before_turn=before_turn, count=_LOOKED_AT))
        return [(ReasonCode(row["reason"]), datetime.fromtimestamp(row["received_ms"] / 1000, UTC)) for row in rows]

    @staticmethod
    def _streak(runs: Sequence[tuple[ReasonCode, datetime]]) -> list[datetime]:
        """Start times of the failures since the last success, newest first."""
        failures: list[datetime] = []
        for reason, at in runs:
            if reason in _FAILURES:
                failures.append(at)
            elif reason not in _NEUTRAL:
                break
        return failures


def is_of_a_script(source: str) -> bool:
    """Whether the timer with this source was set by a script."""
    return source.startswith(f"{SCRIPTS}.")


def script_name(bot: str, script: str, function: str, chat: ChatRef) -> str:
    """Name of the schedule that runs `function` in `chat` for `script` of `bot`."""
    return f"{bot}/{script}/{function}@{chat.key}"


def script_of(name: str) -> tuple[str, str]:
    """The bot and the script in a name made by `script_name`."""
    bot, script, _ = name.split("/", 2)
    return bot, script


def _draft(source: str, schedule: DeclaredSchedule) -> Draft:
    return Draft(
        kind=TimerKind.SCHEDULE,
        bot=schedule.bot,
        chat=schedule.chat,
        is_group=schedule.is_group,
        private_to=None,
        owner=schedule.owner,
        owner_name=schedule.owner_name,
        members=(),
        function=schedule.function,
        arguments=schedule.arguments,
        title=schedule.title,
        rule=schedule.when.rule,
        zone=schedule.when.zone,
        source=source,
    )


def _is_another(timer: Timer, draft: Draft) -> bool:
    """Whether they differ in a column that a change cannot update."""
    return any(getattr(timer, name) != getattr(draft, name) for name in _IMMUTABLE)
