"""Names of months and days, and words for units of time."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

Unit = str
"""year, quarter, month, week, day, hour, minute or second."""
_MONTHS = {
    "en": (
        "January", "February", "March", "April", "May", "June",
        "July", "August", "September", "October", "November", "December",
    ),
    "zh": ("一月", "二月", "三月", "四月", "五月", "六月", "七月", "八月", "九月", "十月", "十一月", "十二月"),
    "pt": (
        "janeiro", "fevereiro", "março", "abril", "maio", "junho",
        "julho", "agosto", "setembro", "outubro", "novembro", "dezembro",
    ),
    "es": (
        "enero", "febrero", "marzo", "abril", "mayo", "junio",
        "julio", "agosto", "septiembre", "octubre", "noviembre", "diciembre",
    ),
}  # fmt: skip
_DAYS = {
    "en": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "zh": ("星期一", "星期二", "星期三", "星期四", "星期五", "星期六", "星期日"),
    "pt": ("segunda-feira", "terça-feira", "quarta-feira", "quinta-feira", "sexta-feira", "sábado", "domingo"),
    "es": ("lunes", "martes", "miércoles", "jueves", "viernes", "sábado", "domingo"),
}
_HALVES = {"zh": ("上午", "下午")}
_UNIT_WORDS = {
    "year": "y yy yyyy year years 年",
    "quarter": "q qq quarter quarters 季度",
    "month": "m mm mon month months 月 个月",
    "week": "w ww wk week weeks 周 星期",
    "day": "d dd day days 天 日",
    "hour": "h hh hr hour hours 小时 时",
    "minute": "n nn mi min mins minute minutes 分钟 分",
    "second": "s ss sec secs second seconds 秒",
}
_UNITS: Mapping[str, Unit] = MappingProxyType(
    {word: unit for unit, words in _UNIT_WORDS.items() for word in words.split()}
)


def unit_of(word: str) -> Unit | None:
    """The unit that people and old programs call so; `m` is a month and `n` a minute. None for other words."""
    return _UNITS.get(word.strip().lower())


def month_name(month: int, language: str, *, short: bool = False) -> str:
    """Of the month 1 to 12; in English where the language has no names here."""
    if short and _known(language) == "zh":
        return f"{month}月"
    name = _MONTHS[_known(language)][month - 1]
    return name[:3] if short else name


def day_name(weekday: int, language: str, *, short: bool = False) -> str:
    """Of the day of the week, from 0 for Monday."""
    name = _DAYS[_known(language)][weekday]
    if not short:
        return name
    return f"周{name[-1]}" if _known(language) == "zh" else name[:3]


def half_name(hour: int, language: str) -> str:
    """AM or PM."""
    return _HALVES.get(_known(language), ("AM", "PM"))[hour >= 12]


def _known(language: str) -> str:
    short = language.replace("_", "-").split("-")[0].lower()
    return short if short in _MONTHS else "en"
