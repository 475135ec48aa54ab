"""Settings that depend on the model: the mode of states, layers left out, V0's limits."""

from __future__ import annotations

from typing import Any

import pytest
from real_models import device, full, real, toy, window

from kvplan.engines.vllm.by_model import (
    attention_of,
    check_engine,
    check_replay,
    is_hybrid,
    skipped_layers,
    state_mode,
)
from kvplan.engines.vllm.history import rules_for
from kvplan.engines.vllm.settings import Settings, resolve
from kvplan.errors import EngineRefusesError, NotModelledError
from kvplan.models.caches import (
    CrossCache,
    IndexerCache,
    LatentCache,
    LayerCache,
    RecurrentCache,
    SharedCache,
    StateTensor,
)
from kvplan.models.spec import Layer, ModelSpec

STATE = RecurrentCache(states=(StateTensor(name="ssm", shape=(4, 4)),))
CROSS = CrossCache(kv_heads=8, head_dim=64, head_dim_v=64, source_tokens=1500)
SHARED = SharedCache(layer=0)
DECODER, STATES, HYBRID = toy(full(), full()), toy(STATE, STATE), toy(STATE, full())
SPEECH = toy(full(), CROSS)


def chosen(options: dict[str, Any] | None = None, version: str = "0.33.0") -> Settings:
    return resolve(
        options or {},
        rules_for(version),
        device(80),
        total_bytes=80 * 2**30,
        context=8192,
        pp=1,
        version=version,
    )


@pytest.mark.parametrize(
    ("model", "attention", "hybrid"),
    [
        (DECODER, "decoder", False),
        (toy(full(), window(9), SHARED), "decoder", False),
        (STATES, "attention_free", False),
        (toy(STATE, None), "attention_free", False),
        (HYBRID, "hybrid", True),
        (toy(STATE, window(9)), "hybrid", True),
        (toy(STATE, SHARED), "attention_free", False),
        (SPEECH, "encoder_decoder", False),
        (real("jamba-v0.1"), "hybrid", True),
        (real("mamba2-2.7b"), "attention_free", False),
        (real("whisper-large-v3"), "encoder_decoder", False),
    ],
)
def test_what_a_model_keeps(model: ModelSpec, attention: str, *, hybrid: bool) -> None:
    assert attention_of(model) == attention
    assert is_hybrid(model) is hybrid


@pytest.mark.parametrize(
    ("options", "version", "mode"),
    [
        ({"enable_prefix_caching": True}, "0.33.0", "align"),
        ({"enable_prefix_caching": True, "mamba_cache_mode": "align"}, "0.33.0", "align"),
        ({"enable_prefix_caching": False}, "0.33.0", "none"),
        ({"enable_prefix_caching": True, "mamba_cache_mode": "all"}, "0.31.0", "all"),
        ({"enable_prefix_caching": False, "mamba_cache_mode": "all"}, "0.31.0", "none"),
        ({"enable_prefix_caching": True}, "0.31.0", "align"),
    ],
)
def test_the_mode_of_states(options: dict[str, Any], version: str, mode: str) -> None:
    assert state_mode(chosen(options, version), rules_for(version)) == mode


@pytest.mark.parametrize("version", ["0.14.1", "0.32.0", "0.33.0"])
def test_releases_without_a_mode_for_all(version: str) -> None:
    asked = chosen({"mamba_cache_mode": "all", "enable_prefix_caching": False}, "0.31.0")
    with pytest.raises(EngineRefusesError, match="no mamba_cache_mode 'all'") as raised:
        state_mode(asked, rules_for(version))
    assert raised.value.hint == "Use align, or 0.15 to 0.31."


@pytest.mark.parametrize(
    ("layers", "kv_dtype", "asked", "skipped"),
    [
        (6, "auto", (), set()),
        (6, "fp8", ("0", "5"), {"0", "5"}),
        (6, "fp8", ("sliding_window",), {"sliding_window"}),
        # TurboQuant leaves two at each end, and never more than there are.
        (6, "turboquant_k8v4", (), {"0", "1", "4", "5"}),
        (6, "turboquant_3bit_nc", ("2",), {"0", "1", "2", "4", "5"}),
        (5, "turboquant_k8v4", (), {"0", "1", "3", "4"}),
        (4, "turboquant_k8v4", (), {"0", "1", "2", "3"}),
        (3, "turboquant_k8v4", (), {"0", "2"}),
        (1, "turboquant_k8v4", (), set()),
    ],
)
def test_layers_whose_cache_keeps_the_models_type(
    layers: int, kv_dtype: str, asked: tuple[str, ...], skipped: set[str]
) -> None:
    settings = chosen({"kv_cache_dtype_skip_layers": list(asked)} if asked else {})
    assert skipped_layers(settings, toy(*[full()] * layers), kv_dtype) == skipped


def test_turboquant_leaves_out_no_layer_of_a_hybrid() -> None:
    assert skipped_layers(chosen(), HYBRID, "turboquant_k8v4") == set()


def test_replaying_states_needs_another_backend() -> None:
    check_replay(chosen())
    check_replay(chosen({"use_replayssm": False}))
    with pytest.raises(EngineRefusesError, match="with --mamba-backend flashinfer alone") as raised:
        check_replay(chosen({"use_replayssm": True}))
    assert raised.value.hint == "Leave out use_replayssm."


LATENT = LatentCache(latent_dim=512, rope_dim=64)
SPARSE = toy(LATENT, layers=(Layer(caches=(IndexerCache(head_dim=128), LATENT)),))


@pytest.mark.parametrize("model", [STATES, HYBRID, SPEECH, SPARSE])
def test_v0_keeps_states_and_encoders_elsewhere(model: ModelSpec) -> None:
    with pytest.raises(NotModelledError, match="in vLLM's V0 engine") as raised:
        check_engine(model, rules_for("0.7.3"))
    assert raised.value.hint == "Plan for a release with V1, 0.10 or later."
    check_engine(model, rules_for("0.8.5"))


@pytest.mark.parametrize("cache", [full(), window(9), LATENT])
def test_v0_knows_attention(cache: LayerCache) -> None:
    check_engine(toy(cache), rules_for("0.7.3"))
