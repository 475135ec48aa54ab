"""Functions by name, imported when they are called: a configuration needs one family of many.

A name is ``module:function``, relative to this package. Importing all families would take longer
than planning does.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def function(name: str) -> Callable[..., Any]:
    """The function that a table's row names; a test resolves every row."""
    module, _, attribute = name.partition(":")
    found: Callable[..., Any] = vars(import_module(f"{__package__}.{module}"))[attribute]
    return found
