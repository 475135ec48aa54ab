"""Whether torch is there, before anything that imports it is."""

from __future__ import annotations

from importlib.util import find_spec

from kvplan.errors import FactsError

EXTRA = "pip install 'kvplan-sizer[measure]'"


def check() -> None:
    """Does nothing where torch is installed.

    Raises:
        FactsError: it is not.
    """
    if find_spec("torch") is None:
        raise FactsError(
            "Measuring needs torch, which is not installed here.",
            hint=f"Install it with {EXTRA}; a build for your GPU is best installed first.",
        )
