"""A sweep as Markdown: a table for a pull request."""

from __future__ import annotations

from itertools import islice

from kvplan.reports.clean import markdown_text
from kvplan.reports.sweep_rows import cells, fixed, headline, lines, reasons, titles
from kvplan.sweep_result import Sweep

_MOST_ROWS, _MOST_REASONS = 500, 20


def sweep_markdown(sweep: Sweep) -> str:
    """Headline, what is fixed, the table, and why points are refused."""
    words, numbers = titles(sweep)
    made = [
        f"**{markdown_text(headline(sweep))}**",
        "",
        markdown_text(fixed(sweep)),
        "",
        f"| {' | '.join(map(markdown_text, (*words, *numbers)))} |",
        f"|{'---|' * len(words)}{'--:|' * len(numbers)}",
    ]
    found = lines(sweep)
    made += (
        f"| {' | '.join(map(markdown_text, cells(sweep, line)))} |"
        for line in islice(found, _MOST_ROWS)
    )
    more = sum(1 for _ in found)
    if more:
        made += ["", f"{more:,} more rows are left out."]
    why = list(reasons(sweep))[:_MOST_REASONS]
    if why:
        made += ["", "Why not:", "", *(f"- {markdown_text(text)}" for text in why)]
    return "\n".join(made) + "\n"
