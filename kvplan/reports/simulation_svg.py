"""A simulation as a picture: the pool and who waits, over time. SVG, without any dependency."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

from kvplan.reports.simulation_rows import headline, seconds
from kvplan.simulation import Simulation

_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 900, 150, 60, 70, 46
_USED, _KEPT, _RUNNING, _WAITING = "#2b6cb0", "#bcd4ec", "#2f855a", "#c53030"
_INK = "#3a3a3a"
_FREE = "free, but kept in case they are wanted again"


def simulation_svg(simulation: Simulation, *, title: str = "") -> str:
    """Two panels over the same time: the pool's blocks, and requests running and waiting.

    Args:
        simulation: What is drawn.
        title: What it is called, in front of what happened.
    """
    moments = simulation.timeline
    used = [moment.used for moment in moments]
    kept = [moment.used + moment.kept for moment in moments]
    running = [moment.running for moment in moments]
    waiting = [moment.waiting for moment in moments]
    most = max([1.0, *running, *waiting])
    second, said = _TOP + _HEIGHT + _GAP, headline(simulation)
    parts = [
        _text(_LEFT, 22, f"{title}: {said}" if title else said, size=15),
        _text(_LEFT, 42, f"{simulation.model} on {simulation.gpu}, {simulation.engine}"),
        _area(kept, simulation.pool.blocks, _TOP, _KEPT),
        _area(used, simulation.pool.blocks, _TOP, _USED),
        _frame(_TOP, f"{simulation.pool.blocks:,}", (("blocks in use", _USED), (_FREE, _KEPT))),
        _line(waiting, most, second, _WAITING),
        _line(running, most, second, _RUNNING),
        _frame(second, f"{most:,.0f}", (("requests running", _RUNNING), ("waiting", _WAITING))),
    ]
    if moments:
        end = seconds(moments[-1].start_s + moments[-1].seconds)
        parts.append(_text(_LEFT + _WIDTH, second + _HEIGHT + 18, end, anchor="end"))
        parts.append(_text(_LEFT, second + _HEIGHT + 18, "0 s"))
        middle = _LEFT + _WIDTH // 2
        parts.append(_text(middle, second + _HEIGHT + 18, "simulated time", anchor="middle"))
    width, height = _LEFT + _WIDTH + 20, second + _HEIGHT + 30
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" font-family="sans-serif">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'
    )


def _points(values: Sequence[float], top: float, at: int) -> list[str]:
    step = _WIDTH / max(1, len(values) - 1)
    return [
        f"{_LEFT + index * step:.1f},{at + _HEIGHT * (1 - min(1.0, value / top)):.1f}"
        for index, value in enumerate(values)
    ]


def _area(values: Sequence[float], top: float, at: int, color: str) -> str:
    corners = [
        f"{_LEFT},{at + _HEIGHT}",
        *_points(values, top, at),
        f"{_LEFT + _WIDTH},{at + _HEIGHT}",
    ]
    return f'<polygon points="{" ".join(corners)}" fill="{color}"/>'


def _line(values: Sequence[float], top: float, at: int, color: str) -> str:
    points = " ".join(_points(values, top, at))
    return f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.5"/>'


def _frame(at: int, top: str, legend: Sequence[tuple[str, str]]) -> str:
    parts = [
        (
            f'<rect x="{_LEFT}" y="{at}" width="{_WIDTH}" height="{_HEIGHT}" fill="none"'
            f' stroke="{_INK}" stroke-width="0.5"/>'
        ),
        _text(_LEFT - 6, at + 10, top, anchor="end"),
        _text(_LEFT - 6, at + _HEIGHT, "0", anchor="end"),
    ]
    for index, (name, color) in enumerate(legend):
        x = _LEFT + index * 150
        parts.append(f'<rect x="{x}" y="{at - 13}" width="10" height="10" fill="{color}"/>')
        parts.append(_text(x + 15, at - 4, name))
    return "".join(parts)


def _text(x: int, y: int, text: str, *, anchor: str = "start", size: int = 12) -> str:
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" fill="{_INK}" text-anchor="{anchor}">'
        f"{escape(text)}</text>"
    )
