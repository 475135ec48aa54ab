"""How many elements a token has alive at the widest moment of a layer, by the widths of matrices.

h the residual stream, a attention's output, f the fused projection into attention, r rotated
queries and keys, i what a feed-forward's activation leaves, w what goes into it (gate and up, 2 i):

    projecting    a + 3 h + f           activating    a + 2 h + w + i
    rotating      a + 2 h + f + r       going in      a + 3 h + w
    attending     h + f + r + a         summing       a + 4 h (over several ranks)

a and one h are the inputs of the piece between two attentions, which live as long as it does.
Routed experts add two buffers, k max(i, h) + k max(w, h) for k experts a token, which engines may
keep. The order of moments is that of a decoder layer in vLLM 0.33.0 under torch.compile
(vllm/model_executor/models/llama.py, mixtral.py, deepseek_v2.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from kvplan.models.caches import LatentCache, LayerCache, RecurrentCache, SharedCache
from kvplan.models.formats import ceil_div
from kvplan.models.identity import ById
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import Component, RankLayout, Weight

_MATRIX = 2


@dataclass(frozen=True, slots=True)
class Step:
    """Elements a token on one rank.

    Attributes:
        alive: At the widest moment of any layer, without what experts keep.
        kept: Of the two buffers of routed tokens.
        latent_alive: While MLA makes room for keys and values of its context; 0 without MLA.
        latent_row: Elements of one token of that context.
    """

    alive: int
    kept: int
    latent_alive: int
    latent_row: int


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a layer by its widths on the rank.

    Attributes:
        inward: Columns of the fused projection from the residual stream.
        inner: Columns that the projection back takes; 0 where there is none.
    """

    inward: int = 0
    inner: int = 0


@dataclass(frozen=True, slots=True)
class _Rank:
    model: ModelSpec
    layout: RankLayout


def layer_step(model: ModelSpec, layout: RankLayout) -> Step:
    """The widest layer of the rank's stage."""
    return _layer_step(ById(model), layout)


@lru_cache(maxsize=1024)
def _layer_step(model: ById[ModelSpec], layout: RankLayout) -> Step:
    at = _Rank(model.value, layout)
    start, stop = layout.layers
    kinds = _kinds(at.model, range(start, min(stop, len(at.model.layers))))
    rooms = [_latent_room(at, weights, caches) for weights, caches in kinds]
    return Step(
        alive=max(_elements(at, weights, caches) for weights, caches in kinds),
        kept=max(_kept(at, weights) for weights, _ in kinds),
        latent_alive=max(alive for alive, _ in rooms),
        latent_row=max(row for _, row in rooms),
    )


def _kinds(
    model: ModelSpec, indices: range
) -> list[tuple[tuple[Weight, ...], tuple[LayerCache, ...]]]:
    """Distinct layers by their matrices and caches."""
    held: dict[int, list[Weight]] = {index: [] for index in indices}
    for weight in model.weights:
        if weight.place == "layers" and weight.component != "mtp":
            for index in weight.layers:
                if index in held:
                    held[index].append(weight)
    found = {
        (tuple(map(id, weights)), model.layers[index].caches): tuple(weights)
        for index, weights in held.items()
    }
    return [(weights, caches) for (_, caches), weights in found.items()]


def _part(at: _Rank, weights: Iterable[Weight], *components: Component) -> _Part:
    inward = inner = 0
    for weight in weights:
        if weight.component not in components or len(weight.shape) != _MATRIX:
            continue
        if weight.elements == 0 or "encoder_attn" in weight.name or "EncDec" in weight.name:
            continue
        rows, columns = weight.rank_shape(
            tp=at.layout.tp_of(weight.component), vocab_multiple=at.layout.vocab_multiple
        )
        if weight.sharding == "row":
            inner = columns if rows == at.model.hidden_size else inner
        elif columns == at.model.hidden_size:
            inward += rows
    return _Part(inward, inner)


def _feed_forward(at: _Rank, weights: Iterable[Weight], component: Component) -> _Part:
    """Its widths; by the configuration where the shapes are those of packed containers."""
    listed = [weight for weight in weights if weight.component == component]
    found = _part(at, listed, component)
    if found.inner or not listed:
        return found
    width = ceil_div(at.model.intermediate_size, at.layout.tp_of(component))
    return _Part(2 * width, width)


def _kept(at: _Rank, weights: Iterable[Weight]) -> int:
    """Elements a token of the experts' two buffers."""
    experts = _feed_forward(at, weights, "experts")
    hidden, chosen = at.model.hidden_size, at.model.experts_per_token
    if not experts.inner:
        return 0
    return chosen * (max(experts.inner, hidden) + max(experts.inward, hidden))


def _elements(at: _Rank, weights: tuple[Weight, ...], caches: tuple[LayerCache, ...]) -> int:
    """Elements a token at the widest moment of one kind of layer, without what is kept."""
    hidden = at.model.hidden_size
    mixer = _part(at, weights, "attention") if not _recurrent(caches) else _mixer(at, weights)
    back = mixer.inner
    moments = [
        back + 3 * hidden + mixer.inward,
        back + 2 * hidden + mixer.inward + _rotated(at, mixer, caches, weights),
        hidden + mixer.inward + _rotated(at, mixer, caches, weights) + back,
        back + (4 if at.layout.tp > 1 else 3) * hidden,
    ]
    experts = _feed_forward(at, weights, "experts")
    for dense in (_feed_forward(at, weights, "mlp"), _part(at, weights, "shared_experts")):
        # Beside experts their result and the input are alive too.
        beside = 2 * hidden if experts.inner else 0
        moments += [
            back + (2 if beside else 3) * hidden + beside + dense.inward,
            back + 2 * hidden + beside + dense.inward + dense.inner,
        ]
    if experts.inner:
        moments.append(back + 4 * hidden + _part(at, weights, "router").inward)
    return max(moments)


def _recurrent(caches: Iterable[LayerCache]) -> bool:
    return any(isinstance(cache, RecurrentCache) for cache in caches)


def _mixer(at: _Rank, weights: tuple[Weight, ...]) -> _Part:
    return _part(at, weights, "recurrent")


def _rotated(
    at: _Rank, mixer: _Part, caches: Iterable[LayerCache], weights: tuple[Weight, ...]
) -> int:
    """Copies of what was projected: rotated queries and keys, convolved channels, MLA's parts."""
    for cache in caches:
        if isinstance(cache, SharedCache):
            return mixer.inner
        if isinstance(cache, RecurrentCache):
            # Channels, and the scan's output before its gate.
            return _channels(at, cache) + mixer.inner
        if isinstance(cache, LatentCache):
            return _latent_queries(at, weights, cache) + cache.latent_dim
        if cache.kind in ("full", "window", "chunked"):
            queries = mixer.inner // cache.head_dim_v * cache.head_dim
            return queries + cache.heads_per_rank(at.layout.tp) * cache.head_dim
    return 0


def _channels(at: _Rank, cache: RecurrentCache) -> int:
    inputs = (state for state in cache.states if state.name in ("conv", "conv groups"))
    return sum(
        ceil_div(
            state.shape[0] * (state.shape[1] if len(state.shape) > _MATRIX else 1), at.layout.tp
        )
        for state in inputs
    )


def _latent_queries(at: _Rank, weights: Iterable[Weight], cache: LatentCache) -> int:
    """Queries of MLA where they come from a low rank, and the norm's copy of that rank."""
    ups = [
        weight.rank_shape(tp=at.layout.tp, vocab_multiple=1)
        for weight in weights
        if weight.component == "attention"
        and len(weight.shape) == _MATRIX
        and weight.sharding == "column"
        and weight.shape[1] not in (at.model.hidden_size, cache.latent_dim)
    ]
    return max((rows for rows, _ in ups), default=0)


def _latent_room(
    at: _Rank, weights: tuple[Weight, ...], caches: Iterable[LayerCache]
) -> tuple[int, int]:
    """(elements a token, elements a row of context) alive while MLA makes room; 0 without MLA."""
    for cache in caches:
        if isinstance(cache, LatentCache):
            mixer = _part(at, weights, "attention")
            expanded = sum(
                weight.rank_shape(tp=at.layout.tp, vocab_multiple=1)[0]
                for weight in weights
                if weight.component == "attention"
                and weight.shape[-1] == cache.latent_dim
                and len(weight.shape) == _MATRIX
            )
            alive = at.model.hidden_size + mixer.inward + mixer.inner
            return alive + _latent_queries(at, weights, cache) + cache.latent_dim, expanded
    return 0, 0
