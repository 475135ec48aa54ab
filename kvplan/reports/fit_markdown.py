"""A search for a pull request or a wiki."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from kvplan.fit_result import FitResult
from kvplan.reports import fit_rows
from kvplan.reports.clean import markdown_code, markdown_text

_HEADER = (
    "| # | GPUs | Run as | Holds | Headroom | Price/h | Token ≥ | Prompt ≥ | Remarks |",
    "| ---: | --- | --- | ---: | ---: | ---: | ---: | ---: | --- |",
)


def fit_markdown(found: FitResult, *, top: int) -> str:
    """GitHub-flavoured Markdown: the answer, the plans, why the others lost."""
    return "\n".join(_lines(found, top)) + "\n"


def _lines(found: FitResult, top: int) -> Iterator[str]:
    yield f"**{markdown_text(fit_rows.headline(found))}**"
    yield ""
    yield f"{markdown_text(found.model)}. {markdown_text(fit_rows.searched(found))}"
    plans = fit_rows.shown(found, top)
    for listing in fit_rows.listings(found, top):
        if listing.title:
            yield ""
            yield f"{markdown_text(listing.title)}:"
        yield ""
        yield from _HEADER
        for row in fit_rows.plan_rows(listing.plans):
            gpus = f"{row.hardware} ({row.bought})" if row.bought else row.hardware
            cells = (
                row.rank,
                gpus,
                f"{row.run}; {row.formats}",
                row.holds,
                row.headroom,
                row.price,
                row.token,
                row.first,
                row.remarks,
            )
            yield f"| {' | '.join(markdown_text(cell) for cell in cells)} |"
    yield from _lost(found)
    for title, words in fit_rows.commands(found):
        yield ""
        yield f"{title}: {markdown_code(shlex.join(words))}"
    yield ""
    for text in (*fit_rows.prices_said(plans), *found.assumed):
        yield f"- {markdown_text(text)}"


def _lost(found: FitResult) -> Iterator[str]:
    lost = list(fit_rows.why_lost(found))
    if not lost:
        return
    yield ""
    yield "Why the others lost:"
    yield ""
    for sentence, parts in lost:
        yield f"- {markdown_text(sentence)}"
        yield from (f"  - {markdown_text(part)}" for part in parts)
