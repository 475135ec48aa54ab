"""What computes on millions of numbers does so with numpy, which is an extra."""

from __future__ import annotations

from importlib.util import find_spec

from kvplan.errors import UsageError


def check(what: str = "The hit-rate curve") -> None:
    """Raises where numpy is not installed.

    Raises:
        UsageError: it is not.
    """
    if find_spec("numpy") is None:
        raise UsageError(
            f"{what} needs numpy.",
            hint="Install it: pip install 'kvplan-sizer[sim]'.",
        )
