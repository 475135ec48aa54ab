"""Predicted against logged weights: how much each rank holds once vLLM has loaded a model.

    python validation/weights.py RECORDS.jsonl CONFIGS

RECORDS has one engine start a line, with at least `id`, `config` (a folder below CONFIGS), `tp`,
`pp`, `weight_format` and `weights_gib`, and `modes` with "weights" in it. Prints a table, worst
first, and the median and the 95th percentile of the absolute relative error.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kvplan.architectures import quantize, read_model
from kvplan.engines.base import parse_version
from kvplan.engines.vllm.history import NEWEST
from kvplan.engines.vllm.loaded import loaded_lines
from kvplan.errors import KvplanError
from kvplan.models.formats import DTYPE_BYTES, PLAIN, Dtype
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import RankLayout, rank_bytes
from kvplan.sources.gpus import find_gpu
from kvplan.sources.local import read_folder

GIB = 2**30
LIMIT = 0.02  # beyond this an error needs a reason
# Formats as the records name them -> formats of `--weights`.
FORMATS = {
    "fp8": "fp8",
    "fp8_block": "fp8-block",
    "fp8_online": "fp8",
    "int8": "int8",
    "mxfp4": "mxfp4",
}
# What is known of the records that are off.
REASONS: Mapping[str, str] = {
    "v250": "0.7 multiplied projections out ahead (W_Q_UK, W_UV_O) and kept the products",
    "v108": "37 MiB: not explained beyond the blocks of the allocator",
    "v355": "Ascend, not CUDA",
    "w024": "its own configuration is not at hand; the base model's, packed as AWQ",
}
DTYPES: Mapping[str, Dtype] = {
    "bfloat16": "bfloat16",
    "float16": "float16",
    "half": "float16",
    "float32": "float32",
}


class Row(NamedTuple):
    """One start, predicted and logged."""

    id: str
    model: str
    version: str
    tp: int
    weight_format: str
    predicted: float
    logged: float
    remark: str

    @property
    def error(self) -> float:
        """Relative: above zero, more is predicted than was logged."""
        return self.predicted / self.logged - 1


def compare(records: Path, configs: Path) -> Iterator[Row | str]:
    """Each record as a row, or why it is left out."""
    for line in records.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if "weights" not in (record.get("modes") or ()) or not record.get("weights_gib"):
            continue
        if record.get("config") is None:
            yield f"{record['id']}: no configuration of {record['model']}"
            continue
        try:
            yield predict(record, configs / record["config"])
        except KvplanError as error:
            yield f"{record['id']}: {record['model']}: {error.message}"


def predict(record: Mapping[str, Any], folder: Path) -> Row:
    """The bytes of one rank.

    Raises:
        KvplanError: the configuration or the format is not modelled.
    """
    spec = as_loaded(read_model(read_folder(folder)), record)
    dtype = DTYPES.get(str(record.get("dtype")), spec.dtype)
    if dtype == "float32":
        dtype = "bfloat16"
    layers = len(spec.layers) // (record.get("pp") or 1)
    layout = RankLayout(tp=record.get("tp") or 1, layers=(0, layers))
    sizes = rank_bytes(spec.weights, PLAIN[dtype], layout, tied=spec.tied_embeddings)
    text_only = (record.get("multimodal") or {}).get("language_model_only")
    for part in ("mtp", "vision", "audio") if text_only else ("mtp",):
        sizes.pop(part, None)
    beside = loaded_lines(
        spec,
        element_bytes=DTYPE_BYTES[dtype],
        layout=layout,
        sm=capability(record.get("gpu")),
        at=parse_version(record.get("engine_version") or NEWEST),
    )
    return Row(
        id=record["id"],
        model=record["model"],
        version=f"{record.get('engine_version')} {record.get('engine_variant') or ''}".strip(),
        tp=layout.tp,
        weight_format=record["weight_format"],
        predicted=(sum(sizes.values()) + sum(line.value() for line in beside)) / GIB,
        logged=record["weights_gib"],
        remark=REASONS.get(record["id"], ""),
    )


def capability(name: str | None) -> tuple[int, int]:
    """Compute capability of a card; of Hopper where the record states none or it is not CUDA's."""
    stated = find_gpu(name).compute_capability if name else None
    major, minor = (stated or "9.0").split(".")
    return int(major), int(minor)


def as_loaded(spec: ModelSpec, record: Mapping[str, Any]) -> ModelSpec:
    """The model in the format of the record; its configuration is often the base model's."""
    stated = record["weight_format"]
    if spec.quantization is not None or stated in ("bf16", "fp16"):
        return spec
    if stated.startswith("int4"):
        packing = str(record.get("quantization"))
        return quantize(spec, "gptq" if "gptq" in packing else "awq")
    return quantize(spec, FORMATS[stated])


def report(rows: list[Row], left_out: list[str]) -> str:
    """The table and the two figures."""
    lines = [f"{'record':8}{'predicted':>10}{'logged':>10}{'error':>9}  tp format          model"]
    lines += [
        f"{row.id:8}{row.predicted:10.4f}{row.logged:10.4f}{row.error:9.2%}  {row.tp:2}"
        f" {row.weight_format:15} {row.model} ({row.version}) {row.remark}".rstrip()
        for row in sorted(rows, key=lambda row: -abs(row.error))
    ]
    errors = sorted(abs(row.error) for row in rows)
    beyond = sum(error > LIMIT for error in errors)
    lines.append("")
    lines += [f"left out: {reason}" for reason in left_out]
    if errors:
        p95 = errors[min(len(errors) - 1, -(-95 * len(errors) // 100) - 1)]
        lines.append(
            f"{len(errors)} records: median {statistics.median(errors):.2%}, 95th percentile"
            f" {p95:.2%}, {beyond} beyond {LIMIT:.0%}; {len(left_out)} left out"
        )
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Runs the comparison."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("records", type=Path)
    parser.add_argument("configs", type=Path)
    given = parser.parse_args(arguments)
    results = list(compare(given.records, given.configs))
    rows = [result for result in results if isinstance(result, Row)]
    print(report(rows, [result for result in results if isinstance(result, str)]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
