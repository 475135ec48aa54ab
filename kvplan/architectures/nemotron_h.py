"""Nemotron-H and Nemotron 3: layers of one block each, by a pattern of letters or a list."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import Weights, attention, layer_norms, linear, norm, router
from kvplan.architectures.fields import MAX_EXPERTS, MAX_LAYERS, Fields
from kvplan.architectures.mamba2 import (
    MAX_HEADS,
    Mamba2,
    checked_sizes,
    mamba2_cache,
    mamba2_mixer,
)
from kvplan.architectures.recurrent import (
    full_cache,
    placed,
    read_kinds,
    read_state_dtype,
    read_taps,
    where,
)
from kvplan.architectures.shapes import DecoderShape, checked
from kvplan.models.spec import Layer
from kvplan.models.weights import Component

_MAMBA, _ATTENTION, _MLP, _MOE = "mamba", "attention", "mlp", "moe"
_LETTERS: Mapping[str, str] = MappingProxyType({"M": _MAMBA, "*": _ATTENTION, "-": _MLP, "E": _MOE})
_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "mamba": _MAMBA,
        "linear_attention": _MAMBA,
        "attention": _ATTENTION,
        "full_attention": _ATTENTION,
        "mlp": _MLP,
        "moe": _MOE,
    }
)
_MTP = (_ATTENTION, _MOE)
_QKV = ("mixer.q_proj", "mixer.k_proj", "mixer.v_proj")
_ENDS = Ends(embed="embeddings", norm="norm_f")


class Moe(BaseModel):
    """Sizes of the expert layers.

    Attributes:
        experts, active: Routed experts of a layer, and how many a token goes through.
        width: Feed-forward of one routed expert.
        shared: Of all shared experts together; 0 if there are none.
        latent: What the routed experts read and write: narrower than the model, or as wide.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    experts: int
    active: int
    width: int
    shared: int
    latent: int


def nemotron_h(fields: Fields) -> Anatomy:
    """Mamba 2, attention, feed-forward and expert layers; no layer has two of them."""
    kinds = _kinds(fields, "hybrid_override_pattern", "layers_block_type")
    kinds = kinds or (_MAMBA, _MOE, _ATTENTION, _MLP)
    shape = _shape(fields, len(kinds))
    sizes = _mamba(fields)
    drafts = _draft_kinds(fields)
    moe = _moe(fields, shape.hidden) if _MOE in kinds + drafts else None
    width = _width(fields) if _MLP in kinds + drafts else 0
    blocks = {
        _MAMBA: mamba2_mixer("mixer", sizes, shape.hidden, shape.every),
        _ATTENTION: attention(shape, qkv=_QKV, out="mixer.o_proj"),
        _MLP: _plain(fields, shape, "mixer", width, "mlp") if width else (),
        _MOE: _experts(fields, shape, moe) if moe else (),
    }
    body: Weights = ()
    for kind, block in blocks.items():
        body += placed(block, where(kinds, kind))
    caches = {_MAMBA: (mamba2_cache(sizes),), _ATTENTION: (full_cache(shape),)}
    return decoder(
        shape,
        body + layer_norms(shape, ("norm",)) + _drafts(shape, drafts, blocks),
        layers=tuple(Layer(caches=caches.get(kind, ())) for kind in kinds),
        intermediate=max(width, moe.width if moe else 0) or sizes.inner,
        tied=fields.flag("tie_word_embeddings", default=False),
        ends=_ENDS,
        experts=moe.experts if moe else 0,
        experts_per_token=moe.active if moe else 0,
    )


def _kinds(fields: Fields, letters: str, names: str) -> tuple[str, ...] | None:
    listed = read_kinds(fields, names, None, _KINDS)
    pattern = fields.optional_text(letters)
    if listed is not None or pattern is None:
        return listed
    if not pattern or len(pattern) > MAX_LAYERS or set(pattern) - set(_LETTERS):
        raise fields.error(letters, pattern, f"letters out of {' '.join(_LETTERS)}")
    return tuple(_LETTERS[letter] for letter in pattern)


def _shape(fields: Fields, layers: int) -> DecoderShape:
    heads = fields.integer("num_attention_heads", default=32)
    shape = DecoderShape(
        layers=layers,
        hidden=fields.integer("hidden_size", default=4096),
        heads=heads,
        kv_heads=fields.optional_integer("num_key_value_heads", default=8) or heads,
        head_dim=fields.integer("head_dim", "attention_head_dim", default=128),
        vocab=fields.integer("vocab_size", default=131_072),
    )
    return checked(fields, shape)


def _mamba(fields: Fields) -> Mamba2:
    bias = fields.flag("use_bias", default=False)
    sizes = Mamba2(
        heads=fields.integer("mamba_num_heads", default=128, most=MAX_HEADS),
        head_dim=fields.integer("mamba_head_dim", default=64),
        groups=fields.integer("mamba_n_groups", "n_groups", default=8, most=MAX_HEADS),
        state=fields.integer("ssm_state_size", default=128),
        taps=read_taps(fields, "conv_kernel", default=4),
        bias=bias,
        out_bias=bias,
        conv_bias=fields.flag("mamba_conv_bias", "use_conv_bias", default=True),
        dtype=read_state_dtype(fields, "mamba_ssm_cache_dtype", default="float32"),
    )
    return checked_sizes(fields, sizes)


def _width(fields: Fields) -> int:
    return fields.integer("intermediate_size", default=21_504)


def _moe(fields: Fields, hidden: int) -> Moe:
    count = fields.integer("n_routed_experts", default=8, most=MAX_EXPERTS)
    shared = fields.integer("n_shared_experts", default=1, least=0, most=MAX_EXPERTS)
    shared_width = fields.integer("moe_shared_expert_intermediate_size", default=7688)
    return Moe(
        experts=count,
        active=fields.integer("num_experts_per_tok", default=2, most=count),
        width=fields.integer("moe_intermediate_size", default=7688),
        shared=shared * shared_width,
        latent=fields.optional_integer("moe_latent_size") or hidden,
    )


def _plain(
    fields: Fields, shape: DecoderShape, name: str, width: int, component: Component
) -> Weights:
    """A feed-forward without a gate."""
    bias = fields.flag("mlp_bias", default=False)
    return linear(
        f"{name}.up_proj",
        (width, shape.hidden),
        component=component,
        sharding="column",
        layers=shape.every,
        bias=bias,
    ) + linear(
        f"{name}.down_proj",
        (shape.hidden, width),
        component=component,
        sharding="row",
        layers=shape.every,
        bias=bias,
    )


def _experts(fields: Fields, shape: DecoderShape, moe: Moe) -> Weights:
    """Sharding: vLLM v0.33.0 vllm/model_executor/models/nemotron_h.py NemotronHMoE."""
    routed = _plain(
        fields,
        shape.model_copy(update={"hidden": moe.latent}),
        "mixer.experts",
        moe.width,
        "experts",
    )
    copies = {"copies": moe.experts, "active_copies": moe.active}
    weights = tuple(weight.model_copy(update=copies) for weight in routed if len(weight.shape) > 1)
    weights += router(shape.hidden, moe.experts, layers=shape.every, name="mixer.gate")
    if moe.shared:
        weights += _plain(fields, shape, "mixer.shared_experts", moe.shared, "shared_experts")
    if moe.latent == shape.hidden:
        return weights
    for name, size in (
        ("mixer.fc1_latent_proj", (moe.latent, shape.hidden)),
        ("mixer.fc2_latent_proj", (shape.hidden, moe.latent)),
    ):
        weights += linear(
            name,
            size,
            component="shared_experts",
            sharding="replicated",
            layers=shape.every,
            bias=fields.flag("mlp_bias", default=False),
        )
    return weights


def _draft_kinds(fields: Fields) -> tuple[str, ...]:
    """Blocks of the module for multi-token prediction; empty where the file states none."""
    count = fields.optional_integer("num_nextn_predict_layers", least=0, most=100) or 0
    if not count:
        return ()
    kinds = _kinds(fields, "mtp_hybrid_override_pattern", "mtp_layers_block_type") or _MTP
    return kinds * count if len(kinds) * count <= MAX_LAYERS else kinds


def _drafts(shape: DecoderShape, kinds: tuple[str, ...], blocks: Mapping[str, Weights]) -> Weights:
    """The module for multi-token prediction; embedding and head are the decoder's own.

    vLLM v0.33.0 vllm/model_executor/models/nemotron_h_mtp.py.
    """
    weights: Weights = ()
    for index, kind in enumerate(kinds):
        layer = (shape.layers + index,)
        block = placed(blocks[kind], layer) + norm("norm", shape.hidden, layers=layer)
        weights += tuple(weight.model_copy(update={"component": "mtp"}) for weight in block)
    if not kinds:
        return ()
    first, last = (shape.layers,), (shape.layers + len(kinds) - 1,)
    for name, layers in (("enorm", first), ("hnorm", first), ("final_layernorm", last)):
        weights += norm(name, shape.hidden, layers=layers, component="mtp")
    return weights + linear(
        "eh_proj",
        (shape.hidden, 2 * shape.hidden),
        component="mtp",
        sharding="replicated",
        layers=first,
    )
