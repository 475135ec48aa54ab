"""Makes `transformers_cases.json` from a full collection of reference cases (see README.md).

python tests/data/compact_transformers_cases.py CASES.jsonl.gz
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from transformers_cases import case_of, config_of, difference, model_of

TARGET = Path(__file__).with_name("transformers_cases.json")


def traits(case: dict[str, Any]) -> set[tuple[Any, ...]]:
    """What a selection has to cover."""
    options = case["options"]
    cache, backend = options["cache"], options.get("quant_backend")
    keeps = case.get("storage") is not None and case["storage"] != case["tensor"]
    of_model = {
        ("cache", cache, "refused" in case),
        ("decodes", cache, "decode_steps" in options),
        ("views", keeps),
        ("dtype", case["dtype"]),
        ("version", case["version"]),
    }
    packing = tuple(options.get(name) for name in ("nbits", "axis", "q_group_size"))
    return {(case["model"], *trait) for trait in of_model} | {
        (backend, packing, "decode_steps" in options, "refused" in case)
    }


def select(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The fewest cases, greedily, that have every trait that some case has."""
    chosen: list[dict[str, Any]] = []
    missing = set().union(*(traits(case) for case in cases))
    while missing:
        best = max(cases, key=lambda case: len(traits(case) & missing))
        missing -= traits(best)
        chosen.append(best)
    return sorted(chosen, key=lambda case: (case["model"], json.dumps(case)))


def main() -> None:
    """Writes one line a model and one a case, so that changes can be read."""
    with gzip.open(sys.argv[1], "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    configs = {row["model"]: config_of(row) for row in rows}
    chosen = select([case_of(row) for row in rows])
    for case in chosen:
        found = difference(case, model_of(case["model"], configs[case["model"]]))
        if found:
            sys.exit(f"{case}: {found}")
    names = sorted({case["model"] for case in chosen})
    models = ",\n".join(f"  {json.dumps(name)}: {json.dumps(configs[name])}" for name in names)
    cases = ",\n".join(f"  {json.dumps(case)}" for case in chosen)
    text = f'{{\n "models": {{\n{models}\n }},\n "cases": [\n{cases}\n ]\n}}\n'
    TARGET.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{len(chosen)} of {len(rows)} cases, {len(names)} models\n")


if __name__ == "__main__":
    main()
