"""The asker's own words, and whether they contain a value that a model wrote."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import Any

from function_calls.context import MessageContext
from services.llm.offline.utterance import with_digits
from services.refs import JsonObject
from services.text_index import stem
from services.times.reader import Times
from services.times.reminder_lines import US
from services.times.words.readings import Found, Kind
from services.times.zh.letters import number as han_number

_FENCES = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_QUOTED_LINE = re.compile(r"^\s*[>|›].*$", re.MULTILINE)
_FORWARDED = re.compile(
    r"^[\s\-_*]*(?:forwarded (?:message|from)|original message|begin forwarded|weitergeleitete nachricht|"
    r"转发(?:的)?消息|以下为转发|原始邮件).*\Z",
    re.IGNORECASE | re.DOTALL | re.MULTILINE,
)
_PASTED_CHARS = 500
"""A longer message probably contains pasted text: only its first and its last paragraph count, if they are short."""
_PARAGRAPH_CHARS = 300
_DIGITS = re.compile(r"(?<![\d.,])[-+]?\d[\d,.]*\d|\d")
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_INSIDE = rf"[^\W{_UNSPACED}]"
"""A letter or digit of a script with spaces between words."""
_HAN_NUMBER = re.compile(r"[零〇一二两三四五六七八九十百千万]+")
_ISO = re.compile(
    r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})(?:[T ](?P<hour>\d{2}):(?P<minute>\d{2})(?::\d{2}(?:\.\d+)?)?)?"
    r"(?:Z|[+-]\d{2}:?\d{2})?"
)
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::\d{2})?")
_AMOUNT = re.compile(
    r"(\d+(?:\.\d+)?|半)\s*(?:个)?\s*(seconds?|secs?|s|minutes?|mins?|hours?|hrs?|h|days?|weeks?|"
    r"sekunden?|minuten?|stunden?|tagen?|tage?|wochen?|秒钟?|分钟?|小时|钟头|天|日|周|星期)(?![a-z])",
    re.IGNORECASE,
)
_SECONDS = (("s", 1), ("m", 60), ("h", 3600), ("d", 86_400), ("w", 604_800))
_UNIT_LETTERS = {"秒": "s", "分": "m", "小": "h", "钟": "h", "天": "d", "日": "d", "周": "w", "星": "w", "t": "d"}
_TIMES = Times()


def without_quotes(text: str) -> str:
    """`text` without quoted lines and forwarded parts."""
    return _FORWARDED.sub(" ", _QUOTED_LINE.sub(" ", text)).strip()


def own_text(text: str) -> str:
    """`text` without quoted lines, code fences and forwarded parts. Of a long message, only a short first and a short
    last paragraph remain, because the rest is probably pasted."""
    text = without_quotes(_FENCES.sub(" ", text))
    if len(text) <= _PASTED_CHARS:
        return text
    paragraphs = [one.strip() for one in re.split(r"\n\s*\n|\n", text) if one.strip()]
    ends = dict.fromkeys((paragraphs[0], paragraphs[-1])) if paragraphs else {}
    return "\n".join(one for one in ends if len(one) <= _PARAGRAPH_CHARS)


@dataclass(frozen=True)
class AskersWords:
    """Texts that the asker wrote for a request, latest first, without parts of others."""

    texts: Sequence[str]
    now: datetime
    """Aware time of the request, in the zone of the chat; times in words are relative to it."""
    members: frozenset[str] = frozenset()
    """Ids of the members whom the message mentions."""
    approved: Sequence[Mapping[str, Any]] = ()
    """Arguments that the asker approved for the same function recently."""

    def contain(self, name: str, value: Any, schema: JsonObject) -> bool:
        """Whether the asker named `value` of the parameter `name`: it is its default or empty, or the words contain it
        literally, as the same number, amount of time, date or time, enum value or mentioned member. Of lists and
        objects, every leaf."""
        if value in (None, "", [], {}) or value == schema.get("default", _NOTHING):
            return True
        return all(self._has(leaf) or self._approved_before(name, leaf) for leaf in leaves(value))

    def _has(self, leaf: object) -> bool:
        if isinstance(leaf, bool):
            return True
        if isinstance(leaf, int | float):
            return float(leaf) in self._numbers
        return isinstance(leaf, str) and (self._says(leaf) or leaf in self.members or self._is_time(leaf))

    def _approved_before(self, name: str, leaf: object) -> bool:
        return any(leaf in list(leaves(one.get(name))) for one in self.approved)

    def _says(self, text: str) -> bool:
        """Whether the words contain `text` as whole words, also with other endings or with `_` for spaces."""
        wanted = _plain(text)
        if wanted in US:
            return any(re.search(rf"(?<!{_INSIDE}){re.escape(one)}(?!{_INSIDE})", self._text) for one in US)
        loose = _plain(re.sub(r"[_-]", " ", wanted))
        if any(re.search(rf"(?<!{_INSIDE}){re.escape(one)}(?!{_INSIDE})", self._text) for one in (wanted, loose)):
            return True
        if loose.isalpha() and loose.isascii() and stem(loose) in self._stems:
            return True
        number = _number(wanted)
        return number is not None and number in self._numbers

    def _is_time(self, text: str) -> bool:
        """Whether `text` is a date, a time of day or an ISO timestamp that the words name."""
        iso = _ISO.fullmatch(text.strip())
        if iso is None:
            clock = _CLOCK.fullmatch(text.strip())
            if clock is not None:
                return (int(clock[1]), int(clock[2])) in self._clocks
            return self._reads_same(text)
        day = (int(iso["month"]), int(iso["day"]))
        if not any((one.month, one.day) == day and self._is_year(one, int(iso["year"])) for one in self._days):
            return False
        if iso["hour"] is None:
            return True
        clock_time = (int(iso["hour"]), int(iso["minute"]))
        return clock_time in self._clocks or (not self._clocks and clock_time == (0, 0))

    def _is_year(self, day: date, year: int) -> bool:
        return day.year == year or float(year) in self._numbers

    def _reads_same(self, text: str) -> bool:
        """Whether `text` is a time in other words: "in 20 minutes" for "20 minutes from now"."""
        reading = _TIMES.read(text, self.now)
        if reading is None:
            return False
        return any(
            (one.reading.kind, one.reading.start, one.reading.end, one.reading.repeats)
            == (reading.kind, reading.start, reading.end, reading.repeats)
            for one in self._times
        )

    @cached_property
    def _text(self) -> str:
        return "\n".join(map(_plain, self.texts))

    @cached_property
    def _stems(self) -> frozenset[str]:
        return frozenset(stem(word) for word in re.findall(r"[^\W\d_]+", self._text))

    @cached_property
    def _times(self) -> Sequence[Found]:
        return [found for text in self.texts for found in _TIMES.find_all(text, self.now)]

    @cached_property
    def _days(self) -> Sequence[date]:
        return [
            moment.date()
            for found in self._times
            if found.reading.kind is not Kind.DURATION
            for moment in (found.reading.start, found.reading.at)
            if moment is not None
        ]

    @cached_property
    def _clocks(self) -> frozenset[tuple[int, int]]:
        return frozenset(
            (moment.hour, moment.minute)
            for found in self._times
            if found.reading.has_clock or found.reading.kind is Kind.INSTANT
            for moment in (found.reading.at or found.reading.start,)
        )

    @cached_property
    def _numbers(self) -> frozenset[float]:
        """Numbers in digits and in words, and amounts of time in seconds, minutes and hours."""
        text = with_digits(self._text)
        found = {value for one in _DIGITS.findall(text) if (value := _number(one)) is not None}
        found |= {float(value) for one in _HAN_NUMBER.findall(text) if (value := han_number(one)) is not None}
        for amount, unit in _AMOUNT.findall(_han_digits(text)):
            seconds = (0.5 if amount == "半" else float(amount)) * _unit_seconds(unit)
            found |= {seconds, seconds / 60, seconds / 3600, seconds * 1000}
        return frozenset(found)


_NOTHING = object()


def leaves(value: Any) -> Iterator[Any]:
    """The values of `value` that are no lists and no objects."""
    if isinstance(value, Mapping):
        for one in value.values():
            yield from leaves(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from leaves(one)
    elif value is not None:
        yield value


def mentioned(context: MessageContext) -> frozenset[str]:
    """Ids of the members that the message mentions, native and complete."""
    return frozenset(text for member in context.mentions for text in (member.native, member.key))


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().replace("’", "'").split())


def _number(text: str) -> float | None:
    plain = text.strip().rstrip(".,").replace(" ", "")
    if re.fullmatch(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", plain):
        plain = plain.replace(",", "")
    elif re.fullmatch(r"[-+]?\d{1,3}(?:\.\d{3})+,\d+", plain):
        plain = plain.replace(".", "").replace(",", ".")
    try:
        return float(plain.replace(",", "."))
    except ValueError:
        return None


def _han_digits(text: str) -> str:
    def digits(found: re.Match[str]) -> str:
        value = han_number(found[0])
        return found[0] if value is None else f"{value:g}"

    return _HAN_NUMBER.sub(digits, text)


def _unit_seconds(unit: str) -> int:
    letter = unit[0].lower()
    return dict(_SECONDS)[_UNIT_LETTERS.get(letter, letter)]
