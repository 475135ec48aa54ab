"""Rows of a diff as words: both sides and the change."""

from __future__ import annotations

from kvplan.check_diff import DiffRow, ScenarioDiff
from kvplan.units import format_bytes, format_count, format_money


def side(row: DiffRow, value: float | str | None) -> str:
    """One side of a row; a dash where that side does not have it."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    match row.unit:
        case "bytes":
            return format_bytes(value)
        case "money":
            return format_money(value, row.currency)
        case "share":
            return f"{100 * value:.3g} %"
        case _:
            return format_count(value)


def sides(row: DiffRow) -> tuple[str, str]:
    """Both sides; exact where they would print the same."""
    old, new = side(row, row.old), side(row, row.new)
    if old == new and isinstance(row.old, int) and isinstance(row.new, int):
        return f"{row.old:,}", f"{row.new:,}"
    return old, new


def change(row: DiffRow) -> str:
    """The difference with its sign, and in percent; empty for words."""
    if not isinstance(row.old, int | float) or not isinstance(row.new, int | float):
        return ""
    by = row.new - row.old
    sign = "+" if by > 0 else "−"
    amount = side(row, abs(by))
    if row.unit == "share":
        return f"{sign}{amount}"  # a percentage of percentages would be read wrongly
    percent = f" ({sign}{abs(by) / row.old:.1%})".replace("%", " %") if row.old else ""
    return f"{sign}{amount}{percent}"


def title(each: ScenarioDiff) -> str:
    """What became of a scenario, in a word."""
    if each.status != "changed":
        return each.status
    return "worse" if each.worse else "changed"
