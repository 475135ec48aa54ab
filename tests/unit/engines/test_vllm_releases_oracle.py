"""The planning code of 24 releases, 0.9.2 to 0.32.0, on recorded layer specs, without tolerance.

Left out: models with recurrent layers, and those whose unequal pages a release unifies across
kinds of layers; kvplan refuses both by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, get_args

from kvplan.engines.vllm import groups
from kvplan.engines.vllm.history import Rules, rules_for
from kvplan.engines.vllm.pages import Kind, PageSpec, counts_key_twice
from kvplan.engines.vllm.pool import Pool
from kvplan.errors import NotModelledError

Rows = Callable[[str], Iterator[dict[str, Any]]]

_KINDS: dict[str, Kind] = {
    "FullAttentionSpec": "full",
    "SlidingWindowSpec": "window",
    "ChunkedLocalAttentionSpec": "chunked",
    "MLAAttentionSpec": "latent",
}


def page_of(spec: dict[str, Any], rules: Rules, *, kept_whole: bool) -> PageSpec:
    """A recorded spec as that release would page it: the records are 0.33's."""
    kind = _KINDS[spec["cls"]]
    span = spec.get("sliding_window", spec.get("attention_chunk_size", 0))
    size = spec["page_size_bytes"]
    key, value = spec["head_size"], spec.get("head_size_v", spec["head_size"])
    if value != key and counts_key_twice(kind, rules, kept_whole=kept_whole):
        size = size * 2 * key // (key + value)
    return PageSpec(kind, spec["block_size"], size, span)


def layers_of(row: dict[str, Any], rules: Rules) -> tuple[tuple[PageSpec, ...], ...]:
    whole = any(_KINDS[spec["cls"]] in ("full", "latent") for spec in row["specs"])
    kept_whole = row["disable_hybrid_kv_cache_manager"] and whole
    pages = [page_of(spec, rules, kept_whole=kept_whole) for spec in row["specs"]]
    layers = tuple((pages[index],) for index in row["layer_spec_index"])
    if row["disable_hybrid_kv_cache_manager"]:
        layers = tuple(groups.without_hybrid_manager(layers))
    return layers


def figures(row: dict[str, Any]) -> dict[str, Any]:
    rules = rules_for(row["vllm_version"])
    layers = layers_of(row, rules)
    in_flight = {"in_flight": "max_in_flight_tokens", "batch": "max_num_batched_tokens"}
    pool = Pool(
        groups=groups.group(layers, ((0, len(layers)),), rules),
        rules=rules,
        in_flight=row[in_flight[rules.window_tokens]],
        dcp=1,
        blocks_override=None,
    )
    blocks, length = pool.blocks((row["available_bytes"],)), row["max_model_len"]
    return {
        "num_blocks": blocks,
        "num_groups": len(pool.groups),
        "group_sizes": sorted(group.layers for group in pool.groups),
        "max_concurrency": pool.concurrency(blocks, length),
        "kv_cache_size_tokens": pool.tokens(blocks, length),
    }


def test_every_release_is_equal_on_what_is_modelled(oracle: Rows) -> None:
    outcomes: Counter[str] = Counter()
    releases: set[str] = set()
    wrong: list[str] = []
    for row in oracle("vllm_hist_cases.jsonl.gz"):
        if not {spec["cls"] for spec in row["specs"]} <= set(_KINDS):
            outcomes["recurrent layers"] += 1
            continue
        try:
            got = figures(row)
        except NotModelledError:
            outcomes["unequal pages"] += 1
            continue
        outcomes["compared"] += 1
        releases.add(row["vllm_version"])
        expected = row["out"] | {"group_sizes": sorted(row["out"]["group_sizes"])}
        if got != expected:
            wrong.append(f"{row['vllm_version']} {row['model']}: {got} is not {expected}")
    assert wrong == [], f"{len(wrong)} of {outcomes['compared']}"
    assert outcomes == {"compared": 2343, "recurrent layers": 456, "unequal pages": 123}
    assert len(releases) == 24
    assert set(_KINDS.values()) <= set(get_args(Kind))
