"""Chinese times have their usual meaning. The time is Friday, 20 November 2026, 10:30 in Shanghai."""

from __future__ import annotations

import contextlib
import time as clock
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.times import Kind, Reading, TimeProblem, Times, UnclearTime
from services.times.recurrence import Calendar, Every, Once, Rule, Unit
from services.times.zh.reader import Chinese

SHANGHAI = ZoneInfo("Asia/Shanghai")
NOW = datetime(2026, 11, 20, 10, 30, tzinfo=SHANGHAI)
TIMES = Times()


def read(text: str, now: datetime = NOW) -> Reading:
    reading = TIMES.read(text, now)
    assert reading is not None, text
    return reading


def rule(text: str, now: datetime = NOW) -> Rule:
    return read(text, now).rule(now)


def once(text: str, now: datetime = NOW) -> str:
    when = rule(text, now).when
    assert isinstance(when, Once), text
    return when.wall.strftime("%Y-%m-%d %H:%M:%S").removesuffix(":00")


def cron(text: str) -> str:
    when = rule(text).when
    assert isinstance(when, Calendar), text
    return when.cron


def stretch(text: str) -> str:
    reading = read(text)
    assert reading.kind is Kind.INTERVAL, text
    return f"{reading.start:%m-%d %H:%M} {reading.end:%m-%d %H:%M}"


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("明天", "11-21"),
        ("後天", "11-22"),
        ("大后天", "11-23"),
        ("聽日", "11-21"),
        ("周一", "11-23"),
        ("週日", "11-22"),
        ("礼拜天", "11-22"),
        ("这周六", "11-21"),
        ("下周三", "11-25"),
        ("下下個禮拜二", "12-01"),
        ("25号", "11-25"),
        ("3號", "12-03"),
        ("廿五号", "11-25"),
        ("十二月廿五號", "12-25"),
        ("12.5号", "12-05"),
        ("下个月的今天", "12-20"),
        ("12月5日", "12-05"),
        ("十二月五號", "12-05"),
        ("12/5", "12-05"),
        ("2026-12-5", "12-05"),
        ("2026年12月5日(周六)", "12-05"),
        ("二〇二六年十二月五日", "12-05"),
        ("民国115年12月5日", "12-05"),
        ("下个月的第二个周二", "12-08"),
        ("12月最后一个星期五", "12-25"),
        ("本月最后一天", "11-30"),
        ("月底", "11-30"),
        ("下月初", "12-01"),
        ("年底", "12-31"),
        ("两周后的周三", "12-02"),
        ("感恩节", "11-26"),
        ("圣诞节前一天", "12-24"),
        ("冬至", "12-22"),
    ],
)
def test_days_are_named_in_many_ways(text: str, day: str) -> None:
    assert read(text).kind is Kind.DAY
    assert once(text) == f"2026-{day} 09:00"


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("春节", "2027-02-06"),
        ("除夕", "2027-02-05"),
        ("元宵节", "2027-02-20"),
        ("端午", "2027-06-09"),
        ("明年中秋节", "2027-09-15"),
        ("後年春節", "2028-01-26"),
        ("农历八月十五", "2027-09-15"),
        ("農曆2027年五月初五", "2027-06-09"),
        ("腊月初八", "2027-01-15"),
        ("大年初二", "2027-02-07"),
        ("清明", "2027-04-05"),
        ("五一", "2027-05-01"),
        ("国庆节", "2027-10-01"),
        ("母亲节", "2027-05-09"),
        ("六一兒童節", "2027-06-01"),
        ("复活节", "2027-03-28"),
        ("春节前三天", "2027-02-03"),
    ],
)
def test_feasts_are_the_next_ones_by_the_calendar_that_they_follow(text: str, day: str) -> None:
    assert once(text) == f"{day} 09:00"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("下午3点", "11-20 15:00"),
        ("三点", "11-20 15:00"),
        ("11点", "11-20 11:00"),
        ("9点", "11-20 21:00"),
        ("09:00", "11-21 09:00"),
        ("１５：０５", "11-20 15:05"),
        ("下午三點三十分", "11-20 15:30"),
        ("1点半", "11-20 13:30"),
        ("三点零五分", "11-20 15:05"),
        ("三点三刻", "11-20 15:45"),
        ("差一刻八点", "11-20 19:45"),
        ("八点差五分", "11-20 19:55"),
        ("20点30分15秒", "11-20 20:30:15"),
        ("中午", "11-20 12:00"),
        ("中午一点", "11-20 13:00"),
        ("凌晨两点", "11-21 02:00"),
        ("午夜", "11-21 00:00"),
        ("晚上12点", "11-21 00:00"),
        ("今晚8点", "11-20 20:00"),
        ("今晚一点", "11-21 01:00"),
        ("明早七点半", "11-21 07:30"),
        ("明天三点", "11-21 15:00"),
        ("明天八点", "11-21 08:00"),
        ("明天12点", "11-21 12:00"),
        ("後天晚上9點", "11-22 21:00"),
        ("周五下午3点", "11-20 15:00"),
        ("周五早上9点", "11-27 09:00"),
        ("20号上午9点", "12-20 09:00"),
        ("2026年12月5日下午3点", "12-05 15:00"),
        ("下星期一，早上8点左右", "11-23 08:00"),
        ("明天 3pm", "11-21 15:00"),
        ("晏晝三點", "11-20 15:00"),
        ("聽朝9點", "11-21 09:00"),
        ("明天大概下午3点吧", "11-21 15:00"),
    ],
)
def test_a_time_of_day_comes_next_or_on_its_day(text: str, moment: str) -> None:
    assert read(text).has_clock
    assert once(text) == f"2026-{moment}"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("明天早上", "11-21 09:00"),
        ("今晚", "11-20 20:00"),
        ("下午", "11-20 15:00"),
        ("周日傍晚", "11-22 18:00"),
        ("后天清晨", "11-22 06:00"),
    ],
)
def test_a_part_of_the_day_has_its_usual_hour(text: str, moment: str) -> None:
    assert once(text) == f"2026-{moment}"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("半小时后", "2026-11-20 11:00"),
        ("一个半小时后", "2026-11-20 12:00"),
        ("兩個鐘之後", "2026-11-20 12:30"),
        ("20分钟以后", "2026-11-20 10:50"),
        ("过5分钟", "2026-11-20 10:35"),
        ("再过一个小时", "2026-11-20 11:30"),
        ("一刻钟之后", "2026-11-20 10:45"),
        ("1小时30分后", "2026-11-20 12:00"),
        ("90秒後", "2026-11-20 10:31:30"),
        ("10分钟之内", "2026-11-20 10:40"),
        ("三天后", "2026-11-23 10:30"),
        ("三天后下午3点", "2026-11-23 15:00"),
        ("两周后", "2026-12-04 10:30"),
        ("半个月后", "2026-12-05 10:30"),
        ("一个月零三天后", "2026-12-23 10:30"),
        ("半年后", "2027-05-20 10:30"),
        ("一年半以后", "2028-05-20 10:30"),
        ("几天后", "2026-11-23 10:30"),
    ],
)
def test_so_long_from_now(text: str, moment: str) -> None:
    assert once(text) == moment


def test_a_month_from_the_thirty_first_ends_with_a_shorter_month() -> None:
    assert once("一个月后", datetime(2027, 1, 31, 8, tzinfo=SHANGHAI)) == "2027-02-28 08:00"


def test_elapsed_time_does_not_stop_when_clocks_change() -> None:
    before = datetime(2027, 3, 28, 1, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    assert once("一小时后", before) == "2027-03-28 03:30"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("每天", "0 9 * * *"),
        ("天天晚上9点", "0 21 * * *"),
        ("每晚十点半", "30 22 * * *"),
        ("每周一三五早上7点", "0 7 * * 1,3,5"),
        ("每週二、四晚上8點", "0 20 * * 2,4"),
        ("每周一和周四下午3点", "0 15 * * 1,4"),
        ("每周六日上午10点", "0 10 * * 0,6"),
        ("每逢周末", "0 9 * * 0,6"),
        ("每个工作日早上9点", "0 9 * * 1-5"),
        ("周一至周五8点", "0 8 * * 1-5"),
        ("周一到周五每天8点半", "30 8 * * 1-5"),
        ("每月1号", "0 9 1 * *"),
        ("每月5号、15号和25号", "0 9 5,15,25 * *"),
        ("每个月最后一天下午五点", "0 17 L * *"),
        ("每月第一个周一", "0 9 * * 1#1"),
        ("每月最后一个星期五", "0 9 * * 5L"),
        ("每年3月5日", "0 9 5 3 *"),
        ("每年国庆节上午10点", "0 10 1 10 *"),
        ("每年母亲节", "0 9 * 5 0#2"),
        ("每天8点、12点和18点", "0 8,12,18 * * *"),
        ("每天早晚8点", "0 8,20 * * *"),
        ("每天9点到12点每小时", "0 9,10,11,12 * * *"),
        ("每天三点", "0 15 * * *"),
    ],
)
def test_what_repeats_by_the_calendar(text: str, expected: str) -> None:
    assert cron(text) == expected


@pytest.mark.parametrize(
    ("text", "step", "unit"),
    [
        ("每隔一天", 2, Unit.DAY),
        ("隔天晚上8点", 2, Unit.DAY),
        ("每三天", 3, Unit.DAY),
        ("隔周五", 2, Unit.WEEK),
        ("每两周的周二", 2, Unit.WEEK),
        ("每两个月1号", 2, Unit.MONTH),
        ("每季度", 3, Unit.MONTH),
    ],
)
def test_only_every_so_many(text: str, step: int, unit: Unit) -> None:
    when = rule(text).when
    assert isinstance(when, Calendar)
    assert (when.step, when.unit) == (step, unit)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("每小时", 3600), ("每隔30分钟", 1800), ("每半小時", 1800), ("每一个半小时", 5400), ("每分钟", 60)],
)
def test_every_so_long_is_elapsed_time(text: str, seconds: int) -> None:
    assert rule(text).when == Every(seconds, NOW.astimezone(UTC))


def test_what_repeats_can_begin_later_and_end() -> None:
    begun = rule("从明天起每天8点直到月底").when
    assert isinstance(begun, Calendar)
    assert begun.first == date(2026, 11, 21)
    assert rule("从明天起每天8点直到月底").until == datetime(2026, 11, 30, 23, 59)  # noqa: DTZ001 - a wall time
    assert rule("每天8点到12月5号为止").until == datetime(2026, 12, 5, 23, 59)  # noqa: DTZ001
    assert rule("每天8点直到六月").until == datetime(2027, 5, 31, 23, 59)  # noqa: DTZ001
    assert rule("每周一共5次").count == 5
    assert rule("连续三天早上8点") == Rule(Calendar("0 8 * * *"), count=3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("从3点到5点", "11-20 15:00 11-20 17:00"),
        ("下午2点-4点", "11-20 14:00 11-20 16:00"),
        ("3-5点", "11-20 15:00 11-20 17:00"),
        ("明天上午10点到下午2点", "11-21 10:00 11-21 14:00"),
        ("今晚10点到早上6点", "11-20 22:00 11-21 06:00"),
        ("周一至周三", "11-23 00:00 11-26 00:00"),
        ("12月1日至7日", "12-01 00:00 12-08 00:00"),
        ("5号到8号", "12-05 00:00 12-09 00:00"),
        ("这个周末", "11-21 00:00 11-23 00:00"),
        ("下周", "11-23 00:00 11-30 00:00"),
        ("未来三天", "11-21 00:00 11-24 00:00"),
        ("十二月和一月之间", "12-01 00:00 02-01 00:00"),
    ],
)
def test_stretches_have_two_ends(text: str, expected: str) -> None:
    assert stretch(text) == expected


def test_zones_are_reckoned_with() -> None:
    assert once("东京时间晚上8点") == "2026-11-20 19:00"
    assert once("明天下午3点北京时间", datetime(2026, 11, 20, 10, 30, tzinfo=UTC)) == "2026-11-21 07:00"
    assert once("美东时间明天早上9点") == "2026-11-21 22:00"
    assert once("UTC+8 明天9点", datetime(2026, 11, 20, 20, 30, tzinfo=UTC)) == "2026-11-21 01:00"


def test_a_length_alone_is_a_duration() -> None:
    reading = read("8天20小时")
    assert reading.kind is Kind.DURATION
    assert reading.length is not None
    assert reading.length.total_seconds() == timedelta(days=8, hours=20).total_seconds()


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("昨天下午3点", TimeProblem.PAST),
        ("2月30号", TimeProblem.NO_SUCH),
        ("25点", TimeProblem.NO_SUCH),
        ("改天", TimeProblem.VAGUE),
        ("过一会儿", TimeProblem.VAGUE),
        ("两三天后", TimeProblem.VAGUE),
        ("每天两次", TimeProblem.VAGUE),
        ("每周三次", TimeProblem.VAGUE),
        ("一天三次", TimeProblem.VAGUE),
        ("除了节假日每天9点", TimeProblem.SEVERAL),
        ("每周六9点，周六除外", TimeProblem.NO_SUCH),
        ("每隔两天", TimeProblem.AMBIGUOUS),
        ("每年春节", TimeProblem.SEVERAL),
        ("每年农历八月十五", TimeProblem.SEVERAL),
    ],
)
def test_what_cannot_be_kept_says_why(text: str, trouble: TimeProblem) -> None:
    with pytest.raises(UnclearTime) as refused:
        rule(text)
    assert refused.value.problem is trouble


@pytest.mark.parametrize(
    "text", ["天气", "一点都不", "星期天气", "今日头条", "三", "号", "第三", "明天早上好", "13月1号", "十十点", "第5点"]
)
def test_what_is_no_time_is_not_read(text: str) -> None:
    assert TIMES.read(text, NOW) is None


@pytest.mark.parametrize(
    "sentence",
    [
        "[明天下午3点]提醒我开会",
        "提醒我[每周五晚上8点]倒垃圾",
        "[半小时后]叫我关火",
        "提醒大家[下周三下午两点]开例会",
        "[每天早上8点]提醒我吃药",
        "[一个半小时后]提醒我去接孩子",
        "[從明天開始每天晚上10點]提醒我睡覺",
        "[每天8点、12点和18点]提醒我测血压",
        "提醒我[农历八月十五]买月饼",
        "[周一到周五每天早上9点]打卡",
        "提醒我[星期天]去教堂",
        "[这个星期]天气好吗",
        "查一下[明天]的天气",
        "[明天]天气怎么样",
        "[下周]一起吃饭",
        "提醒我[下周一]早点出门",
        "提醒我[一点]开会",
        "[8:30]提醒我打卡",
        "[明天]提醒我写三月的报告",
        "[10月1号上午十点]提醒我升旗",
        "晚上好，提醒我[8点]开会",
        "[两周后的周三]提醒我复查",
        "[下午3点]20个人开会",
        "[到了3点]叫我",
        "提醒我[在下周五之前]交材料",
        "[待会儿]提醒我回邮件",
        "我一点都不想去",
        "给我一点时间",
        "早一点睡",
        "有三点要说明",
        "我有三点建议",
        "帮我点菜",
        "5号线怎么走",
        "第五号会议室在哪",
        "牛排要三分熟",
        "这是三分钟热度",
        "提醒我买3天的菜",
        "天天向上",
        "今日头条有什么新闻",
        "买点中秋月饼",
        "下午好",
        "100号以后的订单",
        "一共二十五个人",
        "去听五月天演唱会",
        "两点之间线段最短",
        "买两节5号电池",
        "水流是500升每小时",
        "三天两头迟到",
        "24小时营业",
        "[从上午9点开始到下午5点结束]",
        "我分析一下[最近三个月]的账单",
    ],
)
def test_the_time_within_a_sentence_is_found_exactly(sentence: str) -> None:
    text = sentence.replace("[", "").replace("]", "")
    found = TIMES.find(text, NOW)
    if "[" not in sentence:
        assert found is None
    else:
        assert found is not None
        assert f"{text[: found.start]}[{text[found.start : found.end]}]{text[found.end :]}" == sentence
        assert TIMES.read(text[found.start : found.end], NOW) == found.reading


_WORDS = st.sampled_from(
    [
        *"零一二三十廿半刻点分秒时号日月年周天上下前后内每隔从到至的、，。 3:-/12",
        *(
            "明天",
            "下午",
            "星期",
            "小时",
            "分钟",
            "个月",
            "农历",
            "春节",
            "北京时间",
            "工作日",
            "直到",
            "连续",
            "最后一",
        ),
    ]
)


@given(st.lists(_WORDS, max_size=12).map("".join), st.datetimes(datetime(1950, 1, 1), datetime(2090, 1, 1)))  # noqa: DTZ001
def test_no_text_makes_the_reader_fail(text: str, wall: datetime) -> None:
    now = wall.replace(tzinfo=SHANGHAI)
    reading = TIMES.read(text, now)
    if reading is not None:
        assert reading.start <= reading.end
        with contextlib.suppress(UnclearTime):
            reading.rule(now)


@given(st.lists(_WORDS, max_size=12).map("".join))
def test_what_is_found_reads_to_the_same_alone(text: str) -> None:
    chinese, end = Chinese(), 0
    for found in chinese.find_all(text, NOW):
        assert end <= found.start < found.end <= len(text)
        assert chinese.read(text[found.start : found.end], NOW) == found.reading
        end = found.end


@given(st.text(max_size=40))
def test_no_letters_make_the_reader_fail(text: str) -> None:
    TIMES.read(text, NOW)
    TIMES.find_all(text, NOW)


_NUMERALS = "零一二三四五六七八九"


def in_letters(number: int) -> str:
    tens, ones = divmod(number, 10)
    if not tens:
        return _NUMERALS[ones]
    return ("" if tens == 1 else _NUMERALS[tens]) + "十" + (_NUMERALS[ones] if ones else "")


@given(st.datetimes(datetime(2026, 11, 20, 10, 31), datetime(2099, 12, 31)))  # noqa: DTZ001 - wall times
def test_a_wall_time_that_is_written_out_comes_back(wall: datetime) -> None:
    wall = wall.replace(second=0, microsecond=0)
    year = "".join(_NUMERALS[int(digit)] for digit in str(wall.year))
    in_words = f"{_part(wall.hour)}{in_letters(wall.hour % 12 or 12)}點{in_letters(wall.minute)}分"
    for text in (
        f"{wall.year}年{wall.month}月{wall.day}日{wall:%H:%M}",
        f"{wall:%Y/%m/%d} {wall:%H:%M} 北京时间",
        f"{year}年{in_letters(wall.month)}月{in_letters(wall.day)}號{in_words}",
    ):
        assert read(text).start == wall, text


def _part(hour: int) -> str:
    return "凌晨" if hour < 5 else "早上" if hour < 12 else "中午" if hour == 12 else "下午" if hour < 18 else "晚上"


@pytest.mark.parametrize(
    "text", ["每天8点、" * 50, "从" * 290, "一" * 300, "周一" * 150, "3点到" * 90, "春节前一天" * 50, "一年零" * 90]
)
def test_long_texts_take_no_longer_than_their_length(text: str) -> None:
    started = clock.process_time()
    TIMES.read(text, NOW)
    TIMES.find_all(text, NOW)
    assert clock.process_time() - started < 1


def test_a_reading_is_the_same_at_any_time_of_day() -> None:
    assert read("明天").default is None
    assert read("明天早上").default == time(9)


@pytest.mark.parametrize(
    ("text", "day", "shows"),
    [("3点", 21, time(15)), ("两点半", 21, time(14, 30)), ("8点", 20, time(20))],
)
def test_an_hour_alone_is_the_next_one_at_which_people_are_awake(text: str, day: int, shows: time) -> None:
    evening = datetime(2026, 11, 20, 18, 59, tzinfo=ZoneInfo("Europe/Oslo"))
    reading = Times().read(text, evening)
    assert reading is not None
    assert reading.start == datetime.combine(date(2026, 11, day), shows)
