"""Tables of Markdown."""

from __future__ import annotations

from collections.abc import Iterator


def header(*titles: str, words: int = 1) -> Iterator[str]:
    """A table's two first lines: the first ``words`` columns to the left, figures to the right."""
    yield row(*titles)
    yield row(*("---" for _ in titles[:words]), *("---:" for _ in titles[words:]))


def row(*cells: str) -> str:
    """One line of a table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def percent(share: float | None, digits: int = 1) -> str:
    """A share in percent; a dash where there is none."""
    return "-" if share is None else f"{100 * share:.{digits}f} %"
