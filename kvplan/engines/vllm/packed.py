"""Groups of a model whose pages lie side by side in a block: DeepSeek-V4 and its like.

A bucket is balanced where each page size occurs equally often: it repeats a pattern of layers.
Balanced buckets are cut into groups of equally many repeats, so that all groups fill a block
alike. Source: vLLM 0.33.0, _get_packed_kv_cache_groups in vllm/v1/core/kv_cache_planning.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kvplan.engines.vllm.groups import Group, Placed, Stage, make_group
from kvplan.engines.vllm.pages import PageSpec
from kvplan.errors import EngineRefusesError
from kvplan.models.formats import ceil_div


@dataclass(frozen=True, slots=True)
class _Bucket:
    """Layers of one family and block size, by the size of their pages."""

    by_page: dict[int, list[Placed]]

    @property
    def layers(self) -> int:
        return sum(len(entries) for entries in self.by_page.values())

    @property
    def first(self) -> Placed:
        return next(iter(self.by_page.values()))[0]

    @property
    def balanced(self) -> bool:
        return len({len(entries) for entries in self.by_page.values()}) == 1

    @property
    def repeats(self) -> int:
        return max(len(entries) for entries in self.by_page.values())

    def widest_bytes(self, groups: int) -> int:
        """Bytes of the largest of the groups that the bucket is cut into."""
        return sum(ceil_div(len(entries), groups) * page for page, entries in self.by_page.items())


def packed_groups(
    layers: Sequence[tuple[PageSpec, ...]], stages: Sequence[Stage]
) -> tuple[Group, ...]:
    """The groups of a model with more than one size of page."""
    placed = [(index, page) for index, pages in enumerate(layers) for page in pages]
    buckets = _buckets(placed)
    repeats = _repeats_per_group(buckets)
    block = max(
        bucket.widest_bytes(
            bucket.layers if _is_state(bucket, repeats) else _cut_by_pattern(bucket, repeats)
        )
        for bucket in buckets
    )
    return tuple(
        make_group(entries, stages)
        for bucket in buckets
        for entries in _cut(bucket, repeats, block)
    )


def _buckets(placed: Sequence[Placed]) -> list[_Bucket]:
    # What makes two specs one type: see `kvplan.engines.vllm.groups.is_uniform_type`.
    buckets: dict[tuple[str, int], _Bucket] = {}
    for entry in placed:
        page = entry[1]
        home = buckets.setdefault((page.family, page.block_size), _Bucket({}))
        home.by_page.setdefault(page.page_bytes, []).append(entry)
    return list(buckets.values())


def _repeats_per_group(buckets: Sequence[_Bucket]) -> int | None:
    """Repeats of the pattern in a group; None where no bucket mixes page sizes."""
    balanced = [bucket for bucket in buckets if bucket.balanced]
    floor = max((b.repeats for b in balanced if len(b.by_page) > 1), default=0)
    if not floor:
        return None
    counts = [bucket.repeats for bucket in balanced]
    # Ties go to the larger size.
    return min(range(floor, max(counts) + 1), key=lambda size: (_rounding(counts, size), -size))


def _rounding(counts: Sequence[int], size: int) -> int:
    return sum(-count % size for count in counts)


def _cut_by_pattern(bucket: _Bucket, repeats: int | None) -> int:
    return ceil_div(bucket.repeats, repeats) if bucket.balanced and repeats is not None else 1


def _is_state(bucket: _Bucket, repeats: int | None) -> bool:
    """Whether the bucket may go down to one layer a group rather than widen the block."""
    kind = bucket.first[1].kind
    return kind == "recurrent" or (repeats is None and kind in ("window", "latent_window"))


def _cut(bucket: _Bucket, repeats: int | None, block: int) -> Iterator[list[Placed]]:
    groups = _cut_by_pattern(bucket, repeats)
    if _is_state(bucket, repeats):
        fitting = max(block // bucket.first[1].page_bytes, 1)
        groups = max(groups, ceil_div(bucket.layers, fitting))
    if groups == 1:
        yield [entry for entries in bucket.by_page.values() for entry in entries]
        return
    if not bucket.balanced:
        raise EngineRefusesError(
            "vLLM cannot cut this model's layers into groups that share a block.",
            hint="Use another --kv-dtype or another release.",
        )
    pattern = list(zip(*bucket.by_page.values(), strict=True))
    for part in range(groups):
        yield [entry for repeat in pattern[part::groups] for entry in repeat]
