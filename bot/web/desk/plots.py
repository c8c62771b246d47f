"""Plots as SVG, coloured by the style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 480, 120, 40, 8, 18


class Series(NamedTuple):
    """Values of one kind, one for each place on the axis; `name` is shown in the legend."""

    name: str
    values: Sequence[float]
    style: str
    """Class of the style sheet, such as `good` or `bad`."""


def bars(title: str, labels: Sequence[str], series: Sequence[Series], *, unit: str = "") -> Markup:
    """Stacked bars with an axis from 0 to a round maximum, and a tooltip with the values at each place."""
    totals = [sum(values) for values in zip(*(each.values for each in series), strict=True)]
    most = _round_up(max(totals, default=0))
    slot = (_WIDTH - _LEFT) / max(len(labels), 1)
    parts = [_axis(labels, most, slot)]
    for place, label in enumerate(labels):
        bottom, x = float(_HEIGHT - _BOTTOM), _LEFT + place * slot
        shown = ", ".join(f"{each.name} {_number(each.values[place])}{unit}" for each in series if each.values[place])
        rows = []
        for each in series:
            height = each.values[place] / most * (_HEIGHT - _TOP - _BOTTOM)
            bottom -= height
            rows.append(_BAR.format(each.style, x + slot * 0.12, bottom, slot * 0.76, height))
        box = _BAR.format("hover", x, _TOP, slot, _HEIGHT - _TOP - _BOTTOM)
        parts.append(f"<g><title>{escape(label)}: {escape(shown or '0')}</title>{box}{''.join(rows)}</g>")
    return _figure(title, "".join(parts), series, sum(totals), unit)


def lines(title: str, labels: Sequence[str], series: Sequence[Series], *, unit: str = "") -> Markup:
    """Lines over the same axis; 0 interrupts a line, since nothing was measured there."""
    most = _round_up(max((value for each in series for value in each.values), default=0))
    slot = (_WIDTH - _LEFT) / max(len(labels), 1)
    parts = [_axis(labels, most, slot)]
    for each in series:
        points = [
            (_LEFT + (place + 0.5) * slot, _HEIGHT - _BOTTOM - value / most * (_HEIGHT - _TOP - _BOTTOM), value, label)
            for place, (value, label) in enumerate(zip(each.values, labels, strict=True))
            if value
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _, _ in points)
        parts.append(f'<polyline class="line {each.style}" points="{path}"/>')
        for x, y, value, label in points:
            about = f"{escape(label)}: {escape(each.name)} {_number(value)}{escape(unit)}"
            parts.append(_DOT.format(each.style, x, y, about))
    return _figure(title, "".join(parts), series, None, unit)


_DOT = '<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="3"><title>{}</title></circle>'
_RULE = '<line x1="{}" x2="{}" y1="{}" y2="{}"/>'
_BAR = '<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>'


def _axis(labels: Sequence[str], most: float, slot: float) -> str:
    low = _HEIGHT - _BOTTOM
    parts = [
        _RULE.format(_LEFT, _WIDTH, low, low),
        _RULE.format(_LEFT, _WIDTH, _TOP, _TOP),
        f'<text x="{_LEFT - 4}" y="{low}" class="end">0</text>',
        f'<text x="{_LEFT - 4}" y="{_TOP + 8}" class="end">{_number(most)}</text>',
    ]
    every = max(1, len(labels) // 6)
    parts += [
        f'<text x="{_LEFT + (place + 0.5) * slot:.1f}" y="{_HEIGHT - 4}" class="middle">{escape(label)}</text>'
        for place, label in enumerate(labels)
        if place % every == 0
    ]
    return "".join(parts)


def _figure(title: str, inner: str, series: Sequence[Series], total: float | None, unit: str) -> Markup:
    # Inline SVG of our own numbers; every text in it is escaped.
    legend = "".join(f'<li class="{each.style}">{escape(each.name)}</li>' for each in series)
    amount = "" if total is None else f" <b>{_number(total)}{escape(unit)}</b>"
    return Markup(  # noqa: S704
        f"<figure><figcaption>{escape(title)}{amount}</figcaption>"
        f'<svg class="plot" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">{inner}</svg>'
        f'<ul class="legend">{legend}</ul></figure>'
    )


def _round_up(value: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is not below `value`; 1 for 0."""
    if value <= 0:
        return 1.0
    power = 10.0 ** (len(f"{value:.0f}") - 1 if value >= 1 else -6)
    while True:
        for step in (1, 2, 5):
            if step * power >= value:
                return step * power
        power *= 10


def _number(value: float) -> str:
    if value >= 10_000:
        return f"{value / 1000:.0f}k"
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
