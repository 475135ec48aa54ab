"""Which function reads the towers of which wrapper: one literal table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from kvplan.architectures.anatomy import Anatomy
from kvplan.architectures.fields import Fields
from kvplan.architectures.wrappers.llava import (
    llava,
    llava_next,
    original_llava,
    several_towers,
    vila,
    vipllava,
)
from kvplan.architectures.wrappers.minicpm_v import minicpmv, minicpmv4_6, minicpmv_text
from kvplan.architectures.wrappers.minimax import minimax_m3_vl
from kvplan.architectures.wrappers.others import (
    fuyu,
    gemma4,
    internvl,
    internvl_chat,
    kimi_k25,
    kimi_vl,
    llama4,
    locateanything,
    mistral3,
    unsized,
)
from kvplan.architectures.wrappers.parts import Beside
from kvplan.architectures.wrappers.qwen import (
    exaone4_5,
    glm4v,
    qwen2_5_omni,
    qwen2_5_vl,
    qwen2_audio,
    qwen2_vl,
    qwen3_5,
    qwen3_omni,
    qwen3_vl,
    voxtral,
)
from kvplan.architectures.wrappers.siglip import (
    aya_vision,
    cohere2_vision,
    gemma3,
    idefics2,
    idefics3,
    lfm2_vl,
    paligemma,
    video_llama3,
)
from kvplan.architectures.wrappers.timm import deepseek_vl2, phi3_v, phi4mm

_TEXT = ("text_config",)


class Wrapper(NamedTuple):
    """How one ``model_type`` that wraps a decoder is read.

    Attributes:
        beside: Sizes what stands beside the decoder.
        folder: Where transformers keeps the class and its defaults.
        classes: Names in ``architectures`` that are this wrapper.
        text: Type of the decoder if its part names none, or what tells it from the fields.
        sections: Where the decoder is described, the first that is there; none: at the top.
        flat: Older files describe the decoder at the top instead.
        tied: The class default of ``tie_word_embeddings``; None: the decoder's own.
        own_head: The files hold a head whatever the text part says of it.
    """

    beside: Callable[[Fields, Anatomy], Beside]
    folder: str
    classes: tuple[str, ...]
    text: str | Callable[[Fields], str]
    sections: tuple[str, ...] = _TEXT
    flat: bool = False
    tied: bool | None = None
    own_head: bool = False


WRAPPERS: dict[str, Wrapper] = {
    "aya_vision": Wrapper(
        aya_vision, "aya_vision", ("AyaVisionForConditionalGeneration",), "cohere2", tied=True
    ),
    "bunny-phi": Wrapper(original_llava, "phi", ("PhiForCausalLM",), "phi", ()),
    "cohere2_vision": Wrapper(
        cohere2_vision,
        "cohere2_vision",
        ("Cohere2VisionForConditionalGeneration",),
        "cohere2",
        tied=True,
    ),
    "deepseek_vl_v2": Wrapper(
        deepseek_vl2,
        "deepseek_v2",
        ("DeepseekVLV2ForCausalLM",),
        "deepseek_v2",
        ("language_config",),
    ),
    "exaone4_5": Wrapper(
        exaone4_5, "exaone4_5", ("Exaone4_5_ForConditionalGeneration",), "exaone4"
    ),
    "fuyu": Wrapper(fuyu, "fuyu", ("FuyuForCausalLM",), "persimmon", ()),
    "gemma3": Wrapper(
        gemma3, "gemma3", ("Gemma3ForConditionalGeneration",), "gemma3_text", tied=True
    ),
    "gemma4": Wrapper(
        gemma4, "gemma4", ("Gemma4ForConditionalGeneration",), "gemma4_text", tied=True
    ),
    "glm46v": Wrapper(glm4v, "glm46v", ("Glm46VForConditionalGeneration",), "glm4"),
    "glm4v": Wrapper(glm4v, "glm4v", ("Glm4vForConditionalGeneration",), "glm4"),
    "glm4v_moe": Wrapper(glm4v, "glm4v_moe", ("Glm4vMoeForConditionalGeneration",), "glm4_moe"),
    "idefics2": Wrapper(idefics2, "idefics2", ("Idefics2ForConditionalGeneration",), "mistral"),
    "idefics3": Wrapper(idefics3, "idefics3", ("Idefics3ForConditionalGeneration",), "llama"),
    "internvl": Wrapper(
        internvl, "internvl", ("InternVLForConditionalGeneration",), "qwen2", tied=True
    ),
    "internvl_chat": Wrapper(
        internvl_chat, "internvl", ("InternVLChatModel",), "llama", ("llm_config",)
    ),
    "kimi_k25": Wrapper(kimi_k25, "kimi_k25", ("KimiK25ForConditionalGeneration",), "deepseek_v3"),
    "kimi_k3": Wrapper(kimi_k25, "kimi_k25", ("KimiK3ForConditionalGeneration",), "kimi_linear"),
    "kimi_vl": Wrapper(kimi_vl, "kimi_k25", ("KimiVLForConditionalGeneration",), "deepseek_v3"),
    "lfm2_vl": Wrapper(lfm2_vl, "lfm2_vl", ("Lfm2VlForConditionalGeneration",), "lfm2", tied=True),
    "llama4": Wrapper(llama4, "llama4", ("Llama4ForConditionalGeneration",), "llama4_text"),
    "llama3v": Wrapper(several_towers, "llama", ("LLaVALlamaForCausalLM",), "llama", ()),
    "llava": Wrapper(
        llava,
        "llava",
        ("LlavaForConditionalGeneration", "LlavaLlamaForCausalLM"),
        "llama",
        flat=True,
    ),
    "llava_llama": Wrapper(vila, "llava", ("LlavaLlamaModel",), "llama", ("llm_cfg",)),
    "llava_next": Wrapper(
        llava_next, "llava_next", ("LlavaNextForConditionalGeneration",), "llama"
    ),
    "llava_next_video": Wrapper(
        llava_next, "llava_next_video", ("LlavaNextVideoForConditionalGeneration",), "llama"
    ),
    "llava_onevision": Wrapper(
        llava_next, "llava_onevision", ("LlavaOnevisionForConditionalGeneration",), "qwen2"
    ),
    "locateanything": Wrapper(
        locateanything,
        "qwen2",
        ("LocateAnythingForConditionalGeneration",),
        "qwen2",
        own_head=True,
    ),
    "logics": Wrapper(several_towers, "qwen3", ("LogicsForConditionalGeneration",), "qwen3", ()),
    "minicpmv": Wrapper(minicpmv, "llama", ("MiniCPMV",), minicpmv_text, ()),
    "minicpmv4_6": Wrapper(
        minicpmv4_6, "minicpmv4_6", ("MiniCPMV4_6ForConditionalGeneration",), "qwen3_5_text"
    ),
    "minimax_m3_vl": Wrapper(
        minimax_m3_vl,
        "minimax_m3_vl",
        ("MiniMaxM3SparseForConditionalGeneration",),
        "minimax_m3_vl_text",
    ),
    "mistral3": Wrapper(
        mistral3, "mistral3", ("Mistral3ForConditionalGeneration",), "mistral", tied=True
    ),
    "multi_modality": Wrapper(
        several_towers, "llama", ("MultiModalityCausalLM",), "llama", ("language_config",)
    ),
    "paligemma": Wrapper(
        paligemma, "paligemma", ("PaliGemmaForConditionalGeneration",), "gemma", tied=True
    ),
    "phi3_v": Wrapper(phi3_v, "phi3", ("Phi3VForCausalLM",), "phi3", ()),
    "phi4mm": Wrapper(phi4mm, "phi3", ("Phi4MMForCausalLM",), "phi3", ()),
    "qwen2_5_omni": Wrapper(
        qwen2_5_omni,
        "qwen2_5_omni",
        ("Qwen2_5OmniForConditionalGeneration", "Qwen2_5OmniModel"),
        "qwen2",
        ("thinker_config.text_config",),
    ),
    "qwen2_5_vl": Wrapper(
        qwen2_5_vl, "qwen2_5_vl", ("Qwen2_5_VLForConditionalGeneration",), "qwen2", flat=True
    ),
    "qwen2_audio": Wrapper(
        qwen2_audio, "qwen2_audio", ("Qwen2AudioForConditionalGeneration",), "qwen2"
    ),
    "qwen2_vl": Wrapper(
        qwen2_vl, "qwen2_vl", ("Qwen2VLForConditionalGeneration",), "qwen2", flat=True
    ),
    "qwen3_5": Wrapper(qwen3_5, "qwen3_5", ("Qwen3_5ForConditionalGeneration",), "qwen3_5_text"),
    "qwen3_5_moe": Wrapper(
        qwen3_5, "qwen3_5_moe", ("Qwen3_5MoeForConditionalGeneration",), "qwen3_5_moe_text"
    ),
    "qwen3_omni_moe": Wrapper(
        qwen3_omni,
        "qwen3_omni_moe",
        ("Qwen3OmniMoeForConditionalGeneration",),
        "qwen3_moe",
        ("thinker_config.text_config",),
    ),
    "qwen3_vl": Wrapper(qwen3_vl, "qwen3_vl", ("Qwen3VLForConditionalGeneration",), "qwen3"),
    "qwen3_vl_moe": Wrapper(
        qwen3_vl, "qwen3_vl_moe", ("Qwen3VLMoeForConditionalGeneration",), "qwen3_moe"
    ),
    "smolvlm": Wrapper(idefics3, "smolvlm", ("SmolVLMForConditionalGeneration",), "llama"),
    "video_llama_3": Wrapper(
        video_llama3, "video_llama_3", ("VideoLlama3ForConditionalGeneration",), "qwen2"
    ),
    "videollama3_qwen2": Wrapper(
        video_llama3, "qwen2", ("Videollama3Qwen2ForCausalLM",), "qwen2", ()
    ),
    "vipllava": Wrapper(vipllava, "vipllava", ("VipLlavaForConditionalGeneration",), "llama"),
    "voxtral": Wrapper(voxtral, "voxtral", ("VoxtralForConditionalGeneration",), "llama"),
    "xgenmm": Wrapper(unsized, "phi3", ("XGenMMModelForConditionalGeneration",), "phi3"),
}

# Files without a ``model_type``, by the class they name.
UNTYPED: Mapping[str, str] = MappingProxyType({})
