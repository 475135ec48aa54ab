"""Pages of DeepSeek-V4's caches, as its kernels prescribe them."""

from __future__ import annotations

from typing import Any

import pytest
from real_models import full, real
from test_cells import context

from kvplan.engines.vllm.compressed import layer_pages
from kvplan.engines.vllm.pages import PageSpec
from kvplan.errors import EngineRefusesError, NotModelledError
from kvplan.models.caches import CompressedCache, CompressorCache, IndexerCache, LayerCache
from kvplan.models.spec import Layer


def compressed(stride: int, window: int | None = None) -> CompressedCache:
    return CompressedCache(
        latent_dim=448, rope_dim=64, cell_bytes=584, stride=stride, window=window
    )


def pages(
    *caches: LayerCache, kv_dtype: str = "auto", asked: int | None = None, **changes: Any
) -> tuple[PageSpec, ...]:
    layers = (Layer(caches=caches),)
    (found,) = layer_pages(layers, context(kv_dtype, **changes), asked_block=asked)
    return found


# Used bytes, rounded up to 576: the difference is padding.
@pytest.mark.parametrize(
    ("cache", "expected"),
    [
        # A window of 128: 64 tokens of 584 bytes are 37,376; 65 × 576 = 37,440.
        (compressed(1, 128), ("latent_window", 64, 37_440, 128, 64)),
        # 256 tokens in steps of 4: 64 vectors; in steps of 128: two of 584, 1,168 in 1,728.
        (compressed(4), ("latent", 256, 37_440, 0, 64)),
        (compressed(128), ("latent", 256, 1728, 0, 560)),
        # 64 keys of 128 + 4 bytes: 8,448 in 8,640.
        (IndexerCache(head_dim=128, stride=4), ("indexer", 256, 8640, 0, 192)),
        # States in fp32: 4 tokens of 512 or 2,048 elements, 8 of 1,024.
        (CompressorCache(state_dim=512, window=8), ("latent_window", 4, 8640, 8, 448)),
        (CompressorCache(state_dim=2048, window=8), ("latent_window", 4, 32_832, 8, 64)),
        (CompressorCache(state_dim=1024, window=128), ("latent_window", 8, 32_832, 128, 64)),
    ],
)
def test_a_page(cache: LayerCache, expected: tuple[str, int, int, int, int]) -> None:
    (found,) = pages(cache)
    assert (found.kind, found.block_size, found.page_bytes, found.span, found.padding) == expected
    assert found.page_bytes % 576 == 0
    assert found.held is None


def test_ranks_and_cache_types_change_nothing() -> None:
    plain = pages(compressed(4), IndexerCache(head_dim=128, stride=4))
    assert pages(compressed(4), IndexerCache(head_dim=128, stride=4), tp=8) == plain
    for kv_dtype in ("fp8", "fp8_e4m3", "fp8_e5m2", "fp8_ds_mla", "bfloat16"):
        got = pages(compressed(4), IndexerCache(head_dim=128, stride=4), kv_dtype=kv_dtype)
        assert got == plain


@pytest.mark.parametrize("kv_dtype", ["int8_per_token_head", "turboquant_k8v4", "nvfp4_ds_mla"])
def test_other_cache_types_are_refused(kv_dtype: str) -> None:
    with pytest.raises(EngineRefusesError, match=f"no {kv_dtype} cache for this model") as raised:
        pages(compressed(4), kv_dtype=kv_dtype)
    assert raised.value.hint == "Leave --kv-dtype out."


def test_blocks_are_256_tokens_or_a_multiple() -> None:
    with pytest.raises(EngineRefusesError, match="takes blocks of 256 tokens, not 64") as raised:
        pages(compressed(4), asked=64)
    assert raised.value.hint == "Leave block_size out."
    assert pages(compressed(4), asked=256) == pages(compressed(4))


def test_what_its_class_does_not_know_is_not_modelled() -> None:
    for cache in (CompressorCache(state_dim=512, window=16), full()):
        with pytest.raises(NotModelledError, match=f"attention with {cache.kind} caches"):
            pages(cache)


def test_layers_of_a_real_model_keep_their_order() -> None:
    model = real("deepseek-v4-default")
    found = layer_pages(model.layers, context(), asked_block=None)
    assert len(found) == len(model.layers)
    assert [len(page) for page in found] == [len(layer.caches) for layer in model.layers]
    kinds = {tuple(page.kind for page in layer) for layer in found}
    assert ("latent_window",) not in kinds or len(kinds) > 1
    assert {page.page_bytes for layer in found for page in layer} <= {37_440, 1728, 8640, 32_832}
