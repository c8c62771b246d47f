"""Texts that have a form of their own: numbers, addresses, codes. Each reader takes a line without spaces around it and
raises ValueError where it is none of its kind."""

from __future__ import annotations

import ipaddress
import re
import uuid

from function_calls.scripts.heard_words import COLORS, LANGUAGES
from services.lazy_patterns import lazy_pattern

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
    """What people are called."""
    is_odd = any(not (character.isalpha() or character in _IN_NAMES) for character in text)
    return _if(text, any(map(str.isalpha, text)) and not is_odd and len(text) <= _MOST_NAME_CHARS)


def email(text: str) -> str:
    """An address for letters, its domain in lower case."""
    mailbox, _, domain = text.removeprefix("mailto:").rpartition("@")
    _matched(_MAILBOX, mailbox)
    _if(mailbox, not (mailbox.startswith(".") or mailbox.endswith(".") or ".." in mailbox))
    return f"{mailbox}@{_matched(_DOMAIN, domain)[0].lower()}"


def integer(text: str) -> int:
    """A whole number."""
    found = number(text)
    _if(text, isinstance(found, int))
    return int(found)


def number(text: str) -> int | float:
    """A number with a point or a comma before its fraction, and marks between its thousands."""
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
    """An amount, whatever its currency."""
    return number(_CURRENCY.sub("", text).strip())


def percent(text: str) -> int | float:
    """How many of a hundred."""
    plain = text.removeprefix("百分之")
    for sign in ("%", "％", "percent", "per cent"):
        plain = plain.removesuffix(sign).strip()
    return number(plain)


def phone(text: str) -> str:
    """A telephone's number: its digits, with `+` where it was written with one."""
    digits = re.sub(r"\D", "", _matched(_PHONE, text)[0])
    _if(digits, len(digits) in _PHONE_DIGITS)
    return f"+{digits}" if text.startswith("+") else digits


def postcode(text: str) -> str:
    """In upper case. Some countries have letters in it, and all have digits."""
    code = _matched(_POSTCODE, text)[0].upper()
    return _if(code, any(map(str.isdecimal, code)) and len(re.sub(r"\W", "", code)) in _POSTCODE_CHARS)


def url(text: str) -> str:
    """An address of the web; of a bare domain with https:// before it."""
    plain = text.strip("<>")
    if "://" not in plain and _DOMAIN.match(plain):
        plain = f"https://{plain}"
    host = re.sub(r":\d{1,5}$", "", _matched(_URL, plain)[1])
    if not _DOMAIN.fullmatch(host):
        ipaddress.ip_address(host.strip("[]"))
    return plain


def domain(text: str) -> str:
    """In lower case."""
    return _matched(_DOMAIN, text.rstrip("."))[0].lower()


def ip(text: str) -> str:
    """An address of the internet, of either kind."""
    return str(ipaddress.ip_address(text))


def uuid_(text: str) -> str:
    """In its usual form."""
    return str(uuid.UUID(text))


def color(text: str) -> str:
    """As web pages write it: `#rrggbb`."""
    word = text.strip(" .!。！").casefold()
    named = COLORS.get(word) or COLORS.get(word.removesuffix("色"))
    if named is not None:
        return named
    digits: str = _matched(_HEX, word)[1]
    return "#" + (digits if len(digits) == 6 else "".join(digit * 2 for digit in digits))


def language(text: str) -> str:
    """Its tag: `en`, `pt-br`."""
    word = text.strip(" .!。！").casefold()
    return LANGUAGES.get(word) or _matched(_TAG, word)[0].replace("_", "-")


def username(text: str) -> str:
    """Without the @."""
    return str(_matched(_USERNAME, text)[1])


def year(text: str) -> int:
    """1 to 9999."""
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
