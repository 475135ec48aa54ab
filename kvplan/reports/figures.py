"""Numbers and intervals as the reports write them."""

from __future__ import annotations

from kvplan.ledger import LedgerLine
from kvplan.plan import EnginePart
from kvplan.units import format_bytes, format_count

# Above this a percentage is hard to read.
_MOST_PERCENT = 1000


def share(part: int | None, whole: int) -> str:
    """A share in percent, or how many times the whole; empty where there is no part or no whole.

    >>> share(1, 3), share(1, 10**6), share(0, 5), share(-1, 4), share(5000, 4)
    ('33.3 %', '<0.1 %', '0.0 %', '-25.0 %', '1,250 times')
    """
    if part is None or whole <= 0:
        return ""
    if part > _MOST_PERCENT * whole // 100:
        return f"{part / whole:,.0f} times"
    percent = 100 * part / whole
    return "<0.1 %" if 0 < percent < 0.05 else f"{percent:.1f} %"


def size(count: int | None) -> str:
    """Bytes for people; empty where there is no figure."""
    return "" if count is None else format_bytes(count)


def byte_range(low: int | None, high: int | None) -> str:
    """An interval of bytes; empty where the ends print the same.

    >>> byte_range(2**30, 3 * 2**30), byte_range(7, 7), byte_range(2**20, 2**30)
    ('1.00–3.00 GiB', '', '1 MiB–1.00 GiB')
    """
    if low is None or high is None:
        return ""
    first, last = format_bytes(low), format_bytes(high)
    if first == last:
        return ""
    number, _, unit = first.rpartition(" ")
    return f"{number}–{last}" if last.endswith(f" {unit}") else f"{first}–{last}"


def count_range(low: int | None, high: int | None) -> str:
    """An interval of counts; empty where both ends are the same.

    >>> count_range(1000, 2000), count_range(5, 5), count_range(None, 5)
    ('1,000–2,000', '', '')
    """
    if low is None or high is None or low == high:
        return ""
    return f"{format_count(low)}–{format_count(high)}"


def counted(count: int, noun: str) -> str:
    """A count with its noun.

    >>> counted(1, "request"), counted(1200, "request")
    ('1 request', '1,200 requests')
    """
    return f"{format_count(count)} {noun}" + ("" if count == 1 else "s")


def parameters(count: int | None) -> str:
    """Parameters in billions or millions; empty where unknown.

    >>> parameters(70553706496), parameters(None), parameters(22713216)
    ('70.55 B parameters', '', '22.71 M parameters')
    """
    if count is None:
        return ""
    if count < 10**8:
        return f"{count / 10**6:,.2f} M parameters"
    return f"{count / 10**9:,.2f} B parameters"


def filled_in(line: LedgerLine) -> str:
    """The line's formula with its numbers, and what it gives."""
    numbers, value = line.explain(), f"{line.bytes:_}"
    return value if numbers == value else f"{numbers} = {value}"


def assumed_settings(engine: EnginePart) -> tuple[str, ...]:
    """What kvplan filled in, with the value where the engine has an option of that name."""
    options = engine.options
    return tuple(
        f"{name} = {options[name]}" if name in options else name for name in engine.assumed
    )
