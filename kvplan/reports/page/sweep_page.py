"""A sweep as one self-contained page: the picture, every configuration, why not."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from kvplan.reports.page.render import environment
from kvplan.reports.sweep_memory_svg import sweep_memory_svg
from kvplan.reports.sweep_rows import cells, fixed, headline, lines, reasons, titles
from kvplan.reports.sweep_series import curves
from kvplan.reports.sweep_svg import sweep_svg
from kvplan.sweep_result import CONCURRENCY, Sweep

MOST_ROWS, MOST_REASONS = 2_000, 50


def sweep_page(sweep: Sweep) -> str:
    """One HTML document that needs nothing else.

    Raises:
        UsageError: Jinja2 is not installed.
    """
    template = environment().get_template("sweep.html.j2")
    from markupsafe import Markup  # noqa: PLC0415  it comes with Jinja2, which is an extra

    found = lines(sweep)
    rows = [cells(sweep, line) for line in islice(found, MOST_ROWS)]
    words, numbers = titles(sweep)
    return template.render(
        headline=headline(sweep),
        fixed=fixed(sweep),
        # Pictures escape what they say themselves.
        pictures=[(name, Markup(svg)) for name, svg in _pictures(sweep)],  # noqa: S704
        words=words,
        numbers=numbers,
        rows=rows,
        left=sum(1 for _ in found),
        reasons=list(islice(reasons(sweep), MOST_REASONS)),
    )


def _pictures(sweep: Sweep) -> Iterator[tuple[str, str]]:
    drawn = curves(sweep)
    if drawn is not None and len(drawn.xs) > 1:
        yield f"Requests held at once, by {drawn.name}", sweep_svg(sweep)
    elif sweep.grid.axis(CONCURRENCY) is not None:
        yield "One GPU's memory, by requests at once", sweep_memory_svg(sweep)
