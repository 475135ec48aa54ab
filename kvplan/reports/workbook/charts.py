"""How the workbook's charts look: one place, so that they look alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xlsxwriter.chart import Chart

INK, BLUE, GOLD, GREEN, RED = "#3F3F3F", "#1F3A5F", "#BF9000", "#2F855A", "#C0332B"
# Of several curves: told apart by eyes that do not see all colours, and in grey by their order.
COLORS = ("#1F3A5F", "#BF9000", "#2F855A", "#C0332B", "#77608F", "#3D8EB9", "#8A5A00", "#7F7F7F")
_GRID = {"visible": True, "line": {"color": "#D9D9D9", "width": 0.75}}
_LINE = {"color": "#A6A6A6"}


def axis(
    name: str = "", *, grid: bool = True, more: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """An axis with quiet lines.

    Args:
        name: Its title.
        grid: Whether it has lines across.
        more: Further settings of XlsxWriter's.
    """
    return {
        **({"name": name} if name else {}),
        "name_font": {"size": 10, "bold": False, "color": INK},
        "num_font": {"size": 9, "color": INK},
        "line": _LINE,
        "major_gridlines": _GRID if grid else {"visible": False},
        **(more or {}),
    }


def finish(chart: Chart, title: str, *, size: tuple[int, int], legend: bool = False) -> None:
    """Title, legend and size."""
    chart.set_title({"name": title, "name_font": {"size": 12, "color": INK}, "overlay": False})
    chart.set_legend({"position": "bottom", "font": {"size": 9}} if legend else {"none": True})
    chart.set_chartarea({"border": {"color": "#D9D9D9"}})
    chart.set_size({"width": size[0], "height": size[1]})
