"""vLLM's cache planning once more, layer by layer: slow, plain, and written apart from kvplan's.

Read from vLLM 0.33.0, vllm/v1/core/kv_cache_planning.py; what older releases do otherwise is taken
from the rules. Nothing is counted or shared here: every layer is looked at for itself, lengths are
tried one by one, and nothing of kvplan computes but the records that hold the facts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from kvplan.engines.vllm.groups import Stage
from kvplan.engines.vllm.history import Rules
from kvplan.engines.vllm.pages import PageSpec

Layers = dict[int, PageSpec]
"""Layers by their index in the model."""
WHOLE = ("full", "latent", "indexer")
LOCAL = ("window", "chunked", "latent_window")


class RefusedError(Exception):
    """vLLM raises."""


def ceil(value: Fraction) -> int:
    return math.ceil(value)


def of_one_type(layers: Layers) -> bool:
    """UniformTypeKVCacheSpecs.is_uniform_type."""
    specs = list(layers.values())
    first = specs[0]
    if any(spec.block_size != first.block_size for spec in specs):
        return False
    if first.kind in WHOLE:
        return all(spec.kind in WHOLE for spec in specs)
    if any(spec.kind != first.kind for spec in specs):
        return False
    if first.kind == "recurrent":
        return all(
            (spec.page_bytes, spec.held, spec.extra) == (first.page_bytes, first.held, first.extra)
            for spec in specs
        )
    return all(spec.span == first.span for spec in specs)


def promoted(layers: Layers) -> Layers:
    """_promote_local_kv_cache_specs: windows and chunks allocate as full attention."""
    if len(set(layers.values())) == 1 or of_one_type(layers):
        return layers
    result = dict(layers)
    blocks = [spec.block_size for spec in layers.values() if spec.kind in WHOLE]
    if blocks and any(spec.kind in LOCAL for spec in layers.values()):
        for index, spec in layers.items():
            if spec.kind in LOCAL:
                block = blocks[0] if len(set(blocks)) == 1 else spec.block_size
                cell = (spec.page_bytes - spec.padding) // spec.block_size
                used = cell * block
                page = max(spec.page_bytes, used) if spec.padding else used
                result[index] = PageSpec(
                    "latent" if spec.kind == "latent_window" else "full",
                    block,
                    page,
                    sides=spec.sides,
                    padding=page - used,
                )
    # A merged FullAttentionSpec records one window and one chunk at most.
    if all(spec.kind == "full" for spec in result.values()):
        for kind in ("window", "chunked"):
            if len({spec.span for spec in layers.values() if spec.kind == kind}) > 1:
                raise RefusedError
    if len(set(result.values())) != 1 and not of_one_type(result):
        raise RefusedError
    return result


def made_equal(layers: Layers, rules: Rules) -> Layers:
    """unify_kv_cache_spec_page_size."""
    largest = max(spec.page_bytes for spec in layers.values())
    result = {}
    for index, spec in layers.items():
        used = spec.page_bytes - spec.padding
        if spec.page_bytes == largest:
            result[index] = spec
        elif spec.kind == "recurrent":
            if "recurrent" not in rules.pads:
                raise RefusedError
            result[index] = replace(spec, page_bytes=largest, padding=largest - used)
        elif largest % spec.page_bytes == 0:
            if spec.padding:
                raise RefusedError
            times = largest // spec.page_bytes
            result[index] = replace(spec, page_bytes=largest, block_size=spec.block_size * times)
        elif spec.kind in ("full", "window", "chunked", "cross") and "attention" in rules.pads:
            result[index] = replace(spec, page_bytes=largest, padding=largest - used)
        else:
            raise RefusedError
    return result


def all_allocated(layers: Layers, rules: Rules) -> Layers:
    """_try_get_full_allocation_fallback_groups."""
    kinds = {spec.kind for spec in layers.values()}
    if not rules.full_fallback or kinds & {"latent_window", "chunked"}:
        raise RefusedError
    if not (kinds & {"latent", "indexer"} and "window" in kinds):
        raise RefusedError
    result = promoted(layers)
    if not of_one_type(result):
        raise RefusedError
    return result


def dealt_out(layers: Layers, rules: Rules) -> list[Layers]:
    """_get_kv_cache_groups_uniform_page_size."""
    buckets: list[Layers] = []
    for index, spec in layers.items():
        for bucket in buckets:
            if next(iter(bucket.values())) == spec:
                bucket[index] = spec
                break
        else:
            buckets.append({index: spec})
    least = min(len(bucket) for bucket in buckets)
    most = max(len(bucket) for bucket in buckets)
    size = least
    if rules.group_slack is not None and most < Fraction(rules.group_slack) * least:
        size = most
    groups = []
    for bucket in buckets:
        indices = list(bucket)
        parts = ceil(Fraction(len(indices), size))
        for part in range(parts):
            taken = (
                indices[part::parts]
                if rules.strided_groups
                else indices[part * size : part * size + size]
            )
            groups.append({index: bucket[index] for index in taken})
    return groups


def grouped(layers: Layers, rules: Rules) -> list[Layers]:
    """get_kv_cache_groups in a layout whose layers lie one after another."""
    if len(set(layers.values())) == 1 or (rules.uniform_type and of_one_type(layers)):
        return [layers]
    try:
        equal = made_equal(layers, rules)
    except RefusedError:
        return [all_allocated(layers, rules)]
    return dealt_out(equal, rules)


def _pages(bucket: Layers) -> dict[int, list[int]]:
    sizes: dict[int, list[int]] = {}
    for index, spec in bucket.items():
        sizes.setdefault(spec.page_bytes, []).append(index)
    return sizes


def packed(layers: Layers) -> list[Layers]:
    """_get_packed_kv_cache_groups, for layers of more than one type and page."""
    buckets: list[Layers] = []
    for index, spec in layers.items():
        for bucket in buckets:
            if of_one_type({**bucket, index: spec}):
                bucket[index] = spec
                break
        else:
            buckets.append({index: spec})
    balanced = [len({len(v) for v in _pages(bucket).values()}) == 1 for bucket in buckets]
    most = [max(len(v) for v in _pages(bucket).values()) for bucket in buckets]
    together = _repeats(buckets, balanced, most)

    def parts(place: int) -> int:
        if balanced[place] and together:
            return ceil(Fraction(most[place], together))
        return 1

    def is_state(place: int) -> bool:
        kind = next(iter(buckets[place].values())).kind
        return kind == "recurrent" or (not together and kind in ("window", "latent_window"))

    def widest(place: int, groups: int) -> int:
        return sum(
            ceil(Fraction(len(v), groups)) * page for page, v in _pages(buckets[place]).items()
        )

    block = max(
        widest(place, len(bucket) if is_state(place) else parts(place))
        for place, bucket in enumerate(buckets)
    )
    groups: list[Layers] = []
    for place, bucket in enumerate(buckets):
        count = parts(place)
        if is_state(place):
            fitting = max(1, block // next(iter(bucket.values())).page_bytes)
            count = max(count, ceil(Fraction(len(bucket), fitting)))
        groups += [bucket] if count == 1 else _repeats_dealt_out(bucket, count)
    return groups


def _repeats(buckets: list[Layers], balanced: list[bool], most: list[int]) -> int | None:
    """min_repeats_per_group and _approximate_gcd, the latter by trying all."""
    floors = [
        most[place]
        for place, bucket in enumerate(buckets)
        if balanced[place] and len(_pages(bucket)) > 1
    ]
    if not floors:
        return None
    counts = [most[place] for place in range(len(buckets)) if balanced[place]]
    best = None
    for size in range(max(floors), max(counts) + 1):
        waste = sum(ceil(Fraction(count, size)) * size - count for count in counts)
        if best is None or waste <= best[0]:
            best = (waste, size)
    assert best is not None
    return best[1]


def _repeats_dealt_out(bucket: Layers, count: int) -> list[Layers]:
    columns = list(_pages(bucket).values())
    if len({len(column) for column in columns}) > 1:
        raise RefusedError  # layers would be lost
    groups = []
    for part in range(count):
        taken: Layers = {}
        for repeat in range(part, len(columns[0]), count):
            for column in columns:
                taken[column[repeat]] = bucket[column[repeat]]
        groups.append(taken)
    return groups


def held(spec: PageSpec, length: int, in_flight: int, dcp: int) -> int:
    """max_memory_usage_bytes of a layer, in blocks."""
    if spec.kind in WHOLE:
        share = ceil(Fraction(length, dcp))
        return ceil(Fraction(share, spec.block_size))
    if spec.kind in ("window", "latent_window"):
        tokens = min(spec.span - 1 + spec.extra + in_flight, length)
        return ceil(Fraction(tokens, spec.block_size)) + 1
    if spec.kind == "chunked":
        return ceil(Fraction(min(spec.span + in_flight, length), spec.block_size))
    if spec.kind == "cross":
        return ceil(Fraction(spec.span, spec.block_size))
    if spec.held is not None:
        return spec.held
    return ceil(Fraction(length, spec.block_size)) + spec.extra


def request_blocks(groups: Sequence[Layers], length: int, in_flight: int, dcp: int) -> int:
    """The largest of each group's layers, summed."""
    return sum(
        max(held(spec, length, in_flight, dcp) for spec in group.values()) for group in groups
    )


def block_bytes(groups: Sequence[Layers], stage: Stage) -> int:
    """_get_kv_cache_bytes_per_block on the ranks of one stage."""
    return max(
        sum(spec.page_bytes for index, spec in group.items() if stage[0] <= index < stage[1])
        for group in groups
    )


def blocks(groups: Sequence[Layers], stages: Sequence[Stage], available: Sequence[int]) -> int:
    """num_blocks after all workers have agreed."""
    found = []
    for stage, bytes_ in zip(stages, available, strict=True):
        size = block_bytes(groups, stage)
        if size:
            found.append(max(0, bytes_) // size)
    return min(found)


def longest(groups: Sequence[Layers], usable: int, at_most: int, in_flight: int, dcp: int) -> int:
    """The largest length that fits, by trying every one."""
    best = 0
    for length in range(1, at_most + 1):
        if request_blocks(groups, length, in_flight, dcp) <= usable:
            best = length
    return best
