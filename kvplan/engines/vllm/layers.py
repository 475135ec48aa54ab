"""From a model's layer caches to vLLM's layer specs: cells, one block size for all, pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kvplan.engines.vllm import block_size, compressed, states
from kvplan.engines.vllm.backends import DEFAULT_BLOCK
from kvplan.engines.vllm.cells import HEADED, TOKENWISE, Cell, CellContext, cell_of, stored
from kvplan.engines.vllm.pages import PageSpec, as_counted
from kvplan.engines.vllm.states import StateContext
from kvplan.errors import EngineRefusesError
from kvplan.models.caches import (
    CompressedCache,
    CompressorCache,
    RecurrentCache,
    SharedCache,
)
from kvplan.models.formats import round_up
from kvplan.models.spec import Layer, ModelSpec

WINDOWS = "sliding_window"


@dataclass(frozen=True, slots=True)
class LayerContext:
    """Everything outside the layers that decides their pages.

    Attributes:
        asked_block: The user's block_size, or None.
        skipped: Layers whose cache is not quantized: indices, or ``sliding_window``.
        max_length: max_model_len: the block of a state that takes no part in prefix caching.
        lookahead: Tokens that windows keep for drafts of several modules.
    """

    cell: CellContext
    state: StateContext
    asked_block: int | None
    skipped: frozenset[str]
    max_length: int
    lookahead: int = 0


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Tokens of a block, and the pages that something is padded to (None: nothing is)."""

    tokens: int
    window_page: int | None = None
    state_page: int | None = None


def check_heads(model: ModelSpec, tp: int) -> None:
    """The divisibility that vLLM itself insists on.

    Raises:
        EngineRefusesError: query heads, or KV heads in either direction, don't divide.
    """
    if model.attention_heads % tp:
        raise EngineRefusesError(
            f"vLLM refuses --tp {tp}: {model.attention_heads} attention heads do not divide by it.",
            hint=f"Use --tp {_divisors(model.attention_heads)}.",
        )
    for heads in kv_heads(model):
        if heads % tp and tp % heads:
            raise EngineRefusesError(
                f"vLLM refuses --tp {tp}: it neither divides the {heads} KV heads nor is a "
                "multiple of them.",
                hint=f"Use --tp {_divisors(heads)}.",
            )


def kv_heads(model: ModelSpec) -> set[int]:
    """The numbers of KV heads that the model's layers have; empty for MLA."""
    return {cache.kv_heads for cache in model.caches if isinstance(cache, HEADED)}


def _divisors(number: int) -> str:
    return " or ".join(str(n) for n in (1, 2, 4, 8, 16) if number % n == 0)


def layer_pages(layers: Sequence[Layer], context: LayerContext) -> tuple[tuple[PageSpec, ...], ...]:
    """For each layer in order, the specs of its caches (none for shared or absent ones).

    Raises:
        EngineRefusesError: no backend takes the combination.
        NotModelledError: a kind of cache that vLLM has no layer for.
    """
    if any(isinstance(c, CompressedCache | CompressorCache) for x in layers for c in x.caches):
        return compressed.layer_pages(layers, context.cell, asked_block=context.asked_block)
    # Layers are interned, so identity tells equal ones without hashing them.
    distinct = {_key(index, layer, context): layer for index, layer in enumerate(layers)}
    found = {key: tuple(_cells(layer, key[1], context)) for key, layer in distinct.items()}
    blocks = _blocks(found, context)
    pages = {
        key: tuple(_page(each, context, blocks) for each in caches) for key, caches in found.items()
    }
    return tuple(pages[_key(index, layer, context)] for index, layer in enumerate(layers))


_Key = tuple[int, bool]
_Found = tuple[Cell | RecurrentCache, bool]


def _key(index: int, layer: Layer, context: LayerContext) -> _Key:
    return id(layer), str(index) in context.skipped


def _cells(layer: Layer, skipped: bool, context: LayerContext) -> Iterator[_Found]:  # noqa: FBT001
    for each in layer.caches:
        cache = stored(each, context.cell.architecture)
        if isinstance(cache, SharedCache):
            continue
        if isinstance(cache, RecurrentCache):
            yield cache, False
        elif isinstance(cache, TOKENWISE):
            left_out = skipped or (cache.kind == "window" and WINDOWS in context.skipped)
            yield cell_of(cache, context.cell, skipped=left_out), left_out


def _blocks(found: dict[_Key, tuple[_Found, ...]], context: LayerContext) -> _Blocks:
    every = [each for caches in found.values() for each in caches]
    cells = [cell for cell, _ in every if isinstance(cell, Cell)]
    recurrent = tuple(cache for cache, _ in every if isinstance(cache, RecurrentCache))
    if not cells:
        return _Blocks(tokens=context.asked_block or DEFAULT_BLOCK)
    backends = tuple(dict.fromkeys(cell.backend for cell in cells))
    tokens = block_size.common_block(backends, context.asked_block)
    skipped = [left_out for cell, left_out in every if isinstance(cell, Cell)]
    state_page = None
    if recurrent:
        token_bytes = block_size.token_bytes_beside_states(cells, skipped)
        tokens = block_size.block_beside_states(
            cells,
            max(states.state_bytes(cache, context.state) for cache in recurrent),
            token_bytes=token_bytes,
            block=tokens,
            checkpoint_grid=states.checkpoint_grid(recurrent, context.state),
        )
        state_page = tokens * token_bytes
    window_page = None
    if any(skipped):
        tokens, window_page = block_size.block_beside_unquantized(
            cells, skipped, block=tokens, state_page=state_page or 0
        )
        state_page = window_page if state_page and window_page else state_page
    return _Blocks(tokens, window_page, state_page)


def _page(each: _Found, context: LayerContext, blocks: _Blocks) -> PageSpec:
    cell = each[0]
    if isinstance(cell, RecurrentCache):
        return _state_page(cell, context, blocks)
    if cell.kind == "window":
        return _window_page(cell, context, blocks)
    rules, token = context.state.rules, cell.token_bytes
    if cell.kind == "latent":
        token = round_up(token, rules.latent_alignment)
    spec = PageSpec(cell.kind, blocks.tokens, blocks.tokens * token, cell.span, cell.sides)
    return as_counted(spec, rules.key_twice)


def _window_page(cell: Cell, context: LayerContext, blocks: _Blocks) -> PageSpec:
    """Windows choose their own block: the largest that fits the page of the others."""
    budget = blocks.window_page or blocks.tokens * cell.token_bytes
    tokens = cell.backend.largest_within(budget // cell.token_bytes)
    spec = PageSpec(
        "window",
        tokens,
        tokens * cell.token_bytes,
        cell.span,
        cell.sides,
        extra=context.lookahead,
    )
    spec = as_counted(spec, context.state.rules.key_twice)
    return spec if blocks.window_page is None else spec.padded_to(blocks.window_page)


def _state_page(cache: RecurrentCache, context: LayerContext, blocks: _Blocks) -> PageSpec:
    size = states.state_bytes(cache, context.state)
    page = size if blocks.state_page is None else blocks.state_page
    held = states.states_held(cache, context.state)
    return PageSpec(
        "recurrent",
        context.max_length if context.state.mode == "none" else blocks.tokens,
        page,
        held=held,
        extra=context.state.draft_tokens if held is None else 0,
        padding=page - size,
    )
