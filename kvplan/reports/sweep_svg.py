"""A sweep as a picture: requests held against context, a curve for each combination of the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kvplan.errors import UsageError
from kvplan.reports.sweep_drawing import (
    COLORS,
    DASHES,
    Frame,
    area,
    cross,
    curve,
    cut,
    dot,
    line,
    picture,
    text,
)
from kvplan.reports.sweep_rows import fixed, headline, value
from kvplan.reports.sweep_scales import Scale, decades, even, is_wide, thinned
from kvplan.reports.sweep_series import Curves, Series, curves
from kvplan.sweep_result import Sweep

_FRAME = Frame(left=78, top=84, width=760, height=420)
_MOST_SERIES, _MOST_TICKS, _MOST_DOTS = 24, 12, 80
_LEGEND_LINE, _LEGEND_COLUMNS = 20, 2
_UNITS = {"context": "tokens a request", "kv_budget": "bytes of KV cache on each GPU"}


def sweep_svg(sweep: Sweep, *, dark: bool = True) -> str:
    """The picture.

    Args:
        sweep: What was found.
        dark: Follow the reader's page where that is dark.

    Raises:
        UsageError: no input was varied whose values are numbers.
    """
    drawn = curves(sweep)
    if drawn is None or len(drawn.xs) < 2:
        raise UsageError(
            "A curve needs an input with several numbers beside concurrency.",
            hint="Write --vary context=4k..128k*2, or --plot memory.",
        )
    words = Words(
        title=f"Requests held at once, by {drawn.name}",
        about=fixed(sweep),
        said=headline(sweep),
        up="requests held at once (whole deployment)",
        unit="requests",
        none="not one request, or refused",
    )
    return drawing(drawn, words, dark=dark)


@dataclass(frozen=True, slots=True)
class Words:
    """What stands beside the curves.

    Attributes:
        title, about, said: Lines above them.
        up: What goes up.
        unit: Of one value, in words.
        none: What a cross means.
    """

    title: str
    about: str
    said: str
    up: str
    unit: str
    none: str


def drawing(drawn: Curves, words: Words, *, dark: bool) -> str:
    """Curves as a picture."""
    shown = drawn.series[:_MOST_SERIES]
    rows = max(1, -(-len(shown) // _LEGEND_COLUMNS))
    bottom = _FRAME.bottom + 62
    parts = [
        text(_FRAME.left, 28, words.title, size=18, bold=True),
        text(_FRAME.left, 50, cut(words.about, 110), size=13),
        text(_FRAME.left, 68, words.said),
        *_diagram(drawn, shown, words),
        *_legend(drawn, shown, bottom, words),
    ]
    return picture(
        parts,
        title=words.title,
        about=words.about,
        width=_FRAME.right + 24,
        height=bottom + rows * _LEGEND_LINE + 34,
        dark=dark,
    )


def _diagram(drawn: Curves, shown: tuple[Series, ...], words: Words) -> Iterator[str]:
    wide = is_wide(drawn.xs)
    across = Scale(drawn.xs[0], drawn.xs[-1], _FRAME.left + 14, _FRAME.right - 14, wide)
    ends = [end for one in shown for point in one.points for end in (point.low, point.high)]
    ticks, up = _upwards([end for end in ends if end > 0])
    for tick in ticks:
        y = up.at(tick)
        yield line(_FRAME.left, y, _FRAME.right, y)
        yield text(_FRAME.left - 8, y + 4, f"{tick:,g}", anchor="end")
    for tick in thinned(_round(drawn), _MOST_TICKS):
        x = across.at(tick)
        yield line(x, _FRAME.top, x, _FRAME.bottom)
        yield text(x, _FRAME.bottom + 18, _tick(drawn.name, tick), anchor="middle")
    yield line(_FRAME.left, _FRAME.bottom, _FRAME.right, _FRAME.bottom, strong=True)
    yield line(_FRAME.left, _FRAME.top, _FRAME.left, _FRAME.bottom, strong=True)
    unit = f", {_UNITS[drawn.name]}" if drawn.name in _UNITS else ""
    middle = (_FRAME.left + _FRAME.right) / 2
    yield text(middle, _FRAME.bottom + 40, f"{drawn.name}{unit}", anchor="middle", size=13)
    height = _FRAME.top + _FRAME.height / 2
    yield text(22, height, words.up, anchor="middle", size=13, turned=True)
    for place, one in enumerate(shown):
        told = [f"{one.label} {drawn.name} {_tick(drawn.name, point.x)}: {point.y:,.6g}"
                f" {words.unit}".strip() for point in one.points]  # fmt: skip
        yield from _series(one, look(place), told, across, up)
        for x in one.none_at[:_MOST_DOTS]:
            about = f"{one.label} {drawn.name} {_tick(drawn.name, x)}: {words.none}".strip()
            # Side by side where several curves have none.
            shift = 3 * (place % 5) - 6
            yield cross(across.at(x) + shift, _FRAME.bottom - 6, look(place)[0], about)


def _upwards(ends: list[float]) -> tuple[tuple[float, ...], Scale]:
    if not ends:
        return (0.0, 1.0), Scale(0, 1, _FRAME.bottom, _FRAME.top)
    wide = is_wide(ends)
    ticks = decades(max(min(ends), 1.0), max(ends)) if wide else even(max(ends))
    if wide and len(ticks) < 2:
        ticks = (ticks[0] / 2, ticks[0])
    return ticks, Scale(ticks[0], ticks[-1], _FRAME.bottom, _FRAME.top, wide)


def _round(drawn: Curves) -> tuple[float, ...]:
    """Values worth a tick: all where they are few, else powers of two of contexts."""
    if len(drawn.xs) <= _MOST_TICKS:
        return drawn.xs
    if not is_wide(drawn.xs):
        return drawn.xs
    powers = (2.0**power for power in range(64))
    return tuple(power for power in powers if drawn.xs[0] <= power <= drawn.xs[-1])


def _tick(name: str, tick: float) -> str:
    return value(name, int(tick)) if tick == int(tick) else f"{tick:g}"


def _series(
    one: Series, drawn: tuple[str, str], told: list[str], across: Scale, up: Scale
) -> Iterator[str]:
    color, dash = drawn
    places = [(across.at(point.x), up.at(point.y)) for point in one.points]
    if any(point.low < point.high for point in one.points):
        low = [(across.at(point.x), up.at(point.low)) for point in one.points]
        high = [(across.at(point.x), up.at(point.high)) for point in one.points]
        yield area([*high, *reversed(low)], color, 0.18)
    yield curve(places, color, dash)
    if len(places) <= _MOST_DOTS:
        for about, (x, y) in zip(told, places, strict=True):
            yield dot(x, y, color, about)


def look(place: int) -> tuple[str, str]:
    """Colour and dashes of the curve at that place: no two of the first forty are alike."""
    return COLORS[place % len(COLORS)], DASHES[(place // len(COLORS) + place) % len(DASHES)]


def _legend(drawn: Curves, shown: tuple[Series, ...], top: float, words: Words) -> Iterator[str]:
    rows = max(1, -(-len(shown) // _LEGEND_COLUMNS))
    column = _FRAME.width / _LEGEND_COLUMNS
    for place, one in enumerate(shown):
        color, dash = look(place)
        x = _FRAME.left + place // rows * column
        y = top + place % rows * _LEGEND_LINE
        yield curve([(x, y), (x + 34, y)], color, dash)
        yield text(x + 42, y + 4, cut(one.label or words.unit, 48))
    said = []
    if any(point.low < point.high for one in shown for point in one.points):
        said.append("bands: the range of the engine's own memory")
    if any(one.none_at for one in shown):
        said.append(f"×: {words.none}")
    if drawn.empty:
        said.append(f"nothing to draw: {cut('; '.join(drawn.empty), 60)}")
    left = len(drawn.series) - len(shown)
    if left:
        said.append(f"{left:,} more curves are not drawn")
    yield text(_FRAME.left, top + rows * _LEGEND_LINE + 10, "; ".join(said), size=11)
