"""Makes `vllm_cases.json` from a full collection of reference cases (see README.md).

python tests/data/compact_vllm_cases.py CASES.jsonl.gz
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from vllm_cases import case_of, difference, draft_name, gpu_of, has_config, model_of

from kvplan.errors import KvplanError

TARGET = Path(__file__).with_name("vllm_cases.json")
# Fields of a configuration that no size depends on.
_UNUSED = ("eps", "rope_theta", "rope_local", "initializer", "token_id", "scoring", "topk_group",
           "topk_method", "norm_topk", "routed_scaling", "limit", "hidden_act",
           "query_pre_attn", "dropout", "activation", "logit", "multiplier")  # fmt: skip


def modelled_cases(path: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Rows of families that kvplan reads, each with its case."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if not has_config(row):
                continue
            try:
                model_of(row["model"], row["arch"] or {})
            except KvplanError:
                continue
            yield row, case_of(row)


def traits(case: dict[str, Any]) -> set[tuple[Any, ...]]:
    """What a selection has to cover: every setting of every family, every outcome."""
    length = "given" if isinstance(case["context"], int) else case["context"]
    of_family = {
        ("outcome", case["outcome"]),
        ("kv", case["kv_dtype"], case["gpu"]),
        ("tp", case["tp"]),
        ("pp", case["pp"], case["dcp"]),
        ("length", length),
        ("estimate", "longest" in case["expected"]),
        *((name, json.dumps(value)) for name, value in case["options"].items()),
    }
    return {(case["model"], *trait) for trait in of_family} | {(case["version"], case["kv_dtype"])}


def select(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The fewest cases, greedily, that have every trait that some case has."""
    chosen: list[dict[str, Any]] = []
    missing = set().union(*(traits(case) for case in cases))
    while missing:
        best = max(cases, key=lambda case: len(traits(case) & missing))
        missing -= traits(best)
        chosen.append(best)
    return sorted(chosen, key=lambda case: (case["model"], case["id"]))


def label(case: dict[str, Any]) -> str:
    """A name for people: the model and what is out of the ordinary."""
    parallel = [f"{name}{case[name]}" for name in ("tp", "pp", "dcp") if case[name] != 1]
    options = [f"{name}={value}" for name, value in case["options"].items()]
    memory = f"{min(case['available']) / 2**30:.4g}GiB"
    gpu = case["gpu"].removeprefix("NVIDIA ").split()[0]
    parts = (case["version"], gpu, *parallel, case["kv_dtype"], *options, case["context"], memory)
    return " ".join([case["model"], *(str(part) for part in parts if part is not None)])


def main() -> None:
    """Writes one line a model and one a case, so that changes can be read."""
    rows = list(modelled_cases(Path(sys.argv[1])))
    chosen = select([case for _, case in rows])
    names = {case["model"] for case in chosen}
    models = {row["model"]: row["arch"] for row, _ in rows if row["model"] in names}
    folder = Path(sys.argv[1]).parent
    for name in {draft_name(case) for case in chosen} - {None}:
        models[str(name)] = json.loads((folder / str(name) / "config.json").read_text())
    models = {
        name: {key: value for key, value in config.items() if not any(u in key for u in _UNUSED)}
        for name, config in sorted(models.items())
    }
    gpus = {row["gpu"]["name"]: (row["gpu"]["cc"], row["gpu"]["total_memory"]) for row, _ in rows}
    lines = []
    for case in chosen:
        compute_capability, total_bytes = gpus[case["gpu"]]
        gpu = gpu_of(case["gpu"], tuple(compute_capability), total_bytes)
        model = model_of(case["model"], models[case["model"]])
        found = difference(case, model, gpu, models.__getitem__)
        if found:
            sys.exit(f"{case['id']}: {found}")
        lines.append(json.dumps({**case, "id": label(case)}))
    text = ",\n".join(
        f' "{key}": {{\n{_rows(table)}\n }}' for key, table in (("gpus", gpus), ("models", models))
    )
    cases = ",\n".join(f"  {line}" for line in lines)
    TARGET.write_text(f'{{\n{text},\n "cases": [\n{cases}\n ]\n}}\n', encoding="utf-8")
    sys.stdout.write(f"{len(lines)} of {len(rows)} cases, {len(models)} models\n")


def _rows(table: dict[str, Any]) -> str:
    return ",\n".join(
        f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(table.items())
    )


if __name__ == "__main__":
    main()
