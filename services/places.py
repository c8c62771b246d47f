"""Places and their time: names to zones, clock times from one zone to another."""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, timezone, tzinfo
from difflib import get_close_matches
from functools import cached_property

from services.clock import Clock
from services.lazy_patterns import lazy_pattern
from services.places_table import PLACES, US_STATES

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
    """A name and the zone it keeps."""

    name: str
    zone: tzinfo


class UnknownPlace(LookupError):
    """No place of that name is known; `similar` are names that are."""

    def __init__(self, name: str, similar: Sequence[str]) -> None:
        super().__init__(name)
        self.name = name
        self.similar = tuple(similar)


class BadTime(ValueError):
    """The text is not a time of day."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """One instant as two places see it."""

    source: datetime
    target: datetime
    skipped: bool = False
    """The time does not exist at the source: clocks jump over it. `source` is what they show instead."""
    repeated: bool = False
    """The time comes twice at the source; the first one is meant."""

    @property
    def days_later(self) -> int:
        """How many days the target's date is ahead of the source's: -1, 0 or 1."""
        return (self.target.date() - self.source.date()).days


class Places:
    """What time it is anywhere. Knows big cities, countries, US states, common abbreviations and all IANA zones."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self, zone: tzinfo) -> datetime:
        """The time in `zone`."""
        return self._clock.now().astimezone(zone)

    def find(self, text: str) -> tuple[Place, ...]:
        """The places that `text` may mean, westernmost last; more than one where it is ambiguous (a country with
        several zones, an abbreviation that several use). Raises UnknownPlace."""
        found = self.known(text)
        if not found:
            raise UnknownPlace(" ".join(text.split()), self._similar(_bare(text)))
        return found

    def known(self, text: str) -> tuple[Place, ...]:
        """The same, and nothing where no place of that name is known: quick enough to try words on."""
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
        """The wall time `text` (`15:30`, `3 pm`, `noon`, `now`, `下午3点半`; with a date `2026-03-29 02:30`) at the
        source, and what the target's clocks show then. Without a date it is today at the source. Raises BadTime."""
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
        """Zone keys with the spelling to show, in the table's order."""
        found = self._names.get(name) or self._zone_names.get(name)
        if found:
            return found
        for head, tail in _splits(name):
            near = self._names.get(head) or self._zone_names.get(head) or {}
            wide = self._regions.get(tail.strip()) or self._names.get(tail) or {}
            both = {zone: shown for zone, shown in near.items() if zone in wide}
            if both or ("," in name and (near or wide)):
                return both or wide or near  # of two that do not meet the wider one is right: Paris, Texas
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
        """Folded name → zone → spelling."""
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
        return {code.lower(): {zone: code} for zone, codes in US_STATES.items() for code in codes.split()}

    @cached_property
    def _zone_names(self) -> Mapping[str, Mapping[str, str]]:
        """IANA keys and the cities in them. Where several zones end in the same city they are old names of one."""
        names: dict[str, dict[str, str]] = {}
        for zone in sorted(zoneinfo.available_timezones()):
            names[zone.casefold()] = {zone: zone}
            if "/" in zone and not zone.startswith("Etc/"):
                city = zone.rsplit("/", 1)[-1].replace("_", " ")
                names.setdefault(city.casefold(), {zone: city})
        return names


def zone_label(moment: datetime) -> str:
    """The offset of an aware time from UTC: `UTC`, `UTC+8`, `UTC-3:30`."""
    minutes = round((moment.utcoffset() or timedelta()).total_seconds() / 60)
    if not minutes:
        return "UTC"
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'+' if minutes > 0 else '-'}{hours}" + (f":{rest:02}" if rest else "")


def read_wall_time(text: str, now: datetime) -> datetime:
    """The naive wall time that `text` names, on the day of `now` unless a date stands before it. Raises BadTime."""
    bare = text.strip().casefold().removeprefix("at ").strip()
    dated = _DATE.match(bare.upper())
    try:
        day = datetime.fromisoformat(dated[1]).date() if dated else now.date()
        return datetime.combine(day, _clock_time(bare[dated.end() :] if dated else bare))
    except ValueError as error:
        raise BadTime(text) from error


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
                raise BadTime(text)
            hour = hour % 12 + (12 if found["half"].startswith("p") else 0)
        return time(hour, int(found["minute"] or 0), int(found["second"] or 0))
    found = _CHINESE_CLOCK.fullmatch(text)
    if not found:
        raise BadTime(text)
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
    for line in PLACES.replace("\n  ", " ").strip().splitlines():
        zone, *groups = (part.strip() for part in line.split("|"))
        cities, countries = (*groups, "")[:2]
        yield zone, _comma_list(cities), _comma_list(countries)


def _comma_list(text: str) -> Sequence[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _bare(text: str) -> str:
    """Folded, without the words around a name (`in the … time zone`)."""
    name = " ".join(text.split()).casefold().strip()
    while (shorter := _NOISE.sub("", name).strip()) != name and shorter:
        name = shorter
    return name


def _splits(name: str) -> Iterator[tuple[str, str]]:
    """A town and what it lies in: `houston, tx`, `tokyo japan`."""
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
