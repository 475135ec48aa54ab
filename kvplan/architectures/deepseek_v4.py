"""DeepSeek V4: windows everywhere, and compressed memories of what lies behind them.

Each layer attends to a short window and, by its kind, to vectors that stand for 4 or 128 tokens;
of the 4-token vectors an indexer picks some. Source of the caches: vLLM v0.33.0
vllm/models/deepseek_v4/attention.py and compressor.py.
"""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.deepseek_v4_weights import (
    Sizes,
    draft_weights,
    layer_weights,
    mixing_head,
)
from kvplan.architectures.fields import MAX_EXPERTS, MAX_LAYERS, Fields
from kvplan.architectures.indexer import Indexer
from kvplan.architectures.shapes import DecoderShape
from kvplan.errors import NotModelledError
from kvplan.models.caches import CompressedCache, CompressorCache, IndexerCache, LayerCache
from kvplan.models.spec import Layer

_ENDS = Ends(embed="embed", head="head")
_RATES = {
    "sliding_attention": 0,
    "compressed_sparse_attention": 4,
    "heavily_compressed_attention": 128,
}
_TILE = 64  # elements that share a scale byte; one byte more pads the row
_ROPE_BYTES = 2  # bfloat16
_MAX_STREAMS = 64


def deepseek_v4(fields: Fields) -> Anatomy:
    """V4 Flash and V4 Pro. Defaults: DeepseekV4Config."""
    sizes = _sizes(fields)
    body = layer_weights(sizes)
    window = fields.integer("sliding_window", default=128)
    return decoder(
        sizes.shape,
        body + mixing_head(sizes) + draft_weights(sizes, body, _modules(fields)),
        layers=tuple(Layer(caches=_caches(sizes, rate, window)) for rate in sizes.rates),
        intermediate=sizes.expert_width,
        tied=fields.flag("tie_word_embeddings", default=False),
        ends=_ENDS,
        experts=sizes.experts,
        experts_per_token=sizes.active,
    )


def _sizes(fields: Fields) -> Sizes:
    layers = fields.integer("num_hidden_layers", default=43, most=MAX_LAYERS)
    experts = fields.integer("n_routed_experts", default=256, most=MAX_EXPERTS)
    shape = _shape(fields, layers)
    return Sizes(
        shape=shape,
        rope=_rope(fields, shape),
        query_rank=fields.integer("q_lora_rank", default=1024),
        output_rank=fields.integer("o_lora_rank", default=1024),
        output_groups=fields.integer("o_groups", default=8),
        indexer=Indexer(
            heads=fields.integer("index_n_heads", default=64),
            head_dim=fields.integer("index_head_dim", default=128),
        ),
        rates=_rates(fields, layers),
        experts=experts,
        active=fields.integer("num_experts_per_tok", default=6, most=experts),
        expert_width=fields.integer("moe_intermediate_size", default=2048),
        shared=fields.integer("n_shared_experts", default=1, least=0, most=MAX_EXPERTS),
        hashed=_hashed(fields, layers),
        streams=fields.integer("hc_mult", default=4, most=_MAX_STREAMS),
        packed_experts=_packed_experts(fields),
    )


def _shape(fields: Fields, layers: int) -> DecoderShape:
    return DecoderShape(
        layers=layers,
        hidden=fields.integer("hidden_size", default=4096),
        heads=fields.integer("num_attention_heads", default=64),
        kv_heads=1,
        head_dim=fields.integer("head_dim", default=512),
        vocab=fields.integer("vocab_size", default=129_280),
    )


def _rope(fields: Fields, shape: DecoderShape) -> int:
    rope = fields.integer("qk_rope_head_dim", default=64)
    if rope >= shape.head_dim:
        raise fields.conflict(
            f"{rope} rotary elements do not fit in a head of {shape.head_dim} with others."
        )
    return rope


def _rates(fields: Fields, layers: int) -> tuple[int, ...]:
    """How many tokens one vector of each layer stands for; 0: only the window is kept."""
    types = fields.texts("layer_types", most=MAX_LAYERS)
    if types is None:
        return _stated_rates(fields, layers)
    if len(types) != layers:
        raise fields.conflict(f"`layer_types` lists {len(types)} layers of {layers}.")
    for kind in types:
        if kind not in _RATES:
            raise fields.error("layer_types", kind, f"made of {', '.join(_RATES)}")
    own = fields.section("compress_rates")
    rates = {
        kind: own.integer(kind, default=rate) if own and rate else rate
        for kind, rate in _RATES.items()
    }
    return _known(tuple(rates[kind] for kind in types))


def _stated_rates(fields: Fields, layers: int) -> tuple[int, ...]:
    stated = fields.integers("compress_ratios", least=0, most=2**20)
    if stated is None:
        fields.fill("compress_ratios", "128, 128, then 128 and 4 in turn")
        return tuple(4 if layer > 2 and layer % 2 else 128 for layer in range(layers))
    # Files go on with ratios of draft modules (0: they keep a window only), which vLLM and
    # transformers leave out.
    if len(stated) < layers:
        raise fields.conflict(f"`compress_ratios` lists {len(stated)} layers of {layers}.")
    return _known(stated[:layers])


def _known(rates: tuple[int, ...]) -> tuple[int, ...]:
    for rate in rates:
        if rate not in _RATES.values():
            raise NotModelledError(
                f"A cache that compresses {rate} tokens into one vector is not modelled.",
                hint="DeepSeek V4 compresses 4 or 128.",
            )
    return rates


def _hashed(fields: Fields, layers: int) -> tuple[int, ...]:
    """Layers whose experts are looked up by token instead of scored."""
    types = fields.texts("mlp_layer_types", most=MAX_LAYERS)
    if types is not None:
        return tuple(layer for layer, kind in enumerate(types[:layers]) if kind == "hash_moe")
    return tuple(
        range(min(layers, fields.integer("num_hash_layers", default=3, least=0, most=MAX_LAYERS)))
    )


def _modules(fields: Fields) -> tuple[int, ...]:
    first = fields.integer("num_hidden_layers", default=43, most=MAX_LAYERS)
    count = fields.optional_integer("num_nextn_predict_layers", least=0, most=100) or 0
    return tuple(range(first, first + count))


def _packed_experts(fields: Fields) -> bool:
    """Whether an FP8 checkpoint keeps its routed experts in four bits.

    Four is what vLLM takes if the file says nothing: vllm/models/deepseek_v4/quant_config.py.
    """
    scheme = fields.section("quantization_config")
    if scheme is None or scheme.optional_text("quant_method") != "fp8":
        return False
    stated = fields.optional_text("expert_dtype") or scheme.optional_text("expert_dtype")
    if stated is None:
        fields.fill("expert_dtype", "fp4", "vLLM v0.33.0 vllm/models/deepseek_v4/quant_config.py")
    return stated in (None, "fp4")


def _caches(sizes: Sizes, rate: int, window: int) -> tuple[LayerCache, ...]:
    """In the order in which vLLM registers them."""
    own = _vectors(sizes, stride=1, window=window)
    if rate == 0:
        return (own,)
    overlap = 2 if rate == 4 else 1
    reach = overlap * rate
    compressed: tuple[LayerCache, ...] = (
        own,
        _vectors(sizes, stride=rate, window=None),
        # Keys and scores, for the group under way and, where groups overlap, the one before.
        CompressorCache(state_dim=2 * overlap * sizes.shape.head_dim, window=reach),
    )
    if rate != 4:
        return compressed
    index = sizes.indexer.head_dim
    return (
        IndexerCache(head_dim=index, stride=rate),
        CompressorCache(state_dim=2 * overlap * index, window=reach),
        *compressed,
    )


def _vectors(sizes: Sizes, *, stride: int, window: int | None) -> CompressedCache:
    plain = sizes.shape.head_dim - sizes.rope
    return CompressedCache(
        latent_dim=plain,
        rope_dim=sizes.rope,
        # 8-bit elements, rotary ones in two bytes, a scale byte each tile and one for padding:
        # vllm/models/deepseek_v4/compressor.py and attention.py (584 bytes for 448 + 64).
        cell_bytes=plain + _ROPE_BYTES * sizes.rope + plain // _TILE + 1,
        stride=stride,
        window=window,
    )
