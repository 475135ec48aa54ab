"""Wrappers: towers and projectors against totals that files state, and how parts are found."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from family_configs import MISTRAL, QWEN2, VISION

from kvplan.architectures.fields import Fields
from kvplan.architectures.table import FAMILIES
from kvplan.architectures.wrappers.table import WRAPPERS
from kvplan.errors import InputError, NotModelledError
from kvplan.models.facts import TensorHeader
from kvplan.models.spec import ModelSpec

Read = Callable[..., ModelSpec]
Config = dict[str, Any]

ROWS = json.loads((Path(__file__).parents[2] / "data" / "wrapper_totals.json").read_text())
QWEN_VISION = {"depth": 2, "hidden_size": 1280, "intermediate_size": 3420, "out_hidden_size": 896}


def components(spec: ModelSpec) -> Counter[str]:
    counts: Counter[str] = Counter()
    for weight in spec.weights:
        counts[weight.component] += weight.parameters
    return counts


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["model"])
def test_totals_equal_those_of_published_files(read: Read, row: dict[str, Any]) -> None:
    spec = read(row["config"])
    assert components(spec)["mtp"] == row["drafts"]
    assert spec.parameters_total == row["published"] - row["buffers"] - row["drafts"]
    assert spec.notes == ()


def test_gemma_3n_equals_published_files(read: Read) -> None:
    """E2B: its files also hold the tied head, and keys that its last ten layers do not use."""
    text = {
        "model_type": "gemma3n_text",
        "num_hidden_layers": 30,
        "intermediate_size": 8192,
        "num_kv_shared_layers": 10,
    }
    config = {"model_type": "gemma3n", "text_config": text, "vision_config": {}, "audio_config": {}}
    spec = read(config)
    # llmfit 1.1.17 hf_models.json: unsloth/gemma-3n-E2B-it.
    unused = 10 * (2048 * 1024 + 256)
    assert spec.parameters_total == 5_976_833_472 - 262_400 * 2048 - unused
    assert spec.notes == ()
    assert components(spec)["vision"] == 294_126_912 + 128 * 2048 + 2 * 2048 + 2048 * 2048
    alone = read(config | {"vision_config": None, "audio_config": None})
    assert alone.parameters_total == spec.parameters_total - sum(
        components(spec)[tower] for tower in ("vision", "audio")
    )
    other = read(config | {"vision_config": {"architecture": "vit_base"}})
    assert other.notes == (
        "The weights of the vision tower are not counted: nothing states their size.",
    )


def test_no_type_is_read_in_two_ways() -> None:
    assert not set(FAMILIES) & set(WRAPPERS)


def test_every_default_text_type_is_a_known_family() -> None:
    for wrapper in WRAPPERS.values():
        if ":" not in wrapper.text:
            assert wrapper.text in FAMILIES


# Where the decoder is described


def test_older_files_describe_the_decoder_at_the_top(read: Read) -> None:
    flat = read({**QWEN2, "model_type": "qwen2_5_vl", "vision_config": QWEN_VISION})
    nested = read({"model_type": "qwen2_5_vl", "vision_config": QWEN_VISION, "text_config": QWEN2})
    assert flat.layers == nested.layers
    assert flat.weights == nested.weights


def test_a_nested_part_may_leave_out_what_its_class_says(read: Read) -> None:
    """LLaVA 1.5: the text part states its vocabulary and little else."""
    vision = {"hidden_size": 1024, "image_size": 336, "intermediate_size": 4096}
    vision |= {"num_hidden_layers": 24, "patch_size": 14}
    text = {"model_type": "llama", "vocab_size": 32064, "max_position_embeddings": 4096}
    spec = read({"model_type": "llava", "vision_config": vision, "text_config": text})
    assert spec.parameters_total == 7_063_427_072
    assert spec.max_context == 4096
    filled = {default.field: default for default in spec.defaults}
    assert filled["text_config.hidden_size"].value == "4096"
    assert "configuration_llama.py" in filled["text_config.hidden_size"].source


def test_the_top_level_is_not_completed(read: Read) -> None:
    """A plain file without a hidden size is broken, not a default model."""
    with pytest.raises(InputError, match="`hidden_size` is missing"):
        read({"model_type": "fuyu", "num_attention_heads": 64})


def test_completed_fields_keep_what_is_stated() -> None:
    fields = Fields({"a": 1, "b": None}, where="here", source="there")
    whole = fields.completed({"a": 7, "b": 8, "c": 9})
    assert [whole.integer(name) for name in ("a", "b", "c")] == [1, 8, 9]
    assert [default.field for default in fields.filled] == ["c"]


def test_the_holder_of_the_text_part_decides_on_tying(read: Read) -> None:
    """Omni nests twice: the flag that counts is the thinker's."""
    thinker = {"text_config": QWEN2, "vision_config": QWEN_VISION, "audio_config": {}}
    config = {"model_type": "qwen2_5_omni", "tie_word_embeddings": True}
    untied = {**thinker, "tie_word_embeddings": False}
    assert read({**config, "thinker_config": untied}).tied_embeddings is False
    tied = {**thinker, "tie_word_embeddings": True}
    assert read({**config, "thinker_config": tied}).tied_embeddings is True


def test_omni_says_what_it_does_not_count(read: Read) -> None:
    thinker = {"text_config": QWEN2, "vision_config": QWEN_VISION, "audio_config": {}}
    spec = read({"model_type": "qwen2_5_omni", "thinker_config": thinker})
    assert "thinker" in spec.notes[0]
    assert components(spec)["audio"] > 0 < components(spec)["vision"]


def test_a_class_default_ties_where_no_part_says(read: Read) -> None:
    config: Config = {"model_type": "internvl", "vision_config": {}, "text_config": QWEN2}
    assert read(config).tied_embeddings is True
    assert read({**config, "tie_word_embeddings": False}).tied_embeddings is False


def test_the_class_tells_a_wrapper_from_the_text_model_whose_type_it_bears(read: Read) -> None:
    text = {**MISTRAL, "model_type": "ministral3"}
    config = {"model_type": "ministral3", "vision_config": {}, "text_config": text}
    spec = read({**config, "architectures": ["Mistral3ForConditionalGeneration"]})
    assert components(spec)["vision"] > 0
    with pytest.raises(NotModelledError, match="not a plain"):
        read({**text, "architectures": ["Mistral3ForConditionalGeneration"]})


# Towers


def test_a_llava_with_an_unknown_tower_is_refused(read: Read) -> None:
    vision = {"model_type": "dinov2"}
    with pytest.raises(NotModelledError, match="vision tower of type 'dinov2'"):
        read({"model_type": "llava", "vision_config": vision, "text_config": MISTRAL})


def test_pixtral_stands_in_llavas_place(read: Read) -> None:
    vision = {"model_type": "pixtral", "hidden_size": 1024, "num_hidden_layers": 1}
    spec = read({"model_type": "llava", "vision_config": vision, "text_config": MISTRAL})
    assert any(weight.name == "patch_conv.weight" for weight in spec.weights)


def test_an_ear_is_counted_as_sound(read: Read) -> None:
    config = {"model_type": "qwen2_audio", "audio_config": {}, "text_config": QWEN2}
    assert components(read(config))["audio"] == 636_968_960 + 896 * (1280 + 1)


def test_gemma4_has_an_ear_only_if_the_file_says(read: Read) -> None:
    config = {"model_type": "gemma4", "vision_config": {}, "audio_config": None}
    config["text_config"] = next(r for r in ROWS if r["config"]["model_type"] == "gemma4")[
        "config"
    ]["text_config"]
    assert components(read(config))["audio"] == 0
    assert components(read({**config, "audio_config": {}}))["audio"] > 0


@pytest.mark.parametrize("ratio", [0.3, 2.0, 1e-9])
def test_a_downsample_ratio_is_one_over_a_whole_number(read: Read, ratio: float) -> None:
    config = {"model_type": "internvl_chat", "vision_config": {}, "llm_config": MISTRAL}
    with pytest.raises(InputError, match="downsample_ratio"):
        read({**config, "downsample_ratio": ratio})


@pytest.mark.parametrize(("version", "kind"), [(2.6, "Qwen2"), (4.0, "Llama"), (4.5, "Qwen3")])
def test_minicpm_v_follows_its_version(read: Read, version: float, kind: str) -> None:
    text = {**QWEN2, "model_type": "minicpmv", "version": version, "vision_config": VISION}
    names = {weight.name for weight in read(text).weights if weight.place == "layers"}
    assert ("self_attn.q_proj.bias" in names) is (kind == "Qwen2")
    assert ("self_attn.q_norm.weight" in names) is (kind == "Qwen3")


def test_an_unknown_minicpm_v_is_refused(read: Read) -> None:
    with pytest.raises(NotModelledError, match=r"MiniCPM-V 9\.0"):
        read({**QWEN2, "model_type": "minicpmv", "version": 9.0})


# What is not sized


def test_a_tower_of_another_checkpoint_is_named(read: Read) -> None:
    config = {**MISTRAL, "model_type": "llava", "mm_hidden_size": 1024}
    spec = read({**config, "mm_projector_type": "mlp2x_gelu"})
    assert components(spec)["vision"] == 4096 * (1024 + 1) + 4096 * (4096 + 1)
    assert spec.notes == (
        "The vision tower is another checkpoint, and its weights are not counted.",
    )


def test_a_tower_that_nothing_sizes_is_what_the_files_hold_beyond_the_text(read: Read) -> None:
    config = {**QWEN2, "model_type": "logics", "torch_dtype": "bfloat16"}
    plain = read(config)
    assert "not counted" in plain.notes[0]
    text = 2 * plain.parameters_total
    whole = read(config, checkpoint_bytes=text + 2_000_000)
    assert components(whole)["other"] == 1_000_000
    assert "beyond the text model" in whole.notes[0]


def test_files_larger_than_a_tower_can_explain_are_not_explained_by_it(read: Read) -> None:
    """More than the text model again is another number type, not a tower."""
    config = {**QWEN2, "model_type": "logics", "torch_dtype": "bfloat16"}
    text = 2 * read(config).parameters_total
    spec = read(config, checkpoint_bytes=3 * text)
    assert components(spec)["other"] == 0
    assert "not counted" in spec.notes[0]


# Headers


def test_tensors_of_towers_are_found_by_their_names(read: Read, read_some: Read) -> None:
    config = {"model_type": "qwen3_vl", "text_config": {**QWEN2, "model_type": "qwen3"}}
    config["vision_config"] = {"depth": 1, "deepstack_visual_indexes": [0]}
    formula = read(config)
    names = {
        "model.visual.blocks.0.attn.qkv.weight": (3456, 1152),
        "model.visual.merger.linear_fc2.weight": (3584, 4608),
        "model.visual.deepstack_merger_list.0.linear_fc2.weight": (3584, 4608),
        "model.visual.deepstack_merger_list.0.norm.weight": (4608,),
    }
    tensors = tuple(
        TensorHeader(name=name, dtype="BF16", shape=shape, size=2 * shape[0] * (*shape, 1)[1])
        for name, shape in names.items()
    )
    exact = read_some(config, tensors=tensors)
    shardings = {weight.name: weight.sharding for weight in exact.weights}
    assert exact.notes == ()
    assert shardings["attn.qkv.weight"] == "column"
    assert shardings["linear_fc2.weight"] == "row"
    assert components(exact)["vision"] < components(formula)["vision"]


@pytest.mark.parametrize("kind", ["seamless_m4t_v2", "nvembed", "falcon_perception"])
def test_what_is_no_language_model_is_refused_with_its_reason(read: Read, kind: str) -> None:
    with pytest.raises(NotModelledError, match=f"It .* type '{kind}'"):
        read({"model_type": kind, "architectures": ["SomeModel"]})
