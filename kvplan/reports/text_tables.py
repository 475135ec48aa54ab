"""The tables of a plan's text report."""

from __future__ import annotations

from rich.cells import cell_len
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kvplan.ledger import total
from kvplan.plan import Advice, Plan
from kvplan.reports.capacity_rows import Scope
from kvplan.reports.changes import change_flags
from kvplan.reports.clean import clean
from kvplan.reports.device_rows import HEADER, device_word
from kvplan.reports.figures import byte_range, counted, share, size
from kvplan.reports.group_rows import GroupRow
from kvplan.reports.ledger_rows import Row, ledger_rows
from kvplan.reports.text_console import GAP, INDENT, table

# The least that prose can be read in.
_NARROWEST = 20
# Below this the widest tables leave something out.
_WIDE = 80
_WIDEST = 110  # columns that the table of cache groups takes with its layers
_CONFIDENCE_STYLES = {"assumed": "yellow", "calibrated": "cyan"}
_ROW_STYLES = {"section": "bold", "total": "bold", "group": "", "line": ""}


def ledger_table(plan: Plan, *, width: int, ascii_only: bool) -> Table:
    """Every line of one GPU with bytes, interval, confidence and, where there is room, share."""
    narrow = width < _WIDE
    numbers = ("Bytes", "Range") if narrow else ("Bytes", "Share", "Range")
    title = f"Ledger of one {device_word(plan)}"
    made = table(words=(title,), numbers=numbers, ascii_only=ascii_only)
    made.add_column("Confidence", no_wrap=True)
    whole = total(plan.ledger)
    for row in ledger_rows(plan.ledger):
        label, count, part, *rest = _ledger_cells(row, whole)
        cells = (label, count, *rest) if narrow else (label, count, part, *rest)
        made.add_row(*cells, style=_ROW_STYLES[row.kind])
    return tightened(made) if narrow else made


def tightened(made: Table) -> Table:
    """The same table with less between its columns."""
    made.padding = (0, 1, 0, 0)
    return made


def _ledger_cells(row: Row, whole: int) -> tuple[Text, ...]:
    return (
        Text(" " * INDENT * row.depth + clean(row.label)),
        Text(size(row.bytes)),
        Text(share(row.bytes, whole)),
        Text(byte_range(row.low, row.high)),
        Text(row.confidence, style=_CONFIDENCE_STYLES.get(row.confidence, "")),
    )


def capacity_table(scopes: tuple[Scope, ...], *, ascii_only: bool) -> Table:
    """The figures of each scope under its title."""
    made = table(words=("Capacity",), numbers=("Value",), ascii_only=ascii_only)
    made.add_column("", overflow="fold")
    for scope in scopes:
        made.add_row(Text(scope.title), style="bold")
        for figure in scope.figures:
            remark = "; ".join(part for part in (figure.interval, figure.remark) if part)
            made.add_row(Text(f"{' ' * INDENT}{figure.label}"), Text(figure.value), Text(remark))
    return made


def groups_table(rows: tuple[GroupRow, ...], *, width: int, ascii_only: bool) -> Table:
    """Groups of layers whose caches share blocks; on a narrow page without which layers."""
    narrow = width < _WIDEST
    line = "\n" if narrow else " "
    numbers = ("Page", f"Tokens{line}a block", f"Blocks{line}a request", f"Unused{line}a block")
    made = table(words=("Cache groups", "Layers"), numbers=numbers, ascii_only=ascii_only)
    for column in made.columns[:2]:
        column.no_wrap = True
    for row in rows:
        kind = clean(row.kind) if row.groups == 1 else f"{row.groups} × {clean(row.kind)}"
        layers = row.layers.partition(":")[0] if narrow else row.layers
        padding = row.padding.replace(" (", "\n(") if width < _WIDE else row.padding
        figures = (row.page, row.block_size, row.held, padding)
        made.add_row(Text(f"{' ' * INDENT}{kind}"), Text(layers), *figures)
    return tightened(made) if narrow else made


def devices_table(rows: tuple[tuple[str, ...], ...], *, width: int, ascii_only: bool) -> Table:
    """Every device with what lies on it."""
    narrow = width < _WIDE
    numbers = HEADER[:-1] if narrow else HEADER
    made = table(words=("Devices",), numbers=numbers, ascii_only=ascii_only)
    for name, *figures in rows:
        shown = name.partition(" ")[0] if narrow else name
        made.add_row(Text(f"{' ' * INDENT}{clean(shown)}"), *figures[: len(numbers)])
    return tightened(made) if narrow else made


def advice_table(advice: tuple[Advice, ...], *, width: int, ascii_only: bool) -> Table:
    """What to change: how, what it gains in the whole deployment, what it costs."""
    made = table(words=(), numbers=(), ascii_only=ascii_only)
    made.leading = 1
    gains = [_gain(one) for one in advice]
    left = width - max(cell_len(line) for gain in gains for line in gain.split("\n")) - 2 * GAP
    natural = INDENT + max(cell_len(clean(one.action)) for one in advice)
    action = min(
        max(_flags_width(advice), min(natural, left // 2)), max(left - _NARROWEST, left // 2)
    )
    made.add_column("What to change", width=action)
    made.add_column("Gain", justify="right", no_wrap=True)
    made.add_column("Cost", width=left - action)
    for one, gain in zip(advice, gains, strict=True):
        made.add_row(_action(one), Text(gain), Text(_cost(one), overflow="fold"))
    return made


def _flags_width(advice: tuple[Advice, ...]) -> int:
    flags = [cell_len(flag) for one in advice for flag in change_flags(one.change)]
    return INDENT + max(flags, default=0)


def _action(advice: Advice) -> Padding:
    text = Text(clean(advice.action), overflow="fold")
    for flag in change_flags(advice.change):
        text.append(f"\n{clean(flag)}", style="cyan")
    return Padding(text, (0, 0, 0, INDENT))


def _gain(advice: Advice) -> str:
    """Requests, and tokens unless fewer are kept than before: then there is no gain in them."""
    gains = [counted(advice.gain.requests, "request")]
    if advice.gain.tokens >= 0:
        gains.append(counted(advice.gain.tokens, "token"))
    return "\n".join(f"+{gain}" for gain in gains)


def _cost(advice: Advice) -> str:
    return "\n".join(clean(part) for part in (advice.cost, advice.note) if part)
