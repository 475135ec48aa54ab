"""Predicted against stated: the bytes of a checkpoint from its config.json alone.

    python validation/index_totals.py CONFIGS

CONFIGS has a folder a model, with `config.json` and the index of its weight files
(`model.safetensors.index.json` or `pytorch_model.bin.index.json`), whose `metadata.total_size` is
what is compared. Prints what is more than half a percent off, worst first, and the median.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kvplan.architectures import read_model
from kvplan.errors import KvplanError
from kvplan.models.facts import ModelFacts
from kvplan.models.formats import PLAIN
from kvplan.models.weights import stored_bytes
from kvplan.sources.json_reader import parse_json_object

LIMIT = 0.005  # beyond this a difference needs a reason
INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
LARGEST = 2**26
_UNTYPED = "its configuration names no type, which means float32; its files are in 16 bits"
_UNSIZED = "its towers are not described by its configuration, and not counted"
# What is known of the folders that are off.
REASONS: Mapping[str, str] = {
    "Orenguteng--Lexi-Llama-3-8B-Uncensored": (
        "its index states 1.5 GiB more than the tensors that it lists"
    ),
    "THUDM--chatglm-6b": "its index is of the first release, with a vocabulary of 150,528",
    "MBZUAI--AIN": "its files are in float32, though it says bfloat16",
    "mustafaaljadery--llama3v": (
        "its files are in float32, though it says float16, and hold a tower nothing describes"
    ),
    "tiiuae--falcon-180B-chat": "its files hold the tied head a second time",
    "tiiuae--falcon-40b-refinedweb": "its files hold the tied head a second time",
    "bryce-hoehn--Qwen3.5-18B-REAP-A3B-Coding": (
        "its configuration states a draft module that its files do not hold"
    ),
    "bryce-hoehn--Qwen3.5-25B-REAP-A3B-Coding": (
        "its configuration states a draft module that its files do not hold"
    ),
    "MiniMaxAI--MiniMax-M1-80k": _UNTYPED,
    "OpenBMB--Scicore-Omics": "its encoder of genes is not described, and not counted",
    "Qwen--Qwen-72B-Chat": _UNTYPED,
    "Qwen--Qwen-7B": _UNTYPED,
    "Qwen--Qwen-7B-Chat-Int4": f"{_UNTYPED} where they are not packed",
    "Salesforce--xgen-mm-phi3-mini": _UNSIZED,
    "alibaba--Logics-Thinking": _UNSIZED,
    "bigscience--bloom": _UNTYPED,
    "Youssofal--Qwen3.8-27B-MTPLX-Optimized-Speed": "its total leaves out the draft module",
}


class Row(NamedTuple):
    """One checkpoint, predicted and stated."""

    model: str
    predicted: int
    stated: int

    @property
    def error(self) -> float:
        """Relative: above zero, more is predicted than the index states."""
        return self.predicted / self.stated - 1


def compare(configs: Path) -> Iterator[Row | str]:
    """Each folder with an index as a row, or why it is left out."""
    for folder in sorted(path for path in configs.iterdir() if path.is_dir()):
        index = next((folder / name for name in INDEXES if (folder / name).exists()), None)
        if index is None:
            continue
        total = _total(_read(index))
        if total is None:
            yield f"{folder.name}: its index states no total"
            continue
        try:
            yield Row(folder.name, predict(folder), total)
        except KvplanError as error:
            yield f"{folder.name}: {error.message}"


def predict(folder: Path) -> int:
    """Bytes of all tensors, from the configuration alone.

    Raises:
        KvplanError: the configuration or its quantization is not modelled.
    """
    beside = folder / "hf_quant_config.json"
    spec = read_model(
        ModelFacts(
            id=folder.name,
            source=str(folder / "config.json"),
            config=_read(folder / "config.json"),
            quantization=_read(beside) if beside.exists() else None,
        )
    )
    return sum(stored_bytes(spec.weights, PLAIN[spec.dtype]).values())


def _read(path: Path) -> dict[str, Any]:
    return parse_json_object(path.read_bytes(), str(path), limit=LARGEST)


def _total(index: Mapping[str, Any]) -> int | None:
    total = (index.get("metadata") or {}).get("total_size")
    return int(total) if isinstance(total, int | float) and total > 0 else None


def report(rows: list[Row], left_out: list[str]) -> str:
    """The table and the figures."""
    beyond = [row for row in rows if abs(row.error) > LIMIT]
    width = max((len(row.model) for row in beyond), default=0)
    lines = [
        f"{row.model:{width}}{row.predicted:18,}{row.stated:18,}{row.error:9.2%}"
        f"  {REASONS.get(row.model, 'not explained')}"
        for row in sorted(beyond, key=lambda row: -abs(row.error))
    ]
    lines += [f"left out: {reason}" for reason in left_out]
    errors = [abs(row.error) for row in rows]
    if errors:
        lines.append(
            f"{len(rows)} indexes: {errors.count(0)} to the byte, median"
            f" {statistics.median(errors):.4%}, {len(beyond)} beyond {LIMIT:.1%};"
            f" {len(left_out)} left out"
        )
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Runs the comparison."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("configs", type=Path)
    results = list(compare(parser.parse_args(arguments).configs))
    rows = [result for result in results if isinstance(result, Row)]
    print(report(rows, [result for result in results if isinstance(result, str)]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
