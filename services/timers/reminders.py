"""Reminders: timers that send a text. Ownership, selection by number or words, and texts in the owner's time zone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

from config.sections.timers import RemindersSettings
from config.texts import Phrases
from services.chats.members import KnownMember, MemberZones
from services.clock import Clock
from services.patterns import lazy_pattern
from services.refs import ChatRef, ErrorCode, JsonObject, MemberRef, RequestProblem, Role
from services.timers.timer import Draft, Timer, TimerKind, TimerState
from services.timers.timetable import Removed, Timetable
from services.times import Kind, TimeProblem, Times
from services.times.recurrence import BadRule, Occurrence, Once, RuleProblem, check
from services.times.reminder_lines import read_line
from services.times.requested_times import ParsedTime, RequestedTime, TimeNotUnderstood, is_once, to_rule
from services.times.time_formatting import clock, distance, in_words, moment


@dataclass(frozen=True, slots=True)
class Requester:
    """The member who makes a request, in which chat, when, and with which role."""

    chat: ChatRef
    is_group: bool
    is_private: bool
    """Whether only the bot can read the request: in a private chat, or as a private message in a group."""
    bot: str
    member: MemberRef
    name: str
    role: Role
    home: ZoneInfo
    """The chat's zone, for members who have set none."""
    asked_at: datetime | None = None
    """Time of the request, if a question delayed it; None: now."""

    @property
    def private_to(self) -> MemberRef | None:
        """The only member who may see the reminder, if it was requested privately in a group; else None."""
        return self.member if self.is_group and self.is_private else None


@dataclass(frozen=True, slots=True)
class ReminderRequest:
    """A requested reminder: its text, and its unparsed time."""

    text: str
    time: RequestedTime


@dataclass(frozen=True, slots=True)
class Plan:
    """A reminder to be created: its recipients, and its parsed time."""

    request: ReminderRequest
    members: tuple[KnownMember, ...]
    """Empty: everybody in the chat."""
    time: ParsedTime
    first: Occurrence

    def is_for_alone(self, member: MemberRef) -> bool:
        """Whether `member` is the only recipient."""
        return [one.ref for one in self.members] == [member]

    @property
    def zone(self) -> ZoneInfo:
        """The zone of its wall times."""
        return ZoneInfo(self.time.zone)

    @property
    def moved_to(self) -> datetime | None:
        """The naive wall time that replaces the first one if a clock change skips it, else None."""
        shown = self.first.at.astimezone(self.zone).replace(tzinfo=None, microsecond=0, fold=0)
        return shown if shown != self.first.wall.replace(fold=0, microsecond=0) else None

    @property
    def comes_twice(self) -> bool:
        """Whether a clock change repeats its first wall time; the earlier one is used."""
        wall = self.first.wall.replace(tzinfo=self.zone)
        is_ambiguous = wall.utcoffset() != wall.replace(fold=1 - wall.fold).utcoffset() and self.moved_to is None
        return is_ambiguous and isinstance(self.time.rule.when, Once)


_A_NUMBER = r"(?:#|no\.?|number|reminders?|第)?\s*#?\s*\d{1,9}\s*(?:号|条|个|项)?"
_BETWEEN = r"(?:\s*(?:,|，|、|&|\+|\band\b|和|跟|与)\s*|\s+)"
_NUMBERS = lazy_pattern(rf"\s*{_A_NUMBER}(?:{_BETWEEN}{_A_NUMBER})*\s*", re.IGNORECASE)
_ALL = frozenset(
    """all|all of them|all of mine|all mine|everything|every one|all reminders|all my reminders|my reminders
    |all of my reminders|全部|所有|全部提醒|所有提醒|我的全部提醒|我的所有提醒|全都""".replace("\n", "")
    .replace("  ", "")
    .split("|")
)
_NOISE = lazy_pattern(
    r"^(?:(?:the|my|that|a|our)\s+)+|^(?:reminders?|one)\s+(?:(?:about|for|to|of)\s+)?"
    r"|\s+(?:one|reminders?|thing)$|^(?:关于|那个|那条|我的|这个|这条)|(?:的?提醒|那个|那条|的)$",
    re.IGNORECASE,
)
_EDGES = " \t\"'“”「」.。!！"


class NoSuchReminder(RequestProblem):
    """No reminder matches, or the asker may not see it."""

    def __init__(self, which: str) -> None:
        key = "reminders.not_found" if which.isdigit() else "reminders.none_like"
        super().__init__(key, ErrorCode.NOT_FOUND, fields=["which"], which=which, words=which)


class SeveralReminders(LookupError):
    """More than one reminder matches: `candidates`."""

    def __init__(self, candidates: Sequence[Timer]) -> None:
        super().__init__(len(candidates))
        self.candidates = tuple(candidates)


def means_all(which: str) -> bool:
    """Whether `which` selects all reminders, such as `all` or `全部`."""
    return " ".join(which.split()).strip(_EDGES).casefold() in _ALL


def numbers_in(which: str) -> list[int]:
    """The different numbers listed in `which`, such as `3, #5 and 7`, in order; empty if it contains anything else."""
    if not _NUMBERS.fullmatch(which):
        return []
    return list(dict.fromkeys(int(digits) for digits in re.findall(r"\d+", which)))


def described(timers: Sequence[Timer], words: str) -> Timer:
    """The reminder that `words` describe: by the whole title, else a part of it, else all words in any order. Raises
    NoSuchReminder, and SeveralReminders if the best kind of match is not unique."""
    wanted = _bare(words)
    if not wanted:
        raise NoSuchReminder(words)
    titles = [(timer, " ".join(timer.title.split()).casefold()) for timer in timers]
    found = [timer for timer, title in titles if title == wanted]
    found = found or [timer for timer, title in titles if wanted in title]
    found = found or [timer for timer, title in titles if all(word in title for word in wanted.split())]
    if not found:
        raise NoSuchReminder(words)
    if len(found) > 1:
        raise SeveralReminders(found)
    return found[0]


def only(timers: Sequence[Timer]) -> Timer:
    """The only timer in a list that is not empty. Raises SeveralReminders for more."""
    if len(timers) > 1:
        raise SeveralReminders(timers)
    return timers[0]


def _bare(words: str) -> str:
    """`words` case-folded, without filler words: `the dentist one` is `dentist`."""
    bare = " ".join(words.split()).strip(_EDGES).casefold()
    while (shorter := _NOISE.sub("", bare).strip(_EDGES)) != bare and shorter:
        bare = shorter
    return bare


FUNCTION = "remind"
"""Name of the function that a due reminder runs."""
_UNTIL = re.compile(r"^(?:for|until|till|by|到|推迟)\s*", re.IGNORECASE)
_NUMBER_FIRST = re.compile(r"#?(\d{1,9})(?:号|条)?(?:\s+(.+))?")


class Reminders:
    """Reminders of all chats: creation, selection, changes and removal for a Requester."""

    def __init__(
        self, timetable: Timetable, zones: MemberZones, times: Times, settings: RemindersSettings, clock: Clock
    ) -> None:
        self._timetable = timetable
        self._zones = zones
        self._clock = clock
        self.times = times
        self.most_per_member = settings.most_per_member
        self.default_time = time.fromisoformat(settings.default_time)
        self.snooze_for = timedelta(minutes=settings.snooze_minutes)

    def now(self) -> datetime:
        """The current time in UTC."""
        return self._clock.now()

    async def zone_of(self, member: MemberRef, home: ZoneInfo) -> ZoneInfo:
        """The member's own zone, else `home`."""
        own = await self._zones.of(member)
        return home if own is None else ZoneInfo(own)

    async def set_zone(self, member: MemberRef, zone: str) -> None:
        """Set the member's own zone, an IANA name."""
        await self._zones.set(member, zone)

    async def needs_zone(self, asker: Requester, time: RequestedTime) -> bool:
        """Whether `time` depends on the asker's zone, and nobody has said which that is. False for relative times,
        times that name their zone, and those that are not understood."""
        if await self._zones.is_known(asker.member):
            return False
        reading = self.times.read(time.words.strip(), await self.now_of(asker)) if time.words.strip() else None
        if reading is None:
            return bool(time.at.strip() or time.cron.strip())
        is_elapsed = reading.repeats is not None and reading.repeats.unit is None and reading.repeats.window is None
        return reading.problem is None and reading.zone is None and reading.length is None and not is_elapsed

    async def now_of(self, asker: Requester) -> datetime:
        """Time of the request in the asker's zone; aware."""
        return self._asked_at(asker).astimezone(await self.zone_of(asker.member, asker.home))

    async def plans(self, asker: Requester, request: ReminderRequest, members: Sequence[KnownMember]) -> list[Plan]:
        """Plans of `request` for `members`, or for everybody in the chat if empty. A time of day for members in several
        zones becomes a reminder for each zone. Nothing is stored. Raises TimeNotUnderstood and BadRule."""
        if not members:
            return [self._plan(asker, request, (), asker.home)]
        by_zone: dict[str, list[KnownMember]] = {}
        for member in members:
            zone = await self.zone_of(member.ref, asker.home)
            by_zone.setdefault(str(zone), []).append(member)
        plans = [self._plan(asker, request, together, ZoneInfo(zone)) for zone, together in by_zone.items()]
        same = {plan.first.at for plan in plans}
        if len(same) == 1 and all(isinstance(plan.time.rule.when, Once) for plan in plans):
            return [replace(plans[0], members=tuple(members))]
        return plans

    async def create(self, asker: Requester, plans: Sequence[Plan], *, call_key: str) -> list[Timer]:
        """Create reminders for all of `plans`, or none; a repeated call returns those of the first. Raises TooMany if
        the asker would have more than `most_per_member`, and BadRule with the index of the plan."""
        drafts = [
            Draft(
                kind=TimerKind.REMINDER,
                bot=asker.bot,
                chat=asker.chat,
                is_group=asker.is_group,
                private_to=asker.private_to if plan.is_for_alone(asker.member) else None,
                owner=asker.member,
                owner_name=asker.name,
                members=tuple((one.ref, one.name) for one in plan.members),
                function=FUNCTION,
                arguments=_arguments(plan.request.text),
                title=plan.request.text,
                rule=plan.time.rule,
                zone=plan.time.zone,
            )
            for plan in plans
        ]
        return await self._timetable.add(drafts, call_key=call_key, most_per_owner=self.most_per_member)

    async def added_by(self, *call_keys: str) -> list[Timer]:
        """Reminders created by these calls, for a repeated call; empty for a first call."""
        return [timer for key in call_keys for timer in await self._timetable.added_by(key)]

    async def removed_by(self, chat: ChatRef, *call_keys: str) -> list[Removed]:
        """Reminders of the chat removed by these calls, for a repeated call; empty for a first call."""
        return [one for key in call_keys for one in await self._timetable.removed_by(chat, key)]

    async def of_id(self, timer_id: int) -> Timer | None:
        """The timer with that id; None if it was removed or deleted."""
        return await self._timetable.of_id(timer_id)

    async def of(self, asker: Requester) -> list[Timer]:
        """The asker's reminders in this chat and those for everybody, soonest first."""
        timers = await self._timetable.of_chat(
            asker.chat, kind=TimerKind.REMINDER, private_to=asker.member if asker.is_private else None
        )
        return [timer for timer in timers if concerns(timer, asker.member)]

    async def select(self, asker: Requester, which: str) -> list[Timer]:
        """The reminders that `which` selects by number or by words of the text. Never empty. Raises NoSuchReminder,
        and SeveralReminders."""
        numbers = numbers_in(which)
        if not numbers:
            return [described(await self.of(asker), which)]
        return [await self._numbered(asker, number) for number in numbers]

    async def change(
        self, asker: Requester, timer: Timer, text: str, time: RequestedTime, *, call_key: str
    ) -> tuple[Timer, Plan | None]:
        """Change the text, the time, or both; empty values are not changed. Returns the timer, and the plan of the new
        time (None if it is not changed). Raises TimeNotUnderstood and BadRule, and RequestProblem for a reminder of
        another member."""
        require_mine(timer, asker)
        plan = None
        if not time.is_empty:
            zone = ZoneInfo(timer.zone)
            members = tuple(KnownMember(ref, name) for ref, name in timer.members)
            plan = self._plan(
                asker, ReminderRequest(text or timer.title, time), members, zone, self._day_of(timer, time, zone)
            )
        changed = await self._timetable.change(
            timer,
            call_key=call_key,
            title=text or None,
            arguments=_arguments(text) if text else None,
            rule=plan.time.rule if plan else None,
            zone=plan.time.zone if plan else None,
        )
        return changed, plan

    async def finish(self, asker: Requester, timer: Timer, *, call_key: str) -> None:
        """Drop the snoozed occurrence, if there is one; a recurring reminder continues."""
        if timer.snoozed_until is not None:
            await self._timetable.drop_snoozed(timer, call_key=call_key)

    async def selected_or_last(self, asker: Requester, which: str, line: str) -> tuple[Timer | None, str]:
        """The reminder that `which` selects, else the one at the beginning of a line such as `3 10 minutes`, else the
        last one sent to the asker (None if there was none); and the rest of the line: the time. Raises NoSuchReminder,
        SeveralReminders, and RequestProblem if it does not concern the asker."""
        if not which.strip():
            which, line = await self._split_line(asker, line)
        timer = await self._selected(asker, which)
        if timer is not None and not (concerns(timer, asker.member) and timer.members):
            require_mine(timer, asker)
        return timer, line

    async def snooze(self, asker: Requester, timer: Timer, words: str, *, call_key: str) -> Timer:
        """Snooze it until the time in `words`, or for the default duration; its rule does not change. Raises
        TimeNotUnderstood, BadRule, and RequestProblem for more than a single time."""
        if not words:
            return await self._timetable.snooze(timer, self.now() + self.snooze_for, call_key=call_key)
        now = await self.now_of(asker)
        time = to_rule(RequestedTime(words), self.times, now, self.default_time)
        if not is_once(time.rule):
            raise RequestProblem("reminders.snooze_once", ErrorCode.BAD_ARGUMENTS, fields=["when"], said=words)
        return await self._timetable.snooze(timer, self._first(time, words).at, call_key=call_key)

    async def remove(self, asker: Requester, timers: Sequence[Timer], *, call_key: str) -> list[Removed]:
        """Remove all of `timers`, or none. Raises RequestProblem, before any is removed, for one of another member."""
        for timer in timers:
            require_mine(timer, asker)
        return await self._timetable.remove(timers, by=asker.member, call_key=call_key)

    def _asked_at(self, asker: Requester) -> datetime:
        """Time of the request in UTC; never in the future, even if a network's clock is ahead."""
        return self.now() if asker.asked_at is None else min(asker.asked_at, self.now())

    def _day_of(self, timer: Timer, time: RequestedTime, zone: ZoneInfo) -> datetime | None:
        """The day of `timer`, if the new `time` is only a time of day: then the day does not change. One second before
        its midnight; None otherwise."""
        if not isinstance(timer.rule.when, Once) or time.has_dates:
            return None
        day = timer.rule.when.wall.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=zone)
        reading = self.times.read(time.words.strip(), day)
        return day - timedelta(seconds=1) if reading is not None and reading.kind is Kind.TIME_OF_DAY else None

    def _plan(
        self,
        asker: Requester,
        request: ReminderRequest,
        members: Sequence[KnownMember],
        zone: ZoneInfo,
        earliest: datetime | None = None,
    ) -> Plan:
        """Plan with the parsed time and its first occurrence. `earliest`: the time is parsed relative to it, if it is
        still to come. Raises TimeNotUnderstood and BadRule."""
        asked_at = self._asked_at(asker).astimezone(zone)
        as_of = asked_at if earliest is None or earliest < asked_at else earliest
        time = to_rule(request.time, self.times, as_of, self.default_time)
        return Plan(request, tuple(members), time, self._first(time, request.time.words or request.time.at))

    def _first(self, time: ParsedTime, words: str) -> Occurrence:
        """The first occurrence. Raises BadRule, or TimeNotUnderstood if the single time in `words` has passed."""
        zone = ZoneInfo(time.zone)
        try:
            return check(time.rule, zone, self.now())
        except BadRule as problem:
            if problem.reason is not RuleProblem.PAST or not isinstance(time.rule.when, Once):
                raise
            raise TimeNotUnderstood(words, TimeProblem.PAST, time.rule.when.wall.replace(tzinfo=zone)) from None

    async def _recently_sent(self, asker: Requester) -> list[Timer]:
        """Reminders of the asker that were sent recently, latest first; including ended ones."""
        timers = await self._timetable.recently_sent(asker.chat, TimerKind.REMINDER)
        return [timer for timer in timers if may_see(timer, asker) and concerns(timer, asker.member)]

    async def _selected(self, asker: Requester, which: str) -> Timer | None:
        """The reminder selected by `which`, or if empty the last one sent; None if there was none. Raises
        NoSuchReminder and SeveralReminders."""
        lately = await self._recently_sent(asker)
        if not which.strip():
            return lately[0] if lately else None
        if numbers_in(which):
            return only(await self.select(asker, which))
        known = {timer.id: timer for timer in [*lately, *await self.of(asker)]}
        return described(list(known.values()), which)

    async def _split_line(self, asker: Requester, line: str) -> tuple[str, str]:
        """The reminder and the time in a line; each is empty if missing."""
        line, now = _UNTIL.sub("", line.strip()), await self.now_of(asker)
        numbered, whole = _NUMBER_FIRST.fullmatch(line), self.times.read(line, now) if line else None
        if numbered:
            number, until = numbered[1], _UNTIL.sub("", (numbered[2] or "").strip())
            if line.startswith("#") or ((not until or self.times.read(until, now)) and await self._has(asker, number)):
                return number, until
            if not until:
                return "", f"{number} minutes"
            if whole is not None and whole.problem is TimeProblem.AMBIGUOUS and self.times.read(until, now):
                return number, until
        if not line or whole is not None:
            return "", line
        parts = read_line(line, now, self.times)
        return (parts.text, parts.when) if parts.when else ("", line)

    async def _has(self, asker: Requester, number: str) -> bool:
        timer = await self._timetable.get(asker.chat, int(number), TimerKind.REMINDER)
        return timer is not None and may_see(timer, asker) and concerns(timer, asker.member)

    async def _numbered(self, asker: Requester, number: int) -> Timer:
        timer = await self._timetable.get(asker.chat, number, TimerKind.REMINDER)
        if timer is None or not may_see(timer, asker):
            raise NoSuchReminder(str(number))
        return timer


def concerns(timer: Timer, member: MemberRef) -> bool:
    """Whether the member owns `timer` or is a recipient; True if it is for everybody."""
    return not timer.members or timer.concerns(member)


def require_mine(timer: Timer, asker: Requester) -> None:
    """Check that the asker may change `timer`: its owner, its only recipient, or a moderator if it concerns others.
    Raises RequestProblem otherwise."""
    is_in_charge = not is_own_affair(timer, timer.owner) and asker.role in Role.at_least(Role.MODERATOR)
    if not (timer.owner == asker.member or is_own_affair(timer, asker.member) or is_in_charge):
        name = without_calls_to_all(timer.owner_name)
        raise RequestProblem("reminders.not_yours", fields=["which"], number=timer.number, name=name)


def is_own_affair(timer: Timer, member: MemberRef) -> bool:
    """Whether `member` is the only recipient of `timer`."""
    return [ref for ref, _ in timer.members] == [member]


def is_in_own_words(timer: Timer, member: MemberRef) -> bool:
    """Whether only `member` can have written its text: the owner and only recipient."""
    return timer.owner == member and is_own_affair(timer, member)


def may_see(timer: Timer, asker: Requester) -> bool:
    """Whether the asker may see it here: a private reminder is hidden from others, and in public."""
    return timer.private_to is None or (asker.is_private and timer.private_to == asker.member)


def _arguments(text: str) -> JsonObject:
    return {"text": text}


_CALLS_TO_ALL = re.compile(
    r"[@＠](?=(?:everyone|everybody|here|all|channel|room|group|team|online|所有人|全体|大家)(?![a-z0-9_]))",
    re.IGNORECASE,
)


def reminder_text(timer: Timer, text: str, texts: Phrases, *, may_call_all: bool) -> tuple[str, tuple[MemberRef, ...]]:
    """The message of a due reminder with that `text`, and the members it mentions (in groups only). `may_call_all`:
    keep strings that mention everybody."""
    text = text if may_call_all else without_calls_to_all(text)
    if [ref for ref, _ in timer.members] != [timer.owner]:
        text = texts.say("reminders.said_by", text=text, name=without_calls_to_all(timer.owner_name))
    names = names_of([name for _, name in timer.members], texts)
    line = texts.say("reminders.say" if timer.is_group and names else "reminders.say_all", names=names, text=text)
    return line, tuple(ref for ref, _ in timer.members) if timer.is_group else ()


def confirmation(key: str, timer: Timer, plan: Plan | None, *, by: MemberRef, now: datetime, texts: Phrases) -> str:
    """The message `key` with time, recipients and text, and notes of `plan` on how the time was parsed."""
    line = texts.say(
        key,
        number=timer.number,
        whom=_whom(timer.members, by, texts),
        when=_when(timer, now, texts),
        text=without_calls_to_all(timer.title),
    )
    return "\n".join([line, *(_notes(plan, texts) if plan is not None else ())])


def _when(timer: Timer, now: datetime, texts: Phrases) -> str:
    at = timer.next_at or now
    values = {
        "moment": moment(at, timer.timezone, now, texts),
        "zone": timer.zone,
        "distance": distance(at, now, texts),
    }
    if is_once(timer.rule):
        return texts.say("reminders.once", **values)
    return texts.say("reminders.again", rule=in_words(timer.rule, timer.timezone, now, texts), **values)


def _notes(plan: Plan, texts: Phrases) -> list[str]:
    notes: list[str] = []
    if plan.time.assumed is not None:
        notes.append(texts.say("reminders.assumed", clock=clock(plan.time.assumed)))
    if plan.moved_to is not None:
        notes.append(texts.say("reminders.moved", clock=clock(plan.first.wall), shown=clock(plan.moved_to)))
    if plan.comes_twice:
        notes.append(texts.say("reminders.twice", clock=clock(plan.first.wall)))
    return notes


def in_list(timer: Timer, *, of: MemberRef, zone: tzinfo, now: datetime, texts: Phrases) -> str:
    """Text line of the reminder in a list, with number, time and recipients, for the member `of`, whose zone is
    `zone`."""
    whom = (
        _whom(timer.members, of, texts)
        if timer.owner == of
        else texts.say("reminders.by", name=without_calls_to_all(timer.owner_name))
    )
    return texts.say(
        "reminders.line",
        number=timer.number,
        when=_when_next(timer, zone, now, texts),
        text=without_calls_to_all(timer.title),
        whom=whom,
    )


def _when_next(timer: Timer, zone: tzinfo, now: datetime, texts: Phrases) -> str:
    """Text of its next time, or that it is paused or has ended, with the reminder's zone if it differs from the
    reader's."""
    timer_zone = timer.timezone
    marks = texts.say("reminders.other_zone", zone=timer_zone.key) if timer_zone.key != str(zone) else ""
    if timer.snoozed_until is not None:
        marks += texts.say("reminders.snoozed_until", moment=moment(timer.snoozed_until, timer_zone, now, texts))
    rule = in_words(timer.rule, timer_zone, now, texts)
    if timer.state is TimerState.PAUSED:
        return texts.say("reminders.line_paused", rule=rule) + marks
    if timer.next_at is None:
        return texts.say("reminders.line_ended") + marks
    next_one = moment(timer.next_at, timer_zone, now, texts)
    if is_once(timer.rule):
        away = distance(timer.next_at, now, texts)
        return texts.say("reminders.line_once", moment=next_one, distance=away) + marks
    return texts.say("reminders.line_again", rule=rule, moment=next_one) + marks


def _whom(members: Sequence[tuple[MemberRef, str]], owner: MemberRef, texts: Phrases) -> str:
    """Text with the recipients; empty if `owner` is the only one."""
    if not members:
        return texts.say("reminders.for_all")
    if [ref for ref, _ in members] == [owner]:
        return ""
    return texts.say("reminders.for_members", names=names_of([name for _, name in members], texts))


def without_calls_to_all(text: str) -> str:
    """`text` without strings that a network would treat as a mention of everybody."""
    return _CALLS_TO_ALL.sub("＠", text)


def names_of(names: Sequence[str], texts: Phrases) -> str:
    """`Ann`, `Ann and Bob`, `Ann, Bob and Cy`; without mentions of everybody."""
    names = [without_calls_to_all(name) for name in names]
    if len(names) < 2:
        return "".join(names)
    return texts.say("reminders.and").join([texts.say("rules.comma").join(names[:-1]), names[-1]])
