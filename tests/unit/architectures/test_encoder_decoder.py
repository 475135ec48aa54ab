"""Encoder-decoder models: two caches a layer, and weights on both sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from kvplan.errors import InputError, NotModelledError
from kvplan.models.caches import CrossCache, FullCache
from kvplan.models.facts import TensorHeader
from kvplan.models.formats import PLAIN, plain_kv
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import RankLayout, rank_bytes

Read = Callable[..., ModelSpec]
Config = dict[str, Any]

T5: Config = {"d_model": 512, "d_kv": 64, "vocab_size": 32128, "d_ff": 2048, "num_layers": 6}
T5 |= {"num_heads": 8}
MT5: Config = {**T5, "d_ff": 1024, "num_layers": 8, "num_heads": 6, "vocab_size": 250112}
BART: Config = {"d_model": 1024, "vocab_size": 50265, "max_position_embeddings": 1024}
BART |= {f"{side}_layers": 12 for side in ("encoder", "decoder")}
BART |= {f"{side}_ffn_dim": 4096 for side in ("encoder", "decoder")}
BART |= {f"{side}_attention_heads": 16 for side in ("encoder", "decoder")}
WHISPER: Config = {"d_model": 384, "vocab_size": 51865, "model_type": "whisper"}
WHISPER |= {f"{side}_layers": 4 for side in ("encoder", "decoder")}
WHISPER |= {f"{side}_ffn_dim": 1536 for side in ("encoder", "decoder")}
WHISPER |= {f"{side}_attention_heads": 6 for side in ("encoder", "decoder")}
MLLAMA: Config = {
    "model_type": "mllama",
    "text_config": {
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 40,
        "num_attention_heads": 32,
        "vocab_size": 128256,
    },
    "vision_config": {"image_size": 560},
}

# Elements of transformers' own modules with the default sizes of each class (v5.24.0, built on
# PyTorch's meta device).
TOTALS: list[tuple[str, Config, int]] = [
    ("t5", T5, 60_506_624),
    ("mt5", MT5, 172_119_424),
    ("umt5", MT5, 172_122_112),
    ("bart", BART, 406_291_456),
    ("mbart", BART, 406_295_552),
    ("pegasus", BART, 406_287_360),
    ("marian", {**BART, "vocab_size": 58101}, 414_307_328),
    ("whisper", WHISPER, 37_760_640),
    ("mllama", MLLAMA, 10_670_220_835),
]


@pytest.mark.parametrize(("model_type", "config", "total"), TOTALS)
def test_totals_equal_the_reference(
    read: Read, model_type: str, config: Config, total: int
) -> None:
    assert read({**config, "model_type": model_type}).parameters_total == total


def test_a_layer_keeps_its_own_tokens_and_those_of_the_source(read: Read) -> None:
    spec = read(WHISPER)
    own, cross = spec.layers[0].caches
    assert isinstance(own, FullCache)
    assert isinstance(cross, CrossCache)
    kv = plain_kv("float16")
    assert own.request_bytes(448, kv, "float16", tp=2) == 448 * 2 * 2 * 3 * 64
    assert cross.request_bytes(448, kv, "float16", tp=2) == 1500 * 2 * 2 * 3 * 64
    assert len(spec.layers) == 4
    assert spec.max_context == 448


def test_a_source_without_a_limit_is_as_long_as_the_request(read: Read) -> None:
    _, cross = read({**T5, "model_type": "t5"}).layers[0].caches
    assert cross.tokens_held(300) == 300
    _, limited = read({**T5, "model_type": "t5", "n_positions": 512}).layers[0].caches
    assert limited.tokens_held(300) == 512


def test_the_encoder_lies_on_the_first_stage_only(read: Read) -> None:
    spec = read({**BART, "model_type": "bart"})
    first = rank_bytes(
        spec.weights, PLAIN["float16"], RankLayout(layers=(0, 6), last=False), tied=True
    )
    last = rank_bytes(
        spec.weights, PLAIN["float16"], RankLayout(layers=(6, 12), first=False), tied=True
    )
    layer = 2 * (8 * 1024 * 1024 + 4096 + 1024)  # one feed-forward
    assert first["mlp"] - last["mlp"] == 12 * layer


def test_t5_has_no_head_of_its_own_whatever_the_file_says(read: Read) -> None:
    own = read({**T5, "model_type": "t5", "tie_word_embeddings": False})
    assert own.tied_embeddings is True
    assert own.parameters_total == 60_506_624
    assert "not counted" in own.notes[0]
    assert read({**T5, "model_type": "t5"}).notes == ()


def test_a_gated_feed_forward_has_two_matrices_in(read: Read) -> None:
    gated = read({**T5, "model_type": "t5", "feed_forward_proj": "gated-gelu"})
    plain = read({**T5, "model_type": "t5", "feed_forward_proj": "relu"})
    assert gated.parameters_total - plain.parameters_total == 12 * 512 * 2048


def test_an_encoder_alone_keeps_nothing(read: Read) -> None:
    config = {**MT5, "model_type": "umt5", "architectures": ["UMT5EncoderModel"]}
    with pytest.raises(NotModelledError, match="keeps no KV cache"):
        read(config)


def test_marian_with_two_vocabularies_is_refused(read: Read) -> None:
    config = {**BART, "model_type": "marian", "share_encoder_decoder_embeddings": False}
    with pytest.raises(NotModelledError, match="embeddings of their own"):
        read(config)


def test_layers_of_llama_vision_attend_to_text_or_to_the_image(read: Read) -> None:
    spec = read(MLLAMA)
    crossed = [
        number for number, layer in enumerate(spec.layers) if layer.caches[0].kind == "cross"
    ]
    assert crossed == [3, 8, 13, 18, 23, 28, 33, 38]
    cross = spec.layers[3].caches[0]
    # Four tiles of 40 × 40 patches and one more.
    assert cross.tokens_held(10) == 4 * 1601
    assert {len(layer.caches) for layer in spec.layers} == {1}


def test_a_cross_layer_beyond_the_layers_is_an_error(read: Read) -> None:
    text = {**MLLAMA["text_config"], "cross_attention_layers": [40]}
    with pytest.raises(InputError, match="beyond the 40 layers"):
        read({**MLLAMA, "text_config": text})


def test_headers_tell_encoder_and_decoder_apart(read_some: Read) -> None:
    shapes = {
        "shared.weight": (32128, 512),
        "encoder.embed_tokens.weight": (32128, 512),
        "decoder.embed_tokens.weight": (32128, 512),
        "encoder.block.0.layer.0.SelfAttention.q.weight": (512, 512),
        "encoder.block.5.layer.1.DenseReluDense.wi.weight": (2048, 512),
        "decoder.block.0.layer.0.SelfAttention.q.weight": (512, 512),
        "decoder.block.0.layer.1.EncDecAttention.q.weight": (512, 512),
        "decoder.block.5.layer.2.DenseReluDense.wi.weight": (2048, 512),
        "encoder.final_layer_norm.weight": (512,),
        "decoder.final_layer_norm.weight": (512,),
    }
    tensors = tuple(
        TensorHeader(name=name, dtype="F32", shape=shape, size=4 * shape[0] * (*shape, 1)[1])
        for name, shape in shapes.items()
    )
    spec = read_some({**T5, "model_type": "t5"}, tensors=tensors)
    assert spec.notes == ()
    counts: Counter[tuple[str, str]] = Counter()
    for weight in spec.weights:
        counts[weight.component, weight.place] += weight.parameters
    assert counts["embedding", "embedding"] == 32128 * 512
    assert counts["attention", "tower"] == 512 * 512
    assert counts["attention", "layers"] == 2 * 512 * 512
    assert counts["mlp", "tower"] == counts["mlp", "layers"] == 2048 * 512
    assert counts["norms", "tower"] == counts["norms", "head"] == 512
