"""The parts that pictures of a sweep are made of. SVG, without any dependency.

Colours are attributes, for programs that know no style sheets, and classes beside them, for
readers whose page is dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from kvplan.reports.clean import clean

LIGHT = {"paper": "#ffffff", "ink": "#33363a", "faint": "#dcdde0"}
_DARK = {"paper": "#15181d", "ink": "#d7dade", "faint": "#3a3f47"}
# Apart on white and on black, and for readers who see red and green alike; each curve has a
# dash pattern too.
COLORS = (
    "#2f7ed8", "#e0731d", "#2aa36b", "#b052c0", "#c9a100",
    "#d6455d", "#17a2b8", "#8a7f72",
)  # fmt: skip
DASHES = ("", "7 3", "2 3", "9 3 2 3", "5 2 1 2 1 2")


@dataclass(frozen=True, slots=True)
class Frame:
    """Where a diagram lies, in pixels."""

    left: float
    top: float
    width: float
    height: float

    @property
    def bottom(self) -> float:
        """Of the diagram."""
        return self.top + self.height

    @property
    def right(self) -> float:
        """Of the diagram."""
        return self.left + self.width


def picture(
    parts: Iterable[str], *, title: str, about: str, width: float, height: float, dark: bool
) -> str:
    """The whole picture.

    Args:
        parts: What is drawn.
        title: For readers who do not see it.
        about: More of it.
        width: Pixels.
        height: Pixels.
        dark: Follow the reader's page where that is dark.
    """
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}"'
        f' viewBox="0 0 {width:g} {height:g}" font-family="sans-serif" role="img">'
        f"<title>{escape(clean(title))}</title><desc>{escape(clean(about))}</desc>"
        f"{_style() if dark else ''}"
        f'<rect class="paper" width="100%" height="100%" fill="{LIGHT["paper"]}"/>'
        f"{''.join(parts)}</svg>\n"
    )


def _style() -> str:
    rules = (
        f".paper{{fill:{_DARK['paper']}}}.ink{{fill:{_DARK['ink']}}}"
        f".edge{{stroke:{_DARK['ink']}}}.grid{{stroke:{_DARK['faint']}}}"
        f".halo{{stroke:{_DARK['paper']}}}"
    )
    return f"<style>@media (prefers-color-scheme: dark){{{rules}}}</style>"


def text(
    x: float,
    y: float,
    words: str,
    *,
    size: int = 12,
    anchor: str = "start",
    bold: bool = False,
    turned: bool = False,
) -> str:
    """A line of text."""
    weight = ' font-weight="bold"' if bold else ""
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    return (
        f'<text class="ink" x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"'
        f' fill="{LIGHT["ink"]}"{weight}{turn}>{escape(clean(words))}</text>'
    )


def cut(words: str, most: int) -> str:
    """A text of at most so many characters."""
    return words if len(words) <= most else f"{words[: most - 1]}…"


def line(x: float, y: float, to_x: float, to_y: float, *, strong: bool = False) -> str:
    """A straight line: of the grid, or an edge."""
    name, color = ("edge", LIGHT["ink"]) if strong else ("grid", LIGHT["faint"])
    return (
        f'<line class="{name}" x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}"'
        f' stroke="{color}" stroke-width="{1.2 if strong else 1}"/>'
    )


def curve(points: Sequence[tuple[float, float]], color: str, dash: str = "") -> str:
    """Points joined by lines."""
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<polyline points="{_joined(points)}" fill="none" stroke="{color}" stroke-width="2"'
        f' stroke-linejoin="round"{dashes}/>'
    )


def area(points: Sequence[tuple[float, float]], fill: str, opacity: float = 1.0) -> str:
    """What lies within the points."""
    return (
        f'<polygon points="{_joined(points)}" fill={quoteattr(fill)} fill-opacity="{opacity:g}"/>'
    )


def dot(x: float, y: float, color: str, about: str) -> str:
    """A point with words that show when it is pointed at."""
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}">'
        f"<title>{escape(clean(about))}</title></circle>"
    )


def cross(x: float, y: float, color: str, about: str) -> str:
    """A mark for a point where nothing is held."""
    return (
        f'<path d="M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8" stroke="{color}" stroke-width="2"'
        f' fill="none"><title>{escape(clean(about))}</title></path>'
    )


def _joined(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
