"""Accuracy of parsing times in texts: one JSON line for each source, language and usefulness, and one for all.

    python -m benchmarks.times FILE.jsonl [--misses] [--docs]

A row has a `text`, the `reference_time` at which it is said, and the value that its source `expected`. It counts as
right if the whole text is parsed without a problem, and

- instant, holiday: the moment is the expected one, or one of the `alternatives`, down to the row's grain. The moment is
  the start of the reading, the end of a duration or of a limit, or the usual hour of a part of the day. A time of day
  that the source added by default (noon, or that of the reference) is not compared.
- time_of_day: the time is one of the expected ones.
- interval: both ends match. Sources include the last unit or not, so an end may differ by one unit of the range's
grain.
- duration: the same number of whole seconds, with 30 days in a month and 365 in a year.
- recurrence: the rule repeats as the TIMEX set value says; a time of day is compared if the value has one.
- negative: nothing is parsed.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import time as clock
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any

from services.times import Kind, Reading, Times, UnclearTime
from services.times.recurrence import Calendar, Every, Rule, Unit

Row = Mapping[str, Any]
USUAL = time(9)
_NOW = "2016-11-07T00:00:00"
_UNITS = {
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(days=7),
}
_WIDE = {"month": (28, 31), "quarter": (90, 92), "year": (365, 366)}
_EMPTY = datetime(1, 1, 1)  # noqa: DTZ001 - represents no time


@dataclass(frozen=True, slots=True)
class Answer:
    """Result of a reader, in the terms of the comparison."""

    kind: str
    start: datetime = _EMPTY
    end: datetime = _EMPTY
    moments: tuple[datetime, ...] = ()
    """Each of these may be the expected instant."""
    has_clock: bool = True
    grain: str = "second"
    seconds: float | None = None
    rule: Rule | None = None


Reader = Callable[[str, datetime], Answer | None]


def ours(times: Times) -> Reader:
    """The reader of this project."""

    def read(text: str, now: datetime) -> Answer | None:
        reading = times.read(text, now)
        return None if reading is None or reading.problem is not None else _answer(reading, now)

    return read


def _answer(reading: Reading, now: datetime) -> Answer:
    rule: Rule | None = None
    if reading.kind is Kind.RECURRENCE:
        try:
            rule = reading.rule(now, USUAL)
        except UnclearTime:
            rule = None
    moments = {reading.at or reading.start}
    if reading.kind is Kind.DURATION:
        moments = {reading.end}
    elif reading.default is not None:
        moments.add(reading.moment(USUAL))
    seconds = reading.length.total_seconds() if reading.kind is Kind.DURATION and reading.length else None
    has_clock = reading.has_clock or reading.default is not None
    return Answer(reading.kind, reading.start, reading.end, tuple(moments), has_clock, reading.grain, seconds, rule)


def said_at(row: Row) -> datetime:
    """Time at which a row is said, with its time zone."""
    wall = row["reference_time"] or _NOW
    return (
        datetime.fromisoformat(wall + (row.get("tz") or "+00:00")) if "+" not in wall else datetime.fromisoformat(wall)
    )


def is_right(row: Row, answer: Answer | None) -> bool:
    """Whether `answer` is right for the row, by the rules of the module."""
    kind = row["kind"]
    if kind == "negative" or answer is None:
        return kind == "negative" and answer is None
    if kind == "duration":
        return answer.seconds is not None and int(answer.seconds) == int(row["expected"])
    if kind == "recurrence":
        return answer.rule is not None and any(repeats_as(answer.rule, timex) for timex in row["expected"])
    if kind == "time_of_day":
        return answer.kind in ("time_of_day", "instant") and answer.start.time().isoformat() in row["expected"]
    if isinstance(row["expected"], list):
        return _same_interval(row, answer)
    return any(_same_instant(row, answer, value) for value in (row["expected"], *row.get("alternatives", ())))


def _same_instant(row: Row, answer: Answer, value: str) -> bool:
    if answer.kind == "recurrence":
        return False
    expected, grain = datetime.fromisoformat(value), row["grain"]
    filled = expected.time() in (time(12), said_at(row).time()) and row["source"].split("/")[-1] in (
        "chrono",
        "dateparser",
    )
    if not answer.has_clock and filled and grain in _UNITS:
        grain = "day"
    return any(_cut(moment, grain) == _cut(expected, grain) for moment in answer.moments)


def _cut(moment: datetime, grain: str) -> datetime:
    """`moment`, truncated to `grain`."""
    if grain in ("year", "month", "quarter"):
        return moment.replace(
            month=1 if grain == "year" else moment.month, day=1, hour=0, minute=0, second=0, microsecond=0
        )
    zeros: dict[str, int] = {"microsecond": 0}
    for name in ("second", "minute", "hour"):
        if grain == name:
            break
        zeros[name] = 0
    return moment.replace(**zeros)


def _same_interval(row: Row, answer: Answer) -> bool:
    if answer.kind not in ("interval", "day", "instant"):
        return False
    first, last = row["expected"]
    if row["grain"] == "timerange":
        return answer.start.time().isoformat() == first and answer.end.time().isoformat() == last
    start, end = datetime.fromisoformat(first), datetime.fromisoformat(last)
    if not answer.has_clock and row["source"].endswith("/chrono") and {start.time(), end.time()} == {time(12)}:
        start, end = (datetime.combine(one, time(0)) for one in (start, end))
    return answer.start == start and _near(answer.end, end, answer.grain)


def _near(end: datetime, expected: datetime, grain: str) -> bool:
    apart = abs(end - expected)
    if grain in _WIDE:
        least, most = _WIDE[grain]
        return not apart or timedelta(days=least) <= apart <= timedelta(days=most)
    return not apart or apart == _UNITS[grain] or apart == timedelta(seconds=1)


_PERIOD = re.compile(r"P(\d+(?:\.\d+)?)(D|W|M|Y|WE)")
_WEEKDAY = re.compile(r"XXXX-WXX-(\d)(?:T(\d{2})(?::(\d{2}))?)?")
_MONTH_DAY = re.compile(r"XXXX-(XX|\d{2})-(\d{2})(?:T(\d{2})(?::(\d{2}))?)?")
_AT = re.compile(r"T(\d{2})(?::(\d{2}))?(?:P1D)?")
_PORTIONS = {"TMO": (4, 12), "TAF": (12, 18), "TEV": (17, 24), "TNI": (19, 24)}
_MONTHS = {"M": 1, "Y": 12}


def repeats_as(rule: Rule, timex: str) -> bool:
    """Whether `rule` repeats as the TIMEX set value `timex`."""
    when = rule.when
    if isinstance(when, Every):
        found = re.fullmatch(r"PT(\d+)([HMS])", timex)
        return found is not None and when.seconds == int(found[1]) * {"H": 3600, "M": 60, "S": 1}[found[2]]
    if not isinstance(when, Calendar):
        return False
    minute, hour, day, month, weekday = when.cron.split()
    if found := _PERIOD.fullmatch(timex):
        return _period(when, float(found[1]), found[2], (day, month, weekday))
    if when.step != 1:
        return False
    if timex in _PORTIONS:
        low, high = _PORTIONS[timex]
        return (day, month, weekday) == ("*", "*", "*") and hour.isdigit() and low <= int(hour) < high
    if found := _WEEKDAY.fullmatch(timex):
        return (day, month, weekday) == ("*", "*", str(int(found[1]) % 7)) and _clock(minute, hour, found[2], found[3])
    if found := _MONTH_DAY.fullmatch(timex):
        wanted = "*" if found[1] == "XX" else str(int(found[1]))
        return (day, month, weekday) == (str(int(found[2])), wanted, "*") and _clock(minute, hour, found[3], found[4])
    if found := _AT.fullmatch(timex):
        return (day, month, weekday) == ("*", "*", "*") and _clock(minute, hour, found[1], found[2])
    return False


def _period(when: Calendar, count: float, unit: str, fields: tuple[str, str, str]) -> bool:
    day, month, weekday = fields
    if unit == "WE":
        return count == 1 and when.step == 1 and weekday in ("0,6", "6,0", "6,7")
    if unit in _MONTHS:
        months = when.step * (12 if month != "*" else 1)
        is_monthly = when.unit in (Unit.MONTH, Unit.YEAR) or when.step == 1
        return months == count * _MONTHS[unit] and day not in ("*",) and weekday == "*" and is_monthly
    if unit == "W":
        return when.step == count and weekday != "*" and (when.unit is Unit.WEEK or when.step == 1)
    return when.step == count and fields == ("*", "*", "*") and (when.unit is Unit.DAY or when.step == 1)


def _clock(minute: str, hour: str, wanted_hour: str | None, wanted_minute: str | None) -> bool:
    if wanted_hour is None:
        return True
    return (hour, minute) == (str(int(wanted_hour)), str(int(wanted_minute or 0)))


@dataclass(frozen=True, slots=True)
class Score:
    """Result of one group of rows."""

    source: str
    lang: str
    reminder_like: bool
    n: int
    right: int


def measure(rows: Iterable[Row], read: Reader) -> tuple[list[Score], list[tuple[Row, Answer | None]]]:
    """Scores of all groups, and the rows that were wrong, with their answers."""
    counts: defaultdict[tuple[str, str, bool], list[int]] = defaultdict(lambda: [0, 0])
    misses: list[tuple[Row, Answer | None]] = []
    for row in rows:
        answer = read(row["text"], said_at(row))
        right = is_right(row, answer)
        count = counts[row["source"], row["lang"], row["reminder_like"]]
        count[0] += 1
        count[1] += right
        if not right:
            misses.append((row, answer))
    scores = [Score(*group, *count) for group, count in sorted(counts.items())]
    return scores, misses


def shown(answer: Answer | None) -> str:
    """Short description of an answer."""
    if answer is None:
        return "nothing"
    if answer.kind == "recurrence":
        return "a rule that does not exist" if answer.rule is None else _shown_rule(answer.rule)
    if answer.seconds is not None:
        return f"{answer.seconds:g} s"
    wall = (min(answer.moments) if answer.moments else answer.start).isoformat(sep=" ").removesuffix(" 00:00:00")
    if answer.kind != "interval":
        return wall
    ends = (answer.start, answer.end)
    return " to ".join(one.isoformat(sep=" ").removesuffix(" 00:00:00") for one in ends)


def _shown_rule(rule: Rule) -> str:
    when = rule.when
    if isinstance(when, Every):
        return f"every {when.seconds} s"
    if isinstance(when, Calendar):
        return when.cron + (f", every {when.step} {when.unit}s" if when.step > 1 else "")
    return str(when.wall)


def read_rows(file: Path) -> list[Row]:
    """Rows of a JSON Lines file."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def _took(read: Reader, row: Row) -> float:
    """Microseconds for one phrase, after all tables have been built."""
    now, started = said_at(row), clock.perf_counter()
    read(row["text"], now)
    return (clock.perf_counter() - started) * 1e6


def _lines(scores: Sequence[Score], microseconds: float) -> Iterable[str]:
    for score in scores:
        fact = {"source": score.source, "lang": score.lang, "reminder_like": score.reminder_like, "n": score.n}
        yield json.dumps({**fact, "right": score.right, "share": round(score.right / score.n, 3)})
    for name, chosen in (("reminder_like", [one for one in scores if one.reminder_like]), ("all", scores)):
        n, right = sum(one.n for one in chosen), sum(one.right for one in chosen)
        facts = {"source": name, "n": n, "right": right, "share": round(right / n, 3) if n else None}
        yield json.dumps({**facts, "us_per_phrase": round(microseconds, 1)} if name == "all" else facts)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="rows as JSON lines")
    parser.add_argument("--misses", action="store_true", help="print every row that is not right")
    parser.add_argument("--docs", action="store_true", help="write the figures and the misses into docs/times.md")
    options = parser.parse_args(arguments)
    rows = read_rows(options.file)
    read = ours(Times())
    scores, misses = measure(rows, read)
    if options.docs:
        PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8"), scores, misses), encoding="utf-8")
        return
    microseconds = statistics.median(_took(read, row) for row in rows)
    for line in _lines(scores, microseconds):
        print(line)
    if options.misses:
        for row, answer in misses:
            fact = {name: row.get(name) for name in ("source", "lang", "reminder_like", "text", "kind")}
            fact |= {"reference_time": row["reference_time"], "expected": row["expected"], "got": shown(answer)}
            print(json.dumps(fact, ensure_ascii=False))


PAGE = Path(__file__).resolve().parent.parent / "docs" / "times.md"
_FIGURE = re.compile(r"^\| (\S+) \| (en|zh) \| (yes|no) \| \d+ \| \d+ \|(.*)$", re.MULTILINE)
_MISSES = re.compile(r"(<!-- misses -->\n\n(?:\|[^\n]*\n){2})(.*?)(\n<!-- end of misses -->)", re.DOTALL)
_NO_REASON = "no reason is written down yet"


def page_with(page: str, scores: Sequence[Score], misses: Sequence[tuple[Row, Answer | None]]) -> str:
    """The page with the new figures and misses. Figures of other readers and the reasons of misses are kept."""
    ours_of = {(_short(one.source), one.lang, one.reminder_like): one for one in scores}

    def figure(found: re.Match[str]) -> str:
        score = ours_of[found[1], found[2], found[3] == "yes"]
        return f"| {found[1]} | {found[2]} | {found[3]} | {score.n} | {score.right} |{found[4]}"

    reasons: dict[str, str] = {}
    table = _MISSES.search(page)
    for line in table[2].splitlines() if table else ():
        *key, reason = line.strip("| ").split(" | ")
        reasons[" | ".join(key[:4])] = reason
    rows = [f"| {key} | {got} | {reasons.get(key, _NO_REASON)} |" for key, got in _missed(misses)]
    return _MISSES.sub(lambda found: found[1] + "\n".join(rows) + "\n" + found[3], _FIGURE.sub(figure, page))


def _missed(misses: Sequence[tuple[Row, Answer | None]]) -> Iterable[tuple[str, str]]:
    """For misses among reminder-like rows: source, language, text and expected value; and the answer."""
    for row, answer in misses:
        if row["reminder_like"]:
            yield f"{_short(row['source'])} | {row['lang']} | {row['text']} | {_expected(row)}", shown(answer)


def _short(source: str) -> str:
    return source.split("/")[-1].lower().removesuffix("-text")


def _expected(row: Row) -> str:
    value = row["expected"]
    texts = [str(text) for text in (value if isinstance(value, list) else [value])]
    if row["kind"] != "recurrence":
        texts = [text.replace("T", " ").removesuffix(" 00:00:00") for text in texts]
    return ", ".join(texts)


if __name__ == "__main__":
    main()
