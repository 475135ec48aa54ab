"""Which function reads the towers of which wrapper: one literal table."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from kvplan.architectures.anatomy import Anatomy
from kvplan.architectures.fields import Fields
from kvplan.architectures.lazy import function

if TYPE_CHECKING:  # it imports what towers are built from
    from kvplan.architectures.wrappers.parts import Beside

_TEXT = ("text_config",)


class Wrapper(NamedTuple):
    """How one ``model_type`` that wraps a decoder is read.

    Attributes:
        towers: The function that sizes what stands beside the decoder, as `lazy` names it.
        folder: Where transformers keeps the class and its defaults.
        classes: Names in ``architectures`` that are this wrapper.
        text: Type of the decoder if its part names none, or the function that tells it.
        sections: Where the decoder is described, the first that is there; none: at the top.
        flat: Older files describe the decoder at the top instead.
        tied: The class default of ``tie_word_embeddings``; None: the decoder's own.
        own_head: The files hold a head whatever the text part says of it.
    """

    towers: str
    folder: str
    classes: tuple[str, ...]
    text: str
    sections: tuple[str, ...] = _TEXT
    flat: bool = False
    tied: bool | None = None
    own_head: bool = False

    def beside(self, fields: Fields, decoder: Anatomy) -> Beside:
        """Sizes what stands beside a decoder.

        Raises:
            NotModelledError, InputError: see `read_anatomy`.
        """
        found: Beside = function(self.towers)(fields, decoder)
        return found

    def text_type(self, fields: Fields) -> str:
        """Type of the decoder where its part names none.

        Raises:
            NotModelledError: a version of the wrapper that is not known.
        """
        return str(function(self.text)(fields)) if ":" in self.text else self.text


WRAPPERS: dict[str, Wrapper] = {
    "aya_vision": Wrapper(
        "wrappers.siglip:aya_vision",
        "aya_vision",
        ("AyaVisionForConditionalGeneration",),
        "cohere2",
        tied=True,
    ),
    "bunny-phi": Wrapper("wrappers.llava:original_llava", "phi", ("PhiForCausalLM",), "phi", ()),
    "cohere2_vision": Wrapper(
        "wrappers.siglip:cohere2_vision",
        "cohere2_vision",
        ("Cohere2VisionForConditionalGeneration",),
        "cohere2",
        tied=True,
    ),
    "deepseek_vl_v2": Wrapper(
        "wrappers.timm:deepseek_vl2",
        "deepseek_v2",
        ("DeepseekVLV2ForCausalLM",),
        "deepseek_v2",
        ("language_config",),
    ),
    "exaone4_5": Wrapper(
        "wrappers.qwen:exaone4_5", "exaone4_5", ("Exaone4_5_ForConditionalGeneration",), "exaone4"
    ),
    "fuyu": Wrapper("wrappers.others:fuyu", "fuyu", ("FuyuForCausalLM",), "persimmon", ()),
    "gemma3": Wrapper(
        "wrappers.siglip:gemma3",
        "gemma3",
        ("Gemma3ForConditionalGeneration",),
        "gemma3_text",
        tied=True,
    ),
    "gemma3n": Wrapper(
        "wrappers.gemma3n:gemma3n",
        "gemma3n",
        ("Gemma3nForConditionalGeneration",),
        "gemma3n_text",
        tied=True,
    ),
    "gemma4": Wrapper(
        "wrappers.others:gemma4",
        "gemma4",
        ("Gemma4ForConditionalGeneration",),
        "gemma4_text",
        tied=True,
    ),
    "glm46v": Wrapper("wrappers.qwen:glm4v", "glm46v", ("Glm46VForConditionalGeneration",), "glm4"),
    "glm4v": Wrapper("wrappers.qwen:glm4v", "glm4v", ("Glm4vForConditionalGeneration",), "glm4"),
    "glm4v_moe": Wrapper(
        "wrappers.qwen:glm4v", "glm4v_moe", ("Glm4vMoeForConditionalGeneration",), "glm4_moe"
    ),
    "idefics2": Wrapper(
        "wrappers.siglip:idefics2", "idefics2", ("Idefics2ForConditionalGeneration",), "mistral"
    ),
    "idefics3": Wrapper(
        "wrappers.siglip:idefics3", "idefics3", ("Idefics3ForConditionalGeneration",), "llama"
    ),
    "internvl": Wrapper(
        "wrappers.others:internvl",
        "internvl",
        ("InternVLForConditionalGeneration",),
        "qwen2",
        tied=True,
    ),
    "internvl_chat": Wrapper(
        "wrappers.others:internvl_chat",
        "internvl",
        ("InternVLChatModel",),
        "llama",
        ("llm_config",),
    ),
    "kimi_k25": Wrapper(
        "wrappers.others:kimi_k25", "kimi_k25", ("KimiK25ForConditionalGeneration",), "deepseek_v3"
    ),
    "kimi_k3": Wrapper(
        "wrappers.others:kimi_k25", "kimi_k25", ("KimiK3ForConditionalGeneration",), "kimi_linear"
    ),
    "kimi_vl": Wrapper(
        "wrappers.others:kimi_vl", "kimi_k25", ("KimiVLForConditionalGeneration",), "deepseek_v3"
    ),
    "lfm2_vl": Wrapper(
        "wrappers.siglip:lfm2_vl", "lfm2_vl", ("Lfm2VlForConditionalGeneration",), "lfm2", tied=True
    ),
    "llama4": Wrapper(
        "wrappers.others:llama4", "llama4", ("Llama4ForConditionalGeneration",), "llama4_text"
    ),
    "llama3v": Wrapper(
        "wrappers.llava:several_towers", "llama", ("LLaVALlamaForCausalLM",), "llama", ()
    ),
    "llava": Wrapper(
        "wrappers.llava:llava",
        "llava",
        ("LlavaForConditionalGeneration", "LlavaLlamaForCausalLM"),
        "llama",
        flat=True,
    ),
    "llava_llama": Wrapper(
        "wrappers.llava:vila", "llava", ("LlavaLlamaModel",), "llama", ("llm_cfg",)
    ),
    "llava_next": Wrapper(
        "wrappers.llava:llava_next", "llava_next", ("LlavaNextForConditionalGeneration",), "llama"
    ),
    "llava_next_video": Wrapper(
        "wrappers.llava:llava_next",
        "llava_next_video",
        ("LlavaNextVideoForConditionalGeneration",),
        "llama",
    ),
    "llava_onevision": Wrapper(
        "wrappers.llava:llava_next",
        "llava_onevision",
        ("LlavaOnevisionForConditionalGeneration",),
        "qwen2",
    ),
    "locateanything": Wrapper(
        "wrappers.others:locateanything",
        "qwen2",
        ("LocateAnythingForConditionalGeneration",),
        "qwen2",
        own_head=True,
    ),
    "logics": Wrapper(
        "wrappers.llava:several_towers", "qwen3", ("LogicsForConditionalGeneration",), "qwen3", ()
    ),
    "minicpmv": Wrapper(
        "wrappers.minicpm_v:minicpmv",
        "llama",
        ("MiniCPMV",),
        "wrappers.minicpm_v:minicpmv_text",
        (),
    ),
    "minicpmv4_6": Wrapper(
        "wrappers.minicpm_v:minicpmv4_6",
        "minicpmv4_6",
        ("MiniCPMV4_6ForConditionalGeneration",),
        "qwen3_5_text",
    ),
    "minimax_m3_vl": Wrapper(
        "wrappers.minimax:minimax_m3_vl",
        "minimax_m3_vl",
        ("MiniMaxM3SparseForConditionalGeneration",),
        "minimax_m3_vl_text",
    ),
    "mistral3": Wrapper(
        "wrappers.others:mistral3",
        "mistral3",
        ("Mistral3ForConditionalGeneration",),
        "mistral",
    ),
    "multi_modality": Wrapper(
        "wrappers.llava:several_towers",
        "llama",
        ("MultiModalityCausalLM",),
        "llama",
        ("language_config",),
    ),
    "paligemma": Wrapper(
        "wrappers.siglip:paligemma",
        "paligemma",
        ("PaliGemmaForConditionalGeneration",),
        "gemma",
        tied=True,
    ),
    "phi3_v": Wrapper("wrappers.timm:phi3_v", "phi3", ("Phi3VForCausalLM",), "phi3", ()),
    "phi4mm": Wrapper("wrappers.timm:phi4mm", "phi3", ("Phi4MMForCausalLM",), "phi3", ()),
    "qwen2_5_omni": Wrapper(
        "wrappers.qwen:qwen2_5_omni",
        "qwen2_5_omni",
        ("Qwen2_5OmniForConditionalGeneration", "Qwen2_5OmniModel"),
        "qwen2",
        ("thinker_config.text_config",),
    ),
    "qwen2_5_vl": Wrapper(
        "wrappers.qwen:qwen2_5_vl",
        "qwen2_5_vl",
        ("Qwen2_5_VLForConditionalGeneration",),
        "qwen2",
        flat=True,
    ),
    "qwen2_audio": Wrapper(
        "wrappers.qwen:qwen2_audio", "qwen2_audio", ("Qwen2AudioForConditionalGeneration",), "qwen2"
    ),
    "qwen2_vl": Wrapper(
        "wrappers.qwen:qwen2_vl",
        "qwen2_vl",
        ("Qwen2VLForConditionalGeneration",),
        "qwen2",
        flat=True,
    ),
    "qwen3_5": Wrapper(
        "wrappers.qwen:qwen3_5", "qwen3_5", ("Qwen3_5ForConditionalGeneration",), "qwen3_5_text"
    ),
    "qwen3_5_moe": Wrapper(
        "wrappers.qwen:qwen3_5",
        "qwen3_5_moe",
        ("Qwen3_5MoeForConditionalGeneration",),
        "qwen3_5_moe_text",
    ),
    "qwen3_omni_moe": Wrapper(
        "wrappers.qwen:qwen3_omni",
        "qwen3_omni_moe",
        ("Qwen3OmniMoeForConditionalGeneration",),
        "qwen3_moe",
        ("thinker_config.text_config",),
    ),
    "qwen3_vl": Wrapper(
        "wrappers.qwen:qwen3_vl", "qwen3_vl", ("Qwen3VLForConditionalGeneration",), "qwen3"
    ),
    "qwen3_vl_moe": Wrapper(
        "wrappers.qwen:qwen3_vl",
        "qwen3_vl_moe",
        ("Qwen3VLMoeForConditionalGeneration",),
        "qwen3_moe",
    ),
    "smolvlm": Wrapper(
        "wrappers.siglip:idefics3", "smolvlm", ("SmolVLMForConditionalGeneration",), "llama"
    ),
    "video_llama_3": Wrapper(
        "wrappers.siglip:video_llama3",
        "video_llama_3",
        ("VideoLlama3ForConditionalGeneration",),
        "qwen2",
    ),
    "videollama3_qwen2": Wrapper(
        "wrappers.siglip:video_llama3", "qwen2", ("Videollama3Qwen2ForCausalLM",), "qwen2", ()
    ),
    "vipllava": Wrapper(
        "wrappers.llava:vipllava", "vipllava", ("VipLlavaForConditionalGeneration",), "llama"
    ),
    "voxtral": Wrapper(
        "wrappers.qwen:voxtral", "voxtral", ("VoxtralForConditionalGeneration",), "llama"
    ),
    "xgenmm": Wrapper(
        "wrappers.others:unsized", "phi3", ("XGenMMModelForConditionalGeneration",), "phi3"
    ),
}

# Files without a ``model_type``, by the class they name.
UNTYPED: Mapping[str, str] = MappingProxyType({})
