"""Architecture classes that vLLM has dropped: the last release that had each.

Source: vLLM 0.33.0, vllm/model_executor/models/registry.py: _PREVIOUSLY_SUPPORTED_MODELS and
_OOT_SUPPORTED_MODELS.
"""

from __future__ import annotations

from kvplan.engines.base import parse_version

LAST_RELEASE: dict[str, str] = {
    "AquilaForCausalLM": "0.24.0",
    "AquilaModel": "0.24.0",
    "ArcticForCausalLM": "0.28.0",
    "AyaVisionForConditionalGeneration": "0.24.0",
    "BaiChuanForCausalLM": "0.23.0",
    "BaichuanForCausalLM": "0.23.0",
    "BambaForCausalLM": "0.23.0",
    "ChameleonForConditionalGeneration": "0.28.0",
    "DonutForConditionalGeneration": "0.10.2",
    "Dots1ForCausalLM": "0.23.0",
    "FuyuForCausalLM": "0.25.0",
    "Grok1ForCausalLM": "0.24.0",
    "Grok1ModelForCausalLM": "0.24.0",
    "HCXVisionForCausalLM": "0.28.0",
    "InternLM2VEForCausalLM": "0.23.0",
    "InternLMForCausalLM": "0.23.0",
    "JAISLMHeadModel": "0.22.0",
    "MPTForCausalLM": "0.28.0",
    "MiniMaxForCausalLM": "0.23.0",
    "MiniMaxM1ForCausalLM": "0.23.0",
    "MiniMaxText01ForCausalLM": "0.23.0",
    "MiniMaxVL01ForConditionalGeneration": "0.23.0",
    "MllamaForConditionalGeneration": "0.10.2",
    "MotifForCausalLM": "0.10.2",
    "MptForCausalLM": "0.28.0",
    "OuroForCausalLM": "0.26.0",
    "PersimmonForCausalLM": "0.25.0",
    "Phi3SmallForCausalLM": "0.9.2",
    "Phi4FlashForCausalLM": "0.10.2",
    "Phi4MultimodalForCausalLM": "0.12.0",
    "Plamo2ForCausalLM": "0.26.0",
    "QWenLMHeadModel": "0.23.0",
    "QwenVLForConditionalGeneration": "0.23.0",
    "RWForCausalLM": "0.28.0",
    "StableLMEpochForCausalLM": "0.28.0",
    "Tarsier2ForConditionalGeneration": "0.23.0",
    "TarsierForConditionalGeneration": "0.24.0",
    "TeleChatForCausalLM": "0.25.0",
    "XverseForCausalLM": "0.23.0",
}
PLUG_INS: dict[str, str] = dict.fromkeys(
    (
        "BartForConditionalGeneration",
        "BartModel",
        "Florence2ForConditionalGeneration",
        "MBartForConditionalGeneration",
    ),
    "https://github.com/vllm-project/bart-plugin",
)


def last_release(architecture: str, version: str) -> str | None:
    """The last release with the class, where ``version`` is a later one; else None."""
    last = LAST_RELEASE.get(architecture)
    later = last is not None and parse_version(version) > parse_version(last)
    return last if later else None
