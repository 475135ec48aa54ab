"""Which layers share blocks: vLLM's cache groups.

Uniform (all specs equal), uniform type (one family, unequal pages), packed (`packed`), or hybrid
(pages made equal, buckets cut to one group size). Source: vLLM 0.33.0,
vllm/v1/core/kv_cache_planning.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kvplan.engines.vllm.history import Rules
from kvplan.engines.vllm.pages import PADDABLE, WHOLE, PageSpec
from kvplan.errors import EngineRefusesError, NotModelledError
from kvplan.models.formats import ceil_div

Stage = tuple[int, int]
Placed = tuple[int, PageSpec]
"""A layer's index, for its pipeline stage, and one of its caches."""
LOCAL = frozenset({"window", "chunked", "latent_window"})
_LATENT = frozenset({"latent", "indexer"})


@dataclass(frozen=True, slots=True)
class Group:
    """Layers that are handed blocks together.

    Attributes:
        page: The spec that decides how many blocks a request holds.
        pages: The distinct specs with how many layers have each.
        indices: Which layers, over all stages; a layer with two caches may stand in two groups.
        stage_bytes: For each pipeline stage, the pages of its layers of the group, summed.
        stage_used: The same without the padding of the pages.
    """

    page: PageSpec
    pages: tuple[tuple[PageSpec, int], ...]
    indices: tuple[int, ...]
    stage_bytes: tuple[int, ...]
    stage_used: tuple[int, ...]

    @property
    def layers(self) -> int:
        """Layer specs in the group, over all stages."""
        return len(self.indices)


def group(
    layers: Sequence[tuple[PageSpec, ...]], stages: Sequence[Stage], rules: Rules
) -> tuple[Group, ...]:
    """Forms the groups of the whole model and projects them on its pipeline stages.

    Raises:
        EngineRefusesError: the release cannot bring the layers' pages to one size.
        NotModelledError: no cache at all.
    """
    placed = [(index, page) for index, pages in enumerate(layers) for page in pages]
    distinct = list(dict.fromkeys(page for _, page in placed))
    if not distinct:
        raise NotModelledError("The model has no attention cache; kvplan can't plan it for vLLM.")
    if len(distinct) == 1 or (rules.uniform_type and is_uniform_type(distinct)):
        return (make_group(placed, stages),)
    equal = _made_equal(distinct, rules)
    if equal is None:
        whole = kept_whole(distinct)
        return (make_group(_replaced(placed, whole), stages),)
    return tuple(_hybrid(_replaced(placed, equal), stages, rules))


def is_uniform_type(specs: Sequence[PageSpec]) -> bool:
    """Whether all need the same number of token slots."""
    first = specs[0]
    return all(
        spec.family == first.family and spec.block_size == first.block_size for spec in specs
    )


def _replaced(placed: Sequence[Placed], new: Mapping[PageSpec, PageSpec]) -> list[Placed]:
    return [(index, new[page]) for index, page in placed]


def without_hybrid_manager(
    layers: Sequence[tuple[PageSpec, ...]], rules: Rules
) -> list[tuple[PageSpec, ...]]:
    """With the hybrid manager off, windows and chunks beside full layers are kept whole.

    Raises:
        EngineRefusesError: other kinds remain, which one block table cannot serve.
    """
    distinct = list(dict.fromkeys(page for pages in layers for page in pages))
    if len(distinct) <= 1 or is_uniform_type(distinct):
        return list(layers)
    _check_one_span(distinct)
    whole = kept_whole(distinct)
    if "kept_whole" in rules.key_twice:
        whole = {
            old: new.with_keys_twice() if old.kind in LOCAL else new for old, new in whole.items()
        }
    _check_one_type(tuple(whole.values()), rules)
    return [tuple(whole[page] for page in pages) for pages in layers]


def all_whole(layers: Sequence[tuple[PageSpec, ...]]) -> list[tuple[PageSpec, ...]]:
    """Every window kept whole, whatever is beside it: the engine before V1."""
    return [
        tuple(page.kept_whole(page.block_size) if page.kind in LOCAL else page for page in pages)
        for pages in layers
    ]


def kept_whole(specs: Sequence[PageSpec]) -> dict[PageSpec, PageSpec]:
    """Each spec, and what it is when local attention is paged as full attention."""
    sizes = {page.block_size for page in specs if page.kind in WHOLE}
    if not sizes:
        return {page: page for page in specs}
    return {
        page: page.kept_whole(min(sizes) if len(sizes) == 1 else page.block_size)
        if page.kind in LOCAL
        else page
        for page in specs
    }


def _check_one_span(specs: Sequence[PageSpec]) -> None:
    """A merged spec records one window and one chunk; beside latent caches none is merged.

    Source: FullAttentionSpec.merge_window_sizes.
    """
    if any(page.kind in _LATENT for page in specs):
        return
    for kind in ("window", "chunked"):
        spans = {page.span for page in specs if page.kind == kind}
        if len(spans) > 1:
            raise EngineRefusesError(
                "vLLM cannot keep windows of several lengths in one block table.",
                hint="Leave out disable_hybrid_kv_cache_manager.",
            )


def _check_one_type(specs: Sequence[PageSpec], rules: Rules) -> None:
    equal = len(set(specs)) == 1
    if not (equal or (rules.uniform_type and is_uniform_type(specs))):
        raise EngineRefusesError(
            "vLLM cannot run this model without its hybrid KV cache manager: the layers cannot "
            "share one block table.",
            hint="Leave out disable_hybrid_kv_cache_manager.",
        )


def _made_equal(specs: Sequence[PageSpec], rules: Rules) -> dict[PageSpec, PageSpec] | None:
    """Each spec and its like with the largest page; None: allocate windows as full attention.

    Source: unify_kv_cache_spec_page_size and _try_get_full_allocation_fallback_groups.
    """
    largest = max(page.page_bytes for page in specs)
    equal = {page: _grown(page, largest, rules) for page in specs}
    done = {old: new for old, new in equal.items() if new is not None}
    if len(done) == len(equal):
        return done
    kinds = {page.kind for page in specs}
    if rules.full_fallback and kinds & _LATENT and "window" in kinds and len(kinds & LOCAL) == 1:
        whole = list(dict.fromkeys(kept_whole(specs).values()))
        if is_uniform_type(whole):
            return None
    raise EngineRefusesError(
        "This release of vLLM cannot bring the pages of this model's layers to one size.",
        hint="Use a newer release, another --kv-dtype or another --tp.",
    )


def _grown(page: PageSpec, largest: int, rules: Rules) -> PageSpec | None:
    if page.page_bytes == largest:
        return page
    if page.kind == "recurrent":
        return page.padded_to(largest) if "recurrent" in rules.pads else None
    if largest % page.page_bytes == 0:
        grown = page.with_block_size(page.block_size * (largest // page.page_bytes))
        # A padded page keeps its padding, and vLLM then asserts that the sizes are equal.
        return grown if grown.page_bytes == largest else None
    padded = page.kind in PADDABLE and "attention" in rules.pads
    return page.padded_to(largest) if padded else None


def _hybrid(placed: Sequence[Placed], stages: Sequence[Stage], rules: Rules) -> Iterator[Group]:
    buckets: dict[PageSpec, list[Placed]] = {}
    for entry in placed:
        buckets.setdefault(entry[1], []).append(entry)
    size = _group_size([len(bucket) for bucket in buckets.values()], rules)
    for bucket in buckets.values():
        parts = ceil_div(len(bucket), size)
        for part in range(parts):
            taken = (
                bucket[part::parts]
                if rules.strided_groups
                else bucket[part * size : (part + 1) * size]
            )
            yield make_group(taken, stages)


def _group_size(counts: list[int], rules: Rules) -> int:
    least, most = min(counts), max(counts)
    if rules.group_slack is not None and most < rules.group_slack * least:
        return most
    return least


def make_group(entries: Sequence[Placed], stages: Sequence[Stage]) -> Group:
    """A group of these layers, summed by stage."""
    if len(stages) == 1:
        pages: tuple[int, ...] = (sum(page.page_bytes for _, page in entries),)
        used: tuple[int, ...] = (sum(page.used_bytes for _, page in entries),)
    else:
        pages = tuple(_sum_of(entries, stage, padded=True) for stage in stages)
        used = tuple(_sum_of(entries, stage, padded=False) for stage in stages)
    indices = tuple(index for index, _ in entries)
    return Group(
        page=entries[0][1],
        pages=tuple(Counter(page for _, page in entries).items()),
        indices=indices,
        stage_bytes=pages,
        stage_used=used,
    )


def _sum_of(entries: Sequence[Placed], stage: Stage, *, padded: bool) -> int:
    start, stop = stage
    return sum(
        page.page_bytes if padded else page.used_bytes
        for index, page in entries
        if start <= index < stop
    )


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
