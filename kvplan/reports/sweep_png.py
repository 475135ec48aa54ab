"""A picture as PNG, which resvg draws."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from kvplan.errors import UsageError

# Pixels of the PNG for one of the SVG, for screens of today.
_ZOOM = 2.0


def png(svg: str) -> bytes:
    """An SVG as PNG. Its text is drawn with the fonts of this machine.

    Raises:
        UsageError: resvg_py is not installed.
    """
    if find_spec("resvg_py") is None:
        raise UsageError(
            "PNG needs resvg_py, which is not installed.",
            hint="pip install 'kvplan-sizer[png]', or write an SVG: --format svg.",
        )
    return bytes(import_module("resvg_py").svg_to_bytes(svg_string=svg, zoom=_ZOOM))
