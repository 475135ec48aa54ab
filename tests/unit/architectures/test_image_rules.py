"""Rules for images by family: what is read of which file, and what stands in for the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from family_configs import QWEN2
from hypothesis import given
from hypothesis import strategies as st

from kvplan.architectures.fields import Fields
from kvplan.architectures.images.table import RULES, read_image_rule
from kvplan.architectures.table import FAMILIES
from kvplan.architectures.wrappers.table import WRAPPERS
from kvplan.errors import InputError
from kvplan.models.images.rules import AnyImageRule
from kvplan.models.spec import ModelSpec

Read = Callable[..., ModelSpec]
Config = dict[str, Any]

SCREEN = (1920, 1080)
EYE: Config = {"vision_config": {}}
CLIP: Config = {"vision_config": {"image_size": 336, "patch_size": 14}}
SIGLIP: Config = {
    "vision_config": {"model_type": "siglip_vision_model", "image_size": 384, "patch_size": 14}
}


def rule_of(
    model_type: str, config: Config, processor: Config | None = None
) -> AnyImageRule | None:
    fields = Fields(config, where="config.json", source="a class")
    return read_image_rule(model_type, fields, processor, "config.json")


# Type, configuration, the processor's file, tokens of a screen, what is not stated.
CASES: tuple[tuple[str, Config, Config, int, tuple[str, ...] | None], ...] = (
    ("qwen2_vl", {}, {}, 2691, ("no largest image",)),
    ("qwen2_5_vl", EYE, {"min_pixels": 3136, "max_pixels": 1_003_520}, 1222, ()),
    ("exaone4_5", EYE, {"size": {"shortest_edge": 3136, "longest_edge": 1_003_520}}, 1222, ()),
    ("qwen3_vl", EYE, {"size": {"longest_edge": 16_777_216}}, 2040, ()),
    ("qwen3_vl_moe", {"vision_config": {"patch_size": 14}}, {"max_pixels": 10**8}, 2691, ()),
    ("qwen3_5", EYE, {"image_processor": {"max_pixels": 10**7}}, 2040, ()),
    ("qwen2_5_omni", {"thinker_config": {"vision_config": {"patch_size": 14}}}, {}, 2691, None),
    ("qwen3_omni_moe", {"thinker_config": EYE}, {"max_pixels": 10**8}, 2040, ()),
    ("glm4v", EYE, {"size": {"shortest_edge": 12_544, "longest_edge": 3_136_000}}, 1947, ()),
    ("minimax_m3_vl", EYE, {}, 576, ("max_pixels = 451584",)),
    (
        "minimax_m3_vl",
        {"vision_config": {"img_token_compression_config": {"spatial_merge_size": 1}}},
        {"max_pixels": 451_584},
        2304,
        (),
    ),
    ("kimi_k25", EYE, {}, 2691, ("max_patches = 16384", "size.max_height = 512")),
    ("kimi_k25", EYE, {"media_proc_cfg": {"in_patch_limit": 4096}}, 1032, ()),
    ("kimi_k3", EYE, {"media_proc_cfg": {"in_patch_limit": 65_536}}, 2691, ()),
    (
        "kimi_vl",
        {"vision_config": {"merge_kernel_size": [2, 2]}},
        {"in_token_limit": 4096},
        1032,
        (),
    ),
    ("mistral3", {"vision_config": {"image_size": 1540, "patch_size": 14}}, {}, 1736, ()),
    ("llava", {"vision_config": {"model_type": "pixtral"}}, {}, 2340, ()),
    ("gemma4", {"vision_config": {"default_output_length": 280}}, {}, 266, ()),
    ("gemma4", EYE, {}, 266, ("max_soft_tokens = 280",)),
    ("gemma4", EYE, {"max_soft_tokens": 70}, 68, ()),
    ("gemma3", EYE, {}, 258, ()),
    ("gemma3", {"mm_tokens_per_image": 64}, {}, 66, ()),
    ("gemma3n", EYE, {}, 258, ()),
    ("llava", CLIP, {}, 576, ()),
    ("vipllava", CLIP, {}, 576, ()),
    ("llava", CLIP | {"vision_feature_select_strategy": "full"}, {}, 577, ()),
    ("llava", SIGLIP | {"vision_feature_select_strategy": "full"}, {}, 729, ()),
    ("llava_next", CLIP, {}, 1948, ()),
    ("llava_next", CLIP | {"image_grid_pinpoints": [[336, 336]]}, {}, 926, ()),
    ("llava_onevision", SIGLIP, {}, 7269, ()),
    ("paligemma", {"vision_config": {"patch_size": 14, "image_size": 448}}, {}, 1024, ()),
    ("idefics2", {}, {}, 66, ("do_image_splitting = false",)),
    ("idefics2", {}, {"do_image_splitting": True}, 326, ()),
    ("mllama", EYE, {}, 1, ()),
    (
        "idefics3",
        {"vision_config": {"image_size": 364, "patch_size": 14}},
        {"do_image_splitting": True, "size": {"longest_edge": 1456}},
        2224,
        ("max_image_size.longest_edge = 364",),
    ),
    (
        "internvl_chat",
        {"dynamic_image_size": True, "max_dynamic_patch": 12, "use_thumbnail": True},
        {},
        2306,
        (),
    ),
    ("internvl_chat", {"max_dynamic_patch": 12}, {}, 258, ()),
    ("internvl", EYE, {"max_patches": 12}, 2306, ("min_patches = 1",)),
    ("internvl", {"vision_config": {"image_size": [448, 448]}}, {"min_patches": 1}, 2306, None),
    (
        "llama4",
        {"vision_config": {"image_size": 336, "patch_size": 14}},
        {},
        2322,
        ("max_patches = 16",),
    ),
    ("llama4", {"vision_config": {"image_size": 336}}, {"max_patches": 1}, 147, ()),
    ("cohere2_vision", EYE, {"max_patches": 12, "patch_size": 16}, 3343, ("size.height = 512",)),
    (
        "deepseek_vl_v2",
        {
            "candidate_resolutions": [[384, 384], [768, 384], [768, 768], [1152, 768]],
            "vision_config": {"patch_size": 14},
        },
        {},
        1415,
        (),
    ),
    ("lfm2_vl", {}, {}, 2311, ()),
    ("lfm2_vl", {"max_tiles": 2, "max_pixels_tolerance": 4.0}, {}, 769, ()),
    (
        "aya_vision",
        {"vision_config": {"image_size": 364}},
        {"min_patches": 1, "max_patches": 12},
        1532,
        (),
    ),
    ("minicpmv", {}, {"max_slice_nums": 9, "scale_resolution": 448}, 594, ()),
    ("minicpmv", {"query_num": 96, "max_slice_num": 4}, {}, 392, None),
    ("phi3_v", {}, {"num_crops": 16}, 2353, ()),
    ("phi4mm", {}, {"dynamic_hd": 36}, 3918, ()),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_tokens_of_a_screen(
    case: tuple[str, Config, Config, int, tuple[str, ...] | None],
) -> None:
    model_type, config, processor, tokens, unstated = case
    rule = rule_of(model_type, config, processor)
    assert rule is not None
    assert rule.tokens(*SCREEN) == tokens
    assert rule.source
    if unstated is not None:
        assert rule.unstated == unstated


@pytest.mark.parametrize(
    ("model_type", "config", "processor"),
    [
        ("llama", {}, {}),
        ("gemma4", {}, {"max_soft_tokens": 280}),  # a text model in its wrapper's clothes
        ("llama4", {}, {}),
        ("kimi_vl", EYE, {}),
        ("kimi_k3", EYE, {}),
        ("phi3_v", {}, {}),
        ("phi4mm", {}, {}),
        ("minimax_m3_vl", EYE, {"max_long_side_pixel": 2016}),
        ("internvl_chat", {}, {}),
        ("llava", {"mm_vision_tower": "openai/clip-vit-large-patch14-336"}, {}),
        ("llava", {"vision_config": {"model_type": "never_heard_of"}}, {}),
        ("llava_next", {}, {}),
        ("idefics3", EYE, {"do_image_splitting": False}),
        ("deepseek_vl_v2", EYE, {}),
        ("lfm2_vl", {"do_image_splitting": False}, {}),
        ("aya_vision", {"vision_config": {"image_size": 20}}, {}),
    ],
)
def test_what_nothing_states_is_no_rule(model_type: str, config: Config, processor: Config) -> None:
    assert rule_of(model_type, config, processor) is None


def test_every_rule_belongs_to_a_known_type() -> None:
    assert set(RULES) <= set(WRAPPERS) | set(FAMILIES)


def test_the_spec_has_the_rule_of_both_files(read: Read) -> None:
    config = {
        "model_type": "qwen2_vl",
        "text_config": QWEN2,
        "vision_config": {"depth": 2, "embed_dim": 1280, "hidden_size": 896},
    }
    assert read(QWEN2).images is None
    plain, stated = read(config), read(config, processor={"max_pixels": 1_003_520})
    assert plain.images is not None
    assert plain.images.most() is None
    assert stated.images is not None
    assert stated.images.most() == 1280


@pytest.mark.parametrize(
    ("model_type", "config", "processor"),
    [
        ("qwen2_vl", {}, {"max_pixels": "large"}),
        ("qwen2_vl", {}, {"size": 448}),
        ("kimi_k25", EYE, {"media_proc_cfg": {"in_patch_limit": 0}}),
        ("internvl", EYE, {"max_patches": 10**6}),
        ("deepseek_vl_v2", {"candidate_resolutions": [[384, True]]}, {}),
        ("deepseek_vl_v2", {"candidate_resolutions": [[384]]}, {}),
        ("llava_next", CLIP | {"image_grid_pinpoints": [[336, 336], 672]}, {}),
        ("gemma3", {"mm_tokens_per_image": -1}, {}),
    ],
)
def test_bad_settings_are_named(model_type: str, config: Config, processor: Config) -> None:
    with pytest.raises(InputError, match="has to be"):
        rule_of(model_type, config, processor)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**18) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
_NAMES = st.sampled_from(
    [
        *("image_processor", "size", "max_pixels", "max_patches", "media_proc_cfg", "num_crops"),
        *("patch_size", "image_size", "vision_config", "max_dynamic_patch", "dynamic_hd"),
        *("candidate_resolutions", "image_grid_pinpoints", "downsample_ratio", "query_num"),
    ]
)


@given(
    model_type=st.sampled_from(sorted(RULES)),
    config=st.dictionaries(_NAMES, _VALUES, max_size=3),
    processor=st.dictionaries(_NAMES, _VALUES, max_size=3),
)
def test_anything_is_a_rule_or_no_rule_or_an_error(
    model_type: str, config: Config, processor: Config
) -> None:
    try:
        rule = rule_of(model_type, config, processor)
    except InputError:
        return
    assert rule is None or rule.tokens(640, 480) >= 1
