"""The profile run's peak by hand, and what comes on top of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fixed_calibration import BEFORE_020, MIB, NEWEST, fix_calibration
from real_models import device, full, real, toy

from kvplan.engines.base import Setup
from kvplan.engines.runtime import Range
from kvplan.engines.vllm.activation import Run, activation_lines
from kvplan.engines.vllm.calibration import RuntimeBand
from kvplan.engines.vllm.engine import Vllm
from kvplan.ledger import Draft
from kvplan.models.caches import LatentCache
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import Component, RankLayout, Sharding, Weight

GIB = 1024 * MIB
# The last release in which the older model runner runs every model.
OLDER = (0, 21)


def wide(**changes: Any) -> ModelSpec:
    """No matrix tells a width, so 2 × 4,096 + 3 × 16,384 = 57,344 elements are alive a token."""
    facts: dict[str, Any] = {
        "hidden_size": 4096, "intermediate_size": 16_384, "vocab_size": 1000
    }  # fmt: skip
    return toy(full(), full(), **(facts | changes))


def matrix(
    component: Component, shape: tuple[int, int], sharding: Sharding = "replicated"
) -> Weight:
    return Weight(name="x", component=component, shape=shape, sharding=sharding, layers=(0,))


def profiled(
    model: ModelSpec, *, tokens: int = 8192, requests: int = 8, tp: int = 1, **options: Any
) -> Run:
    """The profile run of a single stage."""
    asked = {"max_num_batched_tokens": tokens, "max_num_seqs": requests, **options}
    setup = Setup(model=model, gpu=device(), version="0.30.0", options=asked, context=1024)
    return Run(
        model=model,
        settings=Vllm().prepare(setup).settings,
        layout=RankLayout(tp=tp, layers=(0, len(model.layers))),
        dtype="bfloat16",
        context=1024,
        compiles=True,
        v0=False,
        version=OLDER,
    )


def lines(run: Run, band: RuntimeBand = NEWEST) -> dict[str, Draft]:
    return {draft.name: draft for draft in activation_lines(run, band)}


def peak(run: Run, band: RuntimeBand = NEWEST) -> int:
    return lines(run, band)["activation_peak"].value()


def test_with_a_small_vocabulary_a_layers_step_is_the_peak() -> None:
    """8,192 tokens × 57,344 elements × 2 bytes; sampling takes 8 × 1,000 × 14 and 128 MiB."""
    assert peak(profiled(wide())) == 896 * MIB
    assert peak(profiled(wide(), tokens=1024)) == 112 * MIB


def test_with_a_large_vocabulary_sampling_is_the_peak() -> None:
    """Logits of every request and the hidden vector of every token; the step takes 224 MiB."""
    run = profiled(wide(vocab_size=200_000), tokens=2048, requests=1024)
    assert peak(run) == 1024 * 200_000 * 14 + 2048 * 4096 * 4


def test_a_batch_samples_no_more_requests_than_it_has_tokens() -> None:
    run = profiled(wide(vocab_size=200_000), requests=1024)
    fewer = replace(run, settings=replace(run.settings, max_num_batched_tokens=100))
    assert peak(fewer) == 100 * 200_000 * 14 + 100 * 4096 * 4


def test_the_step_counts_with_its_share_and_both_phases_with_what_is_fixed() -> None:
    band = replace(NEWEST, step_share=Range(1.5, 1.5, 1.5), fixed_gib=Range(0.25, 0.25, 0.25))
    assert peak(profiled(wide()), band) == (896 + 448 + 256) * MIB
    sampling = profiled(wide(vocab_size=200_000), tokens=2048, requests=1024)
    assert peak(sampling, band) == peak(sampling) + 256 * MIB


def test_the_ends_of_the_range_are_those_of_every_constant() -> None:
    """Half and one and a half times the step, and up to 128 MiB whatever the shape."""
    line = lines(profiled(wide()))["activation_peak"]
    assert line.value(line.low) == 448 * MIB
    assert line.value(line.high) == (896 + 448 + 128) * MIB
    assert line.confidence == "calibrated"
    assert NEWEST.source in line.source


def test_ranks_share_the_feed_forward() -> None:
    """2 × 4,096 + 3 × 8,192 elements, and 2 × 4,096 + 3 × 4,096 on four ranks."""
    assert peak(profiled(wide(), tp=2)) == 8192 * 32_768 * 2
    assert peak(profiled(wide(), tp=4)) == 8192 * 20_480 * 2


def test_float32_takes_four_bytes_an_element() -> None:
    assert peak(replace(profiled(wide()), dtype="float32")) == 2 * 896 * MIB


def test_only_the_last_stage_samples() -> None:
    run = profiled(wide(vocab_size=200_000), tokens=2048, requests=1024)
    first = replace(run, layout=run.layout.model_copy(update={"last": False}))
    assert peak(first) == 2048 * 57_344 * 2
    assert "logits_bytes" not in lines(first)["activation_peak"].inputs


def test_a_stage_has_its_own_layers_alone() -> None:
    """The second layer has no feed-forward: 3 × 4,096 elements pass through it."""
    run = profiled(wide(weights=(matrix("mlp", (1024, 1024)),)))
    second = replace(run, layout=RankLayout(layers=(1, 2), last=False))
    assert peak(run) == 896 * MIB
    assert peak(second) == 8192 * 3 * 4096 * 2


# Two experts of 1,024 a token: four buffers of 4,096. The step has 4 × 4,096 elements besides.
EXPERTS = wide(
    experts=8,
    experts_per_token=2,
    weights=(
        matrix("experts", (2048, 4096), "column"),
        matrix("experts", (4096, 1024), "row"),
    ),
)
BUFFERS = 8192 * 4 * 4096 * 2


def test_buffers_of_experts_stay_beside_the_peak() -> None:
    found = lines(profiled(EXPERTS))
    assert BUFFERS == 256 * MIB
    assert found["expert_buffers"].value() == BUFFERS
    assert found["activation_peak"].value() == 8192 * 4 * 4096 * 2
    assert "expert_buffers" not in lines(profiled(wide()))


@pytest.mark.parametrize(
    "changes", [{"version": (0, 13)}, {"vendor": "intel"}], ids=["before 0.14", "Intel"]
)
def test_buffers_that_a_layer_gives_back_are_held_in_its_step(changes: dict[str, Any]) -> None:
    found = lines(replace(profiled(EXPERTS), **changes))
    assert found["expert_buffers"].value() == 0
    assert found["expert_buffers"].value(found["expert_buffers"].high) == BUFFERS
    assert found["activation_peak"].value() == 256 * MIB + BUFFERS


def test_the_newer_runner_holds_the_logits_alone() -> None:
    run = replace(profiled(wide(vocab_size=2**20), tokens=2048, requests=1024), version=(0, 30))
    assert peak(run) == 1024 * 2**20 * 2 + 2048 * 4096 * 4
    assert "logits_bytes" not in lines(run)["activation_peak"].inputs


def test_ranks_gather_the_logits_and_put_them_in_order() -> None:
    run = profiled(wide(vocab_size=2**20), tokens=2048, requests=1024, tp=4)
    gathered = 1024 * 2**20 * 2 * 9 // 4
    assert peak(replace(run, version=(0, 30))) == gathered + 2048 * 4096 * 4


@pytest.mark.parametrize(
    ("vendor", "low", "value"), [("nvidia", 2 + 4, 14), ("amd", 2 + 4, 6), ("intel", 6, 6)]
)
def test_since_033_a_second_pass_samples_with_every_parameter(
    vendor: str, low: int, value: int
) -> None:
    run = profiled(wide(vocab_size=2**20), tokens=2048, requests=1024)
    line = lines(replace(run, version=(0, 33), vendor=vendor))["activation_peak"]
    hidden = 2048 * 4096
    assert line.value() == 1024 * 2**20 * value + 4 * hidden
    assert line.value(line.low) == 1024 * 2**20 * low + 2 * hidden


# f = 576 + 32 × 192 = 6,720 and a = 4,096: 4,096 + 3 × 4,096 + 6,720 = 23,104 are alive, and while
# room is made 4,096 + 6,720 + 4,096 + 512 = 15,424 a token with 32 × 256 = 8,192 a row of context.
LATENT = toy(
    LatentCache(latent_dim=512, rope_dim=64),
    hidden_size=4096,
    vocab_size=1000,
    weights=(
        matrix("attention", (576, 4096)),
        matrix("attention", (6144, 4096), "column"),
        matrix("attention", (8192, 512), "column"),
        matrix("attention", (4096, 4096), "row"),
    ),
)


@pytest.mark.parametrize(
    ("context", "options", "rows"),
    [
        (1024, {"requests": 8}, 8 * 1024),  # 4 × 8 × 64 are fewer
        (512, {"requests": 8}, 8 * 512),
        (1024, {"requests": 64}, 4 * 64 * 64),
        (1024, {"requests": 64, "block_size": 128}, 4 * 64 * 128),
        (100_000, {"requests": 8}, 65_536),
        (1024, {"requests": 1024}, 65_536),
    ],
)
def test_latent_attention_makes_room_for_its_context(
    context: int, options: dict[str, int], rows: int
) -> None:
    run = replace(profiled(LATENT, tokens=1024, **options), context=context)
    assert peak(run) == (1024 * 15_424 + rows * 8192) * 2 + GIB // 2
    assert lines(run)["activation_peak"].inputs["context_rows"] == rows


def test_the_room_of_latent_attention_counts_where_it_is_the_larger() -> None:
    """32,768 × (23,104 - 15,424) are more than 8,192 × 8,192."""
    assert peak(profiled(LATENT, tokens=32_768)) == 32_768 * 23_104 * 2 + GIB // 2


def test_the_engine_before_v1_made_no_such_room() -> None:
    run = replace(profiled(LATENT, tokens=1024), v0=True)
    assert peak(run) == 1024 * 23_104 * 2 + GIB // 2
    assert "context_rows" not in lines(run)["activation_peak"].inputs


@pytest.mark.parametrize("component", ["vision", "audio"])
def test_towers_are_profiled_too(component: Component) -> None:
    tower = Weight(name="patches", component=component, shape=(64, 588), place="tower")
    model = wide()
    seeing = model.model_copy(update={"weights": (*model.weights, tower)})
    assert lines(profiled(seeing))["multimodal_profile"].value() == GIB // 2
    assert "multimodal_profile" not in lines(profiled(model))


def test_compiling_takes_memory_of_its_own() -> None:
    run = profiled(wide())
    assert lines(run)["compilation"].value() == GIB // 2
    assert "compilation" not in lines(replace(run, compiles=False))


def test_before_020_compiling_is_no_part_of_the_profile_run() -> None:
    assert "compilation" not in lines(profiled(wide()), BEFORE_020)


def test_a_line_that_can_be_nothing_else_than_nothing_is_left_out() -> None:
    """But not one that is likely nothing and may be more."""
    likely = replace(NEWEST, compile_gib=Range(0, 0, 0.25))
    assert lines(profiled(wide()), likely)["compilation"].value() == 0
    never = replace(NEWEST, compile_gib=Range(0, 0, 0))
    assert set(lines(profiled(EXPERTS), never)) == {"activation_peak", "expert_buffers"}


@pytest.mark.parametrize("option", [{"enforce_eager": True}, {"cudagraph_mode": "NONE"}])
def test_without_graphs_nothing_is_compiled(
    option: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    fix_calibration(monkeypatch)

    def names(**options: Any) -> set[str]:
        made = Vllm().prepare(Setup(model=wide(), gpu=device(), version="0.30.0", options=options))
        assert made.stages is not None
        return {draft.name for draft in made.stages[0].budget}

    assert names() - names(**option) == {"compilation", "cuda_graphs"}


@pytest.mark.parametrize(
    ("name", "elements"),
    [
        # 4,096 + 2 × 4,096 + 3 × 14,336, see the tests of the step
        ("llama-3.1-8b", 55_296),
        ("qwen3-30b-a3b", 17_920),
    ],
)
def test_real_models_on_one_rank(name: str, elements: int) -> None:
    assert peak(profiled(real(name))) == 8192 * elements * 2
