"""vLLM's layer specs: what it knows of one layer's cache, and the blocks a request holds in it.

A page is one layer's share of one block. Source: vLLM 0.33.0, vllm/v1/kv_cache_interface.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from kvplan.models.formats import ceil_div

Kind = Literal[
    "full", "window", "chunked", "latent", "indexer", "latent_window", "recurrent", "cross"
]
# Kinds that keep every token: vLLM's FullAttentionSpec and what derives from it.
WHOLE: frozenset[Kind] = frozenset({"full", "latent", "indexer"})
# Kinds whose tokens decode context parallelism divides among its ranks.
_SPREAD = WHOLE
# Kinds whose pages may be padded to any size; rows of a latent cache are addressed as they lie.
PADDABLE: frozenset[Kind] = frozenset({"full", "window", "chunked", "cross"})


class Sides(NamedTuple):
    """One token on one rank: KV heads, and bytes of all their keys and of all their values."""

    kv_heads: int
    key_bytes: int
    value_bytes: int


@dataclass(frozen=True, slots=True)
class PageSpec:
    """What vLLM knows of one layer's cache. Equal specs share a group.

    Attributes:
        block_size: Tokens a page holds.
        page_bytes: Bytes of a page on one rank, padding included.
        span: Tokens of the window, of the chunk or of the encoder; 0 for other kinds.
        sides: Of attention with heads, what a token takes; None for other kinds.
        held: Blocks that a request holds whatever its length (recurrent states), or None.
        extra: What speculation holds besides: tokens of a window, blocks of a recurrent state
            whose blocks follow the length.
        padding: Bytes of the page that nothing uses.
    """

    kind: Kind
    block_size: int
    page_bytes: int
    span: int = 0
    sides: Sides | None = None
    held: int | None = None
    extra: int = 0
    padding: int = 0

    @property
    def family(self) -> str:
        """Specs of one family and one block size can form a group with unequal pages."""
        if self.kind in WHOLE:
            return "whole"
        if self.kind == "recurrent":
            return f"recurrent {self.page_bytes} {self.held} {self.extra}"
        return f"{self.kind} {self.span}"

    @property
    def used_bytes(self) -> int:
        """Bytes of the page without its padding."""
        return self.page_bytes - self.padding

    def with_block_size(self, block_size: int) -> PageSpec:
        """The same cache in blocks of another size; padding stays only as far as it is needed."""
        used = self.used_bytes * block_size // self.block_size
        page = max(self.page_bytes, used) if self.padding else used
        return replace(self, block_size=block_size, page_bytes=page, padding=page - used)

    def padded_to(self, page_bytes: int) -> PageSpec:
        """The same cache in a larger page."""
        return replace(self, page_bytes=page_bytes, padding=page_bytes - self.used_bytes)

    def kept_whole(self, block_size: int) -> PageSpec:
        """The same cache with every token kept, as if it had no window."""
        kind: Kind = "latent" if self.kind == "latent_window" else "full"
        return replace(self, kind=kind, span=0, extra=0).with_block_size(block_size)

    def with_keys_twice(self) -> PageSpec:
        """The page of a release that takes the keys' size for the values as well."""
        if self.sides is None or self.sides.key_bytes == self.sides.value_bytes:
            return self
        sides = self.sides._replace(value_bytes=self.sides.key_bytes)
        used = self.block_size * (sides.key_bytes + sides.value_bytes)
        return replace(self, sides=sides, page_bytes=used + self.padding)


def blocks_held(page: PageSpec, length: int, *, in_flight: int, dcp: int) -> int:
    """Worst-case blocks that one request of ``length`` tokens holds in one group.

    Args:
        page: The group's spec.
        length: Tokens of the request.
        in_flight: Tokens that may be scheduled but not settled.
        dcp: Ranks of decode context parallelism.

    Source: vLLM 0.33.0, max_memory_usage_bytes of each spec class.
    """
    match page.kind:
        case "window" | "latent_window":
            kept = min(page.span - 1 + page.extra + in_flight, length)
            return ceil_div(kept, page.block_size) + 1
        case "chunked":
            return ceil_div(min(page.span + in_flight, length), page.block_size)
        case "cross":
            return ceil_div(page.span, page.block_size)
        case "recurrent":
            return _states_held(page, length)
        case _:
            return ceil_div(ceil_div(length, dcp), page.block_size)


def _states_held(page: PageSpec, length: int) -> int:
    return ceil_div(length, page.block_size) + page.extra if page.held is None else page.held


def as_counted(page: PageSpec, key_twice: frozenset[str]) -> PageSpec:
    """The page as a release counts it that may take the keys' size twice for some kinds."""
    return page.with_keys_twice() if page.kind in key_twice else page


def still_grows(page: PageSpec, length: int, *, in_flight: int) -> bool:
    """Whether one more token beyond ``length`` can ever need another block of this group."""
    match page.kind:
        case "window" | "latent_window":
            return length < page.span - 1 + page.extra + in_flight
        case "chunked":
            return length < page.span + in_flight
        case "cross":
            return False
        case "recurrent":
            return page.held is None
        case _:
            return True


def shared_by(page: PageSpec, dcp: int) -> int:
    """Ranks that share one request's tokens of this kind."""
    return dcp if page.kind in _SPREAD else 1
