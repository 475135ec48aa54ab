"""Which function finds the rule that turns images into tokens, by ``model_type``.

A type that is not here takes no images, or nothing in reach states how many tokens they take.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from kvplan.architectures.fields import Fields
from kvplan.architectures.images.settings import read_settings
from kvplan.architectures.lazy import function
from kvplan.models.images.rules import AnyImageRule

RULES: Mapping[str, str] = MappingProxyType(
    {
        "aya_vision": "images.tiled:aya_vision",
        "cohere2_vision": "images.tiled:cohere2_vision",
        "deepseek_vl_v2": "images.tiled:deepseek_vl2",
        "exaone4_5": "images.resized:qwen",
        "gemma3": "images.fixed:gemma3",
        "gemma3n": "images.fixed:gemma3n",
        "gemma4": "images.resized:gemma4",
        "glm46v": "images.resized:glm4v",
        "glm4v": "images.resized:glm4v",
        "glm4v_moe": "images.resized:glm4v",
        "idefics2": "images.fixed:idefics2",
        "idefics3": "images.tiled:idefics3",
        "internvl": "images.tiled:internvl",
        "internvl_chat": "images.tiled:internvl_chat",
        "kimi_k25": "images.resized:kimi_k25",
        "kimi_k3": "images.resized:kimi_k3",
        "kimi_vl": "images.resized:kimi_vl",
        "lfm2_vl": "images.tiled:lfm2_vl",
        "llama4": "images.tiled:llama4",
        "llava": "images.fixed:llava",
        "llava_next": "images.tiled:llava_next",
        "llava_onevision": "images.tiled:llava_onevision",
        "minicpmv": "images.tiled:minicpmv",
        "minimax_m3_vl": "images.resized:minimax_m3",
        "mistral3": "images.resized:mistral3",
        "mllama": "images.fixed:mllama",
        "paligemma": "images.fixed:paligemma",
        "phi3_v": "images.tiled:phi3_v",
        "phi4mm": "images.tiled:phi4mm",
        "qwen2_5_omni": "images.resized:qwen_omni",
        "qwen2_5_vl": "images.resized:qwen",
        "qwen2_vl": "images.resized:qwen",
        "qwen3_5": "images.resized:qwen_16",
        "qwen3_5_moe": "images.resized:qwen_16",
        "qwen3_omni_moe": "images.resized:qwen_omni_16",
        "qwen3_vl": "images.resized:qwen_16",
        "qwen3_vl_moe": "images.resized:qwen_16",
        "smolvlm": "images.tiled:idefics3",
        "vipllava": "images.fixed:llava",
    }
)


def read_image_rule(
    model_type: str, fields: Fields, processor: Mapping[str, Any] | None, where: str
) -> AnyImageRule | None:
    """The rule of a model's processor, or None where nothing at hand states one.

    Args:
        model_type: Of the whole model.
        fields: Its configuration.
        processor: ``preprocessor_config.json`` or ``processor_config.json``, or None.
        where: Where both were read, for error messages.

    Raises:
        InputError: a setting that is malformed.
    """
    if model_type not in RULES:
        return None
    settings = read_settings(fields, processor, where)
    rule: AnyImageRule | None = function(RULES[model_type])(settings)
    return rule
