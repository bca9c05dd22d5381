"""Draw dot plots and line plots as SVG, without a library, so that the same figures always give the same bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

from carag.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Sequence


# Lengths are in SVG user units, which are pixels at the picture's own size.
_WIDTH: Final = 860
"""Width of a picture."""
_LEFT: Final = 300
"""Width of the labels to the left of the axis."""
_RIGHT: Final = 30
"""Margin to the right of the axis."""
_NOTE: Final = 100
"""Width of the notes to the right of the axis, if there are any."""
_SEEN: Final = "measured"
_COULD: Final = "not seen: how far chance alone may have moved it (95 % interval)"
_LINE: Final = 22
"""Height of the line of one mark."""
_FENCE: Final = "#999"
"""Colour of intervals."""
_COLOURS: Final = ("#1f5fa8", "#b5432a", "#2e7d4f", "#7a4fa3")


@dataclass(frozen=True, slots=True)
class Dot:
    """One line of a dot plot: a value with its interval, or None for a value that was not measured."""

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    note: str = ""  # at the right, such as counts


def dots(title: str, marks: Sequence[Dot], *, unit: str, log: bool = False, zero: bool = True) -> str:
    """Draw a dot plot with a legend: on each line a dot for the value, between the ends of its interval.

    ``unit`` is written under the axis; ``log`` makes it logarithmic, for values above 0; ``zero`` makes it include 0.
    """
    known = [value for mark in marks for value in (mark.value, mark.low, mark.high) if value is not None]
    known = [value for value in known if value > 0 or not log]
    least, greatest = _span(known, log=log, zero=zero)
    right = _WIDTH - _RIGHT - (_NOTE if any(mark.note for mark in marks) else 0)
    top = 56
    bottom = top + _LINE * len(marks)

    def across(value: float) -> float:
        at, start, end = (math.log10(v) if log else v for v in (value, least, greatest))
        return _LEFT + (at - start) / (end - start) * (right - _LEFT)

    drawn = [_text(10, 20, title, bold=True), _dot(16, 37), _text(26, 41, _SEEN)]
    drawn += [*_fences(96, 126, 37), _text(134, 41, _COULD, colour=_FENCE)]
    for tick in _ticks(least, greatest, log=log):
        x = across(tick)
        drawn += [_rule(x, top - 6, x, bottom, "#eee"), _text(x, bottom + 16, f"{tick:g}", anchor="middle")]
    drawn.append(_text(right, bottom + 34, unit, anchor="end"))
    for at, mark in enumerate(marks):
        y = top + _LINE * at + _LINE / 2
        drawn.append(_text(_LEFT - 10, y + 4, mark.label, anchor="end"))
        if mark.value is None or (log and mark.value <= 0):
            drawn.append(_text(_LEFT + 6, y + 4, "not measured", colour="#888"))
            continue
        if mark.low is not None and mark.high is not None and (mark.low > 0 or not log):
            drawn += _fences(across(mark.low), across(mark.high), y)
        drawn += [_dot(across(mark.value), y), _text(right + 14, y + 4, mark.note)]
    return _svg(bottom + 44, drawn)


def lines(
    title: str, series: Sequence[tuple[str, Sequence[tuple[float, float]]]], *, across: str, up: str
) -> str:
    """Draw lines through points ``(x, y)``, on axes that begin at 0."""
    points = [point for _, line in series for point in line]
    right = max((x for x, _ in points), default=1.0) or 1.0
    top = max((y for _, y in points), default=1.0) or 1.0
    left, high, low = 70, 40, 300

    def place(x: float, y: float) -> tuple[float, float]:
        return left + x / right * (_WIDTH - left - 220), low - y / top * (low - high)

    drawn = [_text(10, 20, title, bold=True)]
    for tick in _ticks(0, top, log=False):
        y = place(0, tick)[1]
        drawn += [
            _rule(left, y, place(right, 0)[0], y, "#ddd"),
            _text(left - 8, y + 4, f"{tick:g}", anchor="end"),
        ]
    for tick in _ticks(0, right, log=False):
        drawn.append(_text(place(tick, 0)[0], low + 18, f"{tick:g}", anchor="middle"))
    drawn += [_text(place(right, 0)[0], low + 36, across, anchor="end"), _text(left, high - 6, up)]
    for at, (name, line) in enumerate(series):
        colour = _COLOURS[at % len(_COLOURS)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in line))
        drawn.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        drawn.append(_text(place(right, 0)[0] + 14, high + 14 + 20 * at, name, colour=colour))
    return _svg(low + 46, drawn)


def _dot(x: float, y: float) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5.5" fill="{_COLOURS[0]}"/>'


def _fences(x: float, to_x: float, y: float) -> list[str]:
    ends = [_rule(end, y - 5, end, y + 5, _FENCE) for end in (x, to_x)]
    return [_rule(x, y, to_x, y, _FENCE, dashed=True), *ends]


def _span(values: Sequence[float], *, log: bool, zero: bool) -> tuple[float, float]:
    """Return the two different ends of an axis."""
    if log:
        least = 10.0 ** math.floor(math.log10(min(values, default=1.0)))
        greatest = 10.0 ** math.ceil(math.log10(max(values, default=10.0)))
        return least, greatest if greatest > least else 10 * least
    least, greatest = min(values, default=0.0), max(values, default=1.0)
    if zero:
        least, greatest = min(least, 0.0), max(greatest, 0.0)
    return least, greatest if greatest > least else least + 1.0


def _ticks(least: float, greatest: float, *, log: bool) -> list[float]:
    """Return round numbers between the ends."""
    if log:
        return [10.0**power for power in range(round(math.log10(least)), round(math.log10(greatest)) + 1)]
    rough = (greatest - least) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * size for size in (1, 2, 5, 10) if power * size >= rough * 0.999)
    return [
        round(step * at, 10)
        for at in range(math.ceil(least / step), math.floor(greatest / step * 1.0001) + 1)
    ]


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", bold: bool = False, colour: str = "#222"
) -> str:
    weight = ' font-weight="bold"' if bold else ""
    shown = escape(visible_line(text))
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}"{weight}>{shown}</text>'


def _rule(x: float, y: float, to_x: float, to_y: float, colour: str, *, dashed: bool = False) -> str:
    ends = f'x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}"'
    dashes = ' stroke-dasharray="4 3"' if dashed else ""
    return f'<line {ends} stroke="{colour}"{dashes}/>'


def _svg(height: float, drawn: Sequence[str]) -> str:
    size = f'width="{_WIDTH}" height="{height:.0f}" viewBox="0 0 {_WIDTH} {height:.0f}"'
    inside = "\n".join(drawn)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="system-ui, sans-serif" font-size="12">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n{inside}\n</svg>\n'
    )
