"""Parser of a Chinese time phrase, part by part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta

from services.patterns import lazy_pattern
from services.times.words.parts import near_weekday, passed_date
from services.times.words.readings import Grain, Length, Repeats, TimeProblem, shifted
from services.times.zh.clocks import Amount, amount_at, clock_at, part_at
from services.times.zh.dates import date_at
from services.times.zh.days import Days, monday_of, one_day, relative_day_at, safe_day, week_at, weekday_at
from services.times.zh.letters import NUMBER, number, zone_at
from services.times.zh.readings import Phrase
from services.times.zh.repeats import repeats_at

_ABOUT = r"(?:大[约概]|差不多|约莫?|可能|也许|将近|接近|快要|快到|至少|起码|最[多少晚早迟]|不超过|几乎要)"
_FILLER = lazy_pattern(rf"t(?=\d{{1,2}}:)|[\s,]*(?:的(?!话)|在|于|是)?\s*(?:{_ABOUT}(?:在|是|到)?)?\s*")
_SEPARATOR = lazy_pattern(r"\s*(?:[、,]|和|及|跟|与|还有|以及)?\s*(?:的)?")
_LEAD = lazy_pattern(r"(?:从|自从|自打|自|由|打从|打(?=[今明后下])|在|于|等到|到了?|赶在|定在|约在)\s*")
_HEDGE = lazy_pattern(rf"{_ABOUT}\s*(?:在|是|到)?\s*")
_ONWARD = lazy_pattern(r"\s*(?:起(?![床飞来身点])|开始(?![上下放]))")
_WAY = lazy_pattern(
    r"(?P<after>\s*(?:之|以|过)?后(?![天日年半])|\s*过后)|(?P<ago>\s*(?:之|以)?前(?![天日年半]))|(?P<within>\s*(?:之|以)?内)"
)
_AHEAD = lazy_pattern(
    r"(?:再过个?|再等|再隔|还有|等过|过个?(?=[\d一二两三四五六七八九十半几])|等(?=[\d一二两三四五六七八九十半几])|再(?=[\d一二两三四五六七八九十半几]))\s*"
)
_COMING = lazy_pattern(
    r"(?P<coming>未来的?|接下来的?|今后的?|往后的?|以后的?|下个?|后)\s*(?=[\d一二两三四五六七八九十半几])|(?P<past>过去的?|最近的?|近|上个?|前)\s*(?=[\d一二两三四五六七八九十半几])"
)
_NOW = lazy_pattern(r"现在|此时此刻|此时|此刻|目前|当前|这会儿|当下|马上|立刻|立即|即刻|即时|宜家|而家|依家|如今")
_VAGUE = lazy_pattern(
    r"(?:再?过一?(?:会儿?|阵子?|段时间|下)|等一?(?:会儿?|下儿?|阵子?)|待一?会儿?|一会儿?(?!见)|稍后|稍候|晚点儿?|晚些时候|迟点|迟些|回头(?!看|率|客)|改天|改日|过些天|这两天|这几天"
    r"|哪天|某天|有空|有时间|不久(?:之后|以后|后)?|过不久|将来|随时|尽快|到时候?|早晚(?!\d|[一二两三四五六七八九十]))(?:之?后)?"
)
_UNTIL = lazy_pattern(r"[\s,]*(?:并?一直|直)?(?:持续)?(?:直到|直至|截止到|截至到|截止|截至|到|至)\s*(?=\S)")
_STOP = lazy_pattern(r"\s*(?:为止|结束|止(?![痛血咳]))")
_COUNT = lazy_pattern(
    rf"[\s,]*(?:(?:一共|总共|共计|共|重复|提醒|总计|只)\s*(?P<times>{NUMBER})\s*(?:次|遍|回)"
    rf"|(?:连续|连着|一连|接连)\s*(?:(?P<times2>{NUMBER})\s*(?:次|遍|回)|(?P<run>{NUMBER})\s*个?(?P<unit>天|日|周|星期|礼拜|月|年|工作日|晚上?)))"
)
_DEADLINE = lazy_pattern(r"\s*(?:之前|以前|前(?![天往面后夕台两三\d])|之内|以内)")
_SAME_DAY = lazy_pattern(r"\s*的?(?:今天|今日|这一?天|同一天)")
_NEEDS_PART = frozenset(("每", "每个", "每一个", "今", "明", "昨", "前", "后", "大前", "大后", "听", "寻", "琴", "当"))
_STEPS = 24


class PhraseReader:
    """Parses phrases in a normalized text. `today` is in the member's zone."""

    def __init__(self, text: str, now: datetime) -> None:
        self._text = text
        self._now = now
        self._today = now.date()

    def phrase_at(self, at: int, anchor: date | None = None) -> Phrase | None:
        """Longest phrase at `at` as unresolved parts; None without a time. Dates are relative to `anchor`, else to
        today."""
        phrase = Phrase(end=at)
        start = _LEAD.match(self._text, at)
        position = start.end() if start else at
        hedge = _HEDGE.match(self._text, position)
        position = hedge.end() if hedge else position
        for _ in range(_STEPS):
            end = self._next_at(phrase, position, anchor or self._today)
            if end is None:
                break
            phrase.end = end
            filler = _FILLER.match(self._text, end)
            position = filler.end() if filler else end
        return None if phrase.is_empty else phrase

    def _next_at(self, phrase: Phrase, at: int, anchor: date) -> int | None:
        if at >= len(self._text):
            return None
        rules: tuple[Callable[[Phrase, int, date], int | None], ...] = (
            self._repeats,
            self._count,
            self._until,
            self._length,
            self._zone,
            self._clock,
            self._days,
            self._part,
            self._now_or_vague,
        )
        for rule in rules:
            end = rule(phrase, at, anchor)
            if end is not None and end > at:
                return end
        return None

    def _repeats(self, phrase: Phrase, at: int, anchor: date) -> int | None:
        if phrase.repeats is not None or phrase.ahead or phrase.lasts or phrase.window:
            return self._more_repeats(phrase, at)
        found = repeats_at(self._text, at, self._today)
        if found is None or (phrase.clocks and phrase.days) or self._lacks_part(phrase, at, found[2]):
            return None
        phrase.repeats, phrase.problem, end = found
        if phrase.days is not None:
            phrase.first, phrase.days = phrase.days, None
        return end

    def _lacks_part(self, phrase: Phrase, at: int, end: int) -> bool:
        """Whether the text from `at` to `end` is a word such as 每 or 明, which needs a time of day after it (明早),
        but the phrase already has one."""
        return bool(phrase.part or phrase.clocks) and self._text[at:end] in _NEEDS_PART

    def _more_repeats(self, phrase: Phrase, at: int) -> int | None:
        """Parse an interval within earlier days (工作日每小时, 每天9点到18点每隔一小时) into `phrase`; returns its end,
        or None."""
        if phrase.repeats is None or phrase.repeats.unit is None:
            return None
        found = repeats_at(self._text, at, self._today)
        if found is None or (found[0].unit is not None and phrase.repeats != Repeats() and found[0] != Repeats()):
            return None
        repeats = found[0]
        if repeats.unit is None:
            phrase.repeats = Repeats(
                unit=None, seconds=repeats.seconds, window=repeats.window, weekdays=phrase.repeats.weekdays
            )
        elif phrase.repeats == Repeats():
            phrase.repeats = repeats
        return found[2]

    def _count(self, phrase: Phrase, at: int, anchor: date) -> int | None:
        match = _COUNT.match(self._text, at)
        if match is None or phrase.count is not None:
            return None
        phrase.count = int(number(match["times"] or match["times2"] or match["run"]) or 0) or None
        phrase.run = match["unit"] or ""
        return match.end()

    def _until(self, phrase: Phrase, at: int, anchor: date) -> int | None:
        match = _UNTIL.match(self._text, at)
        if match is None or phrase.repeats is None or phrase.until is not None:
            return None
        last = PhraseReader(self._text, self._now).phrase_at(
            match.end(), anchor if match.group().strip() in "到至" else None
        )
        if last is None or last.repeats or last.days is None:
            return None
        phrase.until, phrase.until_clock = last.days, last.clocks[0] if last.clocks else None
        stop = _STOP.match(self._text, last.end)
        return stop.end() if stop else last.end

    def _length(self, phrase: Phrase, at: int, anchor: date) -> int | None:
        if phrase.ahead or phrase.lasts or phrase.window or phrase.days or phrase.clocks or phrase.repeats:
            return None
        coming = _COMING.match(self._text, at)
        counted = amount_at(self._text, coming.end()) if coming else None
        if coming and counted:
            phrase.window = counted[0], bool(coming["past"]), coming.group().strip()[0] in "上下前后"
            return counted[1]
        ahead = _AHEAD.match(self._text, at)
        hedge = _HEDGE.match(self._text, ahead.end()) if ahead else None
        counted = amount_at(self._text, hedge.end() if hedge else ahead.end() if ahead else at)
        if counted is None:
            return None
        amount, end = counted
        is_ahead = ahead is not None
        if not is_ahead and not _WAY.match(self._text, end) and self._is_named(phrase, at):
            return None
        return self._directed(phrase, amount, end, is_ahead=is_ahead)

    def _is_named(self, phrase: Phrase, at: int) -> bool:
        """Whether the text is a date or time of day instead of a duration: 2026年, 3日, 下午三时."""
        return bool(phrase.part or clock_at(self._text, at, phrase.part) or date_at(self._text, at, self._today))

    def _directed(self, phrase: Phrase, amount: Amount, end: int, *, is_ahead: bool) -> int:
        """Set the duration of `phrase` and its direction by the words after it; returns their end."""
        way = _WAY.match(self._text, end)
        if amount.is_vague:
            phrase.problem = TimeProblem.VAGUE
        if way is None and not is_ahead:
            phrase.lasts = amount
            return end
        phrase.ahead, phrase.is_ago = amount, bool(way and way["ago"])
        end = way.end() if way else end
        same = _SAME_DAY.match(self._text, end)
        return same.end() if same else end

    def _zone(self, phrase: Phrase, at: int, anchor: date) -> int | None:
        found = zone_at(self._text, at) if phrase.zone is None else None
        if found is None:
            return None
        phrase.zone, end = found
        return end

    def _days(self, phrase: Phrase, at: int, anchor: date) -> int | None:
        if phrase.lasts or phrase.window or phrase.is_now or phrase.instead:
            return None
        if phrase.days and not phrase.days.weekday:
            return self._same_days(phrase, phrase.days, at, anchor)
        if phrase.repeats is not None and (phrase.first is not None or phrase.days is not None):
            return None
        found = self._days_at(at, anchor if not phrase.ahead else self._target(phrase))
        if found is None or self._lacks_part(phrase, at, found[1]):
            return None
        days, end = self._same_day(*found)
        if phrase.ahead is not None and days.weekday:
            days = one_day(monday_of(self._target(phrase)) + timedelta(days=days.weekday - 1))
        if phrase.days is not None and (not days.is_day or days.weekday):
            return None
        weekday = days.other_weekday if phrase.days is None else phrase.days.weekday
        if weekday:
            phrase.instead = _choices(days, weekday, anchor, has_month="月" in self._text[at:end])
        onward = _ONWARD.match(self._text, end)
        if onward:
            phrase.is_onward, end = True, onward.end()
        if phrase.repeats is not None:
            phrase.first = days
        else:
            phrase.days = days
        deadline = None if onward else _DEADLINE.match(self._text, end)
        return deadline.end() if deadline else end

    def _same_days(self, phrase: Phrase, days: Days, at: int, anchor: date) -> int | None:
        """Parse a second name of the day `days` of `phrase` directly after it (下周一21号, 明天周五); returns its end,
        or None. If it is another day, both are to choose from."""
        if phrase.repeats or phrase.clocks or phrase.part or not days.is_day:
            return None
        weekday = weekday_at(self._text, at, anchor)
        if weekday is not None and weekday[0].weekday:
            phrase.instead = _choices(days, weekday[0].weekday, anchor)
            return weekday[1]
        found = date_at(self._text, at, anchor)
        if found is None or not found[0].is_day:
            return None
        phrase.instead = (days, found[0]) if days.first != found[0].first else ()
        return found[1]

    def _same_day(self, days: Days, end: int) -> tuple[Days, int]:
        """明年今天, 下个月的今天: the same day number as today, with the end; `days` unchanged for other texts."""
        same = _SAME_DAY.match(self._text, end) if days.grain in (Grain.MONTH, Grain.YEAR) else None
        if same is None:
            return days, end
        month = days.first.month if days.grain is Grain.MONTH else self._today.month
        return safe_day(days.first.year, month, self._today.day), same.end()

    def _days_at(self, at: int, anchor: date) -> tuple[Days, int] | None:
        text = self._text
        return (
            relative_day_at(text, at, self._today)
            or date_at(text, at, anchor)
            or weekday_at(text, at, anchor)
            or week_at(text, at, self._today)
        )

    def _target(self, phrase: Phrase) -> date:
        """Day at the phrase's offset from now; today without one."""
        if phrase.ahead is None:
            return self._today
        length = -phrase.ahead.length if phrase.is_ago else phrase.ahead.length
        try:
            return shifted(
                datetime.combine(self._today, datetime.min.time()), Length(length.months, length.days)
            ).date()
        except OverflowError:
            return self._today

    def _part(self, phrase: Phrase, at: int, anchor: date) -> int | None:
        if phrase.part or phrase.clocks or phrase.lasts or phrase.window:
            return None
        knows_day = bool(phrase.days or phrase.repeats or phrase.ahead)
        found = part_at(self._text, at, short=knows_day)
        letter = self._text[at : at + 1]
        if found is None and not knows_day and letter in "早晚晨" and not self._text.startswith("一点", at + 1):
            found = part_at(self._text, at, short=True)
            if found and clock_at(self._text, found[1], found[0]) is None:
                found = None
        if found is None:
            return None
        phrase.part, end = found
        return end

    def _clock(self, phrase: Phrase, at: int, anchor: date) -> int | None:
        if phrase.lasts or phrase.window or phrase.is_now:
            return None
        if phrase.clocks:
            return self._more_clocks(phrase, at)
        found = clock_at(self._text, at, phrase.part)
        if found is None:
            return self._twice(phrase, at)
        phrase.clocks, end = [found[0]], found[1]
        deadline = _DEADLINE.match(self._text, end)
        return deadline.end() if deadline else end

    def _twice(self, phrase: Phrase, at: int) -> int | None:
        """Parse a time in both halves of the day (早晚8点) of a recurrence into `phrase`; returns its end, or None."""
        if phrase.repeats is None or not self._text.startswith("早晚", at):
            return None
        found = [clock_at(self._text, at + 2, part[0]) for letter in "早晚" if (part := part_at(letter, 0, short=True))]
        clocks = [each[0] for each in found if each]
        phrase.clocks = clocks
        return found[0][1] if found[0] else None

    def _more_clocks(self, phrase: Phrase, at: int) -> int | None:
        """Parse a further time of day of a recurrence (每天8点、12点和晚上8点) into `phrase`; returns its end, or
        None."""
        if phrase.repeats is None or len(phrase.clocks) >= 12:
            return None
        joint = _SEPARATOR.match(self._text, at)
        start = joint.end() if joint else at
        part = part_at(self._text, start, short=True)
        found = clock_at(self._text, part[1] if part else start, part[0] if part else phrase.part)
        if found is None:
            return None
        phrase.clocks.append(found[0])
        return found[1]

    def _now_or_vague(self, phrase: Phrase, at: int, anchor: date) -> int | None:
        if not phrase.is_empty:
            return None
        now = _NOW.match(self._text, at)
        if now:
            phrase.is_now = True
            return now.end()
        vague = _VAGUE.match(self._text, at)
        if vague:
            phrase.problem = TimeProblem.VAGUE
            return vague.end()
        return None


def _choices(days: Days, weekday: int, today: date, *, has_month: bool = False) -> tuple[Days, ...]:
    """The date `days` and the coming day on `weekday` nearest to it, if they disagree; else empty. Only the same date
    in the last month, if it was on that weekday."""
    if days.first.isoweekday() == weekday:
        return ()
    past = passed_date(days.first, weekday, today, has_month=has_month) if days.next_days else None
    if past is not None:
        return (one_day(past),)
    return replace(days, other_weekday=0), one_day(near_weekday(days.first, weekday, today))
