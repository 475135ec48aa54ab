"""Where the bundled specs lie: inside the installed package, or beside it in a checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from kvplan.errors import InternalError

_PACKAGE = Path(__file__).parents[1]


def specs_dir(kind: Literal["model_specs", "gpu_specs"]) -> Path:
    """The folder of one kind of spec.

    A wheel carries the specs inside the package (``kvplan/gpu_specs``); in a checkout they lie
    beside it, where people look for them.

    Raises:
        InternalError: neither is there: the installation is broken.
    """
    for parent in (_PACKAGE, _PACKAGE.parent):
        folder = parent / kind
        if folder.is_dir():
            return folder
    raise InternalError(
        f"The bundled {kind} are not where they were installed.",
        hint="Install kvplan again.",
        location=str(_PACKAGE / kind),
    )
