"""Chinese recurrences: 每天, 每周一三五, 每隔30分钟, 每月最后一天, 隔周五, 工作日, 每年三月五日."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, time

from services.patterns import lazy_pattern
from services.times.recurrence import Unit
from services.times.words.readings import Repeats, TimeProblem
from services.times.zh.clocks import Amount, amount_at
from services.times.zh.dates import date_at, feast_at
from services.times.zh.days import WEEK, weekday_number
from services.times.zh.letters import DAY, MONTH, whole

Said = tuple[Repeats, TimeProblem | None, int]
"""Recurrence, the problem that prevents a rule, and its end."""

_PART_FOLLOWS = r"(?=(?!早晚)大?(?:清?早|晚|上午|下午|中午|傍晚|凌晨|半夜|深夜|夜|朝(?![代廷])))"
_EVERY_DAY = lazy_pattern(
    rf"(?:每一?个?|逐)[天日](?![气线])|天天(?![向快开])|日日|每个?{_PART_FOLLOWS}|每一个{_PART_FOLLOWS}"
)
_WORKDAYS = lazy_pattern(r"(?:每逢|每周|逢|每一?个?)?(?:周内)?(?:的)?(?P<which>工作日|上班日|平日(?!里)|休息日)")
_EVERY_WEEK = lazy_pattern(rf"(?:每逢|每到|逢|每一?个?)\s*(?:{WEEK}的\s*)?(?P<week>{WEEK})(?P<end>末)?")
_WEEKDAYS_ALONE = lazy_pattern(rf"(?={WEEK}[一二三四五六日天])(?P<week>{WEEK})")
_EVERY_MONTH = lazy_pattern(
    rf"(?:每逢|每到|逢|每一?个?)月(?!亮|饼)|月月|每(?P<count>{MONTH}|两)个月|每(?:逢|到)?(?={DAY}号)|逢(?=\d)"
)
_EVERY_YEAR = lazy_pattern(r"(?:每逢|每到|逢(?!年过)|每一?)年(?:度)?|年年|每逢|每到")
_EVERY_OTHER = lazy_pattern(r"每?隔一?(?P<unit>[天日周月年]|个月|个?(?:星期|礼拜))(?![壁夜])")
_EVERY_SO_LONG = lazy_pattern(r"(?P<skip>每隔|每间隔|间隔|每过)|每")
_ONCE_EACH = lazy_pattern(r"\s*(?:的)?(?:一[次遍回趟]|各?一次)")
_TIMES_EACH = lazy_pattern(r"\s*[二两三四五六七八九十\d]+(?:次|遍|回)")
_TIMES = lazy_pattern(r"\s*[次遍回](?!家)")
_IN_ONE = lazy_pattern(rf"一(?:[天日年]|个?月|个?{WEEK})\s*[二两三四五六七八九十\d]+(?:次|遍|回(?!家))")
_FULL_HOURS = lazy_pattern(r"每个?(?:小时)?的?整点|每逢整点|整点(?=提醒|报时)")
_LETTER = lazy_pattern(
    r"(?!一起(?![床飞])|一直|一定|一样|一共|一般|一边|一次|一遍|一回|一趟)(?P<day>[一二三四五六]|天(?!气)|日(?![程报历志记期常用语本子]))"
)
_NEXT_LETTER = lazy_pattern(
    r"[一二三四五六](?=[十点时刻:：个号月分小天]|\s*[次遍回]|起(?![床飞])|直|定|样|共)|一(?=大?早(?![上晨间]))"
)
_RANGE = lazy_pattern(rf"\s*(?:至|到|-+|~)\s*(?:{WEEK})?")
_AND = lazy_pattern(rf"\s*(?:[、,和及跟与]|还有|以及)\s*(?:每?个?{WEEK})?|(?:每?{WEEK})")
_DAYS_OF_MONTH = lazy_pattern(
    rf"\s*的?\s*(?:(?P<last_day>最后一?[天日]|月?[底末](?!的))|(?P<begin>月?初(?![一二三四五六七八九十])|第一[天日])|(?P<middle>月?中旬?(?![国文午学]))"
    rf"|(?:第\s*(?P<nth>[一二三四五1-5])|(?P<last>最后一?))\s*个?\s*{WEEK}(?P<weekday>[一二三四五六日]|天(?!气))"
    rf"|(?P<odd>(?:第\s*[一二三四五1-5]|最后一?)个?工作日)"
    rf"|(?P<day>{DAY})(?P<sign>[日号])?)"
)
_MORE_DAYS = lazy_pattern(rf"\s*(?:(?P<to>至|到|-|~)|[、,和及跟与])\s*(?P<day>{DAY})(?P<sign>[日号])?(?!\s*[点:时月])")


def repeats_at(text: str, at: int, today: date) -> Said | None:
    """Recurrence at `at` of a normalized text, without times of day, end and count; None without a recurrence."""
    for rule in (_full_hours_at, _every_other_at, _workdays_at, _weekly_at, _every_day_at, _monthly_at, _yearly_at):
        found = rule(text, at, today)
        if found is not None:
            repeats, problem, end = found
            if repeats.weekdays and _TIMES.match(text, end):  # 每周三次 is not a Wednesday
                return repeats, TimeProblem.VAGUE, _end_of(_TIMES, text, end)
            if _TIMES_EACH.match(text, end) and not _ONCE_EACH.match(text, end):
                return (
                    None
                    if problem is None and repeats.weekdays
                    else (repeats, TimeProblem.VAGUE, _end_of(_TIMES_EACH, text, end))
                )
            return repeats, problem, _end_of(_ONCE_EACH, text, end)
    in_one = _IN_ONE.match(text, at)
    if in_one is not None:
        return Repeats(Unit.DAY), TimeProblem.VAGUE, in_one.end()
    return _every_so_long_at(text, at, today)


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _full_hours_at(text: str, at: int, today: date) -> Said | None:
    match = _FULL_HOURS.match(text, at)
    if match is None:
        return None
    return Repeats(unit=None, seconds=3600, window=(time(0), time(23, 59))), None, match.end()


def _every_day_at(text: str, at: int, today: date) -> Said | None:
    match = _EVERY_DAY.match(text, at)
    return (Repeats(Unit.DAY), None, match.end()) if match else None


def _workdays_at(text: str, at: int, today: date) -> Said | None:
    match = _WORKDAYS.match(text, at)
    if match is None:
        return None
    weekdays = (6, 7) if match["which"] == "休息日" else (1, 2, 3, 4, 5)
    return Repeats(Unit.WEEK, weekdays=weekdays), None, match.end()


def _weekly_at(text: str, at: int, today: date) -> Said | None:
    match = _EVERY_WEEK.match(text, at)
    if match is None:
        return _several_weekdays_at(text, at)
    if match["end"]:
        return Repeats(Unit.WEEK, weekdays=(6, 7)), None, match.end()
    named = weekdays_at(text, match.end())
    if named:
        return Repeats(Unit.WEEK, weekdays=named[0]), None, named[1]
    link = re.compile(rf"的?\s*{WEEK}").match(text, match.end())
    named = weekdays_at(text, link.end()) if link else None
    if named:
        return Repeats(Unit.WEEK, weekdays=named[0]), None, named[1]
    if text.startswith(("年", "岁", "边", "围"), match.end()):
        return None
    return Repeats(Unit.WEEK), None, match.end()


def _several_weekdays_at(text: str, at: int) -> Said | None:
    """周一三五, 周一、周三 without 每: weekly recurrence on several weekdays, but not a range; None otherwise."""
    match = _WEEKDAYS_ALONE.match(text, at)
    named = weekdays_at(text, match.end(), ranges=False) if match else None
    if named is None or len(named[0]) < 2 or named[0] == (6, 7):
        return None
    return Repeats(Unit.WEEK, weekdays=named[0]), None, named[1]


def weekdays_at(text: str, at: int, *, ranges: bool = True) -> tuple[tuple[int, ...], int] | None:
    """Weekdays listed at `at`, sorted and with their end, or None, after the first 周: 一三五, 一、周三和五, 一至五."""
    match = _LETTER.match(text, at)
    if match is None:
        return None
    days, end = [weekday_number(match["day"])], match.end()
    while len(days) < 8:
        joint = _RANGE.match(text, end) if ranges else None
        following = _LETTER.match(text, joint.end()) if joint else None
        if joint and following:
            last = weekday_number(following["day"])
            days += [(day - 1) % 7 + 1 for day in range(days[-1] + 1, last + 1 if last > days[-1] else last + 8)]
            end = following.end()
            continue
        joint = _AND.match(text, end)
        start = joint.end() if joint else end
        following = _LETTER.match(text, start)
        if following is None or _NEXT_LETTER.match(text, start):
            break
        days.append(weekday_number(following["day"]))
        end = following.end()
    return tuple(sorted(set(days))), end


def _monthly_at(text: str, at: int, today: date) -> Said | None:
    match = _EVERY_MONTH.match(text, at)
    if match is None:
        return None
    repeats = Repeats(Unit.MONTH, step=whole(match["count"]) if match["count"] else 1)
    days = _days_of_month(text, match.end(), repeats)
    if days:
        return days
    if text[match.end() - 1] != "月":
        return None
    return repeats, None, match.end()


def _days_of_month(text: str, at: int, repeats: Repeats) -> Said | None:
    match = _DAYS_OF_MONTH.match(text, at)
    if match is None:
        return None
    end = match.end()
    if match["odd"]:
        return repeats, TimeProblem.SEVERAL, end
    if match["nth"] or match["last"]:
        nth = whole(match["nth"]) if match["nth"] else -1
        return replace(repeats, weekdays=(weekday_number(match["weekday"]),), nth=nth), None, end
    if not match["day"]:
        return replace(repeats, days=(-1,) if match["last_day"] else (1,) if match["begin"] else (15,)), None, end
    days, signed = [whole(match["day"])], bool(match["sign"])
    while len(days) < 31 and (more := _MORE_DAYS.match(text, end)):
        following = whole(more["day"])
        days += range(days[-1] + 1, following + 1) if more["to"] else [following]
        signed, end = signed or bool(more["sign"]), more.end()
    if not signed:
        return None
    problem = None if all(1 <= day <= 31 for day in days) else TimeProblem.NO_SUCH
    return replace(repeats, days=tuple(sorted(set(days)))), problem, end


def _yearly_at(text: str, at: int, today: date) -> Said | None:
    match = _EVERY_YEAR.match(text, at)
    if match is None:
        return None
    start = _end_of(re.compile(r"\s*的?\s*"), text, match.end())
    repeats = Repeats(Unit.YEAR)
    feast = feast_at(text, start)
    if feast:
        return _every_feast(feast[0].fixed, feast[0].weekday, repeats), feast[0].problem, feast[1]
    month = re.compile(rf"(?P<month>{MONTH})月").match(text, start)
    lunar = re.compile(r"农历|阴历|旧历|正月|腊月|冬月|[一二三四五六七八九十]+月[初廿]").match(text, start)
    dated = date_at(text, start, today)
    if lunar and dated:
        return repeats, TimeProblem.SEVERAL, dated[1]
    if month and 1 <= whole(month["month"]) <= 12:
        repeats = replace(repeats, months=(whole(month["month"]),))
        days = _days_of_month(text, month.end(), repeats)
        return days or (repeats, None, month.end())
    if dated and dated[0].is_day:
        return replace(repeats, months=(dated[0].first.month,), days=(dated[0].first.day,)), None, dated[1]
    return (repeats, None, match.end()) if match.group() not in ("每逢", "每到") else None


def _every_feast(fixed: tuple[int, int] | None, weekday: tuple[int, int, int] | None, repeats: Repeats) -> Repeats:
    if fixed:
        return replace(repeats, months=(fixed[0],), days=(fixed[1],))
    if weekday:
        return replace(repeats, months=(weekday[0],), nth=weekday[1], weekdays=(weekday[2],))
    return repeats


def _every_other_at(text: str, at: int, today: date) -> Said | None:
    """Recurrence in every second unit at `at`: 隔天, 每隔一周, 隔周五. None otherwise."""
    match = _EVERY_OTHER.match(text, at)
    if match is None:
        return None
    unit = {"天": Unit.DAY, "日": Unit.DAY, "周": Unit.WEEK, "月": Unit.MONTH, "年": Unit.YEAR}.get(
        match["unit"][-1], Unit.WEEK
    )
    repeats = Repeats(unit, step=2)
    return _on_its_days(text, match.end(), repeats)


def _every_so_long_at(text: str, at: int, today: date) -> Said | None:
    """Recurrence by an interval at `at`: 每两周, 每30分钟, 每隔三天, and 三天一次. None otherwise."""
    match = _EVERY_SO_LONG.match(text, at)
    counted = amount_at(text, match.end()) if match else None
    if match and counted is None:
        counted = amount_at(text[: match.end()] + "一" + text[match.end() :], match.end())
        counted = (counted[0], counted[1] - 1) if counted else None
    if counted is None or match is None:
        counted = amount_at(text, at)
        if counted is None or not _ONCE_EACH.match(text, counted[1]):
            return None
    amount, end = counted
    end = _end_of(_ONCE_EACH, text, end)
    repeats, problem = _every(amount, skips=bool(match and match["skip"]))
    return _on_its_days(text, end, repeats, problem) if repeats else None


def _every(amount: Amount, *, skips: bool) -> tuple[Repeats | None, TimeProblem | None]:
    length = amount.length
    problem = TimeProblem.VAGUE if amount.is_vague else None
    if bool(length.months) + bool(length.days) + bool(length.seconds) != 1:
        return None, None
    if length.seconds:
        return Repeats(unit=None, seconds=max(1, round(length.seconds))), problem
    unit, step = Unit.DAY, length.days
    if length.months:
        unit, step = (Unit.YEAR, length.months // 12) if length.months % 12 == 0 else (Unit.MONTH, length.months)
    elif amount.unit == "week":
        unit, step = Unit.WEEK, length.days // 7
    if skips and amount.unit != "half":
        # 每隔两天 is ambiguous: every third or every second day.
        problem, step = (problem, 2) if step == 1 else (TimeProblem.AMBIGUOUS, step + 1)
    return Repeats(unit, step=step), problem


def _on_its_days(text: str, at: int, repeats: Repeats, problem: TimeProblem | None = None) -> Said:
    """`repeats` with the days that follow at `at`, as in 每两周的周五 or 隔月1号, with its problem and end."""
    end = _end_of(re.compile(r"\s*的?\s*"), text, at)
    if repeats.unit is Unit.WEEK:
        week = re.compile(WEEK).match(text, end)
        named = weekdays_at(text, week.end() if week else end)
        if named:
            return replace(repeats, weekdays=named[0]), problem, named[1]
    if repeats.unit is Unit.MONTH:
        days = _days_of_month(text, end, repeats)
        if days:
            return days
    return repeats, problem, at
