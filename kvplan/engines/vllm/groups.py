"""Which layers share blocks: vLLM's cache groups.

Uniform (all specs equal), uniform type (one family, unequal pages), or hybrid (equal pages,
buckets cut to one group size). Source: vLLM 0.33.0, vllm/v1/core/kv_cache_planning.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kvplan.engines.vllm.history import Rules
from kvplan.engines.vllm.pages import PageSpec
from kvplan.errors import NotModelledError
from kvplan.models.formats import ceil_div

Stage = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Group:
    """Layers that are handed blocks together.

    Attributes:
        page: The spec that decides how many blocks a request holds.
        layers: Layer specs in the group, over all stages.
        stage_bytes: For each pipeline stage, the pages of its layers of the group, summed.
    """

    page: PageSpec
    layers: int
    stage_bytes: tuple[int, ...]


def without_hybrid_manager(layers: Sequence[tuple[PageSpec, ...]]) -> list[tuple[PageSpec, ...]]:
    """With the hybrid manager off, windows and chunks beside full layers are kept whole."""
    if not any(page.family == "full" for pages in layers for page in pages):
        return list(layers)
    return [
        tuple(
            page if page.family == "full" else replace(page, kind="full", span=0) for page in pages
        )
        for pages in layers
    ]


def group(
    layers: Sequence[tuple[PageSpec, ...]], stages: Sequence[Stage], rules: Rules
) -> tuple[Group, ...]:
    """Forms the groups of the whole model and projects them on its pipeline stages.

    Raises:
        NotModelledError: unequal pages across families, or no cache at all.
    """
    placed = [(index, page) for index, pages in enumerate(layers) for page in pages]
    distinct = list(dict.fromkeys(page for _, page in placed))
    if not distinct:
        raise NotModelledError("The model has no attention cache; kvplan can't plan it for vLLM.")
    if len(distinct) == 1 or (
        len({page.family for page in distinct}) == 1
        and len({page.block_size for page in distinct}) == 1
        and rules.uniform_type
    ):
        return (_make(placed, stages),)
    if len({page.page_bytes for page in distinct}) > 1:
        raise NotModelledError(
            "This model mixes layer kinds whose pages differ in size; kvplan does not model "
            "how vLLM unifies them yet.",
        )
    return _hybrid(placed, distinct, stages, rules)


def _hybrid(
    placed: list[tuple[int, PageSpec]],
    distinct: list[PageSpec],
    stages: Sequence[Stage],
    rules: Rules,
) -> tuple[Group, ...]:
    buckets = [[entry for entry in placed if entry[1] == page] for page in distinct]
    size = _group_size([len(bucket) for bucket in buckets], rules)
    groups = []
    for bucket in buckets:
        parts = ceil_div(len(bucket), size)
        for part in range(parts):
            taken = (
                bucket[part::parts]
                if rules.strided_groups
                else bucket[part * size : (part + 1) * size]
            )
            groups.append(_make(taken, stages))
    return tuple(groups)


def _group_size(counts: list[int], rules: Rules) -> int:
    least, most = min(counts), max(counts)
    if rules.group_slack is not None and most < rules.group_slack * least:
        return most
    return least


def _make(entries: list[tuple[int, PageSpec]], stages: Sequence[Stage]) -> Group:
    sums = tuple(
        sum(page.page_bytes for index, page in entries if start <= index < stop)
        for start, stop in stages
    )
    return Group(page=entries[0][1], layers=len(entries), stage_bytes=sums)


def pipeline_stages(layers: int, pp: int) -> tuple[Stage, ...]:
    """Which layers each stage has: the remainder goes to the second-to-last backwards.

    Source: vLLM 0.33.0, vllm/distributed/utils.py get_pp_indices.
    """
    counts = [layers // pp] * pp
    for extra in range(layers % pp):
        # With two stages there is no second-to-last but the first itself.
        counts[-(2 + extra) % pp] += 1
    stages = []
    start = 0
    for count in counts:
        stages.append((start, start + count))
        start += count
    return tuple(stages)
