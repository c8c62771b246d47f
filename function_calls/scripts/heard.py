"""What a member said to a script, read as what the script asked for: an address, a day, an amount …"""

from __future__ import annotations

import ipaddress
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time
from zoneinfo import ZoneInfo

from config.texts import Phrases
from function_calls.answers import Answered, read_yes_or_no
from function_calls.basic.keywords import Value
from function_calls.context import Attachment
from services.times import Kind, Reading, Times

_MOST_CHARS = 8000
_SHORT_CHARS = 254
_LABEL = r"[^\W_](?:[\w-]{0,61}[^\W_])?"
_DOMAIN = re.compile(rf"(?:{_LABEL}\.)+[^\W\d_](?:[\w-]{{0,61}}[^\W_])?", re.IGNORECASE)
_EMAIL = re.compile(r"[^\s@<>()\[\],;:\"\\]{1,64}")
_INTEGER = re.compile(r"[+-]?\d{1,18}")
_URL = re.compile(r"https?://[^\s/?#@]+(?:[/?#]\S*)?", re.IGNORECASE)
_PHONE = re.compile(r"\+?[\d\s().-]{5,30}")
_POSTCODE = re.compile(r"[A-Z\d](?:[A-Z\d -]{1,10})[A-Z\d]", re.IGNORECASE)
_USERNAME = re.compile(r"@?([\w][\w.-]{0,63})")
_HEX = re.compile(r"#?([0-9a-f]{6}|[0-9a-f]{3})", re.IGNORECASE)
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:[-_][a-z\d]{2,8})*", re.IGNORECASE)
_CURRENCY = re.compile(r"[€$£¥₹₩元円]|\b[A-Za-z]{3}\b|R\$")
_NUMBER = re.compile(r"[+-]?\d[\d.,'\u00a0\u202f ]*")
_COLORS = {
    "black": "#000000", "white": "#ffffff", "red": "#ff0000", "green": "#008000", "blue": "#0000ff",
    "yellow": "#ffff00", "orange": "#ffa500", "purple": "#800080", "pink": "#ffc0cb", "brown": "#a52a2a",
    "grey": "#808080", "gray": "#808080", "cyan": "#00ffff", "magenta": "#ff00ff", "gold": "#ffd700",
    "silver": "#c0c0c0", "navy": "#000080", "teal": "#008080", "lime": "#00ff00", "violet": "#ee82ee",
    "黑": "#000000", "白": "#ffffff", "红": "#ff0000", "绿": "#008000", "蓝": "#0000ff", "黄": "#ffff00",
    "橙": "#ffa500", "紫": "#800080", "粉": "#ffc0cb", "棕": "#a52a2a", "灰": "#808080", "金": "#ffd700",
    "银": "#c0c0c0", "青": "#00ffff",
}  # fmt: skip
_LANGUAGES = {
    "english": "en", "chinese": "zh", "mandarin": "zh", "spanish": "es", "portuguese": "pt", "french": "fr",
    "german": "de", "italian": "it", "dutch": "nl", "norwegian": "no", "swedish": "sv", "danish": "da",
    "finnish": "fi", "polish": "pl", "russian": "ru", "ukrainian": "uk", "turkish": "tr", "arabic": "ar",
    "hebrew": "he", "hindi": "hi", "japanese": "ja", "korean": "ko", "vietnamese": "vi", "thai": "th",
    "indonesian": "id", "greek": "el", "czech": "cs", "hungarian": "hu", "romanian": "ro",
    "英语": "en", "英文": "en", "中文": "zh", "汉语": "zh", "普通话": "zh", "日语": "ja", "日文": "ja", "韩语": "ko",
    "法语": "fr", "德语": "de", "西班牙语": "es", "俄语": "ru", "意大利语": "it", "葡萄牙语": "pt", "阿拉伯语": "ar",
}  # fmt: skip


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
"""The value; raises NotHeard."""


def read(kind: str, heard: Heard) -> Value:
    """What `heard` means as a `kind` of KINDS. Raises NotHeard."""
    return KINDS[kind](heard)


def chosen(choices: Sequence[str], said: str) -> str:
    """Which of `choices` was said: in its words, by its number, or by a beginning that only one has. Raises NotHeard."""
    wanted = _folded(said)
    for choice in choices:
        if _folded(choice) == wanted:
            return choice
    if wanted.isdecimal() and 1 <= int(wanted) <= len(choices):
        return choices[int(wanted) - 1]
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


def _short(heard: Heard) -> str:
    text = " ".join(_text(heard).split())
    if len(text) > _SHORT_CHARS:
        raise NotHeard
    return text


def _matched(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    if found is None:
        raise NotHeard
    return found


def _name(heard: Heard) -> str:
    name = _short(heard)
    letters = sum(character.isalpha() for character in name)
    odd = any(not (character.isalpha() or character in " .'’-·,") for character in name)
    if not letters or odd or len(name) > 100:
        raise NotHeard
    return name


def _email(heard: Heard) -> str:
    local, _, domain = _short(heard).removeprefix("mailto:").rpartition("@")
    _matched(_EMAIL, local)
    if local.startswith(".") or local.endswith(".") or ".." in local:
        raise NotHeard
    return f"{local}@{_matched(_DOMAIN, domain)[0].lower()}"


def _integer(heard: Heard) -> int:
    number = _number(heard)
    if isinstance(number, float):
        raise NotHeard
    return number


def _number(heard: Heard) -> int | float:
    return _number_of(_short(heard))


def _number_of(text: str) -> int | float:
    """A number with a point or a comma before its fraction, and marks between its thousands."""
    _matched(_NUMBER, text)
    plain = re.sub(r"['\u00a0\u202f ]", "", text)
    if _INTEGER.fullmatch(plain):
        return int(plain)
    marks = [one for one in plain if one in ".,"]
    last = max(plain.rfind("."), plain.rfind(","))
    is_thousands = len(set(marks)) == 1 and (len(marks) > 1 or (plain[last] == "," and _in_thousands(plain, ",")))
    if is_thousands:
        if not _in_thousands(plain, plain[last]):
            raise NotHeard
        return int(plain.replace(plain[last], ""))
    whole, fraction = re.sub("[.,]", "", plain[:last]), plain[last + 1 :]
    if not fraction.isdecimal() or len(whole) > 18 or len(fraction) > 18 or plain.count(plain[last]) > 1:
        raise NotHeard
    return float(f"{whole or 0}.{fraction}")


def _in_thousands(plain: str, mark: str) -> bool:
    first, *groups = plain.lstrip("+-").split(mark)
    return 1 <= len(first) <= 3 and all(len(one) == 3 and one.isdecimal() for one in groups)


def _money(heard: Heard) -> int | float:
    return _number_of(_CURRENCY.sub("", _short(heard)).strip())


def _percent(heard: Heard) -> int | float:
    text = _short(heard).removesuffix("%").removesuffix("％").strip()
    for word in ("percent", "per cent"):
        text = text.removesuffix(word).strip()
    return _number_of(text.removeprefix("百分之"))


def _boolean(heard: Heard) -> bool:
    word = _folded(heard.text)
    if word in ("true", "1", "on", "对", "真"):
        return True
    if word in ("false", "0", "off", "错", "假"):
        return False
    kind = read_yes_or_no(heard.text, heard.texts).kind
    if kind is Answered.UNRELATED:
        raise NotHeard
    return kind is Answered.YES


def _reading(heard: Heard, *kinds: Kind) -> Reading:
    found = heard.times.read(_short(heard), heard.now)
    if found is None or found.kind not in kinds or found.trouble is not None:
        raise NotHeard
    return found


def _date(heard: Heard) -> str:
    text = _short(heard)
    try:
        return datetime.strptime(text, "%Y-%m-%d").date().isoformat()  # noqa: DTZ007 - a day has no zone
    except ValueError:
        return _reading(heard, Kind.DAY, Kind.INSTANT).start.date().isoformat()


def _time(heard: Heard) -> str:
    try:
        return time.fromisoformat(_short(heard)).replace(tzinfo=None, microsecond=0).isoformat("minutes")
    except ValueError:
        found = _reading(heard, Kind.TIME_OF_DAY, Kind.INSTANT)
        return found.start.time().isoformat("minutes")


def _datetime(heard: Heard) -> str:
    try:
        read_ = datetime.fromisoformat(_short(heard))
    except ValueError:
        read_ = None
    if read_ is None or "-" not in heard.text or ":" not in heard.text:
        found = _reading(heard, Kind.INSTANT, Kind.TIME_OF_DAY, Kind.DURATION)
        return found.moment(time(9)).replace(microsecond=0).isoformat(sep=" ")
    here = read_ if read_.tzinfo is None else read_.astimezone(heard.now.tzinfo)
    return here.replace(tzinfo=None, microsecond=0).isoformat(sep=" ")


def _duration(heard: Heard) -> int:
    found = _reading(heard, Kind.DURATION)
    if found.length is None or found.length.total_seconds() < 0:
        raise NotHeard
    return round(found.length.total_seconds())


def _weekday(heard: Heard) -> str:
    return _named_in(heard, "time.weekdays", _WEEKDAYS)


def _month(heard: Heard) -> int:
    text = _folded(heard.text)
    number = text.removesuffix("月")
    if number.isdecimal() and 1 <= int(number) <= len(_MONTHS):
        return int(number)
    return _MONTHS.index(_named_in(heard, "time.months", _MONTHS)) + 1


def _named_in(heard: Heard, key: str, english: Sequence[str]) -> str:
    """Which of the names in a list of the texts was said, in the chat's language or in English; its English name."""
    wanted = _folded(heard.text)
    own = heard.texts.words(key)
    for names in (own if len(own) == len(english) else english, english):
        for place, name in enumerate(names):
            folded = name.casefold()
            if wanted == folded or (len(wanted) >= 3 and wanted.isascii() and folded.startswith(wanted)):
                return english[place]
    raise NotHeard


def _year(heard: Heard) -> int:
    text = _short(heard).removesuffix("年").strip()
    if not text.isdecimal() or not 1 <= int(text[:9]) <= 9999 or len(text) > 4:
        raise NotHeard
    return int(text)


def _phone(heard: Heard) -> str:
    text = _matched(_PHONE, _short(heard))[0]
    digits = re.sub(r"\D", "", text)
    if not 5 <= len(digits) <= 15:
        raise NotHeard
    return f"+{digits}" if text.startswith("+") else digits


def _postcode(heard: Heard) -> str:
    code = " ".join(_matched(_POSTCODE, _short(heard))[0].upper().split())
    if not any(character.isdecimal() for character in code) or not 3 <= len(re.sub(r"\W", "", code)) <= 10:
        raise NotHeard
    return code


def _url(heard: Heard) -> str:
    text = _short(heard).strip("<>")
    if "://" not in text and _DOMAIN.match(text):
        text = f"https://{text}"
    host = re.sub(r":\d{1,5}$", "", _matched(_URL, text)[0].split("/")[2].split("?")[0].split("#")[0])
    if not _DOMAIN.fullmatch(host) and not _is_address(host.strip("[]")):
        raise NotHeard
    return text


def _domain(heard: Heard) -> str:
    return _matched(_DOMAIN, _short(heard).rstrip("."))[0].lower()


def _ip(heard: Heard) -> str:
    try:
        return str(ipaddress.ip_address(_short(heard)))
    except ValueError:
        raise NotHeard from None


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _uuid(heard: Heard) -> str:
    text = _short(heard)
    try:
        found = uuid.UUID(text)
    except ValueError:
        raise NotHeard from None
    return str(found)


def _color(heard: Heard) -> str:
    text = _folded(heard.text)
    named = _COLORS.get(text) or _COLORS.get(text.removesuffix("色"))
    if named is not None:
        return named
    digits = _matched(_HEX, text)[1].lower()
    return "#" + (digits if len(digits) == 6 else "".join(digit * 2 for digit in digits))


def _language(heard: Heard) -> str:
    text = _folded(heard.text)
    named = _LANGUAGES.get(text)
    if named is not None:
        return named
    tag = _matched(_LANGUAGE, text)[0].replace("_", "-")
    first = tag.partition("-")[0]
    if len(first) == 3 and first not in ("yue", "fil", "haw"):
        raise NotHeard
    return tag


def _timezone(heard: Heard) -> str:
    text = _short(heard).replace(" ", "_")
    try:
        return ZoneInfo(text).key
    except (ValueError, KeyError, OSError):
        raise NotHeard from None


def _username(heard: Heard) -> str:
    return _matched(_USERNAME, _short(heard))[1]


def _file(heard: Heard) -> Value:
    return _attached(heard, "")


def _image(heard: Heard) -> Value:
    return _attached(heard, "image/")


def _audio(heard: Heard) -> Value:
    return _attached(heard, "audio/")


def _video(heard: Heard) -> Value:
    return _attached(heard, "video/")


def _attached(heard: Heard, media: str) -> Value:
    """The first file of that kind, as a map."""
    for one in heard.attachments:
        if one.media_type.casefold().startswith(media):
            return {"name": one.name, "type": one.media_type, "url": one.url, "size": one.size_bytes}
    raise NotHeard


_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip

KINDS: Mapping[str, Reader] = {
    "text": _text,
    "name": _name,
    "email": _email,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "date": _date,
    "hour": _time,
    "datetime": _datetime,
    "duration": _duration,
    "weekday": _weekday,
    "month": _month,
    "year": _year,
    "money": _money,
    "percent": _percent,
    "mobile": _phone,
    "zipcode": _postcode,
    "url": _url,
    "domain": _domain,
    "ip": _ip,
    "uuid": _uuid,
    "color": _color,
    "language": _language,
    "timezone": _timezone,
    "username": _username,
    "file": _file,
    "image": _image,
    "audio": _audio,
    "video": _video,
}
"""What a script may ask for. Each has its sentence in `config/texts/`: `basic.hear.<kind>`."""
ALIASES: Mapping[str, str] = {
    "string": "text", "any": "text", "float": "number", "decimal": "number", "int": "integer", "yesno": "boolean",
    "bool": "boolean", "time": "hour", "day": "date", "currency": "money", "phone": "mobile", "tel": "mobile",
    "postcode": "zipcode", "zip": "zipcode", "link": "url", "website": "url", "guid": "uuid", "colour": "color",
    "mail": "email", "document": "file", "photo": "image", "picture": "image", "user": "username",
}  # fmt: skip
"""Other words for some of them."""
FILES = frozenset({"file", "image", "audio", "video"})
"""Those that are no words."""
