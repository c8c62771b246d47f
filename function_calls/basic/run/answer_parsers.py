"""Parsers for members' answers to HEAR: addresses, dates, amounts, codes."""

from __future__ import annotations

import ipaddress
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time
from zoneinfo import ZoneInfo

from config.texts import Phrases
from function_calls.basic.functions.formatting import DAYS, MONTHS
from function_calls.basic.keywords import Value
from function_calls.context import Attachment
from function_calls.questions.open_questions import Answered, read_yes_or_no
from services.patterns import lazy_pattern
from services.times import Kind, Reading, Times

COLORS: Mapping[str, str] = {
    "black": "#000000", "white": "#ffffff", "red": "#ff0000", "green": "#008000", "blue": "#0000ff",
    "yellow": "#ffff00", "orange": "#ffa500", "purple": "#800080", "pink": "#ffc0cb", "brown": "#a52a2a",
    "grey": "#808080", "gray": "#808080", "cyan": "#00ffff", "magenta": "#ff00ff", "gold": "#ffd700",
    "silver": "#c0c0c0", "navy": "#000080", "teal": "#008080", "lime": "#00ff00", "violet": "#ee82ee",
    "黑": "#000000", "白": "#ffffff", "红": "#ff0000", "绿": "#008000", "蓝": "#0000ff", "黄": "#ffff00",
    "橙": "#ffa500", "紫": "#800080", "粉": "#ffc0cb", "棕": "#a52a2a", "灰": "#808080", "金": "#ffd700",
    "银": "#c0c0c0", "青": "#00ffff",
}  # fmt: skip
"""CSS colours by name."""
LANGUAGES: Mapping[str, str] = {
    "english": "en", "chinese": "zh", "mandarin": "zh", "spanish": "es", "portuguese": "pt", "french": "fr",
    "german": "de", "italian": "it", "dutch": "nl", "norwegian": "no", "swedish": "sv", "danish": "da",
    "finnish": "fi", "polish": "pl", "russian": "ru", "ukrainian": "uk", "turkish": "tr", "arabic": "ar",
    "hebrew": "he", "hindi": "hi", "japanese": "ja", "korean": "ko", "vietnamese": "vi", "thai": "th",
    "indonesian": "id", "greek": "el", "czech": "cs", "hungarian": "hu", "romanian": "ro",
    "英语": "en", "英文": "en", "中文": "zh", "汉语": "zh", "普通话": "zh", "日语": "ja", "日文": "ja", "韩语": "ko",
    "法语": "fr", "德语": "de", "西班牙语": "es", "俄语": "ru", "意大利语": "it", "葡萄牙语": "pt", "阿拉伯语": "ar",
}  # fmt: skip
"""Language tags by usual name."""
ALIASES: Mapping[str, str] = {
    "string": "text", "any": "text", "float": "number", "decimal": "number", "int": "integer", "yesno": "boolean",
    "bool": "boolean", "time": "hour", "day": "date", "currency": "money", "phone": "mobile", "tel": "mobile",
    "postcode": "zipcode", "zip": "zipcode", "link": "url", "website": "url", "guid": "uuid", "colour": "color",
    "mail": "email", "document": "file", "photo": "image", "picture": "image", "user": "username",
}  # fmt: skip
"""Aliases of kinds."""


_LABEL = r"[^\W_](?:[\w-]{0,61}[^\W_])?"
_DOMAIN = lazy_pattern(rf"(?:{_LABEL}\.)+[^\W\d_](?:[\w-]{{0,61}}[^\W_])?", re.IGNORECASE)
_MAILBOX = lazy_pattern(r"[^\s@<>()\[\],;:\"\\]{1,64}")
_INTEGER = lazy_pattern(r"[+-]?\d{1,18}")
_URL = lazy_pattern(r"https?://([^\s/?#@]+)(?:[/?#]\S*)?", re.IGNORECASE)
_PHONE = lazy_pattern(r"\+?[\d\s().-]{5,30}")
_POSTCODE = lazy_pattern(r"[A-Z\d][A-Z\d -]{1,10}[A-Z\d]", re.IGNORECASE)
_USERNAME = lazy_pattern(r"@?(\w[\w.-]{0,63})")
_HEX = lazy_pattern(r"#?([0-9a-f]{6}|[0-9a-f]{3})")
_TAG = lazy_pattern(r"[a-z]{2}(?:[-_][a-z\d]{2,8})*|yue|fil|haw")
_CURRENCY = lazy_pattern(r"R\$|[€$£¥₹₩元円]|\b[A-Za-z]{3}\b")
_NUMBER = lazy_pattern(r"[+-]?\d[\d.,'\u00a0\u202f ]*")
_SPACES = lazy_pattern(r"['\u00a0\u202f ]")
_MOST_NAME_CHARS = 100
_IN_NAMES = frozenset(" .'’-·,")
_PHONE_DIGITS = range(5, 16)
_POSTCODE_CHARS = range(3, 11)


def name(text: str) -> str:
    """A person's name: letters and the characters of _IN_NAMES. Raises ValueError for other texts, and for more than
    100 characters."""
    is_odd = any(not (character.isalpha() or character in _IN_NAMES) for character in text)
    return _if(text, any(map(str.isalpha, text)) and not is_odd and len(text) <= _MOST_NAME_CHARS)


def email(text: str) -> str:
    """An e-mail address without `mailto:`; the domain in lower case. Raises ValueError for other texts."""
    mailbox, _, domain = text.removeprefix("mailto:").rpartition("@")
    _matched(_MAILBOX, mailbox)
    _if(mailbox, not (mailbox.startswith(".") or mailbox.endswith(".") or ".." in mailbox))
    return f"{mailbox}@{_matched(_DOMAIN, domain)[0].lower()}"


def integer(text: str) -> int:
    """An integer, parsed like `number`. Raises ValueError for other texts and for fractions."""
    found = number(text)
    _if(text, isinstance(found, int))
    return int(found)


def number(text: str) -> int | float:
    """A number with a point or a comma as decimal mark, and optional thousands separators; an int without decimals.
    Raises ValueError for other texts."""
    _matched(_NUMBER, text)
    plain = _SPACES.sub("", text)
    if _INTEGER.fullmatch(plain):
        return int(plain)
    marks = [one for one in plain if one in ".,"]
    if not marks:
        raise ValueError(text)
    last = marks[-1]
    if len(set(marks)) == 1 and (len(marks) > 1 or (last == "," and _has_thousands(plain, ","))):
        _if(plain, _has_thousands(plain, last))
        return int(plain.replace(last, ""))
    whole, _, fraction = plain.rpartition(last)
    _if(plain, fraction.isdecimal() and plain.count(last) == 1 and len(plain) <= 36)
    return float(f"{re.sub('[.,]', '', whole)}.{fraction}")


def _has_thousands(plain: str, mark: str) -> bool:
    first, *groups = plain.lstrip("+-").split(mark)
    return first.isdecimal() and len(first) <= 3 and all(len(one) == 3 and one.isdecimal() for one in groups)


def money(text: str) -> int | float:
    """An amount as a number; the currency is ignored. Raises ValueError for other texts."""
    return number(_CURRENCY.sub("", text).strip())


def percent(text: str) -> int | float:
    """A percentage as a number: 12.5 for `12.5 %`. Raises ValueError for other texts."""
    plain = text.removeprefix("百分之")
    for sign in ("%", "％", "percent", "per cent"):
        plain = plain.removesuffix(sign).strip()
    return number(plain)


def phone(text: str) -> str:
    """A telephone number: 5 to 15 digits, with a leading `+` if written. Raises ValueError for other texts."""
    digits = re.sub(r"\D", "", _matched(_PHONE, text)[0])
    _if(digits, len(digits) in _PHONE_DIGITS)
    return f"+{digits}" if text.startswith("+") else digits


def postcode(text: str) -> str:
    """A postcode in upper case: 3 to 10 letters and digits, with at least one digit. Raises ValueError for other
    texts."""
    code = _matched(_POSTCODE, text)[0].upper()
    return _if(code, any(map(str.isdecimal, code)) and len(re.sub(r"\W", "", code)) in _POSTCODE_CHARS)


def url(text: str) -> str:
    """A web address with http or https; a bare domain gets `https://`. Raises ValueError for other texts."""
    plain = text.strip("<>")
    if "://" not in plain and _DOMAIN.match(plain):
        plain = f"https://{plain}"
    host = re.sub(r":\d{1,5}$", "", _matched(_URL, plain)[1])
    if not _DOMAIN.fullmatch(host):
        ipaddress.ip_address(host.strip("[]"))
    return plain


def domain(text: str) -> str:
    """A domain in lower case, without a final point. Raises ValueError for other texts."""
    return _matched(_DOMAIN, text.rstrip("."))[0].lower()


def ip(text: str) -> str:
    """An IPv4 or IPv6 address in canonical form. Raises ValueError for other texts."""
    return str(ipaddress.ip_address(text))


def uuid_(text: str) -> str:
    """A UUID in canonical form, with hyphens and in lower case. Raises ValueError for other texts."""
    return str(uuid.UUID(text))


def color(text: str) -> str:
    """A colour as `#rrggbb`, from a name of COLORS or 3 or 6 hexadecimal digits. Raises ValueError for other texts."""
    word = text.strip(" .!。！").casefold()
    named = COLORS.get(word) or COLORS.get(word.removesuffix("色"))
    if named is not None:
        return named
    digits: str = _matched(_HEX, word)[1]
    return "#" + (digits if len(digits) == 6 else "".join(digit * 2 for digit in digits))


def language(text: str) -> str:
    """The tag, such as `en` or `pt-br`, of a language given by name or tag. Raises ValueError for other texts."""
    word = text.strip(" .!。！").casefold()
    return LANGUAGES.get(word) or _matched(_TAG, word)[0].replace("_", "-")


def username(text: str) -> str:
    """A user name without the @: at most 64 letters, digits, `_`, `.` and `-`. Raises ValueError for other texts."""
    return str(_matched(_USERNAME, text)[1])


def year(text: str) -> int:
    """A year from 1 to 9999. Raises ValueError for other texts."""
    digits = text.removesuffix("年").strip()
    _if(digits, digits.isdecimal() and len(digits) <= 4 and int(digits) > 0)
    return int(digits)


def _matched(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return found


def _if(text: str, holds: bool) -> str:
    if not holds:
        raise ValueError(text)
    return text


_MOST_CHARS = 8000
_SHORT_CHARS = 254
_FEWEST_LETTERS = 3
_USUAL_TIME = time(9)
_TRUE, _FALSE = frozenset({"true", "1", "on", "对", "真"}), frozenset({"false", "0", "off", "错", "假"})


class AnswerMismatch(ValueError):
    """The answer does not fit the question."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with the context for parsing it."""

    text: str
    attachments: Sequence[Attachment]
    now: datetime
    """Timezone-aware, in the chat's time zone."""
    times: Times
    texts: Phrases


Reader = Callable[[Answer], Value]
"""Returns the value; raises ValueError."""


def read(kind: str, heard: Answer) -> Value:
    """Parse the answer as a `kind` of KINDS. Raises AnswerMismatch if it is not of this kind."""
    try:
        return KINDS[kind](heard)
    except (ValueError, OverflowError):
        raise AnswerMismatch(kind) from None


def chosen(choices: Sequence[str], said: str) -> str:
    """The choice meant by `said`: its text, its number, or an unambiguous prefix. Raises AnswerMismatch if it is none
    of these."""
    wanted = _folded(said)
    for choice in choices:
        if _folded(choice) == wanted:
            return choice
    if wanted.isdecimal() and wanted.isascii() and 1 <= int(wanted[:9]) <= len(choices):
        return choices[int(wanted[:9]) - 1]
    near = [choice for choice in choices if wanted and _folded(choice).startswith(wanted)]
    if len(near) != 1:
        raise AnswerMismatch
    return near[0]


def _folded(text: str) -> str:
    return " ".join(text.split()).strip(" .!。！").casefold()


def _text(heard: Answer) -> str:
    text = heard.text.strip()
    if not text or len(text) > _MOST_CHARS:
        raise AnswerMismatch
    return text


def _line(heard: Answer) -> str:
    text = " ".join(_text(heard).split())
    if len(text) > _SHORT_CHARS:
        raise AnswerMismatch
    return text


def _formed(form: Callable[[str], Value]) -> Reader:
    return lambda heard: form(_line(heard))


def _boolean(heard: Answer) -> bool:
    word = _folded(heard.text)
    if word in _TRUE | _FALSE:
        return word in _TRUE
    kind = read_yes_or_no(heard.text, heard.texts).kind
    if kind is Answered.UNRELATED:
        raise AnswerMismatch
    return kind is Answered.YES


def _reading(heard: Answer, *kinds: Kind) -> Reading:
    found = heard.times.read(_line(heard), heard.now)
    if found is None or found.kind not in kinds or found.problem is not None:
        raise AnswerMismatch
    return found


def _date(heard: Answer) -> str:
    try:
        return datetime.strptime(_line(heard), "%Y-%m-%d").date().isoformat()  # noqa: DTZ007 - a date has no zone
    except ValueError:
        return _reading(heard, Kind.DAY, Kind.INSTANT).start.date().isoformat()


def _hour(heard: Answer) -> str:
    return _reading(heard, Kind.TIME_OF_DAY, Kind.INSTANT).start.time().isoformat("minutes")


def _datetime(heard: Answer) -> str:
    """A date and time as `YYYY-MM-DD HH:MM:SS`, in the chat's time zone. A time of day without a date is its next
    occurrence; a date without a time is rejected. Raises AnswerMismatch."""
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


def _duration(heard: Answer) -> int:
    """A length of time in whole seconds. Raises AnswerMismatch for other texts and for negative lengths."""
    length = _reading(heard, Kind.DURATION).length
    if length is None or length.total_seconds() < 0:
        raise AnswerMismatch
    return round(length.total_seconds())


def _weekday(heard: Answer) -> str:
    """The English name of a weekday, so that scripts can compare it. Raises AnswerMismatch for other texts."""
    return DAYS["en"][_place(heard, "time.weekdays", DAYS["en"])]


def _month(heard: Answer) -> int:
    """A month as 1 to 12, from its number or name. Raises AnswerMismatch for other texts."""
    digits = _folded(heard.text).removesuffix("月")
    if digits.isdecimal() and len(digits) <= 2 and 1 <= int(digits) <= 12:
        return int(digits)
    return _place(heard, "time.months", MONTHS["en"]) + 1


def _place(heard: Answer, key: str, english: Sequence[str]) -> int:
    """Index of a name from `config/texts/`, in the chat's language or in English; 3 letters of its beginning suffice.
    Raises AnswerMismatch for other texts."""
    wanted = _folded(heard.text)
    for names in (heard.texts.words(key), english):
        for place, name in enumerate(names):
            folded = name.casefold()
            is_beginning = len(wanted) >= _FEWEST_LETTERS and wanted.isascii() and folded.startswith(wanted)
            if wanted == folded or is_beginning:
                return place
    raise AnswerMismatch


def _timezone(heard: Answer) -> str:
    try:
        return ZoneInfo(_line(heard).replace(" ", "_")).key
    except (KeyError, OSError):
        raise AnswerMismatch from None


def _attached(media: str) -> Reader:
    """Reader of the first file of this media type, as a map with `name`, `type`, `url` and `size` (bytes). It raises
    AnswerMismatch without such a file."""

    def read_one(heard: Answer) -> Value:
        for one in heard.attachments:
            if one.media_type.casefold().startswith(media):
                return {"name": one.name, "type": one.media_type, "url": one.url, "size": one.size_bytes}
        raise AnswerMismatch

    return read_one


KINDS: Mapping[str, Reader] = {
    "text": _text,
    "name": _formed(name),
    "email": _formed(email),
    "integer": _formed(integer),
    "number": _formed(number),
    "boolean": _boolean,
    "date": _date,
    "hour": _hour,
    "datetime": _datetime,
    "duration": _duration,
    "weekday": _weekday,
    "month": _month,
    "year": _formed(year),
    "money": _formed(money),
    "percent": _formed(percent),
    "mobile": _formed(phone),
    "zipcode": _formed(postcode),
    "url": _formed(url),
    "domain": _formed(domain),
    "ip": _formed(ip),
    "uuid": _formed(uuid_),
    "color": _formed(color),
    "language": _formed(language),
    "timezone": _timezone,
    "username": _formed(username),
    "file": _attached(""),
    "image": _attached("image/"),
    "audio": _attached("audio/"),
    "video": _attached("video/"),
}
"""Kinds of answers. Each has a sentence in `config/texts/`: `basic.hear.<kind>`."""
