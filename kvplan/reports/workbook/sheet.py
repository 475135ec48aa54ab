"""A sheet that is filled from the top: titles, tables, and cells that have a name."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
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
    "head_right",
    "head_indent",
    "answer",
    "title",
    "note",
    "unit",
    "formula",
    "count",
    "gib",
    "money",
    "fine_money",
    "year",
    "times",
    "number_left",
    "tenth",
    "risk",
    "number",
    "share",
    "bold",
    "warning",
]
_HEAD = {
    "bold": True,
    "bg_color": "#1F3A5F",
    "font_color": "#FFFFFF",
    "text_wrap": True,
    "valign": "bottom",
}
_WRAPPED = ("wrapped", "note", "formula", "head", "head_right", "head_indent")
_LINE_HEIGHT, _TITLE_HEIGHT, _A4 = 15, 24, 9
# Characters of text in a column as wide as one digit, before they wrap.
_FILLED = 1.05
_PLAIN: dict[Style, dict[str, Any]] = {
    "text": {},
    "wrapped": {"text_wrap": True},
    "bold": {"bold": True},
    "warning": {"bold": True, "font_color": "#A3211B"},
    "answer": {"bold": True, "align": "right"},
    "head": {**_HEAD, "align": "left"},
    "head_indent": {**_HEAD, "align": "left", "indent": 1},
    "head_right": {**_HEAD, "align": "right"},
    "title": {"bold": True, "font_size": 15, "font_color": "#1F3A5F"},
    "note": {
        "italic": True,
        "font_color": "#5A5A5A",
        "align": "left",
        "indent": 1,
        "text_wrap": True,
    },
    "unit": {"align": "left", "indent": 1},
    "formula": {"font_name": "Consolas", "font_size": 9, "text_wrap": True},
    "count": {"num_format": "#,##0"},
    "gib": {"num_format": "#,##0.00"},
    "money": {"num_format": "#,##0.00", "align": "right"},
    "fine_money": {"num_format": "#,##0.0000", "align": "right"},
    "tenth": {"num_format": "#,##0.0"},
    "risk": {"num_format": "0.000%"},
    "number_left": {"num_format": "#,##0", "align": "left"},
    "times": {"num_format": "#,##0.##", "align": "left"},
    "year": {"num_format": "0", "align": "left"},
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

    @cached_property
    def looks(self) -> tuple[Format, Format]:
        """Of a yes and of a no."""
        return (
            self.file.add_format({"font_color": "#1A6B3C", "bg_color": "#E2F0E6"}),
            self.file.add_format({"font_color": "#A3211B", "bg_color": "#FBE5E3"}),
        )

    def style(self, name: Style, *, yellow: bool = False) -> Format:
        """A style; ``yellow`` marks a cell that the reader may change."""
        key = (name, yellow)
        if key not in self.styles:
            marked = {"valign": "top", **_PLAIN[name], **(_YELLOW if yellow else {})}
            self.styles[key] = self.file.add_format(marked)
        return self.styles[key]

    def sheet(self, name: str, widths: tuple[int, ...], *, pages: int = 0) -> Sheet:
        """A new sheet with its columns' widths in characters.

        Args:
            name: Its name.
            widths: Of its columns.
            pages: Pages that it is printed on at most; 0: as many as it takes.
        """
        page = self.file.add_worksheet(name)
        for column, width in enumerate(widths):
            page.set_column(column, column, width)
        page.hide_gridlines(2)
        page.set_landscape()
        page.set_paper(_A4)
        page.set_margins(left=0.5, right=0.5, top=0.6, bottom=0.7)
        page.set_footer("&L&8kvplan&C&8&A&R&8&P / &N")
        page.fit_to_pages(1, pages)
        return Sheet(self, page, name, widths)

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
    widths: tuple[int, ...]
    row: int = 0
    heights: dict[int, int] = field(default_factory=dict)

    def title(self, text: str, note: str = "") -> None:
        """The sheet's heading, and a line below it."""
        self.put(0, text, "title")
        self.page.set_row(self.row, _TITLE_HEIGHT)
        self.row += 1
        if note:
            self.across(0, note, "note")
            self.row += 1
        self.row += 1

    def head(self, *columns: str, right: tuple[int, ...] = ()) -> None:
        """A table's head; titles of columns of numbers stand ``right``."""
        for column, text in enumerate(columns):
            beside = column - 1 in right
            left: Style = "head_indent" if beside else "head"
            self.put(column, text, "head_right" if column in right else left)
        self.row += 1

    def across(self, first: int, text: str, style: Style = "wrapped") -> None:
        """Text over all columns from ``first`` on."""
        last = len(self.widths) - 1
        if first == last:
            self.put(first, text, style)
            return
        how = self.book.style(style)
        # A merged cell is written as what its text looks like; written again it stays text.
        self.page.merge_range(self.row, first, self.row, last, "", how)
        self.page.write_string(self.row, first, clean(text), how)
        self._make_room(clean(text), sum(self.widths[first:]))

    def freeze(self) -> None:
        """Rows above the next one stay where they are, and are printed on every page."""
        self.page.freeze_panes(self.row, 0)
        self.page.repeat_rows(self.row - 1)

    def _make_room(self, text: str, width: int) -> None:
        """Makes the row high enough: not every program does that for wrapped text."""
        lines = sum(max(1, math.ceil(len(line) / (_FILLED * width))) for line in text.split("\n"))
        if lines > self.heights.get(self.row, 1):
            self.heights[self.row] = lines
            self.page.set_row(self.row, _LINE_HEIGHT * lines)

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
        if style in _WRAPPED and isinstance(value, str) and column < len(self.widths):
            self._make_room(clean(value), self.widths[column])
        reference = self.reference(self.row, column)
        if name is not None:
            self.book.define(name, reference)
        return reference

    def reference(self, row: int, column: int) -> str:
        """``Capacity!$B$4``."""
        return f"'{self.name}'!${_letters(column)}${row + 1}"

    def below(self, column: int, first: int, last: int) -> str:
        """A column of cells: ``Capacity!$B$4:$B$9``; rows from 0, both included."""
        return f"{self.reference(first, column)}:${_letters(column)}${last + 1}"


def _letters(column: int) -> str:
    """A column's name, from 0.

    >>> _letters(0), _letters(25), _letters(26)
    ('A', 'Z', 'AA')
    """
    high, low = divmod(column, 26)
    return (_letters(high - 1) if high else "") + chr(ord("A") + low)


def judge(sheet: Sheet, cells: str) -> None:
    """Colours cells that say ``fits`` or ``yes``, or else that it does not."""
    where = cells.partition("!")[2].replace("$", "")
    good, bad = sheet.book.looks
    for words, look in ((("fits", "yes"), good), (("does not fit", "no"), bad)):
        for word in words:
            rule = {"type": "cell", "criteria": "==", "value": f'"{word}"', "format": look}
            sheet.page.conditional_format(where, rule)
