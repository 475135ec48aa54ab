"""What all text reports share: the console they are laid out on, and the look of a table."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO

from rich.box import SIMPLE_HEAD, Box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kvplan.reports.clean import ascii_text

# Columns of an indent and between two columns.
INDENT, GAP = 2, 3
# A rule under the header and nothing else, as SIMPLE_HEAD, in ASCII.
_ASCII_HEAD = Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)


def lay_out(parts: Iterable[RenderableType], *, width: int, color: bool, ascii_only: bool) -> str:
    """The parts one under the other, no line wider than ``width``, without trailing blanks."""
    console = Console(
        file=StringIO(),
        width=width,
        color_system="standard" if color else None,
        force_terminal=color,
        no_color=not color,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    text = "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"
    return ascii_text(text) if ascii_only else text


def table(*, words: tuple[str, ...], numbers: tuple[str, ...], ascii_only: bool) -> Table:
    """A table with columns of words that may wrap, then of numbers that never do."""
    made = Table(
        box=_ASCII_HEAD if ascii_only else SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, GAP - 1, 0, 0),
        header_style="bold",
        show_edge=False,
    )
    for word in words:
        made.add_column(word, overflow="fold")
    for number in numbers:
        made.add_column(number, justify="right", no_wrap=True)
    return made


def spaced(part: RenderableType) -> RenderableType:
    """The part with an empty line above it."""
    return Padding(part, (1, 0, 0, 0))


def items(title: str, texts: Iterable[Text]) -> RenderableType:
    """A title and a list, each item with a hanging indent."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for text in texts:
        if text:
            grid.add_row(" " * INDENT + "-", text)
    return Group(Text(title, style="bold"), grid)
