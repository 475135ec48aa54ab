"""DeciLM, Llama Nemotron Super and Ultra: searched layers, some without attention."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import Weights, attention, gated_mlp, linear, norm
from kvplan.architectures.fields import MAX_DIMENSION, MAX_LAYERS, MAX_POSITIONS, Fields
from kvplan.architectures.layers import grouped
from kvplan.architectures.shapes import DecoderShape, checked, read_shape
from kvplan.errors import NotModelledError
from kvplan.models.caches import FullCache, LayerCache, WindowCache
from kvplan.models.spec import Layer

_MOST_MULTIPLE = 64
_ROUND_TO = 256


class Block(BaseModel):
    """One layer.

    Attributes:
        kv_heads: Of its attention; 0 if it has none.
        window: Tokens its attention reaches, or None for all.
        attention_linear: Its attention is one matrix without a cache.
        width: Of its feed-forward; 0 if it has none.
        mlp_linear: Its feed-forward is one matrix.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    kv_heads: int
    window: int | None
    attention_linear: bool
    width: int
    mlp_linear: bool


def nemotron_nas(fields: Fields) -> Anatomy:
    """One layer an entry of ``block_configs``: kept, narrowed, linear or left out."""
    blocks = _blocks(fields)
    heads = fields.integer("num_attention_heads")
    shape = DecoderShape(
        layers=len(blocks),
        hidden=fields.integer("hidden_size"),
        heads=heads,
        kv_heads=heads,
        head_dim=_head_dim(fields, heads),
        vocab=fields.integer("vocab_size"),
    )
    return decoder(
        shape,
        _attention(fields, shape, blocks) + _feed_forwards(fields, shape, blocks),
        layers=_layers(shape, blocks),
        intermediate=max(block.width for block in blocks) or shape.hidden,
        tied=fields.flag("tie_word_embeddings", default=False),
    )


def decilm(fields: Fields) -> Anatomy:
    """DeciLM 6B and 7B: Llama whose KV heads differ from layer to layer."""
    shape = read_shape(fields)
    kv_heads = fields.integers("num_key_value_heads_per_layer", least=1, most=2**16)
    if kv_heads is None or len(kv_heads) != shape.layers:
        raise fields.conflict(
            f"`num_key_value_heads_per_layer` has to list the heads of {shape.layers} layers."
        )
    intermediate = fields.integer("intermediate_size")
    block = Block(
        kv_heads=1, window=None, attention_linear=False, width=intermediate, mlp_linear=False
    )
    blocks = tuple(block.model_copy(update={"kv_heads": count}) for count in kv_heads)
    return decoder(
        shape,
        _attention(fields, shape, blocks) + _feed_forwards(fields, shape, blocks),
        layers=_layers(shape, blocks),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
    )


def _head_dim(fields: Fields, heads: int) -> int:
    stated = fields.optional_integer("head_dim")
    if stated is not None:
        return stated
    hidden = fields.integer("hidden_size")
    if hidden % heads:
        raise fields.conflict(f"The hidden size {hidden} is not a multiple of {heads} heads.")
    return hidden // heads


def _blocks(fields: Fields) -> tuple[Block, ...]:
    stated = fields.sections("block_configs", most=MAX_LAYERS)
    if not stated:
        raise fields.error("block_configs", fields.raw("block_configs"), "a list of layers")
    layers = fields.optional_integer("num_hidden_layers", most=MAX_LAYERS)
    if layers is not None and layers != len(stated):
        raise fields.conflict(f"`block_configs` lists {len(stated)} layers of {layers}.")
    heads = fields.integer("num_attention_heads")
    hidden = fields.integer("hidden_size")
    return tuple(_block(block, heads, hidden) for block in stated)


def _block(block: Fields, heads: int, hidden: int) -> Block:
    attention_part, mlp_part = block.section("attention"), block.section("ffn")
    if attention_part is None or mlp_part is None:
        raise block.conflict("A layer of `block_configs` lacks `attention` or `ffn`.")
    kv_heads, linear_attention, window = _attention_of(attention_part, heads)
    linear_mlp = mlp_part.flag("replace_with_linear", default=False)
    skipped = linear_mlp or mlp_part.flag("no_op", default=False)
    return Block(
        kv_heads=kv_heads,
        window=window,
        attention_linear=linear_attention,
        width=0 if skipped else _width(mlp_part, hidden),
        mlp_linear=linear_mlp,
    )


def _attention_of(part: Fields, heads: int) -> tuple[int, bool, int | None]:
    if part.flag("replace_with_linear", default=False):
        return 0, True, None
    if part.flag("no_op", default=False):
        return 0, False, None
    if part.has("num_sink_tokens"):
        raise NotModelledError(
            "Windowed layers with sink tokens are not modelled for this family.",
            hint="Known are full and windowed layers, and layers without attention.",
        )
    window = part.optional_integer("window_length", most=MAX_POSITIONS)
    group = part.integer("n_heads_in_group")
    if heads % group:
        raise part.conflict(f"{heads} attention heads can't be cut into groups of {group}.")
    return heads // group, False, window


def _width(part: Fields, hidden: int) -> int:
    """A multiple of two thirds of the hidden size, rounded up, or the number itself.

    vLLM v0.33.0 vllm/model_executor/models/nemotron_nas.py _ffn_mult_to_intermediate_size.
    """
    multiple = part.number("ffn_mult")
    if multiple is None:
        return part.integer("intermediate_size")
    if multiple > _MOST_MULTIPLE:
        raise part.error("ffn_mult", multiple, f"a number up to {_MOST_MULTIPLE}")
    width = int(2 * multiple * hidden / 3)
    return min(max(1, -(-width // _ROUND_TO)) * _ROUND_TO, MAX_DIMENSION)


def _attention(fields: Fields, shape: DecoderShape, blocks: tuple[Block, ...]) -> Weights:
    bias = fields.flag("attention_bias", default=False)
    weights: Weights = ()
    for count, layers in grouped([block.kv_heads for block in blocks]).items():
        if count:
            part = checked(fields, shape.model_copy(update={"kv_heads": count}))
            weights += attention(part, qkv_bias=bias, out_bias=bias, layers=layers)
    single = tuple(n for n, block in enumerate(blocks) if block.attention_linear)
    present = tuple(n for n, block in enumerate(blocks) if block.kv_heads or n in set(single))
    return (
        weights
        + _square("self_attn.linear_attn", shape, single)
        + norm("input_layernorm", shape.hidden, layers=present)
    )


def _feed_forwards(fields: Fields, shape: DecoderShape, blocks: tuple[Block, ...]) -> Weights:
    bias = fields.flag("mlp_bias", default=False)
    weights: Weights = ()
    for width, layers in grouped([block.width for block in blocks]).items():
        if width:
            weights += gated_mlp(shape.hidden, width, layers=layers, bias=bias)
    single = tuple(n for n, block in enumerate(blocks) if block.mlp_linear)
    present = tuple(n for n, block in enumerate(blocks) if block.width or block.mlp_linear)
    return (
        weights
        + _square("mlp.linear_mlp", shape, single)
        + norm("post_attention_layernorm", shape.hidden, layers=present)
    )


def _square(name: str, shape: DecoderShape, layers: tuple[int, ...]) -> Weights:
    # NVIDIA/TensorRT-LLM@4d365368:tensorrt_llm/_torch/models/modeling_nemotron_nas.py.
    return linear(
        name,
        (shape.hidden, shape.hidden),
        component="other",
        sharding="replicated",
        layers=layers,
    )


def _layers(shape: DecoderShape, blocks: tuple[Block, ...]) -> tuple[Layer, ...]:
    pairs = [(block.kv_heads, block.window) for block in blocks]
    kinds = {pair: _layer(shape, *pair) for pair in dict.fromkeys(pairs)}
    return tuple(kinds[pair] for pair in pairs)


def _layer(shape: DecoderShape, kv_heads: int, window: int | None) -> Layer:
    if not kv_heads:
        return Layer()
    size = shape.head_dim
    cache: LayerCache
    if window is None:
        cache = FullCache(kv_heads=kv_heads, head_dim=size, head_dim_v=size)
    else:
        cache = WindowCache(kv_heads=kv_heads, head_dim=size, head_dim_v=size, window=window)
    return Layer(caches=(cache,))
