"""Pieces of a picture in SVG that several pictures are made of; no dependency."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

INK, FAINT = "#3a3a3a", "#9a9a9a"


def text(
    x: float,
    y: float,
    words: str,
    *,
    anchor: str = "start",
    size: int = 12,
    color: str = INK,
    weight: str = "normal",
) -> str:
    """One line of text; y is its foot."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{color}" font-weight="{weight}"'
        f' text-anchor="{anchor}">{escape(words)}</text>'
    )


def box(x: float, y: float, width: float, height: float, color: str) -> str:
    """A filled rectangle."""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(0.0, width):.1f}"'
        f' height="{max(0.0, height):.1f}" fill="{color}"/>'
    )


def line(points: Sequence[tuple[float, float]], color: str, *, dashed: bool = False) -> str:
    """A line through points."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dashes = ' stroke-dasharray="5 4"' if dashed else ""
    return f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.5"{dashes}/>'


def picture(width: float, height: float, parts: Sequence[str]) -> str:
    """The whole file, on white."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'
    )
