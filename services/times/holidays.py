"""Days with a name: fixed ones, the nth weekday of a month, those that hang on Easter, and on other calendars."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from functools import lru_cache

from services.times.other_calendars import hebrew_day, islamic_day
from services.times.tokens import Line, NUMBER, WORD

_FIXED = """
1-1 new year|new year day|new years|newyear|newyears day|new years day
1-6 epiphany|three kings day
1-14 thai pongal|pongal|makar sankranti|maghi
1-26 australia day|republic day
2-2 groundhog day|groundhogs day|candlemas
2-14 valentine day|valentines day|valentine|valentines|vday|v day
2-29 leap day
3-1 st david day|saint david day
3-8 women day|womens day|international women day|international womens day
3-14 pi day
3-17 st patrick day|saint patrick day|st patricks day|saint patricks day|st paddy day|st paddys day|paddy day
4-1 april fools|april fool|april fools day|april fool day|all fools day
4-22 earth day
4-23 st george day|saint george day|st georges day
4-25 anzac day
5-1 may day|mayday|international workers day|workers day
5-4 star wars day
5-5 cinco de mayo
6-14 flag day
6-19 juneteenth
6-24 st john day|saint john day|midsummer day
7-1 canada day
7-4 independence day|usa independence day|us independence day|fourth of july holiday
7-14 bastille day
8-15 assumption|assumption day|assumption of mary
8-26 women equality day|womens equality day
9-11 patriot day
10-16 boss day|bosses day|bosss day
10-31 halloween|hallowe'en|all hallows eve|halloween day
11-1 all saints day|all saints|all hallows day
11-2 all souls day|all souls
11-5 guy fawkes day|guy fawkes night|bonfire night
11-11 veterans day|veteran day|remembrance day|armistice day|singles day
12-6 st nicholas day|saint nicholas day
12-8 immaculate conception
12-24 christmas eve|xmas eve|xmas's eve
12-25 christmas|xmas|christmas day|xmas day|x mas
12-26 boxing day|st stephen day
12-31 new year eve|new years eve|nye|silvester|hogmanay
"""
_NTH = """
1 1 3 martin luther king day|martin luther king jr day|martin luther king|mlk day|mlk jr day|mlk|civil rights day|martin luther king junior day|idaho human rights day
2 1 3 president day|presidents day|washington birthday|washingtons birthday
3 1 2 commonwealth day
5 6 3 armed forces day
5 7 2 mother day|mothers day
5 1 -1 memorial day|decoration day
6 7 3 father day|fathers day
7 7 -1 parents day|parent day|national parents day
9 1 1 labor day|labour day
10 1 2 columbus day|indigenous people day|indigenous peoples day|canadian thanksgiving
11 4 4 thanksgiving|thanksgiving day|us thanksgiving|turkey day
"""
_MOVED = """
thanksgiving 1 black friday
thanksgiving 2 small business saturday
thanksgiving 4 cyber monday
thanksgiving 5 giving tuesday
thanksgiving -1 thanksgiving eve
mother day -2 military spouse day|military spouse appreciation day
labor day 6 grandparents day|grandparent day|national grandparents day|national grandparent day
easter -52 fat thursday
easter -47 shrove tuesday|mardi gras|pancake day|fat tuesday|pancake tuesday
easter -46 ash wednesday
easter -7 palm sunday|branch sunday
easter -3 maundy thursday|holy thursday|covenant thursday|thursday of mysteries
easter -2 good friday|easter friday|great friday
easter -1 holy saturday|black saturday|easter eve|easter saturday
easter 1 easter monday|easter mon
easter 39 ascension day|ascension|holy ascension
easter 49 pentecost|whit sunday|whitsunday|white sunday
easter 50 whit monday|pentecost monday|monday of the holy spirit
easter 56 trinity sunday
easter 60 corpus christi|feast of corpus christi
orthodox easter -48 clean monday|orthodox shrove monday|ash monday
orthodox easter -8 lazarus saturday
orthodox easter -7 orthodox palm sunday|orthodox branch sunday
orthodox easter -2 orthodox good friday|orthodox great friday
orthodox easter -1 orthodox holy saturday
orthodox easter 1 orthodox easter monday
orthodox easter 49 orthodox pentecost
"""
_HEBREW = """
7 1 0 rosh hashanah|rosh hashana|rosh ha shanah|jewish new year
7 10 0 yom kippur|day of atonement
7 15 0 sukkot|sukkoth|feast of tabernacles
7 22 0 shemini atzeret
7 23 0 simchat torah
9 25 -1 hanukkah|hanukah|chanukah|chanukkah|hannukah|hanukka|festival of lights jewish
11 15 -1 tu bishvat|tu b'shvat
1 15 -1 passover|pesach
2 18 -1 lag baomer|lag b'omer
3 6 -1 shavuot|feast of weeks
5 9 -1 tisha b'av|tisha bav
"""
_ISLAMIC = """
1 1 islamic new year|muharram|hijri new year
1 10 ashura|day of ashura
3 12 mawlid|mawlid al nabi|prophet birthday
7 27 isra and mi'raj|night journey
9 1 ramadan|ramadhan|ramzan
9 27 laylat al qadr|night of power|laylat al kadr
10 1 eid al fitr|eid ul fitr|id al fitr|id ul fitr|end of ramadan
12 10 eid al adha|eid ul adha|id al adha|id ul adha|feast of sacrifice|sacrifice feast|bakrid
"""
LENGTHS: Mapping[str, int] = {"hanukkah": 8, "ramadan": 30, "passover": 9, "sukkot": 8, "lent": 46}
"""Days of those that are longer than one."""
_Rule = Callable[[int], date | None]
_LONGEST_NAME = 6
_LEFT_OUT = frozenset(("the", "'", "-", "’", "."))


def day_of(name: str, year: int) -> date | None:
    """The (first) day of the holiday in `year`; None where that year has none or it is not known."""
    rule = _rules().get(name)
    return rule(year) if rule is not None and 1 < year < 9999 else None


def holiday_at(line: Line, index: int) -> tuple[str, int] | None:
    """The longest name of a holiday that begins at `index`, and where it ends."""
    word = line.words[index]
    if (line.kinds[index] != WORD and line.kinds[index] != NUMBER) or word not in _first_words():
        return None
    found, said, end = None, [], index
    while len(said) < _LONGEST_NAME and end < line.size:
        word = line.words[end]
        end += 1
        if word not in _LEFT_OUT:
            said.append(word)
            name = _spellings().get(" ".join(said))
            if name is not None:
                found = (name, end)
    return found


def easter(year: int) -> date:
    """Easter Sunday of the western churches (the Gregorian computus)."""
    golden, (century, of_century) = year % 19, divmod(year, 100)
    leap_centuries, rest = divmod(century, 4)
    correction = (8 * century + 13) // 25
    moon = (19 * golden + century - leap_centuries - correction + 15) % 30
    leap, of_leap = divmod(of_century, 4)
    to_sunday = (32 + 2 * rest + 2 * leap - moon - of_leap) % 7
    late = (golden + 11 * moon + 19 * to_sunday) // 433
    month = (moon + to_sunday - 7 * late + 90) // 25
    return date(year, month, (moon + to_sunday - 7 * late + 33 * month + 19) % 32)


def orthodox_easter(year: int) -> date:
    """Easter Sunday of the eastern churches, as a Gregorian date."""
    moon = (19 * (year % 19) + 15) % 30
    weekday = (2 * (year % 4) + 4 * (year % 7) - moon + 34) % 7
    month, day = divmod(moon + weekday + 114, 31)
    return date(year, month, day + 1) + timedelta(days=year // 100 - year // 400 - 2)


def nth_weekday(year: int, month: int, weekday: int, nth: int) -> date:
    """The nth (from the end where negative) weekday of a month. Raises ValueError where there is none."""
    if nth > 0:
        first = date(year, month, 1)
        day = first + timedelta(days=(weekday - first.isoweekday()) % 7 + 7 * (nth - 1))
    else:
        last = (date(year, month, 28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)
        day = last - timedelta(days=(last.isoweekday() - weekday) % 7 + 7 * (-nth - 1))
    if day.month != month:
        raise ValueError(f"no such weekday in {year}-{month}")
    return day


def _tax_day(year: int) -> date:
    """15 April, moved on by weekends and by Emancipation Day as it is kept."""
    day = date(year, 4, 15)
    while day.isoweekday() > 5 or day == _emancipation_day(year):
        day += timedelta(days=1)
    return day


def _emancipation_day(year: int) -> date:
    day = date(year, 4, 16)
    return day + timedelta(days={6: -1, 7: 1}.get(day.isoweekday(), 0))


def _professionals_day(year: int) -> date:
    """The Wednesday of the last full week of April."""
    return nth_weekday(year, 4, 6, -1) - timedelta(days=3)


def _clock_change(month: int, nth: int) -> _Rule:
    return lambda year: nth_weekday(year, month, 7, nth)


_OTHERS: Mapping[str, _Rule] = {
    "easter|easter sunday|easter day": easter,
    "orthodox easter|orthodox easter sunday|orthodox easter day": orthodox_easter,
    "tax day": _tax_day,
    "emancipation day": _emancipation_day,
    "administrative professionals day|administrative professional day|secretaries day|admin day": _professionals_day,
    "daylight saving start|daylight savings start|daylight saving start day": _clock_change(3, 2),
    "daylight saving end|daylight savings end|daylight saving end day": _clock_change(11, 1),
    "lent": lambda year: easter(year) - timedelta(days=46),
    "advent|first advent|advent sunday": lambda year: (
        date(year, 12, 24) - timedelta(days=date(year, 12, 24).isoweekday() % 7 + 21)
    ),
    "purim": lambda year: _before_passover(year, 30),
    "yom hashoah|holocaust day|holocaust remembrance day": lambda year: _remembrance(year),
}


def _before_passover(year: int, days: int) -> date | None:
    passover = day_of("passover", year)
    return None if passover is None else passover - timedelta(days=days)


def _remembrance(year: int) -> date | None:
    """The evening before 27 Nisan, which is moved away from Sabbaths."""
    passover = day_of("passover", year)
    if passover is None:
        return None
    day = passover + timedelta(days=13)
    return day + timedelta(days={5: -2, 6: 0, 7: 0}.get(day.isoweekday(), -1) + (0 if day.isoweekday() != 5 else 1))


@lru_cache(maxsize=1)
def _tables() -> tuple[dict[str, str], dict[str, _Rule]]:
    """Spelling → name, and name → rule."""
    spellings: dict[str, str] = {}
    rules: dict[str, _Rule] = {}

    def add(names: str, rule: _Rule) -> None:
        spelled = names.strip().split("|")
        rules[spelled[0]] = rule
        for spelling in spelled:
            spellings[" ".join(spelling.replace("'", " ").split())] = spelled[0]

    for row in _FIXED.strip().splitlines():
        day, names = row.split(" ", 1)
        add(names, _fixed(*map(int, day.split("-"))))
    for row in _NTH.strip().splitlines():
        month, weekday, nth, names = row.split(" ", 3)
        add(names, _nth(int(month), int(weekday), int(nth)))
    for names, rule in _OTHERS.items():
        add(names, rule)
    for row in _MOVED.strip().splitlines():
        anchor, days, names = _split_moved(row)
        add(names, _moved(anchor, days))
    for row in _HEBREW.strip().splitlines():
        month, day, shift, names = row.split(" ", 3)
        add(names, _hebrew(int(month), int(day), int(shift)))
    for row in _ISLAMIC.strip().splitlines():
        month, day, names = row.split(" ", 2)
        add(names, _islamic(int(month), int(day)))
    return spellings, rules


def _split_moved(row: str) -> tuple[str, int, str]:
    words = row.split(" ")
    at = next(place for place, word in enumerate(words) if word.lstrip("-").isdigit())
    return " ".join(words[:at]), int(words[at]), " ".join(words[at + 1 :])


def _fixed(month: int, day: int) -> _Rule:
    def rule(year: int) -> date | None:
        try:
            return date(year, month, day)
        except ValueError:  # 29 February
            return None

    return rule


def _nth(month: int, weekday: int, nth: int) -> _Rule:
    return lambda year: nth_weekday(year, month, weekday, nth)


def _moved(anchor: str, days: int) -> _Rule:
    def rule(year: int) -> date | None:
        day = day_of(anchor, year)
        return None if day is None else day + timedelta(days=days)

    return rule


def _hebrew(month: int, day: int, shift: int) -> _Rule:
    return lambda year: hebrew_day(year, month, day) + timedelta(days=shift)


def _islamic(month: int, day: int) -> _Rule:
    return lambda year: islamic_day(year, month, day)


def _spellings() -> Mapping[str, str]:
    return _tables()[0]


def _rules() -> Mapping[str, _Rule]:
    return _tables()[1]


@lru_cache(maxsize=1)
def _first_words() -> frozenset[str]:
    return frozenset(spelling.split(" ", 1)[0] for spelling in _spellings())
