"""Words of the flags of `kvplan sweep` → arguments of `kvplan.sweep`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kvplan.errors import UsageError, shown

_FORMATS = {
    "": "text",
    ".txt": "text",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".md": "markdown",
    ".markdown": "markdown",
    ".parquet": "parquet",
    ".svg": "svg",
    ".xlsx": "xlsx",
    ".html": "html",
    ".png": "png",
}


def parse_vary(texts: Sequence[str]) -> dict[str, str]:
    """Values by the name of the input, as they were typed.

    >>> parse_vary(["context=8k..32k*2", "kv-dtype=auto,fp8"])
    {'context': '8k..32k*2', 'kv_dtype': 'auto,fp8'}

    Raises:
        UsageError: a text without a name or an equals sign, or a name that comes twice.
    """
    found: dict[str, str] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise UsageError(
                f"{shown(text)} does not say what is varied.",
                hint="Write --vary context=8k..128k*2, or --vary kv_dtype=auto,fp8.",
                location="--vary",
            )
        if name in found:
            raise UsageError(
                f"{name} is varied twice.", hint="Put all values in one list.", location="--vary"
            )
        found[name] = values
    return found


def parse_format(wanted: str | None, output: Path | None) -> str:
    """The format: as asked for, or by the file's ending.

    >>> parse_format(None, Path("out.parquet")), parse_format("csv", None), parse_format(None, None)
    ('parquet', 'csv', 'text')
    """
    if wanted is not None:
        return wanted
    ending = output.suffix.lower() if output else ""
    if ending not in _FORMATS:
        raise UsageError(
            f"No format of a sweep has the ending {shown(ending)}.",
            hint=f"End the file's name in one of {', '.join(filter(None, _FORMATS))}, or give"
            " --format.",
            location="--output",
        )
    return _FORMATS[ending]
