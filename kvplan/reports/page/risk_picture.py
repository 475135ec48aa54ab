"""Real traffic's risk against the requests at once, and its day: where their marks go."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kvplan.plan_book import RealTraffic, RiskPoint
from kvplan.reports.page.pictures import WIDTH, Dot, Stretch, Tick
from kvplan.reports.section import percent
from kvplan.units import format_count

HEIGHT = 300
DAY_HEIGHT = 180
_LEFT, _RIGHT, _TOP, _BOTTOM = 96, 16, 24, 56
# The scale of risks: from one in a hundred thousand to always.
_DECADES = 5
_MARKS = 6


@dataclass(frozen=True, slots=True)
class RiskCurve:
    """The curve, its range, the chosen risk, and where the traffic stands.

    Attributes:
        band: Corners of the range; empty where it is not known.
        chosen: The height of the chosen risk.
        loads: Where the mean and the peak of the traffic lie, with their words.
    """

    dots: tuple[Dot, ...]
    line: str
    band: str
    columns: tuple[Tick, ...]
    rows: tuple[Tick, ...]
    chosen: Tick
    loads: tuple[Tick, ...]
    left: float = _LEFT
    right: float = WIDTH - _RIGHT
    top: float = _TOP
    bottom: float = HEIGHT - _BOTTOM


def risk_curve(traffic: RealTraffic) -> RiskCurve | None:
    """The picture; None where there is no curve."""
    points = traffic.curve
    if len(points) < 2:
        return None
    load, chosen = traffic.plan.load, traffic.plan.risk
    marks = () if load is None else _loads(load.concurrent, load.peak_concurrent)
    numbers = [point.requests for point in points] + [number for number, _ in marks]
    scale = _Scale(0.9 * min(numbers), 1.02 * max(numbers))
    return RiskCurve(
        dots=tuple(Dot(scale.x(p.requests), scale.y(p.risk), _words(p)) for p in points),
        line=" ".join(f"{scale.x(p.requests)},{scale.y(p.risk)}" for p in points),
        band=_band(points, scale),
        columns=tuple(Tick(scale.x(n), format_count(round(n))) for n in scale.ticks()),
        rows=tuple(_row(scale, power) for power in range(_DECADES + 1)),
        chosen=Tick(scale.y(chosen), f"chosen risk {percent(chosen)}"),
        loads=tuple(Tick(scale.x(number), words) for number, words in marks),
    )


def _loads(mean: float, peak: float) -> tuple[tuple[float, str], ...]:
    if peak <= mean * 1.001:
        return ((mean, f"traffic: {mean:,.1f}"),)
    return (mean, f"mean: {mean:,.1f}"), (peak, f"busiest hour: {peak:,.1f}")


def _row(scale: _Scale, power: int) -> Tick:
    share = 10.0**-power
    return Tick(scale.y(share), percent(share))


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float
    high: float

    def x(self, requests: float) -> float:
        share = (requests - self.low) / (self.high - self.low)
        return round(_LEFT + share * (WIDTH - _LEFT - _RIGHT), 1)

    def y(self, risk: float) -> float:
        power = -math.log10(min(1.0, max(10.0**-_DECADES, risk)))
        return round(_TOP + power / _DECADES * (HEIGHT - _BOTTOM - _TOP), 1)

    def ticks(self) -> list[float]:
        """Round numbers."""
        rough = max(1.0, (self.high - self.low) / _MARKS)
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * each for each in (1, 2, 5, 10) if power * each >= rough)
        first = math.ceil(self.low / step)
        return [step * number for number in range(first, int(self.high // step) + 1)]


def _band(points: tuple[RiskPoint, ...], scale: _Scale) -> str:
    known = [point for point in points if point.least is not None and point.most is not None]
    if len(known) < 2:
        return ""
    above = [(scale.x(point.requests), scale.y(point.most or 0)) for point in known]
    below = [(scale.x(point.requests), scale.y(point.least or 0)) for point in reversed(known)]
    return " ".join(f"{x},{y}" for x, y in (*above, *below))


def _words(point: RiskPoint) -> str:
    said = f"{point.requests:,.1f} requests at once: {percent(point.risk)} of the time too little"
    if point.least is None or point.most is None:
        return said
    return f"{said} ({percent(point.least)} to {percent(point.most)})"


def day(traffic: RealTraffic) -> tuple[Stretch, ...]:
    """Bars of the 24 hours; none where the traffic is the same all day."""
    load = traffic.plan.load
    if load is None or load.peak_factor <= 1:
        return ()
    most = max(hour.concurrent for hour in load.hours)
    each = (WIDTH - _LEFT - _RIGHT) / len(load.hours)
    return tuple(
        Stretch(
            kind="sure" if hour.risk <= traffic.plan.risk else "over",
            x=round(_LEFT + hour.hour * each + 2, 1),
            width=round(each - 4, 1),
            label=str(hour.hour),
            words=f"{hour.hour}:00: {hour.concurrent:,.1f} requests at once, too little memory"
            f" {percent(hour.risk)} of the time",
            height=round((DAY_HEIGHT - 50) * hour.concurrent / most, 1),
        )
        for hour in load.hours
    )
