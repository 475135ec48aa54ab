"""A sweep as maps of one GPU's memory against the number of requests."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from kvplan.errors import UsageError
from kvplan.reports.sweep_drawing import Frame, area, curve, cut, line, picture, text
from kvplan.reports.sweep_memory_maps import PARTS, Panel, caption, panels
from kvplan.reports.sweep_rows import fixed, headline
from kvplan.reports.sweep_scales import Scale, even, thinned
from kvplan.sweep_result import Sweep

_WIDTH, _HEIGHT, _LEFT, _TOP = 760.0, 260.0, 78.0, 110.0
_GAP, _MOST_PANELS, _MOST_TICKS = 92.0, 6, 10


def sweep_memory_svg(sweep: Sweep, *, dark: bool = True) -> str:
    """A panel for each combination of the other inputs that are varied, six at most.

    Args:
        sweep: What was found.
        dark: Follow the reader's page where that is dark.

    Raises:
        UsageError: all points are refused.
    """
    shown = list(islice(panels(sweep), _MOST_PANELS))
    if not shown:
        raise UsageError(
            "There is no memory to draw: all points are refused.", hint="--format text says why."
        )
    every = sum(1 for _ in panels(sweep))
    title = "One GPU's memory, by requests held at once"
    said = f"{headline(sweep)} {len(shown)} of {every} maps." if every > len(shown) else ""
    parts = [
        text(_LEFT, 28, title, size=18, bold=True),
        text(_LEFT, 50, cut(fixed(sweep), 110), size=13),
        text(_LEFT, 68, said or headline(sweep)),
    ]
    for place, panel in enumerate(shown):
        frame = Frame(_LEFT, _TOP + place * (_HEIGHT + _GAP), _WIDTH, _HEIGHT)
        parts += _panel(panel, frame)
    bottom = _TOP + len(shown) * (_HEIGHT + _GAP) - 22
    parts += _legend(bottom)
    return picture(
        parts, title=title, about=fixed(sweep), width=_LEFT + _WIDTH + 24, height=bottom + 62,
        dark=dark,
    )  # fmt: skip


def _panel(panel: Panel, frame: Frame) -> Iterator[str]:
    most = max(sum(column.parts) for column in panel.columns)
    ticks = even(min(most, 1.6 * panel.card))
    up = Scale(0, ticks[-1], frame.bottom, frame.top)
    counts = [column.requests for column in panel.columns]
    across = Scale(counts[0], counts[-1], frame.left, frame.right)
    yield text(frame.left, frame.top - 12, cut(caption(panel), 75), size=13, bold=True)
    yield from _stack(panel, across, up)
    for tick in ticks:
        yield line(frame.left, up.at(tick), frame.right, up.at(tick))
        yield text(frame.left - 8, up.at(tick) + 4, f"{tick:,g}", anchor="end")
    for count in thinned(_marks(counts), _MOST_TICKS):
        yield text(across.at(count), frame.bottom + 18, f"{count:,g}", anchor="middle")
    card = up.at(panel.card)
    yield curve([(frame.left, card), (frame.right, card)], "#d6455d", "6 3")
    said = f"dashed: the card, {panel.card:,.1f} GiB"
    yield text(frame.right, frame.top - 12, said, anchor="end", size=11)
    yield line(frame.left, frame.bottom, frame.right, frame.bottom, strong=True)
    yield line(frame.left, frame.top, frame.left, frame.bottom, strong=True)
    middle = frame.left + frame.width / 2
    yield text(middle, frame.bottom + 38, "requests at once (whole deployment)", anchor="middle")
    yield text(22, frame.top + frame.height / 2, "GiB on one GPU", anchor="middle", turned=True)


def _marks(counts: list[float]) -> tuple[float, ...]:
    if len(counts) <= _MOST_TICKS:
        return tuple(counts)
    return tuple(tick for tick in even(counts[-1]) if counts[0] <= tick <= counts[-1])


def _stack(panel: Panel, across: Scale, up: Scale) -> Iterator[str]:
    below = [0.0] * len(panel.columns)
    for place, (_, _, color) in enumerate(PARTS):
        above = [
            low + column.parts[place] for low, column in zip(below, panel.columns, strict=True)
        ]
        if any(column.parts[place] for column in panel.columns):
            xs = [across.at(column.requests) for column in panel.columns]
            top = [(x, up.at(height)) for x, height in zip(xs, above, strict=True)]
            bottom = [(x, up.at(height)) for x, height in zip(xs, below, strict=True)]
            yield area([*top, *reversed(bottom)], color, 0.9)
        below = above


def _legend(top: float) -> Iterator[str]:
    for place, (_, name, color) in enumerate(PARTS):
        x, y = _LEFT + place % 3 * 255, top + place // 3 * 22
        corners = [(x, y - 10), (x + 12, y - 10), (x + 12, y + 2), (x, y + 2)]
        yield area(corners, color, 0.9)
        yield text(x + 18, y, name)
