"""Places and their IANA time zones."""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, timezone, tzinfo
from difflib import get_close_matches
from functools import cached_property

from config.word_tables import word_tables
from services.clock import Clock
from services.patterns import lazy_pattern
from services.refs import ErrorCode, RequestProblem

_NOISE = lazy_pattern(
    r"^(?:the|in|at)\s+|\s*(?:'s|local)?\s*\b(?:time\s*zone|time|right now|now)$|[?？。.!]+$"
    r"|(?:时间|时区|现在)$|(?<=..)市$"
)
_OFFSET = lazy_pattern(r"(?:utc|gmt)?\s*([+-−])\s*(\d{1,2})(?::?([0-5]\d))?")
_CJK = lazy_pattern(r"[\u3400-\u9fff]")
_CHINESE_HOURS = ("零", "一", "两", "三", "四", "五", "六", "七", "八", "九", "十", "十一", "十二")
_CLOCK = lazy_pattern(
    r"(?P<hour>\d{1,2})(?:[:：.h](?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?)?\s*(?:o'?clock)?\s*(?P<half>[ap]\.?\s?m\.?)?"
)
_CHINESE_CLOCK = lazy_pattern(
    r"(?P<part>凌晨|早上|早晨|上午|中午|下午|傍晚|晚上)?\s*(?P<hour>\d{1,2}|十[一二]?|[零一二两三四五六七八九])\s*[点點时]"
    r"(?:钟|(?P<half>半)|(?P<quarter>[一三])刻|(?P<minute>[0-5]?\d)分?)?"
)
_DATE = lazy_pattern(r"(\d{4}-\d{2}-\d{2})[T\s]+")


@dataclass(frozen=True, slots=True)
class Place:
    """Place name with its time zone, as found by Places."""

    name: str
    zone: tzinfo


class UnknownPlace(RequestProblem):
    """No place has this name; `similar` are known names close to it."""

    def __init__(self, name: str, similar: Sequence[str]) -> None:
        key = "time.unknown_place_similar" if similar else "time.unknown_place"
        super().__init__(key, ErrorCode.NOT_FOUND, fields=["place"], place=name, similar=", ".join(similar))


@dataclass(frozen=True, slots=True)
class Conversion:
    """The same instant as aware times in two places, as returned by Places.convert."""

    source: datetime
    target: datetime
    skipped: bool = False
    """The time falls into a gap of the source's clock; `source` is the time after the gap."""
    repeated: bool = False
    """The time occurs twice at the source; the first occurrence is used."""

    @property
    def days_later(self) -> int:
        """Difference between the target's and the source's date in days: -1, 0 or 1."""
        return (self.target.date() - self.source.date()).days


class Places:
    """Time zones of places, and conversion of times between them. Knows major cities, countries, US states, common
    abbreviations and all IANA zones."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self, zone: tzinfo) -> datetime:
        """Current time in `zone`."""
        return self._clock.now().astimezone(zone)

    def find(self, text: str) -> tuple[Place, ...]:
        """Places that `text` may mean, ordered from east to west; several if it is ambiguous (a country with several
        zones, an abbreviation with several meanings). Case is ignored; UTC offsets such as `+2` are places, too. Raises
        UnknownPlace."""
        found = self.known(text)
        if not found:
            raise UnknownPlace(" ".join(text.split()), self._similar(_bare(text)))
        return found

    def known(self, text: str) -> tuple[Place, ...]:
        """Like `find`, but empty for unknown names, and fast enough for testing arbitrary words."""
        name = _bare(text)
        offset = _fixed_offset(name)
        if offset is not None:
            return (Place(zone_label(self.now(offset)), offset),)
        for spelling in (" ".join(text.split()).casefold(), name):
            entries = self._look_up(spelling)
            if entries:
                return self._places(spelling, entries)
        return ()

    def convert(self, text: str, source: tzinfo, target: tzinfo) -> Conversion:
        """Convert the wall time `text` at the source (`15:30`, `3 pm`, `noon`, `now`, `下午3点半`, or with a date as in
        `2026-03-29 02:30`) to the target; without a date it is today at the source. Raises RequestProblem."""
        now = self.now(source)
        if text.strip().casefold() in ("now", "right now", "现在", "此刻"):
            return Conversion(now, now.astimezone(target))
        wall = read_wall_time(text, now).replace(tzinfo=source)
        instant = wall.astimezone(UTC)
        shown = instant.astimezone(source)
        skipped = shown.replace(tzinfo=None) != wall.replace(tzinfo=None)
        repeated = not skipped and wall.replace(fold=1).utcoffset() != wall.utcoffset()
        return Conversion(shown, instant.astimezone(target), skipped, repeated)

    def _look_up(self, name: str) -> Mapping[str, str]:
        """Zone keys with display names for a folded name, in table order; empty if unknown."""
        found = self._names.get(name) or self._zone_names.get(name)
        if found:
            return found
        for head, tail in _splits(name):
            near = self._names.get(head) or self._zone_names.get(head) or {}
            wide = self._regions.get(tail.strip()) or self._names.get(tail) or {}
            both = {zone: shown for zone, shown in near.items() if zone in wide}
            if both or ("," in name and (near or wide)):
                return both or wide or near  # if they do not intersect, prefer the region: Paris, Texas
        return {}

    def _places(self, name: str, entries: Mapping[str, str]) -> tuple[Place, ...]:
        if len(entries) == 1:
            return tuple(Place(shown, zoneinfo.ZoneInfo(zone)) for zone, shown in entries.items())
        chinese = bool(_CJK.search(name))
        places = [Place(self._shown_name(zone, chinese=chinese), zoneinfo.ZoneInfo(zone)) for zone in entries]
        return tuple(sorted(places, key=lambda place: self.now(place.zone).utcoffset() or timedelta(), reverse=True))

    def _shown_name(self, zone: str, *, chinese: bool) -> str:
        names = self._cities.get(zone) or [zone.rsplit("/", 1)[-1].replace("_", " ")]
        return next((name for name in names if chinese and _CJK.search(name)), names[0])

    def _similar(self, name: str) -> Sequence[str]:
        close = get_close_matches(name, self._names, n=3, cutoff=0.75)
        return list(dict.fromkeys(next(iter(self._names[spelling].values())) for spelling in close))

    @cached_property
    def _names(self) -> Mapping[str, Mapping[str, str]]:
        """Map of case-folded names to zone keys with display names."""
        names: dict[str, dict[str, str]] = {}
        for zone, cities, countries in _entries():
            for name in (*cities, *countries):
                names.setdefault(name.casefold(), {})[zone] = name
        return names

    @cached_property
    def _cities(self) -> Mapping[str, Sequence[str]]:
        cities: dict[str, Sequence[str]] = {}
        for zone, names, _ in _entries():
            cities.setdefault(zone, names)
        return cities

    @cached_property
    def _regions(self) -> Mapping[str, Mapping[str, str]]:
        states = map(str.split, word_tables("places")["us_states"])
        return {code.lower(): {zone: code} for zone, *codes in states for code in codes}

    @cached_property
    def _zone_names(self) -> Mapping[str, Mapping[str, str]]:
        """IANA keys and their cities. Zones that end in the same city are aliases, so the first is enough."""
        names: dict[str, dict[str, str]] = {}
        for zone in sorted(zoneinfo.available_timezones()):
            names[zone.casefold()] = {zone: zone}
            if "/" in zone and not zone.startswith("Etc/"):
                city = zone.rsplit("/", 1)[-1].replace("_", " ")
                names.setdefault(city.casefold(), {zone: city})
        return names


def zone_label(moment: datetime) -> str:
    """UTC offset of an aware time as text: `UTC`, `UTC+8`, `UTC-3:30`."""
    minutes = round((moment.utcoffset() or timedelta()).total_seconds() / 60)
    if not minutes:
        return "UTC"
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'+' if minutes > 0 else '-'}{hours}" + (f":{rest:02}" if rest else "")


def read_wall_time(text: str, now: datetime) -> datetime:
    """Parse a naive wall time with an optional leading date, by default the day of `now`. Raises RequestProblem."""
    bare = text.strip().casefold().removeprefix("at ").strip()
    dated = _DATE.match(bare.upper())
    try:
        day = datetime.fromisoformat(dated[1]).date() if dated else now.date()
        return datetime.combine(day, _clock_time(bare[dated.end() :] if dated else bare))
    except ValueError as error:
        raise RequestProblem("time.bad_time", ErrorCode.BAD_ARGUMENTS, fields=["time"], time=text) from error


def _clock_time(text: str) -> time:
    if text in ("noon", "midday", "正午", "中午"):
        return time(12)
    if text in ("midnight", "午夜"):
        return time(0)
    found = _CLOCK.fullmatch(text)
    if found:
        hour = int(found["hour"])
        if found["half"]:
            if not 1 <= hour <= 12:
                raise ValueError(text)
            hour = hour % 12 + (12 if found["half"].startswith("p") else 0)
        return time(hour, int(found["minute"] or 0), int(found["second"] or 0))
    found = _CHINESE_CLOCK.fullmatch(text)
    if not found:
        raise ValueError(text)
    return _chinese_time(found)


def _chinese_time(found: re.Match[str]) -> time:
    written = "两" if found["hour"] == "二" else found["hour"]
    hour = int(written) if written.isdigit() else _CHINESE_HOURS.index(written)
    part = found["part"] or ""
    if (part in ("下午", "傍晚", "晚上") and hour < 12) or (part == "中午" and hour < 11):
        hour += 12
    elif part in ("凌晨", "晚上") and hour == 12:
        hour = 0
    minute = 30 if found["half"] else int(found["minute"] or 0)
    if found["quarter"]:
        minute = 15 if found["quarter"] == "一" else 45
    return time(hour, minute)


def _entries() -> Iterator[tuple[str, Sequence[str], Sequence[str]]]:
    for line in word_tables("places")["places"]:
        zone, *groups = (part.strip() for part in line.split("|"))
        cities, countries = (*groups, "")[:2]
        yield zone, _comma_list(cities), _comma_list(countries)


def _comma_list(text: str) -> Sequence[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _bare(text: str) -> str:
    """Case-folded name without surrounding words (`in the … time zone`)."""
    name = " ".join(text.split()).casefold().strip()
    while (shorter := _NOISE.sub("", name).strip()) != name and shorter:
        name = shorter
    return name


def _splits(name: str) -> Iterator[tuple[str, str]]:
    """Possible splits of `name` into a town and its region, at the comma or at each space: `houston, tx`, `tokyo
    japan`."""
    if "," in name:
        head, _, tail = name.partition(",")
        yield head.strip(), tail.strip()
        return
    words = name.split()
    for count in range(len(words) - 1, 0, -1):
        yield " ".join(words[:count]), " ".join(words[count:])


def _fixed_offset(name: str) -> timezone | None:
    found = _OFFSET.fullmatch(name)
    if not found or int(found[2]) > 14:
        return None
    ahead = timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
    return timezone(ahead if found[1] == "+" else -ahead)
