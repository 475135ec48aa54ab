"""A day of traffic as a picture: requests at once against what the pool holds. SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kvplan.reports.svg_parts import FAINT, INK, box, line, picture, text
from kvplan.reports.traffic_rows import headline, percent
from kvplan.traffic_plan import LoadOnPools, TrafficPlan

_WIDTH, _HEIGHT, _LEFT, _TOP = 840, 220, 64, 84
_FITS, _LATE, _LIMIT = "#2b6cb0", "#c53030", "#2f855a"
_HOURS = 24
_ROOM = 1.15


def traffic_svg(plan: TrafficPlan) -> str:
    """Hour by hour: a bar of the requests at once, red where the risk is above the chosen one.

    The line is the mean number of requests that arrivals may have at the chosen risk, over all
    replicas; without a load the picture shows the held requests alone.
    """
    parts = [text(_LEFT, 26, headline(plan), size=14, weight="bold"), text(_LEFT, 46, _where(plan))]
    if plan.load is None:
        parts += _held(plan)
    else:
        parts += _day(plan.load, plan.risk)
    return picture(_LEFT + _WIDTH + 24, _TOP + _HEIGHT + 52, parts)


def _where(plan: TrafficPlan) -> str:
    return (
        f"{plan.model.id} on {plan.gpu.count} × {plan.gpu.id}, {plan.engine.name}"
        f" {plan.engine.version}; traffic: {plan.traffic}"
    )


def _held(plan: TrafficPlan) -> Iterator[str]:
    held = plan.held
    figures = (
        ("if all were the longest", held.at_longest),
        (f"at a risk of {percent(plan.risk)}", held.requests),
        ("if all were average", held.on_average),
    )
    most = max(1.0, *(float(count) for _, count in figures))
    for row, (label, count) in enumerate(figures):
        y = _TOP + row * 60
        yield text(_LEFT, y + 12, label)
        yield box(_LEFT, y + 18, _WIDTH * 0.9 * count / most, 22, _FITS)
        yield text(_LEFT + _WIDTH * 0.9 * count / most + 6, y + 34, f"{count:,.0f}")


def _day(load: LoadOnPools, risk: float) -> Iterator[str]:
    limit = None if load.most_rate_per_s is None else load.most_rate_per_s * load.life_s
    most = _ROOM * max(1.0, *(hour.concurrent for hour in load.hours), limit or 0.0)
    wide = _WIDTH / _HOURS
    for hour in load.hours:
        tall = _HEIGHT * hour.concurrent / most
        x, color = _LEFT + hour.hour * wide, _LATE if hour.risk > risk else _FITS
        yield box(x + 3, _TOP + _HEIGHT - tall, wide - 6, tall, color)
        if hour.risk > risk:
            yield text(
                x + wide / 2,
                _TOP + _HEIGHT - tall - 4,
                percent(round(hour.risk, 4)),
                anchor="middle",
                size=9,
                color=_LATE,
            )
        yield text(x + wide / 2, _TOP + _HEIGHT + 15, str(hour.hour), anchor="middle", size=10)
    yield from _levels(load, limit, most)
    yield line(((_LEFT, _TOP + _HEIGHT), (_LEFT + _WIDTH, _TOP + _HEIGHT)), INK)
    yield text(_LEFT + _WIDTH / 2, _TOP + _HEIGHT + 34, "hour of the day", anchor="middle")
    yield from _legend(risk)


def _levels(load: LoadOnPools, limit: float | None, most: float) -> Iterator[str]:
    for level, color, what in _lines(load, limit):
        y = _TOP + _HEIGHT * (1 - level / most)
        yield line(((_LEFT, y), (_LEFT + _WIDTH, y)), color, dashed=True)
        yield text(_LEFT - 6, y + 4, f"{level:,.0f}", anchor="end", color=color)
        yield text(_LEFT + 4, y - 4, what, size=11, color=color)


def _lines(load: LoadOnPools, limit: float | None) -> Sequence[tuple[float, str, str]]:
    mean = (load.concurrent, FAINT, "mean of the day")
    if limit is None:
        return (mean,)
    return (mean, (limit, _LIMIT, "most at the chosen risk"))


def _legend(risk: float) -> Iterator[str]:
    for x, color, what in (
        (_LEFT, _FITS, "requests at once"),
        (_LEFT + 150, _LATE, f"too little memory more than {percent(risk)} of the time"),
    ):
        yield box(x, _TOP - 24, 10, 10, color)
        yield text(x + 15, _TOP - 15, what, size=11)
