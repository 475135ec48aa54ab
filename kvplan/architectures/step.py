"""Step 3.5 and 3.7 (windows, gated heads) and the text part of Step 3 (one KV head)."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import (
    Weights,
    attention,
    gated_mlp,
    layer_norms,
    linear,
    norm,
    qk_norms,
)
from kvplan.architectures.fields import MAX_EXPERTS, MAX_LAYERS, Fields
from kvplan.architectures.layers import (
    FULL,
    SLIDING,
    grouped,
    mixed_layers,
    read_window,
    same_layers,
)
from kvplan.architectures.mtp import mtp_weights, read_modules
from kvplan.architectures.shapes import DecoderShape, checked
from kvplan.architectures.sparse import Sparse, dense_and_sparse, listed_sparse
from kvplan.errors import NotModelledError

_ROUTED = tuple(f"moe.{part}_proj" for part in ("gate", "up", "down"))
_SHARED = tuple(f"share_expert.{part}_proj" for part in ("gate", "up", "down"))


def step3p5(fields: Fields) -> Anatomy:
    """Step 3.5 and 3.7 Flash: windowed layers may have more query heads than the full ones."""
    shape = _shape(fields)
    sliding = _sliding_shape(fields, shape)
    types = _types(fields, shape)
    sparse = _sparse(fields, shape, first=3)
    body = (
        _gated_attention(fields, shape, sliding, types)
        + dense_and_sparse(shape, sparse, routed=_ROUTED, shared=_SHARED, gate="moe.gate")
        + layer_norms(shape)
    )
    window = read_window(fields)
    return decoder(
        shape,
        body + _drafts(fields, shape, sliding, types, sparse.dense_width),
        layers=mixed_layers(
            fields, types[: shape.layers], full=shape, sliding=sliding, window=window
        ),
        intermediate=sparse.widest,
        tied=fields.flag("tie_word_embeddings", default=False),
        experts=sparse.experts,
        experts_per_token=sparse.active,
    )


def step3_text(fields: Fields) -> Anatomy:
    """Step 3: low-rank queries, one KV head that every rank holds."""
    shape = _shape(fields, head_dim=256, kv_heads=1)
    sparse = _sparse(fields, shape, first=4)
    return decoder(
        shape,
        _low_rank_attention(fields, shape)
        + dense_and_sparse(shape, sparse, routed=_ROUTED, shared=_SHARED, gate="moe.gate")
        + layer_norms(shape),
        layers=same_layers(shape, window=None),
        intermediate=sparse.widest,
        tied=fields.flag("tie_word_embeddings", default=False),
        experts=sparse.experts,
        experts_per_token=sparse.active,
    )


def _shape(fields: Fields, *, head_dim: int = 128, kv_heads: int = 8) -> DecoderShape:
    shape = DecoderShape(
        layers=fields.integer("num_hidden_layers", most=MAX_LAYERS),
        hidden=fields.integer("hidden_size"),
        heads=fields.integer("num_attention_heads"),
        kv_heads=fields.integer("num_attention_groups", "num_key_value_heads", default=kv_heads),
        head_dim=fields.integer("head_dim", default=head_dim),
        vocab=fields.integer("vocab_size"),
    )
    return checked(fields, shape)


def _sliding_shape(fields: Fields, shape: DecoderShape) -> DecoderShape:
    """Heads of the windowed layers; files of remote code keep them in a section of their own."""
    heads = fields.optional_integer("num_sliding_attention_heads")
    other = fields.section("attention_other_setting")
    if heads is None and other is not None:
        if other.optional_text("attention_type") not in (None, SLIDING):
            raise NotModelledError(
                "Other heads for other than windowed layers are not modelled for this family.",
                hint=f"`attention_other_setting.attention_type` has to be {SLIDING}.",
            )
        heads = other.optional_integer("num_attention_heads")
    return checked(fields, shape.model_copy(update={"heads": heads or shape.heads}))


def _types(fields: Fields, shape: DecoderShape) -> tuple[str, ...]:
    """Types of the layers and, where the file lists them behind, of the draft modules."""
    stated = fields.texts("layer_types", most=MAX_LAYERS)
    if stated is None:
        return (FULL,) * shape.layers
    modules = len(read_modules(fields, shape))
    if len(stated) not in (shape.layers, shape.layers + modules):
        raise fields.conflict(f"`layer_types` lists {len(stated)} layers of {shape.layers}.")
    for kind in stated:
        if kind not in (FULL, SLIDING):
            raise NotModelledError(
                f"Layers of type {kind[:40]!r} are not modelled for this family.",
                hint=f"Known are {FULL} and {SLIDING}.",
            )
    return stated


def _gated_attention(
    fields: Fields, full: DecoderShape, sliding: DecoderShape, types: tuple[str, ...]
) -> Weights:
    weights: Weights = ()
    for shape, kind in ((full, FULL), (sliding, SLIDING)):
        layers = tuple(layer for layer in full.every if types[layer] == kind)
        weights += _heads(fields, shape, layers)
    return weights


def _heads(fields: Fields, shape: DecoderShape, layers: tuple[int, ...]) -> Weights:
    bias = fields.flag("attention_bias", default=False)
    weights = attention(shape, qkv_bias=bias, layers=layers)
    weights += qk_norms(shape, (shape.head_dim, shape.head_dim), layers=layers)
    # vLLM has a switch and leaves the gate out by default; transformers' class always has it.
    if fields.flag("use_head_wise_attn_gate", default=True):
        weights += linear(
            "self_attn.g_proj",
            (shape.heads, shape.hidden),
            component="attention",
            sharding="column",
            layers=layers,
        )
    return weights


def _low_rank_attention(fields: Fields, shape: DecoderShape) -> Weights:
    rank = fields.integer("share_q_dim", default=2048)
    width = shape.heads * shape.head_dim
    weights: Weights = ()
    for name, rows in (("q", rank), ("k", shape.head_dim), ("v", shape.head_dim)):
        weights += linear(
            f"self_attn.{name}_proj",
            (rows if name == "q" else rows * shape.kv_heads, shape.hidden),
            component="attention",
            sharding="replicated",
            layers=shape.every,
        )
    return (
        weights
        + norm("self_attn.inter_norm", rank, layers=shape.every, component="attention")
        + linear(
            "self_attn.wq",
            (width, rank),
            component="attention",
            sharding="column",
            layers=shape.every,
        )
        + linear(
            "self_attn.o_proj",
            (shape.hidden, width),
            component="attention",
            sharding="row",
            layers=shape.every,
        )
    )


def _sparse(fields: Fields, shape: DecoderShape, *, first: int) -> Sparse:
    layers = _sparse_layers(fields, shape, first)
    count = fields.integer(
        "moe_num_experts", "n_routed_experts", "num_experts", default=288, most=MAX_EXPERTS
    )
    return Sparse(
        dense_layers=tuple(sorted(set(shape.every) - set(layers))),
        sparse_layers=layers,
        dense_width=fields.integer("intermediate_size"),
        experts=count,
        active=fields.integer("moe_top_k", "num_experts_per_tok", default=8, most=count),
        expert_width=fields.integer("moe_intermediate_size", default=1280),
        shared_width=fields.integer("share_expert_dim", "share_expert_dims", default=1280),
    )


def _sparse_layers(fields: Fields, shape: DecoderShape, first: int) -> tuple[int, ...]:
    listed = listed_sparse(fields, shape)
    if listed is not None:
        return listed
    stated = fields.raw("moe_layers_enum")
    if stated is None:
        start = fields.integer("first_k_dense_replace", default=first, least=0, most=MAX_LAYERS)
        return shape.every[start:]
    if isinstance(stated, str):
        items = [item.strip() for item in stated.split(",") if item.strip()]
        if not all(item.isascii() and item.isdigit() and len(item) < 6 for item in items):
            raise fields.error("moe_layers_enum", stated, "layer numbers with commas between")
        numbers = {int(item) for item in items}
    else:
        numbers = set(fields.integers("moe_layers_enum", least=0, most=MAX_LAYERS) or ())
    return tuple(layer for layer in shape.every if layer in numbers)


def _drafts(
    fields: Fields,
    full: DecoderShape,
    sliding: DecoderShape,
    types: tuple[str, ...],
    width: int,
) -> Weights:
    """Modules behind the layers: attention of the type listed for them, a dense feed-forward.

    Of embedding and head they have a copy of the head only.
    """
    modules = read_modules(fields, full)
    kinds = types[full.layers :] or (FULL,) * len(modules)
    last = (full.layers - 1,)
    weights: Weights = ()
    for kind, places in grouped(kinds).items():
        shape = sliding if kind == SLIDING else full
        body = _heads(fields, shape, last)
        body += gated_mlp(shape.hidden, width, layers=last) + layer_norms(shape)
        chosen = tuple(modules[place] for place in places)
        weights += mtp_weights(shape, body, chosen, copies=("shared_head.head",))
    return weights
