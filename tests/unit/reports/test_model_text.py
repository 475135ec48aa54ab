"""What `models explain` shows: every kind of cache, sums that hold, nothing cut."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from kvplan.models.caches import (
    ChunkedCache,
    CompressedCache,
    CompressorCache,
    CrossCache,
    FullCache,
    IndexerCache,
    LatentCache,
    LayerCache,
    RecurrentCache,
    SharedCache,
    StateTensor,
    WindowCache,
)
from kvplan.models.spec import Checkpoint, FilledDefault, Layer, ModelSpec
from kvplan.models.weights import Weight
from kvplan.reports.model_rows import cache_rows, spans, weight_rows
from kvplan.reports.model_text import model_text

FULL = FullCache(kv_heads=8, head_dim=128, head_dim_v=128)
WINDOW = WindowCache(kv_heads=1, head_dim=192, head_dim_v=128, window=1024)
KINDS: tuple[tuple[LayerCache, ...], ...] = (
    (FULL,),
    (WINDOW,),
    (ChunkedCache(kv_heads=8, head_dim=128, head_dim_v=128, chunk=8192),),
    (LatentCache(latent_dim=512, rope_dim=64), IndexerCache(head_dim=128)),
    (RecurrentCache(states=(StateTensor(name="conv", shape=(3, 1024)),)),),
    (CrossCache(kv_heads=8, head_dim=128, head_dim_v=128, source_tokens=1500),),
    (SharedCache(layer=0),),
    (),
    (FULL,),
)


def _model(*, model_id: str = "org/every-kind") -> ModelSpec:
    return ModelSpec(
        id=model_id,
        revision="0" * 40,
        model_type="every",
        architecture="EveryForCausalLM",
        source="made up",
        dtype="bfloat16",
        max_context=4096,
        hidden_size=64,
        vocab_size=1000,
        intermediate_size=128,
        attention_heads=8,
        experts=4,
        experts_per_token=2,
        layers=tuple(Layer(caches=caches) for caches in KINDS),
        tied_embeddings=False,
        weights=(
            Weight(name="embed", component="embedding", shape=(1000, 64), place="embedding"),
            Weight(name="up", component="mlp", shape=(128, 64), layers=tuple(range(9))),
            Weight(name="mtp.up", component="mtp", shape=(64, 64), layers=(8,)),
        ),
        quantization="fp8",
        kv_scheme="fp8",
        checkpoint=Checkpoint(total_bytes=10**9, parameters=10**8, source="an index"),
        defaults=(FilledDefault(field="head_dim", value="128", source="the class"),),
        notes=("A note.",),
    )


@pytest.mark.parametrize(
    ("indices", "text"),
    [
        ([0], "0"),
        (list(range(80)), "0–79"),
        ([0, 2], "0, 2"),
        ([0, 2, 4], "0, 2, 4"),
        ([0, 2, 4, 6], "0, 2, … 6"),
        ([0, 1, 3, 4, 6, 7, 9], "0–1, 3–4, … 9"),
        ([0, 1, 3, 5, 9], "0–1, 3, 5, 9"),
    ],
)
def test_layers_as_spans(indices: list[int], text: str) -> None:
    assert spans(indices) == text


def test_each_layer_is_in_one_row_a_cache() -> None:
    rows = cache_rows(_model(), 4096)
    assert sum(row.layer_count for row in rows) == len(KINDS) + 1  # one layer has two caches
    assert rows[0].layers == "0, 8"


def test_bytes_are_those_of_the_caches_at_tp_1() -> None:
    first, second = cache_rows(_model(), 4096)[:2]
    assert first.bytes_per_token == 2 * 8 * (128 + 128) * 2
    assert first.bytes_per_request == 4096 * first.bytes_per_token
    assert second.bytes_per_request == 1024 * (192 + 128) * 2


def test_weights_are_summed_by_component_and_sorted() -> None:
    rows = weight_rows(_model())
    assert [(row.component, row.parameters) for row in rows] == [
        ("mlp", 9 * 128 * 64),
        ("embedding", 64_000),
        ("mtp", 4096),
    ]


@pytest.mark.parametrize("width", [80, 140])
@pytest.mark.parametrize("model_id", ["org/every-kind", "x" * 300, "\x1b[31m[red]x[/red]"])
def test_no_line_is_too_wide_and_nothing_is_injected(width: int, model_id: str) -> None:
    text = model_text(
        _model(model_id=model_id), context=4096, width=width, color=False, ascii_only=False
    )
    assert max(cell_len(line) for line in text.splitlines()) <= width
    assert text.replace("\n", "").isprintable()


def test_as_it_looks(snapshot: SnapshotAssertion) -> None:
    text = model_text(_model(), context=4096, width=100, color=False, ascii_only=False)
    assert text == snapshot


def test_in_ascii() -> None:
    text = model_text(_model(), context=4096, width=80, color=False, ascii_only=True)
    assert text.isascii()


@pytest.mark.parametrize(
    ("cache", "shape", "per_token"),
    [
        (
            CompressedCache(latent_dim=448, rope_dim=64, cell_bytes=584, stride=4),
            "packed latent 448 + rope 64, one every 4 tokens",
            146,
        ),
        (
            CompressedCache(latent_dim=448, rope_dim=64, cell_bytes=584, window=128),
            "packed latent 448 + rope 64, last 128 tokens",
            584,
        ),
        (
            CompressedCache(latent_dim=448, rope_dim=64, cell_bytes=584, stride=128),
            "packed latent 448 + rope 64, one every 128 tokens",
            5,  # 4.6, rounded up
        ),
        (CompressorCache(state_dim=2048, window=8), "fp32 vector of 2048, last 8 tokens", 8192),
        (
            IndexerCache(head_dim=128, stride=4),
            "8-bit keys of 128, a scale each 128, one every 4 tokens",
            33,
        ),
        (
            IndexerCache(head_dim=128, scale_block=None, element_bytes=2),
            "16-bit keys of 128",
            256,
        ),
        (
            CrossCache(kv_heads=8, head_dim=64, head_dim_v=64, source_tokens=None),
            "8 KV heads of 64, the source's tokens",
            2048,
        ),
    ],
)
def test_compressed_caches_say_how_many_tokens_a_vector_stands_for(
    cache: LayerCache, shape: str, per_token: int
) -> None:
    model = _model().model_copy(update={"layers": (Layer(caches=(cache,)),)})
    (row,) = cache_rows(model, 1000)
    assert (row.shape, row.bytes_per_token) == (shape, per_token)
