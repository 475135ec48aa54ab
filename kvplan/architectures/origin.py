"""Where class defaults are stated: one release of transformers, read file by file."""

from __future__ import annotations

TRANSFORMERS = "v5.24.0"


def class_source(folder: str) -> str:
    """The file that states the defaults of a configuration class.

    >>> class_source("gemma3")
    'transformers v5.24.0 src/transformers/models/gemma3/configuration_gemma3.py'
    """
    return f"transformers {TRANSFORMERS} src/transformers/models/{folder}/configuration_{folder}.py"
