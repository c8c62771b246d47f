"""English time words and their values, independent of context."""

from __future__ import annotations

from collections.abc import Mapping

from services.times.words.readings import Grain

_UP_TO_TWENTY = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen twenty
"""
NUMBERS: Mapping[str, int] = {word: value for value, word in enumerate(_UP_TO_TWENTY.split())} | dict(
    zip(["thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], range(30, 100, 10), strict=True)
)
SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}


def _groups(lines: str) -> dict[str, str]:
    """Parse `meaning: word word …` lines into a map of each word to its meaning."""
    entries = (line.split(":") for line in lines.strip().splitlines())
    return {word: meaning for meaning, words in entries for word in words.split()}


def _table(lines: str) -> dict[str, int]:
    """Like `_groups`, for integer meanings."""
    return {word: int(value) for word, value in _groups(lines).items()}


WEEKDAYS = _table("""
1: monday mon mondey
2: tuesday tues tue teusday
3: wednesday wed weds wendesday
4: thursday thurs thur thu thrusday
5: friday fri firday
6: saturday sat satruday
7: sunday sun
""")
PLURAL_WEEKDAYS = {f"{day}s": number for day, number in WEEKDAYS.items() if day.endswith("day")} | {
    "mons": 1,
    "fris": 5,
    "sats": 6,
    "suns": 7,
}
MONTHS = _table("""
1: january jan
2: february feb febuary
3: march mar
4: april apr
5: may
6: june jun
7: july jul
8: august aug
9: september sep sept
10: october oct
11: november nov
12: december dec
""")
_ORDINALS_UP_TO_TWENTY = """
first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth
sixteenth seventeenth eighteenth nineteenth twentieth
"""
ORDINALS = {word: value for value, word in enumerate(_ORDINALS_UP_TO_TWENTY.split(), 1)} | {
    "twelveth": 12,
    "thirtieth": 30,
}
UNITS: Mapping[str, Grain | str] = {
    word: grain
    for grain, words in {
        Grain.SECOND: "second seconds sec secs s",
        Grain.MINUTE: "minute minutes min mins mn mns m",
        Grain.HOUR: "hour hours hr hrs h",
        Grain.DAY: "day days d night nights",
        Grain.WEEK: "week weeks wk wks w",
        "fortnight": "fortnight fortnights",
        Grain.MONTH: "month months mo mos mth mths",
        Grain.QUARTER: "quarter quarters qtr qtrs",
        Grain.YEAR: "year years yr yrs y",
        "decade": "decade decades",
        "century": "century centuries",
        "weekend": "weekend weekends",
        "weekday": "workday workdays weekday weekdays",
    }.items()
    for word in words.split()
}
TODAY = _table("""
-1: yesterday
0: today todays tonight tonite
1: tomorrow tomorrows tmrw tmr tmw tomorow tommorow tommorrow tmorrow
""")
"""Days by their offset from today."""
WHICH = _table("""
-1: last past previous prior
0: this current coming same
1: next following upcoming
""")
"""Words that select a period relative to the current one."""
PORTIONS = _groups("""
morning: morning mornings morn forenoon
dawn: dawn sunrise
breakfast: breakfast breakfasttime
brunch: brunch
lunch: lunch lunchtime
afternoon: afternoon afternoons arvo
evening: evening evenings
dusk: dusk sunset
dinner: dinner dinnertime supper
night: night nights nighttime
bedtime: bedtime
daytime: daytime
tea: teatime
""")
HOURS_OF: Mapping[str, tuple[int, int, int]] = {
    "dawn": (5, 7, 6),
    "early morning": (4, 9, 7),
    "first thing": (6, 10, 8),
    "morning": (6, 12, 9),
    "late morning": (10, 12, 11),
    "breakfast": (7, 9, 8),
    "brunch": (10, 12, 11),
    "lunch": (11, 13, 12),
    "early afternoon": (12, 15, 13),
    "afternoon": (12, 18, 15),
    "late afternoon": (15, 18, 17),
    "tea": (16, 18, 17),
    "daytime": (9, 18, 12),
    "after work": (17, 21, 18),
    "after school": (15, 21, 16),
    "dusk": (18, 20, 19),
    "dinner": (18, 20, 19),
    "early evening": (17, 20, 18),
    "evening": (18, 24, 19),
    "late evening": (20, 24, 21),
    "tonight": (18, 24, 20),
    "early night": (18, 21, 20),
    "night": (20, 24, 21),
    "late night": (21, 24, 22),
    "last thing": (21, 24, 22),
    "bedtime": (21, 24, 22),
}
"""First hour, last hour and default hour."""
SEASONS: Mapping[str, tuple[int, int]] = {
    "spring": (3, 20),
    "summer": (6, 21),
    "autumn": (9, 23),
    "fall": (9, 23),
    "winter": (12, 21),
}
"""Month and day of their beginning in the northern hemisphere."""
EDGES = _groups("""
end: end ends close late
begin: beginning begining start early
middle: middle mid
rest: rest remainder remaining later
""")
ABBREVIATED_EDGES: Mapping[str, tuple[str, Grain]] = {
    "eod": ("end", Grain.DAY),
    "eow": ("end", Grain.WEEK),
    "eom": ("end", Grain.MONTH),
    "eoq": ("end", Grain.QUARTER),
    "eoy": ("end", Grain.YEAR),
    "bom": ("begin", Grain.MONTH),
    "boy": ("begin", Grain.YEAR),
}
REPEATING: Mapping[str, tuple[str, int]] = {
    word: interval
    for interval, words in {
        (Grain.HOUR, 1): "hourly",
        (Grain.DAY, 1): "daily everyday",
        ("night", 1): "nightly",
        (Grain.WEEK, 1): "weekly",
        (Grain.WEEK, 2): "biweekly fortnightly",
        (Grain.MONTH, 1): "monthly",
        (Grain.MONTH, 2): "bimonthly",
        (Grain.MONTH, 3): "quarterly",
        (Grain.MONTH, 6): "semiannually semiannual biannually biannual",
        (Grain.YEAR, 1): "yearly annually annual",
        (Grain.YEAR, 2): "biennially",
    }.items()
    for word in words.split()
}
"""Recurrences in a single word."""
_VAGUE = """
later|later on|soon|shortly|eventually|some day|someday|some time|sometime|some other day|some other time|another time
one day|one of these days|at some point|in a while|in a bit|in a moment|in a jiffy|in no time|in the future|whenever
any time|anytime|asap|as soon as possible
"""
VAGUE = frozenset(_VAGUE.strip().replace("\n", "|").split("|"))
"""Phrases that name no specific time."""
TENS = {word: value for word, value in NUMBERS.items() if value >= 20}
ONES = {word: value for word, value in NUMBERS.items() if 1 <= value <= 9}
