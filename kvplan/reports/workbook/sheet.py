"""A sheet that is filled from the top: titles, tables, and cells that have a name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from kvplan.errors import InternalError
from kvplan.reports.clean import clean

if TYPE_CHECKING:
    from xlsxwriter.format import Format
    from xlsxwriter.workbook import Workbook
    from xlsxwriter.worksheet import Worksheet

Value = str | int | float | None
Style = Literal[
    "text",
    "wrapped",
    "head",
    "title",
    "note",
    "unit",
    "count",
    "gib",
    "money",
    "number",
    "share",
    "bold",
]
_PLAIN: dict[Style, dict[str, Any]] = {
    "text": {},
    "wrapped": {"text_wrap": True, "valign": "top"},
    "bold": {"bold": True},
    "head": {"bold": True, "bg_color": "#1F3A5F", "font_color": "#FFFFFF", "text_wrap": True},
    "title": {"bold": True, "font_size": 15},
    "note": {"italic": True, "font_color": "#595959", "indent": 1},
    "unit": {"indent": 1},
    "count": {"num_format": "#,##0"},
    "gib": {"num_format": "#,##0.00"},
    "money": {"num_format": "#,##0.00"},
    "number": {"num_format": "#,##0.0##"},
    "share": {"num_format": "0.0%"},
}
_YELLOW = {"bg_color": "#FFF2CC", "border": 1, "border_color": "#BF9000"}


_WORDS = {"gpu": "GPU", "gpus": "GPUs", "kv": "KV"}


def label(name: str) -> str:
    """A cell's name as people write it.

    >>> label("gpus_needed")
    'GPUs needed'
    """
    words = " ".join(_WORDS.get(word, word) for word in name.split("_"))
    return words[0].upper() + words[1:]


@dataclass(frozen=True)
class Formula:
    """A cell that computes.

    Attributes:
        text: Without the ``=`` in front.
        value: What it gives now; programs that don't recalculate show this.
    """

    text: str
    value: Value


@dataclass
class Book:
    """The workbook with its styles, each made once."""

    file: Workbook
    styles: dict[tuple[Style, bool], Format] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def style(self, name: Style, *, yellow: bool = False) -> Format:
        """A style; ``yellow`` marks a cell that the reader may change."""
        key = (name, yellow)
        if key not in self.styles:
            marked = {**_PLAIN[name], **(_YELLOW if yellow else {})}
            self.styles[key] = self.file.add_format(marked)
        return self.styles[key]

    def sheet(self, name: str, widths: tuple[int, ...]) -> Sheet:
        """A new sheet with its columns' widths in characters."""
        page = self.file.add_worksheet(name)
        for column, width in enumerate(widths):
            page.set_column(column, column, width)
        page.hide_gridlines(2)
        page.set_landscape()
        page.fit_to_pages(1, 0)
        return Sheet(self, page, name)

    def define(self, name: str, reference: str) -> None:
        """Gives a cell or a column of cells its name.

        Raises:
            InternalError: another one has it.
        """
        if name.lower() in self.names:
            raise InternalError(f"Two cells of the workbook would be called {name}.")
        self.names.add(name.lower())
        self.file.define_name(name, f"={reference}")


@dataclass
class Sheet:
    """One sheet and the row that is written next, from 0."""

    book: Book
    page: Worksheet
    name: str
    row: int = 0

    def title(self, text: str, note: str = "") -> None:
        """The sheet's heading, and a line below it."""
        self.put(0, text, "title")
        self.row += 1
        if note:
            self.put(0, note, "note")
            self.row += 1
        self.row += 1

    def head(self, *columns: str) -> None:
        """A table's head."""
        for column, text in enumerate(columns):
            self.put(column, text, "head")
        self.row += 1

    def put(
        self,
        column: int,
        value: Value | Formula,
        style: Style = "text",
        *,
        name: str | None = None,
        yellow: bool = False,
    ) -> str:
        """Writes a cell of the current row and returns its absolute reference.

        Text is written as text, whatever it begins with.
        """
        how = self.book.style(style, yellow=yellow)
        match value:
            case Formula(text, cached):
                shown = clean(cached) if isinstance(cached, str) else cached
                self.page.write_formula(self.row, column, f"={text}", how, shown)
            case None:
                self.page.write_blank(self.row, column, None, how)
            case str():
                self.page.write_string(self.row, column, clean(value), how)
            case _:
                self.page.write_number(self.row, column, value, how)
        reference = self.reference(self.row, column)
        if name is not None:
            self.book.define(name, reference)
        return reference

    def reference(self, row: int, column: int) -> str:
        """``Capacity!$B$4``."""
        return f"'{self.name}'!${chr(ord('A') + column)}${row + 1}"

    def below(self, column: int, first: int, last: int) -> str:
        """A column of cells: ``Capacity!$B$4:$B$9``; rows from 0, both included."""
        return f"{self.reference(first, column)}:${chr(ord('A') + column)}${last + 1}"
