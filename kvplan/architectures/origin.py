"""Where class defaults are stated: one release of transformers, read file by file."""

from __future__ import annotations

TRANSFORMERS = "v5.24.0"


def class_source(folder: str) -> str:
    """The file that states the defaults of a configuration class.

    A class of remote code is named by where the code was read: ``owner/name@commit:path``.

    >>> class_source("gemma3")
    'transformers v5.24.0 src/transformers/models/gemma3/configuration_gemma3.py'
    >>> class_source("owner/name@1234567:configuration.py")
    'owner/name@1234567:configuration.py'
    """
    if "@" in folder:
        return folder
    return f"transformers {TRANSFORMERS} src/transformers/models/{folder}/configuration_{folder}.py"
