"""Where the marks of the page's pictures go; the template draws them and escapes every word."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kvplan.plan_book import PlanBook, Rung
from kvplan.reports.figures import counted
from kvplan.reports.memory_bar import memory_parts
from kvplan.units import format_bytes, format_count

WIDTH = 720
CURVE_HEIGHT = 320
_LEFT, _BOTTOM, _TOP, _RIGHT = 72, 60, 16, 20
LOAD_HEIGHT = 96


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a bar.

    Attributes:
        kind: Its style.
        x, width: Where it lies, of `WIDTH`.
        height: Of a bar that stands; 0 for one that lies.
        words: What it is, for pointers and readers.
    """

    kind: str
    x: float
    width: float
    label: str
    words: str
    height: float = 0.0


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis, and its words."""

    at: float
    words: str


@dataclass(frozen=True, slots=True)
class Dot:
    """A point of a curve."""

    x: float
    y: float
    words: str


@dataclass(frozen=True, slots=True)
class Curve:
    """Requests by their length, both axes logarithmic.

    Attributes:
        line: Points of a polyline.
        band: Corners of the range; empty where it is not known.
        asked: Height of the line of the requests asked for, or None.
    """

    dots: tuple[Dot, ...]
    line: str
    band: str
    columns: tuple[Tick, ...]
    rows: tuple[Tick, ...]
    asked: Tick | None
    left: float = _LEFT
    right: float = WIDTH - _RIGHT
    top: float = _TOP
    bottom: float = CURVE_HEIGHT - _BOTTOM


@dataclass(frozen=True, slots=True)
class Load:
    """How sure it is that so many requests fit: up to where, and from where on not.

    Attributes:
        stretches: Held, within the range, too many.
        asked: Where the requests asked for lie; None if none were.
    """

    stretches: tuple[Stretch, ...]
    ticks: tuple[Tick, ...]
    asked: Tick | None


def memory_map(plans: PlanBook) -> tuple[Stretch, ...]:
    """One GPU's memory as a bar; what is missing lies behind its end."""
    parts = memory_parts(plans.plan)
    whole = sum(part.bytes for part in parts)
    stretches: list[Stretch] = []
    x = 0.0
    for part in parts:
        width = WIDTH * part.bytes / whole
        words = f"{part.label}: {format_bytes(part.bytes)}"
        stretches.append(Stretch(part.kind, round(x, 2), round(width, 2), part.label, words))
        x += width
    return tuple(stretches)


def curve(plans: PlanBook) -> Curve | None:
    """The curve; None where fewer than two lengths hold anything."""
    rungs = [rung for rung in plans.rungs if rung.requests > 0]
    if len(rungs) < 2:
        return None
    most = max(rung.high or rung.requests for rung in rungs)
    asked = plans.plan.workload.concurrency
    each = None if asked is None else -(-asked // plans.plan.parallelism.dp)
    scale = _Scale(rungs[0].context, rungs[-1].context, max(most, each or 1))
    dots = tuple(Dot(scale.x(rung.context), scale.y(rung.requests), _words(rung)) for rung in rungs)
    line = None
    if each:
        said = f"asked for: {counted(each, 'request')} a replica"
        line = Tick(scale.y(each), said)
    return Curve(
        dots=dots,
        line=" ".join(f"{dot.x},{dot.y}" for dot in dots),
        band=_band(rungs, scale),
        columns=tuple(Tick(scale.x(rung.context), _tokens(rung.context)) for rung in rungs),
        rows=tuple(Tick(scale.y(count), format_count(count)) for count in scale.decades()),
        asked=line,
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    shortest: int
    longest: int
    most: int

    def x(self, context: int) -> float:
        share = math.log(context / self.shortest) / math.log(self.longest / self.shortest)
        return round(_LEFT + share * (WIDTH - _LEFT - _RIGHT), 1)

    def y(self, requests: float) -> float:
        top = math.log10(self.decades()[-1])
        share = math.log10(max(1, requests)) / top
        return round(CURVE_HEIGHT - _BOTTOM - share * (CURVE_HEIGHT - _BOTTOM - _TOP), 1)

    def decades(self) -> tuple[int, ...]:
        return tuple(10**power for power in range(max(1, math.ceil(math.log10(self.most))) + 1))


def _band(rungs: list[Rung], scale: _Scale) -> str:
    known = [rung for rung in rungs if rung.low is not None and rung.high is not None]
    if len(known) < 2:
        return ""
    above = [(scale.x(rung.context), scale.y(rung.high or 0)) for rung in known]
    below = [(scale.x(rung.context), scale.y(rung.low or 0)) for rung in reversed(known)]
    return " ".join(f"{x},{y}" for x, y in (*above, *below))


def _words(rung: Rung) -> str:
    said = f"{rung.context:,} tokens: {counted(rung.requests, 'request')}"
    if rung.low is None or (rung.low, rung.high) == (rung.requests, rung.requests):
        return said
    return f"{said} ({rung.low:,} to {rung.high:,})"


def _tokens(context: int) -> str:
    return f"{context // 1024}k" if context % 1024 == 0 else f"{context:,}"


def load(plans: PlanBook) -> Load | None:
    """Whether the deployment holds so many requests of the planned length."""
    plan = plans.plan
    rung = next((each for each in plans.rungs if each.context == plan.workload.context), None)
    if rung is None or plan.capacity is None:
        return None
    replicas = plan.parallelism.dp
    low = (rung.requests if rung.low is None else rung.low) * replicas
    high = (rung.requests if rung.high is None else rung.high) * replicas
    asked = plan.workload.concurrency
    end = max(math.ceil(1.4 * max(high, asked or 0)), 2)
    per = WIDTH / end
    sure = f"Up to {counted(low, 'request')}: held at both ends of the range."
    unsure = f"From {low + 1:,} to {high:,}: depends on what runtime memory really takes."
    over = f"More than {high:,}: wait, or are preempted."
    cuts = [
        ("sure", "held", 0, low, sure),
        ("unsure", "depends", low, high, unsure),
        ("over", "too many", high, end, over),
    ]
    stretches = tuple(
        Stretch(kind, round(first * per, 2), round((last - first) * per, 2), label, words)
        for kind, label, first, last, words in cuts
        if last > first
    )
    marks = sorted({0, low, plan.capacity.requests, high})
    return Load(
        stretches=stretches,
        ticks=tuple(Tick(round(mark * per, 2), format_count(mark)) for mark in _apart(marks, per)),
        asked=Tick(round(asked * per, 2), f"asked for: {asked:,}") if asked is not None else None,
    )


def _apart(marks: list[int], per: float) -> list[int]:
    """Marks far enough from each other for their words."""
    kept: list[int] = []
    for mark in marks:
        if not kept or (mark - kept[-1]) * per >= 40:
            kept.append(mark)
    return kept
