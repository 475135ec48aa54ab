"""Makes `llamacpp_cases.json` from a full collection of reference cases (see README.md).

python tests/data/compact_llamacpp_cases.py FOLDER_OF_THE_COLLECTION
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from llamacpp_cases import device_difference, difference, expected_of, spec_from

from kvplan.sources.gguf import read_header

TARGET = Path(__file__).with_name("llamacpp_cases.json")
# Metadata that no size depends on.
_UNUSED = ("epsilon", "general.name", "tokenizer", "rope.freq", "scale", "softcapping")

_BY_MODEL = ("fa", "kv_unified", "swa_full", "n_rs_seq", "offload_kqv")


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of one file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def metadata_of(path: Path) -> dict[str, Any]:
    """What a GGUF file states and a size depends on."""
    stated = read_header(path).metadata
    return {key: value for key, value in stated.items() if not any(u in key for u in _UNUSED)}


def traits(row: dict[str, Any]) -> set[tuple[Any, ...]]:
    """What a selection has to cover: every value of every setting, the telling ones by model."""
    fixed = ("n_gpu_layers", "tensor_split")
    settings = row["params"] | {name: row[name] for name in fixed if name in row}
    found: set[tuple[Any, ...]] = {(name, json.dumps(v)) for name, v in settings.items()}
    of_model = {(row["model"], name, settings.get(name)) for name in _BY_MODEL}
    types = (settings.get("type_k", "f16"), settings.get("type_v", "f16"))
    of_model |= {(row["model"], "ok", row["ok"]), (row["model"], "f16", {*types} == {"f16"})}
    return found | of_model


def select(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The fewest rows, greedily, that have every trait that some row has."""
    chosen: list[dict[str, Any]] = []
    missing = set().union(*map(traits, rows))
    while missing:
        best = max(rows, key=lambda row: len(traits(row) & missing))
        missing -= traits(best)
        chosen.append(best)
    return chosen


def main(folder: Path) -> None:
    """Writes the selection, one case a line; refuses a case that kvplan gets wrong."""
    contexts = [row for row in rows_of(folder / "llamacpp_cases.jsonl.gz") if row["size"] == "full"]
    contexts = select(contexts)
    devices = select(list(rows_of(folder / "llamacpp_offload_cases.jsonl.gz")))
    names = sorted({row["model"] for row in (*contexts, *devices)})
    models = {name: metadata_of(folder / "gguf" / f"{name}.full.gguf") for name in names}
    specs = {name: spec_from(json.loads(json.dumps(stated))) for name, stated in models.items()}
    for row in contexts:
        found = difference(specs[row["model"]], row["params"], expected_of(row))
        assert not found, (row["model"], row["params"], found)
    for row in devices:
        assert not device_difference(specs[row["model"]], row), row
    parts = {
        "models": models,
        "contexts": [[row["model"], row["params"], expected_of(row)] for row in contexts],
        "devices": [
            {
                **{name: row[name] for name in ("model", "n_gpu_layers", "tensor_split", "params")},
                "measured": {
                    name: {"context": parts["context"]} for name, parts in row["measured"].items()
                },
            }
            for row in devices
        ],
    }
    lines = []
    for name, part in parts.items():
        entries = part.items() if isinstance(part, dict) else ((None, entry) for entry in part)
        inner = ",\n".join(
            (f"{json.dumps(key)}: " if key else "") + json.dumps(entry) for key, entry in entries
        )
        brackets = "{}" if isinstance(part, dict) else "[]"
        lines.append(f'"{name}": {brackets[0]}\n{inner}\n{brackets[1]}')
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    sys.stdout.write(f"{len(contexts)} contexts, {len(devices)} devices\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
