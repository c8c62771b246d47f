"""Charts as PNG files: the weather of a week and the votes of a poll. Needs Pillow, the extra `pictures`."""

from __future__ import annotations

import io
import math
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain, pairwise
from typing import TYPE_CHECKING, cast

import structlog

from services.refs import ChatRef
from services.threads import Threads
from services.web.content import data_url
from services.web.weather import DayWeather

if TYPE_CHECKING:
    from PIL import ImageFont

_log = structlog.get_logger("pictures")
_FONTS = {
    "": 0,
    "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf": 0,
    "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc": 2,
    "/usr/share/fonts/noto-cjk/NotoSansCJK-Regular.ttc": 2,
    "/usr/share/fonts/truetype/wqy/wqy-zenhei.ttc": 0,
    "/System/Library/Fonts/PingFang.ttc": 2,
    "C:/Windows/Fonts/msyh.ttc": 0,
}
"""Fonts of usual systems with the index of the face for simplified Chinese; empty: Pillow's own, for Latin letters. The
first that has all characters is used."""
_ALWAYS = "0123456789-%°."
_NO_CHARACTER = "\U0010ffff"
_NOT_IN_FONTS = frozenset({"So", "Sk", "Cf", "Cn", "Co", "Cs"})
_SCALE, _SMOOTH, _MOST_COLOURS = 4, 2, 128
"""Drawn in four times the nominal size, and reduced to half of it for smooth edges."""
_WIDTH, _MARGIN, _LINE = 720, 32, 32
_ROOM = _WIDTH - 2 * _MARGIN
_PAPER, _INK, _GREY, _TRACK = "#ffffff", "#1f2933", "#616e7c", "#e9edf2"
_ACCENT, _PALE, _RAIN = "#2f6fde", "#a9c4f5", "#5aa9e6"
_TEMPERATURES = (
    (-10, (98, 92, 200)),
    (0, (70, 134, 220)),
    (11, (62, 180, 160)),
    (20, (244, 196, 74)),
    (32, (226, 86, 62)),
)
"""Degrees Celsius with their colours."""
_ROW, _BAR = 58, 14
_RANGE_TOP, _RANGE, _RAIN_TOP, _RAIN_HEIGHT = 96, 130, 294, 56


@dataclass(frozen=True, slots=True)
class VoteChart:
    """Votes of a poll."""

    title: str
    options: Sequence[tuple[str, int]]
    """Texts and votes."""
    foot: str


@dataclass(frozen=True, slots=True)
class WeekChart:
    """Weather of some days."""

    title: str
    days: Sequence[DayWeather]
    labels: Sequence[tuple[str, str]]
    """Name and weather of each day in words."""
    rain_label: str


Chart = VoteChart | WeekChart


class Pictures:
    """Draws charts for chats whose network can send files; nothing without Pillow or a font with the characters."""

    def __init__(self, font: str = "", file_bytes: Callable[[ChatRef], int] = lambda chat: 0) -> None:
        """`font`: path of a font that is tried first. `file_bytes`: maximum size of a file that the bot can send in a
        chat; 0: none."""
        self._font = font
        self._file_bytes = file_bytes
        self._threads = Threads(2)

    async def drawn(self, chat: ChatRef, chart: Chart) -> str:
        """PNG of `chart` as a data URL; empty if it cannot be drawn, or not be sent in `chat`."""
        most = self._file_bytes(chat)
        if not most or find_spec("PIL") is None:
            return ""
        content = await self._threads.run(draw, chart, self._font)
        return data_url(content, "image/png") if content is not None and len(content) <= most else ""


def draw(chart: Chart, font: str = "") -> bytes | None:
    """PNG of `chart` in twice its nominal size; None if no font has its characters. Blocks; needs Pillow."""
    if isinstance(chart, VoteChart):
        face = _face([chart.title, chart.foot, *(text for text, _ in chart.options)], font)
        canvas = _votes(chart, face) if face is not None else None
    else:
        face = _face([chart.title, chart.rain_label, *chain(*chart.labels)], font)
        canvas = _week(chart, face) if face is not None else None
    if canvas is None:
        return None
    content = io.BytesIO()
    canvas.image.reduce(_SMOOTH).quantize(_MOST_COLOURS).save(content, "PNG", optimize=True)
    return content.getvalue()


def _face(texts: Sequence[str], preferred: str) -> _Face | None:
    """The first font with all characters of `texts`; None if there is none, if a text has only emoji, or if a script
    needs shaping that is not installed."""
    from PIL import features

    signs = {sign for text in texts for sign in _drawable(text) if sign != " "}
    if not all(_drawable(text) for text in texts if text.strip()):
        return None
    if not features.check("raqm") and any(unicodedata.bidirectional(sign) in ("R", "AL", "NSM") for sign in signs):
        return None
    for path, index in ({preferred: 0} | _FONTS if preferred else _FONTS).items():
        try:
            face = _Face(path, index)
            if face.has(signs.union(_ALWAYS)):
                return face
        except OSError:
            if path == preferred:
                _log.warning("font_unusable", path=path)
    return None


def _drawable(text: str) -> str:
    """`text` on one line, without the emoji and invisible characters that text fonts do not have."""
    plain = unicodedata.normalize("NFC", text).replace("\ufe0f", "")
    return " ".join("".join(" " if unicodedata.category(one) in _NOT_IN_FONTS else one for one in plain).split())


class _Face:
    """A font in several sizes, which are nominal pixels."""

    def __init__(self, path: str, index: int) -> None:
        """Raises OSError."""
        self._path = path
        self._index = index
        self._fonts: dict[int, ImageFont.FreeTypeFont] = {}
        self.of(16)

    def of(self, size: int) -> ImageFont.FreeTypeFont:
        """The font in that size."""
        from PIL import ImageFont

        if size not in self._fonts:
            pixels, path = size * _SCALE, self._path
            font = ImageFont.truetype(path, pixels, self._index) if path else ImageFont.load_default(pixels)
            self._fonts[size] = cast("ImageFont.FreeTypeFont", font)
            with suppress(OSError, ValueError):  # most fonts have no variations
                self._fonts[size].set_variation_by_name("Regular")
        return self._fonts[size]

    def has(self, signs: set[str]) -> bool:
        """Whether the font has a glyph for each of `signs`."""
        font = self.of(16)
        missing = bytes(font.getmask(_NO_CHARACTER))
        return all(bytes(font.getmask(sign)) != missing for sign in signs)

    def lines(self, text: str, size: int, width: float, most: int) -> list[str]:
        """`text` in at most `most` lines of `width`, the last one cut with an ellipsis."""
        plain = _drawable(text)
        parts = [f"{word} " for word in plain.split()] if " " in plain else list(plain)
        lines, room = [""], width * _SCALE
        for part in parts:
            if lines[-1] and len(lines) < most and self.of(size).getlength(lines[-1] + part.rstrip()) > room:
                lines.append("")
            lines[-1] += part
        for place, line in enumerate(lines):
            shown = lines[place] = line.rstrip()
            while shown and self.of(size).getlength(lines[place]) > room:
                shown = shown[:-1]
                lines[place] = f"{shown.rstrip()}..."
        return lines


class _Canvas:
    """An image with a title, drawn in nominal pixels."""

    def __init__(self, title: str, height: float, face: _Face) -> None:
        """`height` without the title."""
        from PIL import Image, ImageDraw

        lines = face.lines(title, 24, _ROOM, 2)
        self.top = 40 + _LINE * len(lines)
        """End of the title."""
        self.face = face
        self.image = Image.new("RGB", (_WIDTH * _SCALE, round((self.top + height) * _SCALE)), _PAPER)
        self._draw = ImageDraw.Draw(self.image)
        for place, line in enumerate(lines):
            self.text(_MARGIN, 46 + _LINE * place, line, 24, _INK)

    def text(self, x: float, y: float, text: str, size: int, colour: str, anchor: str = "ls") -> None:
        """`text` at the baseline `y`; `anchor` as in Pillow."""
        self._draw.text((x * _SCALE, y * _SCALE), text, colour, self.face.of(size), anchor)

    def bar(self, box: tuple[float, float, float, float], colour: str, *, is_round: bool = True) -> None:
        """A bar with round ends, or on a base with a round top."""
        left, top, right, bottom = (round(value * _SCALE) for value in box)
        radius = min(right - left, bottom - top) / (2 if is_round else 5)
        corners = (True, True, is_round, is_round)
        self._draw.rounded_rectangle((left, top, right, bottom), radius, colour, corners=corners)

    def range(self, x: float, top: float, bottom: float, high: float, low: float) -> None:
        """A round vertical bar in the colours from `high` to `low` degrees Celsius."""
        middle, upper, lower, radius = (round(value * _SCALE) for value in (x, top, bottom, 9))
        for y in range(upper, lower):
            off = max(0, upper + radius - y, y - lower + radius)
            half = math.sqrt(max(0, radius**2 - off**2))
            colour = _colour_of(high + (low - high) * (y - upper) / (lower - upper))
            self._draw.line((middle - half, y, middle + half, y), colour)


def _colour_of(celsius: float) -> tuple[int, int, int]:
    colder, warmer = _TEMPERATURES[0], _TEMPERATURES[-1]
    for one, other in pairwise(_TEMPERATURES):
        if one[0] <= celsius <= other[0]:
            colder, warmer = one, other
    part = min(1.0, max(0.0, (celsius - colder[0]) / (warmer[0] - colder[0])))
    red, green, blue = (round(a + (b - a) * part) for a, b in zip(colder[1], warmer[1], strict=True))
    return red, green, blue


def _votes(chart: VoteChart, face: _Face) -> _Canvas:
    canvas = _Canvas(chart.title, _ROW * len(chart.options) + 46, face)
    voters, most = sum(votes for _, votes in chart.options), max(votes for _, votes in chart.options)
    y, right = canvas.top, _WIDTH - _MARGIN
    for text, votes in chart.options:
        share, is_first = votes / max(1, voters), votes == most > 0
        canvas.text(_MARGIN, y + 20, face.lines(text, 17, _ROOM - 120, 1)[0], 17, _INK)
        canvas.text(right, y + 20, f"{round(100 * share)}%", 17, _ACCENT if is_first else _INK, "rs")
        canvas.text(right - 56, y + 20, str(votes), 17, _GREY, "rs")
        canvas.bar((_MARGIN, y + 30, right, y + 30 + _BAR), _TRACK)
        if votes:
            end = _MARGIN + max(_BAR, share * _ROOM)
            canvas.bar((_MARGIN, y + 30, end, y + 30 + _BAR), _ACCENT if is_first else _PALE)
        y += _ROW
    canvas.text(_MARGIN, y + 22, face.lines(chart.foot, 16, _ROOM, 1)[0], 16, _GREY)
    return canvas


def _week(chart: WeekChart, face: _Face) -> _Canvas:
    canvas = _Canvas(chart.title, _RAIN_TOP + _RAIN_HEIGHT + 42, face)
    column, top = _ROOM / len(chart.days), canvas.top
    base = top + _RAIN_TOP + _RAIN_HEIGHT
    known = [one for day in chart.days for one in (day.low_celsius, day.high_celsius) if one is not None] or [0.0]
    least, span = min(known), max(max(known) - min(known), 6.0)
    canvas.text(_MARGIN, base - _RAIN_HEIGHT - 14, face.lines(chart.rain_label, 13, _ROOM, 1)[0], 13, _GREY)
    canvas.bar((_MARGIN, base, _WIDTH - _MARGIN, base + 1), _TRACK)
    for place, (day, (name, sky)) in enumerate(zip(chart.days, chart.labels, strict=True)):
        x = _MARGIN + column * (place + 0.5)
        canvas.text(x, top + 20, face.lines(name, 15, column - 4, 1)[0], 15, _INK, "ms")
        for row, line in enumerate(face.lines(sky, 12, column - 8, 2)):
            canvas.text(x, top + 40 + 16 * row, line, 12, _GREY, "ms")
        if day.low_celsius is not None and day.high_celsius is not None:
            upper = top + _RANGE_TOP + _RANGE * (1 - (day.high_celsius - least) / span)
            lower = max(top + _RANGE_TOP + _RANGE * (1 - (day.low_celsius - least) / span), upper + 18)
            canvas.range(x, upper, lower, day.high_celsius, day.low_celsius)
            canvas.text(x, upper - 8, f"{round(day.high_celsius)}°", 17, _INK, "ms")
            canvas.text(x, lower + 21, f"{round(day.low_celsius)}°", 15, _GREY, "ms")
        if day.rain_percent is not None:
            height = max(1.5, _RAIN_HEIGHT * day.rain_percent / 100)
            canvas.bar((x - 15, base - height, x + 15, base), _RAIN, is_round=False)
            canvas.text(x, base + 20, f"{day.rain_percent}%", 14, _INK, "ms")
    return canvas
