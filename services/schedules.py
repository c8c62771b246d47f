"""Schedules: the timers that run functions by the clock. Made by admins of a chat, by the settings, or by scripts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import structlog

from services.clock import Clock
from services.json_values import JsonObject
from services.recurrence import BadRule, check
from services.refs import ChatRef, MemberRef, ReasonCode
from services.schedule_times import When, WhenReader
from services.store import timer_outcomes, timers
from services.store.ids import Ids
from services.store.port import Conflict, Store
from services.timer import Draft, Timer, TimerKind, TimerState, timer_of
from services.timetable import NoSuchTimer, Timetable, TooMany

_log = structlog.get_logger("schedules")
OPERATORS_PLATFORM = "schedules"
"""Members on it are no people: they stand for entries of the settings. No network has this name."""
SCRIPTS = "scripts"
"""The origin of those that scripts set. They are no operator's: an admin may remove one, and the script sets it again
when it runs for an admin."""
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
_SAYS_NOTHING = frozenset({ReasonCode.STOPPED, ReasonCode.FILTERED, ReasonCode.CHAT_OFF, ReasonCode.CHAT_NOT_ALLOWED})
"""Ends that show neither that it works nor that it does not."""
_LOOKED_AT = 500
_NEWEST = 2**62
_NO_LIMIT = 1_000_000
_FOR_LIFE = ("bot", "chat", "is_group", "owner", "function")


class ChatFull(Exception):
    """The chat has as many schedules as one may have: `most`."""

    def __init__(self, most: int) -> None:
        super().__init__(most)
        self.most = most


class MemberFull(Exception):
    """The member has as many in all chats as one may have: `most`."""

    def __init__(self, most: int) -> None:
        super().__init__(most)
        self.most = most


class NoSuchSchedule(LookupError):
    """There is no such number in the chat."""


class SetElsewhere(PermissionError):
    """It stands in the settings or in a script, `source`, and would come back from there."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.source = source


@dataclass(frozen=True, slots=True)
class Listed:
    """A schedule and how it goes."""

    timer: Timer
    last_at: datetime | None
    """When it ran the last time, as far back as the settings keep messages."""
    failing_since: datetime | None
    """When the first of the failures came that have followed one another until now."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A schedule as a file of somebody's says it."""

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
    """What was done so that what is kept is what a file says, by names."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    refused: dict[str, BadRule] = field(default_factory=dict)
    """What cannot be kept; what was kept under its name goes on."""
    failed: list[str] = field(default_factory=list)
    """What something unforeseen came between, as the log says; what was kept under its name goes on."""


class Schedules:
    """The schedules of all chats. Every change names the call that makes it; the same call again changes nothing."""

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
        """Reads when in words."""

    def use(self, most_per_chat: int) -> None:
        """From now on a chat may have so many; what there is stays."""
        self._most_per_chat = most_per_chat

    async def create(self, draft: Draft, *, call_key: str) -> Timer:
        """The schedule that `draft` describes, kept. Raises ChatFull, MemberFull and BadRule."""
        if not await self._timetable.added_by(call_key):
            await self._check_room(draft.chat, draft.private_to)
        try:
            [timer] = await self._timetable.add([draft], call_key=call_key, most_per_owner=self._most_per_member)
        except TooMany:
            raise MemberFull(self._most_per_member) from None
        return timer

    async def of_chat(self, chat: ChatRef, *, private_to: MemberRef | None = None) -> Sequence[Listed]:
        """All schedules of `chat` with how they go, the next one first. Those that only one member may see come only
        when `private_to` is that member."""
        found = await self._timetable.of_chat(chat, kind=TimerKind.SCHEDULE, private_to=private_to)
        return [await self._listed(timer) for timer in found]

    async def pause(self, chat: ChatRef, number: int, *, private_to: MemberRef | None, call_key: str) -> Timer:
        """Let it rest until it is resumed. Raises NoSuchSchedule."""
        return await self._timetable.pause(await self._find(chat, number, private_to), call_key=call_key)

    async def resume(self, chat: ChatRef, number: int, *, private_to: MemberRef | None, call_key: str) -> Timer:
        """Let it go on, from its next moment on. Raises NoSuchSchedule, and BadRule where there is none any more."""
        return await self._timetable.resume(await self._find(chat, number, private_to), call_key=call_key)

    async def remove(
        self, chat: ChatRef, number: int, *, by: MemberRef, private_to: MemberRef | None, call_key: str
    ) -> Timer:
        """Forget it; as it was. Raises NoSuchSchedule and SetElsewhere."""
        for removed in await self._timetable.removed_by(chat, call_key):
            return removed.timer
        timer = await self._find(chat, number, private_to)
        if timer.source and not is_of_a_script(timer.source):
            raise SetElsewhere(timer.source)
        await self._timetable.remove([timer], by=by, call_key=call_key)
        return timer

    async def of_id(self, timer_id: int) -> Timer | None:
        """The schedule of that id; None where it was removed, or is something else."""
        for row in await self._store.read(timers.of_id(timer_id)):
            timer = timer_of(row)
            if timer.kind is TimerKind.SCHEDULE and timer.state is not TimerState.REMOVED:
                return timer
        return None

    async def rest(self, timer: Timer, *, call_key: str) -> None:
        """Let it rest until somebody resumes it; nothing where it was removed meanwhile."""
        with suppress(NoSuchTimer):
            await self._timetable.pause(timer, call_key=call_key)

    async def failed_before(self, timer_id: int, turn_id: int) -> bool:
        """Whether the last run of that timer before that turn failed as well, as far as anybody knows."""
        return bool(self._streak(await self._runs(timer_id, turn_id)))

    async def reconcile(self, origin: str, wanted: Mapping[str, Wanted], *, unread: Collection[str] = ()) -> Reconciled:
        """Make what is kept from `origin` (`schedules`, say) be `wanted`, by names: what is new is added, what is not
        there any more is removed, what is otherwise is changed, and keeps its next moment where the time is the same.
        What was kept for a name in `unread`, which could not be understood, stays as it is. Whatever happens between,
        the next reconciliation ends the same."""
        kept = await self._declared(origin)
        done = Reconciled()
        for name, timer in kept.items():
            if name not in wanted and name not in unread:
                await self._forget(timer)
                done.removed.append(name)
        for name, one in wanted.items():
            try:
                await self._bring_about(_draft(f"{origin}.{name}", one), one.when, kept.get(name), name, done)
            except BadRule as error:
                done.refused[name] = error
            except (Conflict, LookupError, ValueError) as error:
                # One that cannot be had must not keep the others, or the whole daemon, from it.
                _log.error("schedule_not_in_step", setting=f"{origin}.{name}", exc_info=error)
                done.failed.append(name)
        return done

    async def declared(self, origin: str) -> Sequence[str]:
        """The names of what is kept from `origin`."""
        return list(await self._declared(origin))

    async def declare(self, origin: str, name: str, wanted: Wanted | None) -> Timer | None:
        """The same for one name alone, as a script that runs may ask: what is kept for it then. None takes it away.
        Raises ChatFull where it would be one more than a chat may have, and BadRule, and has changed nothing then."""
        kept = (await self._declared(origin)).get(name)
        if wanted is not None:
            if kept is None:
                await self._check_room(wanted.chat, None)
            await self._bring_about(_draft(f"{origin}.{name}", wanted), wanted.when, kept, name, Reconciled())
        elif kept is not None:
            await self._forget(kept)
        return (await self._declared(origin)).get(name)

    async def _check_room(self, chat: ChatRef, private_to: MemberRef | None) -> None:
        """Raises ChatFull. What stands in the settings takes no room: that is the operator's."""
        here = await self._timetable.of_chat(chat, kind=TimerKind.SCHEDULE, private_to=private_to)
        if sum(not timer.source or is_of_a_script(timer.source) for timer in here) >= self._most_per_chat:
            raise ChatFull(self._most_per_chat)

    async def _bring_about(self, draft: Draft, when: When, timer: Timer | None, name: str, done: Reconciled) -> None:
        """Raises BadRule, and has changed nothing then."""
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
        """What is kept from `origin`, what has ended too, by names."""
        declared = [timer for timer in await self._timetable.declared() if timer.kind is TimerKind.SCHEDULE]
        parts = [(timer, *timer.source.partition(".")) for timer in declared]
        return {name: timer for timer, at, _, name in parts if at == origin}

    async def _replace(self, timer: Timer, draft: Draft) -> None:
        """Another timer in the place of `timer`; paused where that was. Raises BadRule."""
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
        """Of a change that nobody's call makes: no two have the same."""
        return f"{source}@{self._ids.next()}"

    async def _find(self, chat: ChatRef, number: int, private_to: MemberRef | None) -> Timer:
        timer = await self._timetable.get(chat, number, TimerKind.SCHEDULE)
        is_hidden = timer is not None and timer.private_to not in (None, private_to)
        if timer is None or is_hidden or timer.state is TimerState.ENDED:
            raise NoSuchSchedule(number)
        return timer

    async def _listed(self, timer: Timer) -> Listed:
        runs = await self._runs(timer.id)
        failing = self._streak(runs)
        return Listed(timer, runs[0][1] if runs else None, failing[-1] if failing else None)

    async def _runs(self, timer_id: int, before_turn: int = _NEWEST) -> Sequence[tuple[ReasonCode, datetime]]:
        """How its runs ended and when they began, newest first."""
        rows = await self._store.read(timer_outcomes.latest(timer_id, before_turn=before_turn, count=_LOOKED_AT))
        return [(ReasonCode(row["reason"]), datetime.fromtimestamp(row["received_ms"] / 1000, UTC)) for row in rows]

    @staticmethod
    def _streak(runs: Sequence[tuple[ReasonCode, datetime]]) -> list[datetime]:
        """When the failures began that nothing which worked has followed, newest first."""
        failures: list[datetime] = []
        for reason, at in runs:
            if reason in _FAILURES:
                failures.append(at)
            elif reason not in _SAYS_NOTHING:
                break
        return failures


def is_of_a_script(source: str) -> bool:
    """Whether a script has set the timer with this source."""
    return source.startswith(f"{SCRIPTS}.")


def script_name(bot: str, script: str, function: str, chat: ChatRef) -> str:
    """The name under which is kept that `script` of `bot` lets `function` run in `chat`."""
    return f"{bot}/{script}/{function}@{chat.key}"


def script_of(name: str) -> tuple[str, str]:
    """The bot and the script of a name that `script_name` gave."""
    bot, script, _ = name.split("/", 2)
    return bot, script


def _draft(source: str, wanted: Wanted) -> Draft:
    return Draft(
        kind=TimerKind.SCHEDULE,
        bot=wanted.bot,
        chat=wanted.chat,
        is_group=wanted.is_group,
        private_to=None,
        owner=wanted.owner,
        owner_name=wanted.owner_name,
        members=(),
        function=wanted.function,
        arguments=wanted.arguments,
        title=wanted.title,
        rule=wanted.when.rule,
        zone=wanted.when.zone,
        source=source,
    )


def _is_another(timer: Timer, draft: Draft) -> bool:
    """Whether they differ in what a timer keeps for its whole life."""
    return any(getattr(timer, name) != getattr(draft, name) for name in _FOR_LIFE)
