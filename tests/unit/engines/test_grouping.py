"""From a setup to what decides pages, and to groups: drafts, chunks, types, encoders."""

from __future__ import annotations

from typing import Any

import pytest
from real_models import device, full, real, toy, window

from kvplan.engines.base import Setup
from kvplan.engines.vllm.frame import Frame, frame_of
from kvplan.engines.vllm.grouping import groups_of, layer_context
from kvplan.engines.vllm.layers import LayerContext
from kvplan.errors import EngineRefusesError
from kvplan.models.caches import ChunkedCache, IndexerCache, LatentCache
from kvplan.models.spec import Layer, ModelSpec
from kvplan.plan import Parallelism

CHUNK = ChunkedCache(kv_heads=8, head_dim=128, head_dim_v=128, chunk=8192)
MLA = LatentCache(latent_dim=512, rope_dim=64)


def framed(model: ModelSpec, **changes: Any) -> Frame:
    parallel = {key: changes.pop(key) for key in ("tp", "pp", "dcp") if key in changes}
    facts: dict[str, Any] = {"gpu": device(80), "version": "0.33.0"}
    return frame_of(
        Setup(model=model, **(facts | {"parallelism": Parallelism(**parallel)} | changes))
    )


def context(model: ModelSpec, **changes: Any) -> LayerContext:
    return layer_context(framed(model, **changes))


def kinds(model: ModelSpec, **changes: Any) -> list[tuple[str, tuple[int, ...]]]:
    found = groups_of(framed(model, **changes), ((0, len(model.layers)),))
    return [(of.page.kind, of.indices) for of in found]


def drafting(tokens: int, method: str = "mtp", **more: Any) -> dict[str, Any]:
    return {"speculative_config": {"method": method, "num_speculative_tokens": tokens} | more}


def draft(layers: int = 1, kind: str | None = "MTP") -> ModelSpec:
    return toy(*[full()] * layers, draft=kind)


def test_drafted_tokens_reach_states_and_windows() -> None:
    """Three modules and three tokens: windows keep two more."""
    several = context(toy(window(100)), draft=draft(3), options=drafting(3))
    assert (several.state.draft_tokens, several.lookahead) == (3, 2)
    one = context(toy(window(100)), draft=draft(1), options=drafting(3))
    assert (one.state.draft_tokens, one.lookahead) == (3, 0)
    none = context(toy(window(100)))
    assert (none.state.draft_tokens, none.lookahead) == (0, 0)
    prompt = context(toy(window(100)), options=drafting(4, "ngram"))
    assert (prompt.state.draft_tokens, prompt.lookahead) == (4, 0)


def test_layers_of_a_draft_follow_the_models() -> None:
    model = toy(full(), window(100))
    assert kinds(model) == [("full", (0,)), ("window", (1,))]
    found = kinds(model, draft=draft(1), options=drafting(1))
    # Two full layers and one window: groups of one.
    assert found == [("full", (0,)), ("full", (2,)), ("window", (1,))]


@pytest.mark.parametrize(
    ("kind", "config", "whole"),
    [
        ("EAGLE-3", {"method": "eagle3", "model": "org/head"}, True),
        ("MTP", {"method": "mtp"}, True),
        (None, {"method": "draft_model", "model": "org/small"}, False),
    ],
)
def test_chunks_are_kept_whole_beside_a_head(
    kind: str | None, config: dict[str, Any], *, whole: bool
) -> None:
    options = {"speculative_config": config | {"num_speculative_tokens": 1}}
    found = kinds(toy(full(), CHUNK), draft=draft(1, kind), options=options)
    assert (found == [("full", (0, 1, 2))]) is whole
    assert len(found) == (1 if whole else 3)
    # Windows stay what they are.
    windows = kinds(toy(full(), window(100)), draft=draft(1, kind), options=options)
    assert "window" in dict(windows)


@pytest.mark.parametrize(("heads", "grouped"), [(8, False), (16, True), (32, True)])
def test_whether_query_heads_share_a_kv_head(heads: int, *, grouped: bool) -> None:
    assert context(toy(full(8), attention_heads=heads)).cell.grouped is grouped
    assert context(toy(full(8), window(9, 2), attention_heads=8)).cell.grouped is False


def test_falcon_keeps_the_models_type() -> None:
    cell = context(real("falcon-7b"), kv_dtype="fp8").cell
    assert (cell.kv_dtype, cell.kv.bits_k) == ("bfloat16", 16)
    other = context(real("llama-3.1-8b"), kv_dtype="fp8").cell
    assert (other.kv_dtype, other.kv.bits_k) == ("fp8", 8)


@pytest.mark.parametrize(("version", "tokens"), [("0.10.2", None), ("0.11.0", 4096)])
def test_an_encoder_is_planned_for_a_batch_since_0_11(version: str, tokens: int | None) -> None:
    options = {"max_num_batched_tokens": 4096}
    cell = context(toy(full()), version=version, options=options).cell
    assert cell.encoder_tokens == tokens


def test_an_indexer_makes_latent_attention_sparse() -> None:
    sparse = toy(MLA, layers=(Layer(caches=(IndexerCache(head_dim=128), MLA)),))
    assert context(sparse).cell.sparse
    assert not context(toy(MLA)).cell.sparse


@pytest.mark.parametrize(
    ("options", "conv", "ssm"),
    [
        ({}, None, None),
        ({"mamba_cache_dtype": "auto", "mamba_ssm_cache_dtype": "auto"}, None, None),
        ({"mamba_cache_dtype": "float32"}, "float32", None),
        ({"mamba_ssm_cache_dtype": "float16"}, None, "float16"),
    ],
)
def test_types_of_states_that_are_asked_for(
    options: dict[str, Any], conv: str | None, ssm: str | None
) -> None:
    state = context(toy(full()), options=options).state
    assert (state.conv_dtype, state.ssm_dtype) == (conv, ssm)


@pytest.mark.parametrize(("asked", "block"), [(None, 2048), (100, 100)])
def test_states_outside_of_prefix_caching_have_blocks_of_the_longest_request(
    asked: int | None, block: int
) -> None:
    silent = toy(full(), max_context=None)
    assert context(silent, context=asked).max_length == block
    assert context(toy(full())).max_length == 8192


def test_replaying_states_is_refused() -> None:
    with pytest.raises(EngineRefusesError, match="ReplaySSM"):
        context(toy(full()), options={"use_replayssm": True})


def test_ranks_and_device_are_passed_on() -> None:
    made = context(toy(full(1)), tp=8, dcp=4, gpu=device(80, sm=(10, 0)), dtype="float16")
    assert (made.cell.tp, made.cell.dcp, made.cell.sm) == (8, 4, (10, 0))
    assert (made.state.tp, made.state.sm, made.state.dtype) == (8, (10, 0), "float16")
    assert made.cell.dtype == "float16"
