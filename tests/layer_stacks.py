"""Random stacks of layers, as models may have them and as none has yet."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from kvplan.engines.vllm.groups import Stage, pipeline_stages
from kvplan.engines.vllm.history import Rules, rules_for
from kvplan.engines.vllm.pages import Kind, PageSpec, Sides

# One release of every set of rules that changes groups or blocks.
VERSIONS = (
    "0.9.2", "0.10.2", "0.11.2", "0.12.0", "0.18.0", "0.21.0", "0.24.0", "0.26.0", "0.27.0",
    "0.29.0", "0.33.0",
)  # fmt: skip
KINDS: tuple[Kind, ...] = (
    "full", "window", "chunked", "latent", "indexer", "recurrent", "cross"
)  # fmt: skip
BLOCKS = (16, 16, 32, 64)
# Bytes a token: some divide one another, some don't.
CELLS = (16, 32, 48, 64)


@dataclass(frozen=True)
class Stack:
    """Layers in order, cut into pipeline stages, under a release's rules."""

    pages: tuple[PageSpec, ...]
    stages: tuple[Stage, ...]
    version: str

    @property
    def rules(self) -> Rules:
        """Those of the release."""
        return rules_for(self.version)

    @property
    def layers(self) -> tuple[tuple[PageSpec, ...], ...]:
        """One cache a layer."""
        return tuple((page,) for page in self.pages)


@st.composite
def specs(draw: st.DrawFn, kinds: tuple[Kind, ...] = KINDS) -> PageSpec:
    """One layer's page."""
    kind = draw(st.sampled_from(kinds))
    block, cell = draw(st.sampled_from(BLOCKS)), draw(st.sampled_from(CELLS))
    used = block * cell
    if kind == "recurrent":
        used -= draw(st.sampled_from([0, 0, 7]))
        padding = draw(st.sampled_from([0, 0, -used % 1024]))
        held = draw(st.sampled_from([1, 2, 3, None]))
        extra = draw(st.integers(0, 2)) if held is None else 0
        return PageSpec(kind, block, used + padding, held=held, extra=extra, padding=padding)
    if kind in ("latent", "indexer"):
        return PageSpec(kind, block, used)
    if kind == "latent_window":
        return PageSpec(kind, block, used, draw(st.sampled_from([8, 128])))
    padding = draw(st.sampled_from([0, 0, 0, 0, 64, used]))
    span = 0 if kind == "full" else draw(st.sampled_from([20, 100]))
    extra = draw(st.sampled_from([0, 0, 2])) if kind == "window" else 0
    sides = Sides(1, cell // 2, cell // 2)
    return PageSpec(kind, block, used + padding, span, sides, extra=extra, padding=padding)


@st.composite
def stacks(
    draw: st.DrawFn,
    kinds: tuple[Kind, ...] = KINDS,
    *,
    versions: tuple[str, ...] = VERSIONS,
    most: int = 4,
) -> Stack:
    """Up to four kinds of layers, repeated, in blocks or mixed."""
    chosen = draw(st.lists(specs(kinds), min_size=1, max_size=most))
    counts = [draw(st.sampled_from([1, 2, 3, 4, 5, 8, 10, 12, 13])) for _ in chosen]
    pages = [page for page, count in zip(chosen, counts, strict=True) for _ in range(count)]
    if draw(st.booleans()):
        pages = draw(st.permutations(pages))
    pp = min(len(pages), draw(st.sampled_from([1, 1, 2, 3, 4])))
    return Stack(tuple(pages), pipeline_stages(len(pages), pp), draw(st.sampled_from(versions)))


@st.composite
def mixed_pages(draw: st.DrawFn, kinds: tuple[Kind, ...], sizes: int = 3) -> Stack:
    """Layers that repeat a pattern of unequal pages, as packing is for."""
    pages: list[PageSpec] = []
    for _ in range(draw(st.integers(1, sizes))):
        pattern = draw(st.lists(specs(kinds), min_size=1, max_size=3))
        pages += pattern * draw(st.sampled_from([1, 2, 3, 4, 6, 7, 20]))
    pages += draw(st.lists(st.sampled_from(pages), max_size=2))
    pp = min(len(pages), draw(st.sampled_from([1, 2, 3])))
    return Stack(tuple(pages), pipeline_stages(len(pages), pp), "0.33.0")
