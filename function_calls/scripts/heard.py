"""What a member said to a script, read as what the script asked for: an address, a day, an amount …"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time
from zoneinfo import ZoneInfo

from config.texts import Phrases
from function_calls.answers import Answered, read_yes_or_no
from function_calls.basic.keywords import Value
from function_calls.context import Attachment
from function_calls.scripts import heard_forms as forms
from function_calls.scripts.heard_words import MONTHS, WEEKDAYS
from services.times import Kind, Reading, Times

_MOST_CHARS = 8000
_SHORT_CHARS = 254
_FEWEST_LETTERS = 3
_USUAL_TIME = time(9)
_TRUE, _FALSE = frozenset({"true", "1", "on", "对", "真"}), frozenset({"false", "0", "off", "错", "假"})


class NotHeard(ValueError):
    """What was said is not what was asked for."""


@dataclass(frozen=True, slots=True)
class Heard:
    """An answer, and what is needed to understand it."""

    text: str
    attachments: Sequence[Attachment]
    now: datetime
    """Aware, in the zone of the chat."""
    times: Times
    texts: Phrases


Reader = Callable[[Heard], Value]
"""The value; raises ValueError."""


def read(kind: str, heard: Heard) -> Value:
    """What `heard` means as a `kind` of KINDS. Raises NotHeard."""
    try:
        return KINDS[kind](heard)
    except (ValueError, OverflowError):
        raise NotHeard(kind) from None


def chosen(choices: Sequence[str], said: str) -> str:
    """Which of `choices` was said: in its words, by its number, or by a beginning that only one has. Raises
    NotHeard."""
    wanted = _folded(said)
    for choice in choices:
        if _folded(choice) == wanted:
            return choice
    if wanted.isdecimal() and wanted.isascii() and 1 <= int(wanted[:9]) <= len(choices):
        return choices[int(wanted[:9]) - 1]
    near = [choice for choice in choices if wanted and _folded(choice).startswith(wanted)]
    if len(near) != 1:
        raise NotHeard
    return near[0]


def _folded(text: str) -> str:
    return " ".join(text.split()).strip(" .!。！").casefold()


def _text(heard: Heard) -> str:
    text = heard.text.strip()
    if not text or len(text) > _MOST_CHARS:
        raise NotHeard
    return text


def _line(heard: Heard) -> str:
    text = " ".join(_text(heard).split())
    if len(text) > _SHORT_CHARS:
        raise NotHeard
    return text


def _formed(form: Callable[[str], Value]) -> Reader:
    return lambda heard: form(_line(heard))


def _boolean(heard: Heard) -> bool:
    word = _folded(heard.text)
    if word in _TRUE | _FALSE:
        return word in _TRUE
    kind = read_yes_or_no(heard.text, heard.texts).kind
    if kind is Answered.UNRELATED:
        raise NotHeard
    return kind is Answered.YES


def _reading(heard: Heard, *kinds: Kind) -> Reading:
    found = heard.times.read(_line(heard), heard.now)
    if found is None or found.kind not in kinds or found.trouble is not None:
        raise NotHeard
    return found


def _date(heard: Heard) -> str:
    try:
        return datetime.strptime(_line(heard), "%Y-%m-%d").date().isoformat()  # noqa: DTZ007 - a day has no zone
    except ValueError:
        return _reading(heard, Kind.DAY, Kind.INSTANT).start.date().isoformat()


def _hour(heard: Heard) -> str:
    return _reading(heard, Kind.TIME_OF_DAY, Kind.INSTANT).start.time().isoformat("minutes")


def _datetime(heard: Heard) -> str:
    """A time of day alone is the next such moment."""
    line = _line(heard)
    moment = _machine_written(line, heard.now) if line[:4].isdecimal() and ":" in line else None
    if moment is None:
        moment = _reading(heard, Kind.INSTANT, Kind.TIME_OF_DAY, Kind.DURATION).moment(_USUAL_TIME)
    return moment.replace(microsecond=0).isoformat(sep=" ")


def _machine_written(line: str, now: datetime) -> datetime | None:
    try:
        written = datetime.fromisoformat(line)
    except ValueError:
        return None
    return written if written.tzinfo is None else written.astimezone(now.tzinfo).replace(tzinfo=None)


def _duration(heard: Heard) -> int:
    """In seconds."""
    length = _reading(heard, Kind.DURATION).length
    if length is None or length.total_seconds() < 0:
        raise NotHeard
    return round(length.total_seconds())


def _weekday(heard: Heard) -> str:
    """Its English name, which scripts can compare."""
    return WEEKDAYS[_place(heard, "time.weekdays", WEEKDAYS)]


def _month(heard: Heard) -> int:
    """1 to 12."""
    digits = _folded(heard.text).removesuffix("月")
    if digits.isdecimal() and len(digits) <= 2 and 1 <= int(digits) <= len(MONTHS):
        return int(digits)
    return _place(heard, "time.months", MONTHS) + 1


def _place(heard: Heard, key: str, english: Sequence[str]) -> int:
    """Which of the names in a list of the texts was said, in the chat's language or in English, from 0."""
    wanted = _folded(heard.text)
    for names in (heard.texts.words(key), english):
        for place, name in enumerate(names):
            folded = name.casefold()
            is_beginning = len(wanted) >= _FEWEST_LETTERS and wanted.isascii() and folded.startswith(wanted)
            if wanted == folded or is_beginning:
                return place
    raise NotHeard


def _timezone(heard: Heard) -> str:
    try:
        return ZoneInfo(_line(heard).replace(" ", "_")).key
    except (KeyError, OSError):
        raise NotHeard from None


def _attached(media: str) -> Reader:
    """The first file of that kind, as a map."""

    def read_one(heard: Heard) -> Value:
        for one in heard.attachments:
            if one.media_type.casefold().startswith(media):
                return {"name": one.name, "type": one.media_type, "url": one.url, "size": one.size_bytes}
        raise NotHeard

    return read_one


KINDS: Mapping[str, Reader] = {
    "text": _text,
    "name": _formed(forms.name),
    "email": _formed(forms.email),
    "integer": _formed(forms.integer),
    "number": _formed(forms.number),
    "boolean": _boolean,
    "date": _date,
    "hour": _hour,
    "datetime": _datetime,
    "duration": _duration,
    "weekday": _weekday,
    "month": _month,
    "year": _formed(forms.year),
    "money": _formed(forms.money),
    "percent": _formed(forms.percent),
    "mobile": _formed(forms.phone),
    "zipcode": _formed(forms.postcode),
    "url": _formed(forms.url),
    "domain": _formed(forms.domain),
    "ip": _formed(forms.ip),
    "uuid": _formed(forms.uuid_),
    "color": _formed(forms.color),
    "language": _formed(forms.language),
    "timezone": _timezone,
    "username": _formed(forms.username),
    "file": _attached(""),
    "image": _attached("image/"),
    "audio": _attached("audio/"),
    "video": _attached("video/"),
}
"""What a script may ask for. Each has its sentence in `config/texts/`: `basic.hear.<kind>`."""
